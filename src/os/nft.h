/* nft.h: the packet rules of a jail whose network has a gateway, by raw nfnetlink.
 *
 * One table in the caller's network namespace (needs CAP_NET_ADMIN). Every TCP connection
 * except to loopback and the stub resolver ends at the gateway's listener, which asks the
 * kernel for the original destination; everything else is rejected at once. Static programs
 * link this. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

/* The only address of a jail besides loopback: that of the resolver and the gateway's listener.
 * Both ports are below 1024, so that commands cannot bind them. */
#define CSN_NET_SELF4         0xc6120001u /* 198.18.0.1 */
#define CSN_NET_RANGE4        0xc6120000u /* 198.18.0.0/15: addresses handed out for names */
#define CSN_NET_RANGE4_BITS   15u
#define CSN_NET_SELF6         "\xfd\x63\x61\x69\x73\x73\0\0\0\0\0\0\0\0\0\1"
#define CSN_NET_RANGE6        "\xfd\x63\x61\x69\x73\x73\0\0\0\0\0\0\0\0\0\0"
#define CSN_NET_RANGE6_BITS   48u
#define CSN_NET_RESOLVER_PORT 53u
#define CSN_NET_LISTENER_PORT 1u

/* What failed; for messages. */
typedef enum csn_nft_step {
    CSN_NFT_SOCKET,
    CSN_NFT_TABLE,
    CSN_NFT_CHAIN,    /* hooks of type nat and filter */
    CSN_NFT_MATCH,    /* rules that accept */
    CSN_NFT_REDIRECT, /* rules that redirect to the listener */
    CSN_NFT_REJECT,   /* the rule that rejects the rest */
} csn_nft_step;

/* How connections reach the listener. */
typedef enum csn_nft_method {
    CSN_NFT_TPROXY, /* unchanged: the listener is IP_TRANSPARENT, all addresses are local, and
                       getsockname() returns the destination */
    CSN_NFT_DNAT,   /* with the listener's address; SO_ORIGINAL_DST returns the destination */
} csn_nft_method;

/* Installs all rules or none. Returns 0, or -errno with the failed step in *ret_step. */
int csn_nft_redirect(csn_nft_method method, csn_nft_step *ret_step);
/* True: this -errno means that the kernel lacks a module. */
bool csn_nft_unsupported(int error);
const char *csn_nft_step_name(uint64_t step);
