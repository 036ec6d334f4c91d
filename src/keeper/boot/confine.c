/* confine.c: the keeper confines itself, from clone to READY.
 *
 * Runs once, in the namespaces that the library's clone has created (os/spawn.c), before any
 * code of the sandbox exists. Commands inherit everything. The order of the steps matters: what
 * needs a privilege comes before the privilege is dropped, Landlock after the mounts that its
 * rules name, seccomp last. Two short-lived helper processes (boot/helper.h) run the two parts
 * that make the kernel wait for all CPUs.
 *
 *   library                  keeper                           helper processes
 *   clone and exec -------->
 *   plan the jail            raise the OOM score
 *     :                      start the network helper ------> create a network namespace
 *     :                      wait for the spec                  :
 *   SPEC ------------------> decode it (boot.c)                 :
 *   MOUNTS ----------------> if the caller is privileged        :
 *   create control groups    host name                          :
 *   start the gateway        pivot into the new root            :
 *     :                      start the mount helper ----------------> detach the old root
 *     :                      mount its part of the list         :     limit nested user
 *     :                      prepare the Landlock rules         :     namespaces, mount the
 *     :                      enter the network <------------- done    rest, make the root
 *   CGROUPS ---------------> enter them, set limits                   read-only
 *     :                      leave the keyring, Landlock                :
 *     :                      second user namespace <----------------- old root is detached
 *     :                      drop capabilities, seccomp                 :
 *     :                      join both helpers <--------------------- done
 *   attach <---------------- READY, or FAILED and exit
 *
 * Invariant: a step that was ordered and fails ends the keeper, after it has reported why. No
 * command ever starts with less confinement than ordered. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "keeper/boot/guard.h"
#include "keeper/boot/helper.h"
#include "keeper/boot/rootfs.h"
#include "keeper/keeper.h"
#include "os/caps.h"
#include "os/landlock.h"
#include "os/netns.h"
#include "os/seccomp.h"
#include "os/userns.h"

#define HOST_NAME "caisson"
#define OOM_SCORE "500" /* when the host runs out of memory, a jail is killed first */
#ifndef PR_FUTEX_HASH   /* since Linux 6.16 */
#define PR_FUTEX_HASH           78
#define PR_FUTEX_HASH_SET_SLOTS 1
#endif

typedef struct boot_state {
    const csn_confinement *c;
    csn_mount mounts[CSN_MOUNTS_MAX]; /* the list of the spec */
    csn_landlock_rule rules[CSN_MOUNTS_MAX + 1];
    int given[CSN_SPEC_GIVEN_MAX]; /* detached mounts from MOUNTS, in the order of the spec */
    size_t given_count;
    csn_confine_step step; /* the step that is running */
    size_t mount;          /* CSN_CONFINE_MOUNTS: the entry being mounted */
    csn_ready_msg ready;
    csn_failed_msg failed;
    int ruleset;         /* of the keeper, or -1 */
    int command_ruleset; /* of commands only, or -1 */
    bool begun_early;    /* kp_confine_begin has run the first steps */
    kp_helper net_helper;
    int netns;                         /* made by the network helper */
    int ready_fds[CSN_KEEPER_FDS_MAX]; /* the root, then the network's */
    size_t net_fd_count;
    kp_rootfs rootfs; /* with the mount helper */
    int proc;         /* without a rootfs: the host's /proc */
} boot_state;

/* In pages of its own, which are released after the boot: there may be thousands of keepers. */
static _Alignas(KP_PAGE) boot_state boot;

csn_mount *kp_confine_mount_list(void)
{
    return boot.mounts;
}

static bool has_step(const boot_state *b, csn_confine_step step)
{
    return (b->c->on & CSN_CONFINE_BIT(step)) != 0;
}

/* ---- descriptors from the library ---- */

/* Takes the descriptors of the next message, which must be of this type and bring at most
 * `max`. Returns their number or -errno. */
static int receive_fds(csn_msg_type type, int *ret, size_t max)
{
    uint8_t buf[256];
    csn_msg m;
    int rc;

    do {
        rc = kp_await_message();
        if (rc == 0)
            rc = csn_msg_recv(CSN_KEEPER_FD_CONTROL, buf, sizeof(buf), &m);
    } while (rc == -EAGAIN);
    if (rc <= 0)
        return rc < 0 ? rc : -EPIPE;
    rc = csn_proto_decode(&m, type, NULL) == 0 && m.nfds <= max ? (int)m.nfds : -EPROTO;
    for (int i = 0; i < rc; i++)
        ret[i] = csn_msg_take_fd(&m, (size_t)i);
    csn_msg_release(&m);
    return rc;
}

static int receive_mounts(boot_state *b)
{
    while (b->given_count < b->c->given) {
        int n = receive_fds(CSN_MSG_MOUNTS, b->given + b->given_count,
                            b->c->given - b->given_count);
        if (n < 0)
            return n;
        b->given_count += (size_t)n;
    }
    return 0;
}

/* The library creates the groups while the keeper boots, and opens their files because the
 * keeper may lack the right to. The keeper moves itself: on v1 that is cheap for a process with
 * one thread. Fails if the group is already gone. */
static int enter_cgroups(const boot_state *b)
{
    int files[CSN_CGROUP_KINDS];
    int n = receive_fds(CSN_MSG_CGROUPS, files, CSN_CGROUP_KINDS), rc = n < 0 ? n : 0;

    for (int i = 0; i < n; i++) {
        if (rc == 0 && write(files[i], "0", 1) != 1)
            rc = -errno;
        close(files[i]);
    }
    if (rc == 0 && has_step(b, CSN_CONFINE_NAMESPACES) && unshare(CLONE_NEWCGROUP) < 0)
        rc = -errno;
    return rc;
}

/* ---- mounts ---- */

static int enter_rootfs(boot_state *b)
{
    const csn_rootfs *m = &b->c->mounts;

    for (size_t i = 0; i < m->count; i++)
        if (b->mounts[i].kind == CSN_MOUNT_GIVEN)
            b->mounts[i].fd = b->given[b->mounts[i].fd];
    int rc = kp_rootfs_enter(m, &b->rootfs, &b->mount);
    for (size_t i = 0; i < b->given_count; i++)
        close(b->given[i]);
    return rc;
}

/* A /proc that can be written to: the one that commands see cannot. */
static int proc_dir(const boot_state *b)
{
    return has_step(b, CSN_CONFINE_MOUNTS) ? b->rootfs.proc : b->proc;
}

/* Where /proc/sys is read-only, only seccomp prevents nested user namespaces; READY reports
 * that. In a jail with its own root this writes to the new /proc, which is faster: the kernel
 * searches the files of all namespaces that share one /proc. */
static int limit_nesting(void *arg)
{
    boot_state *b = arg;
    int rc = csn_userns_limit(proc_dir(b),
                              b->c->nested ? CSN_NESTED_USERNS_MANY : CSN_NESTED_USERNS_LIMIT);

    if (rc == 0 && b->c->given == 0) /* GIVEN mounts imply a uid that only this sandbox uses */
        csn_userns_halve_inotify(proc_dir(b));
    b->ready.nesting_errnum = (uint32_t)-rc;
    if (b->c->pid_max != 0)
        b->ready.pid_max_errnum = (uint32_t)-csn_userns_limit_pids(proc_dir(b), b->c->pid_max);
    if (has_step(b, CSN_CONFINE_NAMESPACES))
        csn_userns_limit_ipc(proc_dir(b), b->c->mounts.size);
    return rc == -ENOENT ? rc : 0; /* ENOENT: /proc is not mounted */
}

/* In a jail with its own root, the mount helper calls limit_nesting. */
static int nesting_step(boot_state *b)
{
    if (!has_step(b, CSN_CONFINE_MOUNTS))
        return limit_nesting(b);
    b->rootfs.on_proc = limit_nesting;
    b->rootfs.arg = b;
    return 0;
}

/* ---- Landlock ---- */

/* In a jail with its own root, directories can be listed everywhere; without one, the names are
 * the host's and stay hidden. Contents are accessible where a mount grants access. */
static csn_landlock_spec landlock_spec(boot_state *b, uint32_t leave_out)
{
    bool rootfs = has_step(b, CSN_CONFINE_MOUNTS);
    uint32_t unfit = leave_out | (rootfs ? CSN_MOUNT_NARROW : CSN_MOUNT_WIDE);
    size_t n = 0;

    if (rootfs)
        b->rules[n++] = (csn_landlock_rule){.path = "/", .access = CSN_LL_LIST};
    for (size_t i = 0; i < b->c->mounts.count; i++) {
        const csn_mount *m = &b->c->mounts.list[i];
        bool scratch = m->kind == CSN_MOUNT_SCRATCH;
        if (m->access == 0 || (m->flags & unfit) != 0 || (scratch && !rootfs))
            continue; /* without a rootfs this path is a directory of the host */
        /* A scratch space may be missing: a share at /var covers one at /var/tmp. */
        b->rules[n++] =
            (csn_landlock_rule){.path = m->to,
                                .access = m->access,
                                .optional = scratch || (m->flags & CSN_MOUNT_OPTIONAL) != 0};
    }
    return (csn_landlock_spec){
        .rules = b->rules, .count = n, .no_tcp = b->c->no_tcp != 0, .scope = true};
}

/* In a jail without its own root, the keeper needs the host's /proc to find its processes, and
 * commands must not have it. Commands get a second ruleset, which also prevents them from
 * signalling the keeper. */
static int prepare_rulesets(boot_state *b)
{
    int abi = 0;

    if (!has_step(b, CSN_CONFINE_MOUNTS)) {
        csn_landlock_spec spec = landlock_spec(b, CSN_MOUNT_KEEPER);
        b->command_ruleset = csn_landlock_prepare(&spec, &abi);
        if (b->command_ruleset < 0)
            return b->command_ruleset;
    }
    csn_landlock_spec spec = landlock_spec(b, 0);
    if (b->c->nested) /* rules on files would refuse every mount */
        spec = (csn_landlock_spec){.no_fs = true, .scope = true};
    b->ruleset = csn_landlock_prepare(&spec, &abi);
    b->ready.landlock_abi = (uint32_t)abi;
    return b->ruleset < 0 ? b->ruleset : 0;
}

static int landlock_step(boot_state *b)
{
    int rc = b->ruleset < 0 ? prepare_rulesets(b) : 0;

    if (rc == 0)
        rc = csn_landlock_enter(b->ruleset);
    if (b->ruleset >= 0)
        close(csn_steal_fd(&b->ruleset));
    return rc;
}

/* ---- network ---- */

static int create_netns(void *arg)
{
    boot_state *b = arg;

    b->netns = csn_netns_make();
    return b->netns < 0 ? b->netns : 0;
}

/* Prepares the Landlock rules while the network helper runs. */
static int net_step(kp_keeper *k, boot_state *b)
{
    if (has_step(b, CSN_CONFINE_LANDLOCK)) {
        b->step = CSN_CONFINE_LANDLOCK;
        int rc = prepare_rulesets(b);
        if (rc < 0)
            return rc;
        b->step = CSN_CONFINE_NET;
    }
    int rc = kp_helper_result(&b->net_helper);
    if (rc < 0)
        return rc;
    rc = csn_netns_enter(b->netns);
    close(b->netns);
    if (rc == 0)
        rc = kp_net_build(k, &b->ready, b->ready_fds + 1, &b->net_fd_count, &b->failed);
    return rc;
}

/* ---- limits and privileges ---- */

/* Call it before a helper process shares the keeper's memory: with shared memory the kernel
 * searches all processes of the host for others that share it, now and for each command. */
static int raise_oom_score(void)
{
    csn_autofd int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

    return fd >= 0 && write(fd, OOM_SCORE, strlen(OOM_SCORE)) < 0 ? -errno : 0;
}

/* Never above the hard limit, which cannot be raised. libc's struct differs between libcs. */
static int lower_limit(int what, uint64_t value)
{
    struct {
        uint64_t soft, hard;
    } r = {0, 0};

    if (syscall(SYS_prlimit64, 0, what, NULL, &r) < 0)
        return -errno;
    r.hard = r.hard < value ? r.hard : value;
    r.soft = r.hard;
    return syscall(SYS_prlimit64, 0, what, &r, NULL) < 0 ? -errno : 0;
}

static int halve_limit(int what)
{
    struct {
        uint64_t soft, hard;
    } r = {0, 0};

    if (syscall(SYS_prlimit64, 0, what, NULL, &r) < 0)
        return -errno;
    return r.hard == UINT64_MAX ? 0 : lower_limit(what, r.hard / 2);
}

/* Processes are counted per user namespace. Core files would contain the memory of commands.
 * Queued signals with timers, and POSIX message queues, count for the user outside too, who
 * keeps the other half. */
static int set_limits(const csn_confinement *c)
{
    int rc = lower_limit(RLIMIT_CORE, 0);

    if (rc == 0)
        rc = halve_limit(RLIMIT_SIGPENDING);
    if (rc == 0)
        rc = halve_limit(RLIMIT_MSGQUEUE);

    if (rc == 0 && c->pids_max != 0)
        rc = lower_limit(RLIMIT_NPROC, c->pids_max);
    if (rc == 0 && c->nofile_max != 0)
        rc = lower_limit(RLIMIT_NOFILE, c->nofile_max);
    return rc;
}

/* Without namespaces EPERM is accepted: an outer seccomp filter refuses keyring calls, to
 * commands too. */
static int leave_keyring(const boot_state *b)
{
    int rc = csn_keyring_join_new();

    return rc == -EPERM && !has_step(b, CSN_CONFINE_NAMESPACES) ? 0 : rc;
}

static int second_userns_step(boot_state *b)
{
    int rc = has_step(b, CSN_CONFINE_MOUNTS) ? kp_rootfs_await_detached(&b->rootfs) : 0;

    if (rc < 0) {
        b->step = CSN_CONFINE_MOUNTS;
        return rc;
    }
    return csn_userns_enter_nested(proc_dir(b), b->c->uid, b->c->gid);
}

static int seccomp_step(const boot_state *b)
{
    int guard = b->c->guard ? kp_guard_begin(&b->c->mounts) : -1;

    if (b->c->guard && guard < 0)
        return guard;
    int rc = csn_seccomp_install(b->c->seccomp);
    if (guard < 0)
        return rc;
    return rc < 0 ? rc : kp_guard_finish(guard);
}

/* ---- all steps ---- */

static int run_step(kp_keeper *k, boot_state *b, csn_confine_step step)
{
    switch (step) {
    case CSN_CONFINE_NAMESPACES:
        return sethostname(HOST_NAME, strlen(HOST_NAME)) < 0 ? -errno : 0;
    case CSN_CONFINE_NESTED:
        return nesting_step(b);
    case CSN_CONFINE_NET:
        return net_step(k, b);
    case CSN_CONFINE_MOUNTS:
        return enter_rootfs(b);
    case CSN_CONFINE_USER:
        return second_userns_step(b);
    case CSN_CONFINE_LIMITS:
        return set_limits(b->c);
    case CSN_CONFINE_KEYRING:
        return leave_keyring(b);
    case CSN_CONFINE_CAPS:
        return csn_caps_drop();
    case CSN_CONFINE_LANDLOCK:
        return landlock_step(b);
    case CSN_CONFINE_SECCOMP:
        return seccomp_step(b);
    }
    return -EINVAL;
}

/* Reaps the helpers. No other step depends on the work they finish here. */
static int join_helpers(boot_state *b)
{
    int rc = 0;

    if (has_step(b, CSN_CONFINE_NET)) {
        b->step = CSN_CONFINE_NET;
        rc = kp_helper_join(&b->net_helper);
    }
    if (rc == 0 && has_step(b, CSN_CONFINE_MOUNTS)) {
        b->step = CSN_CONFINE_MOUNTS;
        rc = kp_rootfs_join(&b->rootfs, &b->mount);
    }
    return rc;
}

static int run_steps(kp_keeper *k, boot_state *b)
{
    bool cgroups = (k->spec.flags & CSN_SPEC_GROUPED) != 0;
    int rc = 0;

    for (unsigned i = 0; rc == 0 && i < CSN_CONFINE_STEPS; i++) {
        b->step = (csn_confine_step)i;
        if (cgroups && b->step == CSN_CONFINE_LIMITS)
            rc = enter_cgroups(b);
        if (rc == 0 && has_step(b, b->step))
            rc = run_step(k, b, b->step);
    }
    return rc < 0 ? rc : join_helpers(b);
}

/* ---- before the spec arrives ---- */

/* A private futex hash would take 2 kB for the few waits of this process. Kernels without one
 * refuse the call. Must come before a helper shares the memory. */
static void use_global_futex_hash(void)
{
    (void)prctl(PR_FUTEX_HASH, (long)PR_FUTEX_HASH_SET_SLOTS, 0L, 0L, 0L);
}

static int begin(boot_state *b)
{
    (void)prctl(PR_SET_NAME, "caisson-keeper", 0L, 0L, 0L);
    use_global_futex_hash();
    b->step = CSN_CONFINE_LIMITS;
    int rc = has_step(b, CSN_CONFINE_LIMITS) ? raise_oom_score() : 0;
    if (rc < 0 || !has_step(b, CSN_CONFINE_NET))
        return rc;
    b->step = CSN_CONFINE_NET;
    return kp_helper_begin(&b->net_helper, create_netns, b);
}

void kp_confine_begin(void)
{
    static const csn_confinement common = {.on = CSN_CONFINE_BIT(CSN_CONFINE_LIMITS) |
                                                 CSN_CONFINE_BIT(CSN_CONFINE_NET)};

    boot.c = &common;
    boot.begun_early = begin(&boot) == 0;
}

/* ---- READY or FAILED ---- */

static void report_to_library(csn_msg_type type, const void *msg, const int *fds, size_t nfds)
{
    (void)csn_proto_send(CSN_KEEPER_FD_CONTROL, type, msg, fds, nfds,
                         csn_deadline_in(CSN_KEEPER_ANSWER_MS));
}

static int report_failure(boot_state *b, int rc)
{
    b->failed.errnum = (uint32_t)-rc;
    b->failed.step = b->step;
    b->failed.mount = (uint32_t)b->mount;
    report_to_library(CSN_MSG_FAILED, &b->failed, NULL, 0);
    return rc;
}

int kp_confine(kp_keeper *k)
{
    boot_state *b = &boot;

    b->c = &k->spec.confinement;
    b->ruleset = b->command_ruleset = -1;
    k->command_ruleset = k->proc = k->layers = -1;
    if (b->c->on == 0)
        return 0;
    int rc = b->begun_early ? 0 : begin(b);
    if (rc == 0 && !has_step(b, CSN_CONFINE_MOUNTS)) {
        b->proc = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
        rc = b->proc < 0 ? -errno : 0;
    }
    /* only a test build orders a jail without a network namespace */
    if (b->begun_early && !has_step(b, CSN_CONFINE_NET) && kp_helper_join(&b->net_helper) == 0)
        close(b->netns);
    if (rc == 0)
        rc = receive_mounts(b);
    if (rc == 0)
        rc = run_steps(k, b);
    csn_autofd int root = rc < 0 ? -1 : open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (rc == 0 && root < 0)
        rc = -errno;
    if (rc < 0)
        return report_failure(b, rc);
    b->ready.steps = b->c->on;
    k->ready = b->ready;
    k->command_ruleset = b->command_ruleset;
    k->proc = proc_dir(b);
    k->layers = has_step(b, CSN_CONFINE_MOUNTS) ? b->rootfs.layers : -1;
    rc = kp_disk_meter_open(k);
    if (rc < 0)
        return report_failure(b, rc);
    b->ready_fds[0] = root;
    report_to_library(CSN_MSG_READY, &b->ready, b->ready_fds, 1 + b->net_fd_count);
    kp_net_release();
    k->spec.confinement.mounts.count = 0;
    kp_release_pages(&boot, &boot + 1);
    return 0;
}
