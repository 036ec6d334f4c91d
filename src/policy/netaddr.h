/* netaddr.h: IP addresses and networks as values, and the ranges that need a rule of their
 * own. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct csn_netaddr {
    uint8_t family; /* 4 or 6; 0: none */
    uint8_t bytes[16];
} csn_netaddr;

typedef struct csn_netcidr {
    csn_netaddr base; /* no bit set after `bits` */
    uint8_t bits;
} csn_netcidr;

#define CSN_NETADDR_TEXT 48u /* room for any address, "[...]" and NUL included */

/* From network byte order. An IPv4-mapped address (::ffff:1.2.3.4) becomes the IPv4 one, to
 * which the kernel sends it. */
csn_netaddr csn_netaddr_v4(const uint8_t bytes[4]);
csn_netaddr csn_netaddr_v6(const uint8_t bytes[16]);
/* "192.0.2.1" (four decimal parts, no leading zeros) or "2001:db8::1" (no brackets, no
 * zone). */
bool csn_netaddr_parse(const char *text, size_t len, csn_netaddr *ret);
/* The canonical text, without brackets. Returns buf. */
const char *csn_netaddr_text(const csn_netaddr *a, char buf[CSN_NETADDR_TEXT]);
bool csn_netaddr_equal(const csn_netaddr *a, const csn_netaddr *b);

/* ADDRESS or ADDRESS/BITS; bits set after the prefix are refused. *why as for
 * csn_domain_parse. */
bool csn_netcidr_parse(const char *text, size_t len, csn_netcidr *ret, const char **why);
bool csn_netcidr_has(const csn_netcidr *net, const csn_netaddr *a);
/* Is all of `inner` in `outer`? */
bool csn_netcidr_covers(const csn_netcidr *outer, const csn_netcidr *inner);
/* The network of `bits` that a is in. */
csn_netcidr csn_netcidr_of(const csn_netaddr *a, unsigned bits);

/* The IPv4 address embedded in an IPv6 one: NAT64 (64:ff9b::/96, 64:ff9b:1::/48), 6to4, Teredo,
 * IPv4-compatible, IPv4-translated, ISATAP. */
bool csn_netaddr_embedded(const csn_netaddr *a, csn_netaddr *ret);

/* A range that only a rule for an address or network in it opens, not a name or `all`. */
typedef struct csn_netrange {
    const char *name; /* "loopback", "private", "metadata" ... */
    csn_netcidr net;
    bool offer; /* may a hint offer the rule that opens it? never for metadata services */
} csn_netrange;

/* The narrowest such range of a (or of its embedded IPv4 address); NULL: public. Static. */
const csn_netrange *csn_netaddr_refused(const csn_netaddr *a);
