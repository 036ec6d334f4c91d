/* jail.c: the jail backend: kernel isolation on this machine, for root and for everybody.
 *
 * A kept sandbox (src/kept) whose keeper is pid 1 of namespaces of its own and behind all walls
 * of keeper/boot/confine.h before it serves anything. Commands are its children; file
 * operations are done below the root it has built. What this file does: it refuses, before
 * anything is started, what a jail of this build cannot honour. */
#include "backend/jail/jail.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backend/jail/export.h"
#include "base/error.h"

static csn_status refuse_unfit(const csn_config *c, csn_error **err)
{
    const char *bad = NULL;

    if (c->image)
        bad = "an image";
    if (!bad)
        return CSN_OK;
    return csn_fail(err, CSN_UNSUPPORTED, "backend 'jail' cannot honour %s", bad);
}

static csn_status jail_check(const csn_config *c, csn_error **err)
{
    return c->workspace ? CSN_OK : csn_jail_check_cwd(err);
}

static void jail_release(csn_runtime *k)
{
    csn_jail *j = k->own;

    if (!j)
        return;
    csn_jail_sweeper_release(&j->sweeper);
    csn_protected_release(j->guard);
    if (j->frame_lock >= 0)
        close(j->frame_lock);
    csn_jail_net_release(j);
    free(j->mounts);
    csn_arena_free(j->arena);
    free(j);
    k->own = NULL;
}

static csn_status jail_begin(csn_runtime *k, csn_error **err)
{
    csn_jail *j = calloc(1, sizeof(*j));

    k->own = j;
    if (j) {
        csn_jail_sweeper_init(&j->sweeper);
        j->frame_lock = -1;
        j->arena = csn_arena_new();
        j->mounts = calloc(CSN_MOUNTS_MAX, sizeof(*j->mounts));
    }
    if (!j || !j->arena || !j->mounts)
        return csn_fail(err, CSN_NOMEM, "open jail sandbox");
    k->memory_each = 0; /* memory is bounded by better means, see limits.c */
    csn_status st = csn_jail_begin(k, err);
    /* Their directories are made soon, and the sweeper comes first. */
    if (st == CSN_OK && (k->detached || k->kind->judged))
        st = csn_jail_sweeper_begin(k, err);
    return st == CSN_OK && k->kind->judged ? csn_jail_sweeper_ready(k, err) : st;
}

/* There may be thousands of sandboxes in one process. */
static void trim_mounts(csn_jail *j)
{
    csn_mount *fitting = realloc(j->mounts, (j->mount_count + 1) * sizeof(*fitting));

    if (fitting)
        j->mounts = fitting;
}

static csn_status jail_prepare(csn_runtime *k, csn_error **err)
{
    csn_status st = csn_jail_plan(k, err);

    if (st == CSN_OK)
        trim_mounts(k->own);
    if (st == CSN_OK)
        st = csn_jail_net_plan(k, err);
    return st < 0 ? st : csn_jail_sweeper_begin(k, err);
}

/* Once, before anybody else has the sandbox: information may be asked for by several threads.
 */
static csn_status jail_started(csn_runtime *k, csn_error **err)
{
    csn_status st = csn_jail_started(k, err);

    if (st == CSN_OK)
        st = csn_protected_started(k, err);
    if (st < 0)
        return st;
    if (!k->kind->judged)
        return CSN_OK;
    st = csn_landlock_only_note(k, err);
    return st < 0 ? st : csn_landlock_only_layers(k, err);
}

static void jail_ended(csn_runtime *k)
{
    csn_protected_final_scan(k);
    csn_jail_net_ended(k);
    csn_jail_ended(k);
    csn_landlock_only_ended(k);
}

/* The second rung: see landlock_only.c. */
static const csn_runtime_kind weaker = {.name = "jail",
                                        .eager = true,
                                        .judged = true,
                                        .begin = jail_begin,
                                        .birth = csn_jail_spawn_opts,
                                        .prepare = jail_prepare,
                                        .arm = csn_jail_fill_spec,
                                        .started = jail_started,
                                        .refused = csn_jail_spawn_failed,
                                        .lend = csn_jail_chown_pipe,
                                        .mark = csn_jail_mark,
                                        .judge = csn_jail_judge,
                                        .veto = csn_protected_check,
                                        .ended = jail_ended,
                                        .release = jail_release};

static const csn_runtime_kind *instead(csn_runtime *k, const csn_error *because,
                                       char **ret_because)
{
    return csn_landlock_only_instead(k, because, &weaker, ret_because);
}

static const csn_runtime_kind kind = {.name = "jail",
                                      .instead = instead,
                                      .eager = true,
                                      .rooted = true,
                                      .ahead = true,
                                      .begin = jail_begin,
                                      .birth = csn_jail_spawn_opts,
                                      .prepare = jail_prepare,
                                      .arm = csn_jail_fill_spec,
                                      .started = jail_started,
                                      .refused = csn_jail_spawn_failed,
                                      .lend = csn_jail_chown_pipe,
                                      .mark = csn_jail_mark,
                                      .judge = csn_jail_judge,
                                      .veto = csn_protected_check,
                                      .ended = jail_ended,
                                      .release = jail_release};

static csn_status jail_open(const csn_config *config, const char *id, void *register_data,
                            void **ret_state, csn_error **err)
{
    csn_status st = refuse_unfit(config, err);

    (void)register_data;
    return st < 0 ? st : csn_runtime_open(&kind, config, id, ret_state, err);
}

static csn_status jail_connect(const csn_config *config, const char *id, void *register_data,
                               void **ret_state, csn_error **err)
{
    (void)register_data;
    return csn_runtime_connect(&kind, config, id, ret_state, err);
}

static csn_status jail_force_destroy(const csn_config *config, const char *id,
                                     void *register_data, csn_error **err)
{
    (void)register_data;
    return csn_runtime_force_destroy(&kind, config, id, err);
}

static csn_status jail_info(void *state, csn_info_result *ret, csn_error **err)
{
    const csn_jail *j = ((csn_runtime *)state)->own;

    ret->layers = csn_jail_net_layers(state);
    ret->layer_count = j->layer_count;
    return csn_runtime_info(state, ret, err);
}

static const csn_process_ops processes = {CSN_RUNTIME_PROCESS_OPS, .start = csn_protected_start,
                                          .rescan = csn_protected_rescan};

static const csn_network_ops network = {.size = sizeof(network),
                                        .set_rules = csn_jail_network_set,
                                        .events = csn_jail_network_events};

static const csn_backend_ops ops = {
    .size = sizeof(ops),
    .caps = CSN_CAP_CONFIG | CSN_CAP_SESSION | CSN_CAP_HOST | CSN_CAP_USAGE | CSN_CAP_OWNED,
    .name = "jail",
    .isolation = "kernel",
    .exec = csn_protected_exec,
    .files = &csn_jail_file_ops,
    .processes = &processes,
    .network = &network,
    .check = jail_check,
    .open = jail_open,
    .connect = jail_connect,
    .await_ready = csn_jail_ready,
    .force_destroy = jail_force_destroy,
    CSN_RUNTIME_OPS,
    .info = jail_info,
    .explain = csn_protected_explain,
    .diagnose = csn_jail_diagnose,
};

const csn_backend_ops *csn_jail_backend(void)
{
    return &ops;
}
