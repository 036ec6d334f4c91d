/* jail_open.c: opens a jail, connects to a detached one, and ends it.
 *
 * open_steps reads top to bottom: plan, spawn the keeper, send its orders; csn_jail_ready
 * awaits READY and attaches. Connecting attaches from the record that was written at open and
 * plans nothing.
 *
 * Invariant: a failed open leaves no process and no directory. */
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backend/jail/cover.h"
#include "backend/jail/jail.h"
#include "base/error.h"
#include "base/strv.h"
#include "os/beneath.h"
#include "runtime/cow.h"
#include "runtime/link.h"

#define NAMESPACES                                                                             \
    (CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP)

/* ---- the handle ---- */

static void jail_free(csn_runtime *rt)
{
    csn_jail *j = rt->jail;

    if (j) {
        csn_jail_sweeper_release(&j->sweeper);
        csn_protected_release(j->protected);
        if (j->template_lock >= 0)
            close(j->template_lock);
        csn_jail_net_release(j);
        csn_cover_caches_save(rt);
        csn_covers_release(j);
        free(j->mounts);
        csn_arena_free(j->arena);
        free(j);
    }
    csn_runtime_free(rt);
}

/* weaker: why the host refuses a stronger level, or NULL. */
static csn_runtime *jail_new(const csn_config *config, const char *id,
                             csn_confinement_level level, const char *weaker)
{
    csn_runtime *rt = csn_runtime_new("jail", config, id);
    csn_jail *j = rt ? calloc(1, sizeof(*j)) : NULL;

    if (!j) {
        csn_runtime_free(rt);
        return NULL;
    }
    rt->jail = j;
    rt->level = level;
    rt->check_change = csn_protected_check;
    rt->check_content = csn_protected_check_content;
    rt->wants_content = csn_protected_wants_content;
    rt->name_refused = csn_jail_net_name_refused;
    rt->memory_each = 0; /* limits.c enforces the memory limit */
    j->nested = (config->flags & CSN_OPEN_NESTED) != 0;
    csn_jail_sweeper_init(&j->sweeper);
    j->root = geteuid() == 0;
    j->idmapped = j->root && level == CSN_LEVEL_NAMESPACES && !weaker;
    j->template_lock = -1;
    j->arena = csn_arena_new();
    j->mounts = calloc(CSN_MOUNTS_MAX, sizeof(*j->mounts));
    j->weaker = j->arena ? csn_arena_strdup(j->arena, weaker) : NULL;
    if (!j->mounts || (weaker && !j->weaker) || !j->arena) {
        jail_free(rt);
        return NULL;
    }
    return rt;
}

/* Removes what remains after the keeper has ended. */
static void remove_rest(csn_runtime *rt)
{
    csn_protected_final_scan(rt, rt->jail->end_denials);
    csn_jail_net_ended(rt);
    csn_jail_limits_ended(rt);
    csn_landlock_only_ended(rt);
    csn_cow_ended(rt);
    csn_runtime_remove_dir(rt);
}

csn_status csn_jail_destroy(void *state, csn_error **err)
{
    csn_runtime *rt = state;

    if (rt->ended)
        return CSN_OK;
    if (!csn_runtime_end_keeper(rt))
        return csn_runtime_not_ended(rt, err);
    rt->ended = true;
    remove_rest(rt);
    return CSN_OK;
}

void csn_jail_close(void *state)
{
    csn_runtime *rt = state;

    if (!rt)
        return;
    if (!rt->detached)
        (void)csn_jail_destroy(rt, NULL);
    jail_free(rt);
}

/* ---- plan and spawn ---- */

static const csn_spawn_namespaces *namespaces_of(csn_runtime *rt)
{
    csn_jail *j = rt->jail;

    j->namespaces =
        (csn_spawn_namespaces){.namespaces = rt->level == CSN_LEVEL_NAMESPACES ? NAMESPACES : 0,
                               .become = j->root,
                               .keep_caps = j->disk_uid != 0,
                               .uid = j->host_uid,
                               .gid = j->host_gid,
                               .uid_map = j->uid_map,
                               .gid_map = j->gid_map};
    return &j->namespaces;
}

/* Frees unused entries, since one process may hold thousands of sandboxes. */
static void trim_mounts(csn_jail *j)
{
    csn_mount *fitting = realloc(j->mounts, (j->mount_count + 1) * sizeof(*fitting));

    if (fitting)
        j->mounts = fitting;
}

static csn_status plan(csn_runtime *rt, csn_error **err)
{
    csn_status st = csn_jail_net_plan(rt, err); /* first: resolv.conf depends on it */

    if (st == CSN_OK)
        st = csn_jail_plan(rt, err);
    trim_mounts(rt->jail);
    if (st == CSN_OK)
        st = csn_jail_sweeper_begin(rt, err);
    return st < 0 ? st : csn_runtime_environ_new(rt, &rt->environ_base, err);
}

/* The keeper's program loads while this process plans. If the start fails, its error is
 * reported rather than one of the plan. */
static csn_status spawn_and_plan(csn_runtime *rt, csn_error **err)
{
    enum csn_spawn_stage stage = CSN_SPAWN_AT_CLONE;
    csn_error *why = NULL;
    csn_status st = csn_runtime_spawn_begin(rt, namespaces_of(rt), err);

    if (st < 0)
        return st;
    st = plan(rt, &why);
    int rc = csn_runtime_spawn_finish(rt, &stage);
    if (rc == 0 && err)
        *err = CSN_STEAL(why);
    csn_error_free(why);
    return rc < 0 ? csn_jail_spawn_failed(rt, stage, -rc, err) : st;
}

/* ---- attach ---- */

/* Prepares the handle for file calls and commands. The keeper is already confined. */
static csn_status attach(csn_runtime *rt, csn_error **err)
{
    csn_jail *j = rt->jail;
    const csn_jail_kernel told = {.landlock_abi = j->ready.landlock_abi,
                                  .nested_limited = j->ready.nesting_errnum == 0,
                                  .nested = j->nested,
                                  .cow = j->cow != NULL,
                                  .cow_copy = j->cow_copy};
    csn_status st = csn_jail_environ(rt, err);

    rt->file_uid = j->host_uid;
    rt->file_gid = j->host_gid;
    rt->chown_pipes = j->other_user;
    j->layer_count = csn_jail_layers(&told, j->limits.text, j->layers);
    if (st == CSN_OK && rt->level == CSN_LEVEL_LANDLOCK_ONLY)
        st = csn_landlock_only_layers(rt, err);
    else if (st == CSN_OK && j->weaker)
        st = csn_weaker_user_layers(rt, err);
    if (st < 0)
        return st;
    rt->root.path = strdup("/");
    if (!rt->root.path)
        return csn_fail(err, CSN_NOMEM, "root of the sandbox");
    rt->base.fd =
        csn_beneath_open(rt->root.fd, rt->base.path, O_PATH | O_DIRECTORY, CSN_BENEATH_ROOTED);
    if (rt->base.fd < 0)
        return csn_link_check_alive(rt, csn_fail_errno(err, -rt->base.fd, "workspace"), err);
    return csn_runtime_open_commit_lock(rt, err);
}

csn_status csn_jail_ready(void *state, csn_error **err)
{
    csn_runtime *rt = state;
    csn_jail *j = rt->jail;

    if (!j->pending)
        return CSN_OK;
    j->pending = false;
    csn_status st = csn_jail_await_ready(rt, err);
    if (st == CSN_OK && j->as_root) /* READY has told what limits processes */
        st = csn_jail_limits_describe(rt, err);
    if (st == CSN_OK)
        st = csn_jail_net_set_up(rt, err);
    if (st == CSN_OK)
        st = attach(rt, err);
    if (st == CSN_OK && rt->detached)
        st = csn_protected_share(rt, err);
    if (st == CSN_OK && rt->detached) /* the keeper must listen when open returns */
        st = csn_link_check(rt, err);
    return st;
}

/* The core does other work while the keeper confines itself, then calls csn_jail_ready. A
 * detached jail, and one that may fall back to landlock_only, awaits READY here. */
static csn_status open_steps(csn_runtime *rt, csn_error **err)
{
    bool landlock_only = rt->level == CSN_LEVEL_LANDLOCK_ONLY;
    csn_status st = csn_jail_find_shares(rt, err);

    if (st == CSN_OK)
        st = csn_jail_cow_recover(rt, err);
    /* Start the sweeper before the directories that it removes are created. */
    if (st == CSN_OK && (rt->detached || landlock_only || rt->jail->shares->v[0].cow))
        st = csn_jail_sweeper_begin(rt, err);
    if (st == CSN_OK && landlock_only)
        st = csn_jail_sweeper_ready(rt, err);
    if (st == CSN_OK)
        st = csn_jail_cow_create(rt, err);
    if (st == CSN_OK)
        st = spawn_and_plan(rt, err);
    if (st == CSN_OK)
        st = csn_jail_send_orders(rt, err);
    if (st == CSN_OK)
        st = csn_jail_send_resources(rt, err);
    if (st == CSN_OK)
        st = csn_jail_limits_describe(rt, err);
    if (st == CSN_OK)
        st = csn_jail_net_start(rt, err);
    rt->jail->pending = st == CSN_OK;
    if (rt->detached || (rt->config->flags & CSN_OPEN_ALLOW_WEAKER) != 0)
        return st < 0 ? st : csn_jail_ready(rt, err);
    return st;
}

/* What is mounted over files of root protects them only if no command can mount as well. */
static csn_status refuse_nested(const csn_error *why, csn_error **err)
{
    csn_status st =
        csn_fail(err, CSN_UNAVAILABLE, "nested: needs a full jail: %s", csn_error_message(why));

    return csn_error_advise(st, err, "caisson doctor shows what this host needs for it");
}

/* *refused: in, why the level above was refused, or NULL; out, the error if this one is refused
 * as well, and the host may offer a weaker one. */
static csn_status open_at(csn_confinement_level level, bool copy, const csn_config *config,
                          const char *id, csn_error **refused, void **ret_state,
                          csn_error **err)
{
    csn_runtime *rt =
        jail_new(config, id, level, *refused ? csn_error_message(*refused) : NULL);
    csn_error *why = NULL;

    if (!rt)
        return csn_fail(err, CSN_NOMEM, "open jail sandbox");
    rt->jail->cow_copy = copy;
    csn_status st = open_steps(rt, &why);
    /* A copy-on-write workspace whose overlay the kernel refuses is copied. That of a fork is
     * not refused, and the changes that it starts with could not be copied. */
    if (st == CSN_OK && rt->jail->cow && !copy && !rt->jail->cow_copy && !rt->cow->like_source)
        st = csn_jail_ready(rt, &why);
    bool again = st < 0 && rt->jail->cow_refused && !copy;
    if (st == CSN_OK) {
        csn_error_free(CSN_STEAL(*refused));
        *ret_state = rt;
        return CSN_OK;
    }
    (void)csn_runtime_end_keeper(rt);
    if (again) {
        csn_error_free(why);
        remove_rest(rt);
        jail_free(rt);
        return open_at(level, true, config, id, refused, ret_state, err);
    }
    csn_error_free(CSN_STEAL(*refused));
    if (rt->jail->refused && rt->jail->nested)
        st = refuse_nested(why, err);
    else if (rt->jail->refused && (config->flags & CSN_OPEN_ALLOW_WEAKER))
        *refused = CSN_STEAL(why);
    else if (err)
        *err = CSN_STEAL(why);
    csn_error_free(why);
    remove_rest(rt);
    jail_free(rt);
    return st;
}

/* With CSN_OPEN_ALLOW_WEAKER a level that the host refuses is followed by the next:
 *   namespaces; for a root caller with id-mapped mounts and a user that only this sandbox has
 *   root callers: namespaces, without id-mapped mounts (weaker_user.c)
 *   no namespaces (landlock_only.c) */
csn_status csn_jail_open(const csn_config *config, const char *id, void **ret_state,
                         csn_error **err)
{
    csn_error *refused = NULL;
    csn_status st = open_at(CSN_LEVEL_NAMESPACES, false, config, id, &refused, ret_state, err);

    if (refused && geteuid() == 0)
        st = open_at(CSN_LEVEL_NAMESPACES, false, config, id, &refused, ret_state, err);
    if (refused)
        st = open_at(CSN_LEVEL_LANDLOCK_ONLY, false, config, id, &refused, ret_state, err);
    if (refused && err)
        *err = CSN_STEAL(refused);
    csn_error_free(refused);
    return st;
}

/* ---- connecting ---- */

static csn_status connect_steps(csn_runtime *rt, csn_error **err)
{
    csn_jail *j = rt->jail;
    csn_status st = csn_runtime_find(rt, err);

    if (st == CSN_OK)
        st = csn_runtime_reach_keeper(rt, err);
    if (st == CSN_OK)
        st = csn_jail_record_load(rt, err);
    if (st == CSN_OK)
        st = csn_jail_cow_find(rt, err);
    if (st == CSN_OK)
        st = csn_jail_ask_root(rt, err);
    if (st == CSN_GONE)
        csn_runtime_bury(rt);
    if (st < 0)
        return st;
    (void)csn_jail_cow_recover(rt,
                               NULL); /* a sandbox that runs can be used and destroyed anyway */
    csn_protected_reopen(rt);
    j->host_uid = rt->keeper_uid;
    j->host_gid = rt->keeper_gid;
    j->idmapped = j->root && rt->level == CSN_LEVEL_NAMESPACES && !j->weaker;
    csn_weaker_user_classify(j);
    st = csn_jail_limits_find(rt, err);
    if (st == CSN_OK)
        st = csn_jail_net_find(rt, err);
    if (st == CSN_OK)
        st = csn_runtime_environ_new(rt, &rt->environ_base, err);
    if (st == CSN_OK)
        st = attach(rt, err);
    if (st == CSN_OK)
        csn_cow_finish(rt);
    return st;
}

csn_status csn_jail_connect(const csn_config *config, const char *id, void **ret_state,
                            csn_error **err)
{
    csn_runtime *rt = jail_new(config, id, CSN_LEVEL_NAMESPACES, NULL);

    if (!rt)
        return csn_fail(err, CSN_NOMEM, "connect to jail sandbox");
    rt->connected = true;
    csn_status st = connect_steps(rt, err);
    if (st < 0) {
        jail_free(rt);
        return st;
    }
    *ret_state = rt;
    return CSN_OK;
}

csn_status csn_jail_commit(void *state, csn_error **err)
{
    csn_runtime *rt = state;
    csn_status st = rt->detached ? csn_jail_record_save(rt, err) : CSN_OK;

    if (st == CSN_OK && rt->detached)
        st = csn_cow_save(rt, err);
    return st < 0 ? st : csn_runtime_commit(rt, err);
}
