/* nft.h: the packet rules of a jail's network that has a gateway. Raw nfnetlink, no library:
 * static programs link it.
 *
 * In the network the caller is in, with its CAP_NET_ADMIN, one table is made whose rules are
 * fixed: every TCP connection that is not to loopback and not to the stub resolver ends at the
 * gateway's listener, which can ask the kernel where it was going to; loopback and the stub are
 * untouched; all else is refused at once. */
#pragma once
#include <stdint.h>

/* The one address of a jail beside loopback: resolver and gateway's listener have it. Both
 * ports are below 1024, so nothing that runs inside can take them first, or is in their way. */
#define CSN_NET_SELF4         0xc6120001u /* 198.18.0.1 */
#define CSN_NET_RANGE4        0xc6120000u /* 198.18.0.0/15: stands for names */
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
    CSN_NFT_CHAIN,  /* hooks of type nat and filter */
    CSN_NFT_MATCH,  /* rules that only let pass */
    CSN_NFT_LEAD,   /* the rules that lead to the listener */
    CSN_NFT_REJECT, /* the one that refuses the rest */
} csn_nft_step;

/* How connections are led to the listener. */
typedef enum csn_nft_way {
    CSN_NFT_TAKE, /* as they are: the listener is IP_TRANSPARENT, all addresses are local, and
                     its end has the address that was meant */
    CSN_NFT_TRANSLATE, /* by another address, and the kernel remembers (SO_ORIGINAL_DST) */
} csn_nft_way;

/* All of it or nothing. 0 or -errno, then *ret_step says where. A kernel without one of the
 * modules: -EPROTONOSUPPORT, -EAFNOSUPPORT, -EOPNOTSUPP, -EINVAL or -ENOENT; see
 * csn_nft_lacking. */
int csn_nft_redirect(csn_nft_way way, csn_nft_step *ret_step);
/* Does this error say that the kernel cannot, rather than that something is wrong? */
int csn_nft_lacking(int error);
const char *csn_nft_step_name(uint64_t step);
