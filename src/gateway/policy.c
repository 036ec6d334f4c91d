/* policy.c: what the rules say of a connection, and the events that tell of it.
 *
 * Asked by flow.c before anything is dialled, by inspect.c and proxy.c when the bytes name
 * another host, and by control.c when the rules have changed. Names and addresses are the
 * attacker's; the judgement is policy/netrules's. */
#include <errno.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gateway/gateway.h"

#define OWN_MAX     1024u
#define OWN_KEEP_NS 5000000000ull

/* ---- this host ------------------------------------------------------------------------- */

/* Addresses of the host come and go; services that listen on all of them think of the host's
 * neighbours, not of programs inside. */
static void look_at_own(gw_gateway *g)
{
    struct ifaddrs *list = NULL;
    uint16_t port;

    g->own_ns = g->loop.now_ns + OWN_KEEP_NS;
    if (getifaddrs(&list) < 0)
        return;
    g->own_count = 0;
    if (!g->own)
        g->own = calloc(OWN_MAX, sizeof(*g->own));
    for (const struct ifaddrs *i = list; i && g->own && g->own_count < OWN_MAX;
         i = i->ifa_next) {
        struct sockaddr_storage ss = {0};
        if (!i->ifa_addr)
            continue;
        if (i->ifa_addr->sa_family == AF_INET)
            memcpy(&ss, i->ifa_addr, sizeof(struct sockaddr_in));
        else if (i->ifa_addr->sa_family == AF_INET6)
            memcpy(&ss, i->ifa_addr, sizeof(struct sockaddr_in6));
        else
            continue;
        gw_sockaddr_read(&ss, &g->own[g->own_count++], &port);
    }
    freeifaddrs(list);
}

static const char *own_range(gw_gateway *g, const csn_netaddr *a)
{
    if (g->own_ns <= g->loop.now_ns)
        look_at_own(g);
    for (size_t i = 0; i < g->own_count; i++)
        if (csn_netaddr_equal(&g->own[i], a))
            return "this host";
    return NULL;
}

/* ---- verdicts -------------------------------------------------------------------------- */

/* The rule is copied: an update frees the rules, and a flow may outlive many. */
bool gw_policy_target(gw_flow *f, csn_netverdict *ret)
{
    const csn_netrules *rules = f->gate->rules;

    if (f->to.name.len > 0)
        csn_netrules_name(rules, &f->to.name, f->to.port, ret);
    else
        csn_netrules_address(rules, &f->to.addr, f->to.port, ret);
    if (f->to.name.len > 0)
        gw_exec_rules_name(f->narrow, &f->to.name, f->to.port, ret);
    else
        gw_exec_rules_address(f->narrow, &f->to.addr, f->to.port, ret);
    snprintf(f->rule, sizeof(f->rule), "%s", ret->rule ? ret->rule : "");
    return ret->allowed;
}

size_t gw_policy_addresses(gw_flow *f, csn_netaddr *addrs, size_t n, csn_netverdict *ret)
{
    size_t good = 0;

    for (size_t i = 0; i < n; i++) {
        csn_netverdict v;
        csn_netrules_dial(f->gate->rules, &addrs[i], f->to.port, own_range(f->gate, &addrs[i]),
                          &v);
        if (v.allowed)
            addrs[good++] = addrs[i];
        if (!v.allowed && i == 0) {
            *ret = v;
            f->peer = addrs[0]; /* for the record */
        }
    }
    return good;
}

static bool is_ruled(const gw_flow *f)
{
    return f->way == CSN_WAY_REDIRECT || f->way == CSN_WAY_PROXY;
}

bool gw_policy_peer(gw_flow *f)
{
    csn_netaddr peer = f->peer;
    gw_refusal r = {0};

    if (!is_ruled(f) || gw_policy_addresses(f, &peer, 1, &r.verdict) == 1)
        return true;
    gw_flow_refuse(f, &r);
    return false;
}

int gw_policy_refuse_later(gw_flow *f, const csn_domain *name, const char *why)
{
    gw_refusal *r = f->refusal ? f->refusal : calloc(1, sizeof(*r));

    if (!r)
        return -ENOMEM;
    f->refusal = r;
    if (name) {
        /* Were it asked for by its own name, what would the rules say? That gives the hint. */
        csn_netrules_name(f->gate->rules, name, f->to.port, &r->verdict);
        r->name = *name;
        if (r->verdict.allowed)
            r->verdict.rule = NULL; /* it was not that which decided */
    }
    r->verdict.allowed = false;
    snprintf(r->verdict.why, sizeof(r->verdict.why), "%s", why);
    return -EACCES;
}

/* A peer that was dialled under the old rules must be dialled under the new ones too. */
static bool still_allowed(gw_flow *f, csn_netverdict *v)
{
    csn_netaddr peer = f->peer;

    if (!gw_policy_target(f, v))
        return false;
    return f->far.io.fd < 0 || gw_policy_addresses(f, &peer, 1, v) == 1;
}

/* Also those that are only being dialled; what is not judged yet meets the new rules anyway. */
void gw_policy_recheck(gw_gateway *g)
{
    for (gw_flow *f = g->flows, *next; f; f = next) {
        csn_netverdict v;
        next = f->next;
        if (!is_ruled(f) || f->leaving || f->to.port == 0 || still_allowed(f, &v))
            continue;
        if (f->far.io.fd >= 0) {
            gw_record_close(f, "the rules changed");
        } else {
            gw_refusal r = {.verdict = v};
            gw_record_refusal(f, &r);
        }
        gw_flow_cut(f);
    }
}

/* ---- events ---------------------------------------------------------------------------- */

/* `up` is out of the sandbox, whoever began. The address is the one dialled, if it came so far.
 */
static void record(gw_flow *f, csn_gateway_event *e)
{
    const csn_netaddr *a = f->peer.family ? &f->peer : &f->to.addr;
    bool outward = f->way != CSN_WAY_PUBLISHED;
    char text[CSN_NETADDR_TEXT];

    e->proto = f->way == CSN_WAY_PUBLISHED ? CSN_GATEWAY_PUBLISHED
               : f->way == CSN_WAY_LENT    ? CSN_GATEWAY_LENT
                                           : f->proto;
    e->address = a->family ? csn_netaddr_text(a, text) : "";
    if (!e->name)
        e->name = f->to.name.len > 0 ? f->to.name.text : f->said.text;
    e->port = f->to.port;
    e->up = outward ? f->there.bytes : f->back.bytes;
    e->down = outward ? f->back.bytes : f->there.bytes;
    e->ms = (f->gate->loop.now_ns - f->started_ns) / 1000000;
    gw_events_add(f->gate->events, e);
}

void gw_record_refusal(gw_flow *f, const gw_refusal *r)
{
    csn_gateway_event e = {.kind = CSN_GATEWAY_CONNECT,
                           .verdict = CSN_GATEWAY_DENY,
                           .name = r->name.len > 0 ? r->name.text : NULL,
                           .rule = r->verdict.rule,
                           .hint = r->verdict.hint,
                           .why = r->verdict.why};

    record(f, &e);
}

void gw_record_connect(gw_flow *f, const char *why)
{
    csn_gateway_event e = {.kind = CSN_GATEWAY_CONNECT, .rule = f->rule, .why = why};

    record(f, &e);
}

void gw_record_close(gw_flow *f, const char *why)
{
    csn_gateway_event e = {.kind = CSN_GATEWAY_CLOSE, .rule = f->rule, .why = why};

    record(f, &e);
}

const char *gw_why_errno(int error)
{
    switch (error) {
    case ECONNREFUSED:
        return "connection refused";
    case ETIMEDOUT:
        return "timed out";
    case EHOSTUNREACH:
        return "no address, or no way there";
    case ENETUNREACH:
    case EADDRNOTAVAIL:
    case EAFNOSUPPORT:
        return "no way there";
    case ECONNRESET:
        return "connection reset";
    case EAGAIN:
        return "too many names are being resolved";
    case ENOMEM:
    case ENOBUFS:
    case EMFILE:
    case ENFILE:
        return "the gateway has no room";
    default:
        return "could not connect";
    }
}
