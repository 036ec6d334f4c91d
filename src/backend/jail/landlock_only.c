/* landlock_only.c: a jail without namespaces, for --allow-weaker (CSN_LEVEL_LANDLOCK_ONLY).
 *
 * Used only if the host refuses namespaces and the caller permits it. Landlock, seccomp and
 * rlimits confine the keeper. It has no root of its own: paths are the host's, and the Landlock
 * rules made here decide which of them are accessible. Without Landlock and seccomp no sandbox
 * is opened. The configuration is trusted; the trees it names are under the agent's control.
 *
 * Invariants: an option that cannot be enforced without namespaces is refused; a default that
 * cannot be enforced is shown in the layers; file calls use rules made from the same list as
 * the Landlock rules. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backend/jail/cover.h"
#include "backend/jail/jail.h"
#include "base/error.h"
#include "base/path.h"
#include "base/strv.h"
#include "os/landlock.h"
#include "os/seccomp.h"
#include "os/tree.h"

#define COUNT(a)    (sizeof(a) / sizeof((a)[0]))
#define USE         (CSN_LL_READ | CSN_LL_EXEC)
#define ALL         (USE | CSN_LL_WRITE)
#define ROOT_PLACES "/tmp" /* private directories of a root caller's jails are created here */

/* ---- private directories ---- */

static csn_status make_dir(const csn_jail *j, const char *path, csn_error **err)
{
    if (mkdir(path, 0700) < 0 || (j->other_user && lchown(path, j->host_uid, j->host_gid) < 0))
        return csn_fail_errno(err, errno, "private directory %s", path);
    return CSN_OK;
}

/* Of a root caller, the directory of the sandbox must stay inaccessible to the user of
 * commands, so the private directories are in /tmp. The id makes their name unpredictable. */
char *csn_landlock_only_place(const csn_runtime *rt, const char *run)
{
    const csn_jail *j = rt->jail;
    char *path = NULL;

    if (!j->other_user)
        return strdup(run);
    return asprintf(&path, ROOT_PLACES "/caisson-%s", rt->id) < 0 ? NULL : path;
}

static csn_status make_places(csn_runtime *rt, csn_jail *j, csn_error **err)
{
    csn_status st = csn_runtime_run_dir(rt, err);

    if (st < 0)
        return st;
    csn_autofree char *place = csn_landlock_only_place(rt, rt->run_path);
    j->place = place ? csn_arena_strdup(j->arena, place) : NULL;
    j->tmp = csn_arena_printf(j->arena, "%s/tmp", j->place ? j->place : "");
    const char *home = csn_arena_printf(j->arena, "%s/home", j->place ? j->place : "");
    if (!j->place || !j->tmp || !home)
        return csn_fail(err, CSN_NOMEM, "private directories");
    if (j->other_user)
        st = make_dir(j, j->place, err);
    if (st == CSN_OK)
        st = make_dir(j, j->tmp, err);
    if (st == CSN_OK && !rt->config->home) {
        st = make_dir(j, home, err);
        rt->home.path = strdup(home);
        if (st == CSN_OK && !rt->home.path)
            st = csn_fail(err, CSN_NOMEM, "private directories");
    }
    return st;
}

void csn_landlock_only_ended(const csn_runtime *rt)
{
    const csn_jail *j = rt->jail;

    if (!j->place || !j->other_user)
        return; /* it is removed with the directory of the sandbox */
    csn_autofd int dir = open(ROOT_PLACES, O_PATH | O_DIRECTORY | O_CLOEXEC);
    const char *name = strrchr(j->place, '/');
    if (dir >= 0 && name)
        (void)csn_tree_remove_force(dir, name + 1);
}

/* ---- unsupported options ---- */

static csn_status refuse(csn_error **err, const char *option, const char *path,
                         const char *what)
{
    csn_status st =
        csn_fail(err, CSN_UNSUPPORTED, "%s%s%s: %sneeds namespaces, which this host refuses",
                 option, *path ? " " : "", path, what);

    return csn_error_advise(st, err,
                            "run caisson doctor to see which setting of the host enables them");
}

/* Landlock rules only grant: access to a directory cannot be revoked below it. */
static csn_status refuse_unsupported(const csn_runtime *rt, const csn_jail_share *v,
                                     size_t count, csn_error **err)
{
    const csn_config *c = rt->config;

    if (c->deny && c->deny[0])
        return refuse(err, "deny", c->deny[0], "");
    if (c->deny_missing_ok && c->deny_missing_ok[0])
        return refuse(err, "deny_missing_ok", c->deny_missing_ok[0], "");
    for (size_t i = 0; i < c->rule_count; i++) {
        char rule[32];
        snprintf(rule, sizeof(rule), "rules[%zu]:", i);
        if (!c->rules[i].allow && !(c->rules[i].ops & CSN_RULE_FILES) &&
            (c->rules[i].ops & (CSN_OP_READ | CSN_OP_WRITE | CSN_OP_DELETE)))
            return refuse(err, rule, c->rules[i].path,
                          "without \"scope\": \"files\" a denial ");
    }
    if (c->disk_max && c->disk_max != CSN_NO_LIMIT)
        return refuse(err, "limits.disk", "", "");
    for (size_t i = 0; i < count; i++) {
        char real[PATH_MAX];
        if (!realpath(v[i].inside, real) || strcmp(real, v[i].host) != 0)
            return refuse(err, v[i].option, v[i].inside, "a different path inside ");
        for (size_t above = 0; above < count; above++)
            if (!v[i].writable && v[above].writable && csn_path_below(v[i].host, v[above].host))
                return refuse(err, v[i].option, v[i].host,
                              "a read-only share inside a writable one ");
    }
    return csn_jail_refuse_records(rt->jail, v, count, err);
}

/* ---- accessible paths ---- */

static void add_each(csn_jail *j, const char *const *paths, size_t count, uint32_t flags,
                     uint32_t access)
{
    for (size_t i = 0; i < count; i++)
        csn_jail_add(j, CSN_MOUNT_BIND, flags | CSN_MOUNT_OPTIONAL, access, paths[i], paths[i]);
}

/* Grants access to the host's own system files, like system_mounts.c. Of /proc only files about
 * the machine: the rest describes all processes, and Landlock has no rule for /proc/self.
 * Commands get no terminals, because /dev/pts also has the user's other ones. */
static void add_system(csn_jail *j)
{
    static const char *const programs[] = {"/usr",   "/bin",    "/sbin", "/lib",      "/lib32",
                                           "/lib64", "/libx32", "/opt",  "/nix/store"};
    static const char *const parts[] = {
        "/etc/alternatives",   "/etc/ld.so.cache",     "/etc/ld.so.conf",
        "/etc/ld.so.conf.d",   "/etc/timezone",        "/etc/localtime",
        "/etc/ssl/certs",      "/etc/ssl/openssl.cnf", "/etc/protocols",
        "/etc/services",       "/etc/mime.types",      "/etc/bash.bashrc",
        "/etc/profile",        "/etc/inputrc",         "/etc/terminfo",
        "/etc/perl",           "/etc/python3",         "/etc/python3.11",
        "/etc/fonts",          "/etc/magic",           "/etc/os-release",
        "/etc/debian_version", "/etc/locale.alias",    "/etc/manpath.config",
        "/etc/groff",          "/etc/nsswitch.conf",   "/etc/passwd",
        "/etc/group",          "/etc/hosts",           "/etc/maven/m2.conf",
        "/etc/maven/logging",  "/etc/java-17-openjdk", "/etc/java-21-openjdk",
        "/var/lib/dpkg",       "/proc/cpuinfo",        "/proc/meminfo",
        "/proc/stat",          "/proc/uptime",         "/proc/loadavg",
        "/proc/version",       "/proc/filesystems",    "/proc/sys/kernel",
        "/proc/sys/vm"};
    static const char *const devices[] = {"/dev/null",   "/dev/zero",    "/dev/full",
                                          "/dev/random", "/dev/urandom", "/dev/tty"};
    static const char *const terminals[] = {"/dev/ptmx", "/dev/pts"};
    static const char *const processes[] = {"/proc"};

    add_each(j, programs, COUNT(programs), 0, USE);
    add_each(j, parts, COUNT(parts), 0, CSN_LL_READ);
    add_each(j, devices, COUNT(devices), 0, CSN_LL_DEVICE);
    add_each(j, terminals, COUNT(terminals), CSN_MOUNT_KEEPER, CSN_LL_DEVICE);
    add_each(j, processes, COUNT(processes), CSN_MOUNT_KEEPER, CSN_LL_READ);
}

/* Makes the rules for file calls from the same list as the Landlock rules. In a connected jail
 * the paths were resolved at open and may have been removed since. */
csn_status csn_landlock_only_rules(csn_runtime *rt, csn_error **err)
{
    const csn_jail *j = rt->jail;
    CSN_CLEANUP(csn_strv_freep) char **read = NULL, **write = NULL;
    csn_autofree csn_rule *rules = calloc(rt->config->rule_count + 1, sizeof(*rules));
    char real[PATH_MAX];
    int e = 0;

    for (size_t i = 0; i < j->mount_count && e == 0; i++) {
        const csn_mount *m = &j->mounts[i];
        bool for_all = (m->flags & CSN_MOUNT_KEEPER) == 0 &&
                       (m->access & (CSN_LL_READ | CSN_LL_DEVICE)) != 0;
        const char *path = realpath(m->to, real) ? real : rt->connected ? m->to : NULL;
        if (for_all && path)
            e = csn_strv_push((m->access & CSN_LL_WRITE) ? &write : &read, path);
    }
    if (e != 0 || !rules)
        return csn_fail(err, CSN_NOMEM, "rules");
    const csn_rules_input in = {.read = (const char *const *)read,
                                .write = (const char *const *)write,
                                .rules = rules,
                                .rule_count = csn_cover_other_rules(rt, rules)};
    return csn_rules_new(&in, &rt->rules, err);
}

csn_status csn_landlock_only_plan(csn_runtime *rt, const csn_jail_share *v, size_t count,
                                  csn_error **err)
{
    csn_jail *j = rt->jail;
    csn_status st = refuse_unsupported(rt, v, count, err);

    /* An older kernel lets the owner truncate any file. */
    if (st == CSN_OK && j->as_root && csn_landlock_abi() < CSN_LL_ABI_TRUNCATE)
        st = csn_fail(err, CSN_UNAVAILABLE,
                      "root's own files cannot be protected: Landlock ABI %d does not restrict "
                      "truncate(2); run caisson as an ordinary user, or use Linux 6.2 or later",
                      csn_landlock_abi());
    for (size_t i = 0; st == CSN_OK && i < count; i++)
        st = csn_weaker_user_check(j, &v[i], err);
    if (st == CSN_OK)
        st = make_places(rt, j, err);
    if (st < 0)
        return st;
    add_system(j);
    csn_jail_add(j, CSN_MOUNT_BIND, 0, ALL, j->tmp, j->tmp);
    if (rt->home.path) {
        const char *home = csn_arena_strdup(j->arena, rt->home.path);
        csn_jail_add(j, CSN_MOUNT_BIND, 0, ALL, home, home);
    }
    for (size_t i = 0; i < count; i++) {
        csn_jail_add(j, CSN_MOUNT_BIND, 0, v[i].writable ? ALL : USE, v[i].host, v[i].host);
        if (!rt->home.path && rt->config->home && strcmp(v[i].option, "home") == 0)
            rt->home.path = strdup(v[i].host);
    }
    rt->base.path = strdup(v[0].host);
    if (!rt->base.path || !rt->home.path)
        return csn_fail(err, CSN_NOMEM, "plan of the jail");
    if (j->mount_count > CSN_MOUNTS_MAX)
        return csn_fail(err, CSN_TOO_LARGE, "more than %u directories", CSN_MOUNTS_MAX);
    return csn_landlock_only_rules(rt, err);
}

void csn_landlock_only_confinement(const csn_jail *j, csn_confinement *w)
{
    *w = (csn_confinement){
        .on = CSN_CONFINE_BIT(CSN_CONFINE_LIMITS) | CSN_CONFINE_BIT(CSN_CONFINE_KEYRING) |
              CSN_CONFINE_BIT(CSN_CONFINE_CAPS) | CSN_CONFINE_BIT(CSN_CONFINE_LANDLOCK) |
              CSN_CONFINE_BIT(CSN_CONFINE_SECCOMP),
        .uid = j->uid,
        .gid = j->gid,
        .seccomp = CSN_SECCOMP_NO_SOCKETS | (j->root ? CSN_SECCOMP_NOSUID : 0),
        .no_tcp = 1,
        .guard = j->as_root,
        .mounts = {.list = j->mounts, .count = j->mount_count},
    };
}

/* The number of threads of this user on the host. */
static uint64_t user_tasks(void)
{
    DIR *d = opendir("/proc");
    uint64_t sum = 0;

    for (struct dirent *e; d && (e = readdir(d));) {
        char task[32];
        struct stat st;
        int n = snprintf(task, sizeof(task), "%.16s/task", e->d_name);
        if (n > 0 && e->d_name[0] >= '1' && e->d_name[0] <= '9' &&
            fstatat(dirfd(d), task, &st, 0) == 0 && st.st_uid == geteuid() && st.st_nlink > 2)
            sum += st.st_nlink - 2;
    }
    if (d)
        closedir(d);
    return sum;
}

/* RLIMIT_NPROC counts all processes of the user, so those outside the sandbox are added. The
 * keeper cannot sum up the memory of the sandbox's processes. */
void csn_landlock_only_limits(const csn_runtime *rt, csn_confinement *w)
{
    const csn_jail *j = rt->jail;

    if (!j->other_user && w->pids_max != 0)
        w->pids_max += user_tasks();
    w->memory_max = 0;
    w->data_max = j->limits.sampled ? rt->config->memory_max : 0;
    w->mounts.size = w->mounts.inodes = 0;
}

/* ---- layers ---- */

static const char *landlock_text(csn_arena *a, uint64_t abi)
{
    return csn_arena_printf(
        a, "ABI %llu: the only protection of files%s%s%s", (unsigned long long)abi,
        abi < CSN_LL_ABI_REFER ? "; files cannot be moved between directories" : "",
        abi < CSN_LL_ABI_TRUNCATE ? "; truncate(2) outside is not refused" : "",
        abi < CSN_LL_ABI_SCOPE ? "; signals to your other processes are not refused" : "");
}

static const char *user_text(const csn_jail *j)
{
    if (j->other_user && j->host_uid >= CSN_SPEC_USER_LOW)
        return "no namespace; commands run as a user without account and groups";
    if (j->as_root)
        return "no namespace; commands run as root without capabilities; modes, owners and "
               "times "
               "of files can be changed in writable directories only";
    return j->other_user
               ? "no namespace; commands run as the owner of the workspace and can change "
                 "mode, "
                 "owner, times and attributes of all files of that user"
               : "no namespace; commands run as you and can change mode, owner, times and "
                 "attributes of all your files";
}

csn_status csn_landlock_only_layers(csn_runtime *rt, csn_error **err)
{
    csn_jail *j = rt->jail;
    uint64_t abi = j->ready.landlock_abi;
    const char *level = csn_arena_printf(
        j->arena, "%s: only Landlock, seccomp and rlimits (--allow-weaker)%s", j->weaker,
        csn_cover_keys_shared(rt) ? "; the keys of a shared home are not hidden" : "");
    const char *landlock = landlock_text(j->arena, abi);
    const csn_layer layers[] = {
        {"rung", "weaker", level},
        {"user", j->root ? "weaker" : "off", user_text(j)},
        {"mount", "weaker",
         "no namespace; Landlock allows the workspace, granted paths and the system "
         "(read-only); "
         "whether other paths exist can be tested; /tmp is closed, TMPDIR is private"},
        {"pid", "off",
         "no namespace; Landlock refuses tracing and signalling other processes and reading "
         "their /proc; processes are found by a tag and by descent"},
        {"net", "weaker", "no namespace; seccomp refuses every socket except socketpair(2)"},
        {"ipc", "weaker", "no namespace; seccomp refuses System V IPC and message queues"},
        {"limits", "weaker", j->limits.text},
        {"capabilities", "on", "none, and none can be gained: no_new_privs"},
        {"landlock", abi < CSN_LL_ABI_SCOPE ? "weaker" : "on", landlock},
        {"seccomp", "on",
         "refuses system calls that ordinary programs do not need, on all ABIs"},
        {"files", "on", "file calls have the same rules and the same user as commands"},
        {"environment", "on", "an allow-list of variables, no inherited descriptors"},
    };
    _Static_assert(sizeof(layers) <= sizeof(j->layers), "room for all layers");

    if (!level || !landlock)
        return csn_fail(err, CSN_NOMEM, "layers");
    memcpy(j->layers, layers, sizeof(layers));
    j->layer_count = COUNT(layers);
    return CSN_OK;
}
