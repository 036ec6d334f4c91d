/* api_info.c: csn_info and csn_sandboxes: describe a sandbox, list the detached ones.
 *
 * A capability word means that a call works, natively or derived. The backend reports the
 * layers that it enforces. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/limits.h"
#include "base/options.h"
#include "base/strv.h"
#include "core/internal.h"
#include "core/layers.h"
#include "core/result.h"
#include "core/rule_info.h"
#include "core/state.h"

#define CAPABILITIES_MAX 48
#define PATH_OPTIONS     (CSN_OPTION_READ | CSN_OPTION_WRITE | CSN_OPTION_DENY | CSN_OPTION_RULES)
#define LIMIT_OPTIONS    (CSN_OPTION_MEMORY | CSN_OPTION_PIDS | CSN_OPTION_CPUS | CSN_OPTION_DISK)

int csn_layers_copy(csn_arena *a, const csn_layer *from, size_t count, const csn_layer **ret)
{
    csn_layer *to = csn_arena_array(a, count ? count : 1, sizeof(*to));

    if (!to)
        return ENOMEM;
    for (size_t i = 0; i < count; i++) {
        to[i] = (csn_layer){.name = csn_arena_strdup(a, from[i].name),
                            .status = csn_arena_strdup(a, from[i].status),
                            .detail = csn_arena_strdup(a, from[i].detail)};
        if (!to[i].name || !to[i].status || (from[i].detail && !to[i].detail))
            return ENOMEM;
    }
    *ret = to;
    return 0;
}

static bool has_all(uint64_t options, uint64_t wanted)
{
    return (options & wanted) == wanted;
}

static const char *const *capabilities(csn_arena *a, const csn_sandbox *sb)
{
    const csn_backend_ops *o = sb->ops;
    const bool cow = csn_sandbox_is_cow(sb);
    const char **words = csn_arena_array(a, CAPABILITIES_MAX, sizeof(*words));
    const csn_file_ops *files = csn_fs_files(&(csn_fs){.ops = o});
    const uint64_t options = csn_registry_options(o);
    size_t n = 0;
    const struct {
        const char *word;
        bool has;
    } table[] = {
        {"exec", true},
        {"files", true},
        {"files_native", files->read && files->write},
        {"beneath", (o->caps & CSN_CAP_BENEATH) != 0},
        {"watch", files->watch != NULL},
        {"background", o->processes != NULL},
        {"session", (o->caps & CSN_CAP_SESSION) != 0},
        {"sudo", (o->caps & CSN_CAP_SUDO) != 0},
        {"network_rules", o->network != NULL},
        {"network_per_call", o->network != NULL},
        {"path_rules", has_all(options, PATH_OPTIONS)},
        {"command_rules", true},
        {"detach", o->connect != NULL},
        {"extend", o->extend != NULL},
        {"shorten", o->extend && !(o->caps & CSN_CAP_LENGTHEN)},
        {"wait_port", o->processes && o->processes->wait_port},
        {"would_allow", files->check_path != NULL},
        {"lazy", (o->caps & CSN_CAP_LAZY) != 0},
        {"terminal", o->processes && o->processes->resize},
        {"signals", (o->caps & CSN_CAP_CODES) == 0},
        {"live", !(o->caps & CSN_CAP_STEPS)},
        {"usage", (o->caps & CSN_CAP_USAGE) != 0},
        {"ends_with_owner", (o->caps & CSN_CAP_OWNED) != 0},
        {"snapshot", cow || o->snapshots},
        {"rollback", cow || (o->snapshots && o->snapshots->rollback)},
        {"fork", cow || (o->snapshots && (o->caps & CSN_CAP_FORK))},
        {"diff", cow},
        {"pause", o->pause && o->resume},
        {"lifetime", (o->caps & CSN_CAP_EXPIRES) != 0},
        {"limits", has_all(options, LIMIT_OPTIONS)},
        {"mounts", (options & CSN_OPTION_WORKSPACES) && !(o->caps & CSN_CAP_CWD)},
    };

    for (size_t i = 0; words && i < sizeof(table) / sizeof(table[0]); i++)
        if (table[i].has)
            words[n++] = table[i].word;
    for (const csn_option *p = csn_options; words && p->name; p++)
        if (p->word && (options & p->bit) && n < CAPABILITIES_MAX - 1)
            words[n++] = p->word;
    return words;
}

static int copy_list(csn_arena *a, const char *const *from, const char *const **ret)
{
    size_t count = csn_strv_len(from);
    const char **to = csn_arena_array(a, count + 1, sizeof(*to));

    for (size_t i = 0; to && i < count; i++)
        if (!(to[i] = csn_arena_strdup(a, from[i])))
            return ENOMEM;
    *ret = from ? to : NULL;
    return to ? 0 : ENOMEM;
}

static csn_status fill_info(csn_sandbox *sb, csn_info_result *r, csn_error **err)
{
    csn_arena *a = csn_result_arena(r);
    csn_info_result from = {.size = sizeof(from)};

    pthread_mutex_lock(&sb->lock);
    bool live = sb->opened && !sb->gone;
    r->state = sb->gone ? "gone" : sb->opened ? "running" : "new";
    r->workdir = csn_arena_strdup(a, sb->workdir);
    r->home = csn_arena_strdup(a, sb->home);
    if (live)
        sb->running++; /* keeps the backend open during its info call */
    pthread_mutex_unlock(&sb->lock);

    csn_status st = CSN_OK;
    if (live && sb->ops->info)
        st = sb->ops->info(sb->state, &from, err);
    if (st == CSN_OK) {
        r->workspace =
            csn_arena_strdup(a, from.workspace ? from.workspace : sb->config->workspace);
        r->rg_path = csn_arena_strdup(a, from.rg_path);
        if (live && !from.rg_path && sb->ops->find_program) {
            csn_autofree char *rg = sb->ops->find_program(sb->state, "rg");
            r->rg_path = csn_arena_strdup(a, rg);
        }
        r->expires_ms = from.expires_ms;
        r->keeper_pid = from.keeper_pid;
        r->layer_count = from.layer_count;
        if (csn_layers_copy(a, from.layers, from.layer_count, &r->layers) != 0 ||
            copy_list(a, from.write_dirs, &r->write_dirs) != 0 ||
            copy_list(a, from.read_dirs, &r->read_dirs) != 0)
            st = csn_fail(err, CSN_NOMEM, "info");
    }
    if (st == CSN_OK && csn_rule_info_list(a, sb->ops, sb->config, &from, r) != 0)
        st = csn_fail(err, CSN_NOMEM, "info");
    if (live) {
        pthread_mutex_lock(&sb->lock);
        sb->running--;
        pthread_cond_broadcast(&sb->idle);
        pthread_mutex_unlock(&sb->lock);
    }
    return st;
}

csn_status csn_info(csn_sandbox *sb, csn_info_result **ret, csn_error **err)
{
    if (!sb || !ret)
        return csn_fail(err, CSN_INVALID, "info: no sandbox or no place for the result given");
    csn_info_result *r = csn_result_new(sizeof(*r));
    if (!r)
        return csn_fail(err, CSN_NOMEM, "info");
    csn_arena *a = csn_result_arena(r);
    r->size = sizeof(*r);
    r->detached = (sb->config->flags & CSN_OPEN_DETACHED) != 0;
    r->id = csn_arena_strdup(a, sb->id);
    r->name = csn_arena_strdup(a, sb->config->name);
    r->backend = csn_arena_strdup(a, sb->ops->name);
    r->isolation = csn_arena_strdup(a, sb->ops->isolation ? sb->ops->isolation : "custom");
    r->created_ms = sb->created_ms;
    r->capabilities = capabilities(a, sb);
    csn_status st = fill_info(sb, r, err);
    if (st == CSN_OK && (!r->id || !r->backend || !r->isolation || !r->capabilities))
        st = csn_fail(err, CSN_NOMEM, "info");
    if (st < 0) {
        csn_result_free(r);
        return csn_error_note(st, err, "info", NULL);
    }
    *ret = r;
    return CSN_OK;
}

void csn_info_free(csn_info_result *r)
{
    csn_result_free(r);
}

/* ---- the list ---- */

/* For backends that cannot be probed: tries to connect, which also removes the record of a
 * sandbox that is gone. One that the provider does not know may belong to another key. */
static const char *state_by_connecting(const char *id)
{
    csn_autofree char *real = NULL;
    csn_sandbox *sb = NULL;
    csn_error *err = NULL;
    csn_status st = csn_connect(id, &sb, &err);

    csn_error_free(err);
    csn_close(sb);
    if (st == CSN_NOT_FOUND && csn_state_lookup(id, &real, NULL) == CSN_OK)
        return CSN_STATE_UNKNOWN;
    return st == CSN_GONE || st == CSN_NOT_FOUND ? CSN_STATE_GONE : "running";
}

csn_status csn_sandbox_state(const char *id, const char **ret, csn_error **err)
{
    const csn_backend_ops *ops = NULL;
    char backend[CSN_NAME_BYTES_MAX + 1];
    void *data = NULL;

    csn_id_backend(id, backend);
    if (csn_registry_find(backend, &ops, &data, NULL) == CSN_OK && ops->probe)
        return ops->probe(id, data, ret, err);
    *ret = state_by_connecting(id);
    return CSN_OK;
}

/* A record that cannot be understood is shown too: its keeper may live. */
static csn_status fill_entry(csn_arena *a, csn_sandbox_entry *e, const char *id,
                             csn_error **err)
{
    char backend[CSN_NAME_BYTES_MAX + 1];
    csn_state_meta *m = NULL;
    csn_status st = csn_state_load(id, &m, err);

    if (st < 0 && st != CSN_INVALID && st != CSN_INTERNAL && st != CSN_NOT_FOUND)
        return st;
    if (st < 0 && err)
        csn_error_free(CSN_STEAL(*err));
    csn_id_backend(id, backend);
    *e = (csn_sandbox_entry){.id = csn_arena_strdup(a, id),
                             .name = m ? csn_arena_strdup(a, m->name) : NULL,
                             .backend = csn_arena_strdup(a, m ? m->config->backend : backend),
                             .state = "running",
                             .workspace = m ? csn_arena_strdup(a, m->config->workspace) : NULL,
                             .created_ms = m ? m->created_ms : 0,
                             .forked_from = m ? csn_arena_strdup(a, m->forked_from) : NULL};
    csn_state_meta_free(m);
    return e->id && e->backend ? CSN_OK : csn_fail(err, CSN_NOMEM, "list sandboxes");
}

static csn_status add_entry(csn_arena *a, csn_sandbox_entry *e, const char *id, bool *ret_added,
                            csn_error **err)
{
    const char *state = NULL;
    csn_status st = fill_entry(a, e, id, err);

    *ret_added = false;
    if (st == CSN_OK)
        st = csn_sandbox_state(id, &state, err);
    if (st < 0)
        return st;
    e->state = state;
    bool gone = strcmp(state, CSN_STATE_GONE) == 0;
    if (gone)
        csn_state_remove(id, e->name);
    /* Without metadata it is being created, or has lost them. */
    *ret_added = !gone && (e->created_ms != 0 || strcmp(state, "starting") != 0);
    return CSN_OK;
}

csn_status csn_sandboxes(csn_sandbox_list **ret, csn_error **err)
{
    char **ids = NULL;

    csn_registry_sweep(true);
    csn_state_sweep_names();
    csn_status st = csn_state_ids(&ids, err);
    if (st < 0)
        return st;
    size_t count = csn_strv_len((const char *const *)ids);
    csn_sandbox_list *l = csn_result_new(sizeof(*l));
    csn_sandbox_entry *items =
        l ? csn_arena_array(csn_result_arena(l), count + 1, sizeof(*items)) : NULL;
    if (!items)
        st = csn_fail(err, CSN_NOMEM, "list sandboxes");
    for (size_t i = 0; i < count && st == CSN_OK; i++) {
        bool added = false;
        st = add_entry(csn_result_arena(l), &items[l->count], ids[i], &added, err);
        l->count += added;
    }
    csn_strv_free(ids);
    if (st < 0) {
        csn_result_free(l);
        return st;
    }
    l->items = items;
    *ret = l;
    return CSN_OK;
}

void csn_sandbox_list_free(csn_sandbox_list *l)
{
    csn_result_free(l);
}

csn_status csn_forget(const char *id, csn_error **err)
{
    csn_autofree char *real = NULL;
    csn_state_meta *m = NULL;
    const char *state = NULL;

    csn_status st = csn_state_lookup(id, &real, err);
    if (st == CSN_OK)
        st = csn_sandbox_state(real, &state, err);
    if (st == CSN_OK && strcmp(state, CSN_STATE_UNKNOWN) != 0)
        st = csn_fail(err, CSN_CONFLICT, "sandbox '%s' is in the state '%s', not 'unknown'",
                      real, state);
    if (st < 0)
        return csn_error_note(st, err, "forget", NULL);
    (void)csn_state_load(real, &m, NULL);
    csn_state_remove(real, m ? m->name : NULL);
    csn_state_meta_free(m);
    return CSN_OK;
}
