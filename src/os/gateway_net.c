/* gateway_net.c: addresses, routes and sockets inside a jail whose network has a gateway.
 *
 * Called by a keeper while it builds the network, before anything of the sandbox exists. What
 * is ordered is the library's. Loopback gets one address that is not loopback, so that programs
 * which ask whether there is a network find one, and everything is routed to it: whatever a
 * program connects to, the connection meets the packet rules and ends at a socket made here.
 * What must hold: without the packet rules none of these routes exist; a kernel without IPv6
 * has a network without it and not none. Where all goes well no call fails: a process beside us
 * may share our errno. */
#include "os/gateway_net.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "os/netlink.h"
#include "os/nft.h"

#define PROTOCOL_ROUTE   0
#define MSG_NEWADDR      20u
#define MSG_NEWROUTE     24u
#define ATTR_IFA_ADDRESS 1u
#define ATTR_IFA_LOCAL   2u
#define ATTR_RTA_DST     1u
#define ATTR_RTA_OIF     4u
#define ATTR_RTA_PREFSRC 7u
#define ATTR_RTA_METRICS 8u
#define METRIC_CC_ALGO   16u /* the congestion control of connections that go there */
#define TABLE_MAIN       254u
#define TABLE_LOCAL      255u
#define ROUTE_UNICAST    1u
#define ROUTE_LOCAL      2u
#define BY_KERNEL        2u /* who made a route */
#define SCOPE_GLOBAL     0u
#define SCOPE_LINK       253u
#define SCOPE_HOST       254u
#define NO_DAD           0x02u
#define LOOPBACK_INDEX   1u /* of lo, in every network */
#define TRANSPARENT4     19 /* IP_TRANSPARENT */
#define TRANSPARENT6     75 /* IPV6_TRANSPARENT */
#define BACKLOG          128
#define BACKLOG_MANY     1024

/* ---- addresses and routes ---- */

struct address_head {
    uint8_t family, bits, flags, scope;
    uint32_t index;
};

struct route_head {
    uint8_t family, dst_bits, src_bits, tos, table, protocol, scope, type;
    uint32_t flags;
};

static size_t address_len(uint8_t family)
{
    return family == AF_INET ? 4 : 16;
}

static void add_address(csn_nl *b, uint8_t family, const void *address)
{
    const struct address_head h = {.family = family,
                                   .bits = (uint8_t)(address_len(family) * 8),
                                   .flags = NO_DAD,
                                   .scope = SCOPE_GLOBAL,
                                   .index = LOOPBACK_INDEX};

    csn_nl_begin(b, MSG_NEWADDR, CSN_NL_CREATE | CSN_NL_EXCL | CSN_NL_ACK, family, &h,
                 sizeof(h));
    csn_nl_put(b, ATTR_IFA_LOCAL, address, address_len(family));
    csn_nl_put(b, ATTR_IFA_ADDRESS, address, address_len(family));
    csn_nl_end(b);
}

/* bits 0: everything that has no other. local: as if it were an address of ours, with `self` on
 * the other end. */
static void add_route(csn_nl *b, uint8_t family, bool local, const void *to, uint8_t bits,
                      const void *self)
{
    const uint32_t loopback = LOOPBACK_INDEX;
    const struct route_head h = {.family = family,
                                 .dst_bits = bits,
                                 .table = local ? TABLE_LOCAL : TABLE_MAIN,
                                 .protocol = BY_KERNEL,
                                 .scope = local ? SCOPE_HOST : SCOPE_LINK,
                                 .type = local ? ROUTE_LOCAL : ROUTE_UNICAST};

    csn_nl_begin(b, MSG_NEWROUTE, CSN_NL_CREATE | CSN_NL_EXCL | CSN_NL_ACK, family, &h,
                 sizeof(h));
    if (bits > 0)
        csn_nl_put(b, ATTR_RTA_DST, to, address_len(family));
    if (self)
        csn_nl_put(b, ATTR_RTA_PREFSRC, self, address_len(family));
    csn_nl_put(b, ATTR_RTA_OIF, &loopback, sizeof(loopback));
    /* No way to the gateway is ever congested: the plainest will do. */
    size_t metrics = csn_nl_open(b, ATTR_RTA_METRICS);
    csn_nl_put_text(b, METRIC_CC_ALGO, "reno");
    csn_nl_close(b, metrics);
    csn_nl_end(b);
}

/* What connections are led by their own address to: see csn_nft_way. A default route among the
 * others is for programs that look for one. */
static void add_routes_of(csn_nl *b, csn_nft_way way, uint8_t family, const void *self,
                          const void *range, uint8_t bits)
{
    add_address(b, family, self);
    if (way == CSN_NFT_TAKE)
        add_route(b, family, true, NULL, 0, self);
    else
        add_route(b, family, true, range, bits, NULL);
    add_route(b, family, false, NULL, 0, NULL);
}

/* *ret_six: is there IPv6? All requests are carried out, whatever became of earlier ones. */
static int add_routes(csn_nft_way way, bool *ret_six)
{
    const uint32_t self = htonl(CSN_NET_SELF4), range = htonl(CSN_NET_RANGE4);
    csn_nl b = {.len = 0};
    uint32_t seq;
    int error, rc;

    add_routes_of(&b, way, AF_INET, &self, &range, CSN_NET_RANGE4_BITS);
    add_routes_of(&b, way, AF_INET6, CSN_NET_SELF6, CSN_NET_RANGE6, CSN_NET_RANGE6_BITS);
    csn_autofd int fd = csn_nl_send(&b, PROTOCOL_ROUTE);
    if (fd < 0)
        return fd;
    *ret_six = true;
    /* Exactly as many answers as questions: asking for one more would fail, and set errno. */
    for (uint32_t i = 0; i < b.count; i++) {
        rc = csn_nl_answer(fd, &seq, &error);
        if (rc <= 0)
            return rc < 0 ? rc : -EPROTO;
        if (error < 0 && seq < b.count && b.steps[seq] == AF_INET6)
            *ret_six = false;
        else if (error < 0)
            return error;
    }
    return 0;
}

/* ---- sockets ---- */

typedef union any_address {
    struct sockaddr any;
    struct sockaddr_in four;
    struct sockaddr_in6 six;
} any_address;

static any_address self_at(int family, uint16_t port)
{
    any_address a = {.any = {.sa_family = (sa_family_t)family}};

    if (family == AF_INET) {
        a.four.sin_port = htons(port);
        a.four.sin_addr.s_addr = htonl(CSN_NET_SELF4);
    } else {
        a.six.sin6_port = htons(port);
        memcpy(&a.six.sin6_addr, CSN_NET_SELF6, 16);
    }
    return a;
}

/* Close-on-exec and non-blocking. backlog 0: it does not listen. */
static int bound(int type, const any_address *a, int backlog)
{
    csn_autofd int fd = socket(a->any.sa_family, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    socklen_t len = a->any.sa_family == AF_INET ? sizeof(a->four) : sizeof(a->six);

    if (fd < 0 || bind(fd, &a->any, len) < 0 || (backlog > 0 && listen(fd, backlog) < 0))
        return -errno;
    return csn_steal_fd(&fd);
}

/* May have the address of any connection that is led to it. */
static int make_transparent(int fd, int family)
{
    int on = 1, level = family == AF_INET ? IPPROTO_IP : IPPROTO_IPV6;

    return setsockopt(fd, level, family == AF_INET ? TRANSPARENT4 : TRANSPARENT6, &on,
                      sizeof(on)) < 0
               ? -errno
               : 0;
}

static int make_sockets(csn_gateway_net *n, csn_nft_way way, bool six)
{
    static const struct {
        uint8_t family, type, many;
        uint16_t port;
    } wanted[] = {
        [CSN_GATEWAY_NET_DNS_UDP4] = {AF_INET, SOCK_DGRAM, 0, CSN_NET_RESOLVER_PORT},
        [CSN_GATEWAY_NET_DNS_UDP6] = {AF_INET6, SOCK_DGRAM, 0, CSN_NET_RESOLVER_PORT},
        [CSN_GATEWAY_NET_DNS_TCP4] = {AF_INET, SOCK_STREAM, 0, CSN_NET_RESOLVER_PORT},
        [CSN_GATEWAY_NET_DNS_TCP6] = {AF_INET6, SOCK_STREAM, 0, CSN_NET_RESOLVER_PORT},
        [CSN_GATEWAY_NET_TCP4] = {AF_INET, SOCK_STREAM, 1, CSN_NET_LISTENER_PORT},
        [CSN_GATEWAY_NET_TCP6] = {AF_INET6, SOCK_STREAM, 1, CSN_NET_LISTENER_PORT},
    };

    for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
        if (wanted[i].family == AF_INET6 && !six)
            continue;
        any_address a = self_at(wanted[i].family, wanted[i].port);
        int backlog = wanted[i].type == SOCK_DGRAM ? 0
                      : wanted[i].many             ? BACKLOG_MANY
                                                   : BACKLOG;
        int fd = bound(wanted[i].type, &a, backlog);
        if (fd < 0)
            return fd;
        n->fds[i] = fd;
        int rc =
            way == CSN_NFT_TAKE && wanted[i].many ? make_transparent(fd, wanted[i].family) : 0;
        if (rc < 0)
            return rc;
    }
    return 0;
}

static any_address loopback_at(uint16_t port)
{
    any_address a = {.four = {.sin_family = AF_INET,
                              .sin_port = htons(port),
                              .sin_addr.s_addr = htonl(INADDR_LOOPBACK)}};
    return a;
}

static int make_lent(const csn_gateway_net_order *order, csn_gateway_net *n)
{
    for (uint32_t i = 0; i < order->lent_count; i++) {
        any_address a = loopback_at(order->lent[i]);
        int fd = bound(SOCK_STREAM, &a, BACKLOG);
        if (fd < 0) {
            n->detail = order->lent[i];
            return fd;
        }
        n->lent[i] = fd;
    }
    return 0;
}

/* ---- the two ways ---- */

static int build_transparent(csn_gateway_net *n, bool translate)
{
    csn_nft_way way = translate ? CSN_NFT_TRANSLATE : CSN_NFT_TAKE;
    csn_nft_step step;
    bool six = false;

    n->step = CSN_GATEWAY_NET_STEP_RULES;
    int rc = csn_nft_redirect(way, &step);
    if (way == CSN_NFT_TAKE && csn_nft_lacking(rc)) {
        way = CSN_NFT_TRANSLATE;
        rc = csn_nft_redirect(way, &step);
    }
    n->detail = step;
    if (rc < 0)
        return rc;
    n->step = CSN_GATEWAY_NET_STEP_ROUTES;
    n->detail = 0;
    rc = add_routes(way, &six);
    if (rc < 0)
        return rc;
    n->step = CSN_GATEWAY_NET_STEP_SOCKETS;
    n->mode = CSN_GATEWAY_NET_TRANSPARENT;
    return make_sockets(n, way, six);
}

static int build_proxy(csn_gateway_net *n, uint16_t port)
{
    any_address a = loopback_at(port);
    socklen_t len = sizeof(a);

    n->step = CSN_GATEWAY_NET_STEP_SOCKETS;
    n->mode = CSN_GATEWAY_NET_PROXY;
    int fd = bound(SOCK_STREAM, &a, BACKLOG_MANY);
    if (fd < 0)
        return fd;
    n->fds[CSN_GATEWAY_NET_LISTENER] = fd;
    if (getsockname(fd, &a.any, &len) < 0)
        return -errno;
    n->proxy_port = ntohs(a.four.sin_port);
    return 0;
}

int csn_gateway_net_build(const csn_gateway_net_order *order, csn_gateway_net *ret)
{
    bool either = order->mode == CSN_GATEWAY_NET_EITHER;
    int rc = 0;

    *ret = (csn_gateway_net){.mode = CSN_GATEWAY_NET_NONE};
    for (size_t i = 0; i < CSN_GATEWAY_NET_SOCKETS; i++)
        ret->fds[i] = -1;
    for (size_t i = 0; i < CSN_GATEWAY_NET_LENT_MAX; i++)
        ret->lent[i] = -1;
    if (order->mode == CSN_GATEWAY_NET_NONE)
        return 0;
    if (order->mode != CSN_GATEWAY_NET_PROXY) {
        rc = build_transparent(ret, order->translate);
        if (rc < 0 && either && ret->step == CSN_GATEWAY_NET_STEP_RULES && csn_nft_lacking(rc))
            ret->lacking = -rc;
    }
    if (order->mode == CSN_GATEWAY_NET_PROXY || ret->lacking != 0)
        rc = build_proxy(ret, order->proxy_port);
    if (rc == 0) {
        ret->step = CSN_GATEWAY_NET_STEP_LENT;
        rc = make_lent(order, ret);
    }
    if (rc < 0)
        csn_gateway_net_close(ret);
    return rc;
}

void csn_gateway_net_close(csn_gateway_net *n)
{
    for (size_t i = 0; i < CSN_GATEWAY_NET_SOCKETS; i++)
        if (n->fds[i] >= 0)
            close(csn_steal_fd(&n->fds[i]));
    for (size_t i = 0; i < CSN_GATEWAY_NET_LENT_MAX; i++)
        if (n->lent[i] >= 0)
            close(csn_steal_fd(&n->lent[i]));
}

int csn_gateway_net_fresh(uint8_t family)
{
    if (family != 4 && family != 6)
        return -EINVAL;
    int fd =
        socket(family == 4 ? AF_INET : AF_INET6, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    return fd < 0 ? -errno : fd;
}
