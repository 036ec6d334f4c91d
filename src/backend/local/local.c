/* local.c: the local backend: processes on this host, files below a base directory.
 *
 * It isolates nothing: commands run as the caller, with the caller's files and network. What it
 * does give is said in the layers below and no more: file calls are held below the base by the
 * kernel, commands run with a clean environment and no inherited descriptor, and a keeper ends
 * whole process trees. Options it cannot honour (network rules, most limits) are refused in
 * open. A detached sandbox is its keeper: when that is gone, so is the sandbox. */
#include "backend/local/local.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backend/local/export.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/path.h"
#include "base/strv.h"
#include "os/statedir.h"
#include "os/tree.h"

static const csn_layer layers[] = {
    {"isolation", "off",
     "local isolates nothing: commands run as you, with your files and your network"},
    {"files", "on",
     "file calls are held below the base and the granted directories by openat2"},
    {"processes", "on",
     "a keeper ends whole process trees: timeout, cancel, close, owner's death"},
    {"environment", "on",
     "commands get an allow-list of variables and no inherited descriptor"},
    {"network", "off", "commands use the host's network"},
};

static csn_status refuse_unfit(const csn_config *c, csn_error **err)
{
    const char *bad = NULL;

    if (c->network || c->net_allow || c->net_deny || c->packages || c->publish || c->host_ports)
        bad = "network rules";
    else if (c->pids_max)
        bad = "a limit on processes";
    else if (c->cpu_milli)
        bad = "a limit on cpu";
    else if (c->disk_max)
        bad = "a limit on disk";
    else if (c->image)
        bad = "an image";
    else if (c->workspaces)
        bad = "more than one workspace (use --read and --write)";
    if (!bad)
        return CSN_OK;
    csn_status st = csn_fail(err, CSN_UNSUPPORTED, "backend 'local' cannot honour %s", bad);
    return csn_error_advise(st, err, "the jail backend can");
}

static void local_free(csn_local *l)
{
    if (!l)
        return;
    csn_local_grants_close(l);
    if (l->keeper_fd >= 0)
        close(l->keeper_fd);
    if (l->keeper_pidfd >= 0)
        close(l->keeper_pidfd);
    if (l->run_fd >= 0)
        close(l->run_fd);
    csn_strv_free(l->environ_base);
    csn_rules_free(l->rules);
    pthread_mutex_destroy(&l->commit_lock);
    pthread_mutex_destroy(&l->keeper_lock);
    free(l->run_path);
    free(l->id);
    free(l);
}
CSN_DEFINE_CLEANUP(csn_local, local_free)

static csn_local *local_new(const csn_config *config, const char *id)
{
    csn_local *l = calloc(1, sizeof(*l));

    if (!l)
        return NULL;
    l->config = config;
    l->detached = (config->flags & CSN_OPEN_DETACHED) != 0;
    l->run_fd = l->keeper_fd = l->keeper_pidfd = -1;
    l->base.fd = l->home.fd = -1;
    pthread_mutex_init(&l->commit_lock, NULL);
    pthread_mutex_init(&l->keeper_lock, NULL);
    l->id = strdup(id);
    if (!l->id) {
        local_free(l);
        return NULL;
    }
    return l;
}

/* ---- the runtime directory ------------------------------------------------------------------
 */

/* Removes it (the private home, the socket). It is ours alone, so its path is safe to use. */
static void remove_run_dir(const csn_local *l)
{
    csn_autofree char *parent = l->run_path ? csn_path_dir(l->run_path) : NULL;
    csn_autofd int fd = parent ? open(parent, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;

    if (fd >= 0)
        (void)csn_tree_destroy(fd, l->id);
}

static int open_state_dir(const csn_local *l, bool make)
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
static csn_status note_run_dir(const csn_local *l, csn_error **err)
{
    csn_autofd int dir = open_state_dir(l, true);

    if (dir < 0)
        return csn_fail_errno(err, -dir, "state of '%s'", l->id);
    if (symlinkat(l->run_path, dir, CSN_STATE_RUN_LINK) < 0)
        return csn_fail_errno(err, errno, "state of '%s'", l->id);
    return CSN_OK;
}

static csn_status find_run_dir(csn_local *l, csn_error **err)
{
    csn_autofd int dir = open_state_dir(l, false);
    char path[CSN_PATH_MAX];
    ssize_t n = dir < 0 ? -1 : readlinkat(dir, CSN_STATE_RUN_LINK, path, sizeof(path) - 1);

    if (dir < 0 && dir != -ENOENT)
        return csn_fail_errno(err, -dir, "state of '%s'", l->id);
    if (n <= 0)
        return CSN_OK; /* none noted: the usual place */
    path[n] = '\0';
    l->run_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    l->run_path = strdup(path);
    if (!l->run_path)
        return csn_fail(err, CSN_NOMEM, "state of '%s'", l->id);
    if (l->run_fd < 0)
        return errno == ENOENT ? csn_fail(err, CSN_GONE, "sandbox '%s' has ended", l->id)
                               : csn_fail_errno(err, errno, "runtime directory of '%s'", l->id);
    return CSN_OK;
}

/* ---- opening and ending ---------------------------------------------------------------------
 */

static csn_status local_open(const csn_config *config, const char *id, void *register_data,
                             void **ret_state, csn_error **err)
{
    CSN_CLEANUP(local_freep) csn_local *l = NULL;
    csn_status st = refuse_unfit(config, err);

    (void)register_data;
    if (st < 0)
        return st;
    l = local_new(config, id);
    if (!l)
        return csn_fail(err, CSN_NOMEM, "open local sandbox");
    st = csn_local_grants_open(l, err);
    if (st == CSN_OK)
        st = csn_local_environ_new(l, &l->environ_base, err);
    /* A sandbox that others must find, or that must end in time, has its keeper from the start.
     */
    if (st == CSN_OK && (l->detached || config->lifetime_ms))
        st = csn_local_keeper_start(l, err);
    if (st == CSN_OK && l->detached)
        st = note_run_dir(l, err);
    if (st < 0) {
        csn_local_keeper_end(l); /* it may be there although asking it failed */
        remove_run_dir(l);
        return st;
    }
    *ret_state = CSN_STEAL(l);
    return CSN_OK;
}

static csn_status local_connect(const csn_config *config, const char *id, void *register_data,
                                void **ret_state, csn_error **err)
{
    CSN_CLEANUP(local_freep) csn_local *l = local_new(config, id);

    (void)register_data;
    if (!l)
        return csn_fail(err, CSN_NOMEM, "connect to local sandbox");
    l->connected = true;
    csn_status st = find_run_dir(l, err);
    if (st == CSN_OK)
        st = csn_local_keeper_connect(l, err);
    if (st == CSN_GONE)
        remove_run_dir(l);
    if (st == CSN_OK)
        st = csn_local_grants_open(l, err);
    if (st == CSN_OK)
        st = csn_local_environ_new(l, &l->environ_base, err);
    if (st < 0)
        return st;
    *ret_state = CSN_STEAL(l);
    return CSN_OK;
}

static csn_status local_destroy(void *state, csn_error **err)
{
    csn_local *l = state;

    (void)err;
    if (l->gone)
        return CSN_OK;
    l->gone = true;
    csn_local_keeper_end(l);
    remove_run_dir(l);
    return CSN_OK;
}

static void local_close(void *state)
{
    csn_local *l = state;

    if (!l)
        return;
    if (!l->detached)
        (void)local_destroy(l, NULL);
    local_free(l);
}

static csn_status local_info(void *state, csn_info_result *ret, csn_error **err)
{
    csn_local *l = state;

    ret->workspace = l->base.path;
    ret->workdir = l->base.path;
    ret->home = l->home.path;
    ret->layers = layers;
    ret->layer_count = sizeof(layers) / sizeof(layers[0]);
    pthread_mutex_lock(&l->keeper_lock);
    ret->keeper_pid = l->keeper_pid;
    pthread_mutex_unlock(&l->keeper_lock);
    /* Another process may have moved the end, so the keeper is asked, if there is one. */
    return ret->keeper_pid != 0 ? csn_local_expiry(l, &ret->expires_ms, err) : CSN_OK;
}

static const csn_backend_ops ops = {
    .size = sizeof(ops),
    .caps = CSN_CAP_BENEATH | CSN_CAP_CONFIG | CSN_CAP_SESSION | CSN_CAP_HOST,
    .name = "local",
    .isolation = "none",
    .open = local_open,
    .connect = local_connect,
    .close = local_close,
    .destroy = local_destroy,
    .exec = csn_local_exec,
    .stat = csn_local_stat,
    .read = csn_local_read,
    .write = csn_local_write,
    .mkdir = csn_local_mkdir,
    .symlink = csn_local_symlink,
    .remove = csn_local_remove,
    .rename = csn_local_rename,
    .list = csn_local_list,
    .walk = csn_local_walk,
    .cleanup = csn_local_cleanup,
    .watch = csn_local_watch,
    .watch_next = csn_local_watch_next,
    .watch_free = csn_local_watch_free,
    .start = csn_local_start,
    .untie = csn_local_untie,
    .processes = csn_local_processes,
    .logs = csn_local_logs,
    .signal = csn_local_signal,
    .feed = csn_local_feed,
    .resize = csn_local_resize,
    .wait_port = csn_local_wait_port,
    .extend = csn_local_extend,
    .info = local_info,
    .judge = csn_local_path_judge,
    .chmod = csn_local_chmod,
};

const csn_backend_ops *csn_local_backend(void)
{
    return &ops;
}

/* ---- any host directory, for export and import ---------------------------------------------
 */

static int make_dirs(const char *dir)
{
    csn_autofree char *path = strdup(dir);

    if (!path)
        return ENOMEM;
    for (char *p = path + 1; *p; p++) {
        if (*p != '/')
            continue;
        *p = '\0';
        if (mkdir(path, 0777) < 0 && errno != EEXIST)
            return errno;
        *p = '/';
    }
    return mkdir(path, 0777) < 0 && errno != EEXIST ? errno : 0;
}

csn_status csn_local_host_open(const char *dir, bool make, void **ret_state, csn_error **err)
{
    static const csn_config plain = {.size = sizeof(plain)};
    csn_config config = {.size = sizeof(config), .workspace = dir, .home = dir};
    int e = make ? make_dirs(dir) : 0;

    if (e != 0)
        return csn_fail_errno(err, e, "make host directory '%s'", dir);
    csn_local *l = local_new(&config, "host");
    if (!l)
        return csn_fail(err, CSN_NOMEM, "host directory '%s'", dir);
    csn_status st = csn_local_grants_open(l, err);
    l->config = &plain; /* the lists are open now; what is asked later is only the flags */
    if (st < 0) {
        local_free(l);
        return csn_wrap(st, err, "host directory");
    }
    *ret_state = l;
    return CSN_OK;
}
