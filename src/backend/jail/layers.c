/* layers.c: describes a jail's layers for `info`.
 *
 * The kernel's features come from the keeper's READY. Invariant: no layer is described as
 * stronger than this host's kernel makes it. */
#include "backend/jail/layers.h"

#include "os/landlock.h"

/* Without scopes, only the namespaces isolate signals and abstract sockets. */
static csn_layer landlock(uint64_t abi)
{
    static const char whole[] =
        "restricts files in addition to the mounts; signals and abstract sockets scoped";
    static const char unscoped[] = "restricts files in addition to the mounts; this kernel "
                                   "cannot scope signals and abstract "
                                   "sockets, which only the namespaces isolate";
    static const char untruncated[] =
        "restricts files in addition to the mounts; this kernel does not restrict truncate(2) "
        "and "
        "cannot scope signals and abstract sockets, which only the namespaces isolate";
    static const char unmoved[] =
        "restricts files in addition to the mounts; this kernel does not restrict truncate(2), "
        "refuses moving files between directories and cannot scope signals and abstract "
        "sockets, "
        "which only the namespaces isolate";

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
        return (csn_layer){"user", "on",
                           "a user namespace with one user that is never root on the host"};
    return (csn_layer){
        "user", "weaker",
        "a user namespace with one user that is never root on the host; nested user "
        "namespaces are refused by seccomp only, since /proc/sys is read-only"};
}

size_t csn_jail_layers(const csn_jail_kernel *kernel, const char *limits,
                       csn_layer ret[CSN_JAIL_LAYERS_MAX])
{
    const csn_layer all[] = {
        user(kernel->nested_limited),
        {"mount", "on",
         "a private root: the system (read-only), the workspace and granted paths, nothing "
         "else"},
        {"pid", "on", "only processes of the sandbox are visible; all of them end with it"},
        {"net", "on", "a network namespace with only a loopback interface"},
        {"ipc", "on", "private System V and POSIX IPC, host name and cgroup namespace"},
        {"limits", "on", limits},
        {"capabilities", "on",
         "none, and none can be gained: no_new_privs, empty bounding set"},
        landlock(kernel->landlock_abi),
        {"seccomp", "on",
         "refuses system calls that ordinary programs do not need, on all ABIs"},
        {"files", "on", "file calls are resolved below the sandbox's root, with its uid"},
        {"environment", "on", "an allow-list of variables, no inherited descriptors"},
    };
    const size_t count = sizeof(all) / sizeof(all[0]);
    _Static_assert(sizeof(all) / sizeof(all[0]) <= CSN_JAIL_LAYERS_MAX, "room for all");

    for (size_t i = 0; i < count; i++)
        ret[i] = all[i];
    return count;
}
