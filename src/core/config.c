/* config.c: copies, checks and parses a csn_config.
 *
 * csn_open copies the caller's struct (csn_config_take), which may be older or newer than this
 * library. csn_config_parse reads JSON. Both use the table of base/options.h and validate().
 * All memory of a config is in one arena, whose address is stored behind the public struct.
 * csn_config_encode (config_encode.c) is the inverse of csn_config_parse. Messages name an
 * option by its JSON name and never show the value of an environment variable. */
#include "core/config.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/json_read.h"
#include "base/limits.h"
#include "base/options.h"
#include "base/path.h"
#include "base/strv.h"
#include "core/agent.h"
#include "core/internal.h"
#include "policy/rules.h"

#define OPEN_FLAGS                                                                             \
    (CSN_OPEN_DETACHED | CSN_OPEN_NOFOLLOW | CSN_OPEN_ALLOW_WEAKER | CSN_OPEN_NESTED |         \
     CSN_OPEN_CREATE | CSN_OPEN_COW | CSN_OPEN_UNDO | CSN_OPEN_RECORD)
#define PATH_OPS (CSN_OP_READ | CSN_OP_WRITE | CSN_OP_DELETE)
#define ALL_OPS  (CSN_OP_READ | CSN_OP_WRITE | CSN_OP_DELETE | CSN_OP_EXEC | CSN_OP_NET)

typedef struct owned {
    csn_config config; /* first, so that a csn_config * made here can be cast to owned * */
    csn_arena *arena;
} owned;

void csn_config_free(csn_config *c)
{
    if (c)
        csn_arena_free(((owned *)c)->arena);
}
CSN_DEFINE_CLEANUP(csn_config, csn_config_free)

/* The struct is allocated in its own arena, so freeing the arena frees everything. */
static csn_status owned_new(owned **ret, csn_error **err)
{
    CSN_CLEANUP(csn_arena_freep) csn_arena *a = csn_arena_new();
    owned *o = a ? csn_arena_alloc(a, sizeof(*o)) : NULL;

    if (!o)
        return csn_fail(err, CSN_NOMEM, "config");
    o->config.size = sizeof(o->config);
    o->arena = CSN_STEAL(a);
    *ret = o;
    return CSN_OK;
}

/* ---- checks ----------------------------------------------------------------------------- */

/* NAME or NAME=value, with a NAME that every shell accepts. */
static csn_status check_env(const char *entry, size_t i, csn_error **err)
{
    size_t len = strcspn(entry, "=");
    bool ok = len > 0 && !isdigit((unsigned char)entry[0]);

    for (size_t k = 0; k < len && ok; k++)
        ok = entry[k] == '_' || (isascii(entry[k]) && isalnum((unsigned char)entry[k]));
    if (ok)
        return CSN_OK;
    csn_autofree char *name = strndup(entry, len);
    csn_autofree char *shown = name ? csn_path_printable(name) : NULL;
    return csn_fail(err, CSN_INVALID, "env[%zu]: %s is not the name of a variable", i,
                    shown ? shown : "it");
}

/* Paths are not resolved here: the backend does that when it opens the sandbox. */
static csn_status check_rules(const csn_config *c, csn_error **err)
{
    if (c->rule_count > 0 && !c->rules)
        return csn_fail(err, CSN_INVALID, "rules: rule_count is %zu but there are none",
                        c->rule_count);
    for (size_t i = 0; i < c->rule_count; i++) {
        const csn_rule *r = &c->rules[i];
        if ((r->ops & ALL_OPS) == 0 || (r->ops & ~(ALL_OPS | CSN_RULE_FILES)) != 0)
            return csn_fail(err, CSN_INVALID, "rules[%zu]: no known operation", i);
        if ((r->ops & CSN_RULE_FILES) && (r->ops & ~(PATH_OPS | CSN_RULE_FILES)) != 0)
            return csn_fail(err, CSN_INVALID,
                            "rules[%zu]: scope 'files' is for read, write and delete", i);
        if (r->allow > 1)
            return csn_fail(err, CSN_INVALID, "rules[%zu]: allow must be 0 or 1", i);
        if (!r->path || !r->path[0])
            return csn_fail(err, CSN_INVALID, "rules[%zu]: path is empty", i);
        csn_status st = r->ops & CSN_OP_NET ? csn_config_check_host(r->path, i, err) : CSN_OK;
        if (st < 0)
            return st;
    }
    return CSN_OK;
}

/* An empty string usually comes from an unset variable in a script. */
static csn_status check_empty(const csn_option *o, const csn_config *c, csn_error **err)
{
    const char *const *list = o->type == CSN_TYPE_LIST ? *csn_option_list(o, c) : NULL;
    const char *text = o->type == CSN_TYPE_STRING ? *csn_option_string(o, c) : NULL;

    if (text && !text[0])
        return csn_fail(err, CSN_INVALID, "%s is empty", o->name);
    for (size_t i = 0; list && list[i]; i++)
        if (!list[i][0])
            return csn_fail(err, CSN_INVALID, "%s[%zu] is empty", o->name, i);
    return CSN_OK;
}

static csn_status check_name(const char *name, csn_error **err)
{
    if (!name || csn_name_valid(name))
        return CSN_OK;
    csn_autofree char *shown = csn_path_printable(name);
    csn_status st = csn_fail(err, CSN_INVALID, "name: %s is not a name", shown ? shown : "");
    return csn_error_advise(st, err,
                            "letters, digits and . _ - only, at most %u, not . or - first",
                            CSN_NAME_BYTES_MAX);
}

/* Makes all checks that need no backend. */
static csn_status validate(const csn_config *c, csn_error **err)
{
    csn_status st = csn_flags_check(c->flags, OPEN_FLAGS, "config", err);

    for (const csn_option *o = csn_options; o->name && st == CSN_OK; o++)
        st = check_empty(o, c, err);
    if (st == CSN_OK)
        st = check_name(c->name, err);
    if (st == CSN_OK)
        st = csn_agent_check(c->agent, err);
    if (st == CSN_OK)
        st = csn_config_check_net(c, err);
    for (size_t i = 0; st == CSN_OK && c->env && c->env[i]; i++)
        st = check_env(c->env[i], i, err);
    if (st == CSN_OK)
        st = check_rules(c, err);
    if (st == CSN_OK && c->audit_keep >= CSN_AUDIT_DAYS_MAX && c->audit_keep != CSN_NO_LIMIT)
        st = csn_fail(err, CSN_INVALID, "audit_keep: more than %u days; use \"none\"",
                      CSN_AUDIT_DAYS_MAX - 1);
    if (st == CSN_OK && c->output_max > CSN_OUTPUT_MAX_CEILING && c->output_max != CSN_NO_LIMIT)
        st = csn_fail(err, CSN_INVALID, "output_max: more than %u bytes",
                      CSN_OUTPUT_MAX_CEILING);
    return st;
}

/* ---- copying ---------------------------------------------------------------------------- */

static bool copy_rules(csn_arena *a, csn_config *c)
{
    csn_rule *rules = csn_arena_array(a, c->rule_count + 1, sizeof(*rules));

    for (size_t i = 0; rules && i < c->rule_count; i++) {
        rules[i] = c->rules[i];
        if (!(rules[i].path = csn_arena_strdup(a, c->rules[i].path)))
            return false;
    }
    c->rules = c->rule_count > 0 ? rules : NULL;
    return rules != NULL;
}

/* Replaces the pointers of c, which belong to the caller, by copies in the arena. A list that
 * is NULL (not given) differs from an empty list (nothing is allowed). */
static bool copy_all(csn_arena *a, csn_config *c)
{
    for (const csn_option *o = csn_options; o->name; o++) {
        bool list = o->type == CSN_TYPE_LIST || o->type == CSN_TYPE_ENV;
        if (!csn_option_is_set(o, c))
            continue;
        if (o->type == CSN_TYPE_STRING &&
            !(*csn_option_string(o, c) = csn_arena_strdup(a, *csn_option_string(o, c))))
            return false;
        if (list && !(*csn_option_list(o, c) =
                          (const char *const *)csn_arena_strv(a, *csn_option_list(o, c))))
            return false;
    }
    return copy_rules(a, c);
}

/* An empty variable counts as unset. */
static const char *default_backend(void)
{
    const char *chosen = getenv("CAISSON_BACKEND");
    const char *vercel = getenv("VERCEL");

    if (chosen && chosen[0])
        return chosen;
    return vercel && strcmp(vercel, "1") == 0 ? "vercel" : "jail";
}

/* csn_opts_take refuses options of newer callers that this library does not know. */
csn_status csn_config_take(const csn_config *config, csn_config **ret, csn_error **err)
{
    csn_config given;
    owned *o = NULL;
    csn_status st = csn_opts_take(config, &given, sizeof(given), "config", err);

    if (st == CSN_OK)
        st = validate(&given, err);
    if (st == CSN_OK)
        st = owned_new(&o, err);
    if (st < 0)
        return st;
    CSN_CLEANUP(csn_config_freep) csn_config *c = &o->config;
    *c = given;
    c->size = sizeof(*c);
    if (!c->backend)
        c->backend = default_backend();
    if (!copy_all(o->arena, c) || !csn_config_move_net(o->arena, c))
        return csn_fail(err, CSN_NOMEM, "config");
    *ret = CSN_STEAL(c);
    return CSN_OK;
}

csn_status csn_config_take_new(const csn_config *config, csn_config **ret, csn_error **err)
{
    CSN_CLEANUP(csn_config_freep) csn_config *c = NULL;
    csn_status st = csn_config_take(config, &c, err);

    if (st == CSN_OK)
        st = csn_agent_expand(((owned *)c)->arena, c, err);
    if (st == CSN_OK)
        *ret = CSN_STEAL(c);
    return st;
}

static const char *absolute(csn_arena *a, const char *cwd, const char *path)
{
    bool home = path[0] == '~' && (path[1] == '/' || path[1] == '\0');

    return path[0] == '/' || home ? path : csn_arena_printf(a, "%s/%s", cwd, path);
}

static bool absolute_list(csn_arena *a, const char *cwd, const char *const **list)
{
    if (!*list)
        return true;
    char **v = csn_arena_strv(a, *list);
    for (size_t i = 0; v && v[i]; i++)
        if (!(v[i] = (char *)absolute(a, cwd, v[i])))
            return false;
    *list = (const char *const *)v;
    return v != NULL;
}

csn_status csn_config_resolve(csn_config *c, bool cwd_default, csn_error **err)
{
    csn_arena *a = ((owned *)c)->arena;

    if (!cwd_default && !c->workspace && !c->workspaces)
        return CSN_OK;
    csn_autofree char *cwd = getcwd(NULL, 0);
    if (!cwd)
        return csn_fail_errno(err, errno, "current directory");
    if (c->workspace)
        c->workspace = absolute(a, cwd, c->workspace);
    else if (cwd_default)
        c->workspace = csn_arena_strdup(a, cwd);
    if (c->home)
        c->home = absolute(a, cwd, c->home);
    if (c->audit && strcmp(c->audit, "none") != 0)
        c->audit = absolute(a, cwd, c->audit);
    if ((cwd_default && !c->workspace) || !absolute_list(a, cwd, &c->read) ||
        !absolute_list(a, cwd, &c->write) || !absolute_list(a, cwd, &c->workspaces))
        return csn_fail(err, CSN_NOMEM, "config");
    return CSN_OK;
}

/* ---- from JSON -------------------------------------------------------------------------- */

/* Reads a number, or a string in the format of `parse`; "none" means no limit. */
static csn_status get_amount(const csn_jval *obj, const char *key, const char *what,
                             bool (*parse)(const char *, uint64_t *), uint64_t *ret,
                             csn_error **err)
{
    const csn_jval *v = csn_jval_get(obj, key);

    if (!v || !csn_jval_is_string(v))
        return csn_jget_u64(obj, key, ret, err);
    const char *s = csn_jval_string(v);
    if (strcmp(s, "none") == 0)
        *ret = CSN_NO_LIMIT;
    else if (!parse(s, ret))
        return csn_fail(err, CSN_INVALID, "'%s': not a %s", key, what);
    return CSN_OK;
}

/* In JSON 0 means no limit; in csn_config it means the default. */
static csn_status get_time(const csn_jval *obj, const char *key, uint64_t *ret, csn_error **err)
{
    uint64_t ms = *ret;
    csn_status st = get_amount(obj, key, "duration like 30s", csn_parse_duration_ms, &ms, err);

    if (st < 0 || !csn_jval_get(obj, key))
        return st;
    *ret = ms == 0 ? CSN_NO_LIMIT : ms;
    return CSN_OK;
}

/* A number or a string; both are parsed from their text. */
static csn_status get_cpus(const csn_jval *obj, const char *key, uint64_t *ret, csn_error **err)
{
    const csn_jval *v = csn_jval_get(obj, key);

    if (!v)
        return CSN_OK;
    csn_autofree char *text =
        csn_jval_is_string(v) ? strdup(csn_jval_string(v)) : csn_jval_dump(v);
    if (!text)
        return csn_fail(err, CSN_NOMEM, "config");
    if (strcmp(text, "none") == 0)
        *ret = CSN_NO_LIMIT;
    else if (!csn_parse_milli(text, ret))
        return csn_fail(err, CSN_INVALID, "'%s': not a number like 1.5", key);
    return CSN_OK;
}

/* Missing paths and operations are left to validate(), which also checks the rules of C
 * callers. */
static csn_status get_rule(const csn_jval *v, size_t i, owned *o, csn_rule *ret,
                           csn_error **err)
{
    static const char *const known[] = {"op", "effect", "path", "scope", NULL};
    const char *const *ops = NULL;
    const char *effect = NULL, *path = NULL, *scope = NULL;
    csn_status st = csn_jval_only(v, known, "rule", err);

    if (st == CSN_OK)
        st = csn_jget_strv(v, "op", o->arena, &ops, err);
    if (st == CSN_OK)
        st = csn_jget_str(v, "effect", &effect, err);
    if (st == CSN_OK)
        st = csn_jget_str(v, "path", &path, err);
    if (st == CSN_OK)
        st = csn_jget_str(v, "scope", &scope, err);
    if (st < 0)
        return csn_wrap(st, err, "rules[%zu]", i);
    if (scope && strcmp(scope, "files") != 0 && strcmp(scope, "all") != 0)
        return csn_fail(err, CSN_INVALID, "rules[%zu]: 'scope' is neither all nor files", i);
    for (size_t k = 0; ops && ops[k]; k++) {
        uint32_t op = csn_op_of_name(ops[k]);
        if (op == 0)
            return csn_fail(err, CSN_INVALID,
                            "rules[%zu]: 'op' is none of read, write, delete, exec, net", i);
        ret->ops |= op;
    }
    if (!effect || (strcmp(effect, "allow") != 0 && strcmp(effect, "deny") != 0))
        return csn_fail(err, CSN_INVALID, "rules[%zu]: 'effect' is neither allow nor deny", i);
    ret->allow = strcmp(effect, "allow") == 0;
    ret->ops |= scope && strcmp(scope, "files") == 0 ? CSN_RULE_FILES : 0;
    if (path && !(ret->path = csn_arena_strdup(o->arena, path)))
        return csn_fail(err, CSN_NOMEM, "config");
    return CSN_OK;
}

static csn_status get_rules(const csn_jval *list, owned *o, csn_error **err)
{
    size_t n = csn_jval_count(list);

    if (!csn_jval_is_array(list))
        return csn_fail(err, CSN_INVALID, "'rules': expected a list of objects");
    csn_rule *rules = csn_arena_array(o->arena, n + 1, sizeof(*rules));
    if (!rules)
        return csn_fail(err, CSN_NOMEM, "config");
    for (size_t i = 0; i < n; i++) {
        csn_status st = get_rule(csn_jval_at(list, i), i, o, &rules[i], err);
        if (st < 0)
            return st;
    }
    o->config.rules = n > 0 ? rules : NULL;
    o->config.rule_count = n;
    return CSN_OK;
}

/* Reads {NAME: value} in order. */
static csn_status get_env_object(const csn_jval *obj, owned *o, csn_error **err)
{
    const csn_jval *v;
    const char *name = NULL;
    size_t count = 0;

    while (csn_jval_member(obj, count, &name))
        count++;
    char **list = csn_arena_array(o->arena, count + 1, sizeof(*list));
    if (!list)
        return csn_fail(err, CSN_NOMEM, "config");
    for (size_t i = 0; (v = csn_jval_member(obj, i, &name)); i++) {
        const char *value = csn_jval_string(v);
        csn_autofree char *shown = csn_path_printable(name);
        if (!value || strchr(name, '='))
            return csn_fail(err, CSN_INVALID, "env: %s is no variable with a value",
                            shown ? shown : "it");
        if (!(list[i] = csn_arena_printf(o->arena, "%s=%s", name, value)))
            return csn_fail(err, CSN_NOMEM, "config");
    }
    o->config.env = (const char *const *)list;
    return CSN_OK;
}

static csn_status get_string(const csn_jval *obj, const char *key, owned *o, const char **ret,
                             csn_error **err)
{
    const char *s = NULL;
    csn_status st = csn_jget_str(obj, key, &s, err);

    if (st == CSN_OK && s && !(*ret = csn_arena_strdup(o->arena, s)))
        st = csn_fail(err, CSN_NOMEM, "config");
    return st;
}

static csn_status get_flag(const csn_jval *obj, const char *key, uint32_t flag, csn_config *c,
                           csn_error **err)
{
    bool on = false;
    csn_status st = csn_jget_bool(obj, key, &on, err);

    c->flags |= on ? flag : 0;
    return st;
}

static csn_status get_option(const csn_jval *obj, const char *key, const csn_option *o,
                             owned *to, csn_error **err)
{
    csn_config *c = &to->config;
    const csn_jval *v = csn_jval_get(obj, key);

    if (!v)
        return CSN_OK;
    switch (o->type) {
    case CSN_TYPE_STRING:
        return get_string(obj, key, to, csn_option_string(o, c), err);
    case CSN_TYPE_ENV:
        if (csn_jval_is_object(v))
            return get_env_object(v, to, err);
        return csn_jget_strv(obj, key, to->arena, csn_option_list(o, c), err);
    case CSN_TYPE_LIST:
        return csn_jget_strv(obj, key, to->arena, csn_option_list(o, c), err);
    case CSN_TYPE_RULES:
        return get_rules(v, to, err);
    case CSN_TYPE_FLAG:
        return get_flag(obj, key, o->open_flag, c, err);
    case CSN_TYPE_SIZE:
    case CSN_TYPE_COUNT:
        return get_amount(obj, key, "size like 512M", csn_parse_size, csn_option_number(o, c),
                          err);
    case CSN_TYPE_CPUS:
        return get_cpus(obj, key, csn_option_number(o, c), err);
    case CSN_TYPE_DURATION:
        return get_time(obj, key, csn_option_number(o, c), err);
    }
    return CSN_OK;
}

/* Reads the options of one JSON object. Refuses unknown keys first, so that a misspelt `deny`
 * is not silently ignored. */
static csn_status get_options(const csn_jval *obj, const char *group, owned *to,
                              csn_error **err)
{
    const char *known[CSN_OPTION_COUNT + 6] = {"allow_commands", "limits", "network", "$schema",
                                               "profiles"};
    size_t n = group ? 0 : 5;

    for (const csn_option *o = csn_options; o->name; o++)
        if (csn_option_key(o, group))
            known[n++] = csn_option_key(o, group);
    known[n] = NULL;
    csn_status st = csn_jval_only(obj, known, group ? group : "config", err);
    if (st < 0)
        return st;
    for (const csn_option *o = csn_options; o->name && st == CSN_OK; o++)
        if (csn_option_key(o, group))
            st = get_option(obj, csn_option_key(o, group), o, to, err);
    return st < 0 && group ? csn_wrap(st, err, "%s", group) : st;
}

/* `network` is one word for the mode, or an object. */
static csn_status get_network(const csn_jval *root, owned *o, csn_error **err)
{
    const csn_jval *v = csn_jval_get(root, "network");

    if (!v)
        return CSN_OK;
    if (csn_jval_is_string(v))
        return get_string(root, "network", o, &o->config.network, err);
    if (!csn_jval_is_object(v))
        return csn_fail(err, CSN_INVALID, "'network': expected a string or an object");
    return get_options(v, "network", o, err);
}

/* `allow_commands` is another name of `commands`. */
static csn_status get_commands(const csn_jval *root, owned *o, csn_error **err)
{
    if (o->config.commands && csn_jval_get(root, "allow_commands"))
        return csn_fail(err, CSN_INVALID,
                        "'commands' and 'allow_commands' are the same: give one");
    return csn_jget_strv(root, "allow_commands", o->arena, &o->config.commands, err);
}

static csn_status get_all(const csn_jval *root, owned *o, csn_error **err)
{
    const csn_jval *limits = csn_jval_get(root, "limits");
    csn_status st = get_options(root, NULL, o, err);

    if (st == CSN_OK)
        st = get_commands(root, o, err);
    if (st == CSN_OK && limits)
        st = get_options(limits, "limits", o, err);
    if (st == CSN_OK)
        st = get_network(root, o, err);
    if (st == CSN_OK)
        st = validate(&o->config, err);
    if (st == CSN_OK && !csn_config_move_net(o->arena, &o->config))
        st = csn_fail(err, CSN_NOMEM, "config");
    return st;
}

static csn_status check_profile(const csn_jval *profile, csn_error **err)
{
    static const char *const top[] = {"$schema", "profiles"};
    owned *o = NULL;

    for (size_t i = 0; i < sizeof(top) / sizeof(top[0]); i++)
        if (csn_jval_has(profile, top[i]))
            return csn_fail(err, CSN_INVALID, "'%s' is a key of the whole file", top[i]);
    csn_status st = owned_new(&o, err);
    if (st < 0)
        return st;
    CSN_CLEANUP(csn_config_freep) csn_config *c = &o->config;
    (void)c;
    return get_all(profile, o, err);
}

/* `$schema` is for editors. `profiles` has named configurations, which the command line applies
 * with --profile; here they are checked. */
static csn_status check_document_keys(const csn_jval *root, csn_error **err)
{
    const csn_jval *all = csn_jval_get(root, "profiles"), *profile;
    const char *name = NULL;
    csn_status st = csn_jget_str(root, "$schema", &name, err);

    if (st == CSN_OK && all && !csn_jval_is_object(all))
        st = csn_fail(err, CSN_INVALID, "'profiles': expected an object");
    for (size_t i = 0; st == CSN_OK && (profile = csn_jval_member(all, i, &name)); i++) {
        csn_autofree char *shown = csn_path_printable(name);
        if (!csn_name_valid(name))
            st = csn_fail(err, CSN_INVALID, "profiles: %s is not a name", shown ? shown : "");
        else if ((st = check_profile(profile, err)) < 0)
            st = csn_wrap(st, err, "profiles.%s", name);
    }
    return st;
}

csn_status csn_config_parse(const char *json, size_t len, const char *source, csn_config **ret,
                            csn_error **err)
{
    CSN_CLEANUP(csn_jval_freep) csn_jval *root = NULL;
    const char *what = source ? source : "config";
    owned *o = NULL;

    if (!json || !ret)
        return csn_fail(err, CSN_INVALID, "%s: no text or no place for the result", what);
    csn_status st = csn_json_parse(json, len, what, &root, err);
    if (st == CSN_OK)
        st = owned_new(&o, err);
    if (st < 0)
        return st;
    CSN_CLEANUP(csn_config_freep) csn_config *c = &o->config;
    st = get_all(root, o, err);
    if (st == CSN_OK)
        st = check_document_keys(root, err);
    if (st < 0)
        return csn_wrap(st, err, "%s", what);
    *ret = CSN_STEAL(c);
    return CSN_OK;
}
