/* helper.h: runs one function in a second process while the keeper continues to boot.
 *
 * For system calls that make the kernel wait for all CPUs. */
#pragma once
#include <stdbool.h>

typedef struct kp_helper {
    int pid;
    int (*work)(void *arg); /* 0 or -errno */
    void *arg;
    int rc;
    int done; /* a step: `work` has returned */
    bool reaped;
    _Alignas(64) char stack[16384];
} kp_helper;

/* Starts the helper on another CPU. It shares the keeper's memory and descriptors, but not its
 * namespaces and working directory. `work` may write only to *arg, and must leave errno alone
 * (os/raw_syscall.h) unless it fails. *h must stay valid until kp_helper_join. 0 or -errno. */
int kp_helper_begin(kp_helper *h, int (*work)(void *), void *arg);
/* Waits until `work` has returned: its result, or -errno. */
int kp_helper_result(kp_helper *h);
/* The same, and reaps the process. */
int kp_helper_join(kp_helper *h);

/* Steps synchronize the two processes: a step is an int that is 0 until kp_step_done sets it to
 * 1. All of these functions leave errno alone. */
void kp_step_done(int *step);
bool kp_step_is_done(const int *step);
/* Called by the helper. */
void kp_step_await(const int *step);
/* Called by the keeper. -EINTR: the helper has ended without the step. */
int kp_helper_await(kp_helper *h, const int *step);
