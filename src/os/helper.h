/* helper.h: a short piece of work done by a second process while the caller goes on.
 *
 * For a keeper that is still alone in its namespaces: some calls make the kernel wait for all
 * processors, and there is other work to do. Raw system calls: static programs link it. */
#pragma once
#include <stdbool.h>

#include "os/affinity.h"

typedef struct csn_beside {
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
    csn_cpus cpus; /* the caller's */
    _Alignas(64) char stack[16384];
} csn_beside;

/* The other shares our memory and descriptors until it is done: `work` calls the kernel and
 * writes to nothing but *arg, and to errno, which we look at only right after a call of our own
 * that failed; then either way something went wrong. It is not a thread: namespaces and working
 * directory are its own. *b must stay where it is until join. 0 or -errno. */
int csn_beside_begin(csn_beside *b, int (*work)(void *), void *arg);
/* For a caller that has nothing to do meanwhile but wait: the other keeps this processor, and
 * whatever wakes the caller finds it on another; _back when that has happened. */
int csn_beside_begin_here(csn_beside *b, int (*work)(void *), void *arg);
void csn_beside_back(csn_beside *b);
/* What `work` returned, when it has, or -errno. And: when it has ended too, and *b is free. */
int csn_beside_result(csn_beside *b);
int csn_beside_join(csn_beside *b);

/* Steps of one that the other waits for: 0 until they are told, then 1. They leave errno alone.
 * Whoever has begun the other waits for its steps with the second: -EINTR when it has ended
 * without them. */
void csn_step_tell(int *step);
bool csn_step_told(const int *step);
void csn_step_await(const int *step);
int csn_beside_await(csn_beside *b, const int *step);
