/* condvar.h: condition variables that wait for a deadline of base/clock.h. */
#pragma once
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

static inline void csn_cond_init(pthread_cond_t *cond)
{
    pthread_condattr_t attr;

    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(cond, &attr);
    pthread_condattr_destroy(&attr);
}

/* false: the deadline has passed. May wake up early. */
static inline bool csn_cond_wait_until(pthread_cond_t *cond, pthread_mutex_t *lock,
                                       uint64_t deadline_ns)
{
    struct timespec ts = {.tv_sec = (time_t)(deadline_ns / 1000000000u),
                          .tv_nsec = (long)(deadline_ns % 1000000000u)};

    return pthread_cond_timedwait(cond, lock, &ts) != ETIMEDOUT;
}
