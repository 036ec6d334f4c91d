/* network_denials.c: what a jail tells about hosts that it refused, with the option that would
 * have allowed them.
 *
 * Programs inside choose the names, and the keeper that passes them on may have been taken
 * over: a name is used only if it consists of plain letters, and it reaches a hint only as a
 * network rule that parses. */
#include <stdio.h>
#include <string.h>

#include "backend/jail/jail.h"
#include "backend/jail/network.h"
#include "base/path.h"
#include "policy/netrules.h"
#include "policy/package_config.h"

/* '?' stands for a byte that no host name has (keeper/name_stub.c). */
#define PLAIN "abcdefghijklmnopqrstuvwxyz0123456789-_.?"

const char *csn_jail_net_hint(const csn_exec_req *req, const char *target, char *buf,
                              size_t size)
{
    char host[CSN_DOMAIN_MAX + 1];
    size_t len = strcspn(target, ":");
    csn_netrule rule;

    if (len < sizeof(host)) {
        memcpy(host, target, len);
        host[len] = '\0';
        const char *preset = csn_preset_of_host(host, csn_path_base(req->argv[0]));
        if (preset && snprintf(buf, size, "--packages %s", preset) < (int)size)
            return buf;
    }
    if (!csn_netrule_parse(target, &rule, NULL) ||
        snprintf(buf, size, "--allow %s", target) >= (int)size)
        return NULL;
    return buf;
}

void csn_jail_net_name_refused(const csn_runtime *rt, const csn_exec_req *req, const char *name)
{
    const csn_deny_sink *to = req->live_denials ? req->live_denials : req->denials;
    char hint[CSN_NETRULE_TEXT + 16];

    (void)rt;
    if (!to || name[strspn(name, PLAIN)] != '\0')
        return;
    const csn_denial d = {.op = "net",
                          .target = name,
                          .rule = "network none",
                          .source = "config.net",
                          .hint = csn_jail_net_hint(req, name, hint, sizeof(hint))};
    to->tell(to->ctx, &d);
}
