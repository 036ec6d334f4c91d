/* sandbox.c: opens, connects, closes and destroys sandboxes.
 *
 * A sandbox is a handle of this process, a state of its backend, and, when it is detached, a
 * record kept by core/state. close ends the handle; destroy ends the sandbox. Both first make
 * stop_fd readable, which every running command polls, and then wait until no call is left, so
 * that a backend's close never runs during another call. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/limits.h"
#include "base/options.h"
#include "base/path.h"
#include "base/strv.h"
#include "core/agent.h"
#include "core/api_network.h"
#include "core/config.h"
#include "core/exec_probe.h"
#include "core/internal.h"
#include "core/open.h"
#include "core/rule_info.h"
#include "core/state.h"
#include "core/workspace.h"

static void sandbox_free(csn_sandbox *sb)
{
    if (!sb)
        return;
    csn_audit_close(sb->audit);
    csn_policy_free(sb->policy);
    csn_config_free(sb->config);
    csn_config_free(sb->current);
    csn_config_free(sb->expanded);
    if (sb->stop_fd >= 0)
        close(sb->stop_fd);
    csn_strv_free(sb->env);
    free(sb->id);
    free(sb->forked_from);
    free(sb->workdir);
    free(sb->home);
    free(sb->open_why);
    pthread_cond_destroy(&sb->idle);
    pthread_mutex_destroy(&sb->lock);
    free(sb);
}
CSN_DEFINE_CLEANUP(csn_sandbox, sandbox_free)

/* "<backend>-<milliseconds>-<base36>": the time makes ids sortable, the random part unique. */
static char *make_id(const char *backend, int64_t now_ms)
{
    static const char digits[] = "0123456789abcdefghijklmnopqrstuvwxyz";
    unsigned char raw[CSN_ID_RANDOM];
    char tail[CSN_ID_RANDOM + 1];
    char *id = NULL;

    if (getrandom(raw, sizeof(raw), 0) != (ssize_t)sizeof(raw))
        return NULL;
    for (size_t i = 0; i < sizeof(raw); i++)
        tail[i] = digits[raw[i] % 36];
    tail[CSN_ID_RANDOM] = '\0';
    return asprintf(&id, "%s-%lld-%s", backend, (long long)now_ms, tail) < 0 ? NULL : id;
}

/* Adds the hint that names the backends which honour the option: "jail, local and docker
 * do". */
static csn_status advise_backends(csn_status st, uint64_t option, csn_error **err)
{
    const char *names[CSN_BUILT_IN_MAX];
    size_t count = csn_registry_honouring(option, names);
    char list[128] = "";
    size_t n = 0;

    for (size_t i = 0; i < count && n < sizeof(list); i++) {
        const char *separator = i == 0 ? "" : i + 1 < count ? ", " : " and ";
        n += (size_t)snprintf(list + n, sizeof(list) - n, "%s%s", separator, names[i]);
    }
    return count == 0 ? st
                      : csn_error_advise(st, err, "%s %s", list, count == 1 ? "does" : "do");
}

/* Refuses the first option that is set and that the backend does not honour. */
static csn_status check_options(const csn_backend_ops *ops, const csn_config *c,
                                csn_error **err)
{
    uint64_t honoured = csn_registry_options(ops);

    for (const csn_option *o = csn_options; o->name; o++) {
        if ((o->bit & ~honoured) == 0 || !csn_option_is_set(o, c))
            continue;
        csn_status st =
            csn_fail(err, CSN_UNSUPPORTED, "%s: backend '%s' does not support this option",
                     o->name, ops->name);
        return advise_backends(st, o->bit, err);
    }
    return csn_rule_info_check(ops, c, err);
}

/* Stores the config's variables as NAME=value in sb->env, for backends without CSN_CAP_ENV. */
static csn_status expand_env(csn_sandbox *sb, csn_error **err)
{
    const char *const *env = sb->config->env;

    for (size_t i = 0; env && env[i] && !(sb->ops->caps & CSN_CAP_ENV); i++) {
        const char *value = strchr(env[i], '=') ? "" : getenv(env[i]);
        csn_autofree char *pair = NULL;
        if (!value)
            continue;
        bool whole = strchr(env[i], '=') != NULL;
        if (asprintf(&pair, whole ? "%s%s" : "%s=%s", env[i], value) < 0) {
            pair = NULL;
            return csn_fail(err, CSN_NOMEM, "environment");
        }
        if (csn_strv_push(&sb->env, pair) != 0)
            return csn_fail(err, CSN_NOMEM, "environment");
    }
    return CSN_OK;
}

/* Makes a handle and checks the config, but starts nothing. Takes over `config`; `id` is NULL
 * for a new sandbox. */
static csn_status sandbox_new(csn_config *config, const char *id, csn_sandbox **ret,
                              csn_error **err)
{
    CSN_CLEANUP(sandbox_freep) csn_sandbox *sb = calloc(1, sizeof(*sb));

    if (!sb) {
        csn_config_free(config);
        return csn_fail(err, CSN_NOMEM, "open sandbox");
    }
    pthread_mutex_init(&sb->lock, NULL);
    pthread_cond_init(&sb->idle, NULL);
    sb->config = config;
    sb->created_ms = csn_wall_ms();
    sb->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (sb->stop_fd < 0)
        return csn_fail_errno(err, errno, "open sandbox");
    csn_status st = csn_registry_find(config->backend, &sb->ops, &sb->register_data, err);
    if (st == CSN_OK && !id) /* the config of an existing sandbox has passed both checks */
        st = check_options(sb->ops, config, err);
    if (st == CSN_OK && !id && sb->ops->check)
        st = sb->ops->check(config, err);
    if (st == CSN_OK)
        st = csn_workspace_mode(config, err);
    if (st == CSN_OK)
        st = csn_config_resolve(config, (sb->ops->caps & CSN_CAP_CWD) != 0, err);
    if (st < 0)
        return st;
    sb->id = id ? strdup(id) : make_id(sb->ops->name, sb->created_ms);
    if (!sb->id)
        return csn_fail(err, CSN_NOMEM, "open sandbox");
    st = expand_env(sb, err);
    if (st == CSN_OK)
        st = csn_policy_new(config, &sb->policy, err);
    if (st == CSN_OK)
        st = csn_audit_open(sb->id, config->audit, &sb->audit, err);
    if (st < 0)
        return st;
    *ret = CSN_STEAL(sb);
    return CSN_OK;
}

static csn_status take_over_dirs(csn_sandbox *sb, csn_error **err)
{
    csn_info_result info = {.size = sizeof(info)};
    csn_fs fs = {.ops = sb->ops, .state = sb->state};
    csn_autofree char *first = NULL, *home = NULL;
    csn_status st;

    if (sb->ops->info) {
        st = sb->ops->info(sb->state, &info, err);
        first = info.workdir ? strdup(info.workdir) : NULL;
        home = info.home ? strdup(info.home) : NULL;
        sb->layers = info.layers;
        sb->layer_count = info.layer_count;
    } else {
        st = csn_probe_dirs(&fs, &first, &home, err);
    }
    if (st < 0)
        return st;
    if ((info.home && !home) || (info.workdir && !first))
        return csn_fail(err, CSN_NOMEM, "open sandbox");
    if (!sb->home)
        sb->home = CSN_STEAL(home);
    if (sb->workdir)
        return CSN_OK; /* connected: the record has the working directory */
    if (!sb->config->workdir) {
        sb->workdir = CSN_STEAL(first);
        return CSN_OK;
    }
    return csn_path_join(first ? first : ".", sb->home, sb->config->workdir, &sb->workdir, err);
}

static csn_status backend_open(csn_sandbox *sb, bool connect, csn_error **err)
{
    csn_status st = csn_network_expand(sb, err);
    const csn_config *config = sb->expanded ? sb->expanded : sb->config;

    if (st < 0)
        return st;
    if (connect)
        return sb->ops->connect(config, sb->id, sb->register_data, &sb->state, err);
    if (sb->ops->open)
        return sb->ops->open(config, sb->id, sb->register_data, &sb->state, err);
    sb->state = sb->register_data;
    return CSN_OK;
}

void csn_id_backend(const char *id, char ret[CSN_NAME_BYTES_MAX + 1])
{
    size_t len = strcspn(id, "-");

    snprintf(ret, CSN_NAME_BYTES_MAX + 1, "%.*s", id[len] ? (int)len : 0, id);
}

/* Fails at open, not at the first command, when the working directory does not exist. */
static csn_status check_workdir(csn_sandbox *sb, csn_error **err)
{
    csn_file_stat fst;
    csn_fs fs = {.ops = sb->ops, .state = sb->state};

    if (!sb->config->workdir)
        return CSN_OK;
    csn_status st = csn_fs_stat(&fs, sb->workdir, 0, &fst, NULL, err);
    if (st == CSN_OK && (fst.mode & 0170000) != 0040000)
        st = csn_fail(err, CSN_WRONG_TYPE, "'%s' is not a directory", sb->config->workdir);
    return st < 0 ? csn_wrap(st, err, "working directory") : st;
}

static csn_status start(csn_sandbox *sb, bool connect, csn_error **err)
{
    /* The log first: what cannot be recorded does not start. A backend with await_ready starts
     * to work there or is confined until then, so the log is made while it starts. A sandbox
     * that is opened by its first call has its line already. */
    bool wait = !connect && sb->ops->await_ready != NULL, record = !connect && !sb->opening;
    csn_status st = record && !wait ? csn_audit_prepare(sb->audit, err) : CSN_OK;

    if (st == CSN_OK)
        st = backend_open(sb, connect, err);
    if (st < 0) {
        csn_audit_forget(sb->audit);
        return st;
    }
    if (sb->ops->set_stop_fd)
        sb->ops->set_stop_fd(sb->state, sb->stop_fd);
    if (wait && record)
        st = csn_audit_prepare(sb->audit, err);
    if (!connect)
        csn_registry_sweep(false);
    if (wait && st == CSN_OK)
        st = sb->ops->await_ready(sb->state, err);
    if (st == CSN_OK)
        st = take_over_dirs(sb, err);
    if (st == CSN_OK && !connect)
        st = check_workdir(sb, err);
    if (st < 0) {
        csn_audit_forget(sb->audit);
        if (!connect && sb->ops->destroy)
            (void)sb->ops->destroy(sb->state, NULL);
        if (sb->ops->close)
            sb->ops->close(sb->state);
        sb->state = NULL;
    }
    return st;
}

csn_status csn_sandbox_start(csn_sandbox *sb, csn_error **err)
{
    return start(sb, false, err);
}

static csn_status save_state(csn_sandbox *sb, bool create, csn_error **err)
{
    csn_state_meta m = {.id = sb->id,
                        .name = (char *)sb->config->name,
                        .created_ms = sb->created_ms,
                        .workdir = sb->workdir,
                        .forked_from = sb->forked_from,
                        .config = sb->current ? sb->current : sb->config};

    return create ? csn_state_create(&m, err) : csn_state_update(&m, err);
}

csn_status csn_sandbox_save(csn_sandbox *sb, csn_error **err)
{
    return save_state(sb, false, err);
}

/* Frees the name of a sandbox that has ended, even if its record is kept (other boot). */
static void free_dead_name(const char *name)
{
    csn_autofree char *holder = name ? csn_state_name_holder(name) : NULL;
    const char *state = NULL;

    if (!holder || csn_sandbox_state(holder, &state, NULL) < 0)
        return;
    if (strcmp(state, CSN_STATE_GONE) == 0)
        csn_state_remove(holder, name);
    else if (strcmp(state, "other boot") == 0)
        csn_state_release_name(name, holder);
}

csn_status csn_open(const csn_config *config, csn_sandbox **ret, csn_error **err)
{
    return csn_sandbox_open(config, NULL, ret, err);
}

csn_status csn_sandbox_open(const csn_config *config, const char *forked_from,
                            csn_sandbox **ret, csn_error **err)
{
    CSN_CLEANUP(sandbox_freep) csn_sandbox *sb = NULL;
    csn_config *own = NULL;

    if (!ret)
        return csn_fail(err, CSN_INVALID, "open: no place for the sandbox given");
    csn_status st = csn_config_take_new(config, &own, err);
    if (st == CSN_OK)
        st = sandbox_new(own, NULL, &sb, err);
    if (st == CSN_OK && forked_from && !(sb->forked_from = strdup(forked_from)))
        st = csn_fail(err, CSN_NOMEM, "open sandbox");
    if (st < 0)
        return csn_error_note(st, err, "open", NULL);
    bool detached = (sb->config->flags & CSN_OPEN_DETACHED) != 0;
    st = csn_workspace_create(sb->config, err);
    if (st == CSN_OK) /* the backend has accepted the option */
        st = csn_agent_make_home(sb->config, err);
    if (st < 0) {
        csn_workspace_undo(sb->config);
        return csn_error_note(st, err, "open", NULL);
    }
    if (!(sb->ops->caps & CSN_CAP_LAZY) || detached) {
        st = start(sb, false, err);
        sb->opened = st == CSN_OK;
    } else {
        st = csn_audit_prepare(sb->audit, err);
    }
    if (st == CSN_OK && detached) {
        free_dead_name(sb->config->name);
        st = save_state(sb, true, err);
    }
    if (st == CSN_OK) {
        csn_audit_event e = {.op = "open", .target = sb->config->workspace, .begun = true};
        st = csn_audit_append(sb->audit, &e, err);
        if (st == CSN_OK && detached && sb->ops->commit)
            st = sb->ops->commit(sb->state, err);
        if (st < 0 && detached)
            csn_state_remove(sb->id, sb->config->name);
    }
    if (st < 0) {
        if (sb->opened && sb->ops->destroy)
            (void)sb->ops->destroy(sb->state, NULL);
        if (sb->opened && sb->ops->close)
            sb->ops->close(sb->state);
        csn_audit_forget(sb->audit);
        csn_workspace_undo(sb->config);
        return csn_error_note(csn_workspace_advise(st, sb->config, err), err, "open", NULL);
    }
    csn_audit_retain(sb->audit, sb->config->audit_keep, sb->config->audit_max);
    *ret = CSN_STEAL(sb);
    return CSN_OK;
}

/* Makes an unopened handle for a recorded sandbox. If the record can be read, *ret_meta is set
 * even on failure. */
static csn_status from_record(const char *id, csn_state_meta **ret_meta, csn_sandbox **ret,
                              csn_error **err)
{
    csn_status st = csn_state_load(id, ret_meta, err);

    return st < 0 ? st : sandbox_new(CSN_STEAL((*ret_meta)->config), id, ret, err);
}

static csn_status connect_id(const char *id, csn_sandbox **ret, csn_error **err)
{
    CSN_CLEANUP(sandbox_freep) csn_sandbox *sb = NULL;
    csn_state_meta *m = NULL;
    csn_status st = from_record(id, &m, &sb, err);

    if (st == CSN_OK) {
        sb->created_ms = m->created_ms;
        sb->workdir = CSN_STEAL(m->workdir);
        sb->forked_from = CSN_STEAL(m->forked_from);
        st = start(sb, true, err);
        if (st == CSN_GONE)
            csn_state_remove(id, m->name);
    }
    csn_state_meta_free(m);
    if (st < 0)
        return st;
    sb->opened = true;
    *ret = CSN_STEAL(sb);
    return CSN_OK;
}

csn_status csn_connect(const char *id, csn_sandbox **ret, csn_error **err)
{
    csn_autofree char *real = NULL;

    if (!ret)
        return csn_fail(err, CSN_INVALID, "connect: no place for the sandbox given");
    csn_status st = csn_state_lookup(id, &real, err);
    if (st == CSN_OK)
        st = connect_id(real, ret, err);
    return st < 0 ? csn_error_note(st, err, "connect", NULL) : st;
}

/* Writes the line of destroy, which is done even if the log cannot record it: a sandbox must
 * always end. The log then has a gap. */
static void end_in_log(csn_audit *audit, bool for_good, bool begun, csn_status st)
{
    csn_audit_event e = {
        .op = for_good ? "destroy" : "reset", .status = st, .begun = begun, .done = for_good};

    (void)csn_audit_append(audit, &e, NULL);
}

/* Destroys a sandbox that cannot be connected to: its keeper does not answer or has another
 * protocol version, or its record cannot be understood. Needs nothing but the id. */
static csn_status force_destroy(const char *id, csn_error **err)
{
    const csn_config none = {.size = sizeof(none)};
    const csn_backend_ops *ops = NULL;
    char backend[CSN_NAME_BYTES_MAX + 1];
    csn_state_meta *m = NULL;
    csn_audit *audit = NULL;
    void *data = NULL;

    csn_id_backend(id, backend);
    (void)csn_state_load(id, &m, NULL);
    (void)csn_audit_open(id, m ? m->config->audit : NULL, &audit, NULL);
    csn_status st = csn_registry_find(m ? m->config->backend : backend, &ops, &data, err);
    bool begun = st == CSN_OK && csn_audit_begin(audit, NULL) == CSN_OK;
    if (st == CSN_OK)
        st = ops->force_destroy
                 ? ops->force_destroy(m ? m->config : &none, id, data, err)
                 : csn_fail(err, CSN_UNAVAILABLE, "sandbox '%s' is not answering", id);
    if (st == CSN_OK || st == CSN_GONE)
        csn_state_remove(id, m ? m->name : NULL);
    csn_state_meta_free(m);
    end_in_log(audit, true, begun, st);
    csn_audit_close(audit);
    return st;
}

/* Has the backend report what it finds while it ends the sandbox. */
static void report_end(csn_sandbox *sb)
{
    if (sb->opened && sb->end.tell && sb->ops->report_end)
        sb->ops->report_end(sb->state, &sb->end);
}

void csn_on_denial(csn_sandbox *sb, csn_denial_fn fn, void *ctx)
{
    if (!sb)
        return;
    pthread_mutex_lock(&sb->lock);
    sb->end = (csn_deny_sink){fn, ctx};
    pthread_mutex_unlock(&sb->lock);
}

csn_status csn_destroy_id(const char *id, csn_error **err)
{
    return csn_destroy_id_report(id, NULL, NULL, err);
}

csn_status csn_destroy_id_report(const char *id, csn_denial_fn fn, void *ctx, csn_error **err)
{
    csn_autofree char *real = NULL;
    csn_sandbox *sb = NULL;
    csn_error *why = NULL;

    csn_status st = csn_state_lookup(id, &real, &why);
    if (st == CSN_NOT_FOUND && csn_id_valid(id))
        st = CSN_GONE; /* a sandbox that has ended leaves no record */
    if (st == CSN_OK)
        st = connect_id(real, &sb, &why);
    if (st == CSN_OK) {
        csn_on_denial(sb, fn, ctx);
        st = csn_destroy(sb, &why);
    }
    csn_close(sb);
    if (!sb && real && st != CSN_GONE && st != CSN_NOMEM) {
        csn_error_free(CSN_STEAL(why));
        st = force_destroy(real, &why);
    }
    if (st == CSN_OK || st == CSN_GONE) {
        csn_error_free(why);
        return CSN_OK;
    }
    st = csn_error_note(st, &why, "destroy", NULL);
    if (err)
        *err = why;
    else
        csn_error_free(why);
    return st;
}

/* Stops the running calls and waits for them. Called with the lock held, after new calls are
 * refused. */
static void stop_calls(csn_sandbox *sb)
{
    uint64_t one = 1;

    (void)!write(sb->stop_fd, &one, sizeof(one));
    while (sb->running > 0 || sb->opening)
        pthread_cond_wait(&sb->idle, &sb->lock);
}

void csn_close(csn_sandbox *sb)
{
    if (!sb)
        return;
    pthread_mutex_lock(&sb->lock);
    sb->closing = true;
    stop_calls(sb);
    pthread_mutex_unlock(&sb->lock);
    (void)csn_network_log(sb, NULL);
    if ((sb->config->flags & CSN_OPEN_DETACHED) == 0)
        report_end(sb);
    if (sb->opened && sb->ops->close)
        sb->ops->close(sb->state);
    sandbox_free(sb);
}

/* Ends the sandbox; `opening` is set meanwhile, so that no other thread does the same. */
static csn_status end_backend(csn_sandbox *sb, bool for_good, csn_error **err)
{
    csn_status st = CSN_OK;

    (void)csn_network_log(sb, NULL);
    bool begun = csn_audit_begin(sb->audit, NULL) == CSN_OK;
    report_end(sb);
    if (sb->opened && sb->ops->destroy)
        st = sb->ops->destroy(sb->state, err);
    if ((sb->config->flags & CSN_OPEN_DETACHED) && st == CSN_OK)
        csn_state_remove(sb->id, sb->config->name);
    end_in_log(sb->audit, for_good, begun, st);
    return st;
}

csn_status csn_destroy(csn_sandbox *sb, csn_error **err)
{
    if (!sb)
        return csn_fail(err, CSN_INVALID, "destroy: no sandbox given");
    pthread_mutex_lock(&sb->lock);
    bool first = !sb->gone;
    sb->gone = true;
    if (first) {
        stop_calls(sb);
        sb->opening = true;
    }
    pthread_mutex_unlock(&sb->lock);
    if (!first)
        return CSN_OK;
    csn_status st = end_backend(sb, true, err);
    pthread_mutex_lock(&sb->lock);
    sb->gone = st == CSN_OK; /* else the next call tries again */
    sb->opening = false;
    pthread_cond_broadcast(&sb->idle);
    pthread_mutex_unlock(&sb->lock);
    return st < 0 ? csn_error_note(st, err, "destroy", NULL) : st;
}

/* With the lock held: the handle is as csn_open returned it. */
static void forget_state(csn_sandbox *sb)
{
    if (sb->opened && sb->ops->close)
        sb->ops->close(sb->state);
    csn_config_free(sb->expanded);
    csn_config_free(sb->current);
    free(sb->workdir);
    free(sb->home);
    sb->expanded = sb->current = NULL;
    sb->workdir = sb->home = NULL;
    sb->state = NULL;
    sb->layers = NULL;
    sb->layer_count = 0;
    sb->shell = NULL;
    sb->opened = sb->gone = false;
}

static csn_status check_reset(const csn_sandbox *sb, csn_error **err)
{
    if (!sb)
        return csn_fail(err, CSN_INVALID, "reset: no sandbox given");
    if (!(sb->ops->caps & CSN_CAP_LAZY))
        return csn_fail(err, CSN_UNSUPPORTED,
                        "backend '%s' does not open its sandboxes at the first call",
                        sb->ops->name);
    if (sb->config->flags & CSN_OPEN_DETACHED)
        return csn_fail(err, CSN_UNSUPPORTED,
                        "a detached sandbox is not reset: other processes use it by its id");
    return CSN_OK;
}

csn_status csn_reset(csn_sandbox *sb, csn_error **err)
{
    csn_status st = check_reset(sb, err);
    uint64_t fire = 1;

    if (st < 0)
        return csn_error_note(st, err, "reset", NULL);
    pthread_mutex_lock(&sb->lock);
    while (sb->opening && !sb->closing)
        pthread_cond_wait(&sb->idle, &sb->lock);
    if (sb->closing) {
        pthread_mutex_unlock(&sb->lock);
        return csn_error_note(
            csn_fail(err, CSN_CANCELLED, "sandbox %s is being closed", sb->id), err, "reset",
            NULL);
    }
    sb->opening = true; /* new calls wait */
    (void)!write(sb->stop_fd, &fire, sizeof(fire));
    while (sb->running > 0)
        pthread_cond_wait(&sb->idle, &sb->lock);
    pthread_mutex_unlock(&sb->lock);
    if (sb->opened && !sb->gone)
        st = end_backend(sb, false, err);
    pthread_mutex_lock(&sb->lock);
    if (st == CSN_OK)
        forget_state(sb);
    (void)!read(sb->stop_fd, &fire, sizeof(fire));
    sb->opening = false;
    pthread_cond_broadcast(&sb->idle);
    pthread_mutex_unlock(&sb->lock);
    return st < 0 ? csn_error_note(st, err, "reset", NULL) : st;
}

const char *csn_id(const csn_sandbox *sb)
{
    return sb ? sb->id : NULL;
}

csn_status csn_set_workdir(csn_sandbox *sb, const char *path, csn_error **err)
{
    csn_call c;
    csn_file_stat fst;
    const char *joined = NULL;
    csn_status st = csn_call_begin(&c, sb, "set_workdir", path, err);

    if (st < 0)
        return st;
    st = csn_call_path(&c, path, &joined, err);
    if (st == CSN_OK)
        st = csn_fs_stat(&c.fs, joined, 0, &fst, NULL, err);
    if (st == CSN_OK && (fst.mode & 0170000) != 0040000)
        st = csn_fail(err, CSN_WRONG_TYPE, "'%s' is not a directory", path);
    char *copy = st == CSN_OK ? strdup(joined) : NULL;
    if (st == CSN_OK && !copy)
        st = csn_fail(err, CSN_NOMEM, "set working directory");
    if (st == CSN_OK) {
        pthread_mutex_lock(&sb->lock);
        free(sb->workdir);
        sb->workdir = copy;
        if (sb->config->flags & CSN_OPEN_DETACHED)
            st = save_state(sb, false, err);
        pthread_mutex_unlock(&sb->lock);
    }
    return csn_call_end(&c, st, err);
}

csn_status csn_extend(csn_sandbox *sb, uint64_t ms, csn_error **err)
{
    csn_call c;
    csn_status st = csn_call_begin(&c, sb, "extend", NULL, err);

    if (st < 0)
        return st;
    if (ms == 0)
        st = csn_fail(err, CSN_INVALID, "extend: a lifetime of 0; use destroy to end it now");
    else if (!sb->ops->extend)
        st = csn_fail(err, CSN_UNSUPPORTED, "backend '%s' has no lifetime", sb->ops->name);
    else
        st = sb->ops->extend(sb->state, ms, err);
    return csn_call_end(&c, st, err);
}
