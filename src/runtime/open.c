/* open.c: opens, connects to, commits and destroys a sandbox without confinement.
 *
 * The jail backend shares some of the steps. A detached sandbox exists as long as its keeper
 * runs. Invariant: a failed open leaves no process and no directory. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/path.h"
#include "base/strv.h"
#include "os/checked_dir.h"
#include "os/statedir.h"
#include "os/tree.h"
#include "runtime/link.h"

void csn_runtime_free(csn_runtime *rt)
{
    if (!rt)
        return;
    csn_runtime_grants_close(rt);
    csn_runtime_channel_drop(rt);
    const int fds[] = {rt->keeper_fd, rt->keeper_pidfd, rt->run_fd, rt->commit_fd};
    for (size_t i = 0; i < sizeof(fds) / sizeof(fds[0]); i++)
        if (fds[i] >= 0)
            close(fds[i]);
    csn_strv_free(rt->environ_base);
    pthread_mutex_destroy(&rt->commit_lock);
    pthread_mutex_destroy(&rt->keeper_lock);
    free(rt->start.program);
    free(rt->run_path);
    free(rt->id);
    free(rt);
}
CSN_DEFINE_CLEANUP(csn_runtime, csn_runtime_free)

csn_runtime *csn_runtime_new(const char *backend, const csn_config *config, const char *id)
{
    csn_runtime *rt = calloc(1, sizeof(*rt));

    if (!rt)
        return NULL;
    rt->backend = backend;
    rt->config = config;
    rt->file_uid = geteuid();
    rt->file_gid = getegid();
    rt->file_max = config->file_max;
    rt->memory_each = config->memory_max;
    rt->detached = (config->flags & CSN_OPEN_DETACHED) != 0;
    rt->run_fd = rt->keeper_fd = rt->keeper_pidfd = rt->commit_fd = -1;
    rt->base.fd = rt->home.fd = rt->root.fd = -1;
    rt->idle_channel = -1;
    pthread_mutex_init(&rt->commit_lock, NULL);
    pthread_mutex_init(&rt->keeper_lock, NULL);
    rt->id = strdup(id);
    if (!rt->id) {
        csn_runtime_free(rt);
        return NULL;
    }
    return rt;
}

/* ---- directories ---- */

/* The runtime directory is private to the user, so its path can be used safely. */
void csn_runtime_remove_dir(const csn_runtime *rt)
{
    csn_autofree char *parent = rt->run_path ? csn_path_dir(rt->run_path) : NULL;
    csn_autofd int fd = parent ? csn_checked_dir_open(parent, 0, NULL) : -1;
    struct stat named, held;

    if (fd >= 0 && rt->run_fd >= 0 && fstat(rt->run_fd, &held) == 0 &&
        fstatat(fd, rt->id, &named, AT_SYMLINK_NOFOLLOW) == 0 && named.st_ino == held.st_ino &&
        named.st_dev == held.st_dev)
        (void)csn_tree_remove_force(fd, rt->id);
}

int csn_runtime_state_dir(const csn_runtime *rt, bool make)
{
    csn_autofree char *sub = NULL;

    if (asprintf(&sub, "sandboxes/%s", rt->id) < 0) {
        sub = NULL;
        return -ENOMEM;
    }
    return make ? csn_statedir_open(CSN_DIR_STATE, sub, NULL)
                : csn_statedir_find(CSN_DIR_STATE, sub, NULL);
}

csn_status csn_runtime_find_dir(csn_runtime *rt, csn_error **err)
{
    csn_autofd int dir = csn_runtime_state_dir(rt, false);
    char path[CSN_PATH_MAX];
    ssize_t n = dir < 0 ? -1 : readlinkat(dir, CSN_STATE_RUN_LINK, path, sizeof(path) - 1);
    int fd;

    if (dir < 0 && dir != -ENOENT)
        return csn_statedir_fail(err, -dir, CSN_DIR_STATE, "sandboxes");
    if (n <= 0) { /* the creator was killed before it wrote the link: use the default path */
        fd = csn_statedir_find(CSN_DIR_RUNTIME, rt->id, &rt->run_path);
    } else {
        path[n] = '\0';
        rt->run_path = strdup(path);
        if (!rt->run_path)
            return csn_fail(err, CSN_NOMEM, "state of '%s'", rt->id);
        fd = strcmp(csn_path_base(path), rt->id) == 0 ? csn_checked_dir_open(path, 0, NULL)
                                                      : -EINVAL;
    }
    if (fd < 0)
        return fd == -ENOENT ? csn_fail(err, CSN_GONE, "sandbox '%s' has ended", rt->id)
                             : csn_fail_errno(err, -fd, "runtime directory of '%s'", rt->id);
    rt->run_fd = fd;
    return CSN_OK;
}

/* Opens the lock that serializes writes with other processes that use the same sandbox. It is
 * opened in advance, because file calls of a jail run as another user. */
csn_status csn_runtime_open_commit_lock(csn_runtime *rt, csn_error **err)
{
    if (!rt->detached)
        return CSN_OK;
    rt->commit_fd =
        openat(rt->run_fd, "commit.lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    return rt->commit_fd < 0 ? csn_runtime_run_failed(rt, errno, "lock", err) : CSN_OK;
}

/* ---- opening ---- */

/* The first command starts the keeper, unless the sandbox is detached or has a lifetime. */
static csn_status open_steps(csn_runtime *rt, csn_error **err)
{
    csn_status st = csn_runtime_grants_open(rt, err);

    if (st == CSN_OK)
        st = csn_runtime_environ_new(rt, &rt->environ_base, err);
    if (st == CSN_OK && (rt->detached || rt->config->lifetime_ms != 0))
        st = csn_runtime_ensure_keeper(rt, err);
    if (st == CSN_OK && rt->detached) /* the keeper must listen when open returns */
        st = csn_link_check(rt, err);
    return st < 0 ? st : csn_runtime_open_commit_lock(rt, err);
}

csn_status csn_runtime_open(const char *backend, const csn_config *config, const char *id,
                            void **ret_state, csn_error **err)
{
    CSN_CLEANUP(csn_runtime_freep) csn_runtime *rt = csn_runtime_new(backend, config, id);

    if (!rt)
        return csn_fail(err, CSN_NOMEM, "open %s sandbox", backend);
    csn_status st = open_steps(rt, err);
    if (st < 0) {
        csn_runtime_end_keeper(rt);
        csn_runtime_remove_dir(rt);
        return st;
    }
    *ret_state = CSN_STEAL(rt);
    return CSN_OK;
}

csn_status csn_runtime_connect(const char *backend, const csn_config *config, const char *id,
                               void **ret_state, csn_error **err)
{
    CSN_CLEANUP(csn_runtime_freep) csn_runtime *rt = csn_runtime_new(backend, config, id);

    if (!rt)
        return csn_fail(err, CSN_NOMEM, "connect to %s sandbox", backend);
    rt->connected = true;
    csn_status st = csn_runtime_find_dir(rt, err);
    if (st == CSN_OK)
        st = csn_runtime_reach_keeper(rt, err);
    if (st == CSN_OK)
        st = csn_link_check(rt, err);
    if (st == CSN_GONE)
        csn_runtime_remove_dir(rt);
    if (st == CSN_OK)
        st = csn_runtime_grants_open(rt, err);
    if (st == CSN_OK)
        st = csn_runtime_environ_new(rt, &rt->environ_base, err);
    if (st == CSN_OK)
        st = csn_runtime_open_commit_lock(rt, err);
    if (st < 0)
        return st;
    *ret_state = CSN_STEAL(rt);
    return CSN_OK;
}

/* The keeper watches the link and its socket: if either is removed, no process can find the
 * sandbox any more, and it ends. The link is needed because the path of the socket depends on
 * XDG_RUNTIME_DIR, which may differ in a later process. */
csn_status csn_runtime_commit(void *state, csn_error **err)
{
    csn_runtime *rt = state;
    csn_autofd int channel = -1, link = -1, sock = -1;
    uint8_t buf[256];
    csn_msg m;

    if (!rt->detached)
        return CSN_OK;
    csn_autofd int dir = csn_runtime_state_dir(rt, true);
    if (dir < 0)
        return csn_statedir_fail(err, -dir, CSN_DIR_STATE, "sandboxes");
    if (symlinkat(rt->run_path, dir, CSN_STATE_RUN_LINK) < 0 ||
        (link = openat(dir, CSN_STATE_RUN_LINK, O_PATH | O_NOFOLLOW | O_CLOEXEC)) < 0)
        return csn_fail_errno(err, errno, "state of '%s'", rt->id);
    sock = openat(rt->run_fd, CSN_KEEPER_SOCKET, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (sock < 0)
        return csn_runtime_run_failed(rt, errno, "socket", err);
    const int watched[] = {link, sock};
    csn_status st = csn_link_ask(rt, CSN_MSG_COMMIT, NULL, watched, 2, &channel, err);
    if (st == CSN_OK)
        st = csn_link_answer(rt, channel, 0, buf, sizeof(buf), &m, err);
    if (st < 0)
        return st;
    bool done = csn_proto_decode(&m, CSN_MSG_DONE, NULL) == 0;
    csn_msg_release(&m);
    return done ? CSN_OK : csn_link_hostile(rt, "it answered something else", err);
}

/* ---- ending ---- */

/* Changes in the workspace are not scanned, because the start of the period to scan is unknown
 * here. The sweeper of a jail removes its control groups. */
csn_status csn_runtime_force_destroy(const char *backend, const csn_config *config,
                                     const char *id, csn_error **err)
{
    CSN_CLEANUP(csn_runtime_freep) csn_runtime *rt = csn_runtime_new(backend, config, id);

    if (!rt)
        return csn_fail(err, CSN_NOMEM, "end of %s sandbox", backend);
    rt->connected = true;
    csn_status st = csn_runtime_find_dir(rt, err);
    if (st == CSN_OK)
        st = csn_runtime_reach_keeper(rt, err);
    if (st == CSN_OK) {
        csn_runtime_kill_keeper(rt);
        if (!csn_runtime_keeper_is_dead(rt))
            st = csn_fail(err, CSN_UNAVAILABLE,
                          "the keeper of '%s' (process %lld) cannot be killed", rt->id,
                          (long long)rt->keeper_pid);
    }
    if (st == CSN_OK || st == CSN_GONE)
        csn_runtime_remove_dir(rt);
    return st;
}

csn_status csn_runtime_destroy(void *state, csn_error **err)
{
    csn_runtime *rt = state;

    (void)err;
    if (rt->ended)
        return CSN_OK;
    rt->ended = true;
    csn_runtime_end_keeper(rt);
    csn_runtime_remove_dir(rt);
    return CSN_OK;
}

void csn_runtime_close(void *state)
{
    csn_runtime *rt = state;

    if (!rt)
        return;
    if (!rt->detached)
        (void)csn_runtime_destroy(rt, NULL);
    csn_runtime_free(rt);
}

csn_status csn_runtime_info(csn_runtime *rt, csn_info_result *ret, csn_error **err)
{
    ret->workspace = rt->base.path;
    ret->workdir = rt->base.path;
    ret->home = rt->home.path;
    pthread_mutex_lock(&rt->keeper_lock);
    ret->keeper_pid = rt->keeper_pid;
    pthread_mutex_unlock(&rt->keeper_lock);
    /* Another process may have extended the lifetime of a detached sandbox, so ask the
     * keeper. */
    bool ends = rt->detached || rt->connected || rt->extended || rt->config->lifetime_ms != 0;
    return ends && ret->keeper_pid != 0 ? csn_link_expiry(rt, &ret->expires_ms, err) : CSN_OK;
}
