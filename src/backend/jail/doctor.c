/* doctor.c: reports which layers of a jail this host supports, one check per layer.
 *
 * csn_doctor also opens a real sandbox (core/api_doctor.c); if that fails, these checks show
 * which layer is missing. Namespaces are tried by starting the keeper in them without orders,
 * upon which it exits. Invariants: nothing on the host changes, and every process that is
 * started ends before the call returns. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
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
#define HAS_SECCOMP_POLICY true
#else
#define HAS_SECCOMP_POLICY false
#endif
#define OVERLAYFS  0x794c7630u
#define EXIT_MS    1000
#define UNUSED_UID 0x7fffff00u /* root's attempts run as this user, which has no account */

typedef struct report {
    csn_check_fn fn;
    void *ctx;
} report;

__attribute__((format(printf, 5, 6))) static void add_check(const report *r, const char *name,
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
    const unsigned uid = csn_fsuid_may_become(UNUSED_UID) ? UNUSED_UID : geteuid();
    const unsigned gid = uid == UNUSED_UID ? uid : getegid();
    csn_spawn_namespaces w = {.namespaces = flags,
                              .become = geteuid() == 0,
                              .uid = uid,
                              .gid = gid,
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

    snprintf(map, sizeof(map) / 2, "0 %u 1", uid);
    snprintf(map + sizeof(map) / 2, sizeof(map) / 2, "0 %u 1", gid);
    int rc = csn_spawn(&o, &pid, &pidfd, NULL);
    if (rc < 0)
        return rc;
    rc = csn_spawn_wait(pidfd, EXIT_MS);
    close(pidfd);
    return rc;
}

static void namespaces(const report *r, const char *program)
{
    static const struct {
        const char *name;
        uint64_t flags;
    } kinds[] = {{"user", 0},
                 {"mount", CLONE_NEWNS},
                 {"pid", CLONE_NEWPID},
                 {"net", CLONE_NEWNET},
                 {"ipc", CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP}};
    bool user = true;

    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        if (!user) {
            add_check(r, kinds[i].name, "missing", NULL, "needs a user namespace");
            continue;
        }
        int rc = try_namespaces(program, CLONE_NEWUSER | kinds[i].flags);
        if (rc == 0) {
            add_check(r, kinds[i].name, "ok", NULL, "namespaces can be created");
            continue;
        }
        csn_userns_diagnosis why = csn_userns_diagnose();
        user = i > 0;
        add_check(r, kinds[i].name, "missing", why.fix, "creating a namespace fails: %s%s%s",
                  strerrordesc_np(-rc), why.cause ? "; " : "", why.cause ? why.cause : "");
    }
}

static void network_rules(const report *r)
{
    static const char fix[] =
        "load nf_tables, nft_tproxy (or nft_nat) and nft_reject_inet (modprobe)";
    csn_autofree char *gateway = NULL;
    csn_ready_msg ready = {0};

    if (csn_program_find("caisson-gateway", &gateway, NULL) < 0) {
        add_check(r, "network rules", "missing",
                  "install caisson-gateway in the directory of caisson-keeper",
                  "caisson-gateway was not found");
        return;
    }
    csn_error *why = NULL;
    if (csn_jail_net_probe(&ready, &why) < 0)
        add_check(r, "network rules", "missing", NULL, "network rules cannot be enforced: %s",
                  csn_error_message(why));
    else if (ready.net_mode == CSN_GATEWAY_NET_PROXY)
        add_check(
            r, "network rules", "weaker", fix,
            "no nf_tables (%s): only programs that use the proxy variables reach the network",
            strerrordesc_np((int)ready.net_lacking));
    else
        add_check(r, "network rules", "ok", NULL, "enforced for every program by nf_tables");
    csn_error_free(why);
}

/* ---- limits and kernel features ---- */

static void limits(const report *r)
{
    static const char *const names[CSN_CGROUP_KINDS] = {[CSN_CGROUP_MEMORY] = "memory limit",
                                                        [CSN_CGROUP_PIDS] = "process limit",
                                                        [CSN_CGROUP_CPU] = "cpu limit"};
    static const char *const fallbacks[CSN_CGROUP_KINDS] = {
        [CSN_CGROUP_MEMORY] = "memory is sampled, and limited for each process by an rlimit",
        [CSN_CGROUP_PIDS] = "processes are limited by an rlimit",
        [CSN_CGROUP_CPU] = "--cpus is refused"};
    csn_cgroup_offer offer[CSN_CGROUP_KINDS];

    int rc = csn_cgroup_probe(NULL, offer);
    for (int i = 0; i < CSN_CGROUP_KINDS; i++) {
        if (rc == 0 && offer[i].version != 0)
            add_check(r, names[i], "ok", NULL, "cgroup v%d, %s", offer[i].version,
                      offer[i].where);
        else
            add_check(r, names[i], "weaker",
                      geteuid() == 0 ? "mount /sys/fs/cgroup writable"
                                     : "under systemd: sudo systemctl edit user@.service, "
                                       "[Service] Delegate=cpu memory pids",
                      "%s: %s%s",
                      rc < 0 ? strerrordesc_np(-rc) : csn_cgroup_why_text(offer[i].why),
                      fallbacks[i],
                      i == CSN_CGROUP_PIDS && geteuid() == 0
                          ? "; --pids is refused where --allow-weaker runs commands as root"
                          : "");
    }
}

static void landlock(const report *r)
{
    int abi = csn_landlock_abi();

    if (abi == 0)
        add_check(
            r, "landlock", "missing",
            "boot Linux 5.13 or later with landlock in lsm= (cat /sys/kernel/security/lsm)",
            "not supported or not enabled in this kernel");
    else if (abi < CSN_LL_ABI_SCOPE)
        add_check(r, "landlock", "weaker", "use Linux 6.12 or later",
                  "ABI %d: %s%ssignals and abstract sockets are not scoped", abi,
                  abi < CSN_LL_ABI_REFER ? "files cannot be moved between directories; " : "",
                  abi < CSN_LL_ABI_TRUNCATE ? "truncate(2) is not restricted; " : "");
    else
        add_check(r, "landlock", "ok", NULL, "ABI %d: files, signals and abstract sockets",
                  abi);
}

static void seccomp(const report *r)
{
    uint32_t action = ACTION_ERRNO;

    if (!HAS_SECCOMP_POLICY)
        add_check(r, "seccomp", "missing", NULL, "no policy for this processor");
    else if (syscall(SYS_seccomp, ACTION_AVAIL, 0u, &action) < 0)
        add_check(
            r, "seccomp", "missing",
            "use a kernel with CONFIG_SECCOMP_FILTER=y; in a container, permit seccomp(2)",
            "filters are not available: %s", strerrordesc_np(errno));
    else
        add_check(r, "seccomp", "ok", NULL, "filters are available");
}

static void openat2_call(const report *r)
{
    struct {
        uint64_t flags, mode, resolve;
    } how = {.flags = O_PATH | O_CLOEXEC};
    csn_autofd int fd = (int)syscall(SYS_openat2, AT_FDCWD, "/", &how, sizeof(how));

    if (fd >= 0)
        add_check(r, "openat2", "ok", NULL, "the kernel resolves paths below a directory");
    else
        add_check(r, "openat2", "weaker",
                  "use Linux 5.6 or later; in a container, permit openat2(2)",
                  "%s: paths are resolved one component at a time, which is slower",
                  strerrordesc_np(errno));
}

static void overlay(const report *r)
{
    csn_autofd int fd = open("/proc/filesystems", O_RDONLY | O_CLOEXEC);
    char text[8192];
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);

    text[n < 0 ? 0 : n] = '\0';
    add_check(r, "overlay", "info", NULL, "%s",
              strstr(text, "\toverlay\n") ? "supported by the kernel"
                                          : "not loaded in the kernel");
}

/* Only a jail of a root caller uses id-mapped mounts. */
static void idmap(const report *r, const char *workspace)
{
    static const char fix[] = "run caisson as the owner of the workspace";
    static const char volume[] =
        "use a workspace on another file system, such as a volume, or run caisson as its owner";
    struct {
        uint64_t set, clear, propagation, userns;
    } nothing = {0};

    if (geteuid() != 0)
        return;
    csn_autofd int fd = (int)syscall(SYS_open_tree, AT_FDCWD, workspace,
                                     OPEN_TREE_CLONE_ | (unsigned)O_CLOEXEC);
    struct statfs fs;
    if (statfs(workspace, &fs) == 0 && (uint32_t)fs.f_type == OVERLAYFS)
        add_check(r, "idmap", "missing", volume,
                  "%s is on overlayfs, which cannot be id-mapped", workspace);
    else if (fd < 0)
        add_check(r, "idmap", "missing", fix, "%s cannot be mounted detached: %s", workspace,
                  strerrordesc_np(errno));
    else if (syscall(SYS_mount_setattr, fd, "", AT_EMPTY_PATH, &nothing, sizeof(nothing)) < 0)
        add_check(r, "idmap", "missing", fix, "mount attributes cannot be set: %s",
                  strerrordesc_np(errno));
    else
        add_check(r, "idmap", "ok", NULL, "%s can be mounted detached", workspace);
}

/* ---- directories ---- */

static void directory(const report *r, const char *name, int which)
{
    csn_autofree char *path = NULL;
    csn_autofd int fd = csn_statedir_open(which, NULL, &path);
    csn_error *why = NULL;

    if (fd >= 0 && faccessat(fd, ".", W_OK, 0) == 0) {
        add_check(r, name, "ok", NULL, "%s", path);
        return;
    }
    (void)csn_statedir_fail(&why, fd < 0 ? -fd : errno, which, NULL);
    add_check(r, name, "missing", csn_error_hint(why), "not usable: %s",
              csn_error_message(why));
    csn_error_free(why);
}

csn_status csn_jail_diagnose(const char *workspace, csn_check_fn fn, void *ctx, csn_error **err)
{
    const report r = {fn, ctx};
    csn_autofree char *program = NULL;
    csn_error *why = NULL;

    (void)err;
    csn_status st = csn_keeper_find(&program, &why);
    if (st == CSN_OK) {
        add_check(&r, "keeper", "ok", NULL, "%s", program);
        namespaces(&r, program);
        network_rules(&r);
    } else {
        add_check(&r, "keeper", "missing",
                  "install caisson-keeper in the directory of the library", "%s",
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
