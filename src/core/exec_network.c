/* exec_network.c: restricts the network of one call, and checks one host for csn_would_allow.
 *
 * A call may restrict its network to some domains or package managers; the names are untrusted.
 * Invariant: a call gets nothing that the rules of the sandbox do not permit; anything else is
 * refused before the command runs, with the rule that would allow it. The rules may be replaced
 * at any time: the backend checks them again for every connection. */
#include <stdio.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/path.h"
#include "base/strv.h"
#include "core/api_network.h"
#include "core/config.h"
#include "core/internal.h"
#include "core/packages.h"
#include "core/state.h"
#include "policy/netrules.h"

/* ---- the rules of the sandbox ---- */

static csn_status compile(const csn_sandbox *sb, const csn_config *now, csn_netrules **ret,
                          csn_error **err)
{
    CSN_CLEANUP(csn_strv_freep) char **allow = NULL;
    int e = 0;

    for (size_t i = 0; now->net_allow && now->net_allow[i] && e == 0; i++)
        e = csn_strv_push(&allow, now->net_allow[i]);
    if (e != 0)
        return csn_fail(err, CSN_NOMEM, "network rules");
    csn_status st = csn_packages_rules(sb->config, now->packages, &allow, err);
    if (st < 0)
        return st;
    return csn_netrules_new(now->network, (const char *const *)allow, now->net_deny, ret, err);
}

/* Another process may have replaced the rules of a detached sandbox: read its record. */
static csn_status rules_now(csn_sandbox *sb, csn_netrules **ret, csn_error **err)
{
    csn_state_meta *m = NULL;

    if (sb->config->flags & CSN_OPEN_DETACHED) {
        csn_status st = csn_state_load(sb->id, &m, err);
        if (st < 0)
            return st;
    }
    pthread_mutex_lock(&sb->lock);
    csn_status st = compile(sb,
                            m             ? m->config
                            : sb->current ? sb->current
                                          : sb->config,
                            ret, err);
    pthread_mutex_unlock(&sb->lock);
    csn_state_meta_free(m);
    return st;
}

/* ---- the rules of a call ---- */

static csn_status deny(csn_status st, const char *target, const char *hint, csn_error **err)
{
    const csn_denial d = {.op = "net",
                          .target = target,
                          .rule = "no rule of the sandbox permits it",
                          .source = "config.network",
                          .hint = hint};

    return csn_error_deny(csn_error_advise(st, err, "create the sandbox with %s", hint), err,
                          &d);
}

static csn_status take_domains(const csn_netrules *policy, const char *const *domains,
                               char ***rules, csn_error **err)
{
    for (size_t i = 0; domains && domains[i]; i++) {
        const char *const one[] = {domains[i], NULL};
        csn_netrule rule;
        if (csn_netrule_parse(domains[i], &rule, NULL) && csn_netrule_is_loopback(&rule))
            return csn_fail(err, CSN_UNSUPPORTED,
                            "allowed_domains[%zu]: %s: a command with network rules of its own "
                            "has a loopback of its own, without the ports of this machine",
                            i, domains[i]);
        csn_status st = csn_netrules_subset(policy, "allowed_domains", one, err);
        if (st == CSN_DENIED) {
            csn_autofree char *hint = NULL;
            if (asprintf(&hint, "--allow %s", domains[i]) < 0)
                return csn_fail(err, CSN_NOMEM, "allowed_domains");
            return deny(st, domains[i], hint, err);
        }
        if (st < 0)
            return st;
        if (csn_strv_push(rules, domains[i]) != 0)
            return csn_fail(err, CSN_NOMEM, "allowed_domains");
    }
    return CSN_OK;
}

/* Adds the hosts of a preset that the sandbox may reach: a private mirror alone may be enough.
 * Refuses the preset if the sandbox may reach none of them. */
static csn_status take_preset(const csn_sandbox *sb, const csn_netrules *policy,
                              const char *name, char ***rules, csn_error **err)
{
    const char *const one[] = {name, NULL};
    CSN_CLEANUP(csn_strv_freep) char **all = NULL;
    size_t taken = 0;

    csn_status st = csn_packages_rules(sb->config, one, &all, err);
    for (size_t i = 0; st == CSN_OK && all && all[i]; i++) {
        const char *const rule[] = {all[i], NULL};
        if (csn_netrules_subset(policy, "package_managers", rule, NULL) != CSN_OK)
            continue;
        taken++;
        if (csn_strv_push(rules, all[i]) != 0)
            st = csn_fail(err, CSN_NOMEM, "package_managers");
    }
    if (st < 0 || taken > 0)
        return st;
    char hint[64];
    snprintf(hint, sizeof(hint), "--packages %s", name);
    return deny(csn_fail(err, CSN_DENIED,
                         "package_managers: nothing of %s is within the network policy of the "
                         "sandbox",
                         name),
                name, hint, err);
}

csn_status csn_network_restrict(csn_sandbox *sb, const csn_exec_opts *o, char ***ret,
                                csn_error **err)
{
    CSN_CLEANUP(csn_strv_freep) char **rules = NULL;
    csn_netrules *policy = NULL;

    *ret = NULL;
    if (!o->allowed_domains && !o->package_managers)
        return CSN_OK;
    csn_status st = csn_packages_check(o->package_managers, "package_managers", err);
    if (st == CSN_OK)
        st = rules_now(sb, &policy, err);
    if (st == CSN_OK)
        st = take_domains(policy, o->allowed_domains, &rules, err);
    for (size_t i = 0; st == CSN_OK && o->package_managers && o->package_managers[i]; i++)
        st = take_preset(sb, policy, o->package_managers[i], &rules, err);
    csn_netrules_free(policy);
    if (st == CSN_OK && !rules && !(rules = calloc(1, sizeof(*rules)))) /* empty: no host */
        st = csn_fail(err, CSN_NOMEM, "allowed_domains");
    if (st == CSN_OK)
        *ret = CSN_STEAL(rules);
    return st;
}

/* ---- csn_would_allow ---- */

/* A port of this machine. The loopback inside is the sandbox's own: only a lent port leads out.
 */
static csn_status would_lend(const csn_sandbox *sb, const char *target, uint16_t port,
                             csn_error **err)
{
    const csn_config *c = sb->expanded ? sb->expanded : sb->config;
    csn_autofree char *shown = csn_path_printable(target);
    char hint[32];

    if (csn_config_lends_port(c, port))
        return CSN_OK;
    snprintf(hint, sizeof(hint), "--host-port %u", port);
    const csn_denial d = {.op = "net",
                          .target = target,
                          .rule = "loopback is private to the sandbox",
                          .source = "config.network",
                          .hint = hint};
    return csn_error_deny(csn_fail(err, CSN_DENIED,
                                   "%s: loopback is private to the sandbox, and this port of "
                                   "this machine is not lent",
                                   shown ? shown : "it"),
                          err, &d);
}

/* A name without a port is allowed if any port of it is. The name is not resolved: a check must
 * not send a DNS query. */
csn_status csn_network_would_allow(csn_sandbox *sb, const char *target, csn_error **err)
{
    csn_autofree char *shown = csn_path_printable(target);
    csn_netrules *policy = NULL;
    const char *why = NULL;
    csn_netverdict v = {0};
    csn_netrule t;

    if (!csn_netrule_parse(target, &t, &why) || t.kind == CSN_NETRULE_BELOW || t.port_count > 1)
        return csn_fail(err, CSN_INVALID, "%s is no HOST or HOST:PORT%s%s",
                        shown ? shown : "it", why ? ": " : "", why ? why : "");
    if (t.kind == CSN_NETRULE_NET && t.port_count == 0)
        return csn_fail(err, CSN_INVALID, "an address needs a port, such as %s:443", shown);
    if (csn_netrule_is_loopback(&t) && t.port_count > 0)
        return would_lend(sb, target, t.ports[0], err);
    csn_status st = rules_now(sb, &policy, err);
    if (st < 0)
        return st;
    if (t.kind == CSN_NETRULE_NET)
        csn_netrules_address(policy, &t.net.base, t.ports[0], &v);
    else if (t.port_count > 0)
        csn_netrules_name(policy, &t.name, t.ports[0], &v);
    else
        csn_netrules_lookup(policy, &t.name, &v);
    if (!v.allowed) {
        char hint[CSN_NETRULE_TEXT + 16];
        snprintf(hint, sizeof(hint), "--allow %s", v.hint);
        const csn_denial d = {.op = "net",
                              .target = target,
                              .rule = v.rule ? v.rule : v.why,
                              .source = "config.network",
                              .hint = v.hint[0] ? hint : v.why};
        st = csn_error_deny(csn_fail(err, CSN_DENIED, "%s: %s", shown ? shown : "it", v.why),
                            err, &d);
    }
    csn_netrules_free(policy);
    return st;
}
