/* layers.c: what holds in a jail, in words.
 *
 * Called once for each jail, when its keeper has told what the kernel gave it; a keeper that
 * lies about itself says nothing of what holds, so only its own caller is misled. What must
 * hold: no word of a wall that this kernel does not have. Pure. */
#include "backend/jail/layers.h"

#include "os/landlock.h"

/* Without scopes, which are the second wall there, the namespaces are the only one. */
static csn_layer landlock(uint64_t abi)
{
    static const char whole[] =
        "a second wall under the mounts; signals and abstract sockets scoped";
    static const char unscoped[] = "a second wall under the mounts; this kernel's cannot scope "
                                   "signals and abstract sockets, which namespaces alone hold";
    static const char untruncated[] =
        "a second wall under the mounts; this kernel's does not see truncate(2), and cannot "
        "scope signals and abstract sockets, which namespaces alone hold";
    static const char unmoved[] =
        "a second wall under the mounts; this kernel's does not see truncate(2), lets no file "
        "move between directories, and cannot scope signals and abstract sockets, which "
        "namespaces alone hold";

    if (abi >= CSN_LL_ABI_SCOPE)
        return (csn_layer){"landlock", "on", whole};
    return (csn_layer){"landlock", "weaker",
                       abi >= CSN_LL_ABI_TRUNCATE ? unscoped
                       : abi >= CSN_LL_ABI_REFER  ? untruncated
                                                  : unmoved};
}

static csn_layer user(bool nested_limited)
{
    if (nested_limited)
        return (csn_layer){
            "user", "on",
            "a user namespace with one user, who is nobody or you outside, never root"};
    return (csn_layer){"user", "weaker",
                       "a user namespace with one user, who is nobody or you outside, never "
                       "root; further ones are refused by seccomp alone, /proc/sys is "
                       "read-only here"};
}

size_t csn_jail_layers(const csn_jail_told *told, const char *limits,
                       csn_layer ret[CSN_JAIL_LAYERS_MAX])
{
    const csn_layer all[] = {
        user(told->nested_limited),
        {"mount", "on",
         "a root of its own: system read-only, the workspace and what was granted, nothing "
         "else"},
        {"pid", "on", "only the sandbox's own processes exist, and end with it"},
        {"net", "on", "a network namespace with loopback and nothing else"},
        {"ipc", "on", "own System V and POSIX ipc, host name and cgroup namespace"},
        {"limits", "on", limits},
        {"capabilities", "on", "none, and no way to any: no_new_privs, empty bounding set"},
        landlock(told->landlock_abi),
        {"seccomp", "on",
         "system calls that ordinary work does not need are refused, on all ABIs"},
        {"files", "on", "file calls work below the sandbox's own root, as its user"},
        {"environment", "on", "an allow-list of variables and no inherited descriptor"},
    };
    const size_t count = sizeof(all) / sizeof(all[0]);
    _Static_assert(sizeof(all) / sizeof(all[0]) <= CSN_JAIL_LAYERS_MAX, "room for all");

    for (size_t i = 0; i < count; i++)
        ret[i] = all[i];
    return count;
}
