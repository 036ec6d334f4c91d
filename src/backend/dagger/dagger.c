/* dagger.c: the dagger backend: sandboxes that are containers of a Dagger engine.
 *
 * Contains the operations and options. The engine provides the isolation: each command runs in
 * a separate container, on the kernel of the engine's machine. */
#include <stdlib.h>

#include "backend/dagger/dagger.h"
#include "backend/dagger/export.h"
#include "base/error.h"

static const char *const credentials[] = {"DAGGER_SESSION_TOKEN", NULL};

static csn_status configure(csn_remote *r, csn_error **err)
{
    csn_dagger *d = calloc(1, sizeof(*d));

    r->data = d;
    if (!d)
        return csn_fail(err, CSN_NOMEM, "open");
    d->session.stdin_fd = -1;
    return csn_step_lock_new(&d->step_lock, err);
}

static const csn_layer layers[] = {
    {"isolation", "on", "a container of the engine for each command; its kernel is shared"},
    {"files", "on", "file calls act inside the sandbox; no directory of this host is shared"},
    {"processes", "on", "nothing outlives its command: each runs in a container of its own"},
    {"network", "weaker", "the engine's: open"},
    {"lifetime", "off", "none: the engine decides how long it keeps a container"},
};

const csn_remote_provider csn_dagger_provider = {
    .name = "dagger",
    .credentials = credentials,
    .flags = CSN_REMOTE_EXEC_ISOLATED,
    .layers = layers,
    .layer_count = sizeof(layers) / sizeof(layers[0]),
    .configure = configure,
    .create = csn_dagger_create,
    .connect = csn_dagger_connect,
    .write_record = csn_dagger_write_record,
    .destroy = csn_dagger_destroy,
    .run = csn_dagger_run,
    .upload = csn_dagger_upload,
    .release = csn_dagger_release,
};

static csn_status dagger_check(const csn_config *c, csn_error **err)
{
    (void)c;
    return csn_dagger_session_check(err);
}

static csn_status dagger_open(const csn_config *config, const char *id, void *register_data,
                              void **ret_state, csn_error **err)
{
    (void)register_data;
    return csn_remote_open(&csn_dagger_provider, config, id, false, ret_state, err);
}

static csn_status dagger_connect(const csn_config *config, const char *id, void *register_data,
                                 void **ret_state, csn_error **err)
{
    (void)register_data;
    return csn_remote_open(&csn_dagger_provider, config, id, true, ret_state, err);
}

static const csn_snapshot_ops snapshots = {
    .size = sizeof(snapshots), .take = csn_dagger_snapshot, .rollback = csn_dagger_rollback};

/* Background processes are not supported: a process cannot outlive the command that started
 * it. */
static const csn_backend_ops ops = {
    .size = sizeof(ops),
    .caps = CSN_CAP_LAZY | CSN_CAP_STEPS | CSN_CAP_FORK,
    .name = "dagger",
    .isolation = "container",
    .options = CSN_DAGGER_OPTIONS,
    .check = dagger_check,
    .open = dagger_open,
    .connect = dagger_connect,
    CSN_REMOTE_OPS,
    .info = csn_remote_info,
    .snapshots = &snapshots,
};

const csn_backend_ops *csn_dagger_backend(void)
{
    return &ops;
}
