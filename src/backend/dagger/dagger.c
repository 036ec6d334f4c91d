/* dagger.c: the dagger backend: sandboxes that are containers of a Dagger engine.
 *
 * The ops table, what can be asked for and what cannot. The isolation is theirs: a container
 * for each command, on the kernel of the engine's machine. What a command and its files are,
 * src/remote says for all providers. */
#include <stdlib.h>

#include "backend/dagger/dagger.h"
#include "backend/dagger/export.h"
#include "base/error.h"

static const char *const secrets[] = {"DAGGER_SESSION_TOKEN", NULL};

static csn_status configure(csn_remote *r, csn_error **err)
{
    csn_dagger *d = calloc(1, sizeof(*d));

    r->own = d;
    if (!d)
        return csn_fail(err, CSN_NOMEM, "open");
    d->session.hold = -1;
    return csn_step_lock_new(&d->turn, err);
}

static const csn_layer layers[] = {
    {"isolation", "on", "a container of the engine for each command; its kernel is shared"},
    {"files", "on", "file calls act inside the sandbox; no directory of this host is shared"},
    {"processes", "on",
     "nothing outlives its command: each runs alone and its container ends with it"},
    {"network", "weaker", "the engine's: open"},
    {"lifetime", "off", "none: the engine keeps a state as long as it likes"},
};

const csn_remote_kind csn_dagger_kind = {
    .name = "dagger",
    .secrets = secrets,
    .flags = CSN_REMOTE_ALONE,
    .layers = layers,
    .layer_count = sizeof(layers) / sizeof(layers[0]),
    .configure = configure,
    .make = csn_dagger_make,
    .find = csn_dagger_find,
    .note = csn_dagger_note,
    .end = csn_dagger_end,
    .run = csn_dagger_run,
    .put = csn_dagger_put,
    .release = csn_dagger_release,
};

static csn_status dagger_check(const csn_config *c, csn_error **err)
{
    csn_status st = csn_remote_check(&csn_dagger_kind, c, CSN_REMOTE_IMAGE, err);

    return st < 0 ? st : csn_dagger_session_check(err);
}

static csn_status dagger_open(const csn_config *config, const char *id, void *register_data,
                              void **ret_state, csn_error **err)
{
    (void)register_data;
    return csn_remote_begin(&csn_dagger_kind, config, id, false, ret_state, err);
}

static csn_status dagger_connect(const csn_config *config, const char *id, void *register_data,
                                 void **ret_state, csn_error **err)
{
    (void)register_data;
    return csn_remote_begin(&csn_dagger_kind, config, id, true, ret_state, err);
}

static const char *const options[] = {"image", NULL};

static const csn_snapshot_ops snapshots = {
    .size = sizeof(snapshots), .take = csn_dagger_snapshot, .rollback = csn_dagger_rollback};

/* No background processes: a process cannot outlive the command that started it. */
static const csn_backend_ops ops = {
    .size = sizeof(ops),
    .caps = CSN_CAP_LAZY | CSN_CAP_OPTIONS | CSN_CAP_STEPS | CSN_CAP_FORK,
    .name = "dagger",
    .isolation = "container",
    .check = dagger_check,
    .open = dagger_open,
    .connect = dagger_connect,
    CSN_REMOTE_OPS,
    .info = csn_remote_info,
    .options = options,
    .snapshots = &snapshots,
};

const csn_backend_ops *csn_dagger_backend(void)
{
    return &ops;
}
