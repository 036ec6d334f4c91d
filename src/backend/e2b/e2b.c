/* e2b.c: the e2b backend: sandboxes of the E2B cloud, or of a server with its protocol.
 *
 * Contains the operations and options. E2B provides the isolation: each sandbox is a microVM.
 * envd's file service is used only for content (files.c) and events (watch.c). Its stat, list,
 * mkdir, move and remove act as root, do not report links, special files or names that are not
 * UTF-8, and would save no requests. */
#include "backend/e2b/e2b.h"
#include "backend/e2b/export.h"

static const char *const credentials[] = {"E2B_API_KEY", NULL};

static const csn_layer layers[] = {
    {"isolation", "on", "a microVM of the provider: its kernel, files, processes and users"},
    {"files", "on", "file calls act inside the sandbox; no directory of this host is shared"},
    {"processes", "on",
     "timeout and cancel end whole trees, found by an id in their environment"},
    {"network", "weaker", "the provider's: open unless network or allow rules restrict it"},
    {"lifetime", "on",
     "the provider ends the sandbox after its lifetime, also if this host is gone"},
};

const csn_remote_provider csn_e2b_provider = {
    .name = "e2b",
    .credentials = credentials,
    .flags = CSN_REMOTE_STDIN,
    .layers = layers,
    .layer_count = sizeof(layers) / sizeof(layers[0]),
    .configure = csn_e2b_configure,
    .create = csn_e2b_create,
    .connect = csn_e2b_connect,
    .write_record = csn_e2b_write_record,
    .destroy = csn_e2b_destroy,
    .run = csn_e2b_run,
    .upload = csn_e2b_upload,
    .extend = csn_e2b_extend,
    .release = csn_e2b_release,
};

static csn_status e2b_check(const csn_config *c, csn_error **err)
{
    csn_status st = csn_e2b_check_network(c, err);

    if (st == CSN_OK && !csn_e2b_has_key())
        st = csn_remote_missing_credential(&csn_e2b_provider, err);
    return st;
}

static csn_status e2b_open(const csn_config *config, const char *id, void *register_data,
                           void **ret_state, csn_error **err)
{
    (void)register_data;
    return csn_remote_open(&csn_e2b_provider, config, id, false, ret_state, err);
}

static csn_status e2b_connect(const csn_config *config, const char *id, void *register_data,
                              void **ret_state, csn_error **err)
{
    (void)register_data;
    return csn_remote_open(&csn_e2b_provider, config, id, true, ret_state, err);
}

static const csn_file_ops files = {.size = sizeof(files),
                                   .watch = csn_e2b_watch,
                                   .watch_next = csn_e2b_watch_next,
                                   .watch_free = csn_e2b_watch_free,
                                   .fetch = csn_e2b_fetch};

static csn_status e2b_force_destroy(const csn_config *config, const char *id,
                                    void *register_data, csn_error **err)
{
    (void)register_data;
    return csn_remote_force_destroy(&csn_e2b_provider, config, id, err);
}

static const csn_backend_ops ops = {
    .size = sizeof(ops),
    .caps = CSN_CAP_LAZY | CSN_CAP_SUDO | CSN_CAP_EXPIRES,
    .name = "e2b",
    .isolation = "microvm",
    .options = CSN_E2B_OPTIONS,
    .check = e2b_check,
    .open = e2b_open,
    .connect = e2b_connect,
    .force_destroy = e2b_force_destroy,
    CSN_REMOTE_OPS,
    .files = &files,
    .processes = &csn_remote_process_ops,
    .extend = csn_remote_extend,
    .info = csn_remote_info,
    .pause = csn_e2b_pause,
    .resume = csn_e2b_resume,
};

const csn_backend_ops *csn_e2b_backend(void)
{
    return &ops;
}
