/* listener.c: accepts connections and starts a flow for each.
 *
 * Processes inside can connect at any rate. A connection over the limit is reset and recorded.
 * When no descriptor is left, the listener pauses for a while instead of spinning. */
#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "gateway/gateway.h"
#include "gateway/socket.h"

#define ACCEPTS_PER_WAKEUP 16
#define RETRY_NS           100000000u
#define ORIGINAL_DST       80 /* SO_ORIGINAL_DST and IP6T_SO_ORIGINAL_DST: their headers clash */

static void record_overflow(gw_listener *l)
{
    csn_gateway_event e = {.kind = CSN_GATEWAY_CONNECT,
                           .verdict = CSN_GATEWAY_DENY,
                           .proto = CSN_GATEWAY_TCP,
                           .why = "too many connections at once"};

    gw_events_add(l->gateway->events, &e);
}

/* The destination before the redirect: from conntrack, or with tproxy the local address of the
 * socket. For a direct connection to the listener this is an address that maps to no name. */
static int original_dst(int fd, csn_netaddr *addr, uint16_t *port)
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
    gw_sockaddr_to_netaddr((struct sockaddr *)&ss, addr, port);
    return addr->family == 0 ? -EAFNOSUPPORT : 0;
}

/* Sets the target: for an address of the name table the name that it stands for, otherwise the
 * address itself. Refuses an address of the table that stands for no name. */
static void start_redirected(gw_flow *f)
{
    gw_target to = {0};
    gw_refusal unknown = {
        .verdict = {.why = "no DNS answer of this sandbox gave out this address"}};
    uint32_t number;

    if (original_dst(f->client.io.fd, &to.addr, &to.port) < 0) {
        gw_flow_reset(f);
        return;
    }
    f->target = to;
    if (gw_names_from_address(&to.addr, &number)) {
        if (!gw_names_get(f->gateway->names, number, &to.name)) {
            gw_flow_refuse(f, &unknown);
            return;
        }
        f->name_number = number;
        gw_names_hold(f->gateway->names, number);
        to.addr = (csn_netaddr){0};
    }
    gw_flow_set_target(f, &to);
    if (gw_inspect_begin(f) < 0)
        gw_flow_reset(f);
    else
        gw_flow_step(f);
}

static void start_flow(gw_listener *l, int fd)
{
    gw_flow *f = gw_flow_new(l->gateway, fd, l->origin);

    if (!f) {
        record_overflow(l);
        return;
    }
    f->exec_rules = l->exec_rules;
    switch (l->origin) {
    case GW_ORIGIN_REDIRECT:
        start_redirected(f);
        break;
    case GW_ORIGIN_PROXY:
        if (gw_proxy_begin(f) < 0)
            gw_flow_reset(f);
        else
            gw_flow_step(f);
        break;
    case GW_ORIGIN_HOST_PORT:
        gw_ports_connect_host(f, l->port);
        break;
    case GW_ORIGIN_PUBLISHED:
        gw_ports_connect_inside(f, l->port);
        break;
    }
}

static void on_retry(gw_timer *t);

static void pause_accept(gw_listener *l)
{
    l->paused_fd = gw_loop_remove(&l->gateway->loop, &l->io);
    gw_timer_arm(&l->gateway->loop, &l->retry_timer, l->gateway->loop.now_ns + RETRY_NS);
}

static void on_accept(gw_io *io, uint32_t events)
{
    gw_listener *l = GW_CONTAINER_OF(gw_listener, io, io);

    (void)events;
    for (int i = 0; i < ACCEPTS_PER_WAKEUP; i++) {
        int fd = accept4(io->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd >= 0) {
            start_flow(l, fd);
            continue;
        }
        if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS)
            pause_accept(l);
        if (errno != ECONNABORTED && errno != EINTR)
            return;
    }
}

static void on_retry(gw_timer *t)
{
    gw_listener *l = GW_CONTAINER_OF(gw_listener, retry_timer, t);

    if (gw_loop_add_level(&l->gateway->loop, &l->io, l->paused_fd, on_accept) < 0)
        gw_timer_arm(&l->gateway->loop, &l->retry_timer, l->gateway->loop.now_ns + RETRY_NS);
    else
        l->paused_fd = -1;
}

int gw_listener_open(gw_gateway *g, int fd, gw_origin origin, uint16_t port,
                     const gw_exec_rules *exec_rules)
{
    gw_listener *l = g->listeners;

    while (l < g->listeners + GW_LISTENERS_MAX && l->gateway)
        l++;
    if (l == g->listeners + GW_LISTENERS_MAX)
        return -E2BIG;
    gw_socket_set_local(fd);
    *l = (gw_listener){
        .origin = origin, .port = port, .paused_fd = -1, .exec_rules = exec_rules};
    int rc = gw_timer_reserve(&g->loop, &l->retry_timer, on_retry);
    if (rc == 0)
        rc = gw_loop_add_level(&g->loop, &l->io, fd, on_accept);
    if (rc == 0)
        l->gateway = g;
    else
        gw_timer_release(&g->loop, &l->retry_timer);
    return rc;
}

int gw_listener_adopt(gw_gateway *g, int fd, uint32_t bit, const gw_exec_rules *exec_rules)
{
    int rc = gw_socket_set_nonblock(fd);

    if (rc < 0)
        return rc;
    switch (bit) {
    case CSN_GATEWAY_FD_DNS_UDP4:
    case CSN_GATEWAY_FD_DNS_UDP6:
        return gw_dns_stub_open(g, fd, false, exec_rules);
    case CSN_GATEWAY_FD_DNS_TCP4:
    case CSN_GATEWAY_FD_DNS_TCP6:
        return gw_dns_stub_open(g, fd, true, exec_rules);
    case CSN_GATEWAY_FD_TCP4:
    case CSN_GATEWAY_FD_TCP6:
        return gw_listener_open(g, fd, GW_ORIGIN_REDIRECT, 0, exec_rules);
    case CSN_GATEWAY_FD_PROXY:
        return gw_listener_open(g, fd, GW_ORIGIN_PROXY, 0, exec_rules);
    default:
        return -EINVAL;
    }
}

void gw_listeners_close(gw_gateway *g, const gw_exec_rules *exec_rules)
{
    for (gw_listener *l = g->listeners; l < g->listeners + GW_LISTENERS_MAX; l++) {
        if (!l->gateway || l->exec_rules != exec_rules)
            continue;
        gw_loop_close(&l->io);
        if (l->paused_fd >= 0)
            close(csn_steal_fd(&l->paused_fd));
        gw_timer_release(&g->loop, &l->retry_timer);
        l->gateway = NULL;
    }
}
