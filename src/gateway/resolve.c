/* resolve.c: runs getaddrinfo in threads and caches the answers.
 *
 * Callers pass names that the rules allow. An attacker may control the DNS server that answers,
 * so the caller checks every address before dialling it. `queue` and `finished` are shared with
 * the threads and guarded by the lock; the loop alone uses everything else. Answers are cached
 * for one second, so many connections to one name cost one lookup. */
#include "gateway/resolve.h"

#include <errno.h>
#include <netdb.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "gateway/socket.h"

#define THREADS     4u
#define JOBS_MAX    256u /* pending and cached */
#define CACHE_NS    1000000000u
#define STACK_BYTES (512u * 1024u) /* NSS modules may use more than glibc does */

typedef struct gw_resolve_job {
    struct gw_resolve_job *next; /* in `all` */
    struct gw_resolve_job *next_queued;
    csn_domain name;
    gw_lookup *waiting;
    bool done;
    uint64_t expires_ns;
    /* written by a thread before the job is in `finished`, read by the loop after */
    int error;
    size_t count;
    csn_netaddr addrs[GW_RESOLVE_ADDRESSES_MAX];
} gw_resolve_job;

struct gw_resolver {
    gw_loop *loop;
    gw_io finished_io;
    gw_resolve_job *all;
    size_t jobs;
    size_t threads, idle; /* idle: under the lock */
    pthread_mutex_t lock;
    pthread_cond_t wake;
    gw_resolve_job *queue, **queue_end; /* waiting for a thread */
    gw_resolve_job *finished;           /* waiting for the loop */
};

/* ---- threads --------------------------------------------------------------------------- */

static int error_of(int gai)
{
    if (gai == EAI_AGAIN)
        return ETIMEDOUT;
    if (gai == EAI_MEMORY)
        return ENOMEM;
    return EHOSTUNREACH;
}

/* AI_ADDRCONFIG is not set: it would drop addresses such as ::1, and connecting to an
 * unreachable address fails at once. main.c empties LOCALDOMAIN, so getaddrinfo does not append
 * the host's search domains: the rules have not checked those names. */
static void look_up(gw_resolve_job *j)
{
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM}, *list = NULL;
    uint16_t port;
    int rc = getaddrinfo(j->name.text, NULL, &hints, &list);

    for (const struct addrinfo *ai = list; rc == 0 && ai && j->count < GW_RESOLVE_ADDRESSES_MAX;
         ai = ai->ai_next) {
        gw_sockaddr_to_netaddr(ai->ai_addr, &j->addrs[j->count], &port);
        j->count += j->addrs[j->count].family != 0;
    }
    if (rc == 0)
        freeaddrinfo(list);
    j->error = rc != 0 ? error_of(rc) : j->count == 0 ? EHOSTUNREACH : 0;
}

static void *work(void *arg)
{
    gw_resolver *r = arg;
    uint64_t one = 1;

    pthread_mutex_lock(&r->lock);
    for (;;) {
        while (!r->queue) {
            r->idle++;
            pthread_cond_wait(&r->wake, &r->lock);
            r->idle--;
        }
        gw_resolve_job *j = r->queue;
        r->queue = j->next_queued;
        if (!r->queue)
            r->queue_end = &r->queue;
        pthread_mutex_unlock(&r->lock);
        look_up(j);
        pthread_mutex_lock(&r->lock);
        j->next_queued = r->finished;
        r->finished = j;
        (void)!write(r->finished_io.fd, &one, sizeof(one));
    }
    return NULL;
}

/* ---- loop ------------------------------------------------------------------------------ */

static void unlink_lookup(gw_lookup *a)
{
    if (a->next)
        a->next->prev = a->prev;
    if (a->prev)
        a->prev->next = a->next;
    else
        a->job->waiting = a->next;
    *a = (gw_lookup){.fn = a->fn};
}

static void complete(gw_resolve_job *j)
{
    while (j->waiting) {
        gw_lookup *a = j->waiting;
        unlink_lookup(a);
        a->fn(a, j->error, j->addrs, j->count);
    }
}

/* Frees expired answers. Failures are not cached. */
static void sweep(gw_resolver *r)
{
    for (gw_resolve_job **at = &r->all; *at;) {
        gw_resolve_job *j = *at;
        if (j->done && !j->waiting && (j->error != 0 || j->expires_ns <= r->loop->now_ns)) {
            *at = j->next;
            free(j);
            r->jobs--;
        } else {
            at = &j->next;
        }
    }
}

static void on_finished(gw_io *io, uint32_t events)
{
    gw_resolver *r = GW_CONTAINER_OF(gw_resolver, finished_io, io);
    uint64_t count;

    (void)events;
    (void)!read(io->fd, &count, sizeof(count));
    pthread_mutex_lock(&r->lock);
    gw_resolve_job *list = r->finished;
    r->finished = NULL;
    pthread_mutex_unlock(&r->lock);
    while (list) {
        gw_resolve_job *j = list;
        list = j->next_queued;
        j->done = true;
        j->expires_ns = r->loop->now_ns + CACHE_NS;
        complete(j);
    }
    sweep(r);
}

/* Blocks all signals in the new thread. */
static int start_thread(gw_resolver *r)
{
    sigset_t all, before;
    pthread_attr_t attr;
    pthread_t id;

    sigfillset(&all);
    pthread_attr_init(&attr);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attr, STACK_BYTES);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int rc = pthread_create(&id, &attr, work, r);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attr);
    if (rc == 0)
        r->threads++;
    return -rc;
}

/* Never freed: its threads live as long as the process. */
gw_resolver *gw_resolver_new(gw_loop *loop)
{
    gw_resolver *r = calloc(1, sizeof(*r));
    int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);

    if (!r || fd < 0)
        goto fail;
    r->loop = loop;
    r->queue_end = &r->queue;
    pthread_mutex_init(&r->lock, NULL);
    pthread_cond_init(&r->wake, NULL);
    if (gw_loop_add_level(loop, &r->finished_io, fd, on_finished) == 0)
        return r;
fail:
    free(r);
    if (fd >= 0)
        close(fd);
    return NULL;
}

static gw_resolve_job *find(gw_resolver *r, const csn_domain *name)
{
    for (gw_resolve_job *j = r->all; j; j = j->next)
        if (csn_domain_equal(&j->name, name))
            return j;
    return NULL;
}

/* Starts a thread if all are busy; most sandboxes need only one. */
static int queue(gw_resolver *r, gw_resolve_job *j)
{
    pthread_mutex_lock(&r->lock);
    bool busy = r->idle == 0 || r->queue;
    *r->queue_end = j;
    r->queue_end = &j->next_queued;
    pthread_cond_signal(&r->wake);
    pthread_mutex_unlock(&r->lock);
    if (busy && r->threads < THREADS && start_thread(r) < 0 && r->threads == 0)
        return -EAGAIN;
    return 0;
}

static gw_resolve_job *new_job(gw_resolver *r, const csn_domain *name)
{
    gw_resolve_job *j = r->jobs < JOBS_MAX ? calloc(1, sizeof(*j)) : NULL;

    if (!j)
        return NULL;
    j->name = *name;
    j->next = r->all;
    r->all = j;
    r->jobs++;
    return j;
}

int gw_resolve(gw_resolver *r, gw_lookup *a, const csn_domain *name,
               void (*fn)(gw_lookup *, int, const csn_netaddr *, size_t))
{
    sweep(r);
    gw_resolve_job *j = find(r, name);
    if (j && j->done) {
        *a = (gw_lookup){.fn = fn};
        fn(a, j->error, j->addrs, j->count);
        return 0;
    }
    if (!j) {
        j = new_job(r, name);
        if (!j || queue(r, j) < 0)
            return -EAGAIN;
    }
    *a = (gw_lookup){.job = j, .next = j->waiting, .fn = fn};
    if (j->waiting)
        j->waiting->prev = a;
    j->waiting = a;
    return 0;
}

void gw_resolve_cancel(gw_lookup *a)
{
    if (a->job)
        unlink_lookup(a);
}
