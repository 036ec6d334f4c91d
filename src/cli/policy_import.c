/* policy_import.c: translates the policies of srt and codex to a policy of caisson.
 *
 * The rows below say what becomes of each key. Invariants: a key that has no equal, and one
 * that the rows do not know, is reported, never dropped; no host and no path is granted that
 * the original does not grant. Both originals let commands read all files of the host that are
 * not denied; the result does not. */
#include "cli/policy_import.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/json_read.h"
#include "base/json_write.h"
#include "base/path.h"
#include "base/strv.h"
#include "cli/config_file.h"
#include "cli/toml.h"

#define PRIVATE_TMP "a jail has a /tmp of its own"
#define OWN_GATEWAY "caisson brings its own gateway and needs no proxy"
#define NO_ASKING   "caisson does not ask while a command runs"
#define NO_MASKING  "caisson passes no secrets on; name a variable in env to pass it"

typedef enum target {
    LOST,       /* has no equal */
    ANY,        /* every value gives what caisson does anyway, or less */
    IF_TRUE,    /* true is what caisson does anyway */
    IF_FALSE,   /* false is */
    HOSTS,      /* network.allow */
    HOSTS_DENY, /* network.deny */
    READ,
    WRITE,
    HIDE,      /* deny_missing_ok */
    PROTECT,   /* a rule that denies write and delete */
    GITCONFIG, /* true: .git/config may be written */
} target;

typedef struct row {
    const char *key;
    target to;
    const char *reason; /* if it is lost */
} row;

static const row srt_rows[] = {
    {"network.allowedDomains", HOSTS, NULL},
    {"network.deniedDomains", HOSTS_DENY, NULL},
    {"network.deniedDomainReasons", LOST, "caisson gives its own reasons"},
    {"network.strictAllowlist", IF_TRUE, NO_ASKING},
    {"network.deniedResolvedAddresses", LOST,
     "loopback, private and metadata addresses are closed anyway; add others to network.deny"},
    {"network.allowUnixSockets", LOST,
     "sockets of the host are not visible; share one with write"},
    {"network.allowAllUnixSockets", IF_FALSE, "sockets of the host are not visible"},
    {"network.allowLocalBinding", ANY, NULL},
    {"network.httpProxyPort", LOST, OWN_GATEWAY},
    {"network.socksProxyPort", LOST, OWN_GATEWAY},
    {"network.mitmProxy", LOST, OWN_GATEWAY},
    {"network.parentProxy", LOST, "the gateway connects directly"},
    {"network.tlsTerminate", LOST, "the gateway does not decrypt"},
    {"filesystem.disabled", IF_FALSE, "a jail always limits files"},
    {"filesystem.denyRead", HIDE, NULL},
    {"filesystem.allowRead", READ, NULL},
    {"filesystem.allowWrite", WRITE, NULL},
    {"filesystem.denyWrite", PROTECT, NULL},
    {"filesystem.allowGitConfig", GITCONFIG, NULL},
    {"credentials", LOST, NO_MASKING},
    {"ignoreViolations", LOST, "caisson reports every denial"},
    {"enableWeakerNestedSandbox", IF_FALSE, "--allow-weaker is for one call"},
    {"enableWeakerNetworkIsolation", IF_FALSE, "--allow-weaker is for one call"},
    {"mandatoryDenySearchDepth", ANY, NULL},
    {"allowPty", IF_FALSE, "caisson run -t gives a terminal"},
    {"seccomp", LOST, "caisson brings its own filter"},
    {"bwrapPath", LOST, "caisson does not use bwrap"},
    {"socatPath", LOST, "caisson does not use socat"},
    {"javaAgentJarPath", LOST, "the gateway needs no agent in programs"},
    {"git", LOST, "set safe.directory with git itself"},
    {"windows", LOST, "caisson runs on Linux"},
    {0},
};

#define OTHER_MODE "it has an effect only with sandbox_mode \"workspace-write\""

static const row codex_rows[] = {
    {"approval_policy", LOST, NO_ASKING},
    {"sandbox_workspace_write.writable_roots", WRITE, NULL},
    {"sandbox_workspace_write.network_access", ANY, NULL}, /* take_codex reads it */
    {"sandbox_workspace_write.exclude_tmpdir_env_var", IF_TRUE, PRIVATE_TMP},
    {"sandbox_workspace_write.exclude_slash_tmp", IF_TRUE, PRIVATE_TMP},
    {"shell_environment_policy", LOST,
     "of the caller's variables only language, time zone, terminal and PATH are passed on; "
     "name others in env"},
    {0},
};

/* Of [permissions.NAME]. */
static const row permission_rows[] = {
    {"description", ANY, NULL},
    {"workspace_roots", LOST, "name them in workspaces"},
    {"glob_scan_max_depth", ANY, NULL},
    {"network.mode", LOST, "methods of requests cannot be limited; no host is allowed"},
    {"network.mitm", LOST, "the gateway does not decrypt"},
    {"network.unix_sockets", LOST, "sockets of the host are not visible; share one with write"},
    {"network.allow_local_binding", ANY, NULL},
    {0},
};

typedef struct import {
    csn_import_lost_fn lost;
    void *ctx;
    csn_arena *arena;
    char **hosts, **hosts_deny, **read, **write, **hide, **protect;
    bool writable;  /* the workspace */
    bool all_hosts; /* network "all" */
    bool out_of_memory;
} import;

/* ---- values -------------------------------------------------------------------------- */

static void lose(import *m, const char *key, const char *reason)
{
    m->lost(m->ctx, key, reason);
}

static void lose_item(import *m, const char *key, const char *item, const char *reason)
{
    csn_autofree char *shown = csn_path_printable(item);
    const char *text = csn_arena_printf(m->arena, "%s: %s", key, shown ? shown : "");

    if (!text)
        m->out_of_memory = true;
    else
        lose(m, text, reason);
}

static void push(import *m, char ***list, const char *text)
{
    if (csn_strv_push(list, text) != 0)
        m->out_of_memory = true;
}

static bool is_pattern(const char *path)
{
    return strpbrk(path, "*?[{") != NULL;
}

/* `.`, `./`, and what codex calls its roots. */
static bool is_workspace(const char *path)
{
    return strcmp(path, ".") == 0 || strcmp(path, "./") == 0;
}

static void add_host(import *m, const char *key, const char *host, bool allow)
{
    csn_autobuf text;
    csn_config *c = NULL;
    csn_json j;

    csn_buf_init(&text, CSN_CONFIG_FILE_MAX);
    csn_json_begin(&j, &text);
    csn_json_object(&j);
    csn_json_key(&j, "network");
    csn_json_object(&j);
    csn_json_kstr(&j, allow ? "allow" : "deny", host);
    csn_json_object_end(&j);
    csn_json_object_end(&j);
    if (csn_json_end(&j) != 0) {
        m->out_of_memory = true;
        return;
    }
    bool ok = csn_config_parse(text.data, text.len, key, &c, NULL) == CSN_OK;
    csn_config_free(c);
    if (ok)
        push(m, allow ? &m->hosts : &m->hosts_deny, host);
    else
        lose_item(m, key, host, "not a host, wildcard, address or network of network.allow");
}

static void add_path(import *m, const char *key, const char *path, target to)
{
    bool outside = path[0] == '/' || path[0] == '~';

    if (!path[0])
        lose_item(m, key, path, "an empty path");
    else if (to == WRITE && is_workspace(path))
        m->writable = true;
    else if (to == READ && is_workspace(path))
        return; /* the workspace may be read anyway */
    else if (to == WRITE && (strcmp(path, "/tmp") == 0 || strcmp(path, "/var/tmp") == 0))
        lose_item(m, key, path, PRIVATE_TMP);
    else if ((to == READ || to == WRITE) && is_pattern(path))
        lose_item(m, key, path, "only directories and files can be shared, not patterns");
    else if (to == HIDE &&
             (strcmp(path, "/") == 0 || strcmp(path, "~") == 0 || strcmp(path, "~/") == 0))
        return; /* of these only what is shared is visible */
    else if (strcmp(path, "/") == 0 || strcmp(path, "..") == 0 || csn_str_starts(path, "../"))
        lose_item(m, key, path, "name the directories that are needed");
    else if (is_pattern(path) && outside)
        lose_item(m, key, path, "outside of what is shared nothing is visible");
    else
        push(m,
             to == READ    ? &m->read
             : to == WRITE ? &m->write
             : to == HIDE  ? &m->hide
                           : &m->protect,
             path);
}

/* A list of strings, or one string. */
static void add_list(import *m, const char *key, const csn_jval *v, target to)
{
    size_t n = csn_jval_is_string(v) ? 1 : csn_jval_count(v);

    if (!csn_jval_is_string(v) && !csn_jval_is_array(v))
        lose(m, key, "not a list");
    for (size_t i = 0; i < n; i++) {
        const char *item = csn_jval_string(csn_jval_is_string(v) ? v : csn_jval_at(v, i));
        if (!item)
            lose(m, key, "an item is not a string");
        else if (to == HOSTS || to == HOSTS_DENY)
            add_host(m, key, item, to == HOSTS);
        else
            add_path(m, key, item, to);
    }
}

static bool is_bool(const csn_jval *v, bool value)
{
    csn_autofree char *text = csn_jval_is_bool(v) ? csn_jval_dump(v) : NULL;

    return text && strcmp(text, value ? "true" : "false") == 0;
}

static void translate(import *m, const row *r, const char *key, const csn_jval *v)
{
    switch (r->to) {
    case LOST:
        lose(m, key, r->reason);
        break;
    case ANY:
        break;
    case IF_TRUE:
    case IF_FALSE:
        if (!is_bool(v, r->to == IF_TRUE))
            lose(m, key, r->reason);
        break;
    case GITCONFIG:
        if (is_bool(v, true))
            push(m, &m->write, ".git/config");
        else if (!is_bool(v, false))
            lose(m, key, "not true or false");
        break;
    case HOSTS:
    case HOSTS_DENY:
    case READ:
    case WRITE:
    case HIDE:
    case PROTECT:
        add_list(m, key, v, r->to);
        break;
    }
}

static const row *find_row(const row *rows, const char *key)
{
    for (; rows->key; rows++)
        if (strcmp(rows->key, key) == 0)
            return rows;
    return NULL;
}

static bool is_group(const row *rows, const char *key)
{
    size_t len = strlen(key);

    for (; rows->key; rows++)
        if (strncmp(rows->key, key, len) == 0 && rows->key[len] == '.')
            return true;
    return false;
}

/* One member of an object; `prefix` is how messages name the object. */
static void take_member(import *m, const row *rows, const char *prefix, const char *key,
                        const csn_jval *v, const char *unknown)
{
    const csn_jval *inner;
    const char *name = NULL;
    const row *r = find_row(rows, key);
    const char *shown = csn_arena_printf(m->arena, "%s%s", prefix, key);

    if (!shown) {
        m->out_of_memory = true;
    } else if (r) {
        translate(m, r, shown, v);
    } else if (!is_group(rows, key) || !csn_jval_is_object(v)) {
        csn_autofree char *safe = csn_path_printable(shown);
        lose(m, safe ? safe : key, unknown);
    } else {
        for (size_t i = 0; (inner = csn_jval_member(v, i, &name)); i++) {
            const char *dotted = csn_arena_printf(m->arena, "%s.%s", key, name);
            if (dotted)
                take_member(m, rows, prefix, dotted, inner, unknown);
            else
                m->out_of_memory = true;
        }
    }
}

/* ---- codex --------------------------------------------------------------------------- */

/* Paths of [permissions.NAME.filesystem]; `inside`: those below the workspace. */
static void take_filesystem(import *m, const char *prefix, const csn_jval *v, bool inside)
{
    const csn_jval *access;
    const char *path = NULL;

    for (size_t i = 0; (access = csn_jval_member(v, i, &path)); i++) {
        const char *word = csn_jval_string(access);
        bool roots = !inside && (strcmp(path, ":workspace_roots") == 0 ||
                                 strcmp(path, ":project_roots") == 0);
        if (roots && csn_jval_is_object(access))
            take_filesystem(m, prefix, access, true);
        else if (roots)
            m->writable |= word && strcmp(word, "write") == 0;
        else if (!inside && strcmp(path, "glob_scan_max_depth") == 0)
            continue;
        else if (!inside && strcmp(path, ":minimal") == 0 && word && strcmp(word, "read") == 0)
            continue; /* programs and libraries are visible anyway */
        else if (!word || path[0] == ':')
            lose_item(m, prefix, path, "not a path of this machine with read, write or none");
        else if (strcmp(word, "none") == 0 || strcmp(word, "deny") == 0)
            add_path(m, prefix, path, HIDE);
        else if (strcmp(word, "write") == 0)
            add_path(m, prefix, path, WRITE);
        else if (strcmp(word, "read") == 0 && inside && !is_workspace(path))
            add_path(m, prefix, path, PROTECT);
        else if (strcmp(word, "read") == 0)
            add_path(m, prefix, path, READ);
        else
            lose_item(m, prefix, path, "neither read, write nor none");
    }
}

static void take_permission_network(import *m, const char *prefix, const csn_jval *v)
{
    const csn_jval *domains = csn_jval_get(v, "domains"), *effect;
    const char *host = NULL;
    const char *mode = csn_jval_string(csn_jval_get(v, "mode"));
    bool limited = csn_jval_has(v, "mode") && !(mode && strcmp(mode, "full") == 0);
    bool enabled = !limited && is_bool(csn_jval_get(v, "enabled"), true);
    bool listed = false;

    if (domains && !csn_jval_is_object(domains))
        lose(m, prefix, "domains is not a table");
    for (size_t i = 0; (effect = csn_jval_member(domains, i, &host)); i++) {
        const char *word = csn_jval_string(effect);
        bool allow = word && strcmp(word, "allow") == 0;
        listed |= allow;
        if (!allow && !(word && strcmp(word, "deny") == 0))
            lose_item(m, prefix, host, "neither allow nor deny");
        else if (enabled || !allow)
            add_host(m, prefix, host, allow);
    }
    m->all_hosts = enabled && !listed;
}

static void take_base(import *m, const char *key, const char *name)
{
    if (strcmp(name, ":workspace") == 0 || strcmp(name, "workspace-write") == 0)
        m->writable = true;
    else if (strcmp(name, ":read-only") != 0 && strcmp(name, "read-only") != 0)
        lose_item(m, key, name, "name what is needed: nothing here turns a jail off");
}

static void take_permission(import *m, const char *name, const csn_jval *v)
{
    const csn_jval *member;
    const char *key = NULL;
    const char *prefix = csn_arena_printf(m->arena, "permissions.%s.", name);
    const char *files = csn_arena_printf(m->arena, "permissions.%s.filesystem", name);
    const char *net = csn_arena_printf(m->arena, "permissions.%s.network", name);

    if (!prefix || !files || !net) {
        m->out_of_memory = true;
        return;
    }
    for (size_t i = 0; (member = csn_jval_member(v, i, &key)); i++) {
        const csn_jval *inner;
        const char *sub = NULL;
        if (strcmp(key, "extends") == 0 && csn_jval_is_string(member))
            take_base(m, prefix, csn_jval_string(member));
        else if (strcmp(key, "filesystem") == 0 && csn_jval_is_object(member))
            take_filesystem(m, files, member, false);
        else if (strcmp(key, "network") != 0 || !csn_jval_is_object(member))
            take_member(m, permission_rows, prefix, key, member, "an unknown key");
        else
            take_permission_network(m, net, member);
        bool network = strcmp(key, "network") == 0 && csn_jval_is_object(member);
        for (size_t k = 0; network && (inner = csn_jval_member(member, k, &sub)); k++) {
            const char *dotted = csn_arena_printf(m->arena, "network.%s", sub);
            bool full = strcmp(sub, "mode") == 0 && csn_jval_string(inner) &&
                        strcmp(csn_jval_string(inner), "full") == 0;
            if (dotted && strcmp(sub, "enabled") != 0 && strcmp(sub, "domains") != 0 && !full)
                take_member(m, permission_rows, prefix, dotted, inner, "an unknown key");
        }
    }
}

static void take_permissions(import *m, const csn_jval *root, const char *chosen)
{
    const csn_jval *all = csn_jval_get(root, "permissions"), *one;
    const char *name = NULL;
    bool found = false;

    if (chosen && chosen[0] == ':')
        take_base(m, "default_permissions", chosen);
    for (size_t i = 0; (one = csn_jval_member(all, i, &name)); i++) {
        bool is_chosen = chosen && strcmp(name, chosen) == 0;
        found |= is_chosen;
        if (is_chosen)
            take_permission(m, name, one);
        else
            lose_item(m, "permissions", name, "not the one that default_permissions names");
    }
    if (chosen && chosen[0] != ':' && !found)
        lose_item(m, "default_permissions", chosen, "there are no such permissions");
}

static void take_codex(import *m, const csn_jval *root)
{
    const char *chosen = csn_jval_string(csn_jval_get(root, "default_permissions"));
    const char *mode = csn_jval_string(csn_jval_get(root, "sandbox_mode"));
    const csn_jval *write = csn_jval_get(root, "sandbox_workspace_write"), *v;
    const csn_jval *access = csn_jval_get(write, "network_access");
    bool active = !chosen && mode && strcmp(mode, "workspace-write") == 0;
    const char *key = NULL;

    for (size_t i = 0; (v = csn_jval_member(root, i, &key)); i++) {
        if (strcmp(key, "default_permissions") == 0 || strcmp(key, "permissions") == 0)
            continue;
        if (strcmp(key, "sandbox_mode") == 0 && chosen)
            lose(m, key, "default_permissions takes its place");
        else if (strcmp(key, "sandbox_mode") == 0 && mode)
            take_base(m, key, mode);
        else if (v == write && !active)
            lose(m, key, OTHER_MODE);
        else
            take_member(m, codex_rows, "", key, v, "not a rule of a sandbox");
    }
    m->all_hosts = active && access && is_bool(access, true);
    take_permissions(m, root, chosen);
}

/* ---- the result ---------------------------------------------------------------------- */

static void put_list(csn_json *j, const char *key, char *const *list)
{
    if (!list)
        return;
    csn_json_key(j, key);
    csn_json_array(j);
    for (; *list; list++)
        csn_json_str(j, *list);
    csn_json_array_end(j);
}

static void put_rules(csn_json *j, char *const *paths)
{
    if (!paths)
        return;
    csn_json_key(j, "rules");
    csn_json_array(j);
    for (; *paths; paths++) {
        csn_json_object(j);
        csn_json_key(j, "op");
        csn_json_array(j);
        csn_json_str(j, "write");
        csn_json_str(j, "delete");
        csn_json_array_end(j);
        csn_json_kstr(j, "effect", "deny");
        csn_json_kstr(j, "path", *paths);
        csn_json_object_end(j);
    }
    csn_json_array_end(j);
}

static bool any_below(char *const *list, const char *dir)
{
    size_t len = strlen(dir);

    for (; list && *list; list++)
        if (strncmp(*list, dir, len) == 0 &&
            ((*list)[len] == '/' || (len && dir[len - 1] == '/')))
            return true;
    return false;
}

/* A hidden directory of the host in which another is shared: of the former only the latter is
 * visible, and hiding it would hide both. */
static void drop_parents(import *m)
{
    size_t n = 0;

    for (size_t i = 0; m->hide && m->hide[i]; i++) {
        char *path = m->hide[i];
        bool outside = path[0] == '/' || path[0] == '~';
        if (outside && (any_below(m->read, path) || any_below(m->write, path)))
            free(path);
        else
            m->hide[n++] = path;
    }
    if (m->hide)
        m->hide[n] = NULL;
    if (m->hide && n == 0) {
        csn_strv_free(m->hide);
        m->hide = NULL;
    }
}

static csn_status put_policy(const import *m, csn_buf *out, csn_error **err)
{
    csn_json j;

    csn_json_begin(&j, out);
    csn_json_object(&j);
    csn_json_kstr(&j, "workspace", m->writable ? "." : ".:ro");
    put_list(&j, "read", m->read);
    put_list(&j, "write", m->write);
    put_list(&j, "deny_missing_ok", m->hide);
    put_rules(&j, m->protect);
    csn_json_key(&j, "network");
    csn_json_object(&j);
    csn_json_kstr(&j, "mode", m->all_hosts ? "all" : "none");
    put_list(&j, "allow", m->hosts);
    put_list(&j, "deny", m->hosts_deny);
    csn_json_object_end(&j);
    csn_json_object_end(&j);
    if (csn_json_end(&j) != 0 || m->out_of_memory)
        return csn_fail(err, CSN_NOMEM, "out of memory");
    return CSN_OK;
}

static csn_status read_document(const char *format, const char *text, size_t len,
                                const char *what, csn_jval **ret, csn_error **err)
{
    csn_autobuf json;

    csn_buf_init(&json, 8 * CSN_CONFIG_FILE_MAX);
    if (strcmp(format, "srt") == 0)
        return csn_json_parse(text, len, what, ret, err);
    csn_status st = csn_toml_to_json(text, len, what, &json, err);
    return st < 0 ? st : csn_json_parse(json.data, json.len, what, ret, err);
}

csn_status csn_policy_import(const char *format, const char *text, size_t len, const char *what,
                             csn_buf *out, csn_import_lost_fn lost, void *ctx, csn_error **err)
{
    CSN_CLEANUP(csn_arena_freep) csn_arena *a = csn_arena_new();
    CSN_CLEANUP(csn_jval_freep) csn_jval *root = NULL;
import m = {.lost = lost, .ctx = ctx, .arena = a };
    const csn_jval *v;
    const char *key = NULL;

    if (!a)
        return csn_fail(err, CSN_NOMEM, "out of memory");
    csn_status st = read_document(format, text, len, what, &root, err);
    if (st == CSN_OK && !csn_jval_is_object(root))
        st = csn_fail(err, CSN_INVALID, "%s: expected an object", what);
    if (st < 0)
        return st;
    if (strcmp(format, "codex") == 0)
        take_codex(&m, root);
    else
        for (size_t i = 0; (v = csn_jval_member(root, i, &key)); i++)
            take_member(&m, srt_rows, "", key, v, "an unknown key");
    drop_parents(&m);
    st = put_policy(&m, out, err);
    char **lists[] = {m.hosts, m.hosts_deny, m.read, m.write, m.hide, m.protect};
    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++)
        csn_strv_free(lists[i]);
    return st;
}
