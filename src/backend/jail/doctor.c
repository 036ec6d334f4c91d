/* doctor.c: which layers of a jail this host can give, each asked by itself.
 *
 * Called by csn_doctor, beside a real sandbox that is looked at from inside
 * (core/api_doctor.c): when that cannot be built, what is here tells which layer is the reason.
 * Namespaces are tried by starting the keeper's program in them, without orders: it ends at
 * once. What must hold: nothing is changed on the host, and nothing that was started outlives
 * the call. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "backend/jail/jail.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "os/landlock.h"
#include "os/spawn.h"
#include "os/statedir.h"
#include "os/userns_diagnose.h"
#include "runtime/link.h"

#ifndef SYS_openat2
#define SYS_openat2 437
#endif
#ifndef SYS_open_tree
#define SYS_open_tree 428
#endif
#ifndef SYS_mount_setattr
#define SYS_mount_setattr 442
#endif
#define OPEN_TREE_CLONE_ 1u
#define ACTION_AVAIL     2u          /* SECCOMP_GET_ACTION_AVAIL */
#define ACTION_ERRNO     0x00050000u /* SECCOMP_RET_ERRNO */
#if defined(__x86_64__) || defined(__aarch64__)
#define HAVE_POLICY true
#else
#define HAVE_POLICY false
#endif
#define ENDS_MS 1000
#define NOBODY  0x7fffff00u /* who a root caller's attempts are made as */

typedef struct report {
    csn_check_fn fn;
    void *ctx;
} report;

__attribute__((format(printf, 5, 6))) static void tell(const report *r, const char *name,
                                                       const char *status, const char *fix,
                                                       const char *fmt, ...)
{
    char detail[1024];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(detail, sizeof(detail), fmt, ap);
    va_end(ap);
    r->fn(r->ctx, &(csn_check){name, status, detail, fix});
}

/* ---- namespaces ---- */

static int try_namespaces(const char *program, uint64_t flags)
{
    const char *argv[] = {"caisson-keeper", NULL};
    char map[64];
    csn_spawn_namespaces w = {.namespaces = flags,
                              .become = geteuid() == 0,
                              .uid = NOBODY,
                              .gid = NOBODY,
                              .uid_map = map,
                              .gid_map = map + sizeof(map) / 2};
    csn_autofd int exe = open(program, O_RDONLY | O_CLOEXEC);
    const csn_spawn_opts o = {.path = program,
                              .exec_fd = exe,
                              .namespaces = &w,
                              .argv = argv,
                              .fds = {-1, -1, -1, -1, -1, -1},
                              .nfds = 6};
    pid_t pid = 0;
    int pidfd = -1;

    snprintf(map, sizeof(map) / 2, "0 %u 1", w.become ? NOBODY : geteuid());
    snprintf(map + sizeof(map) / 2, sizeof(map) / 2, "0 %u 1", w.become ? NOBODY : getegid());
    int rc = csn_spawn(&o, &pid, &pidfd, NULL);
    if (rc < 0)
        return rc;
    rc = csn_spawn_wait(pidfd, ENDS_MS);
    close(pidfd);
    return rc;
}

static void namespaces(const report *r, const char *program)
{
    static const struct {
        const char *name;
        uint64_t flags;
    } each[] = {{"user", 0},
                {"mount", CLONE_NEWNS},
                {"pid", CLONE_NEWPID},
                {"net", CLONE_NEWNET},
                {"ipc", CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP}};
    bool user = true;

    for (size_t i = 0; i < sizeof(each) / sizeof(each[0]); i++) {
        if (!user) {
            tell(r, each[i].name, "missing", NULL, "needs a user namespace");
            continue;
        }
        int rc = try_namespaces(program, CLONE_NEWUSER | each[i].flags);
        if (rc == 0) {
            tell(r, each[i].name, "ok", NULL, "a namespace can be made");
            continue;
        }
        csn_userns_diagnosis why = csn_userns_diagnose();
        user = i > 0;
        tell(r, each[i].name, "missing", why.fix, "no namespace: %s%s%s", strerrordesc_np(-rc),
             why.cause ? "; " : "", why.cause ? why.cause : "");
    }
}

/* For rules; without any a network has only loopback. */
static void network_rules(const report *r)
{
    static const char fix[] =
        "load nf_tables, nft_tproxy (or nft_nat) and nft_reject_inet (modprobe)";
    csn_autofree char *gateway = NULL;
    csn_ready_msg became = {0};

    if (csn_program_find("caisson-gateway", &gateway, NULL) < 0) {
        tell(r, "network rules", "missing", "install caisson-gateway beside caisson-keeper",
             "there is no caisson-gateway");
        return;
    }
    csn_error *why = NULL;
    if (csn_jail_net_try(&became, &why) < 0)
        tell(r, "network rules", "missing", NULL, "no network with rules: %s",
             csn_error_message(why));
    else if (became.net_mode == CSN_GATEWAY_NET_PROXY)
        tell(r, "network rules", "weaker", fix,
             "no nf_tables (%s): only for programs that heed the variables for proxies",
             strerrordesc_np((int)became.net_lacking));
    else
        tell(r, "network rules", "ok", NULL, "for every program, by nf_tables");
    csn_error_free(why);
}

/* ---- walls ---- */

static void limits(const report *r)
{
    static const char *const names[CSN_CGROUP_KINDS] = {[CSN_CGROUP_MEMORY] = "memory limit",
                                                        [CSN_CGROUP_PIDS] = "process limit",
                                                        [CSN_CGROUP_CPU] = "cpu limit"};
    static const char *const otherwise[CSN_CGROUP_KINDS] = {
        [CSN_CGROUP_MEMORY] = "memory is looked at now and then, and bounded for each process",
        [CSN_CGROUP_PIDS] = "processes are bounded by an rlimit",
        [CSN_CGROUP_CPU] = "a limit on cpu is refused"};
    csn_cgroup_offer offer[CSN_CGROUP_KINDS];

    int rc = csn_cgroup_probe(NULL, offer);
    for (int i = 0; i < CSN_CGROUP_KINDS; i++) {
        if (rc == 0 && offer[i].version != 0)
            tell(r, names[i], "ok", NULL, "cgroup v%d, %s", offer[i].version, offer[i].where);
        else
            tell(r, names[i], "weaker",
                 geteuid() == 0 ? "mount the control groups writable"
                                : "under systemd: sudo systemctl edit user@.service, "
                                  "[Service] Delegate=cpu memory pids",
                 "%s: %s", rc < 0 ? strerrordesc_np(-rc) : csn_cgroup_why_text(offer[i].why),
                 otherwise[i]);
    }
}

static void landlock(const report *r)
{
    int abi = csn_landlock_abi();

    if (abi == 0)
        tell(r, "landlock", "missing",
             "boot a kernel from 5.13 on with landlock in lsm= (cat /sys/kernel/security/lsm)",
             "this kernel has none, or does not use it");
    else if (abi < CSN_LL_ABI_SCOPE)
        tell(r, "landlock", "weaker", "a kernel from 6.12 on has all of it",
             "ABI %d: %s%ssignals and abstract sockets are not scoped", abi,
             abi < CSN_LL_ABI_REFER ? "files cannot move between directories; " : "",
             abi < CSN_LL_ABI_TRUNCATE ? "truncate(2) is not seen; " : "");
    else
        tell(r, "landlock", "ok", NULL, "ABI %d: files, signals and abstract sockets", abi);
}

static void seccomp(const report *r)
{
    uint32_t action = ACTION_ERRNO;

    if (!HAVE_POLICY)
        tell(r, "seccomp", "missing", NULL, "there is no policy for this processor");
    else if (syscall(SYS_seccomp, ACTION_AVAIL, 0u, &action) < 0)
        tell(r, "seccomp", "missing",
             "use a kernel with CONFIG_SECCOMP_FILTER=y; in a container, allow the call",
             "no filters: %s", strerrordesc_np(errno));
    else
        tell(r, "seccomp", "ok", NULL, "filters can be had");
}

static void openat2_call(const report *r)
{
    struct {
        uint64_t flags, mode, resolve;
    } how = {.flags = O_PATH | O_CLOEXEC};
    csn_autofd int fd = (int)syscall(SYS_openat2, AT_FDCWD, "/", &how, sizeof(how));

    if (fd >= 0)
        tell(r, "openat2", "ok", NULL, "the kernel resolves paths below a directory");
    else
        tell(r, "openat2", "weaker", "a kernel from 5.6 on has it; in a container, allow it",
             "%s: paths are walked by components instead, which is slower",
             strerrordesc_np(errno));
}

static void overlay(const report *r)
{
    csn_autofd int fd = open("/proc/filesystems", O_RDONLY | O_CLOEXEC);
    char text[8192];
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);

    text[n < 0 ? 0 : n] = '\0';
    tell(r, "overlay", "info", NULL, "%s",
         strstr(text, "\toverlay\n") ? "the kernel has it" : "the kernel has none loaded");
}

/* Only a root caller's jail is made of them. */
static void idmap(const report *r, const char *workspace)
{
    static const char fix[] = "run caisson as the user who owns the workspace";
    struct {
        uint64_t set, clear, propagation, userns;
    } nothing = {0};

    if (geteuid() != 0)
        return;
    csn_autofd int fd = (int)syscall(SYS_open_tree, AT_FDCWD, workspace,
                                     OPEN_TREE_CLONE_ | (unsigned)O_CLOEXEC);
    if (fd < 0)
        tell(r, "idmap", "missing", fix, "no detached mount of %s: %s", workspace,
             strerrordesc_np(errno));
    else if (syscall(SYS_mount_setattr, fd, "", AT_EMPTY_PATH, &nothing, sizeof(nothing)) < 0)
        tell(r, "idmap", "missing", fix, "no attributes on mounts: %s", strerrordesc_np(errno));
    else
        tell(r, "idmap", "ok", NULL, "detached mounts can be made of %s", workspace);
}

/* ---- what caisson itself needs ---- */

static void directory(const report *r, const char *name, int which)
{
    csn_autofree char *path = NULL;
    csn_autofd int fd = csn_statedir_open(which, NULL, &path);

    if (fd >= 0 && faccessat(fd, ".", W_OK, 0) == 0)
        tell(r, name, "ok", NULL, "%s", path);
    else
        tell(r, name, "missing",
             which == CSN_DIR_STATE
                 ? "set XDG_STATE_HOME to a directory that is yours alone (chmod 700)"
                 : "set XDG_RUNTIME_DIR to a directory that is yours alone (chmod 700)",
             "cannot be used: %s", strerrordesc_np(fd < 0 ? -fd : errno));
}

csn_status csn_jail_diagnose(const char *workspace, csn_check_fn fn, void *ctx, csn_error **err)
{
    const report r = {fn, ctx};
    csn_autofree char *program = NULL;
    csn_error *why = NULL;

    (void)err;
    csn_status st = csn_keeper_find(&program, &why);
    if (st == CSN_OK) {
        tell(&r, "keeper", "ok", NULL, "%s", program);
        namespaces(&r, program);
        network_rules(&r);
    } else {
        tell(&r, "keeper", "missing", "install caisson-keeper beside the library", "%s",
             csn_error_message(why));
    }
    csn_error_free(why);
    limits(&r);
    landlock(&r);
    seccomp(&r);
    openat2_call(&r);
    overlay(&r);
    idmap(&r, workspace);
    directory(&r, "runtime", CSN_DIR_RUNTIME);
    directory(&r, "state", CSN_DIR_STATE);
    return CSN_OK;
}
