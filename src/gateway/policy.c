/* policy.c: decides whether a flow is allowed and records the decision.
 *
 * The rules are evaluated by policy/netrules. An attacker chooses the names and addresses. */
#include <errno.h>
#include <ifaddrs.h>
#include <stdio.h>
#include <stdlib.h>

#include "gateway/gateway.h"
#include "gateway/socket.h"

#define HOST_ADDRS_MAX    1024u
#define HOST_ADDRS_TTL_NS 5000000000ull

/* ---- host addresses -------------------------------------------------------------------- */

/* The host's own addresses are refused like loopback, because services that listen on all
 * interfaces are not meant for programs inside. The addresses may change and are re-read when
 * the cached list expires. */
static void refresh_host_addrs(gw_gateway *g)
{
    struct ifaddrs *list = NULL;
    uint16_t port;

    g->host_addrs_until_ns = g->loop.now_ns + HOST_ADDRS_TTL_NS;
    if (getifaddrs(&list) < 0)
        return;
    g->host_addr_count = 0;
    if (!g->host_addrs)
        g->host_addrs = calloc(HOST_ADDRS_MAX, sizeof(*g->host_addrs));
    for (const struct ifaddrs *i = list;
         i && g->host_addrs && g->host_addr_count < HOST_ADDRS_MAX; i = i->ifa_next) {
        csn_netaddr *a = &g->host_addrs[g->host_addr_count];
        if (!i->ifa_addr)
            continue;
        gw_sockaddr_to_netaddr(i->ifa_addr, a, &port);
        g->host_addr_count += a->family != 0;
    }
    freeifaddrs(list);
}

static const char *host_range(gw_gateway *g, const csn_netaddr *a)
{
    if (g->host_addrs_until_ns <= g->loop.now_ns)
        refresh_host_addrs(g);
    for (size_t i = 0; i < g->host_addr_count; i++)
        if (csn_netaddr_equal(&g->host_addrs[i], a))
            return "this host";
    return NULL;
}

/* ---- verdicts -------------------------------------------------------------------------- */

/* Copies the rule's text: an update frees the rules while the flow still exists. */
bool gw_policy_target(gw_flow *f, csn_netverdict *ret)
{
    const csn_netrules *rules = f->gateway->rules;

    if (f->target.name.len > 0) {
        csn_netrules_name(rules, &f->target.name, f->target.port, ret);
        gw_exec_rules_name(f->exec_rules, &f->target.name, f->target.port, ret);
    } else {
        csn_netrules_address(rules, &f->target.addr, f->target.port, ret);
        gw_exec_rules_address(f->exec_rules, &f->target.addr, f->target.port, ret);
    }
    snprintf(f->rule, sizeof(f->rule), "%s", ret->rule ? ret->rule : "");
    return ret->allowed;
}

size_t gw_policy_addresses(gw_flow *f, csn_netaddr *addrs, size_t n, csn_netverdict *ret)
{
    size_t good = 0;

    for (size_t i = 0; i < n; i++) {
        csn_netverdict v;
        csn_netrules_dial(f->gateway->rules, &f->target.name, &addrs[i], f->target.port,
                          host_range(f->gateway, &addrs[i]), &v);
        if (v.allowed)
            addrs[good++] = addrs[i];
        if (!v.allowed && i == 0) {
            *ret = v;
            f->peer = addrs[0]; /* for the event */
        }
    }
    return good;
}

static bool has_rules(const gw_flow *f)
{
    return f->origin == GW_ORIGIN_REDIRECT || f->origin == GW_ORIGIN_PROXY;
}

bool gw_policy_peer(gw_flow *f)
{
    csn_netaddr peer = f->peer;
    gw_refusal r = {0};

    if (!has_rules(f) || gw_policy_addresses(f, &peer, 1, &r.verdict) == 1)
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
        /* Evaluate the name as if it were the target, to get the hint. */
        csn_netrules_name(f->gateway->rules, name, f->target.port, &r->verdict);
        r->name = *name;
        if (r->verdict.allowed)
            r->verdict.rule = NULL;
    }
    r->verdict.allowed = false;
    snprintf(r->verdict.why, sizeof(r->verdict.why), "%s", why);
    return -EACCES;
}

static bool still_allowed(gw_flow *f, csn_netverdict *v)
{
    csn_netaddr peer = f->peer;

    if (!gw_policy_target(f, v))
        return false;
    return f->server.io.fd < 0 || gw_policy_addresses(f, &peer, 1, v) == 1;
}

/* Also rechecks flows that are still dialling. Flows without a target are skipped: they are
 * checked when the target is set. */
void gw_policy_recheck(gw_gateway *g)
{
    for (gw_flow *f = g->flows, *next; f; f = next) {
        csn_netverdict v;
        next = f->next;
        if (!has_rules(f) || f->lingering || f->target.port == 0 || still_allowed(f, &v))
            continue;
        if (f->server.io.fd >= 0) {
            gw_record_close(f, "the rules changed");
        } else {
            gw_refusal r = {.verdict = v};
            gw_record_refusal(f, &r);
        }
        gw_flow_reset(f);
    }
}

/* ---- events ---------------------------------------------------------------------------- */

/* `up` counts bytes that leave the sandbox, for connections in either direction. */
static void record(gw_flow *f, csn_gateway_event *e)
{
    const csn_netaddr *a = f->peer.family ? &f->peer : &f->target.addr;
    bool outward = f->origin != GW_ORIGIN_PUBLISHED;
    char text[CSN_NETADDR_TEXT];

    e->proto = f->origin == GW_ORIGIN_PUBLISHED   ? CSN_GATEWAY_PUBLISHED
               : f->origin == GW_ORIGIN_HOST_PORT ? CSN_GATEWAY_HOST_PORT
                                                  : f->proto;
    e->address = a->family ? csn_netaddr_text(a, text) : "";
    if (!e->name)
        e->name = f->target.name.len > 0 ? f->target.name.text : f->observed_name.text;
    e->port = f->target.port;
    e->up = outward ? f->to_server.bytes : f->to_client.bytes;
    e->down = outward ? f->to_client.bytes : f->to_server.bytes;
    e->ms = (f->gateway->loop.now_ns - f->started_ns) / 1000000;
    gw_events_add(f->gateway->events, e);
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

const char *gw_errno_text(int error)
{
    switch (error) {
    case ECONNREFUSED:
        return "connection refused";
    case ETIMEDOUT:
        return "timed out";
    case EHOSTUNREACH:
        return "no address found, or no route to the host";
    case ENETUNREACH:
    case EADDRNOTAVAIL:
    case EAFNOSUPPORT:
        return "no route to the host";
    case ECONNRESET:
        return "connection reset";
    case EAGAIN:
        return "too many pending lookups";
    case ENOMEM:
    case ENOBUFS:
    case EMFILE:
    case ENFILE:
        return "out of memory or descriptors";
    default:
        return "could not connect";
    }
}
