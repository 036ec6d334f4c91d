/* vercel.c: the vercel backend: Vercel Sandbox, or a server with its protocol.
 *
 * Contains the operations and options. Vercel provides the isolation: each session is a
 * microVM. */
#include "backend/vercel/vercel.h"

#include "backend/vercel/export.h"

static const char *const credentials[] = {
    "VERCEL_OIDC_TOKEN", "VERCEL_TOKEN, VERCEL_TEAM_ID and VERCEL_PROJECT_ID", NULL};

static const csn_layer layers[] = {
    {"isolation", "on", "a microVM of the provider: its kernel, files, processes and users"},
    {"files", "on", "file calls act inside the sandbox; no directory of this host is shared"},
    {"processes", "on",
     "timeout and cancel end whole trees, found by an id in their environment"},
    {"network", "weaker", "the provider's: open unless network or rules restrict it"},
    {"lifetime", "on",
     "the provider stops it after its lifetime; a detached one keeps its files and resumes on "
     "use"},
};

const csn_remote_provider csn_vercel_provider = {
    .name = "vercel",
    .credentials = credentials,
    .flags = CSN_REMOTE_TEXT_ONLY,
    .layers = layers,
    .layer_count = sizeof(layers) / sizeof(layers[0]),
    .configure = csn_vercel_configure,
    .create = csn_vercel_create,
    .connect = csn_vercel_connect,
    .write_record = csn_vercel_write_record,
    .destroy = csn_vercel_destroy,
    .run = csn_vercel_run,
    .upload = csn_vercel_upload,
    .extend = csn_vercel_extend,
    .release = csn_vercel_release,
};

static csn_status vercel_check(const csn_config *c, csn_error **err)
{
    csn_status st = csn_vercel_check_network(c, err);

    return st == CSN_OK ? csn_vercel_check_credential(err) : st;
}

static csn_status vercel_open(const csn_config *config, const char *id, void *register_data,
                              void **ret_state, csn_error **err)
{
    (void)register_data;
    return csn_remote_open(&csn_vercel_provider, config, id, false, ret_state, err);
}

static csn_status vercel_connect(const csn_config *config, const char *id, void *register_data,
                                 void **ret_state, csn_error **err)
{
    (void)register_data;
    return csn_remote_open(&csn_vercel_provider, config, id, true, ret_state, err);
}

static const csn_snapshot_ops snapshots = {.size = sizeof(snapshots),
                                           .take = csn_vercel_snapshot};

static csn_status vercel_force_destroy(const csn_config *config, const char *id,
                                       void *register_data, csn_error **err)
{
    (void)register_data;
    return csn_remote_force_destroy(&csn_vercel_provider, config, id, err);
}

static const csn_backend_ops ops = {
    .size = sizeof(ops),
    .caps = CSN_CAP_LAZY | CSN_CAP_SUDO | CSN_CAP_EXPIRES | CSN_CAP_LENGTHEN,
    .name = "vercel",
    .isolation = "microvm",
    .options = CSN_VERCEL_OPTIONS,
    .check = vercel_check,
    .open = vercel_open,
    .connect = vercel_connect,
    .force_destroy = vercel_force_destroy,
    CSN_REMOTE_OPS,
    .processes = &csn_remote_process_ops,
    .extend = csn_remote_extend,
    .info = csn_remote_info,
    .snapshots = &snapshots,
};

const csn_backend_ops *csn_vercel_backend(void)
{
    return &ops;
}
