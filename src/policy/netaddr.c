/* netaddr.c: parse and print IP addresses and networks; find embedded IPv4 addresses and
 * refused ranges.
 *
 * An attacker controls the addresses: the owner of an allowed name chooses its DNS answer,
 * which must not lead to this host, its network or a cloud's credential service. Invariant: an
 * address that any translation turns into a refused one is refused in every spelling. */
#include "policy/netaddr.h"

#include <arpa/inet.h>
#include <string.h>

#include "base/strv.h"

/* ---- values ---- */

csn_netaddr csn_netaddr_v4(const uint8_t bytes[4])
{
    csn_netaddr a = {.family = 4};

    memcpy(a.bytes, bytes, 4);
    return a;
}

csn_netaddr csn_netaddr_v6(const uint8_t bytes[16])
{
    static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
    csn_netaddr a = {.family = 6};

    if (memcmp(bytes, mapped, sizeof(mapped)) == 0)
        return csn_netaddr_v4(bytes + 12);
    memcpy(a.bytes, bytes, 16);
    return a;
}

bool csn_netaddr_equal(const csn_netaddr *a, const csn_netaddr *b)
{
    return a->family == b->family && memcmp(a->bytes, b->bytes, sizeof(a->bytes)) == 0;
}

/* inet_pton is strict (four parts, no octal, no zone); inet_aton is not. */
bool csn_netaddr_parse(const char *text, size_t len, csn_netaddr *ret)
{
    char copy[CSN_NETADDR_TEXT];
    uint8_t bytes[16];

    if (len == 0 || len >= sizeof(copy) || memchr(text, '\0', len))
        return false;
    memcpy(copy, text, len);
    copy[len] = '\0';
    if (inet_pton(AF_INET, copy, bytes) == 1)
        *ret = csn_netaddr_v4(bytes);
    else if (inet_pton(AF_INET6, copy, bytes) == 1)
        *ret = csn_netaddr_v6(bytes);
    else
        return false;
    return true;
}

const char *csn_netaddr_text(const csn_netaddr *a, char buf[CSN_NETADDR_TEXT])
{
    if (!inet_ntop(a->family == 4 ? AF_INET : AF_INET6, a->bytes, buf, CSN_NETADDR_TEXT))
        buf[0] = '\0';
    return buf;
}

/* ---- networks ---- */

static unsigned width(const csn_netaddr *a)
{
    return a->family == 4 ? 32 : 128;
}

csn_netcidr csn_netcidr_of(const csn_netaddr *a, unsigned bits)
{
    csn_netcidr net = {.base = *a};

    if (bits > width(a))
        bits = width(a);
    net.bits = (uint8_t)bits;
    for (unsigned i = 0; i < sizeof(net.base.bytes); i++) {
        unsigned kept = bits > i * 8 ? bits - i * 8 : 0;
        if (kept < 8)
            net.base.bytes[i] &= (uint8_t)(0xff00u >> kept);
    }
    return net;
}

bool csn_netcidr_has(const csn_netcidr *net, const csn_netaddr *a)
{
    if (net->base.family != a->family)
        return false;
    csn_netcidr same = csn_netcidr_of(a, net->bits);
    return csn_netaddr_equal(&same.base, &net->base);
}

bool csn_netcidr_covers(const csn_netcidr *outer, const csn_netcidr *inner)
{
    return outer->bits <= inner->bits && csn_netcidr_has(outer, &inner->base);
}

static bool fault(const char **why, const char *text)
{
    if (why)
        *why = text;
    return false;
}

static bool parse_bits(const char *text, size_t len, unsigned max, unsigned *ret)
{
    char copy[4];
    uint64_t n = 0;

    if (len == 0 || len >= sizeof(copy) || (len > 1 && text[0] == '0'))
        return false;
    memcpy(copy, text, len);
    copy[len] = '\0';
    if (strlen(copy) != len || !csn_parse_u64(copy, &n) || n > max)
        return false;
    *ret = (unsigned)n;
    return true;
}

bool csn_netcidr_parse(const char *text, size_t len, csn_netcidr *ret, const char **why)
{
    const char *slash = memchr(text, '/', len);
    size_t head = slash ? (size_t)(slash - text) : len;
    csn_netaddr a;

    if (!csn_netaddr_parse(text, head, &a))
        return fault(why, "it is no IP address");
    unsigned bits = width(&a);
    /* IPv4-mapped networks such as ::ffff:10.0.0.0/104 are refused */
    if (slash && a.family == 4 && memchr(text, ':', head))
        return fault(why, "write a v4-mapped network as a v4 one");
    if (slash && !parse_bits(slash + 1, len - head - 1, bits, &bits))
        return fault(why, "the length of the prefix is no number in its range");
    *ret = csn_netcidr_of(&a, bits);
    if (!csn_netaddr_equal(&ret->base, &a))
        return fault(why, "it has bits set behind its prefix");
    return true;
}

/* ---- v4 inside v6 ---- */

static bool starts(const csn_netaddr *a, const uint8_t *prefix, size_t len)
{
    return memcmp(a->bytes, prefix, len) == 0;
}

static bool is_isatap(const csn_netaddr *a)
{
    return (a->bytes[8] & 0xfdu) == 0 && a->bytes[9] == 0 && a->bytes[10] == 0x5e &&
           a->bytes[11] == 0xfe;
}

bool csn_netaddr_embedded(const csn_netaddr *a, csn_netaddr *ret)
{
    static const uint8_t nat64[12] = {0, 0x64, 0xff, 0x9b},
                         local64[6] = {0, 0x64, 0xff, 0x9b, 0, 1};
    static const uint8_t zero[12], translated[12] = {[8] = 0xff, [9] = 0xff};
    static const uint8_t teredo[4] = {0x20, 0x01}, sixtofour[2] = {0x20, 0x02};
    static const uint8_t one[16] = {[15] = 1};
    uint8_t client[4];

    if (a->family != 6)
        return false;
    if (starts(a, zero, 12)) {
        /* :: and ::1 have ranges of their own */
        if ((a->bytes[12] | a->bytes[13] | a->bytes[14] | a->bytes[15]) == 0 ||
            memcmp(a->bytes, one, 16) == 0)
            return false;
        *ret = csn_netaddr_v4(a->bytes + 12);
    } else if (starts(a, nat64, 12) || starts(a, local64, 6) || starts(a, translated, 12)) {
        *ret = csn_netaddr_v4(a->bytes + 12);
    } else if (starts(a, sixtofour, 2)) {
        *ret = csn_netaddr_v4(a->bytes + 2);
    } else if (starts(a, teredo, 4)) {
        for (int i = 0; i < 4; i++)
            client[i] = a->bytes[12 + i] ^ 0xff;
        *ret = csn_netaddr_v4(client);
    } else if (is_isatap(a)) {
        *ret = csn_netaddr_v4(a->bytes + 12);
    } else {
        return false;
    }
    return true;
}

/* ---- ranges ---- */

#define V4(a, b, c, d, n)                                                                      \
    {                                                                                          \
        {4, {a, b, c, d}}, n                                                                   \
    }
#define V6(n, ...)                                                                             \
    {                                                                                          \
        {6, {__VA_ARGS__}}, n                                                                  \
    }

/* The first match decides, so a narrow row stands before the wider one that contains it. From
 * the registries of special-purpose addresses (RFC 6890 and its successors) and the metadata
 * addresses of clouds. Hints never offer credential services, loopback (use --host-port) and
 * unspecified addresses. */
/* clang-format off */
static const csn_netrange v4_ranges[] = {
    {"metadata",              V4(169, 254, 169, 254, 32), false},
    {"metadata",              V4(169, 254, 170, 2, 32),   false}, /* container credentials */
    {"metadata",              V4(169, 254, 170, 23, 32),  false},
    {"metadata",              V4(169, 254, 42, 42, 32),   false},
    {"metadata",              V4(169, 254, 0, 23, 32),    false},
    {"metadata",              V4(100, 100, 100, 200, 32), false},
    {"metadata",              V4(168, 63, 129, 16, 32),   false}, /* Azure; a public address */
    {"metadata",              V4(192, 0, 0, 192, 32),     false},
    {"unspecified",           V4(0, 0, 0, 0, 32),         false},
    {"broadcast",             V4(255, 255, 255, 255, 32), false},
    {"protocol assignments",  V4(192, 0, 0, 0, 24),       true},
    {"documentation",         V4(192, 0, 2, 0, 24),       true},
    {"6to4 relay",            V4(192, 88, 99, 0, 24),     true},
    {"documentation",         V4(198, 51, 100, 0, 24),    true},
    {"documentation",         V4(203, 0, 113, 0, 24),     true},
    {"link-local",            V4(169, 254, 0, 0, 16),     true},
    {"private",               V4(192, 168, 0, 0, 16),     true},
    {"benchmarking",          V4(198, 18, 0, 0, 15),      true}, /* also the gateway's */
    {"private",               V4(172, 16, 0, 0, 12),      true},
    {"carrier-grade NAT",     V4(100, 64, 0, 0, 10),      true},
    {"this network",          V4(0, 0, 0, 0, 8),          false},
    {"private",               V4(10, 0, 0, 0, 8),         true},
    {"loopback",              V4(127, 0, 0, 0, 8),        false},
    {"multicast",             V4(224, 0, 0, 0, 4),        false},
    {"reserved",              V4(240, 0, 0, 0, 4),        false},
};
static const csn_netrange v6_ranges[] = {
    {"unspecified",           V6(128, 0),                 false},
    {"loopback",              V6(128, [15] = 1),          false},
    {"metadata",              V6(128, 0xfd, 0x00, 0x0e, 0xc2, [14] = 0x02, [15] = 0x54), false},
    {"metadata",              V6(128, 0xfd, 0x00, 0x0e, 0xc2, [15] = 0x23), false},
    {"metadata",              V6(128, 0xfd, 0x20, 0x00, 0xce, [14] = 0x02, [15] = 0x54), false},
    {"metadata",              V6(128, 0xfd, 0x00, 0x00, 0xc1, [12] = 0xa9, 0xfe, 0xa9, 0xfe), false},
    {"metadata",              V6(128, 0xfd, 0x00, 0x00, 0x42, [15] = 0x42), false},
    {"metadata",              V6(128, 0xfe, 0x80, [12] = 0xa9, 0xfe, 0xa9, 0xfe), false},
    {"IPv4-compatible",       V6(96, 0),                  false},
    {"IPv4-translated",       V6(96, [8] = 0xff, [9] = 0xff), false},
    {"discard-only",          V6(64, 0x01, 0x00),         false},
    {"local-use NAT64",       V6(48, 0x00, 0x64, 0xff, 0x9b, 0x00, 0x01), true},
    {"benchmarking",          V6(48, 0x20, 0x01, 0x00, 0x02), true},
    {"documentation",         V6(32, 0x20, 0x01, 0x0d, 0xb8), true},
    {"ORCHID",                V6(28, 0x20, 0x01, 0x00, 0x10), false},
    {"ORCHID",                V6(28, 0x20, 0x01, 0x00, 0x20), false},
    {"documentation",         V6(20, 0x3f, 0xff),         true},
    {"segment routing",       V6(16, 0x5f, 0x00),         false},
    {"link-local",            V6(10, 0xfe, 0x80),         true},
    {"private",               V6(10, 0xfe, 0xc0),         true}, /* formerly site-local */
    {"multicast",             V6(8, 0xff),                false},
    {"private",               V6(7, 0xfc),                true},
};
/* clang-format on */

/* Outside of 2000::/3 only the NAT64 prefix is public. */
static const csn_netrange v6_rest = {"reserved", V6(0, 0), false};
static const csn_netcidr v6_public = V6(3, 0x20), v6_nat64 = V6(96, 0, 0x64, 0xff, 0x9b);

static const csn_netrange *find_range(const csn_netrange *rows, size_t count,
                                      const csn_netaddr *a)
{
    for (size_t i = 0; i < count; i++)
        if (csn_netcidr_has(&rows[i].net, a))
            return &rows[i];
    return NULL;
}

/* The embedded address comes first: for ::127.0.0.1 "loopback" is more specific. */
const csn_netrange *csn_netaddr_refused(const csn_netaddr *a)
{
    const csn_netrange *hit = NULL;
    csn_netaddr inner;

    if (a->family == 4)
        return find_range(v4_ranges, sizeof(v4_ranges) / sizeof(v4_ranges[0]), a);
    if (csn_netaddr_embedded(a, &inner))
        hit = find_range(v4_ranges, sizeof(v4_ranges) / sizeof(v4_ranges[0]), &inner);
    if (!hit)
        hit = find_range(v6_ranges, sizeof(v6_ranges) / sizeof(v6_ranges[0]), a);
    if (!hit && !csn_netcidr_has(&v6_public, a) && !csn_netcidr_has(&v6_nat64, a))
        hit = &v6_rest;
    return hit;
}
