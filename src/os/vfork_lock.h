/* vfork_lock.h: a lock that one process takes and another one releases.
 *
 * The host takes it; a child that shares the host's memory until exec (os/spawn.c) releases it
 * with a system call that leaves errno alone, while the host may be running other code. A
 * forked process does not hold the locks of its parent: the holder is a pid. */
#pragma once
#include <stdbool.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "os/raw_syscall.h"

typedef struct csn_vfork_lock {
    int holder; /* pid of the process that took it; 0: free */
} csn_vfork_lock;

static inline bool csn_vfork_lock_is_taken(const csn_vfork_lock *t)
{
    return __atomic_load_n(&t->holder, __ATOMIC_ACQUIRE) == getpid();
}

/* Returns when it is released, or after 10 ms. */
static inline void csn_vfork_lock_wait(const csn_vfork_lock *t)
{
    const struct timespec timeout = {.tv_nsec = 10000000};

    (void)csn_raw(SYS_futex, &t->holder, 0 /* FUTEX_WAIT */, getpid(), &timeout);
}

/* The caller holds a mutex that all takers hold. */
static inline void csn_vfork_lock_take(csn_vfork_lock *t)
{
    __atomic_store_n(&t->holder, getpid(), __ATOMIC_RELEASE);
}

CSN_NO_SANITIZE static inline void csn_vfork_lock_release(csn_vfork_lock *t)
{
    __atomic_store_n(&t->holder, 0, __ATOMIC_RELEASE);
    (void)csn_raw(SYS_futex, &t->holder, 1 /* FUTEX_WAKE */, 1 << 30);
}
