/* runtime.c: the life of a sandbox that a keeper holds: made, found again, ended.
 *
 * Called by the ops tables of the backends that have keepers. A detached sandbox is its keeper:
 * when that is gone, so is the sandbox. What must hold: whatever fails in the middle of opening
 * leaves no process and no directory behind. */
#include "runtime/runtime.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/path.h"
#include "base/strv.h"
#include "os/statedir.h"
#include "os/tree.h"

void csn_runtime_free(csn_runtime *l)
{
    if (!l)
        return;
    if (l->kind->release)
        l->kind->release(l);
    csn_runtime_grants_close(l);
    csn_runtime_channel_drop(l);
    if (l->keeper_fd >= 0)
        close(l->keeper_fd);
    if (l->keeper_pidfd >= 0)
        close(l->keeper_pidfd);
    if (l->run_fd >= 0)
        close(l->run_fd);
    if (l->commit_fd >= 0)
        close(l->commit_fd);
    csn_strv_free(l->environ_base);
    csn_rules_free(l->rules);
    pthread_mutex_destroy(&l->commit_lock);
    pthread_mutex_destroy(&l->keeper_lock);
    free(l->run_path);
    free(l->because);
    free(l->program);
    free(l->id);
    free(l);
}
CSN_DEFINE_CLEANUP(csn_runtime, csn_runtime_free)

csn_runtime *csn_runtime_new(const csn_runtime_kind *kind, const csn_config *config,
                             const char *id)
{
    csn_runtime *l = calloc(1, sizeof(*l));

    if (!l)
        return NULL;
    l->kind = kind;
    l->config = config;
    l->file_uid = geteuid();
    l->file_max = config->file_max;
    l->memory_each = config->memory_max;
    l->detached = (config->flags & CSN_OPEN_DETACHED) != 0;
    l->run_fd = l->keeper_fd = l->keeper_pidfd = l->commit_fd = -1;
    l->base.fd = l->home.fd = l->root.fd = -1;
    l->resting = -1;
    pthread_mutex_init(&l->commit_lock, NULL);
    pthread_mutex_init(&l->keeper_lock, NULL);
    l->id = strdup(id);
    if (!l->id) {
        csn_runtime_free(l);
        return NULL;
    }
    return l;
}

/* ---- the runtime directory ------------------------------------------------------------------
 */

/* Removes it (the private home, the socket). It is ours alone, so its path is safe to use. */
static void remove_run_dir(const csn_runtime *l)
{
    csn_autofree char *parent = l->run_path ? csn_path_dir(l->run_path) : NULL;
    csn_autofd int fd = parent ? open(parent, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;

    if (fd >= 0)
        (void)csn_tree_destroy(fd, l->id);
}

static void remove_rest(csn_runtime *l)
{
    if (l->kind->ended)
        l->kind->ended(l);
    remove_run_dir(l);
}

static int open_state_dir(const csn_runtime *l, bool make)
{
    csn_autofree char *sub = NULL;

    if (asprintf(&sub, "sandboxes/%s", l->id) < 0) {
        sub = NULL;
        return -ENOMEM;
    }
    return make ? csn_statedir_open(CSN_DIR_STATE, sub, NULL)
                : csn_statedir_find(CSN_DIR_STATE, sub, NULL);
}

/* Where the socket is depends on XDG_RUNTIME_DIR, which a later process may have set otherwise:
 * a detached sandbox notes it beside its metadata, as a link. */
static csn_status note_run_dir(const csn_runtime *l, csn_error **err)
{
    csn_autofd int dir = open_state_dir(l, true);

    if (dir < 0)
        return csn_fail_errno(err, -dir, "state of '%s'", l->id);
    if (symlinkat(l->run_path, dir, CSN_STATE_RUN_LINK) < 0)
        return csn_fail_errno(err, errno, "state of '%s'", l->id);
    return CSN_OK;
}

static csn_status find_run_dir(csn_runtime *l, csn_error **err)
{
    csn_autofd int dir = open_state_dir(l, false);
    char path[CSN_PATH_MAX];
    ssize_t n = dir < 0 ? -1 : readlinkat(dir, CSN_STATE_RUN_LINK, path, sizeof(path) - 1);

    if (dir < 0 && dir != -ENOENT)
        return csn_fail_errno(err, -dir, "state of '%s'", l->id);
    int fd;
    if (n <= 0) { /* none noted, its maker came to an end before: the usual place */
        fd = csn_statedir_find(CSN_DIR_RUNTIME, l->id, &l->run_path);
    } else {
        path[n] = '\0';
        l->run_path = strdup(path);
        if (!l->run_path)
            return csn_fail(err, CSN_NOMEM, "state of '%s'", l->id);
        fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        fd = fd < 0 ? -errno : fd;
    }
    if (fd < 0)
        return fd == -ENOENT ? csn_fail(err, CSN_GONE, "sandbox '%s' has ended", l->id)
                             : csn_fail_errno(err, -fd, "runtime directory of '%s'", l->id);
    l->run_fd = fd;
    return CSN_OK;
}

/* ---- opening and ending ---------------------------------------------------------------------
 */

/* Other processes may hold the same sandbox: their writes and ours take turns. Opened here, as
 * the caller; later we may be in another's guise. */
static csn_status open_commit_lock(csn_runtime *l, csn_error **err)
{
    if (!l->detached)
        return CSN_OK;
    l->commit_fd =
        openat(l->run_fd, "commit.lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    return l->commit_fd < 0 ? csn_runtime_run_failed(l, errno, "lock", err) : CSN_OK;
}

static void hand_over(csn_error **err, csn_error *why)
{
    if (err)
        *err = why;
    else
        csn_error_free(why);
}

static csn_status prepare(csn_runtime *l, csn_error **err)
{
    csn_status st = l->kind->prepare ? l->kind->prepare(l, err) : CSN_OK;

    return st < 0 ? st : csn_runtime_environ_new(l, &l->environ_base, err);
}

/* Both at the same time: it is on its way while we find out what it is to do. */
static csn_status prepare_and_bear(csn_runtime *l, csn_error **err)
{
    csn_error *why = NULL;
    csn_status st = csn_runtime_keeper_spawn_begin(l, err);

    if (st < 0)
        return st;
    st = prepare(l, &why);
    csn_status born = csn_runtime_keeper_spawn_finish(l, err);
    if (born < 0) {
        csn_error_free(why);
        return born;
    }
    hand_over(err, why);
    return st;
}

static csn_status set_up(csn_runtime *l, bool keeper, csn_error **err)
{
    const csn_runtime_kind *kind = l->kind;
    csn_status st = kind->begin ? kind->begin(l, err) : CSN_OK;

    if (st == CSN_OK)
        st = keeper && kind->ahead ? prepare_and_bear(l, err) : prepare(l, err);
    return st == CSN_OK && keeper ? csn_runtime_keeper_start(l, err) : st;
}

/* because: owned by the new state. *ret_instead: try again as this. */
static csn_status open_as(const csn_runtime_kind *kind, const csn_config *config,
                          const char *id, char **because, const csn_runtime_kind **ret_instead,
                          void **ret_state, csn_error **err)
{
    CSN_CLEANUP(csn_runtime_freep) csn_runtime *l = csn_runtime_new(kind, config, id);
    csn_error *why = NULL;

    *ret_instead = NULL;
    if (!l)
        return csn_fail(err, CSN_NOMEM, "open %s sandbox", kind->name);
    l->because = CSN_STEAL(*because);
    /* A sandbox that others must find, or that must end in time, has its keeper from the start.
     */
    bool keeper = kind->eager || l->detached || config->lifetime_ms != 0;
    csn_status st = set_up(l, keeper, &why);
    if (st == CSN_OK)
        st = open_commit_lock(l, &why);
    if (st < 0) {
        csn_runtime_keeper_end(l); /* it may be there although asking it failed */
        if (kind->instead)
            *ret_instead = kind->instead(l, why, because);
        remove_rest(l);
        hand_over(err, why);
        return st;
    }
    *ret_state = CSN_STEAL(l);
    return CSN_OK;
}

csn_status csn_runtime_open(const csn_runtime_kind *kind, const csn_config *config,
                            const char *id, void **ret_state, csn_error **err)
{
    const csn_runtime_kind *instead = NULL;
    csn_autofree char *because = NULL;
    csn_error *why = NULL;

    csn_status st = open_as(kind, config, id, &because, &instead, ret_state, &why);
    if (instead) {
        csn_error_free(CSN_STEAL(why));
        st = open_as(instead, config, id, &because, &instead, ret_state, &why);
    }
    if (st < 0)
        hand_over(err, why);
    return st;
}

csn_status csn_runtime_commit(void *state, csn_error **err)
{
    csn_runtime *l = state;
    csn_status st = l->detached ? note_run_dir(l, err) : CSN_OK;

    return st == CSN_OK && l->detached ? csn_runtime_keeper_commit(l, err) : st;
}

csn_status csn_runtime_connect(const csn_runtime_kind *kind, const csn_config *config,
                               const char *id, void **ret_state, csn_error **err)
{
    CSN_CLEANUP(csn_runtime_freep) csn_runtime *l = csn_runtime_new(kind, config, id);

    if (!l)
        return csn_fail(err, CSN_NOMEM, "connect to %s sandbox", kind->name);
    l->connected = true;
    csn_status st = find_run_dir(l, err);
    const csn_runtime_kind *instead =
        st == CSN_OK && kind->instead ? kind->instead(l, NULL, &l->because) : NULL;
    if (instead)
        l->kind = kind = instead;
    if (st == CSN_OK && kind->eager)
        st = set_up(l, false, err);
    if (st == CSN_OK)
        st = csn_runtime_keeper_connect(l, err);
    if (st == CSN_GONE)
        remove_run_dir(l);
    if (st == CSN_OK && !kind->eager)
        st = set_up(l, false, err);
    if (st == CSN_OK)
        st = open_commit_lock(l, err);
    if (st < 0)
        return st;
    *ret_state = CSN_STEAL(l);
    return CSN_OK;
}

/* What it did to the workspace nobody looks at: without its word there is no knowing since
 * when. Its sweeper removes what else is left. */
csn_status csn_runtime_force_destroy(const csn_runtime_kind *kind, const csn_config *config,
                                     const char *id, csn_error **err)
{
    CSN_CLEANUP(csn_runtime_freep) csn_runtime *l = csn_runtime_new(kind, config, id);

    if (!l)
        return csn_fail(err, CSN_NOMEM, "end of %s sandbox", kind->name);
    l->connected = true;
    csn_status st = find_run_dir(l, err);
    if (st < 0)
        return st;
    const csn_runtime_kind *instead =
        kind->instead ? kind->instead(l, NULL, &l->because) : NULL;
    if (instead)
        l->kind = instead;
    st = csn_runtime_keeper_force_destroy(l, err);
    if (st == CSN_OK || st == CSN_GONE)
        remove_run_dir(l);
    return st;
}

csn_status csn_runtime_destroy(void *state, csn_error **err)
{
    csn_runtime *l = state;

    (void)err;
    if (l->gone)
        return CSN_OK;
    l->gone = true;
    csn_runtime_keeper_end(l);
    remove_rest(l);
    return CSN_OK;
}

void csn_runtime_close(void *state)
{
    csn_runtime *l = state;

    if (!l)
        return;
    if (!l->detached)
        (void)csn_runtime_destroy(l, NULL);
    csn_runtime_free(l);
}

csn_status csn_runtime_info(csn_runtime *l, csn_info_result *ret, csn_error **err)
{
    ret->workspace = l->base.path;
    ret->workdir = l->base.path;
    ret->home = l->home.path;
    pthread_mutex_lock(&l->keeper_lock);
    ret->keeper_pid = l->keeper_pid;
    pthread_mutex_unlock(&l->keeper_lock);
    /* Another process may have moved the end of a detached one, so the keeper is asked. */
    bool ends = l->detached || l->connected || l->extended || l->config->lifetime_ms != 0;
    return ends && ret->keeper_pid != 0 ? csn_runtime_expiry(l, &ret->expires_ms, err) : CSN_OK;
}
