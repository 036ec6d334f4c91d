/* network.c: translates network rules to the lists of the E2B API.
 *
 * E2B has lists of allowed and denied hosts, without ports. It can deny addresses but not
 * names, and an allowed host overrides a denied one; in caisson deny overrides allow. Rules
 * that would change their meaning are refused before a sandbox is created. */
#include <stdio.h>
#include <string.h>

#include "backend/e2b/e2b.h"
#include "base/error.h"
#include "policy/netrules.h"

#define ALL_TRAFFIC "0.0.0.0/0"

static csn_status check_rule(const char *text, bool allow, size_t i, csn_error **err)
{
    const char *option = allow ? "network.allow" : "network.deny", *lacks = NULL;
    const char *why = "invalid";
    csn_netrule rule;

    if (!csn_netrule_parse(text, &rule, &why))
        return csn_fail(err, CSN_INVALID, "%s[%zu]: %s is no network rule: %s", option, i, text,
                        why);
    if (rule.port_count > 0)
        lacks = "ports in network rules";
    else if (rule.kind == CSN_NETRULE_NET && rule.net.base.family == 6)
        lacks = "network rules for IPv6";
    else if (!allow && rule.kind != CSN_NETRULE_NET)
        lacks = "names in deny rules, only addresses";
    if (!lacks)
        return CSN_OK;
    return csn_fail(err, CSN_UNSUPPORTED, "%s[%zu]: %s: backend 'e2b' does not support %s",
                    option, i, text, lacks);
}

static bool is_mode(const csn_config *c, const char *mode)
{
    return c->network && strcmp(c->network, mode) == 0;
}

csn_status csn_e2b_check_network(const csn_config *c, csn_error **err)
{
    bool allow = c->net_allow && c->net_allow[0], deny = c->net_deny && c->net_deny[0];
    csn_status st = CSN_OK;

    if (allow && deny)
        return csn_fail(err, CSN_UNSUPPORTED,
                        "network.deny: backend 'e2b' does not support deny rules together with "
                        "allow rules");
    if (allow && is_mode(c, "all"))
        return csn_fail(err, CSN_UNSUPPORTED,
                        "network.allow: backend 'e2b' does not support allow rules together "
                        "with network 'all'");
    for (size_t i = 0; allow && c->net_allow[i] && st == CSN_OK; i++)
        st = check_rule(c->net_allow[i], true, i, err);
    for (size_t i = 0; deny && c->net_deny[i] && st == CSN_OK; i++)
        st = check_rule(c->net_deny[i], false, i, err);
    return st;
}

/* Writes the rule as name, *.name or address/bits. */
static void json_rule(csn_json *j, const char *text)
{
    char out[CSN_NETRULE_TEXT], addr[CSN_NETADDR_TEXT];
    csn_netrule rule;

    if (!csn_netrule_parse(text, &rule, NULL))
        return;
    if (rule.kind == CSN_NETRULE_NET)
        snprintf(out, sizeof(out), "%s/%u", csn_netaddr_text(&rule.net.base, addr),
                 rule.net.bits);
    else
        snprintf(out, sizeof(out), "%s%s", rule.kind == CSN_NETRULE_BELOW ? "*." : "",
                 rule.name.text);
    csn_json_str(j, out);
}

static void json_rules(csn_json *j, const char *key, const char *const *list)
{
    csn_json_key(j, key);
    csn_json_array(j);
    for (size_t i = 0; list && list[i]; i++)
        json_rule(j, list[i]);
    csn_json_array_end(j);
}

/* With an allow list, everything else is denied explicitly. */
void csn_e2b_json_network(csn_json *j, const csn_config *c)
{
    static const char *const all[] = {ALL_TRAFFIC, NULL};
    bool allow = c->net_allow && c->net_allow[0], deny = c->net_deny && c->net_deny[0];

    if (!allow && (is_mode(c, "none") || (c->net_allow && !is_mode(c, "all"))))
        csn_json_kbool(j, "allow_internet_access", false);
    else if (allow || deny) {
        csn_json_key(j, "network");
        csn_json_object(j);
        if (allow)
            json_rules(j, "allowOut", c->net_allow);
        json_rules(j, "denyOut", allow ? all : c->net_deny);
        csn_json_object_end(j);
    }
}
