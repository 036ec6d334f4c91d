/* protected_rules.c: reads exceptions for protected files, and checks file operations against
 * them.
 *
 * The rules are read once; file operations check each path that they write or delete. The paths
 * come from agents and were resolved by the kernel (runtime/target.c). Invariant: only a rule
 * that names a protected file allows writing it; a wide grant (`--write /src`, a rule for `**`)
 * does not. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backend/jail/jail.h"
#include "backend/jail/protected.h"
#include "base/error.h"
#include "base/path.h"
#include "base/strv.h"
#include "policy/protected_names.h"

#define SOURCE "protected by default"

/* ---- exceptions ---- */

static csn_status push_exception(csn_protected *g, csn_protected_exception one, csn_error **err)
{
    if (!one.path && !one.glob)
        return csn_fail(err, CSN_NOMEM, "rules");
    g->exceptions[g->exception_count++] = one;
    return CSN_OK;
}

static csn_status add_rule(csn_protected *g, const char *path, csn_error **err)
{
    bool relative = path[0] != '/';
    csn_protected_exception one = {.from_base = relative};
    const char *text = path + strspn(path, "/");

    if (strstr(path, ".."))
        return CSN_OK;
    one.target = !csn_protected_name_match_tree(text, NULL);
    if (one.target && csn_glob_has_magic(path))
        return CSN_OK;
    if (!csn_glob_has_magic(path)) {
        one.path = relative ? csn_arena_printf(g->arena, "%s/%s", g->base, path)
                            : csn_arena_strdup(g->arena, path);
        return push_exception(g, one, err);
    }
    one.pattern = csn_arena_strdup(g->arena, text);
    if (!one.pattern)
        return csn_fail(err, CSN_NOMEM, "rules");
    csn_status st = csn_glob_compile(text, &one.glob, err);
    return st < 0 ? st : push_exception(g, one, err);
}

/* The part of a host path below the workspace; NULL: it is outside. */
static const char *below_share(const csn_jail_share *share, const char *path, char **ret_hold)
{
    const char *below = csn_path_below(path, share->inside);

    if (!below)
        below = csn_path_below(path, share->host);
    if (!below && (*ret_hold = realpath(path, NULL)))
        below = csn_path_below(*ret_hold, share->host);
    return below;
}

/* The path inside, malloc'd, if `asked` (a host path of --write) is in this workspace; else
 * NULL. *ret_target: it has no protected name. */
static char *place_inside(const csn_jail_share *share, const char *asked, bool *ret_target)
{
    csn_autofree char *cwd = asked[0] == '/' ? NULL : getcwd(NULL, 0), *path = NULL;
    csn_autofree char *hold = NULL;
    char *out = NULL;

    if (!share->writable || strcmp(share->option, "workspace") != 0 ||
        asprintf(&path, "%s%s%s", cwd ? cwd : "", cwd ? "/" : "", asked) < 0)
        return NULL;
    const char *below = below_share(share, path, &hold);
    if (!below || !*below || strstr(below, ".."))
        return NULL;
    *ret_target = !csn_protected_name_match_tree(below, NULL);
    size_t len = strlen(below);
    while (len > 1 && below[len - 1] == '/')
        len--;
    return asprintf(&out, "%s/%.*s", share->inside, (int)len, below) < 0 ? NULL : out;
}

bool csn_protected_is_rule_for(const csn_jail_share *shares, size_t count, const char *path)
{
    for (size_t i = 0; i < count; i++) {
        bool target = false;
        csn_autofree char *place = place_inside(&shares[i], path, &target);
        if (place && !target)
            return true;
    }
    return false;
}

static csn_status add_written(csn_protected *g, const csn_jail_share *shares, size_t count,
                              const char *path, csn_error **err)
{
    for (size_t i = 0; i < count; i++) {
        csn_protected_exception one = {0};
        csn_autofree char *place = place_inside(&shares[i], path, &one.target);
        one.path = place ? csn_arena_strdup(g->arena, place) : NULL;
        if (place)
            return push_exception(g, one, err);
    }
    return CSN_OK;
}

csn_status csn_protected_read_rules(csn_runtime *rt, const csn_jail_share *shares, size_t count,
                                    csn_error **err)
{
    const csn_config *c = rt->config;
    csn_protected *g = rt->jail->protected;
    size_t most = csn_strv_len(c->write) + c->rule_count;
    csn_status st = CSN_OK;

    if (most == 0)
        return CSN_OK;
    g->exceptions = csn_arena_array(g->arena, most, sizeof(*g->exceptions));
    if (!g->exceptions)
        return csn_fail(err, CSN_NOMEM, "rules");
    for (size_t i = 0; st == CSN_OK && c->write && c->write[i]; i++)
        st = add_written(g, shares, count, c->write[i], err);
    for (size_t i = 0; st == CSN_OK && i < c->rule_count; i++)
        if (c->rules[i].allow && (c->rules[i].ops & CSN_OP_WRITE) && c->rules[i].path)
            st = add_rule(g, c->rules[i].path, err);
    return st;
}

static bool matches(const csn_protected *g, const csn_protected_exception *one,
                    const char *path)
{
    if (one->target)
        return false;
    if (one->path)
        return csn_path_below(path, one->path) != NULL;
    const char *text = one->from_base ? csn_path_below(path, g->base) : path + 1;
    return text && csn_glob_match(one->glob, text);
}

bool csn_protected_is_excepted(const csn_protected *g, const char *path)
{
    for (size_t i = 0; i < g->exception_count; i++)
        if (matches(g, &g->exceptions[i], path))
            return true;
    return false;
}

bool csn_protected_is_excepted_target(const csn_protected *g, const char *path)
{
    for (size_t i = 0; i < g->exception_count; i++)
        if (g->exceptions[i].target && strcmp(g->exceptions[i].path, path) == 0)
            return true;
    return csn_protected_is_excepted(g, path);
}

bool csn_protected_has_exception(const csn_protected *g, const char *path)
{
    for (size_t i = 0; i < g->exception_count; i++) {
        const csn_protected_exception *one = &g->exceptions[i];
        if (one->target)
            continue;
        if (matches(g, one, path) || (one->path && csn_path_below(one->path, path)))
            return true;
        const char *text = one->from_base ? csn_path_below(path, g->base) : path + 1;
        if (one->glob && text && csn_glob_may_descend(one->glob, text))
            return true;
    }
    return false;
}

/* ---- file operations ---- */

const char *csn_protected_rule(const csn_protected_tree *t, const char *below, uint32_t tree,
                               const char **ret_place)
{
    const char *rule = NULL;

    if (ret_place)
        *ret_place = NULL;
    if (tree ? csn_protected_name_match_tree(below, &rule)
             : csn_protected_name_match(below, &rule))
        return rule;
    for (size_t i = 0; i < t->place_count; i++) {
        const csn_protected_place *p = &t->places[i];
        size_t n = strlen(p->path);
        if (!p->rule || strncmp(below, p->path, n) != 0 || (below[n] && below[n] != '/'))
            continue;
        if (ret_place)
            *ret_place = p->path;
        return p->rule;
    }
    return NULL;
}

/* opens: the path that --write must name; NULL: the resolved one. */
static csn_status refuse(uint32_t op, const char *asked, const char *resolved, const char *rule,
                         const char *opens, csn_error **err)
{
    csn_autofree char *hint = csn_rules_hint(CSN_OP_WRITE, opens ? opens : resolved);
    csn_autofree char *shown = csn_path_printable(asked);
    const csn_denial d = {.op = (op & CSN_OP_DELETE) != 0 ? "delete" : "write",
                          .target = asked,
                          .resolved = resolved,
                          .rule = rule,
                          .source = SOURCE,
                          .hint = hint};
    csn_status st =
        csn_fail(err, CSN_DENIED, "%s %s: " SOURCE " (%s)", d.op, shown ? shown : "path", rule);
    if (hint)
        st = csn_error_advise(st, err, "%s", hint);
    return csn_error_deny(st, err, &d);
}

/* The workspace that contains the path; *ret_below: its path there. NULL: none. */
static const csn_protected_tree *tree_of(const csn_protected *g, const char *resolved,
                                         const char **ret_below)
{
    for (size_t i = 0; i < g->tree_count; i++) {
        *ret_below = csn_path_below(resolved, g->trees[i].inside);
        if (*ret_below && **ret_below)
            return &g->trees[i];
    }
    return NULL;
}

static csn_status check_layout(const csn_runtime *rt, uint32_t op, const char *asked,
                               const char *resolved, int content, csn_error **err)
{
    const csn_protected *g = rt->jail->protected;
    const char *below = NULL;
    const csn_protected_tree *t = tree_of(g, resolved, &below);
    csn_autofree char *rule =
        t ? csn_protected_layout(rt, t, below, (op & CSN_OP_TREE) != 0, content) : NULL;

    if (!rule || csn_protected_is_excepted_target(g, resolved))
        return CSN_OK;
    return refuse(op, asked, resolved, rule, NULL, err);
}

csn_status csn_protected_check_content(const csn_runtime *rt, const char *asked,
                                       const char *resolved, int content, csn_error **err)
{
    return check_layout(rt, CSN_OP_WRITE, asked, resolved, content, err);
}

csn_status csn_protected_check(const csn_runtime *rt, uint32_t op, const char *asked,
                               const char *resolved, csn_error **err)
{
    const csn_protected *g = rt->jail->protected;
    const char *place = NULL, *below = NULL;
    const csn_protected_tree *t = tree_of(g, resolved, &below);
    const char *rule = t ? csn_protected_rule(t, below, op & CSN_OP_TREE, &place) : NULL;

    if (!rule)
        return (op & CSN_OP_WRITE) != 0 ? check_layout(rt, op, asked, resolved, -1, err)
                                        : CSN_OK;
    if (csn_protected_is_excepted(g, resolved))
        return CSN_OK;
    csn_autofree char *opens = NULL; /* of a target, only the whole can be permitted */
    if (place && asprintf(&opens, "%s/%s", t->inside, place) < 0)
        opens = NULL;
    return refuse(op, asked, resolved, rule, opens, err);
}

void csn_protected_report(const csn_deny_sink *denials, const csn_protected_tree *t,
                          const char *below, const char *rule, const char *resolved)
{
    csn_autofree char *path = NULL;

    if (!denials)
        return;
    if (asprintf(&path, "%s%s%s", t->inside, *below ? "/" : "", below) < 0)
        path = NULL;
    csn_autofree char *hint = path && *below ? csn_rules_hint(CSN_OP_WRITE, path) : NULL;
    const csn_denial d = {.op = "write",
                          .target = path ? path : below,
                          .resolved = resolved,
                          .rule = rule,
                          .source = SOURCE,
                          .hint = hint};
    denials->tell(denials->ctx, &d);
}
