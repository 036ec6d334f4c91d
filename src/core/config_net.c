/* config_net.c: the network part of a configuration, checked before anybody acts on it.
 *
 * Called for every configuration, from C callers and from files. A rule that is wrong is named
 * here, whatever the backend will say to rules as such: a typing error in a policy must not
 * wait for the first refused connection to be found. */
#include "base/cleanup.h"
#include "base/error.h"
#include "base/path.h"
#include "core/config.h"
#include "core/packages.h"
#include "kit/netport.h"
#include "kit/netrules.h"

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
