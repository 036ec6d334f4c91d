/* serve.c: the keeper's event loop.
 *
 * One epoll set has the signalfd, the owner's pidfd, connections, channels of commands, and
 * output of background processes. Requests may come from a hostile program of the same user: a
 * packet that is no request ends the connection, a malformed body gets an ERROR. The loop never
 * waits for a peer. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "keeper/keeper.h"
#include "os/netns.h"

#define BATCH 32

void kp_list_init(kp_list *l)
{
    l->head.prev = l->head.next = &l->head;
    l->count = 0;
}

void kp_list_add(kp_list *l, kp_link *item)
{
    item->prev = l->head.prev;
    item->next = &l->head;
    l->head.prev->next = item;
    l->head.prev = item;
    l->count++;
}

void kp_list_drop(kp_list *l, kp_link *item)
{
    item->prev->next = item->next;
    item->next->prev = item->prev;
    l->count--;
}

void kp_free_later(kp_keeper *k, kp_link *item)
{
    kp_list_add(&k->deferred_free, item);
}

#if defined(__SANITIZE_ADDRESS__)
static const bool use_inline = false; /* so that a use after free is detected */
#else
static const bool use_inline = true;
#endif

void *kp_object_new(kp_keeper *k, size_t size)
{
    bool fits = use_inline && size <= sizeof(k->inline_objects[0].bytes);

    for (size_t i = 0; fits && i < KP_INLINE_OBJECTS; i++)
        if (!k->inline_objects[i].taken) {
            k->inline_objects[i].taken = true;
            return memset(k->inline_objects[i].bytes, 0, sizeof(k->inline_objects[i].bytes));
        }
    return calloc(1, size);
}

void kp_object_free(kp_keeper *k, void *object)
{
    for (size_t i = 0; i < KP_INLINE_OBJECTS; i++)
        if (object == k->inline_objects[i].bytes) {
            k->inline_objects[i].taken = false;
            return;
        }
    free(object);
}

/* Only between batches: a later event of a batch may still point to one of these. */
static void free_deferred(kp_keeper *k)
{
    KP_EACH(&k->deferred_free, item, safe)
    {
        kp_list_drop(&k->deferred_free, item);
        kp_object_free(k, item);
    }
}

int kp_watch_open(kp_keeper *k, kp_watch *w, kp_watch_kind kind, int fd, void *owner)
{
    struct epoll_event ev = {.events = EPOLLIN, .data.ptr = w};

    *w = (kp_watch){.kind = kind, .fd = fd, .owner = owner};
    if (epoll_ctl(k->epfd, EPOLL_CTL_ADD, fd, &ev) < 0)
        return -errno;
    w->on = true;
    return 0;
}

int kp_watch_release(kp_keeper *k, kp_watch *w)
{
    if (w->on)
        (void)epoll_ctl(k->epfd, EPOLL_CTL_DEL, w->fd, NULL);
    w->on = false;
    return csn_steal_fd(&w->fd);
}

void kp_watch_close(kp_keeper *k, kp_watch *w)
{
    int fd = kp_watch_release(k, w);

    if (fd >= 0)
        close(fd);
}

void kp_reply(int channel, csn_msg_type type, const void *msg)
{
    (void)csn_proto_send(channel, type, msg, NULL, 0, 1);
}

void kp_reply_error(int channel, int errnum, csn_stage stage)
{
    kp_reply(channel, CSN_MSG_ERROR,
             &(csn_error_msg){.errnum = (uint32_t)errnum, .stage = stage});
}

/* ---- small requests ---- */

static int hello_serve(kp_keeper *k, kp_request *r)
{
    kp_reply(r->channel, CSN_MSG_HELLO_REPLY,
             &(csn_hello_reply_msg){.pid = getpid(),
                                    .version = CSN_KEEPER_VERSION,
                                    .started_ms = k->started_ms,
                                    .ends_ms = k->ends_ms});
    return KP_REPLIED;
}

static int extend_serve(kp_keeper *k, kp_request *r)
{
    uint64_t ms = r->body.extend.ms;

    k->ends_ns = csn_deadline_in(ms);
    k->ends_ms = k->ends_ns ? csn_wall_ms() + (int64_t)ms : 0;
    return 0;
}

/* The library is in another network and cannot try the port itself. */
static int port_serve(kp_keeper *k, kp_request *r)
{
    (void)k;
    return csn_port_probe((uint16_t)r->body.port.port);
}

/* For a library that attaches to a running sandbox: what READY reported, or the directories of
 * a sandbox without confinement. */
static int root_serve(kp_keeper *k, kp_request *r)
{
    const size_t dirs = CSN_COMMIT_DIRS - CSN_COMMIT_SOCKET; /* in `held` */

    if (k->spec.confinement.on == 0 && k->held_count <= dirs)
        return -EINVAL;
    if (k->spec.confinement.on == 0) {
        (void)csn_proto_send(r->channel, CSN_MSG_ROOT_REPLY, &k->ready, k->held + dirs,
                             k->held_count - dirs, 1);
        return KP_REPLIED;
    }
    csn_autofd int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (root < 0)
        return -errno;
    (void)csn_proto_send(r->channel, CSN_MSG_ROOT_REPLY, &k->ready, &root, 1, 1);
    return KP_REPLIED;
}

static bool is_idle_shell(const kp_keeper *k, pid_t pid)
{
    KP_EACH(&k->sessions, item, safe)
    {
        const kp_session *s = (const kp_session *)item;
        if (s->job && s->job->pid == pid)
            return !s->busy;
    }
    return false;
}

/* Every process of the pid namespace counts, whatever started it. Without a pid namespace only
 * commands are known. */
static int count_processes(kp_keeper *k, csn_layers_msg *ret)
{
    DIR *d = getpid() == 1 ? opendir("/proc") : NULL;

    if (getpid() == 1 && !d)
        return -errno;
    for (struct dirent *e; d && (e = readdir(d));) {
        pid_t pid = (pid_t)strtol(e->d_name, NULL, 10); /* 0: not a process */
        bool shell = pid > 1 && is_idle_shell(k, pid);
        ret->shells += shell;
        ret->commands += pid > 1 && !shell;
    }
    if (d) {
        closedir(d);
        return 0;
    }
    KP_EACH(&k->jobs, item, safe)
    {
        const kp_job *job = (const kp_job *)item;
        bool shell = is_idle_shell(k, job->pid);
        ret->shells += job->running && shell;
        ret->commands += job->running && !shell;
    }
    return 0;
}

/* For a library that is about to change the layers of the workspace: the tree, and how many
 * processes would notice. */
static int layers_serve(kp_keeper *k, kp_request *r)
{
    csn_layers_msg found = {0};
    int rc = count_processes(k, &found);

    if (rc == 0)
        (void)csn_proto_send(r->channel, CSN_MSG_LAYERS_REPLY, &found, &k->layers,
                             k->layers >= 0, 1);
    return rc < 0 ? rc : KP_REPLIED;
}

static int commit_serve(kp_keeper *k, kp_request *r)
{
    if (k->committed)
        return -EINVAL;
    k->record = csn_msg_take_fd(r->m, CSN_COMMIT_RECORD);
    for (size_t i = CSN_COMMIT_SOCKET; i < r->m->nfds; i++)
        k->held[k->held_count++] = csn_msg_take_fd(r->m, i);
    if (k->spec.record_check_ms != 0)
        k->record_next_ns = csn_deadline_in(k->spec.record_check_ms);
    k->committed = true;
    return 0;
}

/* Ends the keeper if its record was removed: no process can find the sandbox any more. Tests
 * the number of links, because the keeper of a jail does not see the paths of the host. */
static void check_record(kp_keeper *k, uint64_t now)
{
    struct stat st;

    if (now < k->record_next_ns)
        return;
    if (fstat(k->record, &st) == 0 && st.st_nlink == 0)
        k->ending = true;
    k->record_next_ns = csn_deadline_in(k->spec.record_check_ms);
}

/* The channel stays open until the keeper has ended: its closing is the reply. */
static int destroy_serve(kp_keeper *k, kp_request *r)
{
    r->channel = -1;
    k->ending = true;
    return KP_REPLIED;
}

typedef int (*serve_fn)(kp_keeper *k, kp_request *r);

/* A type that is not in this table is no request. */
static serve_fn handler(uint16_t type)
{
    static const serve_fn handlers[] = {
        [CSN_MSG_HELLO] = hello_serve,        [CSN_MSG_SPAWN] = kp_spawn_serve,
        [CSN_MSG_DRAIN] = kp_drain_serve,     [CSN_MSG_PROCESSES] = kp_processes_serve,
        [CSN_MSG_LOGS] = kp_logs_serve,       [CSN_MSG_SIGNAL] = kp_signal_serve,
        [CSN_MSG_FEED] = kp_feed_serve,       [CSN_MSG_RESIZE] = kp_resize_serve,
        [CSN_MSG_EXTEND] = extend_serve,      [CSN_MSG_DESTROY] = destroy_serve,
        [CSN_MSG_SESSION] = kp_session_serve, [CSN_MSG_PORT] = port_serve,
        [CSN_MSG_ROOT] = root_serve,          [CSN_MSG_COMMIT] = commit_serve,
        [CSN_MSG_LAYERS] = layers_serve,      [CSN_MSG_PAUSE] = kp_pause_serve,
    };

    return type < sizeof(handlers) / sizeof(handlers[0]) ? handlers[type] : NULL;
}

static void serve_request(kp_keeper *k, serve_fn serve, csn_msg *m, int channel)
{
    kp_request r;

    r.m = m;
    r.channel = channel;
    int rc = csn_proto_decode(m, m->type, &r.body);
    if (rc < 0) {
        kp_reply_error(channel, rc == -ENOMEM ? ENOMEM : EINVAL, CSN_STAGE_SETUP);
    } else {
        rc = serve(k, &r);
        csn_proto_release(m->type, &r.body);
        if (rc == 0)
            kp_reply(r.channel, CSN_MSG_DONE, NULL);
        else if (rc < 0)
            kp_reply_error(r.channel, -rc, CSN_STAGE_NONE);
    }
    if (r.channel >= 0)
        close(r.channel);
}

/* ---- connections ---- */

static int conn_new(kp_keeper *k, int fd, bool control)
{
    kp_conn *c = kp_object_new(k, sizeof(*c));

    if (!c)
        return -ENOMEM;
    c->control = control;
    int rc = kp_watch_open(k, &c->watch, KP_WATCH_CONN, fd, c);
    if (rc < 0) {
        kp_object_free(k, c);
        return rc;
    }
    kp_list_add(&k->conns, &c->link);
    return 0;
}

/* An attached keeper ends with its control connection. So does a detached one before COMMIT: a
 * sandbox that is not recorded could not be found again. */
static void conn_close(kp_keeper *k, kp_conn *c)
{
    if (c->control && (!(k->spec.flags & CSN_SPEC_DETACHED) || !k->committed))
        k->ending = true;
    kp_watch_close(k, &c->watch);
    kp_list_drop(&k->conns, &c->link);
    kp_free_later(k, &c->link);
}

/* Without confinement the peer must be of the same user. A confined keeper cannot know the
 * peer's user id; there the directory of the socket protects it: only the owner can enter it,
 * and it does not exist inside the jail. */
static void accept_conn(kp_keeper *k)
{
    csn_autofd int fd = accept4(k->listen.fd, NULL, NULL, SOCK_CLOEXEC);
    struct ucred peer;
    socklen_t len = sizeof(peer);

    if (fd < 0 || k->conns.count >= CSN_KEEPER_CONNS_MAX)
        return;
    if (k->spec.confinement.on == 0 &&
        (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0 || peer.uid != geteuid()))
        return;
    if (conn_new(k, fd, false) == 0)
        fd = -1;
}

/* One message per event, so that a flood on one connection does not delay the others. */
static void serve_conn(kp_keeper *k, kp_conn *c)
{
    csn_msg m;
    int rc = csn_msg_recv(c->watch.fd, k->packet, sizeof(k->packet), &m);

    if (rc == -EAGAIN || rc == -ENOMEM)
        return;
    if (rc <= 0) {
        conn_close(k, c);
        return;
    }
    serve_fn fn = handler(m.type);
    int channel = fn ? csn_proto_take_channel(&m) : -1;
    if (channel < 0)
        conn_close(k, c);
    else
        serve_request(k, fn, &m, channel);
    csn_msg_release(&m);
}

/* ---- the loop ---- */

static void on_signals(kp_keeper *k)
{
    struct signalfd_siginfo si[4];
    ssize_t n = read(k->signals.fd, si, sizeof(si));

    /* In a jail, commands can signal the keeper. kill() from outside has pid 0 here; so have
     * signals of a descriptor (F_SETSIG) and of rt_sigqueueinfo(), which come from inside too,
     * but their code is never SI_USER. */
    bool jail = (k->spec.confinement.on & CSN_CONFINE_BIT(CSN_CONFINE_NAMESPACES)) != 0;
    for (size_t i = 0; n > 0 && i < (size_t)n / sizeof(si[0]); i++)
        if (si[i].ssi_signo == SIGTERM &&
            (!jail || (si[i].ssi_code == SI_USER && si[i].ssi_pid == 0)))
            k->ending = true;
    kp_jobs_reap(k);
}

static void dispatch(kp_keeper *k, kp_watch *w)
{
    if (w->fd < 0)
        return; /* closed earlier in this batch */
    switch (w->kind) {
    case KP_WATCH_SIGNALS:
        on_signals(k);
        break;
    case KP_WATCH_OWNER:
        k->ending = true;
        break;
    case KP_WATCH_LISTEN:
        accept_conn(k);
        break;
    case KP_WATCH_CONN:
        serve_conn(k, w->owner);
        break;
    case KP_WATCH_CHANNEL:
        kp_job_channel_read(k, w->owner);
        break;
    case KP_WATCH_KEPT_CHANNEL:
        kp_kept_channel_read(k, w->owner);
        break;
    case KP_WATCH_OUTPUT:
        kp_stream_read(k, w->owner);
        break;
    case KP_WATCH_WAITER:
        kp_waiter_free(k, w->owner); /* the peer hung up */
        break;
    case KP_WATCH_NET:
        kp_net_serve(k);
        break;
    case KP_WATCH_NAMES:
        kp_names_serve(k);
        break;
    case KP_WATCH_DRAIN:
    case KP_WATCH_SESSION_OUTPUT:
        kp_drain_read(k, w);
        break;
    }
}

static uint64_t sooner(uint64_t a, uint64_t b)
{
    return a == 0 ? b : b == 0 ? a : a < b ? a : b;
}

/* Runs all timers that are due. Returns the milliseconds to the next one; -1: none. The clock
 * is read once, since that is a system call in the keeper. */
static int tick(kp_keeper *k)
{
    uint64_t next = sooner(sooner(k->ends_ns, k->record_next_ns), k->resume_ns);

    if (k->jobs.count == 0 && k->waiters.count == 0 && next == 0 &&
        k->spec.confinement.memory_max == 0 && !k->disk)
        return -1;
    uint64_t now = csn_now_ns();
    if (k->record_next_ns != 0) {
        check_record(k, now);
        next = sooner(k->ends_ns, k->record_next_ns);
    }
    next = sooner(next, kp_pause_tick(k, now));
    next = sooner(next, kp_meter_tick(k, now)); /* before the jobs: it may kill one */
    next = sooner(next, kp_disk_meter_tick(k, now));
    if (k->ends_ns != 0 && now >= k->ends_ns)
        k->ending = true;
    KP_EACH(&k->jobs, item, safe)
    next = sooner(next, kp_job_tick(k, (kp_job *)item, now));
    KP_EACH(&k->waiters, item, safe)
    next = sooner(next, kp_waiter_tick(k, (kp_waiter *)item, now));
    return csn_deadline_left_ms(next, now);
}

static int start_serving(kp_keeper *k)
{
    kp_list *const lists[] = {&k->conns,    &k->jobs,   &k->ended,         &k->waiters,
                              &k->sessions, &k->drains, &k->kept_channels, &k->deferred_free};

    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++)
        kp_list_init(lists[i]);
    int rc = conn_new(k, CSN_KEEPER_FD_CONTROL, true);

    if (rc == 0)
        rc = kp_net_watch(k);
    if (rc == 0)
        rc = kp_names_watch(k);
    if (rc < 0)
        return rc;
    if (!(k->spec.flags & CSN_SPEC_DETACHED))
        return kp_watch_open(k, &k->owner, KP_WATCH_OWNER, CSN_KEEPER_FD_OWNER, NULL);
    /* listen() again: SO_PEERCRED then gives clients the keeper's pid and not that of the
     * process that created the socket. */
    if (listen(CSN_KEEPER_FD_OWNER, CSN_KEEPER_BACKLOG) < 0)
        return -errno;
    return kp_watch_open(k, &k->listen, KP_WATCH_LISTEN, CSN_KEEPER_FD_OWNER, NULL);
}

int kp_serve(kp_keeper *k)
{
    struct epoll_event events[BATCH];
    int rc = start_serving(k);

    while (rc == 0 && !k->ending) {
        int next_ms = tick(k);
        free_deferred(k);
        if (k->ending)
            break;
        int n = epoll_wait(k->epfd, events, BATCH, next_ms);
        if (n < 0 && errno != EINTR)
            rc = -errno;
        for (int i = 0; i < n; i++)
            dispatch(k, events[i].data.ptr);
        free_deferred(k);
    }
    return rc;
}
