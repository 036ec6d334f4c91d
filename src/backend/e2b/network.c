/* network.c: translates network rules to E2B's.
 *
 * E2B has lists of allowed and denied hosts, without ports; it denies addresses but not names,
 * and an allowed host wins over a denied one, while caisson's rules say the opposite. Rules
 * that would change their meaning are refused before a sandbox is created. */
#include <stdio.h>
#include <string.h>

#include "backend/e2b/e2b.h"
#include "base/error.h"
#include "policy/netrules.h"

#define ALL_TRAFFIC "0.0.0.0/0"

static csn_status cannot(const char *rule, const char *why, csn_error **err)
{
    return csn_fail(err, CSN_UNSUPPORTED, "backend 'e2b' cannot honour '%s': %s", rule, why);
}

static csn_status check_rule(const char *text, bool allow, csn_error **err)
{
    const char *why = "invalid";
    csn_netrule rule;

    if (!csn_netrule_parse(text, &rule, &why))
        return csn_fail(err, CSN_INVALID, "network rule '%s': %s", text, why);
    if (rule.port_count > 0)
        return cannot(text, "its network rules have no ports", err);
    if (rule.kind == CSN_NETRULE_NET && rule.net.base.family == 6)
        return cannot(text, "its network rules are IPv4 only", err);
    if (!allow && rule.kind != CSN_NETRULE_NET)
        return cannot(text, "it denies addresses and networks, not names", err);
    return CSN_OK;
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
                        "backend 'e2b' cannot honour allow and deny rules together: what it "
                        "allows wins over what it denies");
    if (allow && is_mode(c, "all"))
        return csn_fail(err, CSN_UNSUPPORTED,
                        "backend 'e2b' cannot honour allow rules together with network 'all'");
    for (size_t i = 0; allow && c->net_allow[i] && st == CSN_OK; i++)
        st = check_rule(c->net_allow[i], true, err);
    for (size_t i = 0; deny && c->net_deny[i] && st == CSN_OK; i++)
        st = check_rule(c->net_deny[i], false, err);
    return st;
}

/* As name, *.name or address/bits. */
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

/* An allow list denies everything else. */
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
