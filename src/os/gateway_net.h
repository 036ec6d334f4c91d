/* gateway_net.h: a jail's network with a way out: its addresses, routes and the sockets that a
 * gateway outside will hold. Raw system calls: static programs link it.
 *
 * The network itself has no way anywhere. A gateway is given sockets that were made inside it,
 * and needs nothing else: no capability, no entry. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#define CSN_NETIN_LENT_MAX 32u /* ports of the host that are lent inward */

enum csn_netin_mode {
    CSN_NETIN_NONE,        /* loopback and nothing else */
    CSN_NETIN_TRANSPARENT, /* programs notice nothing: os/nft.h */
    CSN_NETIN_PROXY,       /* a listener on loopback, for programs that ask a proxy */
    CSN_NETIN_EITHER,      /* the first, or the second where the kernel cannot */
    CSN_NETIN_MODES
};

/* What is wanted. */
typedef struct csn_netin_order {
    uint32_t mode;
    bool translate;      /* as where the kernel lacks nft_tproxy; for tests */
    uint16_t proxy_port; /* of the proxy's listener; 0: any */
    uint32_t lent_count;
    uint16_t lent[CSN_NETIN_LENT_MAX]; /* listeners on loopback inside, by port */
} csn_netin_order;

/* The sockets, in the order in which they are handed on. */
enum csn_netin_socket {
    CSN_NETIN_DNS_UDP4,
    CSN_NETIN_DNS_UDP6,
    CSN_NETIN_DNS_TCP4,
    CSN_NETIN_DNS_TCP6,
    CSN_NETIN_TCP4,
    CSN_NETIN_TCP6,
    CSN_NETIN_LISTENER, /* of the proxy */
    CSN_NETIN_SOCKETS
};
/* Those that a transparent network always has. */
#define CSN_NETIN_ALL4                                                                         \
    (1u << CSN_NETIN_DNS_UDP4 | 1u << CSN_NETIN_DNS_TCP4 | 1u << CSN_NETIN_TCP4)

/* Where it failed; for messages. */
enum csn_netin_step {
    CSN_NETIN_STEP_RULES, /* packet rules: `detail` is a csn_nft_step */
    CSN_NETIN_STEP_ROUTES,
    CSN_NETIN_STEP_SOCKETS,
    CSN_NETIN_STEP_LENT, /* `detail` is the port */
};

typedef struct csn_netin {
    uint32_t mode;              /* what it became */
    int fds[CSN_NETIN_SOCKETS]; /* -1: none; without IPv6 those of it are missing */
    int lent[CSN_NETIN_LENT_MAX];
    uint16_t proxy_port;
    int lacking; /* EITHER became PROXY: why, errno */
    uint32_t step, detail;
} csn_netin;

/* Builds it in the network that the caller is in; loopback is up. Touches nothing but *ret. 0
 * or -errno, then step and detail say where and nothing is left open. */
int csn_netin_build(const csn_netin_order *order, csn_netin *ret);
void csn_netin_close(csn_netin *n);
/* A fresh TCP socket (4 or 6) of the caller's network, non-blocking. -errno. */
int csn_netin_fresh(uint8_t family);
