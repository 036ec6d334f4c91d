/* open.c: opens, connects to, commits and destroys a sandbox without confinement.
 *
 * The jail backend shares some of the steps. A detached sandbox exists as long as its keeper
 * runs. Invariant: a failed open leaves no process and no directory. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/path.h"
#include "base/strv.h"
#include "layers/commit.h"
#include "os/checked_dir.h"
#include "os/statedir.h"
#include "os/tree.h"
#include "runtime/cow.h"
#include "runtime/link.h"

#define COMMIT_LOCK "commit.lock"

void csn_runtime_free(csn_runtime *rt)
{
    if (!rt)
        return;
    csn_runtime_grants_close(rt);
    csn_runtime_channel_drop(rt);
    csn_cow_release(rt->cow);
    const int fds[] = {rt->keeper_fd, rt->keeper_pidfd, rt->run_fd, rt->commit_fd,
                       rt->record_fd};
    for (size_t i = 0; i < sizeof(fds) / sizeof(fds[0]); i++)
        if (fds[i] >= 0)
            close(fds[i]);
    for (size_t i = 0; i < rt->dir_count; i++)
        if (rt->dirs[i] >= 0)
            close(rt->dirs[i]);
    csn_keeper_record_release(&rt->record);
    csn_strv_free(rt->environ_base);
    csn_strv_free(rt->write_dirs);
    csn_strv_free(rt->read_dirs);
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
    rt->run_fd = rt->keeper_fd = rt->keeper_pidfd = rt->commit_fd = rt->record_fd =
        rt->stop_fd = -1;
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

/* The directory is private to the user, so its path can be used safely. */
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

/* Opens the lock that serializes writes with other processes that use the same sandbox. It is
 * opened in advance, because file calls of a jail run as another user. */
csn_status csn_runtime_open_commit_lock(csn_runtime *rt, csn_error **err)
{
    if (!rt->detached)
        return CSN_OK;
    /* A connected handle needs no writable file system to lock a file that exists. */
    if (rt->connected)
        rt->commit_fd = openat(rt->run_fd, COMMIT_LOCK, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (rt->commit_fd < 0)
        rt->commit_fd =
            openat(rt->run_fd, COMMIT_LOCK, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    return rt->commit_fd < 0 ? csn_runtime_run_failed(rt, errno, "lock", err) : CSN_OK;
}

/* ---- opening ---- */

static bool exists(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0;
}

/* Without namespaces a copy-on-write workspace is a copy. */
static csn_status copy_workspace(csn_runtime *rt, csn_error **err)
{
    const csn_config *c = rt->config;
    bool cow = (c->flags & CSN_OPEN_COW) != 0;
    csn_status st = csn_cow_check_image(rt, cow, err);

    if (st < 0 || !cow)
        return st;
    csn_autofree char *named = strdup(c->workspace ? c->workspace : ".");
    if (named)
        csn_workspace_split(named, exists, NULL, NULL);
    csn_autofree char *host = named ? realpath(named, NULL) : NULL;
    if (!host)
        return csn_fail_errno(err, named ? errno : ENOMEM, "workspace: %s", c->workspace);
    st = csn_commit_recover_host(host, err);
    return st < 0 ? st : csn_cow_create(rt, host, true, err);
}

/* The first command starts the keeper, unless the sandbox is detached or has a lifetime. */
static csn_status open_steps(csn_runtime *rt, csn_error **err)
{
    csn_status st = copy_workspace(rt, err);

    if (st == CSN_OK)
        st = csn_runtime_grants_open(rt, err);
    if (st == CSN_OK && !rt->cow)
        st = csn_commit_recover_host(rt->base.path, err);
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
        (void)csn_runtime_end_keeper(rt);
        csn_cow_ended(rt);
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
    csn_status st = csn_runtime_find(rt, err);
    if (st == CSN_OK)
        st = csn_runtime_reach_keeper(rt, err);
    if (st == CSN_OK)
        st = csn_runtime_ask_dirs(rt, err);
    if (st == CSN_GONE)
        csn_runtime_bury(rt);
    if (st == CSN_OK)
        st = csn_cow_find(rt, err);
    if (st == CSN_OK)
        st = csn_runtime_grants_open(rt, err);
    if (st == CSN_OK) /* a sandbox that runs can be used and destroyed anyway */
        (void)csn_commit_recover_host(rt->cow ? rt->cow->host : rt->base.path, NULL);
    if (st == CSN_OK)
        st = csn_runtime_environ_new(rt, &rt->environ_base, err);
    if (st == CSN_OK)
        st = csn_runtime_open_commit_lock(rt, err);
    if (st < 0)
        return st;
    *ret_state = CSN_STEAL(rt);
    return CSN_OK;
}

/* ---- committing ---- */

/* The process that holds the descriptors of COMMIT: with confinement the sweeper, which runs
 * outside of it. */
static int identify_keeper(const csn_runtime *rt, csn_keeper_record *r)
{
    struct stat st;
    int rc = csn_pid_identify((pid_t)rt->keeper_pid, &r->keeper);

    if (rc == 0)
        rc = csn_host_identify(&r->host);
    if (rc == 0 && fstatat(rt->run_fd, CSN_KEEPER_SOCKET, &st, AT_SYMLINK_NOFOLLOW) < 0)
        rc = -errno;
    if (rc < 0)
        return rc;
    r->sock_dev = st.st_dev;
    r->sock_ino = st.st_ino;
    r->holder = rt->level == CSN_LEVEL_NONE ? r->keeper : rt->record.holder;
    r->gateway = rt->record.gateway;
    r->protocol = CSN_KEEPER_VERSION;
    snprintf(r->version, sizeof(r->version), "%s", csn_version());
    return 0;
}

/* Lists the directories that the keeper is to hold, with their paths in the record. */
static int collect_dirs(const csn_runtime *rt, csn_keeper_record *r, int *fds, size_t *count)
{
    int rc = csn_strv_push(&r->dirs, rt->base.path);

    fds[(*count)++] = rt->base.fd;
    for (size_t i = 0; rc == 0 && i < rt->grant_count && *count < CSN_COMMIT_MAX; i++) {
        rc = csn_strv_push(&r->dirs, rt->grants[i].path);
        fds[(*count)++] = rt->grants[i].fd;
    }
    return -rc;
}

static csn_status send_commit(csn_runtime *rt, const int *fds, size_t count, csn_error **err)
{
    csn_autofd int channel = -1;
    uint8_t buf[256];
    csn_msg m;

    csn_status st = csn_link_ask(rt, CSN_MSG_COMMIT, NULL, fds, count, &channel, err);
    if (st == CSN_OK)
        st = csn_link_answer(rt, channel, 0, buf, sizeof(buf), &m, err);
    if (st < 0)
        return st;
    bool done = csn_proto_decode(&m, CSN_MSG_DONE, NULL) == 0;
    csn_msg_release(&m);
    return done ? CSN_OK : csn_link_hostile(rt, "it answered something else", err);
}

/* Fills the record and passes its lock to the keeper: the sandbox then exists as long as the
 * keeper lives. */
csn_status csn_runtime_commit(void *state, csn_error **err)
{
    csn_runtime *rt = state;
    csn_keeper_record r = {0};
    csn_autofd int sock = -1;
    int fds[CSN_COMMIT_MAX] = {rt->record_fd};
    size_t count = 1;

    if (!rt->detached)
        return CSN_OK;
    int rc = identify_keeper(rt, &r);
    if (rc == 0 && rt->level == CSN_LEVEL_NONE) {
        sock = openat(rt->run_fd, CSN_KEEPER_SOCKET, O_PATH | O_NOFOLLOW | O_CLOEXEC);
        fds[count++] = sock;
        rc = sock < 0 ? -errno : collect_dirs(rt, &r, fds, &count);
    }
    if (rc == 0)
        rc = csn_keeper_record_write(rt->run_fd, &r);
    csn_keeper_record_release(&r);
    csn_status st = rc < 0 ? csn_runtime_run_failed(rt, -rc, "record", err)
                           : send_commit(rt, fds, count, err);
    close(csn_steal_fd(&rt->record_fd));
    return st;
}

/* ---- ending ---- */

csn_status csn_runtime_destroy(void *state, csn_error **err)
{
    csn_runtime *rt = state;

    if (rt->ended)
        return CSN_OK;
    if (!csn_runtime_end_keeper(rt))
        return csn_runtime_not_ended(rt, err);
    rt->ended = true;
    csn_cow_ended(rt);
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

csn_status csn_runtime_info_dir(csn_runtime *rt, const char *path, bool writable,
                                csn_error **err)
{
    char ***list = writable ? &rt->write_dirs : &rt->read_dirs;

    if (csn_strv_has((const char *const *)*list, path))
        return CSN_OK;
    return csn_strv_push(list, path) == 0 ? CSN_OK : csn_fail(err, CSN_NOMEM, "info");
}

/* The core calls info at open, before another thread has the handle. */
static csn_status list_dirs(csn_runtime *rt, csn_error **err)
{
    if (rt->write_dirs || rt->read_dirs)
        return CSN_OK;
    csn_status st = csn_runtime_info_dir(rt, rt->base.path, rt->base.writable, err);
    if (st == CSN_OK && rt->config->home)
        st = csn_runtime_info_dir(rt, rt->home.path, true, err);
    for (size_t i = 0; st == CSN_OK && i < rt->grant_count; i++)
        st = csn_runtime_info_dir(rt, rt->grants[i].path, rt->grants[i].writable, err);
    return st;
}

csn_status csn_runtime_info(csn_runtime *rt, csn_info_result *ret, csn_error **err)
{
    csn_status st = list_dirs(rt, err);

    if (st < 0)
        return st;
    ret->write_dirs = (const char *const *)rt->write_dirs;
    ret->read_dirs = (const char *const *)rt->read_dirs;
    ret->workspace = rt->base.path;
    ret->workdir = rt->base.path;
    ret->home = rt->home.path;
    pthread_mutex_lock(&rt->keeper_lock);
    int64_t pid = rt->keeper_pid;
    pthread_mutex_unlock(&rt->keeper_lock);
    ret->keeper_pid = pid > 0 ? pid : 0;
    /* Another process may have extended the lifetime of a detached sandbox, so ask the
     * keeper. */
    bool ends = rt->detached || rt->connected || rt->extended || rt->config->lifetime_ms != 0;
    return ends && pid != 0 ? csn_link_expiry(rt, &ret->expires_ms, err) : CSN_OK;
}
