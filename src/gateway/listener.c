/* listener.c: who comes in.
 *
 * Listeners of all kinds. A process inside can open connections as fast as it likes: a flow too
 * many is reset at once and recorded, and when the system has no descriptor left the door rests
 * for a moment instead of spinning. */
#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "gateway/gateway.h"

#define AT_ONCE      16 /* connections taken before others have their turn */
#define REST_NS      100000000u
#define ORIGINAL_DST 80 /* SO_ORIGINAL_DST and IP6T_SO_ORIGINAL_DST: their headers clash */

static void too_many(gw_listener *d)
{
    csn_gateway_event e = {.kind = CSN_GATEWAY_CONNECT,
                           .verdict = CSN_GATEWAY_DENY,
                           .proto = CSN_GATEWAY_TCP,
                           .why = "too many connections at once"};

    gw_events_add(d->gate->events, &e);
}

/* Where the connection was going to before the kernel brought it here: conntrack knows, or,
 * where packets are taken as they are (tproxy), it is the address of our own end. Who connects
 * to the listener itself arrives at an address that stands for no name. */
static int original(int fd, csn_netaddr *addr, uint16_t *port)
{
    struct sockaddr_storage ss = {0};
    socklen_t len = sizeof(ss);

    if (getsockopt(fd, IPPROTO_IP, ORIGINAL_DST, &ss, &len) < 0) {
        len = sizeof(ss);
        if (getsockopt(fd, IPPROTO_IPV6, ORIGINAL_DST, &ss, &len) < 0) {
            len = sizeof(ss);
            if (getsockname(fd, (void *)&ss, &len) < 0)
                return -errno;
        }
    }
    gw_sockaddr_read(&ss, addr, port);
    return addr->family == 0 ? -EAFNOSUPPORT : 0;
}

/* An address that stands for a name was made for one; all others are what they are. */
static void redirected(gw_flow *f)
{
    gw_target to = {0};
    gw_refusal unknown = {.verdict = {.why = "an address that stands for no name"}};
    uint32_t number;

    if (original(f->near.io.fd, &to.addr, &to.port) < 0) {
        gw_flow_cut(f); /* somebody connected to the listener itself */
        return;
    }
    f->to = to;
    if (gw_names_is_ours(&to.addr, &number)) {
        if (!gw_names_get(f->gate->names, number, &to.name)) {
            gw_flow_refuse(f, &unknown);
            return;
        }
        f->number = number;
        gw_names_hold(f->gate->names, number);
        to.addr = (csn_netaddr){0};
    }
    gw_flow_aim(f, &to);
    if (gw_inspect_begin(f) < 0)
        gw_flow_cut(f);
    else
        gw_flow_step(f);
}

static void come_in(gw_listener *d, int fd)
{
    gw_flow *f = gw_flow_new(d->gate, fd, d->way);

    if (!f) {
        too_many(d);
        return;
    }
    f->narrow = d->narrow;
    switch (d->way) {
    case CSN_WAY_REDIRECT:
        redirected(f);
        break;
    case CSN_WAY_PROXY:
        if (gw_proxy_begin(f) < 0)
            gw_flow_cut(f);
        else
            gw_flow_step(f);
        break;
    case CSN_WAY_LENT:
        gw_ports_lent(f, d->port);
        break;
    case CSN_WAY_PUBLISHED:
        gw_ports_published(f, d->port);
        break;
    }
}

static void on_rested(gw_timer *t);

static void rest(gw_listener *d)
{
    d->resting = gw_loop_take(&d->gate->loop, &d->io);
    gw_timer_arm(&d->gate->loop, &d->rest, d->gate->loop.now_ns + REST_NS);
}

static void on_door(gw_io *io, uint32_t events)
{
    gw_listener *d = CSN_OWNER(gw_listener, io, io);

    (void)events;
    for (int i = 0; i < AT_ONCE; i++) {
        int fd = accept4(io->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd >= 0) {
            come_in(d, fd);
            continue;
        }
        if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS)
            rest(d);
        if (errno != ECONNABORTED && errno != EINTR)
            return;
    }
}

static void on_rested(gw_timer *t)
{
    gw_listener *d = CSN_OWNER(gw_listener, rest, t);

    if (gw_loop_listen(&d->gate->loop, &d->io, d->resting, on_door) < 0)
        gw_timer_arm(&d->gate->loop, &d->rest, d->gate->loop.now_ns + REST_NS);
    else
        d->resting = -1;
}

int gw_listener_open(gw_gateway *g, int fd, gw_origin way, uint16_t port,
                     const gw_exec_rules *narrow)
{
    gw_listener *d = g->doors;

    while (d < g->doors + GW_LISTENERS_MAX && d->gate)
        d++;
    if (d == g->doors + GW_LISTENERS_MAX)
        return -E2BIG;
    gw_socket_local(fd);
    *d = (gw_listener){.way = way, .port = port, .resting = -1, .narrow = narrow};
    int rc = gw_timer_reserve(&g->loop, &d->rest, on_rested);
    if (rc == 0)
        rc = gw_loop_listen(&g->loop, &d->io, fd, on_door);
    if (rc == 0)
        d->gate = g;
    else
        gw_timer_release(&g->loop, &d->rest);
    return rc;
}

void gw_listeners_close(gw_gateway *g, const gw_exec_rules *narrow)
{
    for (gw_listener *d = g->doors; d < g->doors + GW_LISTENERS_MAX; d++) {
        if (!d->gate || d->narrow != narrow)
            continue;
        gw_loop_close(&d->io);
        if (d->resting >= 0)
            close(csn_steal_fd(&d->resting));
        gw_timer_release(&g->loop, &d->rest);
        d->gate = NULL;
    }
}
