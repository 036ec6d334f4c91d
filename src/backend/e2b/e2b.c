/* e2b.c: the e2b backend: sandboxes of the E2B cloud, or of any server that speaks its
 * protocol.
 *
 * The ops table, what can be asked for and what cannot. The isolation is theirs: a microVM for
 * each sandbox. What a command and its files are, src/remote says for all providers. Their file
 * service is used for content (files.c) and events (watch.c); its stat, list, mkdir, move and
 * remove are not: they act as the superuser, know neither links nor special files nor names
 * that are not UTF-8 as ours must, and save no request. */
#include <string.h>

#include "backend/e2b/e2b.h"
#include "backend/e2b/export.h"
#include "base/error.h"

static const char *const secrets[] = {"E2B_API_KEY", NULL};

static const csn_layer layers[] = {
    {"isolation", "on", "a microVM of the provider: its kernel, files, processes and users"},
    {"files", "on", "file calls act inside the sandbox; no directory of this host is shared"},
    {"processes", "on",
     "timeout and cancel end whole trees, found by a mark in their environment"},
    {"network", "weaker", "the provider's: open unless network or allow rules say otherwise"},
    {"lifetime", "on", "the provider ends the sandbox at its time, also if this host is gone"},
};

const csn_remote_kind csn_e2b_kind = {
    .name = "e2b",
    .secrets = secrets,
    .flags = CSN_REMOTE_STDIN,
    .layers = layers,
    .layer_count = sizeof(layers) / sizeof(layers[0]),
    .configure = csn_e2b_configure,
    .make = csn_e2b_make,
    .find = csn_e2b_find,
    .note = csn_e2b_note,
    .end = csn_e2b_end,
    .run = csn_e2b_run,
    .put = csn_e2b_put,
    .extend = csn_e2b_extend,
    .release = csn_e2b_release,
};

static csn_status e2b_check(const csn_config *c, csn_error **err)
{
    csn_status st = csn_remote_check(
        &csn_e2b_kind, c, CSN_REMOTE_IMAGE | CSN_REMOTE_NET | CSN_REMOTE_NET_OUT, err);

    if (st == CSN_OK)
        st = csn_e2b_check_network(c, err);
    if (st == CSN_OK && !csn_e2b_has_key())
        st = csn_remote_no_credential(&csn_e2b_kind, err);
    return st;
}

static csn_status e2b_open(const csn_config *config, const char *id, void *register_data,
                           void **ret_state, csn_error **err)
{
    (void)register_data;
    return csn_remote_begin(&csn_e2b_kind, config, id, false, ret_state, err);
}

static csn_status e2b_connect(const csn_config *config, const char *id, void *register_data,
                              void **ret_state, csn_error **err)
{
    (void)register_data;
    return csn_remote_begin(&csn_e2b_kind, config, id, true, ret_state, err);
}

static const char *const options[] = {"image", "network", "network_hosts", "lifetime", NULL};

static const csn_file_ops files = {.size = sizeof(files),
                                   .watch = csn_e2b_watch,
                                   .watch_next = csn_e2b_watch_next,
                                   .watch_free = csn_e2b_watch_free,
                                   .fetch = csn_e2b_fetch};

static const csn_backend_ops ops = {
    .size = sizeof(ops),
    .caps = CSN_CAP_LAZY | CSN_CAP_OPTIONS | CSN_CAP_SUDO,
    .name = "e2b",
    .isolation = "microvm",
    .check = e2b_check,
    .open = e2b_open,
    .connect = e2b_connect,
    CSN_REMOTE_OPS,
    .files = &files,
    .processes = &csn_remote_process_ops,
    .extend = csn_remote_extend,
    .info = csn_remote_info,
    .options = options,
    .pause = csn_e2b_pause,
    .resume = csn_e2b_resume,
};

const csn_backend_ops *csn_e2b_backend(void)
{
    return &ops;
}
