/* dial.c: opens outgoing connections, trying several addresses in turn.
 *
 * The caller has checked the addresses, and this file resolves no names, so a DNS answer cannot
 * change between check and use. A server can delay a connection indefinitely; the caller sets a
 * timeout. */
#include "gateway/dial.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "gateway/socket.h"

#define STAGGER_NS 250000000u

typedef struct attempt {
    gw_io io;
    gw_dial *dial;
    size_t index;
} attempt;

struct gw_dial {
    gw_deferred deferred; /* reports a failure; later frees this */
    gw_loop *loop;
    gw_timer stagger;
    attempt attempts[GW_DIAL_PARALLEL_MAX];
    csn_netaddr addrs[GW_DIAL_ADDRESSES_MAX];
    size_t count, next, active;
    uint16_t port;
    int error; /* of the first failed attempt, which is the preferred address */
    void *owner;
    gw_dial_fn *fn;
};

void gw_dial_cancel(gw_dial *d)
{
    if (!d)
        return;
    for (size_t i = 0; i < GW_DIAL_PARALLEL_MAX; i++)
        gw_loop_close(&d->attempts[i].io);
    gw_timer_release(d->loop, &d->stagger);
    gw_loop_free_later(d->loop, &d->deferred, d);
}

/* Frees the dial before the callback, so that the owner may start another. */
static void finish(gw_dial *d, int fd, const csn_netaddr *addr)
{
    csn_netaddr peer = addr ? *addr : (csn_netaddr){0};
    gw_dial_fn *fn = d->fn;
    void *owner = d->owner;

    gw_dial_cancel(d);
    fn(owner, fd, &peer);
}

static void report_failure(gw_deferred *l)
{
    gw_dial *d = GW_CONTAINER_OF(gw_dial, deferred, l);

    finish(d, d->error ? -d->error : -EHOSTUNREACH, NULL);
}

static void try_next(gw_dial *d);

static void note_error(gw_dial *d, int error)
{
    if (d->error == 0)
        d->error = error;
}

static void on_attempt(gw_io *io, uint32_t events)
{
    attempt *a = GW_CONTAINER_OF(attempt, io, io);
    gw_dial *d = a->dial;

    if (!(events & (EPOLLOUT | EPOLLERR | EPOLLHUP)))
        return;
    int error = gw_socket_error(io->fd);
    if (error == 0) {
        finish(d, gw_loop_remove(d->loop, io), &d->addrs[a->index]);
        return;
    }
    note_error(d, error);
    gw_loop_close(io);
    d->active--;
    try_next(d);
}

static bool is_loopback(const csn_netaddr *a)
{
    csn_netaddr v6 = gw_loopback(6);

    return a->family == 4 ? a->bytes[0] == 127 : csn_netaddr_equal(a, &v6);
}

/* Owns sock even on failure. */
static bool start_attempt(gw_dial *d, int sock, size_t index)
{
    csn_autofd int fd = sock;
    struct sockaddr_storage ss;
    socklen_t len = gw_netaddr_to_sockaddr(&d->addrs[index], d->port, &ss);
    size_t i = 0;

    while (i < GW_DIAL_PARALLEL_MAX && d->attempts[i].io.fd >= 0)
        i++;
    if (i == GW_DIAL_PARALLEL_MAX)
        return false;
    gw_socket_set_nodelay(fd);
    if (is_loopback(&d->addrs[index]))
        gw_socket_set_local(fd);
    else
        gw_socket_set_keepalive(fd);
    if (connect(fd, (struct sockaddr *)&ss, len) < 0 && errno != EINPROGRESS) {
        note_error(d, errno);
        return false;
    }
    d->attempts[i].dial = d;
    d->attempts[i].index = index;
    int rc = gw_loop_add_edge(d->loop, &d->attempts[i].io, fd, on_attempt);
    if (rc < 0) {
        d->attempts[i].io.fd = -1;
        note_error(d, -rc);
        return false;
    }
    (void)csn_steal_fd(&fd);
    d->active++;
    return true;
}

/* Starts an attempt at the next usable address. Reports the failure if none is left. */
static void try_next(gw_dial *d)
{
    while (d->next < d->count && d->active < GW_DIAL_PARALLEL_MAX) {
        size_t index = d->next++;
        int fd = socket(d->addrs[index].family == 4 ? AF_INET : AF_INET6,
                        SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_TCP);
        if (fd < 0) {
            note_error(d, errno);
            continue;
        }
        if (start_attempt(d, fd, index)) {
            if (d->next < d->count)
                gw_timer_arm(d->loop, &d->stagger, d->loop->now_ns + STAGGER_NS);
            return;
        }
    }
    if (d->active == 0)
        gw_loop_defer(d->loop, &d->deferred, report_failure);
}

static void on_stagger(gw_timer *a)
{
    try_next(GW_CONTAINER_OF(gw_dial, stagger, a));
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
    for (size_t i = 0; i < GW_DIAL_PARALLEL_MAX; i++)
        d->attempts[i].io.fd = -1;
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
    d->count = n < GW_DIAL_ADDRESSES_MAX ? n : GW_DIAL_ADDRESSES_MAX;
    memcpy(d->addrs, addrs, d->count * sizeof(addrs[0]));
    try_next(d);
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
    if (!start_attempt(d, sock, 0))
        gw_loop_defer(loop, &d->deferred, report_failure);
    return d;
}
