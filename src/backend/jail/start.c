/* start.c: a keeper behind its walls: what it is told, what it still needs, why it failed.
 *
 * Called when a sandbox is opened (csn_runtime_kind). Everybody's jail is built the way an
 * ordinary user's is: by a user namespace with one user in it. A root caller only does
 * beforehand what nobody else can: the keeper starts as a user without account (os/spawn.c),
 * and its shares are handed to it as detached mounts on which the workspace's owner is that
 * user. So files of root are writable inside by somebody who is nobody outside, without any
 * chown. What must hold: when a wall cannot be had, the sandbox is refused with the wall's
 * name, the kernel's reason and what would help; there is no way on with less. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backend/jail/jail.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/limits.h"
#include "os/beneath.h"
#include "os/mount.h"
#include "os/seccomp.h"
#include "os/userns_diagnose.h"
#include "runtime/link.h"

#define NAMESPACES                                                                             \
    (CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP)

/* A build for tests can leave walls out, to show that each has a test that notices, and that
 * any one of them can fall without anybody getting out. No other build looks at the variable.
 */
static uint32_t walls_off(void)
{
#ifdef CSN_TEST_WALLS
    const char *mask = getenv("CSN_TEST_WALLS_OFF");

    return mask ? (uint32_t)strtoul(mask, NULL, 0) : 0;
#else
    return 0;
#endif
}

csn_status csn_jail_spawn_opts(csn_runtime *k, csn_spawn_opts *o, csn_error **err)
{
    csn_jail *j = k->own;

    j->walls = (csn_spawn_namespaces){.namespaces = k->kind->judged ? 0 : NAMESPACES,
                                      .become = j->privileged,
                                      .keep_caps = j->disk_uid != 0,
                                      .uid = j->host_uid,
                                      .gid = j->host_gid,
                                      .uid_map = j->uid_map,
                                      .gid_map = j->gid_map};
    o->walls = &j->walls;
    (void)err;
    return CSN_OK;
}

void csn_jail_fill_spec(csn_runtime *k, csn_keeper_spec *spec)
{
    csn_jail *j = k->own;

    spec->socket = NULL; /* it has no way to it; see the sweeper */
    spec->remove[0] = NULL;
    spec->flags |= j->limits.group.count > 0 ? CSN_SPEC_GROUPED : 0;
    spec->confinement = (csn_confinement){
        .on = CSN_CONFINE_ALL,
        .uid = j->uid,
        .gid = j->gid,
        .seccomp = j->privileged ? CSN_SECCOMP_NOSUID : CSN_SECCOMP_DEFAULT,
        .given = (uint32_t)j->given_count,
        .mounts = {.list = j->mounts, .count = j->mount_count},
    };
    csn_jail_net_arm(j, &spec->confinement);
    if (k->kind->judged)
        csn_landlock_only_walls(j, &spec->confinement);
    spec->confinement.on &= ~walls_off();
    csn_jail_limits_arm(k, &spec->confinement);
}

/* ---- mounts for the keeper of a root caller ---- */

static csn_status make_given(const csn_runtime *k, const csn_jail_share *s, int userns,
                             int *ret, csn_error **err)
{
    int fd =
        csn_mount_detached(s->host, s->as_is ? -1 : userns, s->writable ? 0 : CSN_MOUNT_RDONLY);

    (void)k;
    bool lacking = fd == -ENOSYS || fd == -EPERM; /* an old kernel, or a container's filter */
    if (lacking || fd == -EINVAL || fd == -EOPNOTSUPP) {
        csn_status st = csn_fail(err, CSN_UNAVAILABLE, "%s %s: %s refuses id-mapped mounts",
                                 s->option, s->host, lacking ? "this host" : "its file system");
        return csn_error_advise(st, err, "run caisson as the user who owns the directory");
    }
    if (fd < 0)
        return csn_fail_errno(err, -fd, "%s %s", s->option, s->host);
    *ret = fd;
    return CSN_OK;
}

static csn_status send_given(csn_runtime *k, csn_error **err)
{
    const csn_jail *j = k->own;
    char path[64];
    csn_status st = CSN_OK;

    if (j->given_count == 0)
        return CSN_OK;
    snprintf(path, sizeof(path), "/proc/%lld/ns/user", (long long)k->keeper_pid);
    csn_autofd int userns = open(path, O_RDONLY | O_CLOEXEC);
    if (userns < 0) {
        st = csn_fail(err, CSN_UNAVAILABLE, "user namespace of the keeper: %s",
                      strerrordesc_np(errno));
        return csn_error_advise(st, err,
                                "run caisson as the user who owns the directory; root needs "
                                "CAP_SYS_PTRACE and CAP_SYS_ADMIN here");
    }
    for (size_t i = 0; st == CSN_OK && i < j->given_count; i++) {
        csn_autofd int fd = -1;
        st = make_given(k, j->given[i], userns, &fd, err);
        if (st < 0)
            break;
        int rc = csn_proto_send(k->keeper_fd, CSN_MSG_MOUNTS, NULL, &fd, 1,
                                csn_deadline_in(CSN_KEEPER_ANSWER_MS));
        if (rc < 0 && rc != -EPIPE) /* a keeper that is gone has told why */
            st = csn_fail_errno(err, -rc, "mounts for the keeper");
    }
    return st;
}

/* ---- its answer ---- */

static const char *wall_name(uint32_t wall)
{
    static const char *const names[CSN_CONFINE_STEPS] = {
        [CSN_CONFINE_NAMESPACES] = "namespaces", [CSN_CONFINE_NET] = "network namespace",
        [CSN_CONFINE_NESTED] = "nesting limit",  [CSN_CONFINE_MOUNTS] = "mounts",
        [CSN_CONFINE_USER] = "user namespace",   [CSN_CONFINE_LIMITS] = "limits",
        [CSN_CONFINE_KEYRING] = "keyring",       [CSN_CONFINE_CAPS] = "capabilities",
        [CSN_CONFINE_LANDLOCK] = "Landlock",     [CSN_CONFINE_SECCOMP] = "seccomp"};

    return wall < CSN_CONFINE_STEPS ? names[wall] : "unknown wall";
}

/* A namespace was made and is worth nothing, as where a security module takes its capabilities:
 * that is as good as none. Anything else that fails is no reason for a weaker jail. */
static bool namespaces_useless(const csn_jail *j, const csn_failed_msg *f)
{
    if (f->errnum != EPERM && f->errnum != EACCES && f->errnum != ENOSPC)
        return false;
    if (f->step == CSN_CONFINE_MOUNTS)
        return f->mount >= j->mount_count || j->mounts[f->mount].kind == CSN_MOUNT_PROC;
    return f->step == CSN_CONFINE_NAMESPACES || f->step == CSN_CONFINE_NET ||
           f->step == CSN_CONFINE_USER;
}

static csn_status advise_userns(csn_status st, csn_error **err)
{
    csn_userns_why why = csn_userns_ask();

    return csn_error_advise(st, err,
                            "%s%scaisson doctor tells more; --allow-weaker does without",
                            why.fix ? why.fix : "", why.fix ? "; " : "");
}

static csn_status wall_failed(csn_runtime *k, const csn_failed_msg *f, csn_error **err)
{
    csn_jail *j = k->own;
    const char *why = strerrordesc_np((int)f->errnum);
    const char *to = f->step == CSN_CONFINE_MOUNTS && f->mount < j->mount_count
                         ? j->mounts[f->mount].to
                         : NULL;
    if (f->step == CSN_CONFINE_NET)
        to = csn_jail_net_why(f->net_step, f->net_detail);

    csn_status st =
        csn_fail(err, CSN_UNAVAILABLE, "the jail's %s cannot be built: %s%s%s",
                 wall_name(f->step), to ? to : "", to ? ": " : "", why ? why : "unknown error");
    j->no_namespaces = namespaces_useless(j, f);
    if (j->no_namespaces)
        return advise_userns(st, err);
    return csn_error_advise(st, err, "caisson doctor tells what this host can do");
}

/* Waits for READY or FAILED. What came along as the root is checked: a directory. */
static csn_status await_ready(csn_runtime *k, csn_error **err)
{
    csn_jail *j = k->own;
    uint8_t buf[256];
    csn_msg m;
    csn_failed_msg failed;

    csn_status st = csn_link_answer(k, k->keeper_fd, 0, buf, sizeof(buf), &m, err);
    if (st < 0)
        return st;
    bool ready = csn_proto_decode(&m, CSN_MSG_READY, &j->ready) == 0;
    bool sane = ready || csn_proto_decode(&m, CSN_MSG_FAILED, &failed) == 0;
    if (ready) {
        k->root.fd = csn_msg_take_fd(&m, 0);
        sane = csn_jail_net_take(j, &m);
    }
    csn_msg_release(&m);
    if (!sane)
        return csn_link_hostile(k, "it broke the protocol", err);
    return ready ? CSN_OK : wall_failed(k, &failed, err);
}

/* For a sandbox that was found again. */
static csn_status ask_root(csn_runtime *k, csn_error **err)
{
    csn_jail *j = k->own;
    uint8_t buf[256];
    csn_msg m;
    int e = 0;

    csn_status st = csn_link_call_long(k, CSN_MSG_ROOT, NULL, 0, CSN_MSG_ROOT_REPLY, &j->ready,
                                       buf, sizeof(buf), &m, &e, err);
    if (st < 0)
        return st;
    if (e != 0)
        return csn_fail_errno(err, e, "root of sandbox '%s'", k->id);
    k->root.fd = csn_msg_take_fd(&m, 0);
    csn_msg_release(&m);
    return CSN_OK;
}

/* Its walls stand: the rest of what the file calls and commands need. ask: when that fails the
 * keeper may be asked why, which nobody can who is just starting it. */
static csn_status finish(csn_runtime *k, bool ask, csn_error **err)
{
    csn_jail *j = k->own;

    const csn_jail_told told = {.landlock_abi = j->ready.landlock_abi,
                                .nested_limited = j->ready.nesting_errnum == 0};

    k->file_uid = j->host_uid;
    if (!k->kind->judged)
        j->layer_count = csn_jail_layers(&told, j->limits.text, j->layers);
    csn_status st = csn_jail_net_ready(k, err);
    if (st == CSN_OK)
        st = csn_jail_environ(k, err);
    if (st < 0)
        return st;
    k->root.path = strdup("/");
    if (!k->root.path)
        return csn_fail(err, CSN_NOMEM, "root of the sandbox");
    k->base.fd =
        csn_beneath_open(k->root.fd, k->base.path, O_PATH | O_DIRECTORY, CSN_BENEATH_ROOTED);
    if (k->base.fd >= 0)
        return CSN_OK;
    st = csn_fail_errno(err, -k->base.fd, "workspace");
    return ask ? csn_link_check_alive(k, st, err) : st;
}

/* While the keeper builds its walls: what it will be counted in, and before that who removes
 * it.
 */
static csn_status give_all(csn_runtime *k, csn_error **err)
{
    csn_error *why = NULL;
    csn_status st = send_given(k, &why);
    csn_status born = csn_jail_sweeper_ready(k, err);

    if (born == CSN_OK && err)
        *err = CSN_STEAL(why);
    csn_error_free(why);
    if (born < 0 || st < 0)
        return born < 0 ? born : st;
    st = csn_jail_sweeper_tell(k, err);
    return st < 0 ? st : csn_jail_limits_admit(k, err);
}

/* Nobody waits for the walls here unless what is done next depends on them: the core has work
 * of its own, and asks csn_jail_ready afterwards. */
csn_status csn_jail_started(csn_runtime *k, csn_error **err)
{
    csn_jail *j = k->own;
    bool wait = k->detached || (k->config->flags & CSN_OPEN_ALLOW_WEAKER) != 0;
    csn_status st = k->connected ? ask_root(k, err) : give_all(k, err);

    if (st == CSN_OK)
        st = csn_jail_limits_started(k, err);
    if (st == CSN_OK && !k->connected)
        st = csn_jail_net_start(k, err);
    if (st == CSN_OK && !k->connected && !wait) {
        j->pending = true;
        return CSN_OK;
    }
    if (st == CSN_OK && !k->connected)
        st = await_ready(k, err);
    if (st < 0)
        return st;
    if (k->connected) { /* the user it was given when it was made */
        j->host_uid = k->keeper_uid;
        j->host_gid = k->keeper_gid;
    }
    return finish(k, k->connected, err);
}

csn_status csn_jail_ready(void *state, csn_error **err)
{
    csn_runtime *k = state;
    csn_jail *j = k->own;

    if (!j->pending)
        return CSN_OK;
    j->pending = false;
    csn_status st = await_ready(k, err);
    return st < 0 ? st : finish(k, true, err);
}

/* A pipe has an owner and mode 0600: made by root it would be closed to the command's own
 * /dev/stdout. It has nothing behind it that its owner could reach. Without CAP_CHOWN only
 * those names do not work. */
void csn_jail_chown_pipe(csn_runtime *k, int fd)
{
    const csn_jail *j = k->own;

    if (!j->privileged || fchown(fd, j->host_uid, j->host_gid) < 0)
        return;
}

csn_status csn_jail_spawn_failed(csn_runtime *k, enum csn_spawn_stage stage, int errnum,
                                 csn_error **err)
{
    const char *why = strerrordesc_np(errnum);
    csn_status st;

    csn_jail *j = k->own;
    if (stage == CSN_SPAWN_AT_CLONE &&
        (errnum == EPERM || errnum == ENOSPC || errnum == EINVAL || errnum == EACCES ||
         errnum == EUSERS)) {
        j->no_namespaces = !k->kind->judged;
        st = csn_fail(err, CSN_UNAVAILABLE, "this host refuses user namespaces: %s", why);
        return advise_userns(st, err);
    }
    if (stage == CSN_SPAWN_AT_MAP) {
        j->no_namespaces = true;
        st = csn_fail(err, CSN_UNAVAILABLE,
                      "this host gives user namespaces no user or capability: %s", why);
        return advise_userns(st, err);
    }
    if (stage == CSN_SPAWN_AT_USER)
        return csn_fail(err, CSN_UNAVAILABLE,
                        "root's commands need another user to be, and this host refuses to "
                        "change it: %s",
                        why);
    return csn_fail(err, CSN_UNAVAILABLE, "start the keeper: %s", why);
}
