/* netaddr.h: IP addresses and networks as values, and which of them are nobody's business.
 *
 * Pure bytes: no socket types, so that rules compiled in the library and in the gateway read
 * the same. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct csn_netaddr {
    uint8_t family; /* 4 or 6; 0: none */
    uint8_t bytes[16];
} csn_netaddr;

typedef struct csn_netcidr {
    csn_netaddr base; /* no bit set behind `bits` */
    uint8_t bits;
} csn_netcidr;

#define CSN_NETADDR_TEXT 48u /* room for any address, "[...]" and NUL included */

/* From the bytes of the wire or of a sockaddr. A v4-mapped address (::ffff:1.2.3.4) becomes the
 * v4 one: that is where the kernel sends it. */
csn_netaddr csn_netaddr_v4(const uint8_t bytes[4]);
csn_netaddr csn_netaddr_v6(const uint8_t bytes[16]);
/* "192.0.2.1" (four decimal parts, no leading zeros) or "2001:db8::1" (no brackets, no zone).
 */
bool csn_netaddr_parse(const char *text, size_t len, csn_netaddr *ret);
/* The canonical text, without brackets. Returns buf. */
const char *csn_netaddr_text(const csn_netaddr *a, char buf[CSN_NETADDR_TEXT]);
bool csn_netaddr_equal(const csn_netaddr *a, const csn_netaddr *b);

/* ADDRESS or ADDRESS/BITS. Bits set behind the prefix are refused: one of the two is wrong.
 * *why (may be NULL) as for csn_domain_parse. */
bool csn_netcidr_parse(const char *text, size_t len, csn_netcidr *ret, const char **why);
bool csn_netcidr_has(const csn_netcidr *net, const csn_netaddr *a);
/* Is all of `inner` in `outer`? */
bool csn_netcidr_covers(const csn_netcidr *outer, const csn_netcidr *inner);
/* The network of `bits` that a is in. */
csn_netcidr csn_netcidr_of(const csn_netaddr *a, unsigned bits);

/* The v4 address that a v6 one stands for: NAT64 (64:ff9b::/96, 64:ff9b:1::/48), 6to4, Teredo,
 * v4-compatible, v4-translated, ISATAP. Whoever routes it ends at that v4 address. */
bool csn_netaddr_embedded(const csn_netaddr *a, csn_netaddr *ret);

/* A range that no name and no `all` opens, only a rule that names an address or network in it.
 */
typedef struct csn_netrange {
    const char *name; /* "loopback", "private", "metadata" ... */
    csn_netcidr net;
    bool offer; /* may a hint offer the rule that opens it? never for metadata services */
} csn_netrange;

/* The narrowest such range that a (or the v4 address in it) is in; NULL: public. A NULL-named
 * range does not exist. Borrows static memory. */
const csn_netrange *csn_netaddr_refused(const csn_netaddr *a);
