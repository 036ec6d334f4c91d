/* beside.h: a short piece of work done by a second process while the caller goes on.
 *
 * For a keeper that is still alone in its namespaces: some calls make the kernel wait for all
 * processors, and there is other work to do. Raw system calls: static programs link it. */
#pragma once
#include <stdbool.h>

#include "os/cpus.h"

typedef struct csn_beside {
    int pid;
    int (*work)(void *arg); /* 0 or -errno */
    void *arg;
    int rc;
    bool begun; /* it has been given a processor */
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
void csn_beside_back(const csn_beside *b);
/* Waits for it. What `work` returned, or -errno. */
int csn_beside_join(csn_beside *b);
