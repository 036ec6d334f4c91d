/* config_net.c: checks the network part of a configuration.
 *
 * Every rule is checked when the configuration is read, even if the backend does not support
 * rules: a typing error must not stay hidden until the first refused connection. Rules with the
 * operation net become network rules, so that one list decides and a deny beats every allow. */
#include "base/cleanup.h"
#include "base/error.h"
#include "base/path.h"
#include "base/strv.h"
#include "core/config.h"
#include "core/packages.h"
#include "policy/netport.h"
#include "policy/netrules.h"

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

csn_status csn_config_check_net(const csn_config *c, csn_error **err)
{
    csn_netrules *rules = NULL;
    csn_status st = CSN_OK;

    if (c->network || c->net_allow || c->net_deny)
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
    return true;
}
