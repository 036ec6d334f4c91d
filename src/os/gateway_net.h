/* gateway_net.h: the network of a jail with a gateway: its addresses, its routes and the
 * sockets that the gateway process outside holds.
 *
 * The network namespace has no interface but loopback. The gateway works with sockets that were
 * made inside it and needs neither a capability nor entry. Static programs link this. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#define CSN_GATEWAY_NET_HOST_PORTS_MAX 32u /* ports of the host reachable inside */

enum csn_gateway_net_mode {
    CSN_GATEWAY_NET_NONE,        /* loopback only */
    CSN_GATEWAY_NET_TRANSPARENT, /* connections are redirected: os/nft.h */
    CSN_GATEWAY_NET_PROXY,       /* a proxy listens on loopback */
    CSN_GATEWAY_NET_EITHER,      /* TRANSPARENT, or PROXY where the kernel lacks nf_tables */
    CSN_GATEWAY_NET_MODES
};

typedef struct csn_gateway_net_order {
    uint32_t mode;
    bool translate;      /* for tests: CSN_NFT_DNAT as on a kernel without nft_tproxy */
    uint16_t proxy_port; /* 0: any */
    uint32_t host_port_count;
    /* A listener on loopback inside for each of these ports. */
    uint16_t host_ports[CSN_GATEWAY_NET_HOST_PORTS_MAX];
} csn_gateway_net_order;

/* The sockets, in the order in which they are sent to the library. */
enum csn_gateway_net_socket {
    CSN_GATEWAY_NET_DNS_UDP4,
    CSN_GATEWAY_NET_DNS_UDP6,
    CSN_GATEWAY_NET_DNS_TCP4,
    CSN_GATEWAY_NET_DNS_TCP6,
    CSN_GATEWAY_NET_TCP4,
    CSN_GATEWAY_NET_TCP6,
    CSN_GATEWAY_NET_LISTENER, /* the proxy */
    CSN_GATEWAY_NET_SOCKETS
};
/* The sockets that a transparent network always has. */
#define CSN_GATEWAY_NET_ALL4                                                                   \
    (1u << CSN_GATEWAY_NET_DNS_UDP4 | 1u << CSN_GATEWAY_NET_DNS_TCP4 |                         \
     1u << CSN_GATEWAY_NET_TCP4)

/* The step that failed; for messages. */
enum csn_gateway_net_step {
    CSN_GATEWAY_NET_STEP_RULES, /* `detail` is a csn_nft_step */
    CSN_GATEWAY_NET_STEP_ROUTES,
    CSN_GATEWAY_NET_STEP_SOCKETS,
    CSN_GATEWAY_NET_STEP_HOST_PORTS, /* `detail` is the port */
};

typedef struct csn_gateway_net {
    uint32_t mode;                    /* in effect */
    int fds[CSN_GATEWAY_NET_SOCKETS]; /* -1: none, e.g. without IPv6 */
    int host_ports[CSN_GATEWAY_NET_HOST_PORTS_MAX];
    uint16_t proxy_port;
    int lacking; /* the errno for which EITHER became PROXY, or 0 */
    uint32_t step, detail;
} csn_gateway_net;

/* Builds the network in the caller's network namespace, whose loopback is up. Writes only *ret.
 * Returns 0, or -errno with step and detail set and nothing left open. */
int csn_gateway_net_build(const csn_gateway_net_order *order, csn_gateway_net *ret);
void csn_gateway_net_close(csn_gateway_net *n);
/* For a network without a gateway: the UDP socket of a resolver on 127.0.0.1, or -errno. */
int csn_gateway_net_resolver(void);
/* Returns a non-blocking TCP socket (family 4 or 6) of the caller's network, or -errno. */
int csn_gateway_net_tcp_socket(uint8_t family);
