/* layers.c: describes a jail's layers for `info`.
 *
 * The kernel's features come from the keeper's READY. Invariant: no layer is described as
 * stronger than this host's kernel makes it. */
#include "backend/jail/layers.h"

#include <string.h>

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

/* What --nested allows and takes away. */
static void allow_nested(csn_layer *layers, size_t count, uint64_t abi)
{
    const csn_layer nested[] = {
        {"user", "weaker",
         "a user namespace with one user that is never root on the host; commands may make "
         "further ones (--nested), in which they have capabilities"},
        {"landlock", "weaker",
         abi >= CSN_LL_ABI_SCOPE
             ? "only signals and abstract sockets scoped: rules on files would refuse mounts "
               "(--nested)"
             : "off: rules on files would refuse mounts (--nested), and this kernel cannot "
               "scope "
               "signals and abstract sockets"},
        {"seccomp", "weaker",
         "as without --nested, but namespaces and mounts are allowed: kernel code for them is "
         "reachable"},
    };

    for (size_t i = 0; i < count; i++)
        for (size_t n = 0; n < sizeof(nested) / sizeof(nested[0]); n++)
            if (strcmp(layers[i].name, nested[n].name) == 0)
                layers[i] = nested[n];
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
    size_t count = sizeof(all) / sizeof(all[0]);
    _Static_assert(sizeof(all) / sizeof(all[0]) + 2 <= CSN_JAIL_LAYERS_MAX, "room for all");

    for (size_t i = 0; i < count; i++)
        ret[i] = all[i];
    if (kernel->cow)
        ret[count++] = (csn_layer){
            "workspace", "on",
            kernel->cow_copy
                ? "copy-on-write, by a copy, since this host refuses an overlay here: the "
                  "host's directory is not shared, changes wait for commit"
                : "copy-on-write, by an overlay: the host's directory is read-only, changes "
                  "wait for commit"};
    if (!kernel->nested)
        return count;
    allow_nested(ret, count, kernel->landlock_abi);
    ret[count] = (csn_layer){
        "nested", "on",
        "commands may make namespaces and mounts: the mounts alone protect files, without "
        "Landlock behind them; a tmpfs that they mount is limited by --memory only; more "
        "kernel "
        "code is reachable"};
    return count + 1;
}
