/* orders.c: sends the keeper of a jail its spec, mounts and control groups, and reads READY or
 * FAILED.
 *
 * Every jail has a user namespace with one user. For a root caller the keeper starts as a user
 * without account (os/spawn.c). The library passes it the shares as detached mounts that map
 * the workspace's owner to that user: files of root are then writable inside by a user without
 * any rights outside, and no file changes its owner.
 *
 * Invariant: if a confinement step fails, the sandbox is refused, with the step, the kernel's
 * reason and a fix. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backend/jail/jail.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/limits.h"
#include "os/mount.h"
#include "os/seccomp.h"
#include "os/userns_diagnose.h"
#include "runtime/cow.h"
#include "runtime/link.h"

/* ---- orders ---- */

/* Test builds can disable steps, to verify that a test notices each missing step and that no
 * command escapes when one is missing. Other builds do not read the variable. */
static uint32_t steps_left_out(void)
{
#ifdef CSN_TEST_WALLS
    const char *mask = getenv("CSN_TEST_WALLS_OFF");

    return mask ? (uint32_t)strtoul(mask, NULL, 0) : 0;
#else
    return 0;
#endif
}

csn_status csn_jail_send_orders(csn_runtime *rt, csn_error **err)
{
    csn_jail *j = rt->jail;
    csn_keeper_spec spec = csn_runtime_spec(rt);

    spec.flags |= j->limits.group.count > 0 ? CSN_SPEC_GROUPED : 0;
    spec.confinement = (csn_confinement){
        .on = CSN_CONFINE_ALL,
        .uid = j->uid,
        .gid = j->gid,
        .seccomp = (j->root ? CSN_SECCOMP_NOSUID : CSN_SECCOMP_DEFAULT) |
                   (j->nested ? CSN_SECCOMP_USERNS : 0),
        .nested = j->nested,
        .given = (uint32_t)j->given_count,
        .mounts = {.list = j->mounts, .count = j->mount_count},
    };
    if (j->net)
        spec.confinement.net = j->net->order;
    if (rt->level == CSN_LEVEL_LANDLOCK_ONLY)
        csn_landlock_only_confinement(j, &spec.confinement);
    spec.confinement.on &= ~steps_left_out();
    csn_jail_limits_fill(rt, &spec.confinement);
    return csn_runtime_send_orders(rt, &spec, err);
}

#define OWN_UID                                                                                \
    "--allow-weaker runs commands with your own uid in namespaces, or without namespaces if "  \
    "those are refused too"

static csn_status make_given(csn_jail *j, const csn_jail_share *s, int userns, int *ret,
                             csn_error **err)
{
    int fd =
        csn_mount_detached(s->host, s->as_is ? -1 : userns, s->writable ? 0 : CSN_MOUNT_RDONLY);
    bool lacking = fd == -ENOSYS || fd == -EPERM; /* an old kernel, or a seccomp filter */
    if (lacking || fd == -EINVAL || fd == -EOPNOTSUPP) {
        csn_status st =
            lacking ? csn_fail(err, CSN_UNAVAILABLE, "this host refuses id-mapped mounts")
                    : csn_fail(err, CSN_UNAVAILABLE,
                               "%s %s: its file system refuses id-mapped mounts", s->option,
                               s->host);
        if (j->cow && s->host == j->cow->path)
            return csn_error_advise(st, err,
                                    "XDG_STATE_HOME can name a directory on another file "
                                    "system");
        j->refused = true;
        return csn_error_advise(st, err,
                                "run caisson as the user who owns the directory; " OWN_UID);
    }
    if (fd < 0)
        return csn_fail_errno(err, -fd, "%s %s", s->option, s->host);
    *ret = fd;
    return CSN_OK;
}

static csn_status send_given(csn_runtime *rt, csn_error **err)
{
    csn_jail *j = rt->jail;
    char path[64];
    csn_status st = CSN_OK;

    if (j->given_count == 0)
        return CSN_OK;
    snprintf(path, sizeof(path), "/proc/%lld/ns/user", (long long)rt->keeper_pid);
    csn_autofd int userns = open(path, O_RDONLY | O_CLOEXEC);
    if (userns < 0) {
        st = csn_fail(err, CSN_UNAVAILABLE,
                      "id-mapped mounts need the user namespace of the keeper: %s",
                      strerrordesc_np(errno));
        j->refused = true;
        return csn_error_advise(st, err,
                                "run caisson as the user who owns the directory; root needs "
                                "CAP_SYS_PTRACE and CAP_SYS_ADMIN here; " OWN_UID);
    }
    for (size_t i = 0; st == CSN_OK && i < j->given_count; i++) {
        csn_autofd int fd = -1;
        st = make_given(j, j->given[i], userns, &fd, err);
        if (st < 0)
            break;
        int rc = csn_proto_send(rt->keeper_fd, CSN_MSG_MOUNTS, NULL, &fd, 1,
                                csn_deadline_in(CSN_KEEPER_ANSWER_MS));
        if (rc < 0 && rc != -EPIPE) /* EPIPE: the keeper has ended after sending FAILED */
            st = csn_fail_errno(err, -rc, "mounts for the keeper");
    }
    return st;
}

/* Sends mounts and control groups while the keeper confines itself. The groups are created only
 * when the sweeper that removes them runs. If the sweeper could not be started, its error is
 * reported rather than any other. */
csn_status csn_jail_send_resources(csn_runtime *rt, csn_error **err)
{
    csn_error *why = NULL;
    csn_status st = send_given(rt, &why);
    csn_status swept = csn_jail_sweeper_ready(rt, err);

    if (swept == CSN_OK && err)
        *err = CSN_STEAL(why);
    csn_error_free(why);
    if (swept < 0 || st < 0)
        return swept < 0 ? swept : st;
    st = csn_jail_sweeper_set_keeper(rt, err);
    return st < 0 ? st : csn_jail_limits_admit(rt, err);
}

/* ---- failures ---- */

static csn_status advise_userns(csn_status st, csn_error **err)
{
    csn_userns_diagnosis why = csn_userns_diagnose();

    return csn_error_advise(
        st, err,
        "%s%scaisson doctor shows more; --allow-weaker does without namespaces, "
        "with Landlock and seccomp",
        why.fix ? why.fix : "", why.fix ? "; " : "");
}

csn_status csn_jail_spawn_failed(csn_runtime *rt, enum csn_spawn_stage stage, int errnum,
                                 csn_error **err)
{
    const char *why = strerrordesc_np(errnum);
    csn_jail *j = rt->jail;
    csn_status st;

    if (stage == CSN_SPAWN_AT_CLONE &&
        (errnum == EPERM || errnum == ENOSPC || errnum == EINVAL || errnum == EACCES ||
         errnum == EUSERS)) {
        j->refused = rt->level == CSN_LEVEL_NAMESPACES;
        st = csn_fail(err, CSN_UNAVAILABLE, "this host refuses user namespaces: %s", why);
        return advise_userns(st, err);
    }
    bool scarce = errnum == EMFILE || errnum == ENFILE || errnum == ENOMEM;
    if (stage == CSN_SPAWN_AT_MAP && !scarce) {
        j->refused = true;
        st = csn_fail(err, CSN_UNAVAILABLE,
                      "this host gives user namespaces no user or capability: %s", why);
        return advise_userns(st, err);
    }
    if (stage == CSN_SPAWN_AT_USER) {
        j->refused = j->idmapped;
        st = csn_fail(err, CSN_UNAVAILABLE,
                      "root's commands need another user to be, and this host refuses to "
                      "change it: %s",
                      why);
        return csn_error_advise(st, err, "root needs CAP_SETUID and CAP_SETGID here; " OWN_UID);
    }
    return csn_fail(err, CSN_UNAVAILABLE, "start the keeper: %s", why);
}

static const char *step_name(uint32_t step)
{
    static const char *const names[CSN_CONFINE_STEPS] = {
        [CSN_CONFINE_NAMESPACES] = "namespaces", [CSN_CONFINE_NET] = "network namespace",
        [CSN_CONFINE_NESTED] = "nesting limit",  [CSN_CONFINE_MOUNTS] = "mounts",
        [CSN_CONFINE_USER] = "user namespace",   [CSN_CONFINE_LIMITS] = "limits",
        [CSN_CONFINE_KEYRING] = "keyring",       [CSN_CONFINE_CAPS] = "capabilities",
        [CSN_CONFINE_LANDLOCK] = "Landlock",     [CSN_CONFINE_SECCOMP] = "seccomp"};

    return step < CSN_CONFINE_STEPS ? names[step] : "unknown step";
}

/* True if namespaces can be created but not used, for example because a security module
 * withholds their capabilities: this counts as refused. Other failures do not permit a weaker
 * jail. */
static bool namespaces_useless(const csn_jail *j, const csn_failed_msg *f)
{
    if (f->errnum != EPERM && f->errnum != EACCES && f->errnum != ENOSPC)
        return false;
    if (f->step == CSN_CONFINE_MOUNTS)
        return f->mount >= j->mount_count || j->mounts[f->mount].kind == CSN_MOUNT_PROC;
    return f->step == CSN_CONFINE_NAMESPACES || f->step == CSN_CONFINE_NET ||
           f->step == CSN_CONFINE_USER;
}

static csn_status confinement_failed(csn_runtime *rt, const csn_failed_msg *f, csn_error **err)
{
    csn_jail *j = rt->jail;
    const char *why = strerrordesc_np((int)f->errnum);
    const char *to = f->step == CSN_CONFINE_MOUNTS && f->mount < j->mount_count
                         ? j->mounts[f->mount].to
                         : NULL;
    if (f->step == CSN_CONFINE_NET)
        to = csn_jail_net_step_name(f->net_step, f->net_detail);

    csn_status st =
        csn_fail(err, CSN_UNAVAILABLE, "the jail's %s cannot be built: %s%s%s",
                 step_name(f->step), to ? to : "", to ? ": " : "", why ? why : "unknown error");
    j->refused = namespaces_useless(j, f);
    j->cow_refused = f->step == CSN_CONFINE_MOUNTS && f->mount < j->mount_count &&
                     j->mounts[f->mount].kind == CSN_MOUNT_OVERLAY;
    if (j->refused)
        return advise_userns(st, err);
    return csn_error_advise(st, err, "caisson doctor shows what this host can do");
}

csn_status csn_jail_await_ready(csn_runtime *rt, csn_error **err)
{
    csn_jail *j = rt->jail;
    uint8_t buf[256];
    csn_msg m;
    csn_failed_msg failed;

    csn_status st = csn_link_answer(rt, rt->keeper_fd, 0, buf, sizeof(buf), &m, err);
    if (st < 0)
        return st;
    bool ready = csn_proto_decode(&m, CSN_MSG_READY, &j->ready) == 0;
    bool sane = ready || csn_proto_decode(&m, CSN_MSG_FAILED, &failed) == 0;
    if (ready) {
        rt->root.fd = csn_msg_take_fd(&m, 0);
        sane = csn_jail_net_take(j, &m);
    }
    csn_msg_release(&m);
    if (!sane)
        return csn_link_hostile(rt, "it broke the protocol", err);
    return ready ? CSN_OK : confinement_failed(rt, &failed, err);
}

/* Gets the contents of READY from a keeper that another process started. */
csn_status csn_jail_ask_root(csn_runtime *rt, csn_error **err)
{
    csn_jail *j = rt->jail;
    uint8_t buf[256];
    csn_msg m;
    int e = 0;

    csn_status st = csn_link_call_long(rt, CSN_MSG_ROOT, NULL, 0, CSN_MSG_ROOT_REPLY, &j->ready,
                                       buf, sizeof(buf), &m, &e, err);
    if (st < 0)
        return st;
    if (e != 0)
        return csn_fail_errno(err, e, "root of sandbox '%s'", rt->id);
    rt->root.fd = csn_msg_take_fd(&m, 0);
    csn_msg_release(&m);
    return CSN_OK;
}
