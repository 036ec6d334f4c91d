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

static void too_many(csn_door *d)
{
    csn_gate_event e = {.kind = CSN_GATE_CONNECT,
                        .verdict = CSN_GATE_DENY,
                        .proto = CSN_GATE_TCP,
                        .why = "too many connections at once"};

    csn_events_add(d->gate->events, &e);
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
    csn_sockaddr_read(&ss, addr, port);
    return addr->family == 0 ? -EAFNOSUPPORT : 0;
}

/* An address that stands for a name was made for one; all others are what they are. */
static void redirected(csn_flow *f)
{
    csn_target to = {0};
    csn_refusal unknown = {.verdict = {.why = "an address that stands for no name"}};
    uint32_t number;

    if (original(f->near.io.fd, &to.addr, &to.port) < 0) {
        csn_flow_cut(f); /* somebody connected to the listener itself */
        return;
    }
    f->to = to;
    if (csn_names_is_ours(&to.addr, &number)) {
        if (!csn_names_get(f->gate->names, number, &to.name)) {
            csn_flow_refuse(f, &unknown);
            return;
        }
        f->number = number;
        csn_names_hold(f->gate->names, number);
        to.addr = (csn_netaddr){0};
    }
    csn_flow_aim(f, &to);
    if (csn_inspect_begin(f) < 0)
        csn_flow_cut(f);
    else
        csn_flow_step(f);
}

static void come_in(csn_door *d, int fd)
{
    csn_flow *f = csn_flow_new(d->gate, fd, d->way);

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
        if (csn_proxy_begin(f) < 0)
            csn_flow_cut(f);
        else
            csn_flow_step(f);
        break;
    case CSN_WAY_LENT:
        csn_ports_lent(f, d->port);
        break;
    case CSN_WAY_PUBLISHED:
        csn_ports_published(f, d->port);
        break;
    }
}

static void on_rested(csn_timer *t);

static void rest(csn_door *d)
{
    d->resting = csn_loop_take(&d->gate->loop, &d->io);
    csn_timer_arm(&d->gate->loop, &d->rest, d->gate->loop.now_ns + REST_NS);
}

static void on_door(csn_io *io, uint32_t events)
{
    csn_door *d = CSN_OWNER(csn_door, io, io);

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

static void on_rested(csn_timer *t)
{
    csn_door *d = CSN_OWNER(csn_door, rest, t);

    if (csn_loop_listen(&d->gate->loop, &d->io, d->resting, on_door) < 0)
        csn_timer_arm(&d->gate->loop, &d->rest, d->gate->loop.now_ns + REST_NS);
    else
        d->resting = -1;
}

int csn_door_open(csn_gate *g, int fd, csn_way way, uint16_t port, const csn_narrow *narrow)
{
    csn_door *d = g->doors;

    while (d < g->doors + CSN_DOORS_MAX && d->gate)
        d++;
    if (d == g->doors + CSN_DOORS_MAX)
        return -E2BIG;
    csn_socket_local(fd);
    *d = (csn_door){.way = way, .port = port, .resting = -1, .narrow = narrow};
    int rc = csn_timer_reserve(&g->loop, &d->rest, on_rested);
    if (rc == 0)
        rc = csn_loop_listen(&g->loop, &d->io, fd, on_door);
    if (rc == 0)
        d->gate = g;
    else
        csn_timer_release(&g->loop, &d->rest);
    return rc;
}

void csn_doors_close(csn_gate *g, const csn_narrow *narrow)
{
    for (csn_door *d = g->doors; d < g->doors + CSN_DOORS_MAX; d++) {
        if (!d->gate || d->narrow != narrow)
            continue;
        csn_loop_close(&d->io);
        if (d->resting >= 0)
            close(csn_steal_fd(&d->resting));
        csn_timer_release(&g->loop, &d->rest);
        d->gate = NULL;
    }
}
