/* gateway_net.h: a jail's network with a way out: its addresses, routes and the sockets that a
 * gateway outside will hold. Raw system calls: static programs link it.
 *
 * The network itself has no way anywhere. A gateway is given sockets that were made inside it,
 * and needs nothing else: no capability, no entry. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#define CSN_GATEWAY_NET_LENT_MAX 32u /* ports of the host that are lent inward */

enum csn_gateway_net_mode {
    CSN_GATEWAY_NET_NONE,        /* loopback and nothing else */
    CSN_GATEWAY_NET_TRANSPARENT, /* programs notice nothing: os/nft.h */
    CSN_GATEWAY_NET_PROXY,       /* a listener on loopback, for programs that ask a proxy */
    CSN_GATEWAY_NET_EITHER,      /* the first, or the second where the kernel cannot */
    CSN_GATEWAY_NET_MODES
};

/* What is wanted. */
typedef struct csn_gateway_net_order {
    uint32_t mode;
    bool translate;      /* as where the kernel lacks nft_tproxy; for tests */
    uint16_t proxy_port; /* of the proxy's listener; 0: any */
    uint32_t lent_count;
    uint16_t lent[CSN_GATEWAY_NET_LENT_MAX]; /* listeners on loopback inside, by port */
} csn_gateway_net_order;

/* The sockets, in the order in which they are handed on. */
enum csn_gateway_net_socket {
    CSN_GATEWAY_NET_DNS_UDP4,
    CSN_GATEWAY_NET_DNS_UDP6,
    CSN_GATEWAY_NET_DNS_TCP4,
    CSN_GATEWAY_NET_DNS_TCP6,
    CSN_GATEWAY_NET_TCP4,
    CSN_GATEWAY_NET_TCP6,
    CSN_GATEWAY_NET_LISTENER, /* of the proxy */
    CSN_GATEWAY_NET_SOCKETS
};
/* Those that a transparent network always has. */
#define CSN_GATEWAY_NET_ALL4                                                                   \
    (1u << CSN_GATEWAY_NET_DNS_UDP4 | 1u << CSN_GATEWAY_NET_DNS_TCP4 |                         \
     1u << CSN_GATEWAY_NET_TCP4)

/* Where it failed; for messages. */
enum csn_gateway_net_step {
    CSN_GATEWAY_NET_STEP_RULES, /* packet rules: `detail` is a csn_nft_step */
    CSN_GATEWAY_NET_STEP_ROUTES,
    CSN_GATEWAY_NET_STEP_SOCKETS,
    CSN_GATEWAY_NET_STEP_LENT, /* `detail` is the port */
};

typedef struct csn_gateway_net {
    uint32_t mode;                    /* what it became */
    int fds[CSN_GATEWAY_NET_SOCKETS]; /* -1: none; without IPv6 those of it are missing */
    int lent[CSN_GATEWAY_NET_LENT_MAX];
    uint16_t proxy_port;
    int lacking; /* EITHER became PROXY: why, errno */
    uint32_t step, detail;
} csn_gateway_net;

/* Builds it in the network that the caller is in; loopback is up. Touches nothing but *ret. 0
 * or -errno, then step and detail say where and nothing is left open. */
int csn_gateway_net_build(const csn_gateway_net_order *order, csn_gateway_net *ret);
void csn_gateway_net_close(csn_gateway_net *n);
/* A fresh TCP socket (4 or 6) of the caller's network, non-blocking. -errno. */
int csn_gateway_net_fresh(uint8_t family);
