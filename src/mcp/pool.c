/* pool.c: runs blocking tasks on a bounded number of threads.
 *
 * A thread is started when there is a task and no idle thread, and ends after a while without
 * tasks. The number of queued tasks is bounded too. Invariant: an accepted task runs exactly
 * once. */
#include "mcp/pool.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/condvar.h"

#define STACK_BYTES (512u * 1024u)
#define IDLE_MS     10000u

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

    if (!p)
        return NULL;
    pthread_mutex_init(&p->lock, NULL);
    csn_cond_init(&p->work);
    pthread_cond_init(&p->ended, NULL);
    p->last = &p->first;
    p->threads_max = threads_max;
    p->queue_max = queue_max;
    return p;
}

/* Call it with the lock held. Returns NULL if the thread must end. */
static task *next_task(csn_pool *p)
{
    uint64_t until = csn_deadline_in(IDLE_MS);

    p->idle++;
    while (!p->first && !p->stopping)
        if (!csn_cond_wait_until(&p->work, &p->lock, until))
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

/* Call it with the lock held. */
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
