/* netrules.c: decide whether a name may be looked up, a connection opened, an address dialled.
 *
 * An attacker controls names, ports and, through DNS, the addresses of allowed names, but not
 * the rules. Invariants: only what a rule or the mode names is allowed; a deny rule beats
 * every allow rule; an address in a refused range is reached only by a rule inside that
 * range. */
#include "policy/netrules.h"

#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/path.h"
#include "policy/netrules_internal.h"

struct csn_netrules {
    csn_arena *arena; /* keys and texts of the rules */
    bool all;
    csn_netside allow, deny;
    csn_netside inward; /* the allow rules with /private, a second time */
};

/* ---- compiling ---- */

void csn_netrules_free(csn_netrules *r)
{
    if (!r)
        return;
    csn_netside_release(&r->allow);
    csn_netside_release(&r->deny);
    csn_netside_release(&r->inward);
    csn_arena_free(r->arena);
    free(r);
}
CSN_DEFINE_CLEANUP(csn_netrules, csn_netrules_free)

/* Inside, localhost is the sandbox itself and does not reach the gateway. */
static bool is_localhost(const csn_domain *name)
{
    static const csn_domain localhost = {"localhost", 9};
    return csn_domain_equal(name, &localhost) || csn_domain_below(name, &localhost);
}

static csn_status bad_rule(const char *what, size_t i, const char *text, const char *why,
                           csn_error **err)
{
    csn_autofree char *shown = csn_path_printable(text);
    return csn_fail(err, CSN_INVALID, "%s[%zu]: %s is no network rule: %s", what, i,
                    shown ? shown : "it", why);
}

static csn_status refuse_localhost(const char *what, size_t i, const char *text,
                                   const csn_netrule *rule, csn_error **err)
{
    csn_autofree char *shown = csn_path_printable(text);
    csn_status st =
        csn_fail(err, CSN_INVALID, "%s[%zu]: %s: loopback is private to the sandbox", what, i,
                 shown ? shown : "it");

    if (rule->port_count == 0)
        return csn_error_advise(
            st, err, "--host-port PORT makes a port of this machine reachable inside");
    return csn_error_advise(st, err,
                            "--host-port %u makes port %u of this machine reachable "
                            "inside",
                            rule->ports[0], rule->ports[0]);
}

static csn_status add_all(csn_netrules *r, bool allow, const char *const *list, csn_error **err)
{
    const char *what = allow ? "network.allow" : "network.deny",
               *word = what + strlen("network.");

    for (size_t i = 0; list && list[i]; i++) {
        csn_netrule rule;
        const char *why = NULL;
        if (i >= CSN_NETRULES_MAX)
            return csn_fail(err, CSN_INVALID, "%s: more than %u rules", what, CSN_NETRULES_MAX);
        if (!csn_netrule_parse(list[i], &rule, &why))
            return bad_rule(what, i, list[i], why, err);
        if (allow && rule.kind != CSN_NETRULE_NET && is_localhost(&rule.name)) {
            if (csn_netrule_is_loopback(&rule) && rule.port_count > 0)
                continue;
            return refuse_localhost(what, i, list[i], &rule, err);
        }
        const char *text = csn_arena_printf(r->arena, "%s %s", word, list[i]);
        if (!text || csn_netside_add(allow ? &r->allow : &r->deny, r->arena, &rule, text) != 0)
            return csn_fail(err, CSN_NOMEM, "network rules");
        if (allow && rule.to_private && csn_netside_add(&r->inward, r->arena, &rule, text) != 0)
            return csn_fail(err, CSN_NOMEM, "network rules");
    }
    csn_netside_seal(allow ? &r->allow : &r->deny);
    if (allow)
        csn_netside_seal(&r->inward);
    return CSN_OK;
}

csn_status csn_netrules_new(const char *mode, const char *const *allow, const char *const *deny,
                            csn_netrules **ret, csn_error **err)
{
    CSN_CLEANUP(csn_netrules_freep) csn_netrules *r = calloc(1, sizeof(*r));

    if (!r || !(r->arena = csn_arena_new()))
        return csn_fail(err, CSN_NOMEM, "network rules");
    if (mode && strcmp(mode, "none") != 0 && strcmp(mode, "all") != 0) {
        csn_autofree char *shown = csn_path_printable(mode);
        return csn_fail(err, CSN_INVALID, "network: %s is neither none nor all",
                        shown ? shown : "it");
    }
    r->all = mode && strcmp(mode, "all") == 0;
    csn_status st = add_all(r, true, allow, err);
    if (st == CSN_OK)
        st = add_all(r, false, deny, err);
    if (st == CSN_OK)
        *ret = CSN_STEAL(r);
    return st;
}

bool csn_netrules_is_closed(const csn_netrules *r)
{
    return !r->all && r->allow.count == 0;
}

/* ---- names ---- */

static void allowed(csn_netverdict *v, const char *rule)
{
    *v = (csn_netverdict){.allowed = true, .rule = rule};
}

__attribute__((format(printf, 3, 4))) static void refused(csn_netverdict *v, const char *rule,
                                                          const char *why, ...)
{
    va_list ap;

    *v = (csn_netverdict){.rule = rule};
    va_start(ap, why);
    (void)vsnprintf(v->why, sizeof(v->why), why, ap);
    va_end(ap);
}

static const char *no_rule(const csn_netrules *r)
{
    return csn_netrules_is_closed(r) ? "network none" : NULL;
}

/* For a name with an underscore the hint is the wildcard above it. port 0: every port. */
static void hint_name(csn_netverdict *v, const csn_domain *name, uint16_t port)
{
    csn_domain checked;
    const char *dot = strchr(name->text, '.'), *wild = "", *text = name->text;

    if (is_localhost(name))
        return;
    if (!csn_domain_parse(text, name->len, &checked, NULL)) {
        if (!dot || !csn_domain_parse(dot + 1, strlen(dot + 1), &checked, NULL))
            return;
        wild = "*.";
        text = dot + 1;
    }
    int n = port ? snprintf(v->hint, sizeof(v->hint), "%s%s:%u", wild, text, port)
                 : snprintf(v->hint, sizeof(v->hint), "%s%s", wild, text);
    if (n < 0 || (size_t)n >= sizeof(v->hint))
        v->hint[0] = '\0';
}

void csn_netrules_name(const csn_netrules *r, const csn_domain *name, uint16_t port,
                       csn_netverdict *ret)
{
    csn_nethits hits;
    const char *rule;

    csn_netside_names(&r->deny, CSN_NETRULE_NAME, name, &hits);
    rule = csn_nethits_port(&hits, port);
    if (rule) {
        refused(ret, rule, "a rule denies it, and a deny rule always wins");
        return;
    }
    csn_netside_names(&r->allow, CSN_NETRULE_NAME, name, &hits);
    rule = csn_nethits_port(&hits, port);
    if (rule || r->all) {
        allowed(ret, rule ? rule : "network all");
        return;
    }
    if (hits.count > 0)
        refused(ret, no_rule(r), "a rule allows this name, but not port %u", port);
    else
        refused(ret, no_rule(r), "no rule allows this name");
    hint_name(ret, name, port);
}

/* The first rule with a port that no deny rule covers. */
static const char *open_port(const csn_nethits *allow, const csn_nethits *deny)
{
    for (size_t i = allow->count; i > 0; i--) {
        const csn_netentry *e = allow->at[i - 1];
        for (size_t k = 0; k < e->port_count; k++)
            if (!csn_nethits_port(deny, e->ports[k].port))
                return e->ports[k].text;
    }
    return NULL;
}

void csn_netrules_lookup(const csn_netrules *r, const csn_domain *name, csn_netverdict *ret)
{
    csn_nethits allow, deny;
    const char *rule;

    csn_netside_names(&r->deny, CSN_NETRULE_NAME, name, &deny);
    rule = csn_nethits_every(&deny);
    if (rule) {
        refused(ret, rule, "a rule denies it, and a deny rule always wins");
        return;
    }
    csn_netside_names(&r->allow, CSN_NETRULE_NAME, name, &allow);
    /* at least one port remains allowed */
    rule = csn_nethits_every(&allow);
    if (!rule)
        rule = open_port(&allow, &deny);
    if (rule || r->all) {
        allowed(ret, rule ? rule : "network all");
    } else if (allow.count > 0) {
        refused(ret, deny.at[deny.count - 1]->ports[0].text,
                "each port that a rule allows is denied by another");
    } else {
        refused(ret, no_rule(r), "no rule allows this name");
        hint_name(ret, name, 0);
    }
}

/* ---- addresses ---- */

static void hint_address(csn_netverdict *v, const csn_netaddr *a, uint16_t port)
{
    char text[CSN_NETADDR_TEXT];

    (void)snprintf(v->hint, sizeof(v->hint), a->family == 4 ? "%s:%u" : "[%s]:%u",
                   csn_netaddr_text(a, text), port);
}

static unsigned full_bits(const csn_netaddr *a)
{
    return a->family == 4 ? 32 : 128;
}

static const char *find_port(const csn_netside *s, const csn_netaddr *a, uint16_t port)
{
    csn_netcidr one = csn_netcidr_of(a, full_bits(a));
    csn_nethits hits;

    csn_netside_nets(s, &one, &hits);
    return csn_nethits_port(&hits, port);
}

/* A deny rule for an IPv4 address also covers IPv6 addresses that embed it. */
static const char *denied(const csn_netrules *r, const csn_netaddr *a, uint16_t port)
{
    csn_netaddr inner;
    const char *rule = find_port(&r->deny, a, port);

    if (!rule && csn_netaddr_embedded(a, &inner))
        rule = find_port(&r->deny, &inner, port);
    return rule;
}

/* The allow rule for the address inside `range` (NULL: any); with exact, only a rule for
 * exactly this address. */
static const char *named(const csn_netrules *r, const csn_netaddr *a, uint16_t port,
                         const csn_netcidr *range, bool exact)
{
    csn_netcidr one = csn_netcidr_of(a, full_bits(a));
    csn_nethits hits;
    const char *rule = NULL;

    csn_netside_nets(&r->allow, &one, &hits);
    for (size_t i = hits.count; i > 0 && !rule; i--) {
        const csn_netentry *e = hits.at[i - 1];
        if (e->net.bits == one.bits ||
            (!exact && (!range || csn_netcidr_covers(range, &e->net))))
            rule = csn_netentry_port(e, port);
    }
    return rule;
}

/* Allow rules for IPv4 also cover the address behind the well-known NAT64 prefix, which hosts
 * without IPv4 use. Other translations need not lead to the address they embed. */
static const char *allowing(const csn_netrules *r, const csn_netaddr *a, uint16_t port,
                            const csn_netrange *range, bool exact)
{
    static const csn_netcidr nat64 = {{6, {0, 0x64, 0xff, 0x9b}}, 96};
    const csn_netcidr *net = range ? &range->net : NULL;
    csn_netaddr inner;
    const char *rule = named(r, a, port, net, exact);

    if (!rule && csn_netcidr_has(&nat64, a) && csn_netaddr_embedded(a, &inner))
        rule = named(r, &inner, port, net, exact);
    return rule;
}

/* literal: the program used the address itself, so a public address alone is not enough. */
static void check_address(const csn_netrules *r, const csn_netaddr *a, uint16_t port,
                          const char *own, bool literal, csn_netverdict *ret)
{
    const csn_netrange *range = csn_netaddr_refused(a);
    const char *rule = denied(r, a, port);
    char text[CSN_NETADDR_TEXT];

    if (rule) {
        refused(ret, rule, "a rule denies it, and a deny rule always wins");
        return;
    }
    rule = allowing(r, a, port, range, own != NULL);
    if (rule) {
        allowed(ret, rule);
        return;
    }
    if (!range && !own && (!literal || r->all)) {
        allowed(ret, r->all ? "network all" : NULL);
        return;
    }
    (void)csn_netaddr_text(a, text);
    if (!range && !own) {
        refused(ret, no_rule(r), "no rule allows the address %s", text);
    } else {
        refused(ret, no_rule(r), "%s is refused (%s) unless a rule names it as an address",
                text, range ? range->name : own);
        ret->range = range ? range->name : own;
    }
    if (!range || range->offer)
        hint_address(ret, a, port);
}

void csn_netrules_address(const csn_netrules *r, const csn_netaddr *a, uint16_t port,
                          csn_netverdict *ret)
{
    check_address(r, a, port, NULL, true, ret);
}

/* The rule with /private that covers this address of the name. Other refused ranges stay
 * closed: the DNS server of the name must not select loopback, a metadata service or a
 * translation. */
static const char *private_rule(const csn_netrules *r, const csn_domain *name,
                                const csn_netaddr *a, uint16_t port)
{
    const csn_netrange *range = csn_netaddr_refused(a);
    csn_nethits hits;

    if (!name || name->len == 0 || !range || strcmp(range->name, "private") != 0 ||
        !csn_netcidr_has(&range->net, a))
        return NULL;
    csn_netside_names(&r->inward, CSN_NETRULE_NAME, name, &hits);
    return csn_nethits_port(&hits, port);
}

void csn_netrules_dial(const csn_netrules *r, const csn_domain *name, const csn_netaddr *a,
                       uint16_t port, const char *own, csn_netverdict *ret)
{
    const char *rule = own ? NULL : private_rule(r, name, a, port);

    if (rule && !denied(r, a, port))
        allowed(ret, rule);
    else
        check_address(r, a, port, own, false, ret);
}

/* ---- rules of one call ---- */

static bool hits_within(const csn_netrules *r, const csn_netrule *rule,
                        const csn_nethits *allow, const csn_nethits *deny)
{
    if (csn_nethits_every(deny))
        return false;
    if (rule->port_count == 0)
        return r->all || csn_nethits_every(allow) || open_port(allow, deny);
    for (size_t i = 0; i < rule->port_count; i++)
        if ((!r->all && !csn_nethits_port(allow, rule->ports[i])) ||
            csn_nethits_port(deny, rule->ports[i]))
            return false;
    return true;
}

static bool rule_within(const csn_netrules *r, const csn_netrule *rule)
{
    csn_nethits allow, deny;

    if (rule->kind != CSN_NETRULE_NET) {
        csn_netside_names(&r->allow, rule->kind, &rule->name, &allow);
        csn_netside_names(&r->deny, rule->kind, &rule->name, &deny);
        return hits_within(r, rule, &allow, &deny);
    }
    csn_netside_nets(&r->allow, &rule->net, &allow);
    csn_netside_nets(&r->deny, &rule->net, &deny);
    /* `all` does not include refused ranges */
    if (allow.count == 0 && csn_netaddr_refused(&rule->net.base))
        return false;
    return hits_within(r, rule, &allow, &deny);
}

csn_status csn_netrules_subset(const csn_netrules *policy, const char *what,
                               const char *const *list, csn_error **err)
{
    for (size_t i = 0; list && list[i]; i++) {
        csn_netrule rule;
        const char *why = NULL;
        if (!csn_netrule_parse(list[i], &rule, &why))
            return bad_rule(what, i, list[i], why, err);
        if (rule_within(policy, &rule))
            continue;
        csn_autofree char *shown = csn_path_printable(list[i]);
        return csn_fail(err, CSN_DENIED,
                        "%s[%zu]: %s is not within the network policy of the sandbox", what, i,
                        shown ? shown : "it");
    }
    return CSN_OK;
}
