/* confine.c: a keeper makes itself the first inhabitant of a jail.
 *
 * Runs once, before anything is served and before any code of the sandbox exists, in namespaces
 * that the library's clone has made (os/spawn.c). The orders are the library's. The order of
 * the steps is the point: what needs a privilege comes before the privilege is dropped,
 * Landlock comes after the mounts it speaks of, and seccomp last, when nothing it refuses is
 * needed any more. Everything is inherited by what the keeper starts. What must hold: a wall
 * that was ordered and cannot be built ends the keeper, with the reason told to the library; no
 * command is ever started behind less than what was ordered. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "keeper/boot/rootfs.h"
#include "keeper/keeper.h"
#include "os/caps.h"
#include "os/landlock.h"
#include "os/netns.h"
#include "os/seccomp.h"
#include "os/userns.h"

#define HOST_NAME "caisson"
#ifndef PR_FUTEX_HASH /* since Linux 6.16 */
#define PR_FUTEX_HASH           78
#define PR_FUTEX_HASH_SET_SLOTS 1
#endif

typedef struct boot_state {
    const csn_confinement *w;
    csn_mount mounts[CSN_MOUNTS_MAX]; /* the list of the orders lies here */
    csn_landlock_rule rules[CSN_MOUNTS_MAX + 1];
    int given[CSN_SPEC_GIVEN_MAX];
    size_t given_count;
    csn_confine_step at;             /* the one being built */
    size_t at_mount;                 /* which entry, when it is the mounts */
    int inner;                       /* the wall that commands step behind, or -1 */
    int landlock;                    /* the rules of our own, or -1 */
    csn_ready_msg ready;             /* what will be reported, */
    csn_failed_msg failed;           /* one or the other */
    bool begun_early;                /* the first steps were done before the orders came */
    bool grouped;                    /* control groups are to be entered */
    kp_helper net_helper;            /* makes the network namespace during the other steps */
    int net;                         /* a descriptor of that namespace */
    int net_fds[CSN_KEEPER_FDS_MAX]; /* what READY brings: the root, then the network's */
    size_t net_count;
    kp_rootfs rootfs;
} boot_state;

/* Pages of its own, given back when the walls stand: there may be thousands of keepers. */
static _Alignas(KP_PAGE) boot_state boot;

csn_mount *kp_confine_mount_list(void)
{
    return boot.mounts;
}

/* ---- what the library still has to give ---- */

/* The descriptors of the next message, which is of this type and brings at most `max`. They
 * come on the connection we were born with, before any request. How many, or -errno. */
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

/* Detached mounts of a privileged caller. */
static int receive_mounts(boot_state *b)
{
    while (b->given_count < b->w->given) {
        int n = receive_fds(CSN_MSG_MOUNTS, b->given + b->given_count,
                            b->w->given - b->given_count);
        if (n < 0)
            return n;
        b->given_count += (size_t)n;
    }
    return 0;
}

/* The groups are made while we build; whoever removes them knows by now whose end to wait for.
 * We move ourselves, through files that somebody with the right to has opened: on v1 that is
 * cheap for a single thread. From here on everything is counted, and the groups are the root of
 * what can be seen of them. A group that is already gone cannot be entered. */
static int enter_groups(const boot_state *b)
{
    int doors[CSN_CGROUP_KINDS];
    int n = receive_fds(CSN_MSG_CGROUPS, doors, CSN_CGROUP_KINDS), rc = n < 0 ? n : 0;

    for (int i = 0; i < n; i++) {
        if (rc == 0 && write(doors[i], "0", 1) != 1)
            rc = -errno;
        close(doors[i]);
    }
    if (rc == 0 && (b->w->on & CSN_CONFINE_BIT(CSN_CONFINE_NAMESPACES)) &&
        unshare(CLONE_NEWCGROUP) < 0)
        rc = -errno;
    return rc;
}

static int enter_mounts(boot_state *b)
{
    const csn_rootfs *m = &b->w->mounts;

    for (size_t i = 0; i < m->count; i++)
        if (b->mounts[i].kind == CSN_MOUNT_GIVEN)
            b->mounts[i].fd = b->given[b->mounts[i].fd];
    int rc = kp_rootfs_enter(m, &b->rootfs, &b->at_mount);
    for (size_t i = 0; i < b->given_count; i++)
        close(b->given[i]);
    return rc;
}

/* ---- in the helpers ---- */

/* The longest step, so it is begun first. */
static int make_net(void *arg)
{
    boot_state *b = arg;

    b->net = csn_netns_make();
    return b->net < 0 ? b->net : 0;
}

/* Where /proc/sys is read-only, seccomp stands alone against nested user namespaces: told, not
 * hidden. With mounts it is the new /proc: in the host's every namespace that lives has a file
 * of this name, and the kernel looks at one after the other. */
static int limit_nesting(void *arg)
{
    boot_state *b = arg;

    int rc = csn_userns_limit(CSN_NESTED_USERNS_LIMIT);

    if (rc == 0 && b->w->given == 0) /* else it is a user that nobody else is */
        csn_userns_halve_inotify();
    b->ready.nesting_errnum = (uint32_t)-rc;
    return rc == -ENOENT ? rc : 0; /* every /proc has it: this would be none yet */
}

/* ---- the others ---- */

static int set_limit(int what, uint64_t value)
{
    struct {
        uint64_t soft, hard;
    } r = {0, 0};

    if (value == 0)
        return 0;
    if (syscall(SYS_prlimit64, 0, what, NULL, &r) < 0)
        return -errno;
    r.hard =
        r.hard < value ? r.hard : value; /* lower already: that stays, nobody can raise it */
    r.soft = r.hard;
    return syscall(SYS_prlimit64, 0, what, &r, NULL) < 0 ? -errno : 0;
}

/* When memory runs out on the host, it is a jail that goes first. Before anybody shares our
 * memory: from then on the kernel would look at every process of the host for another that
 * does, now and for each command. */
static int raise_oom_score(void)
{
    csn_autofd int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

    return fd >= 0 && write(fd, "500", 3) < 0 ? -errno : 0;
}

/* Processes are counted per user namespace: nobody else's are in the sum. No core files: they
 * would hold what was in memory. */
static int set_limits(const csn_confinement *w)
{
    struct {
        uint64_t soft, hard;
    } none = {0, 0};

    if (syscall(SYS_prlimit64, 0, RLIMIT_CORE, &none, NULL) < 0)
        return -errno;
    int rc = set_limit(RLIMIT_NPROC, w->pids_max);
    return rc < 0 ? rc : set_limit(RLIMIT_NOFILE, w->nofile_max);
}

/* Names of directories may be read everywhere, contents only where a mount says so. Without a
 * root of our own the names are the host's, and stay hidden as well. */
static csn_landlock_spec landlock_spec(boot_state *b, uint32_t leave_out)
{
    csn_landlock_rule *rules = b->rules;
    size_t n = 0;

    bool mounts = (b->w->on & CSN_CONFINE_BIT(CSN_CONFINE_MOUNTS)) != 0;

    if (mounts)
        rules[n++] = (csn_landlock_rule){.path = "/", .access = CSN_LL_LIST};
    for (size_t i = 0; i < b->w->mounts.count; i++) {
        const csn_mount *m = &b->w->mounts.list[i];
        bool lost = m->kind == CSN_MOUNT_SCRATCH && !mounts; /* that name is somebody else's */
        uint32_t unfit = leave_out | (mounts ? CSN_MOUNT_NARROW : CSN_MOUNT_WIDE);
        /* A share may lie over a place of our own, as one at /var over /var/tmp. */
        bool optional = (m->flags & CSN_MOUNT_OPTIONAL) || m->kind == CSN_MOUNT_SCRATCH;
        if (m->access != 0 && (m->flags & unfit) == 0 && !lost)
            rules[n++] =
                (csn_landlock_rule){.path = m->to, .access = m->access, .optional = optional};
    }
    return (csn_landlock_spec){
        .rules = rules, .count = n, .no_tcp = b->w->no_tcp != 0, .scope = true};
}

/* Where the processes of the host can be seen, the keeper must see them, to find its own, and
 * commands must not: they step behind a wall of their own, which is made here. It also keeps
 * them from sending signals to the keeper. */
static int landlock_rules(boot_state *b)
{
    int abi = 0;

    if (!(b->w->on & CSN_CONFINE_BIT(CSN_CONFINE_MOUNTS))) {
        csn_landlock_spec inner = landlock_spec(b, CSN_MOUNT_KEEPER);
        b->inner = csn_landlock_prepare(&inner, &abi);
        if (b->inner < 0)
            return b->inner;
    }
    csn_landlock_spec spec = landlock_spec(b, 0);
    b->landlock = csn_landlock_prepare(&spec, &abi);
    b->ready.landlock_abi = (uint32_t)abi;
    return b->landlock < 0 ? b->landlock : 0;
}

static int landlock(boot_state *b)
{
    int rc = b->landlock < 0 ? landlock_rules(b) : 0;

    if (rc == 0)
        rc = csn_landlock_enter(b->landlock);
    if (b->landlock >= 0)
        close(csn_steal_fd(&b->landlock));
    return rc;
}

/* Where an outer filter refuses the call there is none to make of the keyring either: ours
 * refuses all of its family. */
static int leave_keyring(const boot_state *b)
{
    int rc = csn_keyring_join_new();

    return rc == -EPERM && !(b->w->on & CSN_CONFINE_BIT(CSN_CONFINE_NAMESPACES)) ? 0 : rc;
}

/* With mounts the helper of boot/rootfs.c does it, in the new /proc. */
static int nesting(boot_state *b)
{
    if (b->w->on & CSN_CONFINE_BIT(CSN_CONFINE_MOUNTS)) {
        b->rootfs.on_proc = limit_nesting;
        b->rootfs.arg = b;
        return 0;
    }
    return limit_nesting(b);
}

/* Prepares the Landlock rules while the helper makes the network. */
static int build_net(kp_keeper *k, boot_state *b)
{
    int rc = 0;

    if (b->w->on & CSN_CONFINE_BIT(CSN_CONFINE_LANDLOCK)) {
        b->at = CSN_CONFINE_LANDLOCK;
        rc = landlock_rules(b);
        if (rc < 0)
            return rc;
        b->at = CSN_CONFINE_NET;
    }
    rc = kp_helper_result(&b->net_helper);
    if (rc < 0)
        return rc;
    rc = csn_netns_enter(b->net);
    close(b->net);
    if (rc == 0)
        rc = kp_net_build(k, &b->ready, b->net_fds + 1, &b->net_count, &b->failed);
    return rc;
}

static int enter_second_userns(boot_state *b)
{
    bool mounts = (b->w->on & CSN_CONFINE_BIT(CSN_CONFINE_MOUNTS)) != 0;
    int rc = mounts ? kp_rootfs_await_detached(&b->rootfs) : 0;

    if (rc < 0) {
        b->at = CSN_CONFINE_MOUNTS;
        return rc;
    }
    return csn_userns_enter_nested(b->w->uid, b->w->gid);
}

static int run_step(kp_keeper *k, boot_state *b, csn_confine_step wall)
{
    switch (wall) {
    case CSN_CONFINE_NAMESPACES:
        return sethostname(HOST_NAME, strlen(HOST_NAME)) < 0 ? -errno : 0;
    case CSN_CONFINE_NESTED:
        return nesting(b);
    case CSN_CONFINE_NET:
        return build_net(k, b);
    case CSN_CONFINE_MOUNTS:
        return enter_mounts(b);
    case CSN_CONFINE_USER:
        return enter_second_userns(b);
    case CSN_CONFINE_LIMITS:
        return set_limits(b->w);
    case CSN_CONFINE_KEYRING:
        return leave_keyring(b);
    case CSN_CONFINE_CAPS:
        return csn_caps_drop();
    case CSN_CONFINE_LANDLOCK:
        return landlock(b);
    case CSN_CONFINE_SECCOMP:
        return csn_seccomp_install(b->w->seccomp);
    }
    return -EINVAL;
}

static int run_steps(kp_keeper *k, boot_state *b)
{
    int rc = 0;

    for (unsigned i = 0; rc == 0 && i < CSN_CONFINE_STEPS; i++) {
        b->at = (csn_confine_step)i;
        rc = b->grouped && b->at == CSN_CONFINE_LIMITS ? enter_groups(b) : 0;
        if (rc == 0 && (b->w->on & CSN_CONFINE_BIT(i)))
            rc = run_step(k, b, b->at);
    }
    /* The helpers are reaped last: no step above depends on that. */
    if (rc == 0 && (b->w->on & CSN_CONFINE_BIT(CSN_CONFINE_NET))) {
        b->at = CSN_CONFINE_NET;
        rc = kp_helper_join(&b->net_helper);
    }
    if (rc < 0 || !(b->w->on & CSN_CONFINE_BIT(CSN_CONFINE_MOUNTS)))
        return rc;
    b->at = CSN_CONFINE_MOUNTS;
    return kp_rootfs_join(&b->rootfs, &b->at_mount);
}

static void report_to_library(csn_msg_type type, const void *msg, const int *fds, size_t nfds)
{
    (void)csn_proto_send(CSN_KEEPER_FD_CONTROL, type, msg, fds, nfds,
                         csn_deadline_in(CSN_KEEPER_ANSWER_MS));
}

/* Without a private futex hash, which would take 2 KB for the few waits of a boot. Call it
 * before a helper shares our memory. Kernels before 6.16 refuse. */
static void use_global_futex_hash(void)
{
    (void)prctl(PR_FUTEX_HASH, (long)PR_FUTEX_HASH_SET_SLOTS, 0L, 0L, 0L);
}

static int begin(boot_state *b)
{
    use_global_futex_hash();
    b->at = CSN_CONFINE_LIMITS;
    int rc = b->w->on & CSN_CONFINE_BIT(CSN_CONFINE_LIMITS) ? raise_oom_score() : 0;
    if (rc < 0 || !(b->w->on & CSN_CONFINE_BIT(CSN_CONFINE_NET)))
        return rc;
    b->at = CSN_CONFINE_NET;
    return kp_helper_begin(&b->net_helper, make_net, b);
}

void kp_confine_begin(void)
{
    static const csn_confinement first = {.on = CSN_CONFINE_BIT(CSN_CONFINE_LIMITS) |
                                                CSN_CONFINE_BIT(CSN_CONFINE_NET)};

    (void)prctl(PR_SET_NAME, "caisson-keeper", 0L, 0L, 0L);
    boot.w = &first;
    boot.begun_early = begin(&boot) == 0;
}

/* Only a build for tests orders a jail without a network of its own. */
static void drop_net(boot_state *b)
{
    if (kp_helper_join(&b->net_helper) == 0)
        close(b->net);
}

int kp_confine(kp_keeper *k)
{
    boot_state *b = &boot;

    b->w = &k->spec.confinement;
    b->grouped = (k->spec.flags & CSN_SPEC_GROUPED) != 0;
    b->inner = b->landlock = -1;
    k->command_ruleset = -1;
    if (b->w->on == 0)
        return 0;
    (void)prctl(PR_SET_NAME, "caisson-keeper", 0L, 0L, 0L);
    int rc = b->begun_early ? 0 : begin(b);
    if (b->begun_early && !(b->w->on & CSN_CONFINE_BIT(CSN_CONFINE_NET)))
        drop_net(b);
    if (rc == 0)
        rc = receive_mounts(b);
    if (rc == 0)
        rc = run_steps(k, b);
    csn_autofd int root = rc < 0 ? -1 : open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (rc == 0 && root < 0)
        rc = -errno;
    if (rc < 0) {
        b->failed.errnum = (uint32_t)-rc;
        b->failed.step = b->at;
        b->failed.mount = (uint32_t)b->at_mount;
        report_to_library(CSN_MSG_FAILED, &b->failed, NULL, 0);
        return rc;
    }
    b->ready.steps = b->w->on;
    k->ready = b->ready;
    k->command_ruleset = b->inner;
    b->net_fds[0] = root;
    report_to_library(CSN_MSG_READY, &b->ready, b->net_fds, 1 + b->net_count);
    kp_net_release();
    k->spec.confinement.mounts.count = 0;
    kp_release_pages(&boot, &boot + 1);
    return 0;
}
