/* local.c: the local backend: commands on this host without isolation, file calls below a base
 * directory.
 *
 * Commands run as the caller, with the caller's files and network. The kernel keeps file calls
 * below the base, commands get a clean environment and no inherited descriptors, and a keeper
 * ends whole process trees. A detached sandbox exists as long as its keeper runs. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backend/local/export.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/path.h"
#include "runtime/cow.h"
#include "runtime/runtime.h"

#define COMMON 5u /* the last is only for a copy-on-write workspace */

static const csn_layer layers[COMMON + 1] = {
    {"isolation", "off",
     "local isolates nothing: commands run as you, with your files and your network"},
    {"files", "on",
     "file calls are held below the base and the granted directories by openat2"},
    {"processes", "on",
     "a keeper ends whole process trees: timeout, cancel, close, owner's death"},
    {"environment", "on",
     "commands get an allow-list of variables and no inherited descriptor"},
    {"network", "off", "commands use the host's network"},
    {"workspace", "weaker",
     "copy-on-write, by a copy: commands start in it and file calls use it, changes wait for "
     "commit; commands that use the path of the host's directory change that"},
};

static bool exists(const char *path)
{
    return access(path, F_OK) == 0;
}

static csn_status local_check(const csn_config *c, csn_error **err)
{
    const char *inside = NULL, *mode = NULL;
    csn_autofree char *host = strdup(c->workspace ? c->workspace : ".");

    if (!host)
        return csn_fail(err, CSN_NOMEM, "workspace");
    csn_workspace_split(host, exists, &inside, &mode);
    if (!inside && (!mode || strcmp(mode, "cow") == 0))
        return CSN_OK;
    csn_status st = csn_fail(
        err, CSN_UNSUPPORTED,
        "workspace %s: backend 'local' supports only a directory, or DIR:cow", c->workspace);
    return csn_error_advise(st, err, "jail and docker support HOST:INSIDE and :ro");
}

static csn_status local_open(const csn_config *config, const char *id, void *register_data,
                             void **ret_state, csn_error **err)
{
    (void)register_data;
    return csn_runtime_open("local", config, id, ret_state, err);
}

static csn_status local_connect(const csn_config *config, const char *id, void *register_data,
                                void **ret_state, csn_error **err)
{
    (void)register_data;
    return csn_runtime_connect("local", config, id, ret_state, err);
}

static csn_status local_force_destroy(const csn_config *config, const char *id,
                                      void *register_data, csn_error **err)
{
    (void)register_data;
    return csn_runtime_force_destroy("local", config, id, err);
}

static csn_status local_probe(const char *id, void *register_data, const char **ret,
                              csn_error **err)
{
    (void)register_data;
    return csn_runtime_state(id, ret, err);
}

static csn_status local_info(void *state, csn_info_result *ret, csn_error **err)
{
    const csn_runtime *rt = state;

    ret->layers = layers;
    ret->layer_count = COMMON + (rt->cow != NULL);
    return csn_runtime_info(state, ret, err);
}

static csn_status local_commit(void *state, csn_error **err)
{
    csn_runtime *rt = state;
    csn_status st = rt->detached ? csn_cow_save(rt, err) : CSN_OK;

    return st < 0 ? st : csn_runtime_commit(rt, err);
}

/* The watch ends with the keeper, so there must be one: csn_extend may give the sandbox a
 * lifetime while the watch waits. */
static csn_status local_watch(void *state, const char *path, uint32_t flags, void **ret_watch,
                              csn_error **err)
{
    csn_status st = csn_runtime_ensure_keeper(state, err);

    return st < 0 ? st : csn_runtime_watch(state, path, flags, ret_watch, err);
}

static const char *local_note_write(void *state, const char *resolved)
{
    const csn_runtime *rt = state;
    bool private = !rt->config->home && csn_path_below(resolved, rt->home.path);

    return private ? CSN_NOTE_PRIVATE_HOME : NULL;
}

static const csn_file_ops files = {
    .size = sizeof(files),
    .stat = csn_runtime_stat,
    .read = csn_runtime_read,
    .write = csn_runtime_write,
    .mkdir = csn_runtime_mkdir,
    .symlink = csn_runtime_symlink,
    .chmod = csn_runtime_chmod,
    .remove = csn_runtime_remove,
    .rename = csn_runtime_rename,
    .list = csn_runtime_list,
    .walk = csn_runtime_walk,
    .search = csn_runtime_search,
    .cleanup = csn_runtime_cleanup,
    .watch = local_watch,
    .watch_next = csn_runtime_watch_next,
    .watch_free = csn_runtime_watch_free,
    .check_path = csn_runtime_check_path,
    .note_write = local_note_write,
};

static const csn_process_ops processes = {CSN_RUNTIME_PROCESS_OPS, .start = csn_runtime_start};

static const csn_backend_ops ops = {
    .size = sizeof(ops),
    .caps = CSN_CAP_BENEATH | CSN_CAP_CWD | CSN_CAP_SESSION | CSN_CAP_SPAWN | CSN_CAP_PTY |
            CSN_CAP_ENV | CSN_CAP_USAGE | CSN_CAP_OWNED,
    .name = "local",
    .isolation = "none",
    .options = CSN_OPTION_WORKSPACE | CSN_OPTION_CREATE | CSN_OPTION_READ | CSN_OPTION_WRITE |
               CSN_OPTION_DENY | CSN_OPTION_DENY_MISSING | CSN_OPTION_RULES | CSN_OPTION_HOME |
               CSN_OPTION_NOFOLLOW | CSN_OPTION_MEMORY | CSN_OPTION_FILE_SIZE |
               CSN_OPTION_LIFETIME | CSN_OPTION_COW | CSN_OPTION_IMAGE,
    .exec = csn_runtime_exec,
    .files = &files,
    .processes = &processes,
    .workspace = &csn_cow_ops,
    .check = local_check,
    .open = local_open,
    .connect = local_connect,
    .set_stop_fd = csn_runtime_set_stop_fd,
    .force_destroy = local_force_destroy,
    .close = csn_runtime_close,
    .destroy = csn_runtime_destroy,
    .commit = local_commit,
    .extend = csn_runtime_extend,
    .info = local_info,
    .probe = local_probe,
    .find_program = csn_runtime_find_program,
};

const csn_backend_ops *csn_local_backend(void)
{
    return &ops;
}
