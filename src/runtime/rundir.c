/* rundir.c: creates the runtime directory of a sandbox and removes stale ones.
 *
 * The directory has the socket of a detached sandbox and the private home of a local one. The
 * process that creates it may be killed before there is a keeper to clean up. It therefore
 * holds a shared lock on the directory while it lives, and `list` removes directories that are
 * not locked and on whose socket no keeper listens. Invariant: a directory in use by its
 * creator is never removed. */
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
#include "os/statedir.h"
#include "os/tree.h"
#include "runtime/link.h"
#include "runtime/runtime.h"

csn_status csn_runtime_run_dir(csn_runtime *rt, csn_error **err)
{
    struct stat st = {0};

    if (rt->run_fd >= 0 && rt->run_path)
        return CSN_OK;
    while (st.st_nlink == 0) { /* removed between creation and lock: retry */
        if (rt->run_fd >= 0)
            close(csn_steal_fd(&rt->run_fd));
        free(CSN_STEAL(rt->run_path));
        int fd = csn_statedir_open(CSN_DIR_RUNTIME, rt->id, &rt->run_path);
        if (fd < 0)
            return csn_statedir_fail(err, -fd, CSN_DIR_RUNTIME, rt->id);
        rt->run_fd = fd;
        if (flock(fd, LOCK_SH) < 0 || fstat(fd, &st) < 0)
            return csn_fail_errno(err, errno, "runtime directory of sandbox '%s'", rt->id);
    }
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
int csn_runtime_run_connect(const csn_runtime *rt, const char *name)
{
    csn_autofd int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    const struct sockaddr_un a = address_of(rt, name);
    const struct timeval patience = {.tv_sec = CSN_KEEPER_ANSWER_MS / 1000};
    uint64_t deadline = csn_deadline_in(CSN_KEEPER_ANSWER_MS);
    int rc = 0;

    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience)) < 0)
        return -errno;
    do /* SIGSTOP and SIGCONT of this process also interrupt connect */
        rc = connect(fd, (const struct sockaddr *)&a, sizeof(a)) < 0 ? -errno : 0;
    while (rc == -EINTR && csn_deadline_poll_ms(deadline) > 0);
    if (rc < 0)
        return rc == -EAGAIN || rc == -EINTR ? -ETIMEDOUT : rc;
    return csn_steal_fd(&fd);
}

/* True if a keeper listens on the socket in this directory, or if that is unknown. */
static bool listened_on(int dir)
{
    csn_autofd int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    struct sockaddr_un a = {.sun_family = AF_UNIX};

    snprintf(a.sun_path, sizeof(a.sun_path), "/proc/self/fd/%d/sock", dir);
    if (fd < 0 || connect(fd, (struct sockaddr *)&a, sizeof(a)) == 0)
        return true;
    return errno != ECONNREFUSED && errno != ENOENT;
}

static void sweep_one(int top, const char *id)
{
    csn_autofd int dir = openat(top, id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    struct stat st;

    if (dir < 0 || fstat(dir, &st) < 0 || st.st_uid != geteuid())
        return;
    if (flock(dir, LOCK_EX | LOCK_NB) == 0 && !listened_on(dir))
        (void)csn_tree_remove_force(top, id);
}

void csn_runtime_sweep(void)
{
    int top = csn_statedir_find(CSN_DIR_RUNTIME, NULL, NULL);
    DIR *d = top >= 0 ? fdopendir(top) : NULL;

    for (const struct dirent *e; d && (e = readdir(d));)
        if (csn_id_valid(e->d_name) &&
            (strncmp(e->d_name, "jail-", 5) == 0 || strncmp(e->d_name, "local-", 6) == 0))
            sweep_one(dirfd(d), e->d_name);
    if (d)
        closedir(d);
    else if (top >= 0)
        close(top);
}
