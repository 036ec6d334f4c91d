/* rundir.c: creates the directory of a sandbox and removes stale ones.
 *
 * A detached sandbox has everything in one directory of the state directory, sandboxes/<id>: it
 * must survive a logout, which removes XDG_RUNTIME_DIR. Others use the runtime directory for
 * their private home.
 *
 * The process that creates a directory may be killed before there is a keeper to clean up. It
 * therefore holds a shared lock on the directory while it lives; the keeper of a detached
 * sandbox holds the lock of its record (keeper_record.h). Invariant: a directory in use by its
 * creator or by a keeper is never removed. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/path.h"
#include "base/strv.h"
#include "os/cgroup.h"
#include "os/statedir.h"
#include "os/tree.h"
#include "runtime/link.h"
#include "runtime/runtime.h"

#define NO_DIRS       2   /* links of a directory that has none below it */
#define STALE_GROUP_S 10u /* age at which an empty group without a keeper is stale */
#define TRIES         100 /* until a directory that others sweep is locked */
#define SOME          4 /* directories that a sweep examines which is not to delay its caller */

/* Where the directory of a sandbox is: returns which of our directories, and its path there. */
static int locate(const csn_runtime *rt, char sub[CSN_NAME_BYTES_MAX + 16])
{
    snprintf(sub, CSN_NAME_BYTES_MAX + 16, "%s%s", rt->detached ? "sandboxes/" : "", rt->id);
    return rt->detached ? CSN_DIR_STATE : CSN_DIR_RUNTIME;
}

char *csn_runtime_run_path(const csn_runtime *rt)
{
    char sub[CSN_NAME_BYTES_MAX + 16];
    int which = locate(rt, sub);

    return csn_statedir_path(which, sub);
}

/* Opens and locks the directory, until it is one that was not removed in between. */
static csn_status lock_dir(csn_runtime *rt, csn_error **err)
{
    char sub[CSN_NAME_BYTES_MAX + 16];
    int which = locate(rt, sub);
    struct stat st = {0};

    for (int tries = 0; st.st_nlink == 0; tries++) {
        if (rt->run_fd >= 0)
            close(csn_steal_fd(&rt->run_fd));
        free(CSN_STEAL(rt->run_path));
        int fd = csn_statedir_open(which, sub, &rt->run_path);
        if (fd == -ENOENT && tries < TRIES) /* removed before it was open */
            continue;
        if (fd < 0)
            return csn_statedir_fail(err, -fd, which, sub);
        rt->run_fd = fd;
        if (flock(fd, LOCK_SH) < 0 || fstat(fd, &st) < 0)
            return csn_fail_errno(err, errno, "directory of sandbox '%s'", rt->id);
    }
    return CSN_OK;
}

csn_status csn_runtime_run_dir(csn_runtime *rt, csn_error **err)
{
    if (rt->run_fd >= 0 && rt->run_path)
        return CSN_OK;
    csn_status st = lock_dir(rt, err);
    if (st < 0 || !rt->detached)
        return st;
    int fd = csn_keeper_record_create(rt->run_fd);
    if (fd < 0)
        return csn_fail_errno(err, -fd, "record of sandbox '%s'", rt->id);
    rt->record_fd = fd;
    return CSN_OK;
}

csn_status csn_runtime_run_failed(csn_runtime *rt, int errnum, const char *what,
                                  csn_error **err)
{
    if (errnum == ENOENT && rt->keeper_fd >= 0)
        return csn_link_lost(rt, err);
    return csn_fail_errno(err, errnum, "%s of '%s'", what, rt->id);
}

/* A path too long for sun_path is reached through the descriptor of its directory. */
static struct sockaddr_un address_of(const csn_runtime *rt, const char *name)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    int n = snprintf(a.sun_path, sizeof(a.sun_path), "%s/%s", rt->run_path, name);

    if (n < 0 || (size_t)n >= sizeof(a.sun_path))
        snprintf(a.sun_path, sizeof(a.sun_path), "/proc/self/fd/%d/%s", rt->run_fd, name);
    return a;
}

int csn_runtime_run_listen(const csn_runtime *rt, const char *name, int backlog)
{
    csn_autofd int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    const struct sockaddr_un a = address_of(rt, name);

    if (fd < 0 || bind(fd, (const struct sockaddr *)&a, sizeof(a)) < 0 ||
        listen(fd, backlog) < 0)
        return -errno;
    return csn_steal_fd(&fd);
}

/* Has a timeout, since connect blocks if the listener is stopped and its backlog is full. */
static int connect_to(const struct sockaddr_un *a)
{
    csn_autofd int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    const struct timeval patience = {.tv_sec = CSN_KEEPER_ANSWER_MS / 1000};
    uint64_t deadline = csn_deadline_in(CSN_KEEPER_ANSWER_MS);
    int rc = 0;

    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience)) < 0)
        return -errno;
    do /* SIGSTOP and SIGCONT of this process also interrupt connect */
        rc = connect(fd, (const struct sockaddr *)a, sizeof(*a)) < 0 ? -errno : 0;
    while (rc == -EINTR && csn_deadline_poll_ms(deadline) > 0);
    if (rc < 0)
        return rc == -EAGAIN || rc == -EINTR ? -ETIMEDOUT : rc;
    return csn_steal_fd(&fd);
}

int csn_runtime_run_connect(const csn_runtime *rt, const char *name)
{
    const struct sockaddr_un a = address_of(rt, name);

    return connect_to(&a);
}

int csn_runtime_connect_path(const char *path)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};

    snprintf(a.sun_path, sizeof(a.sun_path), "%s", path);
    return connect_to(&a);
}

/* ---- stale directories ---- */

/* True if a keeper listens on the socket in this directory, or if that is unknown: earlier
 * versions had detached sandboxes in the runtime directory. */
static bool is_listened_on(int dir)
{
    csn_autofd int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    struct sockaddr_un a = {.sun_family = AF_UNIX};

    snprintf(a.sun_path, sizeof(a.sun_path), "/proc/self/fd/%d/" CSN_KEEPER_SOCKET, dir);
    if (fd < 0 || connect(fd, (struct sockaddr *)&a, sizeof(a)) == 0)
        return true;
    return errno != ECONNREFUSED && errno != ENOENT;
}

/* A sweeper that was killed may have removed the record first. Of a directory without record
 * and metadata only names that we make are removed. */
static void remove_rest(int dir)
{
    static const char *const ours[] = {
        CSN_KEEPER_SOCKET, "commit.lock", CSN_STATE_JAIL, "protected",
        "net.seen",        "net.sock",    "home",         "tmp"};
    struct stat st;

    if (fstatat(dir, CSN_STATE_KEEPER, &st, AT_SYMLINK_NOFOLLOW) == 0 || errno != ENOENT ||
        fstatat(dir, CSN_STATE_META, &st, AT_SYMLINK_NOFOLLOW) == 0 || errno != ENOENT)
        return;
    for (size_t i = 0; i < sizeof(ours) / sizeof(ours[0]); i++)
        (void)csn_tree_remove_force(dir, ours[i]);
}

/* One without a record is a remote sandbox, or of an earlier version. */
static void sweep_detached(int top, const char *id, int dir)
{
    csn_keeper_record r = {0};

    if (csn_keeper_record_read(dir, &r) < 0) {
        remove_rest(dir);
        (void)unlinkat(top, id, AT_REMOVEDIR);
    } else if (csn_keeper_record_life(dir, &r) == CSN_KEEPER_ENDED) {
        csn_runtime_end_rest(id, &r);
        (void)csn_tree_remove_force(top, id);
    }
    csn_keeper_record_release(&r);
}

/* A keeper, or a creator that has not finished, holds the lock of the record. */
static bool is_in_use(int dir)
{
    csn_autofd int fd = openat(dir, CSN_STATE_KEEPER, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);

    return fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) < 0 && errno == EWOULDBLOCK;
}

/* The lock of the directory excludes a creator. */
static void sweep_one(int top, const char *id, bool detached)
{
    csn_autofd int dir = openat(top, id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    struct stat st;

    if (dir < 0 || (detached && is_in_use(dir)) || fstat(dir, &st) < 0 ||
        st.st_uid != geteuid() || flock(dir, LOCK_EX | LOCK_NB) < 0)
        return;
    if (detached)
        sweep_detached(top, id, dir);
    else if (!is_listened_on(dir))
        (void)csn_tree_remove_force(top, id);
}

/* A cheap test before the path is opened with all checks: are there directories besides those
 * of this process? Some file systems do not count links of directories. */
static bool may_have_dirs(int which, const char *sub, unsigned own)
{
    csn_autofree char *path = csn_statedir_path(which, sub);
    struct stat st;

    return path && stat(path, &st) == 0 &&
           (st.st_nlink > NO_DIRS + own || st.st_nlink < NO_DIRS);
}

/* Not all: a few from a different entry on each time. Allocates nothing that depends on their
 * number. */
static void sweep_dir(int which, const char *sub, bool detached, bool all)
{
    int top = csn_statedir_find(which, sub, NULL);
    DIR *d = top >= 0 ? fdopendir(top) : NULL;
    struct stat st = {0};
    uint64_t at = 0, first = 0;

    if (!d && top >= 0)
        close(top);
    if (d && !all && fstat(dirfd(d), &st) == 0 && st.st_nlink > NO_DIRS)
        first = csn_now_ns() % (st.st_nlink - NO_DIRS);
    for (const struct dirent *e; d && (all || at < first + SOME) && (e = readdir(d));) {
        if (!csn_id_valid(e->d_name) ||
            (!csn_str_starts(e->d_name, "jail-") && !csn_str_starts(e->d_name, "local-")))
            continue;
        if (at++ >= first)
            sweep_one(dirfd(d), e->d_name, detached);
    }
    if (d)
        closedir(d);
}

void csn_runtime_sweep(bool all)
{
    if (all || may_have_dirs(CSN_DIR_RUNTIME, NULL, 1))
        sweep_dir(CSN_DIR_RUNTIME, NULL, false, all);
    if (all || may_have_dirs(CSN_DIR_STATE, "sandboxes", 0))
        sweep_dir(CSN_DIR_STATE, "sandboxes", true, all);
    if (all)
        (void)csn_cgroup_sweep(NULL, STALE_GROUP_S);
}
