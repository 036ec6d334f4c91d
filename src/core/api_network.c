/* api_network.c: csn_network and csn_network_set, and the audit of connections.
 *
 * Rules are replaced as a whole. Events come from the backend; names in them are untrusted and
 * never interpreted. Invariants: the record of a detached sandbox has its present rules; each
 * connection is in the audit log once, even if several processes use the sandbox. */
#include "core/api_network.h"

#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/strv.h"
#include "core/config.h"
#include "core/internal.h"
#include "core/open.h"
#include "core/packages.h"
#include "core/result.h"
#include "core/state.h"

#define EVENTS_MAX 8192u

/* ---- the audit log ---- */

typedef struct logging {
    csn_sandbox *sb;
    csn_status st;
    csn_error **err;
} logging;

/* Allowed DNS lookups are not logged: the connection is. */
static int log_event(void *ctx, const csn_net_event *e)
{
    logging *l = ctx;
    char target[512];
    bool denied = strcmp(e->verdict, "deny") == 0;
    const char *host = e->host ? e->host : e->address ? e->address : "?";

    if (strcmp(e->kind, "name") == 0 && !denied)
        return 0;
    snprintf(target, sizeof(target), e->port ? "%s:%llu" : "%s", host,
             (unsigned long long)e->port);
    const csn_audit_event line = {.op = "net",
                                  .target = target,
                                  .net = e,
                                  .rule = e->rule  ? e->rule
                                          : denied ? e->why
                                                   : NULL,
                                  .status = denied ? CSN_DENIED : CSN_OK,
                                  .bytes = e->up + e->down,
                                  .duration_ns = e->duration_ms * 1000000u,
                                  .done = true};
    csn_status st = csn_audit_append(l->sb->audit, &line, l->st == CSN_OK ? l->err : NULL);
    if (l->st == CSN_OK)
        l->st = st;
    return 0; /* the backend reports each connection once, so each is counted as a gap */
}

csn_status csn_network_log(csn_sandbox *sb, csn_error **err)
{
    logging l = {.sb = sb, .st = CSN_OK, .err = err};
    uint64_t lost = 0;
    char text[256];

    if (!sb->audit || !sb->opened || !sb->ops->network)
        return CSN_OK;
    csn_error *why = NULL;
    csn_status st = sb->ops->network->events(sb->state, NULL, log_event, &l, &lost, &why);
    /* A failed read and lost events get a line of their own. */
    if (st < 0)
        snprintf(text, sizeof(text), "%s", csn_error_message(why));
    else
        snprintf(text, sizeof(text), "%llu events were lost", (unsigned long long)lost);
    csn_error_free(why);
    if (l.st < 0 || (st == CSN_OK && lost == 0))
        return l.st;
    const csn_audit_event line = {.op = "net", .target = text, .status = st, .done = true};
    return csn_audit_append(sb->audit, &line, err);
}

/* ---- the rules ---- */

/* Merges allow rules and the rules of presets into one malloc'd list. */
static csn_status all_rules(const csn_config *c, const char *const *allow,
                            const char *const *packages, char ***ret, csn_error **err)
{
    CSN_CLEANUP(csn_strv_freep) char **v = NULL;
    int e = 0;

    for (size_t i = 0; allow && allow[i] && e == 0; i++)
        e = csn_strv_push(&v, allow[i]);
    if (e != 0)
        return csn_fail(err, CSN_NOMEM, "network rules");
    csn_status st = csn_packages_rules(c, packages, &v, err);
    if (st == CSN_OK)
        *ret = CSN_STEAL(v);
    return st;
}

csn_status csn_network_expand(csn_sandbox *sb, csn_error **err)
{
    CSN_CLEANUP(csn_strv_freep) char **v = NULL, **env = NULL;
    csn_config c = *sb->config;
    int e = 0;

    if (!sb->ops->network || !c.packages || !c.packages[0] || sb->expanded)
        return CSN_OK;
    csn_status st = all_rules(&c, c.net_allow, c.packages, &v, err);
    for (size_t i = 0; c.env && c.env[i] && e == 0; i++)
        e = csn_strv_push(&env, c.env[i]);
    if (st == CSN_OK && e != 0)
        st = csn_fail(err, CSN_NOMEM, "environment");
    if (st == CSN_OK)
        st = csn_packages_env(&c, c.packages, &env, err);
    if (st < 0)
        return st;
    c.net_allow = (const char *const *)v;
    c.packages = NULL;
    if (env)
        c.env = (const char *const *)env;
    return csn_config_take(&c, &sb->expanded, err);
}

/* Stores new rules in sb->current and, if detached, in the record. With the lock held. */
static csn_status note_rules(csn_sandbox *sb, const csn_net_opts *o, csn_error **err)
{
    csn_config c = *(sb->current ? sb->current : sb->config), *own = NULL;

    c.network = o->network;
    c.net_allow = o->net_allow;
    c.net_deny = o->net_deny;
    c.packages = o->packages;
    csn_status st = csn_config_take(&c, &own, err);
    if (st < 0)
        return st;
    csn_config_free(sb->current);
    sb->current = own;
    return sb->config->flags & CSN_OPEN_DETACHED ? csn_sandbox_save(sb, err) : CSN_OK;
}

static csn_status set_rules(csn_sandbox *sb, const csn_net_opts *o, csn_error **err)
{
    if (!sb->ops->network)
        return csn_fail(err, CSN_UNSUPPORTED, "backend '%s' has no network rules",
                        sb->ops->name);
    csn_config checked = {.network = o->network,
                          .net_allow = o->net_allow,
                          .net_deny = o->net_deny,
                          .packages = o->packages};
    csn_net_opts given = *o;
    CSN_CLEANUP(csn_strv_freep) char **v = NULL;
    csn_status st = csn_config_check_net(&checked, err);
    if (st == CSN_OK && o->packages && o->packages[0]) {
        st = all_rules(sb->config, o->net_allow, o->packages, &v, err);
        given.net_allow = (const char *const *)v;
        given.packages = NULL;
    }
    if (st == CSN_OK)
        st = csn_config_lends(sb->expanded ? sb->expanded : sb->config, given.net_allow, err);
    if (st == CSN_OK)
        st = sb->ops->network->set_rules(sb->state, &given, err);
    if (st < 0)
        return st;
    pthread_mutex_lock(&sb->lock);
    st = note_rules(sb, o, err);
    pthread_mutex_unlock(&sb->lock);
    return st;
}

/* For the audit log: "none, allow a.test b.test, deny c.test", truncated. */
static void describe(const csn_net_opts *o, char *ret, size_t size)
{
    const struct {
        const char *word;
        const char *const *list;
    } parts[] = {{"allow", o->net_allow}, {"deny", o->net_deny}, {"packages", o->packages}};
    int n = snprintf(ret, size, "%s", o->network ? o->network : "none");

    for (size_t p = 0; p < sizeof(parts) / sizeof(parts[0]); p++)
        for (size_t i = 0; parts[p].list && parts[p].list[i] && n >= 0 && (size_t)n < size; i++)
            n += snprintf(ret + n, size - (size_t)n, "%s%s %s", i ? "" : ", ",
                          i ? "" : parts[p].word, parts[p].list[i]);
}

csn_status csn_network_set(csn_sandbox *sb, const csn_net_opts *opts, csn_error **err)
{
    csn_net_opts o;
    csn_call c;
    csn_status st = csn_opts_take(opts, &o, sizeof(o), "network options", err);

    if (st == CSN_OK)
        st = csn_flags_check(o.flags, 0, "network", err);
    if (st < 0)
        return csn_error_note(st, err, "network_set", NULL);
    char text[1024];
    describe(&o, text, sizeof(text));
    st = csn_call_begin(&c, sb, "network_set", text, err);
    if (st < 0)
        return st;
    return csn_call_end(&c, set_rules(sb, &o, err), err);
}

/* ---- csn_network ---- */

typedef struct collecting {
    csn_arena *a;
    csn_net_event *list;
    uint32_t count, room;
    bool failed;
} collecting;

static const char *keep(collecting *c, const char *s)
{
    const char *copy = csn_arena_strdup(c->a, s);

    c->failed = c->failed || (s && !copy);
    return copy;
}

static int collect(void *ctx, const csn_net_event *e)
{
    collecting *c = ctx;

    if (c->count == c->room) {
        uint32_t more = c->room ? 2 * c->room : 64;
        csn_net_event *list = csn_arena_array(c->a, more, sizeof(*list));
        c->failed = !list || more > EVENTS_MAX;
        if (c->failed)
            return 1;
        if (c->count > 0)
            memcpy(list, c->list, c->count * sizeof(*list));
        c->list = list;
        c->room = more;
    }
    csn_net_event *to = &c->list[c->count++];
    *to = *e;
    to->kind = keep(c, e->kind);
    to->verdict = keep(c, e->verdict);
    to->protocol = keep(c, e->protocol);
    to->host = keep(c, e->host);
    to->address = keep(c, e->address);
    to->rule = keep(c, e->rule);
    to->hint = keep(c, e->hint);
    to->why = keep(c, e->why);
    return c->failed;
}

static const char *const *keep_list(collecting *c, const char *const *v)
{
    size_t n = csn_strv_len(v);
    const char **copy = csn_arena_array(c->a, n + 1, sizeof(*copy));

    if (!copy) {
        c->failed = true;
        return NULL;
    }
    for (size_t i = 0; i < n; i++)
        copy[i] = keep(c, v[i]);
    copy[n] = NULL;
    return copy;
}

/* Another process may have replaced the rules of a detached sandbox: read its record. */
static csn_status fill_rules(csn_sandbox *sb, collecting *c, csn_net_result *r, csn_error **err)
{
    csn_state_meta *m = NULL;
    bool detached = (sb->config->flags & CSN_OPEN_DETACHED) != 0;
    csn_status st = detached ? csn_state_load(sb->id, &m, err) : CSN_OK;

    if (st < 0)
        return st;
    pthread_mutex_lock(&sb->lock);
    const csn_config *from = m ? m->config : sb->current ? sb->current : sb->config;
    r->network = keep(c, from->network ? from->network : "none");
    r->net_allow = keep_list(c, from->net_allow);
    r->net_deny = keep_list(c, from->net_deny);
    r->packages = keep_list(c, from->packages);
    pthread_mutex_unlock(&sb->lock);
    csn_state_meta_free(m);
    return CSN_OK;
}

/* The net layer is "on" if there is only a loopback and no gateway: mode "none". */
static csn_status fill_mode(csn_sandbox *sb, collecting *c, csn_net_result *r, csn_error **err)
{
    csn_info_result info = {.size = sizeof(info)};
    csn_status st = sb->ops->info ? sb->ops->info(sb->state, &info, err) : CSN_OK;

    r->mode = "none";
    for (size_t i = 0; st == CSN_OK && i < info.layer_count; i++) {
        if (strcmp(info.layers[i].name, "net") != 0)
            continue;
        if (strcmp(info.layers[i].status, "on") != 0)
            r->mode = keep(c, info.layers[i].status);
        r->detail = keep(c, info.layers[i].detail);
    }
    return st;
}

static csn_status fill(csn_sandbox *sb, uint64_t since, csn_net_result *r, csn_error **err)
{
    collecting c = {.a = csn_result_arena(r)};

    if (!sb->ops->network)
        return csn_fail(err, CSN_UNSUPPORTED, "backend '%s' has no network rules",
                        sb->ops->name);
    r->size = sizeof(*r);
    r->next = since;
    csn_status st = fill_mode(sb, &c, r, err);
    if (st == CSN_OK)
        st = fill_rules(sb, &c, r, err);
    if (st == CSN_OK)
        st = sb->ops->network->events(sb->state, &r->next, collect, &c, &r->lost, err);
    if (st == CSN_OK && c.failed)
        st = csn_fail(err, CSN_NOMEM, "events of the network");
    r->events = c.list;
    r->event_count = c.count;
    return st;
}

csn_status csn_network(csn_sandbox *sb, uint64_t since, csn_net_result **ret, csn_error **err)
{
    csn_call c;

    if (!ret)
        return csn_error_note(csn_fail(err, CSN_INVALID, "network: no place for the result"),
                              err, "network", NULL);
    csn_status st = csn_call_begin(&c, sb, "network", NULL, err);
    if (st < 0)
        return st;
    c.quiet = true;
    csn_net_result *r = csn_result_new(sizeof(*r));
    st = r ? fill(sb, since, r, err) : csn_fail(err, CSN_NOMEM, "network");
    return csn_call_return(&c, st, r, ret, err);
}

void csn_network_free(csn_net_result *r)
{
    csn_result_free(r);
}
