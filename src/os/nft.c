/* nft.c: installs one fixed nf_tables ruleset as one nfnetlink batch.
 *
 * A keeper calls this while it builds the network of a jail, before any command runs; the rules
 * have no input. Commands run in a second user namespace, made later, and therefore cannot
 * change them. Invariants: the kernel applies all rules or none, and its answer is read;
 * nothing is allocated and only the stack is written, because the caller may share its memory
 * with another process (keeper/boot/helper.h).
 *
 * The constants are copies of the kernel's, because a musl compiler has no kernel headers. */
#include "os/nft.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "os/netlink.h"

#define NETLINK_NETFILTER  12
#define MSG_BATCH_BEGIN    0x10u
#define MSG_BATCH_END      0x11u
#define SUBSYS_NFTABLES    10u
#define MSG_NEWTABLE       ((SUBSYS_NFTABLES << 8) | 0u)
#define MSG_NEWCHAIN       ((SUBSYS_NFTABLES << 8) | 3u)
#define MSG_NEWRULE        ((SUBSYS_NFTABLES << 8) | 6u)
#define FAMILY_INET        1u
#define HOOK_PREROUTING    0u
#define HOOK_OUTPUT        3u
#define PRIORITY_MANGLE    ((uint32_t)-150)
#define PRIORITY_NAT       ((uint32_t)-100)
#define PRIORITY_FILTER    0u
#define VERDICT_DROP       0u
#define VERDICT_ACCEPT     1u
#define REG_VERDICT        0u
#define REG_1              1u
#define REG_2              2u
#define BASE_NETWORK       1u
#define BASE_TRANSPORT     2u
#define META_NFPROTO       15u
#define META_L4PROTO       16u
#define CMP_EQ             0u
#define CMP_NEQ            1u
#define NAT_DNAT           1u
#define REJECT_RESET       1u
#define REJECT_ICMPX       2u
#define ICMPX_ADMIN        3u
#define FAMILY_IPV4        2u /* values of meta nfproto */
#define FAMILY_IPV6        10u
#define ICMP_UNREACHABLE   3u
#define ICMPV6_UNREACHABLE 1u

/* Attribute numbers, by the object they are in. */
enum { TABLE_NAME = 1 };
enum { CHAIN_TABLE = 1, CHAIN_NAME = 3, CHAIN_HOOK = 4, CHAIN_POLICY = 5, CHAIN_TYPE = 7 };
enum { HOOK_NUM = 1, HOOK_PRIORITY = 2 };
enum { RULE_TABLE = 1, RULE_CHAIN = 2, RULE_EXPRESSIONS = 4 };
enum { LIST_ELEM = 1 };
enum { EXPR_NAME = 1, EXPR_DATA = 2 };
enum { DATA_VALUE = 1, DATA_VERDICT = 2 };
enum { VERDICT_CODE = 1 };
enum { IMMEDIATE_DREG = 1, IMMEDIATE_DATA = 2 };
enum { META_DREG = 1, META_KEY = 2 };
enum { PAYLOAD_DREG = 1, PAYLOAD_BASE = 2, PAYLOAD_OFFSET = 3, PAYLOAD_LEN = 4 };
enum { CMP_SREG = 1, CMP_OP = 2, CMP_DATA = 3 };
enum { BITWISE_SREG = 1, BITWISE_DREG = 2, BITWISE_LEN = 3, BITWISE_MASK = 4, BITWISE_XOR = 5 };
enum { NAT_TYPE = 1, NAT_FAMILY = 2, NAT_ADDR_MIN = 3, NAT_PROTO_MIN = 5 };
enum { TPROXY_FAMILY = 1, TPROXY_ADDR = 2, TPROXY_PORT = 3 };
enum { REJECT_TYPE = 1, REJECT_CODE = 2 };

/* ---- the ruleset ---- */

#define TABLE     "caisson"
#define BYTES_MAX 16 /* an IPv6 address */

/* One comparison. base 0: of the meta value `at`; else of `len` bytes at offset `at`. */
typedef struct match {
    uint8_t base, at, len; /* len 0: no more */
    uint8_t op;
    uint8_t mask[4]; /* {0}: none; else len is at most 4 */
    uint8_t value[BYTES_MAX];
} match;

enum action { ACCEPT, TO_LISTENER4, TO_LISTENER6, RESET, REJECT };

enum { TPROXY = 1 << CSN_NFT_TPROXY, DNAT = 1 << CSN_NFT_DNAT, BOTH = TPROXY | DNAT };
enum { TO_GATEWAY, CLOSED };
static const char chains[][12] = {[TO_GATEWAY] = "to_gateway", [CLOSED] = "closed"};

typedef struct rule {
    uint8_t methods; /* bit set: the methods that have this rule */
    uint8_t chain;
    uint8_t action; /* enum action */
    match matches[4];
} rule;

/* clang-format off */
#define V4_BYTES(a) (a) >> 24 & 255, (a) >> 16 & 255, (a) >> 8 & 255, (a) & 255
#define NFPROTO(p)  {.at = META_NFPROTO, .len = 1, .value = {p}}
#define L4PROTO(p)  {.at = META_L4PROTO, .len = 1, .value = {p}}
#define SRC4(a)     NFPROTO(FAMILY_IPV4), {BASE_NETWORK, 12, 4, .value = {V4_BYTES(a)}}
#define DST4(a)     NFPROTO(FAMILY_IPV4), {BASE_NETWORK, 16, 4, .value = {V4_BYTES(a)}}
#define SRC6(a)     NFPROTO(FAMILY_IPV6), {BASE_NETWORK, 8, 16, .value = a}
#define DST6(a)     NFPROTO(FAMILY_IPV6), {BASE_NETWORK, 24, 16, .value = a}
#define DST4_RANGE  NFPROTO(FAMILY_IPV4), {BASE_NETWORK, 16, 4, .mask = {0xff, 0xfe}, \
                                           .value = {V4_BYTES(CSN_NET_RANGE4)}}
#define DST6_RANGE  NFPROTO(FAMILY_IPV6), {BASE_NETWORK, 24, CSN_NET_RANGE6_BITS / 8, \
                                           .value = CSN_NET_RANGE6}
#define LOOPBACK4   NFPROTO(FAMILY_IPV4), {BASE_NETWORK, 16, 1, .value = {127}}
#define LOOPBACK6   DST6("\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\1")
#define SPORT_DNS   {BASE_TRANSPORT, 0, 2, .value = {0, CSN_NET_RESOLVER_PORT}}
#define DPORT_DNS   {BASE_TRANSPORT, 2, 2, .value = {0, CSN_NET_RESOLVER_PORT}}
#define ICMP(type)  {BASE_TRANSPORT, 0, 1, .value = {type}}
#define NOT_SYN     {BASE_TRANSPORT, 13, 1, CMP_NEQ, .mask = {0x12}, .value = {0x02}} /* flags */
#define TCP         L4PROTO(IPPROTO_TCP)
#define UDP         L4PROTO(IPPROTO_UDP)

static const rule rules[] = {
    /* Every TCP connection ends at the listener, except to loopback and the resolver. Most
     * packets belong to open connections; the kernel finds their socket without a rule. */
    {TPROXY, TO_GATEWAY, ACCEPT, {TCP, NOT_SYN}},
    {BOTH, TO_GATEWAY, ACCEPT, {LOOPBACK4}},
    {BOTH, TO_GATEWAY, ACCEPT, {LOOPBACK6}},
    {BOTH, TO_GATEWAY, ACCEPT, {DST4(CSN_NET_SELF4), TCP, DPORT_DNS}},
    {BOTH, TO_GATEWAY, ACCEPT, {DST6(CSN_NET_SELF6), TCP, DPORT_DNS}},
    {BOTH, TO_GATEWAY, TO_LISTENER4, {NFPROTO(FAMILY_IPV4), TCP}},
    {BOTH, TO_GATEWAY, TO_LISTENER6, {NFPROTO(FAMILY_IPV6), TCP}},
    /* Without a listener the packet is reset, so that it reaches no other socket. */
    {TPROXY, TO_GATEWAY, RESET, {TCP}},

    /* Everything else is rejected. Connection tracking would cost a tenth of a request, so only
     * DNAT, which rewrites destinations into the range, uses it. */
    {TPROXY, CLOSED, ACCEPT, {TCP}},
    {DNAT, CLOSED, ACCEPT, {TCP, DST4_RANGE}},
    {DNAT, CLOSED, ACCEPT, {TCP, DST6_RANGE}},
    {BOTH, CLOSED, ACCEPT, {LOOPBACK4}},
    {BOTH, CLOSED, ACCEPT, {LOOPBACK6}},
    {BOTH, CLOSED, ACCEPT, {DST4(CSN_NET_SELF4), UDP, DPORT_DNS}},
    {BOTH, CLOSED, ACCEPT, {DST6(CSN_NET_SELF6), UDP, DPORT_DNS}},
    {BOTH, CLOSED, ACCEPT, {SRC4(CSN_NET_SELF4), UDP, SPORT_DNS}},
    {BOTH, CLOSED, ACCEPT, {SRC6(CSN_NET_SELF6), UDP, SPORT_DNS}},
    /* Lets ICMP errors through, so that clients notice at once when the resolver has ended. */
    {BOTH, CLOSED, ACCEPT, {DST4(CSN_NET_SELF4), L4PROTO(IPPROTO_ICMP), ICMP(ICMP_UNREACHABLE)}},
    {BOTH, CLOSED, ACCEPT, {DST6(CSN_NET_SELF6), L4PROTO(IPPROTO_ICMPV6), ICMP(ICMPV6_UNREACHABLE)}},
    {BOTH, CLOSED, REJECT, {{0}}},
};
/* clang-format on */

_Static_assert(CSN_NET_RANGE4_BITS == 15 && CSN_NET_RANGE6_BITS % 8 == 0, "DST4_RANGE");

/* ---- expressions ---- */

typedef struct expression {
    size_t elem, data;
} expression;

static expression begin_expression(csn_nl *b, const char *name)
{
    expression e = {.elem = csn_nl_open(b, LIST_ELEM)};

    csn_nl_put_text(b, EXPR_NAME, name);
    e.data = csn_nl_open(b, EXPR_DATA);
    return e;
}

static void end_expression(csn_nl *b, expression e)
{
    csn_nl_close(b, e.data);
    csn_nl_close(b, e.elem);
}

/* An expression whose attributes 1, 2, ... are these numbers. */
static void put_expression(csn_nl *b, const char *name, const uint32_t *values, uint16_t count)
{
    expression e = begin_expression(b, name);

    for (uint16_t i = 0; i < count; i++)
        csn_nl_put_be32(b, (uint16_t)(i + 1), values[i]);
    end_expression(b, e);
}

static void put_value(csn_nl *b, uint16_t type, const void *data, size_t n)
{
    size_t nest = csn_nl_open(b, type);

    csn_nl_put(b, DATA_VALUE, data, n);
    csn_nl_close(b, nest);
}

static void put_mask(csn_nl *b, const match *m)
{
    const uint8_t zero[sizeof(m->mask)] = {0};
    expression e = begin_expression(b, "bitwise");

    csn_nl_put_be32(b, BITWISE_SREG, REG_1);
    csn_nl_put_be32(b, BITWISE_DREG, REG_1);
    csn_nl_put_be32(b, BITWISE_LEN, m->len);
    put_value(b, BITWISE_MASK, m->mask, m->len);
    put_value(b, BITWISE_XOR, zero, m->len);
    end_expression(b, e);
}

static void put_match(csn_nl *b, const match *m)
{
    if (m->base == 0)
        put_expression(b, "meta", (uint32_t[]){[META_DREG - 1] = REG_1, [META_KEY - 1] = m->at},
                       2);
    else
        put_expression(b, "payload",
                       (uint32_t[]){[PAYLOAD_DREG - 1] = REG_1,
                                    [PAYLOAD_BASE - 1] = m->base,
                                    [PAYLOAD_OFFSET - 1] = m->at,
                                    [PAYLOAD_LEN - 1] = m->len},
                       4);
    if (m->mask[0])
        put_mask(b, m);
    expression e = begin_expression(b, "cmp");
    csn_nl_put_be32(b, CMP_SREG, REG_1);
    csn_nl_put_be32(b, CMP_OP, m->op);
    put_value(b, CMP_DATA, m->value, m->len);
    end_expression(b, e);
}

static void put_accept(csn_nl *b)
{
    expression e = begin_expression(b, "immediate");

    csn_nl_put_be32(b, IMMEDIATE_DREG, REG_VERDICT);
    size_t data = csn_nl_open(b, IMMEDIATE_DATA), verdict = csn_nl_open(b, DATA_VERDICT);
    csn_nl_put_be32(b, VERDICT_CODE, VERDICT_ACCEPT);
    csn_nl_close(b, verdict);
    csn_nl_close(b, data);
    end_expression(b, e);
}

static void load(csn_nl *b, uint32_t reg, const void *data, size_t n)
{
    expression e = begin_expression(b, "immediate");

    csn_nl_put_be32(b, IMMEDIATE_DREG, reg);
    put_value(b, IMMEDIATE_DATA, data, n);
    end_expression(b, e);
}

static void put_redirect(csn_nl *b, csn_nft_method method, uint8_t family)
{
    const uint32_t self4 = htonl(CSN_NET_SELF4);
    const uint16_t port = htons(CSN_NET_LISTENER_PORT);

    if (family == FAMILY_IPV4)
        load(b, REG_1, &self4, sizeof(self4));
    else
        load(b, REG_1, CSN_NET_SELF6, BYTES_MAX);
    load(b, REG_2, &port, sizeof(port));
    if (method == CSN_NFT_TPROXY) {
        put_expression(b, "tproxy",
                       (uint32_t[]){[TPROXY_FAMILY - 1] = family,
                                    [TPROXY_ADDR - 1] = REG_1,
                                    [TPROXY_PORT - 1] = REG_2},
                       3);
        put_accept(b);
        return;
    }
    expression e = begin_expression(b, "nat");
    csn_nl_put_be32(b, NAT_TYPE, NAT_DNAT);
    csn_nl_put_be32(b, NAT_FAMILY, family);
    csn_nl_put_be32(b, NAT_ADDR_MIN, REG_1);
    csn_nl_put_be32(b, NAT_PROTO_MIN, REG_2);
    end_expression(b, e);
}

static void put_reject(csn_nl *b, uint32_t type, uint8_t code)
{
    expression e = begin_expression(b, "reject");

    csn_nl_put_be32(b, REJECT_TYPE, type);
    csn_nl_put(b, REJECT_CODE, &code, sizeof(code));
    end_expression(b, e);
}

static void put_action(csn_nl *b, csn_nft_method method, uint8_t action)
{
    switch (action) {
    case ACCEPT:
        put_accept(b);
        break;
    case TO_LISTENER4:
        put_redirect(b, method, FAMILY_IPV4);
        break;
    case TO_LISTENER6:
        put_redirect(b, method, FAMILY_IPV6);
        break;
    case RESET:
        put_reject(b, REJECT_RESET, 0);
        break;
    default:
        put_reject(b, REJECT_ICMPX, ICMPX_ADMIN);
    }
}

/* ---- messages ---- */

/* struct nfgenmsg */
struct nfgenmsg {
    uint8_t family, version;
    uint16_t resource; /* big endian */
};

static void begin_message(csn_nl *b, uint16_t type, uint16_t flags, csn_nft_step step)
{
    const struct nfgenmsg h = {.family = FAMILY_INET};

    csn_nl_begin(b, type, CSN_NL_CREATE | flags, (uint8_t)step, &h, sizeof(h));
}

static void put_batch_mark(csn_nl *b, uint16_t type)
{
    const struct nfgenmsg h = {.resource = htons(SUBSYS_NFTABLES)};

    csn_nl_begin(b, type, 0, CSN_NFT_TABLE, &h, sizeof(h));
    csn_nl_end(b);
}

static void put_table(csn_nl *b)
{
    begin_message(b, MSG_NEWTABLE, 0, CSN_NFT_TABLE);
    csn_nl_put_text(b, TABLE_NAME, TABLE);
    csn_nl_end(b);
}

static void put_chain(csn_nl *b, const char *name, const char *type, uint32_t hooknum,
                      uint32_t priority, uint32_t policy)
{
    begin_message(b, MSG_NEWCHAIN, 0, CSN_NFT_CHAIN);
    csn_nl_put_text(b, CHAIN_TABLE, TABLE);
    csn_nl_put_text(b, CHAIN_NAME, name);
    size_t hook = csn_nl_open(b, CHAIN_HOOK);
    csn_nl_put_be32(b, HOOK_NUM, hooknum);
    csn_nl_put_be32(b, HOOK_PRIORITY, priority);
    csn_nl_close(b, hook);
    csn_nl_put_be32(b, CHAIN_POLICY, policy);
    csn_nl_put_text(b, CHAIN_TYPE, type);
    csn_nl_end(b);
}

/* The last rule asks for an acknowledgement, so that the kernel always answers the batch. */
static void put_rule(csn_nl *b, csn_nft_method method, const rule *r)
{
    static const uint8_t steps[] = {[ACCEPT] = CSN_NFT_MATCH,
                                    [TO_LISTENER4] = CSN_NFT_REDIRECT,
                                    [TO_LISTENER6] = CSN_NFT_REDIRECT,
                                    [RESET] = CSN_NFT_REDIRECT,
                                    [REJECT] = CSN_NFT_REJECT};

    begin_message(b, MSG_NEWRULE, CSN_NL_APPEND | (r->action == REJECT ? CSN_NL_ACK : 0),
                  steps[r->action]);
    csn_nl_put_text(b, RULE_TABLE, TABLE);
    csn_nl_put_text(b, RULE_CHAIN, chains[r->chain]);
    size_t list = csn_nl_open(b, RULE_EXPRESSIONS);
    for (size_t i = 0; i < sizeof(r->matches) / sizeof(r->matches[0]); i++)
        if (r->matches[i].len > 0)
            put_match(b, &r->matches[i]);
    put_action(b, method, r->action);
    csn_nl_close(b, list);
    csn_nl_end(b);
}

static void put_batch(csn_nl *b, csn_nft_method method)
{
    put_batch_mark(b, MSG_BATCH_BEGIN);
    put_table(b);
    if (method == CSN_NFT_TPROXY)
        put_chain(b, chains[TO_GATEWAY], "filter", HOOK_PREROUTING, PRIORITY_MANGLE,
                  VERDICT_ACCEPT);
    else
        put_chain(b, chains[TO_GATEWAY], "nat", HOOK_OUTPUT, PRIORITY_NAT, VERDICT_ACCEPT);
    put_chain(b, chains[CLOSED], "filter", HOOK_OUTPUT, PRIORITY_FILTER, VERDICT_DROP);
    for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++)
        if (rules[i].methods & 1u << method)
            put_rule(b, method, &rules[i]);
    put_batch_mark(b, MSG_BATCH_END);
}

int csn_nft_redirect(csn_nft_method method, csn_nft_step *ret_step)
{
    csn_nl b = {.len = 0};
    uint32_t seq = 0;
    int error = 0;

    *ret_step = CSN_NFT_SOCKET;
    put_batch(&b, method);
    csn_autofd int fd = csn_nl_send(&b, NETLINK_NETFILTER);
    if (fd < 0)
        return fd;
    *ret_step = CSN_NFT_TABLE;
    int rc = csn_nl_answer(fd, &seq, &error);
    if (rc <= 0)
        return rc < 0 ? rc : -EPROTO;
    if (error < 0 && seq < b.count)
        *ret_step = (csn_nft_step)b.steps[seq];
    return error;
}

bool csn_nft_unsupported(int error)
{
    return error == -ENOENT || /* no such expression */
           error == -EINVAL || /* netlink without nf_tables */
           error == -EOPNOTSUPP || error == -EPROTONOSUPPORT || error == -EAFNOSUPPORT;
}

const char *csn_nft_step_name(uint64_t step)
{
    static const char *const names[] = {[CSN_NFT_SOCKET] = "nfnetlink",
                                        [CSN_NFT_TABLE] = "nf_tables",
                                        [CSN_NFT_CHAIN] = "chains",
                                        [CSN_NFT_MATCH] = "matches",
                                        [CSN_NFT_REDIRECT] = "nft_tproxy and nft_nat",
                                        [CSN_NFT_REJECT] = "nft_reject_inet"};

    return step < sizeof(names) / sizeof(names[0]) ? names[step] : "unknown";
}
