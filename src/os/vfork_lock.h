/* vfork_lock.h: one at a time, where the turn is given back by another process.
 *
 * A child that shares our memory until its exec (os/spawn.c) is through with what needs a turn
 * long before its starter looks again, and gives it back itself, by a system call that leaves
 * errno alone. A turn that was somebody else's when this process was forked is nobody's here.
 */
#pragma once
#include <stdbool.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "os/raw_syscall.h"

typedef struct csn_vfork_lock {
    int holder; /* pid of the process it was taken in; 0: free */
} csn_vfork_lock;

static inline bool csn_vfork_lock_is_taken(const csn_vfork_lock *t)
{
    return __atomic_load_n(&t->holder, __ATOMIC_ACQUIRE) == getpid();
}

/* For a while, or until it is given back. */
static inline void csn_vfork_lock_wait(const csn_vfork_lock *t)
{
    const struct timespec a_while = {.tv_nsec = 10000000};

    (void)csn_raw(SYS_futex, &t->holder, 0 /* FUTEX_WAIT */, getpid(), &a_while);
}

/* The caller has a lock that all takers have. */
static inline void csn_vfork_lock_take(csn_vfork_lock *t)
{
    __atomic_store_n(&t->holder, getpid(), __ATOMIC_RELEASE);
}

CSN_NO_SANITIZE static inline void csn_vfork_lock_release(csn_vfork_lock *t)
{
    __atomic_store_n(&t->holder, 0, __ATOMIC_RELEASE);
    (void)csn_raw(SYS_futex, &t->holder, 1 /* FUTEX_WAKE */, 1 << 30);
}
