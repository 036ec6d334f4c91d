/* netrules_parse.c: parse one network rule. A rule with two possible readings is refused with
 * the reason. */
#include <string.h>

#include "policy/netport.h"
#include "policy/netrules.h"

#define RULE_BYTES_MAX 1024u

/* A part of the rule text. */
typedef struct span {
    const char *at;
    size_t len;
} span;

static const char *parse_ports(span s, csn_netrule *ret)
{
    while (ret->port_count < CSN_NETRULE_PORTS_MAX) {
        const char *comma = memchr(s.at, ',', s.len);
        size_t n = comma ? (size_t)(comma - s.at) : s.len;
        if (memchr(s.at, '-', n))
            return "ranges of ports are not known; list them: host:80,443";
        if (!csn_port_parse(s.at, n, &ret->ports[ret->port_count]))
            return "a port is a number from 1 to 65535";
        ret->port_count++;
        if (!comma)
            return NULL;
        s = (span){comma + 1, s.len - n - 1};
    }
    return "it lists more than 64 ports";
}

/* [IPv6] or [IPv6/bits], and what follows it. */
static const char *parse_bracket(span s, csn_netrule *ret)
{
    const char *end = memchr(s.at, ']', s.len), *why = NULL;

    if (!end)
        return "the bracket is not closed";
    size_t inner = (size_t)(end - s.at) - 1, rest = s.len - inner - 2;
    if (!memchr(s.at + 1, ':', inner))
        return "brackets are for IPv6 addresses";
    ret->kind = CSN_NETRULE_NET;
    if (!csn_netcidr_parse(s.at + 1, inner, &ret->net, &why))
        return why;
    if (rest == 0)
        return NULL;
    return end[1] == ':' ? parse_ports((span){end + 2, rest - 1}, ret)
                         : "only :PORT may follow the bracket";
}

static const char *parse_name(span host, csn_netrule *ret)
{
    const char *why = NULL;

    if (host.len == 1 && host.at[0] == '*')
        return "everything is the mode `all`, not a rule";
    ret->kind = CSN_NETRULE_NAME;
    if (host.len >= 2 && host.at[0] == '*' && host.at[1] == '.') {
        ret->kind = CSN_NETRULE_BELOW;
        host = (span){host.at + 2, host.len - 2};
    }
    if (memchr(host.at, '*', host.len))
        return "a wildcard is *. in front of a name, and nowhere else";
    return csn_domain_parse(host.at, host.len, &ret->name, &why) ? NULL : why;
}

/* The rest after brackets and "/tcp". */
static const char *parse_plain(span s, csn_netrule *ret)
{
    const char *colon = memchr(s.at, ':', s.len), *why = NULL;
    span host = {s.at, colon ? (size_t)(colon - s.at) : s.len};
    csn_netaddr a;

    if (colon && memchr(colon + 1, ':', s.len - host.len - 1))
        return "write IPv6 addresses in brackets: [fd00::1]:443";
    if (memchr(host.at, '/', host.len)) {
        if (!csn_netaddr_parse(host.at, strcspn(host.at, "/"), &a))
            return "it is neither a host nor a network";
        if (!csn_netcidr_parse(host.at, host.len, &ret->net, &why))
            return why;
        ret->kind = CSN_NETRULE_NET;
    } else if (csn_netaddr_parse(host.at, host.len, &a)) {
        ret->net = csn_netcidr_of(&a, 32);
        ret->kind = CSN_NETRULE_NET;
    } else {
        why = parse_name(host, ret);
        if (why)
            return why;
    }
    return colon ? parse_ports((span){colon + 1, s.len - host.len - 1}, ret) : NULL;
}

static bool ends(span s, const char *tail)
{
    size_t n = strlen(tail);
    return s.len >= n && memcmp(s.at + s.len - n, tail, n) == 0;
}

static const char *parse(span s, csn_netrule *ret)
{
    if (s.len == 0)
        return "it is empty";
    if (s.len > RULE_BYTES_MAX)
        return "it is longer than any rule";
    if (strstr(s.at, "://"))
        return "it is a URL; name only its host";
    if (memchr(s.at, '@', s.len))
        return "it has a user or a password; name only the host";
    if (ends(s, "/private")) {
        s.len -= strlen("/private");
        ret->to_private = true;
    }
    if (ends(s, "/udp"))
        return "udp is not supported; only tcp can be allowed";
    if (ends(s, "/tcp"))
        s.len -= strlen("/tcp");
    const char *why = s.len > 0 && s.at[0] == '[' ? parse_bracket(s, ret) : parse_plain(s, ret);
    if (!why && ret->to_private && ret->kind == CSN_NETRULE_NET)
        return "/private is for names; a rule for an address covers that address";
    return why;
}

bool csn_netrule_parse(const char *text, csn_netrule *ret, const char **why)
{
    *ret = (csn_netrule){.kind = CSN_NETRULE_NAME};
    const char *fault = parse((span){text, strlen(text)}, ret);
    if (fault && why)
        *why = fault;
    return !fault;
}

bool csn_netrule_is_loopback(const csn_netrule *rule)
{
    static const csn_netaddr v4 = {4, {127, 0, 0, 1}}, v6 = {6, {[15] = 1}};
    static const csn_domain localhost = {"localhost", 9};

    if (rule->kind == CSN_NETRULE_NAME)
        return csn_domain_equal(&rule->name, &localhost);
    return rule->kind == CSN_NETRULE_NET &&
           (csn_netaddr_equal(&rule->net.base, &v4)
                ? rule->net.bits == 32
                : csn_netaddr_equal(&rule->net.base, &v6) && rule->net.bits == 128);
}
