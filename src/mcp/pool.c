/* pool.c: threads for work that waits.
 *
 * Tool calls block in the library, so each running one has a thread. Threads are made when
 * there is work and nobody idle, end after a while without any, and are bounded in number; so
 * is the work that waits. What must hold: a task that was accepted runs exactly once. */
#include "mcp/pool.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#define STACK_BYTES (512u * 1024u)
#define IDLE_S      10

typedef struct task {
    struct task *next;
    void (*run)(void *arg);
    void *arg;
} task;

struct csn_pool {
    pthread_mutex_t lock;
    pthread_cond_t work, ended;
    task *first, **last;
    unsigned waiting, idle, threads, threads_max, queue_max;
    bool stopping;
};

csn_pool *csn_pool_new(unsigned threads_max, unsigned queue_max)
{
    csn_pool *p = calloc(1, sizeof(*p));
    pthread_condattr_t attr;

    if (!p)
        return NULL;
    pthread_mutex_init(&p->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&p->work, &attr);
    pthread_condattr_destroy(&attr);
    pthread_cond_init(&p->ended, NULL);
    p->last = &p->first;
    p->threads_max = threads_max;
    p->queue_max = queue_max;
    return p;
}

/* With the lock held: the next task, or NULL when this thread is to end. */
static task *next_task(csn_pool *p)
{
    struct timespec until;

    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += IDLE_S;
    p->idle++;
    while (!p->first && !p->stopping)
        if (pthread_cond_timedwait(&p->work, &p->lock, &until) == ETIMEDOUT)
            break;
    p->idle--;
    task *t = p->first;
    if (!t)
        return NULL;
    p->first = t->next;
    if (!p->first)
        p->last = &p->first;
    p->waiting--;
    return t;
}

static void *work(void *arg)
{
    csn_pool *p = arg;

    pthread_mutex_lock(&p->lock);
    for (task *t; (t = next_task(p));) {
        pthread_mutex_unlock(&p->lock);
        t->run(t->arg);
        free(t);
        pthread_mutex_lock(&p->lock);
    }
    p->threads--;
    pthread_cond_broadcast(&p->ended);
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

/* With the lock held. */
static bool add_thread(csn_pool *p)
{
    pthread_attr_t attr;
    pthread_t id;

    pthread_attr_init(&attr);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attr, STACK_BYTES);
    bool ok = pthread_create(&id, &attr, work, p) == 0;
    pthread_attr_destroy(&attr);
    p->threads += ok;
    return ok;
}

bool csn_pool_submit(csn_pool *p, void (*run)(void *arg), void *arg)
{
    task *t = calloc(1, sizeof(*t));

    if (!t)
        return false;
    *t = (task){.run = run, .arg = arg};
    pthread_mutex_lock(&p->lock);
    bool ok = !p->stopping && p->waiting < p->queue_max;
    if (ok && p->idle <= p->waiting && p->threads < p->threads_max)
        ok = add_thread(p) || p->threads > 0;
    if (ok) {
        *p->last = t;
        p->last = &t->next;
        p->waiting++;
        pthread_cond_signal(&p->work);
    }
    pthread_mutex_unlock(&p->lock);
    if (!ok)
        free(t);
    return ok;
}

void csn_pool_free(csn_pool *p)
{
    if (!p)
        return;
    pthread_mutex_lock(&p->lock);
    p->stopping = true;
    pthread_cond_broadcast(&p->work);
    while (p->threads > 0)
        pthread_cond_wait(&p->ended, &p->lock);
    pthread_mutex_unlock(&p->lock);
    pthread_cond_destroy(&p->work);
    pthread_cond_destroy(&p->ended);
    pthread_mutex_destroy(&p->lock);
    free(p);
}
