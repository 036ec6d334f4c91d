/* dial.c: connecting outward.
 *
 * Called by flow.c with addresses that were judged: what is dialled here is the value that was
 * looked at, never a name that could resolve anew. Servers decide how long it takes; the owner
 * gives up when it likes. */
#include "gateway/dial.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"

#define STAGGER_NS 250000000u
/* The far end may vanish without a word while both sides are silent: asked every half minute
 * after two minutes of silence, dead after three and a half. */
#define ALIVE_IDLE_S     120
#define ALIVE_INTERVAL_S 30
#define ALIVE_COUNT      3

typedef struct csn_try {
    gw_io io;
    gw_dial *dial;
    size_t which;
} csn_try;

struct gw_dial {
    gw_later later; /* tells of a failure; then the way to the grave */
    gw_loop *loop;
    gw_timer stagger;
    csn_try tries[CSN_DIAL_AT_ONCE];
    csn_netaddr addrs[CSN_DIAL_ADDRESSES];
    size_t count, next, open;
    uint16_t port;
    int error; /* of the first that failed: the one the caller would have chosen */
    void *owner;
    gw_dial_fn *fn;
};

void gw_socket_prompt(int fd)
{
    int on = 1;

    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

void gw_socket_local(int fd)
{
    static const char plainest[] = "reno"; /* the one that every kernel has, for everybody */

    (void)setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, plainest, sizeof(plainest) - 1);
}

static void keep_alive(int fd)
{
    int on = 1, idle = ALIVE_IDLE_S, interval = ALIVE_INTERVAL_S, count = ALIVE_COUNT;

    (void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof(idle));
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof(interval));
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof(count));
}

static socklen_t sockaddr_of(const csn_netaddr *a, uint16_t port, struct sockaddr_storage *ss)
{
    *ss = (struct sockaddr_storage){0};
    if (a->family == 4) {
        struct sockaddr_in *in = (void *)ss;
        in->sin_family = AF_INET;
        in->sin_port = htons(port);
        memcpy(&in->sin_addr, a->bytes, 4);
        return sizeof(*in);
    }
    struct sockaddr_in6 *in6 = (void *)ss;
    in6->sin6_family = AF_INET6;
    in6->sin6_port = htons(port);
    memcpy(&in6->sin6_addr, a->bytes, 16);
    return sizeof(*in6);
}

void gw_sockaddr_read(const struct sockaddr_storage *ss, csn_netaddr *addr, uint16_t *port)
{
    *addr = (csn_netaddr){0};
    *port = 0;
    if (ss->ss_family == AF_INET) {
        const struct sockaddr_in *in = (const void *)ss;
        *addr = csn_netaddr_v4((const uint8_t *)&in->sin_addr);
        *port = ntohs(in->sin_port);
    } else if (ss->ss_family == AF_INET6) {
        const struct sockaddr_in6 *in6 = (const void *)ss;
        *addr = csn_netaddr_v6(in6->sin6_addr.s6_addr);
        *port = ntohs(in6->sin6_port);
    }
}

void gw_dial_cancel(gw_dial *d)
{
    if (!d)
        return;
    for (size_t i = 0; i < CSN_DIAL_AT_ONCE; i++)
        gw_loop_close(&d->tries[i].io);
    gw_timer_release(d->loop, &d->stagger);
    gw_loop_bury(d->loop, &d->later, d);
}

/* The dial is gone before its owner hears of it, so that the owner may start another. */
static void finish(gw_dial *d, int fd, const csn_netaddr *addr)
{
    csn_netaddr peer = addr ? *addr : (csn_netaddr){0};
    gw_dial_fn *fn = d->fn;
    void *owner = d->owner;

    gw_dial_cancel(d);
    fn(owner, fd, &peer);
}

static void failed_later(gw_later *l)
{
    gw_dial *d = (gw_dial *)((char *)l - offsetof(gw_dial, later));

    finish(d, d->error ? -d->error : -EHOSTUNREACH, NULL);
}

static void next_try(gw_dial *d);

static void note(gw_dial *d, int error)
{
    if (d->error == 0)
        d->error = error;
}

/* Spurious calls are harmless: a connection that is not decided has no error and no OUT. */
static void on_try(gw_io *io, uint32_t events)
{
    csn_try *t = (csn_try *)((char *)io - offsetof(csn_try, io));
    gw_dial *d = t->dial;
    int error = 0;
    socklen_t len = sizeof(error);

    if (!(events & (EPOLLOUT | EPOLLERR | EPOLLHUP)))
        return;
    if (getsockopt(io->fd, SOL_SOCKET, SO_ERROR, &error, &len) < 0)
        error = errno;
    if (error == 0) {
        finish(d, gw_loop_take(d->loop, io), &d->addrs[t->which]);
        return;
    }
    note(d, error);
    gw_loop_close(io);
    d->open--;
    next_try(d);
}

static bool is_loopback(const csn_netaddr *a)
{
    static const uint8_t six[16] = {[15] = 1};

    return a->family == 4 ? a->bytes[0] == 127 : memcmp(a->bytes, six, sizeof(six)) == 0;
}

/* Takes the socket. Whether there is a try now. */
static bool begin(gw_dial *d, int sock, size_t which)
{
    csn_autofd int fd = sock;
    struct sockaddr_storage ss;
    socklen_t len = sockaddr_of(&d->addrs[which], d->port, &ss);
    size_t i = 0;

    while (i < CSN_DIAL_AT_ONCE && d->tries[i].io.fd >= 0)
        i++;
    if (i == CSN_DIAL_AT_ONCE)
        return false;
    gw_socket_prompt(fd);
    if (is_loopback(&d->addrs[which]))
        gw_socket_local(fd);
    else
        keep_alive(fd);
    if (connect(fd, (struct sockaddr *)&ss, len) < 0 && errno != EINPROGRESS) {
        note(d, errno);
        return false;
    }
    d->tries[i].dial = d;
    d->tries[i].which = which;
    int rc = gw_loop_watch(d->loop, &d->tries[i].io, fd, on_try);
    if (rc < 0) {
        d->tries[i].io.fd = -1;
        note(d, -rc);
        return false;
    }
    (void)csn_steal_fd(&fd);
    d->open++;
    return true;
}

/* The next address that can be tried at all; when none is left and none is open, that is told.
 */
static void next_try(gw_dial *d)
{
    while (d->next < d->count && d->open < CSN_DIAL_AT_ONCE) {
        size_t which = d->next++;
        int fd = socket(d->addrs[which].family == 4 ? AF_INET : AF_INET6,
                        SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_TCP);
        if (fd < 0) {
            note(d, errno);
            continue;
        }
        if (begin(d, fd, which)) {
            if (d->next < d->count)
                gw_timer_arm(d->loop, &d->stagger, d->loop->now_ns + STAGGER_NS);
            return;
        }
    }
    if (d->open == 0)
        gw_loop_later(d->loop, &d->later, failed_later);
}

static void on_stagger(gw_timer *t)
{
    next_try((gw_dial *)((char *)t - offsetof(gw_dial, stagger)));
}

static gw_dial *new_dial(gw_loop *loop, uint16_t port, void *owner, gw_dial_fn *fn)
{
    gw_dial *d = calloc(1, sizeof(*d));

    if (!d)
        return NULL;
    d->loop = loop;
    d->port = port;
    d->owner = owner;
    d->fn = fn;
    for (size_t i = 0; i < CSN_DIAL_AT_ONCE; i++)
        d->tries[i].io.fd = -1;
    if (gw_timer_reserve(loop, &d->stagger, on_stagger) < 0) {
        free(d);
        return NULL;
    }
    return d;
}

gw_dial *gw_dial_start(gw_loop *loop, const csn_netaddr *addrs, size_t n, uint16_t port,
                       void *owner, gw_dial_fn *fn)
{
    gw_dial *d = new_dial(loop, port, owner, fn);

    if (!d)
        return NULL;
    d->count = n < CSN_DIAL_ADDRESSES ? n : CSN_DIAL_ADDRESSES;
    memcpy(d->addrs, addrs, d->count * sizeof(addrs[0]));
    next_try(d);
    return d;
}

gw_dial *gw_dial_with(gw_loop *loop, int sock, const csn_netaddr *addr, uint16_t port,
                      void *owner, gw_dial_fn *fn)
{
    gw_dial *d = new_dial(loop, port, owner, fn);

    if (!d) {
        close(sock);
        return NULL;
    }
    d->addrs[0] = *addr;
    d->count = d->next = 1;
    if (!begin(d, sock, 0))
        gw_loop_later(loop, &d->later, failed_later);
    return d;
}
