/* local.c: the local backend: processes on this host, files below a base directory.
 *
 * It isolates nothing: commands run as the caller, with the caller's files and network. What it
 * does give is said in the layers below and no more: file calls are held below the base by the
 * kernel, commands run with a clean environment and no inherited descriptor, and a keeper ends
 * whole process trees. Options it cannot honour (network rules, most limits) are refused in
 * open. A detached sandbox is its keeper: when that is gone, so is the sandbox. */
#include <string.h>
#include <unistd.h>

#include "backend/local/export.h"
#include "base/error.h"
#include "runtime/runtime.h"

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

/* HOST:INSIDE or HOST:ro instead of a directory. */
static bool mapped(const char *workspace)
{
    const char *colon = workspace ? strrchr(workspace, ':') : NULL;

    return colon && access(workspace, F_OK) != 0 &&
           (colon[1] == '/' || strcmp(colon, ":ro") == 0 || strcmp(colon, ":cow") == 0);
}

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
    else if (mapped(c->workspace))
        bad = "a workspace at another place or only for reading";
    else if (c->workspaces)
        bad = "more than one workspace (use --read and --write)";
    if (!bad)
        return CSN_OK;
    csn_status st = csn_fail(err, CSN_UNSUPPORTED, "backend 'local' cannot honour %s", bad);
    return csn_error_advise(st, err, "the jail backend can");
}

static csn_status local_open(const csn_config *config, const char *id, void *register_data,
                             void **ret_state, csn_error **err)
{
    csn_status st = refuse_unfit(config, err);

    (void)register_data;
    return st < 0 ? st : csn_runtime_open("local", config, id, ret_state, err);
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

static csn_status local_info(void *state, csn_info_result *ret, csn_error **err)
{
    ret->layers = layers;
    ret->layer_count = sizeof(layers) / sizeof(layers[0]);
    return csn_runtime_info(state, ret, err);
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
    .cleanup = csn_runtime_cleanup,
    .watch = csn_runtime_watch,
    .watch_next = csn_runtime_watch_next,
    .watch_free = csn_runtime_watch_free,
    .check_path = csn_runtime_check_path,
};

static const csn_process_ops processes = {CSN_RUNTIME_PROCESS_OPS, .start = csn_runtime_start};

static const csn_backend_ops ops = {
    .size = sizeof(ops),
    .caps = CSN_CAP_BENEATH | CSN_CAP_CONFIG | CSN_CAP_SESSION | CSN_CAP_HOST | CSN_CAP_USAGE |
            CSN_CAP_OWNED,
    .name = "local",
    .isolation = "none",
    .exec = csn_runtime_exec,
    .files = &files,
    .processes = &processes,
    .open = local_open,
    .connect = local_connect,
    .force_destroy = local_force_destroy,
    .close = csn_runtime_close,
    .destroy = csn_runtime_destroy,
    .commit = csn_runtime_commit,
    .extend = csn_runtime_extend,
    .info = local_info,
};

const csn_backend_ops *csn_local_backend(void)
{
    return &ops;
}
