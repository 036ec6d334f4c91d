/* reconnect.c: finds a detached sandbox again, reports its state, and ends one that cannot be
 * used.
 *
 * A sandbox is what its keeper says, not what its files say: it counts as ended only if its
 * keeper is known to be dead (keeper_record.c). Nothing here kills a keeper, except
 * csn_runtime_force_destroy. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/path.h"
#include "base/strv.h"
#include "os/cgroup.h"
#include "os/checked_dir.h"
#include "os/statedir.h"
#include "runtime/cow.h"
#include "runtime/link.h"

CSN_DEFINE_CLEANUP(csn_runtime, csn_runtime_free)

/* ---- finding ---- */

static csn_status gone(const csn_runtime *rt, csn_error **err)
{
    return csn_fail(err, CSN_GONE, "sandbox '%s' has ended", rt->id);
}

/* A sandbox that an earlier version made: its runtime directory is elsewhere, and whether its
 * keeper lives shows only at its socket. */
static csn_status find_earlier(csn_runtime *rt, csn_error **err)
{
    char path[CSN_PATH_MAX];
    ssize_t n = readlinkat(rt->run_fd, CSN_STATE_RUN_LINK, path, sizeof(path) - 1);

    if (n <= 0)
        return gone(rt, err);
    path[n] = '\0';
    if (strcmp(csn_path_base(path), rt->id) != 0)
        return csn_fail(err, CSN_UNAVAILABLE, "the record of '%s' names another directory",
                        rt->id);
    int fd = csn_checked_dir_open(path, 0, NULL);
    if (fd == -ENOENT)
        return gone(rt, err);
    if (fd < 0)
        return csn_fail_errno(err, -fd, "runtime directory of '%s'", rt->id);
    close(csn_steal_fd(&rt->run_fd));
    free(CSN_STEAL(rt->run_path));
    rt->run_fd = fd;
    rt->run_path = strdup(path);
    if (!rt->run_path)
        return csn_fail(err, CSN_NOMEM, "state of sandbox '%s'", rt->id);
    rt->life = CSN_KEEPER_OTHER_VERSION;
    csn_status st = csn_fail(err, CSN_UNAVAILABLE,
                             "sandbox '%s' was made by an earlier version of caisson (0.1.0, "
                             "protocol 5 or older)",
                             rt->id);
    return csn_error_advise(st, err, "caisson destroy %s ends it", rt->id);
}

static csn_status refuse_version(const csn_runtime *rt, csn_error **err)
{
    csn_status st =
        csn_fail(err, CSN_UNAVAILABLE,
                 "sandbox '%s' was made by caisson %s (protocol %llu), this is "
                 "caisson %s (protocol %u)",
                 rt->id, rt->record.version, (unsigned long long)rt->record.protocol,
                 csn_version(), CSN_KEEPER_VERSION);

    return csn_error_advise(st, err, "caisson destroy %s ends it", rt->id);
}

static csn_status judge_life(csn_runtime *rt, csn_error **err)
{
    const char *host = rt->record.host.name;
    csn_status st = CSN_OK;

    switch (rt->life) {
    case CSN_KEEPER_LIVES:
        break;
    case CSN_KEEPER_STARTING:
        st = csn_fail(err, CSN_UNAVAILABLE, "sandbox '%s' is being created", rt->id);
        break;
    case CSN_KEEPER_ENDED:
        st = gone(rt, err);
        break;
    case CSN_KEEPER_OTHER_BOOT:
        st = csn_fail(err, CSN_UNAVAILABLE, "sandbox '%s' ended when this host was restarted",
                      rt->id);
        st = csn_error_advise(st, err, "caisson destroy %s removes its record", rt->id);
        break;
    case CSN_KEEPER_OTHER_HOST:
        st =
            csn_fail(err, CSN_UNAVAILABLE, "sandbox '%s' is on another host, %s", rt->id, host);
        st = csn_error_advise(st, err, "use caisson there; if that host is gone: rm -r %s",
                              rt->run_path);
        break;
    case CSN_KEEPER_OTHER_VERSION:
        st = refuse_version(rt, err);
        break;
    }
    return st;
}

csn_status csn_runtime_find(csn_runtime *rt, csn_error **err)
{
    char sub[CSN_PATH_MAX];

    snprintf(sub, sizeof(sub), "sandboxes/%s", rt->id);
    int fd = csn_statedir_find(CSN_DIR_STATE, sub, &rt->run_path);
    if (fd == -ENOENT)
        return gone(rt, err);
    if (fd < 0)
        return csn_statedir_fail(err, -fd, CSN_DIR_STATE, sub);
    rt->run_fd = fd;
    int rc = csn_keeper_record_read(fd, &rt->record);
    if (rc == -ENOENT)
        return find_earlier(rt, err);
    if (rc < 0)
        return csn_fail_errno(err, -rc, "record of sandbox '%s'", rt->id);
    rt->life = csn_keeper_record_find(fd, &rt->record, &rt->keeper_pidfd, &rt->stopped);
    return judge_life(rt, err);
}

/* ---- reaching the keeper ---- */

/* If the file of the socket was removed, the holder still has a descriptor of it. */
static int connect_socket(const csn_runtime *rt)
{
    const csn_keeper_record *r = &rt->record;
    char path[CSN_FD_PATH_SIZE];
    int fd = csn_runtime_run_connect(rt, CSN_KEEPER_SOCKET);

    if (fd != -ENOENT && fd != -ECONNREFUSED)
        return fd;
    if (csn_keeper_record_is_near(r) != 1 ||
        csn_pid_find_fd(&r->holder, r->sock_dev, r->sock_ino, path) < 0)
        return fd;
    return csn_runtime_connect_path(path);
}

/* Accepts only a listener of the caller's own user, as reported by the kernel. A root caller
 * accepts any: its jails run as users without account, and only root can write to the directory
 * of the socket. */
static int check_peer(csn_runtime *rt, int fd)
{
    struct ucred peer;
    socklen_t len = sizeof(peer);

    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0)
        return -errno;
    if ((peer.uid != geteuid() && geteuid() != 0) || peer.pid == getpid())
        return -EPERM;
    rt->keeper_uid = peer.uid;
    rt->keeper_gid = peer.gid;
    if (rt->keeper_pidfd < 0 && peer.pid > 0) { /* made by an earlier version */
        rt->keeper_pidfd = (int)syscall(SYS_pidfd_open, peer.pid, 0);
        rt->keeper_pid = peer.pid;
    }
    return 0;
}

static csn_status not_answering(const csn_runtime *rt, csn_error **err)
{
    csn_status st =
        csn_fail(err, CSN_UNAVAILABLE,
                 "sandbox '%s' is not answering: its keeper, process %lld, is stopped", rt->id,
                 (long long)rt->keeper_pid);

    return csn_error_advise(st, err, "kill -CONT %lld continues it; caisson destroy %s ends it",
                            (long long)rt->keeper_pid, rt->id);
}

static csn_status unreachable(csn_runtime *rt, int rc, csn_error **err)
{
    if ((rc == -ECONNREFUSED || rc == -ENOENT) && rt->keeper_pidfd >= 0)
        return csn_link_lost(rt, err); /* it is ending, or its socket was removed */
    if (rc == -ETIMEDOUT)
        return csn_fail(err, CSN_UNAVAILABLE, "sandbox '%s' is not answering", rt->id);
    if ((rc == -ECONNREFUSED || rc == -ENOENT) && !rt->record.version[0])
        return gone(rt, err); /* of an earlier version: it ends with its socket */
    if (rc == -EMFILE || rc == -ENFILE || rc == -ENOMEM)
        return csn_fail_errno(err, -rc, "connect to sandbox '%s'", rt->id);
    return csn_fail(err, CSN_UNAVAILABLE, "connect to sandbox '%s': %s", rt->id,
                    strerrordesc_np(-rc));
}

csn_status csn_runtime_reach_keeper(csn_runtime *rt, csn_error **err)
{
    int near = csn_keeper_record_is_near(&rt->record);

    if (near < 0)
        return csn_fail_errno(err, -near, "connect to sandbox '%s'", rt->id);
    if (near == 1 && rt->keeper_pidfd < 0) /* csn_runtime_find could not open it */
        return csn_fail_errno(err, EMFILE, "connect to sandbox '%s'", rt->id);
    rt->keeper_pid = near == 1 ? rt->record.keeper.pid : -1;
    if (rt->stopped)
        return not_answering(rt, err);
    csn_autofd int fd = connect_socket(rt);
    if (fd < 0)
        return unreachable(rt, fd, err);
    int rc = check_peer(rt, fd);
    if (rc < 0)
        return csn_fail_errno(err, -rc, "sandbox '%s' belongs to another user", rt->id);
    rt->keeper_fd = csn_steal_fd(&fd);
    return CSN_OK;
}

static bool leads_to(const char *path, const struct stat *held)
{
    struct stat st;

    return path && stat(path, &st) == 0 && st.st_dev == held->st_dev &&
           st.st_ino == held->st_ino;
}

/* Gives up a workspace whose file system was unmounted: what is written there would be lost,
 * so calls that need it fail (target.c). One that was renamed is used. */
static void drop_unmounted(csn_runtime *rt)
{
    struct stat st;

    if (rt->dir_count == 0 || !rt->record.dirs || fstat(rt->dirs[0], &st) < 0 ||
        leads_to(rt->record.dirs[0], &st))
        return;
    csn_autofree char *now = csn_runtime_fd_path(rt->dirs[0]);
    if (!leads_to(now, &st) && !csn_runtime_is_removed(rt->dirs[0]))
        close(csn_steal_fd(&rt->dirs[0]));
}

csn_status csn_runtime_ask_dirs(csn_runtime *rt, csn_error **err)
{
    csn_ready_msg ignored;
    uint8_t buf[256];
    csn_msg m;
    int e = 0;

    csn_status st = csn_link_call_long(rt, CSN_MSG_ROOT, NULL, 0, CSN_MSG_ROOT_REPLY, &ignored,
                                       buf, sizeof(buf), &m, &e, err);
    if (st < 0)
        return st;
    if (e != 0)
        return csn_fail_errno(err, e, "directories of sandbox '%s'", rt->id);
    for (size_t i = 0; i < m.nfds; i++)
        rt->dirs[rt->dir_count++] = csn_msg_take_fd(&m, i);
    csn_msg_release(&m);
    drop_unmounted(rt);
    return CSN_OK;
}

/* ---- state ---- */

static const char *word_of(csn_keeper_life life)
{
    switch (life) {
    case CSN_KEEPER_OTHER_BOOT:
        return "other boot";
    case CSN_KEEPER_OTHER_HOST:
        return "other host";
    case CSN_KEEPER_OTHER_VERSION:
        return "other version";
    case CSN_KEEPER_STARTING:
        return "starting";
    case CSN_KEEPER_LIVES:
    case CSN_KEEPER_ENDED:
        break;
    }
    return "not answering";
}

/* CSN_OK: it answers; CSN_GONE; CSN_UNAVAILABLE: see rt->life. One of an earlier version has
 * ended if no process listens on its socket. */
static csn_status probe(csn_runtime *rt, csn_error **err)
{
    csn_status st = csn_runtime_find(rt, err);

    if (st == CSN_OK) {
        st = csn_runtime_reach_keeper(rt, err);
        return st < 0 ? st : csn_link_check(rt, err);
    }
    if (rt->life == CSN_KEEPER_OTHER_VERSION && csn_runtime_reach_keeper(rt, NULL) == CSN_GONE)
        return CSN_GONE;
    return st;
}

csn_status csn_runtime_state(const char *id, const char **ret, csn_error **err)
{
    const csn_config none = {.size = sizeof(none)};
    CSN_CLEANUP(csn_runtime_freep) csn_runtime *rt = csn_runtime_new("", &none, id);

    if (!rt)
        return csn_fail(err, CSN_NOMEM, "state of sandbox '%s'", id);
    rt->connected = true;
    csn_status st = probe(rt, err);
    if (st != CSN_OK && st != CSN_GONE && st != CSN_UNAVAILABLE)
        return st;
    if (st < 0 && err)
        csn_error_free(CSN_STEAL(*err));
    if (st == CSN_GONE)
        *ret = "gone";
    else
        *ret = st == CSN_OK ? "running" : word_of(rt->life);
    return CSN_OK;
}

/* ---- ending ---- */

csn_status csn_runtime_not_ended(const csn_runtime *rt, csn_error **err)
{
    if (rt->keeper_pidfd >= 0)
        return csn_fail(err, CSN_UNAVAILABLE,
                        "the keeper of '%s' (process %lld) cannot be killed", rt->id,
                        (long long)rt->record.keeper.pid);
    csn_status st = csn_fail(
        err, CSN_UNAVAILABLE,
        "the keeper of '%s' runs in another pid namespace and does not answer", rt->id);
    return csn_error_advise(st, err, "destroy it from where it was created");
}

/* Without a pid namespace, commands outlive a killed keeper. A gateway ends with its keeper,
 * unless it is stopped. */
void csn_runtime_end_rest(const char *id, const csn_keeper_record *r)
{
    csn_autofd int gateway = csn_keeper_record_open_gateway(r);

    if (csn_str_starts(id, "local-"))
        csn_runtime_sweep_tagged(id);
    if (gateway >= 0)
        (void)syscall(SYS_pidfd_send_signal, gateway, SIGKILL, NULL, 0);
    (void)csn_cgroup_sweep_id(NULL, id);
}

/* The keeper may have refused a connection without having ended: the record decides. */
void csn_runtime_bury(csn_runtime *rt)
{
    bool known = rt->record.version[0] && rt->life != CSN_KEEPER_OTHER_BOOT;

    if (rt->run_fd < 0 ||
        (known && csn_keeper_record_life(rt->run_fd, &rt->record) != CSN_KEEPER_ENDED))
        return;
    csn_runtime_end_rest(rt->id, &rt->record);
    if (!rt->cow)
        (void)csn_cow_find(rt, NULL);
    csn_cow_ended(rt);
    csn_runtime_remove_dir(rt);
}

/* Kills the keeper, or asks it to end if it is in another pid namespace. */
static csn_status end_by_force(csn_runtime *rt, csn_error **err)
{
    csn_status st = csn_runtime_reach_keeper(rt, err);

    if (st < 0 && st != CSN_UNAVAILABLE && rt->keeper_pidfd < 0)
        return st;
    if (err)
        csn_error_free(CSN_STEAL(*err));
    if (rt->keeper_pidfd >= 0)
        csn_runtime_kill_keeper(rt);
    else if (st == CSN_OK && rt->life == CSN_KEEPER_LIVES)
        (void)csn_runtime_end_keeper(rt);
    else
        return csn_runtime_not_ended(rt, err);
    return csn_runtime_keeper_is_dead(rt) ? CSN_OK : csn_runtime_not_ended(rt, err);
}

/* Changes in the workspace are not scanned here; the next sandbox that is opened on it does
 * so. The sweeper of a jail removes its control groups. */
csn_status csn_runtime_force_destroy(const char *backend, const csn_config *config,
                                     const char *id, csn_error **err)
{
    CSN_CLEANUP(csn_runtime_freep) csn_runtime *rt = csn_runtime_new(backend, config, id);

    if (!rt)
        return csn_fail(err, CSN_NOMEM, "end of %s sandbox", backend);
    rt->connected = true;
    csn_status st = csn_runtime_find(rt, err);
    bool lives = st == CSN_OK || rt->life == CSN_KEEPER_OTHER_VERSION ||
                 rt->life == CSN_KEEPER_STARTING; /* or its record is damaged */
    if (st < 0 && st != CSN_GONE && (lives || rt->life == CSN_KEEPER_OTHER_BOOT) && err)
        csn_error_free(CSN_STEAL(*err));
    if (rt->life == CSN_KEEPER_OTHER_BOOT)
        st = CSN_OK;
    if (lives)
        st = end_by_force(rt, err);
    if (st == CSN_OK || st == CSN_GONE)
        csn_runtime_bury(rt);
    return st;
}
