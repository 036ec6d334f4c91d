/* helper.h: a short piece of work done by a second process while the caller goes on.
 *
 * For a keeper that is still alone in its namespaces: some calls make the kernel wait for all
 * processors, and there is other work to do. Raw system calls: static programs link it. */
#pragma once
#include <stdbool.h>

#include "os/affinity.h"

typedef struct csn_helper {
    int pid;
    int (*work)(void *arg); /* 0 or -errno */
    void *arg;
    int rc;
    int done;   /* a step, see below: `work` has returned */
    int first;  /* who of the two came first: see helper.c */
    bool moved; /* it has sent the caller to another processor */
    bool late;  /* it had not yet when the caller went back: so again, when it is through */
    bool ended; /* and is no more */
    bool here;
    csn_affinity cpus; /* the caller's */
    _Alignas(64) char stack[16384];
} csn_helper;

/* The other shares our memory and descriptors until it is done: `work` calls the kernel and
 * writes to nothing but *arg, and to errno, which we look at only right after a call of our own
 * that failed; then either way something went wrong. It is not a thread: namespaces and working
 * directory are its own. *b must stay where it is until join. 0 or -errno. */
int csn_helper_begin(csn_helper *b, int (*work)(void *), void *arg);
/* For a caller that has nothing to do meanwhile but wait: the other keeps this processor, and
 * whatever wakes the caller finds it on another; _back when that has happened. */
int csn_helper_begin_here(csn_helper *b, int (*work)(void *), void *arg);
void csn_helper_back(csn_helper *b);
/* What `work` returned, when it has, or -errno. And: when it has ended too, and *b is free. */
int csn_helper_result(csn_helper *b);
int csn_helper_join(csn_helper *b);

/* Steps of one that the other waits for: 0 until they are told, then 1. They leave errno alone.
 * Whoever has begun the other waits for its steps with the second: -EINTR when it has ended
 * without them. */
void csn_step_done(int *step);
bool csn_step_is_done(const int *step);
void csn_step_await(const int *step);
int csn_helper_await(csn_helper *b, const int *step);
