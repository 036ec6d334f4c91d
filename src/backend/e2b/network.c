/* network.c: which network rules E2B can keep as they are meant, and how it is told.
 *
 * Called by check, before there is a sandbox, and by create. The provider's rules are lists of
 * hosts: no ports, no names in what is denied, and what is allowed wins over what is denied,
 * while ours say the opposite. What would mean something else there is refused here. */
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
    const char *why = "it is no network rule";
    csn_netrule rule;

    if (!csn_netrule_parse(text, &rule, &why)) /* the core has looked, too */
        return csn_fail(err, CSN_INVALID, "'%s' is no network rule: %s", text, why);
    if (rule.port_count > 0)
        return cannot(text, "its network rules have no ports", err);
    if (rule.kind == CSN_NETRULE_NET && rule.net.base.family == 6)
        return cannot(text, "its network rules are known for IPv4 only", err);
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
    bool some = c->net_allow && c->net_allow[0], others = c->net_deny && c->net_deny[0];
    csn_status st = CSN_OK;

    if (some && others)
        return csn_fail(err, CSN_UNSUPPORTED,
                        "backend 'e2b' cannot honour allow and deny rules together: what it "
                        "allows wins over what it denies");
    if (some && is_mode(c, "all"))
        return csn_fail(err, CSN_UNSUPPORTED,
                        "backend 'e2b' cannot honour allow rules beside network 'all'");
    for (size_t i = 0; some && c->net_allow[i] && st == CSN_OK; i++)
        st = check_rule(c->net_allow[i], true, err);
    for (size_t i = 0; others && c->net_deny[i] && st == CSN_OK; i++)
        st = check_rule(c->net_deny[i], false, err);
    return st;
}

/* In the provider's form: name, *.name, address/bits. */
static void put_rule(csn_json *j, const char *text)
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

static void put_list(csn_json *j, const char *key, const char *const *list)
{
    csn_json_key(j, key);
    csn_json_array(j);
    for (size_t i = 0; list && list[i]; i++)
        put_rule(j, list[i]);
    csn_json_array_end(j);
}

/* Allowing some means denying the rest. */
void csn_e2b_put_network(csn_json *j, const csn_config *c)
{
    static const char *const all[] = {ALL_TRAFFIC, NULL};
    bool some = c->net_allow && c->net_allow[0], others = c->net_deny && c->net_deny[0];

    if (!some && (is_mode(c, "none") || (c->net_allow && !is_mode(c, "all"))))
        csn_json_kbool(j, "allow_internet_access", false);
    else if (some || others) {
        csn_json_key(j, "network");
        csn_json_object(j);
        if (some)
            put_list(j, "allowOut", c->net_allow);
        put_list(j, "denyOut", some ? all : c->net_deny);
        csn_json_object_end(j);
    }
}
