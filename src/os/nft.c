/* nft.c: one fixed nf_tables ruleset, written as one nfnetlink batch.
 *
 * Called by a keeper while it builds the network of a jail, before anything of the sandbox
 * exists; the rules have no input. The second user namespace, which comes later, is why nobody
 * inside can change them. What must hold: all rules stand or the caller is told that none does;
 * the kernel's own answer decides, and it is read. Nothing is allocated, and no memory but the
 * stack is written to: the caller may share its memory with somebody (os/netns.c).
 *
 * In words, table inet caisson:
 *   to_gateway (filter, prerouting): packets that open no connection, 127.0.0.0/8, ::1 and TCP
 *     port 53 of the own address: as they are; any other TCP: to the listener (tproxy). When
 *     that is gone: a reset.
 *   closed (filter, output, drop): TCP; loopback; UDP to and from the resolver; "unreachable"
 *     from the own address to itself, so that a resolver that is gone is noticed at once;
 * reject the rest. Nothing of it tracks connections, which would cost a request a tenth of its
 * time. A kernel without tproxy translates addresses instead: to_gateway (nat, output):
 * loopback and the resolver as above; any other TCP: to the listener closed: of TCP only what
 * goes to our ranges, which is that, and its answers.
 *
 * Constants are the kernel's; a musl compiler has no kernel headers. */
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
#define FAMILY_IPV4        2u /* as meta nfproto tells it */
#define FAMILY_IPV6        10u
#define ICMP_UNREACHABLE   3u
#define ICMPV6_UNREACHABLE 1u
#define TABLE              "caisson"
#define CHAIN_LEAD         "to_gateway"
#define CHAIN_FILTER       "closed"

/* Attribute numbers, by the thing they are in. */
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

/* What follows the common head of a message of this family. */
struct own_head {
    uint8_t family, version;
    uint16_t resource; /* big endian */
};

/* ---- messages ---- */

static void begin_message(csn_nl *b, uint16_t type, uint16_t flags, csn_nft_step step)
{
    const struct own_head h = {.family = FAMILY_INET};

    csn_nl_begin(b, type, flags, (uint8_t)step, &h, sizeof(h));
}

static void bare_message(csn_nl *b, uint16_t type)
{
    const struct own_head h = {.resource = htons(SUBSYS_NFTABLES)};

    csn_nl_begin(b, type, 0, CSN_NFT_TABLE, &h, sizeof(h));
    csn_nl_end(b);
}

static void add_table(csn_nl *b)
{
    begin_message(b, MSG_NEWTABLE, CSN_NL_CREATE, CSN_NFT_TABLE);
    csn_nl_put_text(b, TABLE_NAME, TABLE);
    csn_nl_end(b);
}

static void add_chain(csn_nl *b, const char *name, const char *type, uint32_t at,
                      uint32_t priority, uint32_t policy)
{
    begin_message(b, MSG_NEWCHAIN, CSN_NL_CREATE, CSN_NFT_CHAIN);
    csn_nl_put_text(b, CHAIN_TABLE, TABLE);
    csn_nl_put_text(b, CHAIN_NAME, name);
    size_t hook = csn_nl_open(b, CHAIN_HOOK);
    csn_nl_put_be32(b, HOOK_NUM, at);
    csn_nl_put_be32(b, HOOK_PRIORITY, priority);
    csn_nl_close(b, hook);
    csn_nl_put_be32(b, CHAIN_POLICY, policy);
    csn_nl_put_text(b, CHAIN_TYPE, type);
    csn_nl_end(b);
}

typedef struct rule {
    size_t list;
} rule;

static rule begin_rule(csn_nl *b, const char *chain, csn_nft_step step)
{
    begin_message(b, MSG_NEWRULE, CSN_NL_CREATE | CSN_NL_APPEND, step);
    csn_nl_put_text(b, RULE_TABLE, TABLE);
    csn_nl_put_text(b, RULE_CHAIN, chain);
    return (rule){.list = csn_nl_open(b, RULE_EXPRESSIONS)};
}

static void end_rule(csn_nl *b, rule r)
{
    csn_nl_close(b, r.list);
    csn_nl_end(b);
}

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

static void put_value(csn_nl *b, uint16_t type, const void *data, size_t n)
{
    size_t nest = csn_nl_open(b, type);

    csn_nl_put(b, DATA_VALUE, data, n);
    csn_nl_close(b, nest);
}

static void compare(csn_nl *b, uint32_t how, const void *data, size_t n)
{
    expression e = begin_expression(b, "cmp");

    csn_nl_put_be32(b, CMP_SREG, REG_1);
    csn_nl_put_be32(b, CMP_OP, how);
    put_value(b, CMP_DATA, data, n);
    end_expression(b, e);
}

static void equals(csn_nl *b, const void *data, size_t n)
{
    compare(b, CMP_EQ, data, n);
}

static void meta_is(csn_nl *b, uint32_t key, uint8_t value)
{
    expression e = begin_expression(b, "meta");

    csn_nl_put_be32(b, META_DREG, REG_1);
    csn_nl_put_be32(b, META_KEY, key);
    end_expression(b, e);
    equals(b, &value, sizeof(value));
}

static void payload(csn_nl *b, uint32_t base, uint32_t offset, uint32_t n)
{
    expression e = begin_expression(b, "payload");

    csn_nl_put_be32(b, PAYLOAD_DREG, REG_1);
    csn_nl_put_be32(b, PAYLOAD_BASE, base);
    csn_nl_put_be32(b, PAYLOAD_OFFSET, offset);
    csn_nl_put_be32(b, PAYLOAD_LEN, n);
    end_expression(b, e);
}

/* n: at most four bytes. */
static void mask(csn_nl *b, const void *bits, uint32_t n)
{
    const uint32_t none = 0;
    expression e = begin_expression(b, "bitwise");

    csn_nl_put_be32(b, BITWISE_SREG, REG_1);
    csn_nl_put_be32(b, BITWISE_DREG, REG_1);
    csn_nl_put_be32(b, BITWISE_LEN, n);
    put_value(b, BITWISE_MASK, bits, n);
    put_value(b, BITWISE_XOR, &none, n);
    end_expression(b, e);
}

static void accept_it(csn_nl *b)
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

/* ---- what the rules ask ---- */

/* Where the source and the destination stand in the two headers. */
#define V4_SOURCE   12u
#define V4_DEST     16u
#define V6_SOURCE   8u
#define V6_DEST     24u
#define SOURCE_PORT 0u
#define DEST_PORT   2u
#define TCP_FLAGS   13u
#define FLAG_SYN    0x02u
#define FLAG_ACK    0x10u

static void address4(csn_nl *b, uint32_t offset, uint32_t address, uint32_t bits)
{
    uint32_t be = htonl(address), prefix = htonl(~0u << (32 - bits));

    meta_is(b, META_NFPROTO, FAMILY_IPV4);
    payload(b, BASE_NETWORK, offset, sizeof(be));
    if (bits < 32)
        mask(b, &prefix, sizeof(prefix));
    equals(b, &be, sizeof(be));
}

/* bits: whole bytes only. */
static void address6(csn_nl *b, uint32_t offset, const void *address, uint32_t bits)
{
    meta_is(b, META_NFPROTO, FAMILY_IPV6);
    payload(b, BASE_NETWORK, offset, bits / 8);
    equals(b, address, bits / 8);
}

static void port_is(csn_nl *b, uint32_t offset, uint16_t port)
{
    uint16_t be = htons(port);

    payload(b, BASE_TRANSPORT, offset, sizeof(be));
    equals(b, &be, sizeof(be));
}

static void pass_loopback(csn_nl *b, const char *chain)
{
    static const uint8_t one[16] = {[15] = 1};
    rule r = begin_rule(b, chain, CSN_NFT_MATCH);

    address4(b, V4_DEST, INADDR_LOOPBACK & 0xff000000u, 8);
    accept_it(b);
    end_rule(b, r);
    r = begin_rule(b, chain, CSN_NFT_MATCH);
    address6(b, V6_DEST, one, 128);
    accept_it(b);
    end_rule(b, r);
}

/* To the resolver, or from it. */
static void pass_resolver(csn_nl *b, const char *chain, uint8_t protocol, bool from)
{
    rule r = begin_rule(b, chain, CSN_NFT_MATCH);

    address4(b, from ? V4_SOURCE : V4_DEST, CSN_NET_SELF4, 32);
    meta_is(b, META_L4PROTO, protocol);
    port_is(b, from ? SOURCE_PORT : DEST_PORT, CSN_NET_RESOLVER_PORT);
    accept_it(b);
    end_rule(b, r);
    r = begin_rule(b, chain, CSN_NFT_MATCH);
    address6(b, from ? V6_SOURCE : V6_DEST, CSN_NET_SELF6, 128);
    meta_is(b, META_L4PROTO, protocol);
    port_is(b, from ? SOURCE_PORT : DEST_PORT, CSN_NET_RESOLVER_PORT);
    accept_it(b);
    end_rule(b, r);
}

static void pass_tcp_in_ranges(csn_nl *b)
{
    rule r = begin_rule(b, CHAIN_FILTER, CSN_NFT_MATCH);

    meta_is(b, META_L4PROTO, IPPROTO_TCP);
    address4(b, V4_DEST, CSN_NET_RANGE4, CSN_NET_RANGE4_BITS);
    accept_it(b);
    end_rule(b, r);
    r = begin_rule(b, CHAIN_FILTER, CSN_NFT_MATCH);
    meta_is(b, META_L4PROTO, IPPROTO_TCP);
    address6(b, V6_DEST, CSN_NET_RANGE6, CSN_NET_RANGE6_BITS);
    accept_it(b);
    end_rule(b, r);
}

static void pass_tcp(csn_nl *b)
{
    rule r = begin_rule(b, CHAIN_FILTER, CSN_NFT_MATCH);

    meta_is(b, META_L4PROTO, IPPROTO_TCP);
    accept_it(b);
    end_rule(b, r);
}

/* First of its chain: nearly all packets are these, and find their socket by themselves. */
static void pass_opened(csn_nl *b)
{
    const uint8_t both = FLAG_SYN | FLAG_ACK, opens = FLAG_SYN;
    rule r = begin_rule(b, CHAIN_LEAD, CSN_NFT_MATCH);

    meta_is(b, META_L4PROTO, IPPROTO_TCP);
    payload(b, BASE_TRANSPORT, TCP_FLAGS, sizeof(both));
    mask(b, &both, sizeof(both));
    compare(b, CMP_NEQ, &opens, sizeof(opens));
    accept_it(b);
    end_rule(b, r);
}

static void pass_unreachable(csn_nl *b)
{
    static const uint8_t four = ICMP_UNREACHABLE, six = ICMPV6_UNREACHABLE;
    rule r = begin_rule(b, CHAIN_FILTER, CSN_NFT_MATCH);

    address4(b, V4_DEST, CSN_NET_SELF4, 32);
    meta_is(b, META_L4PROTO, IPPROTO_ICMP);
    payload(b, BASE_TRANSPORT, 0, 1);
    equals(b, &four, 1);
    accept_it(b);
    end_rule(b, r);
    r = begin_rule(b, CHAIN_FILTER, CSN_NFT_MATCH);
    address6(b, V6_DEST, CSN_NET_SELF6, 128);
    meta_is(b, META_L4PROTO, IPPROTO_ICMPV6);
    payload(b, BASE_TRANSPORT, 0, 1);
    equals(b, &six, 1);
    accept_it(b);
    end_rule(b, r);
}

static void translate(csn_nl *b, uint8_t family)
{
    expression e = begin_expression(b, "nat");

    csn_nl_put_be32(b, NAT_TYPE, NAT_DNAT);
    csn_nl_put_be32(b, NAT_FAMILY, family);
    csn_nl_put_be32(b, NAT_ADDR_MIN, REG_1);
    csn_nl_put_be32(b, NAT_PROTO_MIN, REG_2);
    end_expression(b, e);
}

static void take(csn_nl *b, uint8_t family)
{
    expression e = begin_expression(b, "tproxy");

    csn_nl_put_be32(b, TPROXY_FAMILY, family);
    csn_nl_put_be32(b, TPROXY_ADDR, REG_1);
    csn_nl_put_be32(b, TPROXY_PORT, REG_2);
    end_expression(b, e);
    accept_it(b);
}

static void lead_to_listener(csn_nl *b, csn_nft_way way, uint8_t family, const void *address,
                             size_t n)
{
    const uint16_t port = htons(CSN_NET_LISTENER_PORT);
    rule r = begin_rule(b, CHAIN_LEAD, CSN_NFT_LEAD);

    meta_is(b, META_NFPROTO, family);
    meta_is(b, META_L4PROTO, IPPROTO_TCP);
    load(b, REG_1, address, n);
    load(b, REG_2, &port, sizeof(port));
    if (way == CSN_NFT_TAKE)
        take(b, family);
    else
        translate(b, family);
    end_rule(b, r);
}

/* What was to be taken and found no listener must not find another. */
static void reset_rest(csn_nl *b)
{
    const uint8_t unused = 0;
    rule r = begin_rule(b, CHAIN_LEAD, CSN_NFT_LEAD);

    meta_is(b, META_L4PROTO, IPPROTO_TCP);
    expression e = begin_expression(b, "reject");
    csn_nl_put_be32(b, REJECT_TYPE, REJECT_RESET);
    csn_nl_put(b, REJECT_CODE, &unused, sizeof(unused));
    end_expression(b, e);
    end_rule(b, r);
}

/* The last rule of all asks for an answer, so there is one whatever happens. */
static void reject_rest(csn_nl *b)
{
    const uint8_t code = ICMPX_ADMIN;

    begin_message(b, MSG_NEWRULE, CSN_NL_CREATE | CSN_NL_APPEND | CSN_NL_ACK, CSN_NFT_REJECT);
    csn_nl_put_text(b, RULE_TABLE, TABLE);
    csn_nl_put_text(b, RULE_CHAIN, CHAIN_FILTER);
    size_t list = csn_nl_open(b, RULE_EXPRESSIONS);
    expression e = begin_expression(b, "reject");
    csn_nl_put_be32(b, REJECT_TYPE, REJECT_ICMPX);
    csn_nl_put(b, REJECT_CODE, &code, sizeof(code));
    end_expression(b, e);
    csn_nl_close(b, list);
    csn_nl_end(b);
}

static void fill(csn_nl *b, csn_nft_way way)
{
    const uint32_t self4 = htonl(CSN_NET_SELF4);
    bool take = way == CSN_NFT_TAKE;

    bare_message(b, MSG_BATCH_BEGIN);
    add_table(b);
    if (take)
        add_chain(b, CHAIN_LEAD, "filter", HOOK_PREROUTING, PRIORITY_MANGLE, VERDICT_ACCEPT);
    else
        add_chain(b, CHAIN_LEAD, "nat", HOOK_OUTPUT, PRIORITY_NAT, VERDICT_ACCEPT);
    add_chain(b, CHAIN_FILTER, "filter", HOOK_OUTPUT, PRIORITY_FILTER, VERDICT_DROP);
    if (take)
        pass_opened(b);
    pass_loopback(b, CHAIN_LEAD);
    pass_resolver(b, CHAIN_LEAD, IPPROTO_TCP, false);
    lead_to_listener(b, way, FAMILY_IPV4, &self4, sizeof(self4));
    lead_to_listener(b, way, FAMILY_IPV6, CSN_NET_SELF6, 16);
    if (take)
        reset_rest(b);
    if (take) /* first: these are all the packets of a stream */
        pass_tcp(b);
    else
        pass_tcp_in_ranges(b);
    pass_loopback(b, CHAIN_FILTER);
    pass_resolver(b, CHAIN_FILTER, IPPROTO_UDP, false);
    pass_resolver(b, CHAIN_FILTER, IPPROTO_UDP, true);
    pass_unreachable(b);
    reject_rest(b);
    bare_message(b, MSG_BATCH_END);
}

/* ---- the kernel's answer ---- */

int csn_nft_redirect(csn_nft_way way, csn_nft_step *ret_step)
{
    csn_nl b = {.len = 0};
    uint32_t seq = 0;
    int error = 0;

    *ret_step = CSN_NFT_SOCKET;
    fill(&b, way);
    csn_autofd int fd = csn_nl_send(&b, NETLINK_NETFILTER);
    if (fd < 0)
        return fd;
    *ret_step = CSN_NFT_TABLE;
    int rc = csn_nl_answer(fd, &seq, &error);
    if (rc <= 0) /* one was asked for */
        return rc < 0 ? rc : -EPROTO;
    if (error < 0 && seq < b.count)
        *ret_step = (csn_nft_step)b.steps[seq];
    return error;
}

int csn_nft_lacking(int error)
{
    switch (error) {
    case -ENOENT: /* no such expression */
    case -EINVAL: /* netlink without nf_tables */
    case -EOPNOTSUPP:
    case -EPROTONOSUPPORT:
    case -EAFNOSUPPORT:
        return 1;
    default:
        return 0;
    }
}

const char *csn_nft_step_name(uint64_t step)
{
    static const char *const names[] = {[CSN_NFT_SOCKET] = "nfnetlink",
                                        [CSN_NFT_TABLE] = "nf_tables",
                                        [CSN_NFT_CHAIN] = "chains",
                                        [CSN_NFT_MATCH] = "matches",
                                        [CSN_NFT_LEAD] = "nft_tproxy and nft_nat",
                                        [CSN_NFT_REJECT] = "nft_reject_inet"};

    return step < sizeof(names) / sizeof(names[0]) ? names[step] : "unknown";
}
