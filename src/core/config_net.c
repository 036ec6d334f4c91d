/* config_net.c: checks the network part of a configuration.
 *
 * Every rule is checked when the configuration is read, even if the backend does not support
 * rules: a typing error must not stay hidden until the first refused connection. Rules with the
 * operation net become network rules, so that one list decides and a deny beats every allow.
 * An allow rule for a port of loopback lends that port: inside, loopback is the sandbox's own,
 * so the rule has no other meaning. */
#include "base/cleanup.h"
#include "base/error.h"
#include "base/path.h"
#include "base/strv.h"
#include "core/config.h"
#include "core/packages.h"
#include "policy/netport.h"
#include "policy/netrules.h"

CSN_DEFINE_CLEANUP(csn_netrules, csn_netrules_free)

static csn_status check_ports(const char *const *list, const char *what, bool may_choose,
                              csn_error **err)
{
    for (size_t i = 0; list && list[i]; i++) {
        csn_netport port;
        const char *why = NULL;
        if (csn_netport_parse(list[i], may_choose, &port, &why))
            continue;
        csn_autofree char *shown = csn_path_printable(list[i]);
        return csn_fail(err, CSN_INVALID, "network.%s[%zu]: %s is no port: %s", what, i,
                        shown ? shown : "it", why);
    }
    return CSN_OK;
}

/* Rules that parse and that no list can have: one of the two readings would be silent. */
static csn_status check_hosts(const csn_config *c, csn_error **err)
{
    csn_netrule rule;

    for (size_t i = 0; c->net_allow && c->net_allow[i]; i++) {
        if (!csn_netrule_parse(c->net_allow[i], &rule, NULL) ||
            !csn_netrule_is_loopback(&rule) || rule.port_count > 0)
            continue;
        csn_autofree char *shown = csn_path_printable(c->net_allow[i]);
        csn_status st = csn_fail(err, CSN_INVALID,
                                 "network.allow[%zu]: %s has no port: loopback is private to "
                                 "the sandbox, and single ports of this machine can be lent",
                                 i, shown ? shown : "it");
        return csn_error_advise(st, err, "name the port: --allow %s:PORT or --host-port PORT",
                                c->net_allow[i]);
    }
    for (size_t i = 0; c->net_deny && c->net_deny[i]; i++) {
        if (!csn_netrule_parse(c->net_deny[i], &rule, NULL) || !rule.to_private)
            continue;
        csn_autofree char *shown = csn_path_printable(c->net_deny[i]);
        return csn_fail(err, CSN_INVALID, "network.deny[%zu]: %s: /private is for allow rules",
                        i, shown ? shown : "it");
    }
    return CSN_OK;
}

csn_status csn_config_check_net(const csn_config *c, csn_error **err)
{
    csn_netrules *rules = NULL;
    csn_status st = check_hosts(c, err);

    if (st == CSN_OK && (c->network || c->net_allow || c->net_deny))
        st = csn_netrules_new(c->network, c->net_allow, c->net_deny, &rules, err);
    csn_netrules_free(rules);
    if (st == CSN_OK)
        st = csn_packages_check(c->packages, "network.packages", err);
    if (st == CSN_OK)
        st = check_ports(c->publish, "publish", true, err);
    if (st == CSN_OK)
        st = check_ports(c->host_ports, "host_ports", false, err);
    return st;
}

/* ---- rules of the operation net ---- */

csn_status csn_config_check_host(const char *host, size_t i, csn_error **err)
{
    csn_netrule rule;
    const char *why = NULL;

    if (csn_netrule_parse(host, &rule, &why))
        return CSN_OK;
    csn_autofree char *shown = csn_path_printable(host);
    return csn_fail(err, CSN_INVALID, "rules[%zu]: %s is no network rule: %s", i,
                    shown ? shown : "it", why);
}

/* Appends the hosts of all net rules with this effect to the list. */
static bool add_hosts(csn_arena *a, const csn_config *c, uint32_t allow,
                      const char *const **list)
{
    size_t n = csn_strv_len(*list), had = n;
    const char **all = csn_arena_array(a, n + c->rule_count + 1, sizeof(*all));

    if (!all)
        return false;
    for (size_t i = 0; i < n; i++)
        all[i] = (*list)[i];
    for (size_t i = 0; i < c->rule_count; i++)
        if ((c->rules[i].ops & CSN_OP_NET) && c->rules[i].allow == allow)
            all[n++] = c->rules[i].path;
    all[n] = NULL;
    if (n > had)
        *list = all;
    return true;
}

/* With HOSTPORT:PORT the port inside leads elsewhere, as its owner asked. */
static bool lends(const char *const *host_ports, uint16_t port)
{
    csn_netport p;

    for (size_t i = 0; host_ports && host_ports[i]; i++)
        if (csn_netport_parse(host_ports[i], false, &p, NULL) && p.inside == port)
            return true;
    return false;
}

bool csn_config_lends_port(const csn_config *c, uint16_t port)
{
    return lends(c->host_ports, port);
}

csn_status csn_config_lends(const csn_config *c, const char *const *allow, csn_error **err)
{
    csn_netrule rule;

    for (size_t i = 0; allow && allow[i]; i++) {
        if (!csn_netrule_parse(allow[i], &rule, NULL) || !csn_netrule_is_loopback(&rule))
            continue;
        for (size_t k = 0; k < rule.port_count; k++) {
            if (lends(c->host_ports, rule.ports[k]))
                continue;
            csn_autofree char *shown = csn_path_printable(allow[i]);
            csn_status st = csn_fail(err, CSN_UNSUPPORTED,
                                     "network.allow[%zu]: %s: the ports of this machine that "
                                     "a sandbox reaches are fixed when it is made",
                                     i, shown ? shown : "it");
            return csn_error_advise(st, err, "create the sandbox with --host-port %u",
                                    rule.ports[k]);
        }
    }
    return CSN_OK;
}

/* A deny rule for localhost or its addresses wins here as elsewhere. */
static bool is_denied(const csn_netrules *deny, uint16_t port)
{
    static const csn_domain localhost = {"localhost", 9};
    static const csn_netaddr addrs[] = {{4, {127, 0, 0, 1}}, {6, {[15] = 1}}};
    csn_netverdict v;

    csn_netrules_name(deny, &localhost, port, &v);
    for (size_t i = 0; i < 2 && v.allowed; i++) {
        csn_netrules_address(deny, &addrs[i], port, &v);
        v.allowed = !v.rule || !csn_str_starts(v.rule, "deny ");
    }
    return !v.allowed;
}

static bool is_loopback_rule(const char *text, csn_netrule *ret)
{
    return csn_netrule_parse(text, ret, NULL) && csn_netrule_is_loopback(ret);
}

/* Appends the ports of localhost:PORT, 127.0.0.1:PORT and [::1]:PORT to host_ports. The rules
 * stay where they are: one for an address also covers the names that resolve to it. */
static bool lend_ports(csn_arena *a, csn_config *c)
{
    CSN_CLEANUP(csn_netrules_freep) csn_netrules *deny = NULL;
    size_t had = csn_strv_len(c->host_ports), n = had, room = had;
    csn_netrule rule;

    for (size_t i = 0; c->net_allow && c->net_allow[i]; i++)
        room += is_loopback_rule(c->net_allow[i], &rule) ? rule.port_count : 0;
    if (room == had)
        return true;
    const char **all = csn_arena_array(a, room + 1, sizeof(*all));
    if (!all || csn_netrules_new("all", NULL, c->net_deny, &deny, NULL) != CSN_OK)
        return false;
    for (size_t i = 0; i < had; i++)
        all[i] = c->host_ports[i];
    for (size_t i = 0; c->net_allow[i]; i++)
        for (size_t k = 0; is_loopback_rule(c->net_allow[i], &rule) && k < rule.port_count; k++)
            if (!lends(all, rule.ports[k]) && !is_denied(deny, rule.ports[k]) &&
                !(all[n++] = csn_arena_printf(a, "%u", rule.ports[k])))
                return false;
    if (n > had)
        c->host_ports = all;
    return true;
}

bool csn_config_move_net(csn_arena *a, csn_config *c)
{
    csn_rule *kept = csn_arena_array(a, c->rule_count + 1, sizeof(*kept));
    size_t n = 0;

    if (!kept || !add_hosts(a, c, 1, &c->net_allow) || !add_hosts(a, c, 0, &c->net_deny))
        return false;
    for (size_t i = 0; i < c->rule_count; i++) {
        kept[n] = c->rules[i];
        kept[n].ops &= ~CSN_OP_NET;
        n += kept[n].ops != 0;
    }
    c->rules = n > 0 ? kept : NULL;
    c->rule_count = n;
    return lend_ports(a, c);
}
