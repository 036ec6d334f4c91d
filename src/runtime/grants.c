/* grants.c: opens the directories that file calls may access, and makes and checks the rules
 * for paths.
 *
 * The caller's configuration is trusted; paths passed to csn_runtime_grant_of come from the
 * agent. Each grant is an O_PATH descriptor that is opened once: replacing the directory later
 * has no effect. Rules use resolved paths, because they are compared as text with the paths
 * that the kernel reports. The grant of a path is chosen by name and only selects where the
 * kernel starts to resolve: a path that starts with the host path of a grant is resolved there,
 * any other below the base. The kernel keeps the resolution below the grant. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/glob.h"
#include "base/path.h"
#include "base/strv.h"
#include "os/beneath.h"
#include "runtime/cow.h"
#include "runtime/files.h"

/* readlink returns at most one page: NULL for a longer path. */
char *csn_runtime_fd_path(int fd)
{
    char link[40], path[PATH_MAX + 1];

    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, path, sizeof(path));
    if (n <= 0 || (size_t)n >= sizeof(path) || path[0] != '/')
        return NULL;
    return strndup(path, (size_t)n);
}

/* st_nlink alone is not enough, because some file systems do not count links of directories;
 * the kernel also appends " (deleted)" to the path of a removed one. */
bool csn_runtime_is_removed(int fd)
{
    static const char mark[] = " (deleted)";
    struct stat st;

    if (fd < 0 || fstat(fd, &st) < 0 || st.st_nlink != 0)
        return false;
    csn_autofree char *path = csn_runtime_fd_path(fd);
    size_t len = path ? strlen(path) : 0, n = strlen(mark);
    return len > n && strcmp(path + len - n, mark) == 0;
}

/* ---- opening ---- */

/* Expands a path of the configuration: `~` is the caller's home, a relative path starts at
 * `from`. */
static char *config_path(const char *path, const char *from)
{
    const char *home = getenv("HOME");
    char *out = NULL;

    if (path[0] == '~' && (path[1] == '/' || path[1] == '\0') && home)
        return asprintf(&out, "%s%s", home, path + 1) < 0 ? NULL : out;
    if (path[0] == '/' || !from)
        return strdup(path);
    return asprintf(&out, "%s/%s", from, path) < 0 ? NULL : out;
}

/* Takes directory `i` of those that the keeper holds: the one that was opened, with the path
 * that it had then. False: there is none. */
static bool take_held(csn_runtime *rt, size_t i, bool writable, csn_grant *ret)
{
    bool held = i < rt->dir_count && i < csn_strv_len((const char *const *)rt->record.dirs);
    char *path = held ? strdup(rt->record.dirs[i]) : NULL;

    if (!path)
        return false;
    *ret = (csn_grant){.path = path, .fd = csn_steal_fd(&rt->dirs[i]), .writable = writable};
    return true;
}

/* Resolves the path first, because the rules compare it with paths that the kernel reports. The
 * caller's own tree is trusted not to change between realpath and open. For a connected sandbox
 * a missing directory gets fd -1, and calls that need it fail (target.c). */
static csn_status grant_open(const csn_runtime *rt, const char *option, const char *asked,
                             bool writable, csn_grant *ret, csn_error **err)
{
    csn_autofree char *path = config_path(asked, NULL);
    csn_autofree char *real = path ? realpath(path, NULL) : NULL;
    csn_autofree char *shown = csn_path_printable(asked);

    if (!path || !shown)
        return csn_fail(err, CSN_NOMEM, "out of memory");
    csn_autofd int fd = real ? open(real, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
    if (fd < 0 && !rt->connected)
        return csn_fail_errno(err, errno, "%s: %s", option, shown);
    *ret = (csn_grant){.path = real ? CSN_STEAL(real) : CSN_STEAL(path),
                       .fd = csn_steal_fd(&fd),
                       .writable = writable};
    return CSN_OK;
}

/* Creates `home` in the directory of the sandbox. */
static csn_status private_home(csn_runtime *rt, csn_error **err)
{
    csn_autofree char *path = NULL;
    csn_status st = csn_runtime_run_dir(rt, err);

    if (st < 0)
        return st;
    if (mkdirat(rt->run_fd, "home", 0700) < 0 && errno != EEXIST)
        return csn_fail_errno(err, errno, "private home");
    if (asprintf(&path, "%s/home", rt->run_path) < 0) {
        path = NULL;
        return csn_fail(err, CSN_NOMEM, "out of memory");
    }
    return grant_open(rt, "home", path, true, &rt->home, err);
}

/* grant_count counts the grants opened so far, so that a failure closes only those. */
static csn_status grants_add(csn_runtime *rt, const char *option, const char *const *dirs,
                             bool writable, csn_error **err)
{
    for (size_t i = 0; dirs && dirs[i]; i++) {
        csn_grant *g = &rt->grants[rt->grant_count];
        csn_status st = CSN_OK;
        if (!take_held(rt, 1 + rt->grant_count, writable, g))
            st = grant_open(rt, option, dirs[i], writable, g, err);
        if (st < 0)
            return st;
        rt->grant_count++;
    }
    return CSN_OK;
}

/* ---- rules ---- */

/* Resolves the part of the path that exists and keeps the rest, including everything from the
 * first component with a glob character on. malloc'd. */
static char *resolve_prefix(const char *path)
{
    size_t end = strlen(path), magic = strcspn(path, "*?[{\\");
    char *out = NULL;

    if (magic < end && csn_glob_has_magic(path)) {
        end = magic; /* to the slash before the glob */
        while (end > 0 && path[end - 1] != '/')
            end--;
    }
    for (;;) {
        while (end > 1 && path[end - 1] == '/')
            end--;
        csn_autofree char *head = strndup(path, end ? end : 1);
        csn_autofree char *real = head ? realpath(head, NULL) : NULL;
        const char *rest = path + end + strspn(path + end, "/");
        if (real && asprintf(&out, "%s%s%s", strcmp(real, "/") == 0 ? "" : real,
                             *rest || !real[1] ? "/" : "", rest) >= 0)
            return out;
        if (!head || real || end <= 1)
            return strdup(path);
        while (end > 0 && path[end - 1] != '/')
            end--;
    }
}

/* A misspelt denial would permit what it was meant to deny. */
static csn_status check_exists(const csn_runtime *rt, const char *const *deny, csn_error **err)
{
    for (size_t i = 0; !rt->connected && deny && deny[i]; i++) {
        csn_autofree char *path = config_path(deny[i], rt->base.path);
        struct stat st;
        if (path && (csn_glob_has_magic(path) || lstat(path, &st) == 0 ||
                     (errno != ENOENT && errno != ENOTDIR)))
            continue;
        csn_autofree char *shown = csn_path_printable(deny[i]);
        csn_status failed =
            csn_fail_errno(err, path ? errno : ENOMEM, "deny %s", shown ? shown : "");
        return csn_error_advise(failed, err,
                                "--deny-missing-ok denies a path that may not exist yet");
    }
    return CSN_OK;
}

/* A rule for the host's directory holds for its copy (cow.h), which file calls use. Owns real.
 */
static char *move_to_copy(const csn_runtime *rt, char *real)
{
    const char *below = real && rt->cow ? csn_path_below(real, rt->cow->host) : NULL;
    char *moved = NULL;

    if (!below)
        return real;
    int n = asprintf(&moved, "%s%s%s", rt->base.path, *below ? "/" : "", below);
    free(real);
    return n < 0 ? NULL : moved;
}

static csn_status resolve_all(const csn_runtime *rt, const char *const *in, char ***ret,
                              csn_error **err)
{
    for (size_t i = 0; in && in[i]; i++) {
        csn_autofree char *path = config_path(in[i], rt->base.path);
        csn_autofree char *real = path ? move_to_copy(rt, resolve_prefix(path)) : NULL;
        if (!real || csn_strv_push(ret, real) != 0)
            return csn_fail(err, CSN_NOMEM, "out of memory");
    }
    return CSN_OK;
}

/* The rules keep the order of the lists (read, then write), because a rule's source is reported
 * by its index. */
static csn_status rules_open(csn_runtime *rt, csn_error **err)
{
    const csn_config *c = rt->config;
    CSN_CLEANUP(csn_strv_freep)
    char **read = NULL, **write = NULL, **deny = NULL, **missing = NULL, **paths = NULL;
    size_t missing_count = csn_strv_len(c->deny_missing_ok);
    csn_autofree csn_rule *rules = calloc(c->rule_count + 1, sizeof(*rules));
    csn_autofree csn_denied *later = calloc(missing_count + 1, sizeof(*later));
    csn_status st = rules && later ? check_exists(rt, c->deny, err)
                                   : csn_fail(err, CSN_NOMEM, "out of memory");

    for (size_t i = 0; st == CSN_OK && i < rt->grant_count; i++) {
        if (csn_strv_push(rt->grants[i].writable ? &write : &read, rt->grants[i].path) != 0)
            st = csn_fail(err, CSN_NOMEM, "out of memory");
    }
    if (st == CSN_OK)
        st = resolve_all(rt, c->deny, &deny, err);
    if (st == CSN_OK)
        st = resolve_all(rt, c->deny_missing_ok, &missing, err);
    for (size_t i = 0; st == CSN_OK && i < c->rule_count; i++) {
        /* Rules for commands and hosts are resolved too, to keep the indexes equal; the result
         * is not used. */
        const char *const one[] = {c->rules[i].path ? c->rules[i].path : "", NULL};
        st = resolve_all(rt, one, &paths, err);
    }
    if (st < 0)
        return st;
    for (size_t i = 0; i < c->rule_count; i++) {
        bool file = c->rules[i].ops & (CSN_OP_READ | CSN_OP_WRITE | CSN_OP_DELETE);
        rules[i] = c->rules[i];
        rules[i].path = file ? paths[i] : c->rules[i].path;
    }
    for (size_t i = 0; i < missing_count; i++)
        later[i] = (csn_denied){.path = missing[i],
                                .ops = CSN_OP_READ | CSN_OP_WRITE | CSN_OP_DELETE,
                                .word = "deny",
                                .list = "config.deny_missing_ok",
                                .index = (long)i};
    const csn_rules_input in = {.base = rt->base.path,
                                .home = rt->home.path,
                                .denied = later,
                                .denied_count = missing_count,
                                .read = (const char *const *)read,
                                .write = (const char *const *)write,
                                .deny = (const char *const *)deny,
                                .rules = rules,
                                .rule_count = c->rule_count};
    return csn_rules_new(&in, &rt->rules, err);
}

csn_status csn_runtime_grants_open(csn_runtime *rt, csn_error **err)
{
    const csn_config *c = rt->config;
    const char *workspace = rt->cow ? rt->cow->copy : c->workspace ? c->workspace : ".";
    size_t count = csn_strv_len(c->read) + csn_strv_len(c->write);

    rt->base.fd = rt->home.fd = -1;
    csn_status st = CSN_OK;
    if (!take_held(rt, 0, true, &rt->base))
        st = grant_open(rt, "workspace", workspace, true, &rt->base, err);
    if (st < 0)
        return st;
    st =
        c->home ? grant_open(rt, "home", c->home, true, &rt->home, err) : private_home(rt, err);
    if (st < 0)
        return st;
    rt->grants = calloc(count + 1, sizeof(*rt->grants));
    if (!rt->grants)
        return csn_fail(err, CSN_NOMEM, "out of memory");
    st = grants_add(rt, "read", c->read, false, err);
    if (st == CSN_OK)
        st = grants_add(rt, "write", c->write, true, err);
    return st == CSN_OK ? rules_open(rt, err) : st;
}

/* path is NULL if the grant was never opened; a zeroed grant has fd 0, which must stay open. */
static void grant_close(csn_grant *g)
{
    if (g->path && g->fd >= 0)
        close(g->fd);
    free(g->path);
    *g = (csn_grant){.fd = -1};
}

void csn_runtime_grants_close(csn_runtime *rt)
{
    grant_close(&rt->base);
    grant_close(&rt->home);
    grant_close(&rt->root);
    for (size_t i = 0; i < rt->grant_count; i++)
        grant_close(&rt->grants[i]);
    free(rt->grants);
    rt->grants = NULL;
    rt->grant_count = 0;
    csn_rules_free(rt->rules);
    rt->rules = NULL;
}

/* ---- mapping ---- */

typedef struct best {
    const csn_grant *grant;
    const char *rest;
} best;

/* If several grants match, because one is inside another, prefer a writable one, then the
 * outermost, since `..` can go further up in it. */
static void consider(best *b, const csn_grant *g, const char *alias, const char *path)
{
    if (!g->path)
        return;
    const char *rest = csn_path_below(path, g->path);
    if (!rest && alias && alias[0] == '/')
        rest = csn_path_below(path, alias);
    if (!rest || (b->grant && b->grant->writable && !g->writable))
        return;
    if (!b->grant || (g->writable && !b->grant->writable) || strlen(rest) > strlen(b->rest))
        *b = (best){g, rest};
}

const csn_grant *csn_runtime_grant_of(const csn_runtime *rt, const char *path,
                                      const char **ret_rest)
{
    const csn_config *c = rt->config;
    best b = {0};

    /* File calls see the same tree as commands: all paths start at the root. */
    if (rt->level != CSN_LEVEL_NONE) {
        *ret_rest = path[0] ? path : ".";
        return &rt->root;
    }
    if (path[0] == '/') {
        size_t reads = c ? csn_strv_len(c->read) : 0;
        const char *named = rt->cow ? rt->cow->host : c ? c->workspace : NULL;
        consider(&b, &rt->base, named, path);
        consider(&b, &rt->home, c ? c->home : NULL, path);
        for (size_t i = 0; i < rt->grant_count; i++) {
            const char *alias = NULL; /* the configured path */
            if (c)
                alias = i < reads ? c->read[i] : c->write[i - reads];
            consider(&b, &rt->grants[i], alias, path);
        }
    }
    if (!b.grant)
        b = (best){&rt->base, path + strspn(path, "/")};
    /* An empty rest means the grant itself. */
    *ret_rest = b.rest[0] ? b.rest : ".";
    return b.grant;
}

/* ---- checking ---- */

/* No grant overrides `deny` or a rule that denies, so the hint is to remove it. */
static char *hint_for(const csn_runtime *rt, uint32_t op, const char *resolved,
                      const csn_rule_hit *hit)
{
    static const char list[] = "config.deny[", later[] = "config.deny_missing_ok[",
                      rules[] = "config.rules[";
    const char *source = hit->source ? hit->source : "";
    bool missing_ok = csn_str_starts(source, later);
    const char *const *deny = !rt->config  ? NULL
                              : missing_ok ? rt->config->deny_missing_ok
                                           : rt->config->deny;

    char *hint = NULL;

    if (csn_str_starts(source, rules) && rt->config &&
        strtoul(source + strlen(rules), NULL, 10) < rt->config->rule_count)
        return asprintf(&hint, "leave out %s", source + strlen("config.")) < 0 ? NULL : hint;
    if (!missing_ok && !csn_str_starts(source, list))
        return csn_rules_hint(op, resolved);
    size_t i = strtoul(strchr(source, '[') + 1, NULL, 10);
    csn_autofree char *shown = i < csn_strv_len(deny) ? csn_path_printable(deny[i]) : NULL;
    return shown && asprintf(&hint, "leave out --deny%s %s", missing_ok ? "-missing-ok" : "",
                             shown) >= 0
               ? hint
               : NULL;
}

csn_status csn_runtime_check_rules(const csn_runtime *rt, uint32_t op, const char *asked,
                                   const char *resolved, csn_error **err)
{
    if (!rt->rules)
        return CSN_OK;
    csn_rule_hit hit = {.allowed = true};
    uint32_t bit = 1; /* the first refused operation in `op` */
    for (; bit <= CSN_OP_NET; bit <<= 1) {
        if ((op & bit) != 0)
            hit = csn_rules_check(rt->rules, bit, resolved);
        if (!hit.allowed)
            break;
    }
    if (hit.allowed)
        return rt->check_change && !(op & CSN_OP_BY_USER) &&
                       (op & (CSN_OP_WRITE | CSN_OP_DELETE)) != 0
                   ? rt->check_change(rt, op, asked, resolved, err)
                   : CSN_OK;
    csn_autofree char *hint = hint_for(rt, bit, resolved, &hit);
    csn_autofree char *shown = csn_path_printable(asked);
    /* A refusal without a rule text comes from a directory in `read`, or from Landlock. */
    bool landlock = rt->level == CSN_LEVEL_LANDLOCK_ONLY;
    const char *none = landlock ? "not granted" : "read-only directory";
    const char *rule = hit.rule ? hit.rule : none;
    csn_denial d = {.op = csn_op_name(bit),
                    .target = asked,
                    .resolved = resolved,
                    .rule = rule,
                    .source = hit.source ? hit.source
                              : landlock ? "Landlock"
                                         : "config.read",
                    .hint = hint};
    csn_status st = csn_fail(err, CSN_DENIED, "%s %s: denied by policy (%s)", d.op,
                             shown ? shown : "path", rule);
    if (hint)
        st = csn_error_advise(st, err, "%s", hint);
    return csn_error_deny(st, err, &d);
}

/* The error for a path that the file permissions, not a rule, make inaccessible. */
static csn_status unreadable(const csn_target *t, csn_error **err)
{
    csn_autofree char *hint = csn_rules_hint(t->op, t->asked);
    csn_denial d = {.op = csn_op_name(t->op),
                    .target = t->asked,
                    .resolved = t->asked,
                    .rule = "permissions of the files",
                    .source = "the file system",
                    .hint = hint};
    csn_status st = csn_target_fail(t, EACCES, err);

    if (hint)
        st = csn_error_advise(st, err, "%s", hint);
    return csn_error_deny(st, err, &d);
}

/* Resolves the part of the path that exists, so that `why` also works for missing files. For a
 * deletion the last link is not followed. */
csn_status csn_runtime_check_path(void *state, uint32_t op, const char *path,
                                  char **ret_resolved, csn_error **err)
{
    csn_runtime *rt = state;
    csn_target t = csn_target_of(rt, op, path, 0);
    csn_autofree char *resolved = NULL, *more = NULL;
    csn_autoparent p = CSN_PARENT_NONE;

    csn_autofd int fd = csn_beneath_open(t.grant->fd, t.rest, O_PATH, t.how);
    if (fd == -ENOENT || (fd >= 0 && op == CSN_OP_DELETE && strcmp(t.rest, ".") != 0)) {
        unsigned follow = op == CSN_OP_DELETE ? 0 : CSN_PARENT_FOLLOW;
        int rc = csn_parent_find(t.grant->fd, t.rest, t.how | follow, &p);
        if (rc < 0)
            return csn_target_fail(&t, -rc, err);
        csn_autofree char *missing = csn_parent_missing(&p);
        if (!missing || asprintf(&more, "%s%s%s", missing, *missing ? "/" : "", p.name) < 0) {
            more = NULL;
            return csn_fail(err, CSN_NOMEM, "out of memory");
        }
        resolved = csn_target_path(&t, p.fd, more);
    } else if (fd == -EACCES && path[0] == '/') {
        csn_status st = csn_runtime_check_rules(rt, op, path, path, err);
        return st < 0 ? st : unreadable(&t, err);
    } else if (fd < 0) {
        return csn_target_fail(&t, -fd, err);
    } else {
        resolved = csn_target_path(&t, fd, "");
    }
    if (!resolved)
        return csn_fail(err, CSN_UNAVAILABLE,
                        "the kernel does not report where the path leads");
    csn_status st = csn_runtime_check_rules(rt, op, path, resolved, err);
    if (st == CSN_OK)
        *ret_resolved = CSN_STEAL(resolved);
    return st;
}
