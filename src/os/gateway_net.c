/* gateway_net.c: addresses, routes and sockets inside a jail whose network has a gateway.
 *
 * A keeper calls this before any command runs; the order comes from the library. Loopback gets
 * one address outside 127.0.0.0/8, so that programs detect a network, and everything is routed
 * to it: every connection passes the packet rules and ends at a socket made here. Invariants:
 * without the packet rules none of these routes exists; on a kernel without IPv6 the network is
 * IPv4 only. No system call fails on the successful path: a helper process may share our
 * errno. */
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
#define METRIC_CC_ALGO   16u /* RTAX_CC_ALGO */
#define TABLE_MAIN       254u
#define TABLE_LOCAL      255u
#define ROUTE_UNICAST    1u
#define ROUTE_LOCAL      2u
#define PROTO_KERNEL     2u /* RTPROT_KERNEL */
#define SCOPE_GLOBAL     0u
#define SCOPE_LINK       253u
#define SCOPE_HOST       254u
#define NO_DAD           0x02u /* IFA_F_NODAD */
#define LOOPBACK_INDEX   1u    /* of lo, in every network namespace */
#define TRANSPARENT4     19    /* IP_TRANSPARENT */
#define TRANSPARENT6     75    /* IPV6_TRANSPARENT */
#define BACKLOG          128
#define BACKLOG_LARGE    1024

/* ---- addresses and routes ---- */

struct ifaddrmsg {
    uint8_t family, bits, flags, scope;
    uint32_t index;
};

struct rtmsg {
    uint8_t family, dst_bits, src_bits, tos, table, protocol, scope, type;
    uint32_t flags;
};

static size_t address_len(uint8_t family)
{
    return family == AF_INET ? 4 : 16;
}

static void add_address(csn_nl *b, uint8_t family, const void *address)
{
    const struct ifaddrmsg h = {.family = family,
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

/* bits 0: a default route. local: the kernel accepts packets to these addresses as its own,
 * with `self` as the source of replies. */
static void add_route(csn_nl *b, uint8_t family, bool local, const void *to, uint8_t bits,
                      const void *self)
{
    const uint32_t loopback = LOOPBACK_INDEX;
    const struct rtmsg h = {.family = family,
                            .dst_bits = bits,
                            .table = local ? TABLE_LOCAL : TABLE_MAIN,
                            .protocol = PROTO_KERNEL,
                            .scope = local ? SCOPE_HOST : SCOPE_LINK,
                            .type = local ? ROUTE_LOCAL : ROUTE_UNICAST};

    csn_nl_begin(b, MSG_NEWROUTE, CSN_NL_CREATE | CSN_NL_EXCL | CSN_NL_ACK, family, &h,
                 sizeof(h));
    if (bits > 0)
        csn_nl_put(b, ATTR_RTA_DST, to, address_len(family));
    if (self)
        csn_nl_put(b, ATTR_RTA_PREFSRC, self, address_len(family));
    csn_nl_put(b, ATTR_RTA_OIF, &loopback, sizeof(loopback));
    /* Loopback is never congested, so the cheapest algorithm is used. */
    size_t metrics = csn_nl_open(b, ATTR_RTA_METRICS);
    csn_nl_put_text(b, METRIC_CC_ALGO, "reno");
    csn_nl_close(b, metrics);
    csn_nl_end(b);
}

/* The unicast default route serves programs that check for one. */
static void add_family(csn_nl *b, csn_nft_method method, uint8_t family, const void *self,
                       const void *range, uint8_t bits)
{
    add_address(b, family, self);
    if (method == CSN_NFT_TPROXY)
        add_route(b, family, true, NULL, 0, self);
    else
        add_route(b, family, true, range, bits, NULL);
    add_route(b, family, false, NULL, 0, NULL);
}

/* *ret_ipv6: the kernel has IPv6. The kernel executes all requests, even after one has
 * failed. */
static int add_routes(csn_nft_method method, bool *ret_ipv6)
{
    const uint32_t self = htonl(CSN_NET_SELF4), range = htonl(CSN_NET_RANGE4);
    csn_nl b = {.len = 0};
    uint32_t seq;
    int error, rc;

    add_family(&b, method, AF_INET, &self, &range, CSN_NET_RANGE4_BITS);
    add_family(&b, method, AF_INET6, CSN_NET_SELF6, CSN_NET_RANGE6, CSN_NET_RANGE6_BITS);
    csn_autofd int fd = csn_nl_send(&b, PROTOCOL_ROUTE);
    if (fd < 0)
        return fd;
    *ret_ipv6 = true;
    /* One answer for each request: reading one more would fail and set errno. */
    for (uint32_t i = 0; i < b.count; i++) {
        rc = csn_nl_answer(fd, &seq, &error);
        if (rc <= 0)
            return rc < 0 ? rc : -EPROTO;
        if (error < 0 && seq < b.count && b.steps[seq] == AF_INET6)
            *ret_ipv6 = false;
        else if (error < 0)
            return error;
    }
    return 0;
}

/* ---- sockets ---- */

typedef union sock_address {
    struct sockaddr any;
    struct sockaddr_in in;
    struct sockaddr_in6 in6;
} sock_address;

static sock_address self_address(int family, uint16_t port)
{
    sock_address a = {.any = {.sa_family = (sa_family_t)family}};

    if (family == AF_INET) {
        a.in.sin_port = htons(port);
        a.in.sin_addr.s_addr = htonl(CSN_NET_SELF4);
    } else {
        a.in6.sin6_port = htons(port);
        memcpy(&a.in6.sin6_addr, CSN_NET_SELF6, 16);
    }
    return a;
}

/* Close-on-exec and non-blocking. backlog 0: does not listen. */
static int open_bound(int type, const sock_address *a, int backlog)
{
    csn_autofd int fd = socket(a->any.sa_family, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    socklen_t len = a->any.sa_family == AF_INET ? sizeof(a->in) : sizeof(a->in6);

    if (fd < 0 || bind(fd, &a->any, len) < 0 || (backlog > 0 && listen(fd, backlog) < 0))
        return -errno;
    return csn_steal_fd(&fd);
}

/* Lets the socket accept connections to any address. */
static int set_transparent(int fd, int family)
{
    int on = 1, level = family == AF_INET ? IPPROTO_IP : IPPROTO_IPV6;

    return setsockopt(fd, level, family == AF_INET ? TRANSPARENT4 : TRANSPARENT6, &on,
                      sizeof(on)) < 0
               ? -errno
               : 0;
}

static int open_sockets(csn_gateway_net *n, csn_nft_method method, bool ipv6)
{
    static const struct {
        uint8_t family, type, listener;
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
        if (wanted[i].family == AF_INET6 && !ipv6)
            continue;
        sock_address a = self_address(wanted[i].family, wanted[i].port);
        int backlog = wanted[i].type == SOCK_DGRAM ? 0
                      : wanted[i].listener         ? BACKLOG_LARGE
                                                   : BACKLOG;
        int fd = open_bound(wanted[i].type, &a, backlog);
        if (fd < 0)
            return fd;
        n->fds[i] = fd;
        int rc = method == CSN_NFT_TPROXY && wanted[i].listener
                     ? set_transparent(fd, wanted[i].family)
                     : 0;
        if (rc < 0)
            return rc;
    }
    return 0;
}

static sock_address loopback_address(uint16_t port)
{
    sock_address a = {.in = {.sin_family = AF_INET,
                             .sin_port = htons(port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)}};
    return a;
}

static int open_host_ports(const csn_gateway_net_order *order, csn_gateway_net *n)
{
    for (uint32_t i = 0; i < order->host_port_count; i++) {
        sock_address a = loopback_address(order->host_ports[i]);
        int fd = open_bound(SOCK_STREAM, &a, BACKLOG);
        if (fd < 0) {
            n->detail = order->host_ports[i];
            return fd;
        }
        n->host_ports[i] = fd;
    }
    return 0;
}

/* ---- the two modes ---- */

static int build_transparent(csn_gateway_net *n, bool translate)
{
    csn_nft_method method = translate ? CSN_NFT_DNAT : CSN_NFT_TPROXY;
    csn_nft_step step;
    bool ipv6 = false;

    n->step = CSN_GATEWAY_NET_STEP_RULES;
    int rc = csn_nft_redirect(method, &step);
    if (method == CSN_NFT_TPROXY && csn_nft_unsupported(rc)) {
        method = CSN_NFT_DNAT;
        rc = csn_nft_redirect(method, &step);
    }
    n->detail = step;
    if (rc < 0)
        return rc;
    n->step = CSN_GATEWAY_NET_STEP_ROUTES;
    n->detail = 0;
    rc = add_routes(method, &ipv6);
    if (rc < 0)
        return rc;
    n->step = CSN_GATEWAY_NET_STEP_SOCKETS;
    n->mode = CSN_GATEWAY_NET_TRANSPARENT;
    return open_sockets(n, method, ipv6);
}

static int build_proxy(csn_gateway_net *n, uint16_t port)
{
    sock_address a = loopback_address(port);
    socklen_t len = sizeof(a);

    n->step = CSN_GATEWAY_NET_STEP_SOCKETS;
    n->mode = CSN_GATEWAY_NET_PROXY;
    int fd = open_bound(SOCK_STREAM, &a, BACKLOG_LARGE);
    if (fd < 0)
        return fd;
    n->fds[CSN_GATEWAY_NET_LISTENER] = fd;
    if (getsockname(fd, &a.any, &len) < 0)
        return -errno;
    n->proxy_port = ntohs(a.in.sin_port);
    return 0;
}

int csn_gateway_net_build(const csn_gateway_net_order *order, csn_gateway_net *ret)
{
    bool either = order->mode == CSN_GATEWAY_NET_EITHER;
    int rc = 0;

    *ret = (csn_gateway_net){.mode = CSN_GATEWAY_NET_NONE};
    for (size_t i = 0; i < CSN_GATEWAY_NET_SOCKETS; i++)
        ret->fds[i] = -1;
    for (size_t i = 0; i < CSN_GATEWAY_NET_HOST_PORTS_MAX; i++)
        ret->host_ports[i] = -1;
    if (order->mode == CSN_GATEWAY_NET_NONE)
        return 0;
    if (order->mode != CSN_GATEWAY_NET_PROXY) {
        rc = build_transparent(ret, order->translate);
        if (rc < 0 && either && ret->step == CSN_GATEWAY_NET_STEP_RULES &&
            csn_nft_unsupported(rc))
            ret->lacking = -rc;
    }
    if (order->mode == CSN_GATEWAY_NET_PROXY || ret->lacking != 0)
        rc = build_proxy(ret, order->proxy_port);
    if (rc == 0) {
        ret->step = CSN_GATEWAY_NET_STEP_HOST_PORTS;
        rc = open_host_ports(order, ret);
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
    for (size_t i = 0; i < CSN_GATEWAY_NET_HOST_PORTS_MAX; i++)
        if (n->host_ports[i] >= 0)
            close(csn_steal_fd(&n->host_ports[i]));
}

int csn_gateway_net_resolver(void)
{
    sock_address a = loopback_address(CSN_NET_RESOLVER_PORT);

    return open_bound(SOCK_DGRAM, &a, 0);
}

int csn_gateway_net_tcp_socket(uint8_t family)
{
    if (family != 4 && family != 6)
        return -EINVAL;
    int fd =
        socket(family == 4 ? AF_INET : AF_INET6, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    return fd < 0 ? -errno : fd;
}
