/* config.c: a csn_config as an object of its own: copied, checked, from JSON, to JSON.
 *
 * Called by csn_open (take), by the CLI's --policy and the daemon (parse), and by the list of
 * detached sandboxes (encode, parse). The caller's struct may be older or newer than ours and
 * is never kept; JSON is a file of the owner, but may be wrong in every way, so every key is
 * checked by name and type. What must hold: all of a config lives in one arena, which its last
 * field behind the public struct points to; what take or parse returned has passed validate();
 * encode and parse are inverse. Messages never show the value of an environment variable. */
#include "core/config.h"

#include <ctype.h>
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/json_read.h"
#include "base/json_write.h"
#include "base/limits.h"
#include "base/path.h"
#include "base/strv.h"
#include "base/utf8.h"
#include "core/internal.h"
#include "policy/rules.h"

#define OPEN_FLAGS (CSN_OPEN_DETACHED | CSN_OPEN_NOFOLLOW | CSN_OPEN_ALLOW_WEAKER)
#define ALL_OPS    (CSN_OP_READ | CSN_OP_WRITE | CSN_OP_DELETE | CSN_OP_EXEC | CSN_OP_NET)

typedef struct owned {
    csn_config config; /* first: a csn_config * of ours is an owned * */
    csn_arena *arena;
} owned;

/* One key of the JSON, and where its value lives in csn_config. */
typedef struct field {
    const char *key;
    size_t offset;
} field;

#define FIELD(name, member)                                                                    \
    {                                                                                          \
        name, offsetof(csn_config, member)                                                     \
    }

static const field strings[] = {FIELD("backend", backend),     FIELD("name", name),
                                FIELD("workspace", workspace), FIELD("workdir", workdir),
                                FIELD("home", home),           FIELD("image", image),
                                FIELD("audit", audit),         {NULL, 0}};
static const field lists[] = {
    FIELD("read", read),         FIELD("write", write),           FIELD("deny", deny),
    FIELD("commands", commands), FIELD("workspaces", workspaces), {NULL, 0}};
static const field net_lists[] = {FIELD("allow", net_allow),       FIELD("deny", net_deny),
                                  FIELD("packages", packages),     FIELD("publish", publish),
                                  FIELD("host_ports", host_ports), {NULL, 0}};
static const field sizes[] = {FIELD("memory", memory_max),
                              FIELD("pids", pids_max),
                              FIELD("disk", disk_max),
                              FIELD("file_size", file_max),
                              {NULL, 0}};
static const struct {
    const char *key;
    uint32_t flag;
} flags[] = {{"detached", CSN_OPEN_DETACHED},
             {"nofollow", CSN_OPEN_NOFOLLOW},
             {"allow_weaker", CSN_OPEN_ALLOW_WEAKER},
             {NULL, 0}};

static const char **string_at(csn_config *c, const field *f)
{
    return (const char **)((char *)c + f->offset);
}

static const char *const **list_at(csn_config *c, const field *f)
{
    return (const char *const **)((char *)c + f->offset);
}

static uint64_t *size_at(csn_config *c, const field *f)
{
    return (uint64_t *)((char *)c + f->offset);
}

void csn_config_free(csn_config *c)
{
    if (c)
        csn_arena_free(((owned *)c)->arena);
}
CSN_DEFINE_CLEANUP(csn_config, csn_config_free)

/* The struct lives in the arena it points to: one block, one free. */
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

/* NAME or NAME=value, with a NAME that every shell can say. */
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

/* Paths are not resolved here: whether they exist is the backend's to say, at open. */
static csn_status check_rules(const csn_config *c, csn_error **err)
{
    if (c->rule_count > 0 && !c->rules)
        return csn_fail(err, CSN_INVALID, "rules: rule_count is %zu but there are none",
                        c->rule_count);
    for (size_t i = 0; i < c->rule_count; i++) {
        const csn_rule *r = &c->rules[i];
        if (r->ops == 0 || (r->ops & ~ALL_OPS) != 0)
            return csn_fail(err, CSN_INVALID, "rules[%zu]: no known operation", i);
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

/* An empty string in a list is always an unset variable in somebody's script. */
static csn_status check_lists(csn_config *c, const field *fields, const char *prefix,
                              csn_error **err)
{
    for (; fields->key; fields++) {
        const char *const *list = *list_at(c, fields);
        for (size_t i = 0; list && list[i]; i++)
            if (!list[i][0])
                return csn_fail(err, CSN_INVALID, "%s%s[%zu] is empty", prefix, fields->key, i);
    }
    return CSN_OK;
}

static csn_status check_strings(csn_config *c, csn_error **err)
{
    for (const field *f = strings; f->key; f++)
        if (*string_at(c, f) && !(*string_at(c, f))[0])
            return csn_fail(err, CSN_INVALID, "%s is empty", f->key);
    if (c->name && !csn_name_valid(c->name)) {
        csn_autofree char *shown = csn_path_printable(c->name);
        csn_status st =
            csn_fail(err, CSN_INVALID, "name: %s is not a name", shown ? shown : "");
        return csn_error_advise(st, err,
                                "letters, digits and . _ - only, at most %u, not . or - first",
                                CSN_NAME_BYTES_MAX);
    }
    return CSN_OK;
}

/* All that can be known to be wrong without asking a backend. */
static csn_status validate(csn_config *c, csn_error **err)
{
    csn_status st = csn_flags_check(c->flags, OPEN_FLAGS, "config", err);

    if (st == CSN_OK)
        st = check_strings(c, err);
    if (st == CSN_OK)
        st = check_lists(c, lists, "", err);
    if (st == CSN_OK)
        st = check_lists(c, net_lists, "network.", err);
    if (st == CSN_OK)
        st = csn_config_check_net(c, err);
    for (size_t i = 0; st == CSN_OK && c->env && c->env[i]; i++)
        st = check_env(c->env[i], i, err);
    if (st == CSN_OK)
        st = check_rules(c, err);
    if (st == CSN_OK && c->output_max > CSN_OUTPUT_MAX_CEILING && c->output_max != CSN_NO_LIMIT)
        st = csn_fail(err, CSN_INVALID, "output_max: more than %u bytes",
                      CSN_OUTPUT_MAX_CEILING);
    return st;
}

/* ---- copying ---------------------------------------------------------------------------- */

/* NULL (not given) and an empty list (nothing) differ, for commands above all. */
static bool copy_lists(csn_arena *a, csn_config *c, const field *fields)
{
    for (; fields->key; fields++) {
        const char *const *from = *list_at(c, fields);
        if (!from)
            continue;
        char **copy = csn_arena_strv(a, from);
        *list_at(c, fields) = (const char *const *)copy;
        if (!copy)
            return false;
    }
    return true;
}

/* Every pointer of c, which is the caller's so far, becomes one into the arena. */
static bool copy_all(csn_arena *a, csn_config *c)
{
    for (const field *f = strings; f->key; f++) {
        const char **s = string_at(c, f);
        if (*s && !(*s = csn_arena_strdup(a, *s)))
            return false;
    }
    if (c->network && !(c->network = csn_arena_strdup(a, c->network)))
        return false;
    if (c->env && !(c->env = (const char *const *)csn_arena_strv(a, c->env)))
        return false;
    if (!copy_lists(a, c, lists) || !copy_lists(a, c, net_lists))
        return false;
    csn_rule *rules = csn_arena_array(a, c->rule_count + 1, sizeof(*rules));
    if (!rules)
        return false;
    for (size_t i = 0; i < c->rule_count; i++) {
        rules[i] = c->rules[i];
        if (!(rules[i].path = csn_arena_strdup(a, c->rules[i].path)))
            return false;
    }
    c->rules = c->rule_count > 0 ? rules : NULL;
    return true;
}

/* An empty variable counts as unset, as in the shells. */
static const char *default_backend(void)
{
    const char *chosen = getenv("CAISSON_BACKEND");
    const char *vercel = getenv("VERCEL");

    if (chosen && chosen[0])
        return chosen;
    return vercel && strcmp(vercel, "1") == 0 ? "vercel" : "jail";
}

/* Checked before it is copied: a pointer of a newer caller's field is never followed. */
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

csn_status csn_config_resolve_host(csn_config *c, csn_error **err)
{
    csn_arena *a = ((owned *)c)->arena;
    csn_autofree char *cwd = getcwd(NULL, 0);

    if (!cwd)
        return csn_fail_errno(err, errno, "current directory");
    c->workspace = c->workspace ? absolute(a, cwd, c->workspace) : csn_arena_strdup(a, cwd);
    if (c->home)
        c->home = absolute(a, cwd, c->home);
    if (c->audit && strcmp(c->audit, "none") != 0)
        c->audit = absolute(a, cwd, c->audit);
    if (!c->workspace || !absolute_list(a, cwd, &c->read) || !absolute_list(a, cwd, &c->write))
        return csn_fail(err, CSN_NOMEM, "config");
    return CSN_OK;
}

csn_status csn_config_resolve_given(csn_config *c, csn_error **err)
{
    csn_arena *a = ((owned *)c)->arena;
    csn_autofree char *cwd = getcwd(NULL, 0);

    if (!c->workspace && !c->workspaces)
        return CSN_OK;
    if (!cwd)
        return csn_fail_errno(err, errno, "current directory");
    if (c->workspace && !(c->workspace = absolute(a, cwd, c->workspace)))
        return csn_fail(err, CSN_NOMEM, "config");
    return absolute_list(a, cwd, &c->workspaces) ? CSN_OK : csn_fail(err, CSN_NOMEM, "config");
}

/* ---- from JSON -------------------------------------------------------------------------- */

/* A number, or a string that `parse` understands; "none" is no limit. */
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

/* Here 0 is somebody's own word for none; in csn_config it is the default. */
static csn_status get_time(const csn_jval *obj, const char *key, uint64_t *ret, csn_error **err)
{
    uint64_t ms = *ret;
    csn_status st = get_amount(obj, key, "duration like 30s", csn_parse_duration_ms, &ms, err);

    if (st < 0 || !csn_jval_get(obj, key))
        return st;
    *ret = ms == 0 ? CSN_NO_LIMIT : ms;
    return CSN_OK;
}

/* "2", "1.5", "0.25", to the nearest thousandth: jansson writes 0.1 as 0.10000000000000001. */
static bool parse_milli(const char *s, uint64_t *ret)
{
    char whole[24];
    size_t len = strcspn(s, ".");
    uint64_t n, milli = 0;

    if (len >= sizeof(whole))
        return false;
    memcpy(whole, s, len);
    whole[len] = '\0';
    if (!csn_parse_u64(whole, &n) || n > UINT32_MAX)
        return false;
    if (s[len] == '.') {
        const char *digits = s + len + 1;
        size_t count = strspn(digits, "0123456789");
        if (count == 0 || digits[count] != '\0')
            return false;
        for (size_t i = 0; i < 3; i++)
            milli = milli * 10 + (i < count ? (uint64_t)(digits[i] - '0') : 0);
        milli += count > 3 && digits[3] >= '5';
    }
    *ret = n * 1000 + milli;
    return true;
}

/* By its text: a whole number, a fraction and a string all come through the same gate. */
static csn_status get_cpus(const csn_jval *obj, uint64_t *ret, csn_error **err)
{
    const csn_jval *v = csn_jval_get(obj, "cpus");

    if (!v)
        return CSN_OK;
    csn_autofree char *text =
        csn_jval_is_string(v) ? strdup(csn_jval_string(v)) : csn_jval_dump(v);
    if (!text)
        return csn_fail(err, CSN_NOMEM, "config");
    if (strcmp(text, "none") == 0)
        *ret = CSN_NO_LIMIT;
    else if (!parse_milli(text, ret))
        return csn_fail(err, CSN_INVALID, "'cpus': not a number like 1.5");
    return CSN_OK;
}

static csn_status get_lists(const csn_jval *obj, const field *fields, owned *o, csn_error **err)
{
    csn_status st = CSN_OK;

    for (; fields->key && st == CSN_OK; fields++)
        st = csn_jget_strv(obj, fields->key, o->arena, list_at(&o->config, fields), err);
    return st;
}

/* A wrapped message says limits: memory: ..., as the file has it. */
static csn_status get_limits(const csn_jval *root, csn_config *c, csn_error **err)
{
    static const char *const known[] = {"memory", "pids", "cpus", "disk", "file_size", NULL};
    const csn_jval *obj = csn_jval_get(root, "limits");
    csn_status st = obj ? csn_jval_only(obj, known, "limits", err) : CSN_OK;

    if (!obj || st < 0)
        return st;
    for (const field *f = sizes; f->key && st == CSN_OK; f++)
        st = get_amount(obj, f->key, "size like 512M", csn_parse_size, size_at(c, f), err);
    if (st == CSN_OK)
        st = get_cpus(obj, &c->cpu_milli, err);
    return st < 0 ? csn_wrap(st, err, "limits") : CSN_OK;
}

/* One word for the mode, or an object when there is more to say. */
static csn_status get_network(const csn_jval *root, owned *o, csn_error **err)
{
    static const char *const known[] = {"mode",    "allow",      "deny", "packages",
                                        "publish", "host_ports", NULL};
    const csn_jval *v = csn_jval_get(root, "network");
    const char *mode = NULL;
    csn_status st = CSN_OK;

    if (!v)
        return CSN_OK;
    if (csn_jval_is_string(v)) {
        mode = csn_jval_string(v);
    } else {
        if (!csn_jval_is_object(v))
            return csn_fail(err, CSN_INVALID, "'network': expected a string or an object");
        st = csn_jval_only(v, known, "network", err);
        if (st == CSN_OK)
            st = csn_jget_str(v, "mode", &mode, err);
        if (st == CSN_OK)
            st = get_lists(v, net_lists, o, err);
    }
    if (st == CSN_OK && mode && !(o->config.network = csn_arena_strdup(o->arena, mode)))
        st = csn_fail(err, CSN_NOMEM, "config");
    return st;
}

/* A missing path or operation is left to validate(), which speaks of C callers and files alike.
 */
static csn_status get_rule(const csn_jval *v, size_t i, owned *o, csn_rule *ret,
                           csn_error **err)
{
    static const char *const known[] = {"op", "effect", "path", NULL};
    const char *const *ops = NULL;
    const char *effect = NULL, *path = NULL;
    csn_status st = csn_jval_only(v, known, "rule", err);

    if (st == CSN_OK)
        st = csn_jget_strv(v, "op", o->arena, &ops, err);
    if (st == CSN_OK)
        st = csn_jget_str(v, "effect", &effect, err);
    if (st == CSN_OK)
        st = csn_jget_str(v, "path", &path, err);
    if (st < 0)
        return csn_wrap(st, err, "rules[%zu]", i);
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
    if (path && !(ret->path = csn_arena_strdup(o->arena, path)))
        return csn_fail(err, CSN_NOMEM, "config");
    return CSN_OK;
}

static csn_status get_rules(const csn_jval *root, owned *o, csn_error **err)
{
    const csn_jval *list = csn_jval_get(root, "rules");
    size_t n = list ? csn_jval_count(list) : 0;

    if (!list)
        return CSN_OK;
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

/* The keys of {NAME: value}, in order. Names that need an escape are none, so the compact text
 * can be read by its quotes; the values come from the document itself. */
static csn_status get_env_object(const csn_jval *obj, owned *o, csn_error **err)
{
    csn_autofree char *text = csn_jval_dump(obj);
    char **list = NULL;
    size_t count = 0;

    if (!text)
        return csn_fail(err, CSN_NOMEM, "config");
    list = csn_arena_array(o->arena, strlen(text) / 4 + 2, sizeof(*list));
    for (char *p = text + 1; list && *p == '"'; p += *p == ',') {
        char *name = p + 1, *end = strpbrk(name, "\"\\");
        const char *value = NULL;
        if (!end || *end == '\\')
            return csn_fail(err, CSN_INVALID, "'env': a name is not the name of a variable");
        *end = '\0';
        csn_status st = csn_jget_str(obj, name, &value, err);
        if (st < 0)
            return csn_wrap(st, err, "env");
        if (!value || strchr(name, '='))
            return csn_fail(err, CSN_INVALID, "env: '%s' is no variable with a value", name);
        if (!(list[count++] = csn_arena_printf(o->arena, "%s=%s", name, value)))
            return csn_fail(err, CSN_NOMEM, "config");
        for (p = end + 3; *p && *p != '"'; p++) /* behind ":" and the opening quote */
            p += *p == '\\' && p[1];
        p += *p == '"';
    }
    if (!list)
        return csn_fail(err, CSN_NOMEM, "config");
    o->config.env = (const char *const *)list;
    return CSN_OK;
}

static csn_status get_plain(const csn_jval *root, owned *o, csn_error **err)
{
    csn_config *c = &o->config;
    csn_status st = CSN_OK;

    for (const field *f = strings; f->key && st == CSN_OK; f++) {
        const char *s = NULL;
        st = csn_jget_str(root, f->key, &s, err);
        if (st == CSN_OK && s && !(*string_at(c, f) = csn_arena_strdup(o->arena, s)))
            st = csn_fail(err, CSN_NOMEM, "config");
    }
    for (size_t i = 0; flags[i].key && st == CSN_OK; i++) {
        bool on = false;
        st = csn_jget_bool(root, flags[i].key, &on, err);
        c->flags |= on ? flags[i].flag : 0;
    }
    if (st == CSN_OK)
        st = get_time(root, "timeout", &c->timeout_ms, err);
    if (st == CSN_OK)
        st = get_time(root, "lifetime", &c->lifetime_ms, err);
    if (st == CSN_OK)
        st = get_amount(root, "output_max", "size like 512K", csn_parse_size, &c->output_max,
                        err);
    return st;
}

/* Unknown keys first: a misspelt `deny` must never be read as none. */
static csn_status get_all(const csn_jval *root, owned *o, csn_error **err)
{
    static const char *const known[] = {
        "backend", "name",     "workspace",    "workdir",    "home",       "image",
        "audit",   "read",     "write",        "deny",       "commands",   "allow_commands",
        "env",     "rules",    "timeout",      "output_max", "lifetime",   "limits",
        "network", "nofollow", "allow_weaker", "detached",   "workspaces", NULL};
    const csn_jval *env = csn_jval_get(root, "env");
    csn_status st = csn_jval_only(root, known, "config", err);

    if (st == CSN_OK)
        st = get_plain(root, o, err);
    if (st == CSN_OK)
        st = get_lists(root, lists, o, err);
    if (st == CSN_OK && o->config.commands && csn_jval_get(root, "allow_commands"))
        st = csn_fail(err, CSN_INVALID,
                      "'commands' and 'allow_commands' are the same: give one");
    if (st == CSN_OK)
        st = csn_jget_strv(root, "allow_commands", o->arena, &o->config.commands, err);
    if (st == CSN_OK)
        st = env && csn_jval_is_object(env)
                 ? get_env_object(env, o, err)
                 : csn_jget_strv(root, "env", o->arena, &o->config.env, err);
    if (st == CSN_OK)
        st = get_rules(root, o, err);
    if (st == CSN_OK)
        st = get_limits(root, &o->config, err);
    if (st == CSN_OK)
        st = get_network(root, o, err);
    if (st == CSN_OK)
        st = validate(&o->config, err);
    if (st == CSN_OK && !csn_config_move_net(o->arena, &o->config))
        st = csn_fail(err, CSN_NOMEM, "config");
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
    if (st < 0)
        return csn_wrap(st, err, "%s", what);
    *ret = CSN_STEAL(c);
    return CSN_OK;
}
