/* pool.c: the threads that run calls of the library.
 *
 * A call may take as long as a command does, so libuv's four threads are not enough. The pool
 * has a thread for each running call up to THREADS_MAX; a thread without work ends after a
 * while. Only the first thread of a burst is made by the thread of JavaScript: each new thread
 * makes the next one while jobs wait, so that the event loop never makes hundreds. */
#include <stdlib.h>
#include <time.h>

#include "addon.h"

#define THREADS_MAX  256
#define IDLE_SECONDS 10
#define BLOCKED_MAX  4096

static struct {
    pthread_mutex_t lock;
    pthread_cond_t work;
    job *first, **last;
    unsigned threads, idle, blocked, waiting;
    bool growing; /* a new thread will look at the queue */
} pool = {.lock = PTHREAD_MUTEX_INITIALIZER, .last = &pool.first};

static void *thread_main(void *arg);

/* With the lock held. */
static bool may_grow(void)
{
    unsigned extra = pool.blocked < BLOCKED_MAX ? pool.blocked : BLOCKED_MAX;

    return pool.waiting > pool.idle && pool.threads < THREADS_MAX + extra;
}

/* With the lock held: one more thread, which then decides about the next. */
static void grow(void)
{
    pthread_attr_t attr;
    pthread_t thread;

    pool.growing = true;
    pool.threads++;
    pthread_mutex_unlock(&pool.lock);
    pthread_attr_init(&attr);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    int rc = pthread_create(&thread, &attr, thread_main, NULL);
    pthread_attr_destroy(&attr);
    pthread_mutex_lock(&pool.lock);
    if (rc != 0) { /* the job waits for one of the other threads */
        pool.threads--;
        pool.growing = false;
    }
}

static void init_once(void)
{
    pthread_condattr_t attr;

    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&pool.work, &attr);
    pthread_condattr_destroy(&attr);
}

/* With the lock held; NULL: none came for IDLE_SECONDS. */
static job *take(void)
{
    struct timespec until;

    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += IDLE_SECONDS;
    pool.idle++;
    while (!pool.first && pthread_cond_timedwait(&pool.work, &pool.lock, &until) == 0)
        ;
    pool.idle--;
    job *j = pool.first;
    if (j) {
        pool.first = j->next;
        pool.waiting--;
        if (!pool.first)
            pool.last = &pool.first;
    }
    return j;
}

static void *thread_main(void *arg)
{
    (void)arg;
    pthread_mutex_lock(&pool.lock);
    pool.growing = false;
    for (job *j; (j = take());) {
        if (!pool.growing && may_grow())
            grow();
        pthread_mutex_unlock(&pool.lock);
        j->run(j);
        pthread_mutex_lock(&pool.lock);
    }
    pool.threads--;
    pthread_mutex_unlock(&pool.lock);
    return NULL;
}

void pool_submit(job *j)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, init_once);
    j->next = NULL;
    pthread_mutex_lock(&pool.lock);
    *pool.last = j;
    pool.last = &j->next;
    pool.waiting++;
    if (pool.idle > 0)
        pthread_cond_signal(&pool.work);
    if (!pool.growing && may_grow())
        grow();
    pthread_mutex_unlock(&pool.lock);
}

void pool_blocked(int change)
{
    pthread_mutex_lock(&pool.lock);
    pool.blocked += (unsigned)change;
    if (change > 0 && !pool.growing && may_grow())
        grow();
    pthread_mutex_unlock(&pool.lock);
}

napi_value pool_threads(napi_env env, napi_callback_info info)
{
    napi_value v = NULL;

    (void)info;
    pthread_mutex_lock(&pool.lock);
    unsigned n = pool.threads;
    pthread_mutex_unlock(&pool.lock);
    napi_create_uint32(env, n, &v);
    return v;
}
