/* explain_denial.c: probe candidate paths and build denials from the results.
 *
 * A path becomes absolute and is probed at most once; explain_hint.c decides which option a
 * denial offers. Invariants: the number of probes is bounded; a path with `..` counts only as
 * what it resolves to; all texts live in the arena of the call. Running out of memory
 * is recorded and ends the call. */
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "base/path.h"
#include "policy/explain_internal.h"
#include "policy/rules.h"

#define PATH_DIRS 24u /* of a search path, probed for one name */
#define LEVELS    8u  /* above a path that was to be created */

static const csn_explain_fact nothing;

const char *csn_explain_strdup(csn_explain_state *w, const char *s)
{
    char *copy = csn_arena_strdup(w->arena, s);

    if (s && !copy)
        w->out_of_memory = true;
    return copy;
}

/* People read these texts, so a path that cannot be printed is dropped. */
static const char *keep_clean(csn_explain_state *w, const char *s)
{
    return s && *s == '/' && csn_span_is_clean((csn_text_span){s, strlen(s)})
               ? csn_explain_strdup(w, s)
               : NULL;
}

const csn_probed_path *csn_explain_probe(csn_explain_state *w, const char *path)
{
    for (size_t i = 0; i < w->probe_count; i++)
        if (strcmp(w->probed[i].path, path) == 0)
            return &w->probed[i];
    if (w->probe_count == CSN_EXPLAIN_PROBES_MAX)
        return NULL;
    csn_probed_path *a = &w->probed[w->probe_count];
    a->path = csn_explain_strdup(w, path);
    if (!a->path)
        return NULL;
    w->probe_count++;
    a->fact = nothing;
    w->in->probe(w->in->ctx, a->path, &a->fact);
    bool unshown = a->fact.resolved && *a->fact.resolved;
    a->fact.resolved = keep_clean(w, a->fact.resolved);
    a->fact.needs = keep_clean(w, a->fact.needs);
    a->fact.source = csn_explain_strdup(w, a->fact.source);
    a->fact.rule = csn_explain_strdup(w, a->fact.rule);
    if (unshown && !a->fact.resolved)
        a->fact = nothing;
    return a;
}

static bool has_dotdot(const char *path)
{
    size_t len = strlen(path);
    return strstr(path, "/../") || (len >= 3 && strcmp(path + len - 3, "/..") == 0);
}

/* Removes "//", "/./" and a trailing slash. `..` stays: only the kernel can resolve it. */
static void tidy(char *path)
{
    char *to = path;

    for (const char *from = path; *from;) {
        from += strspn(from, "/");
        size_t n = strcspn(from, "/");
        if (n > 0 && !(n == 1 && *from == '.')) {
            *to++ = '/';
            memmove(to, from, n);
            to += n;
        }
        from += n;
    }
    if (to == path)
        *to++ = '/';
    *to = '\0';
}

/* Stores the absolute path in w->path; false: not possible. */
static bool make_absolute(csn_explain_state *w, csn_text_span s)
{
    const char *front = w->in->cwd;
    bool tilde = s.at[0] == '~' && (s.len == 1 || s.at[1] == '/');

    if (s.at[0] == '/')
        front = "";
    else if (tilde)
        front = w->in->home;
    if (!front)
        return false;
    size_t n = strlen(front);
    if (n + 1 + s.len >= sizeof(w->path))
        return false;
    memcpy(w->path, front, n);
    w->path[n] = '/';
    memcpy(w->path + n + 1, s.at + tilde, s.len - tilde);
    w->path[n + 1 + s.len - tilde] = '\0';
    tidy(w->path);
    return true;
}

const csn_probed_path *csn_explain_probe_span(csn_explain_state *w, csn_text_span s)
{
    if (!make_absolute(w, s))
        return NULL;
    const csn_probed_path *a = csn_explain_probe(w, w->path);
    /* a path with `..` counts only as what it resolves to */
    return a && has_dotdot(a->path) && !a->fact.resolved ? NULL : a;
}

static const csn_probed_path *probe_parent(csn_explain_state *w, const char *path)
{
    csn_autofree char *dir = csn_path_dir(path);

    if (!dir) {
        w->out_of_memory = true;
        return NULL;
    }
    const csn_probed_path *a = has_dotdot(path) ? NULL : csn_explain_probe(w, dir);
    return a && (a->fact.dir || a->fact.hidden) ? a : NULL;
}

const csn_probed_path *csn_explain_probe_above(csn_explain_state *w, const char *path)
{
    csn_autofree char *dir = NULL;

    for (unsigned i = 0; i < LEVELS && !has_dotdot(path); i++) {
        char *up = csn_path_dir(dir ? dir : path);
        free(dir);
        dir = up;
        if (!dir) {
            w->out_of_memory = true;
            return NULL;
        }
        const csn_probed_path *a = csn_explain_probe(w, dir);
        if (!a || a->fact.host || a->fact.inside || a->fact.hidden)
            return a && (a->fact.dir || a->fact.hidden) ? a : NULL;
    }
    return NULL;
}

const csn_probed_path *csn_explain_search(csn_explain_state *w, csn_text_span name,
                                          const char *dirs)
{
    unsigned tried = 0;

    for (const char *at = dirs; at && *at && tried < PATH_DIRS;) {
        size_t n = strcspn(at, ":"), next = n + (at[n] == ':');
        if (*at == '/' && n + 1 + name.len < sizeof(w->path)) {
            char *end = mempcpy(w->path, at, n);
            *end++ = '/';
            end = mempcpy(end, name.at, name.len);
            *end = '\0';
            tidy(w->path);
            tried++;
            const csn_probed_path *a =
                has_dotdot(w->path) ? NULL : csn_explain_probe(w, w->path);
            if (a && (a->fact.hidden || (a->fact.host && !a->fact.dir)))
                return a;
        }
        at += next;
    }
    return NULL;
}

static bool same(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

/* One grant that helps several files is one denial. */
static bool is_known(const csn_explain_state *w, const csn_denial *d)
{
    for (size_t i = 0; i < w->count; i++) {
        const csn_denial *k = &w->items[i];
        bool same_grant = d->hint && d->hint[0] == '-' && same(k->hint, d->hint);
        if (strcmp(k->op, d->op) == 0 &&
            (same_grant || (same(k->target, d->target) && same(k->resolved, d->resolved))))
            return true;
    }
    return false;
}

void csn_explain_deny(csn_explain_state *w, const csn_denial *d)
{
    if (!w->out_of_memory && w->count < CSN_EXPLAIN_DENIALS_MAX && !is_known(w, d))
        w->items[w->count++] = *d;
}

const char *csn_explain_option(csn_explain_state *w, uint32_t op, const char *path)
{
    csn_autofree char *hint = csn_rules_hint(op, path);
    const char *kept = hint ? csn_explain_strdup(w, hint) : NULL;
    w->out_of_memory = w->out_of_memory || !kept;
    return kept;
}

static const char *offer(csn_explain_state *w, uint32_t op, const csn_grant_target *p)
{
    const char *refusal = NULL;
    const char *grant = csn_explain_grant(w->arena, w->in, p, &refusal);

    if (refusal)
        return refusal;
    if (!grant) {
        w->out_of_memory = true;
        return NULL;
    }
    return csn_explain_option(w, op, grant);
}

static const char *resolved_path(const csn_probed_path *a)
{
    return a->fact.resolved ? a->fact.resolved : a->path;
}

/* If the link itself is missing inside, its directory needs a grant too, by its resolved
 * path. */
static const char *offer_link(csn_explain_state *w, const csn_probed_path *a,
                              csn_grant_target p, const char *target)
{
    const csn_probed_path *dir = probe_parent(w, a->path);

    if (!dir || dir->fact.inside || !target || target[0] != '-')
        return target;
    p.path = csn_arena_printf(w->arena, "%s/%s", resolved_path(dir), csn_path_base(a->path));
    const char *own = p.path ? offer(w, CSN_OP_READ, &p) : NULL;
    if (!own || own[0] != '-' || same(own, target))
        return own;
    const char *both = csn_arena_printf(w->arena, "%s %s", target, own);
    w->out_of_memory = w->out_of_memory || !both;
    return both;
}

/* `rule` is an option that no grant overrides, "deny PATH", or a rule: "rules[0]: ...", or
 * "hide PATH" for a place of keys. */
static const char *leave_out(csn_explain_state *w, const char *rule)
{
    if (strncmp(rule, "hide ", 5) == 0)
        return "hidden by default: it may hold keys or passwords";
    bool listed = strncmp(rule, "rules[", 6) == 0;
    size_t len = listed ? strcspn(rule, ":") : strlen(rule);
    const char *hint =
        csn_arena_printf(w->arena, "leave out %s%.*s", listed ? "" : "--", (int)len, rule);

    w->out_of_memory = w->out_of_memory || !hint;
    return hint;
}

/* The hint names the resolved path: the command may have made a link, or may change it before
 * the grant. */
static const char *hint_for(csn_explain_state *w, uint32_t op, const csn_probed_path *a,
                            bool tool)
{
    const csn_explain_fact *f = &a->fact;
    bool write = op == CSN_OP_WRITE; /* then `a` is a directory to write in, or exists inside */
    csn_grant_target p = {.asked = a->path,
                          .path = resolved_path(a),
                          .dir = f->dir || (f->hidden && write),
                          .socket = f->socket,
                          .tool = tool,
                          .write = write,
                          .unknown = f->hidden && !write};
    const char *hint = f->rule ? leave_out(w, f->rule) : offer(w, op, &p);

    return f->link && op == CSN_OP_READ ? offer_link(w, a, p, hint) : hint;
}

const char *csn_explain_span_text(csn_explain_state *w, csn_text_span s)
{
    const char *text = csn_arena_memdup(w->arena, s.at, s.len);

    w->out_of_memory = w->out_of_memory || !text;
    return text;
}

bool csn_explain_deny_missing(csn_explain_state *w, csn_text_span target,
                              const csn_probed_path *a, bool exec)
{
    if (!a || (!a->fact.hidden && (!a->fact.host || !a->fact.host_readable ||
                                   (a->fact.inside && a->fact.inside_readable))))
        return false;
    const char *held = a->fact.hidden ? CSN_EXPLAIN_OUTSIDE : "not granted";
    csn_denial d = {.op = exec ? "exec" : "read",
                    .target = csn_explain_span_text(w, target),
                    .resolved = resolved_path(a),
                    .rule = a->fact.rule ? a->fact.rule : held,
                    .source = a->fact.source,
                    .hint = hint_for(w, CSN_OP_READ, a, exec && !a->fact.dir)};
    csn_explain_deny(w, &d);
    return true;
}

void csn_explain_deny_write(csn_explain_state *w, csn_text_span target,
                            const csn_probed_path *where, const char *resolved)
{
    const char *held = where->fact.inside ? "read-only" : "not granted";
    if (where->fact.hidden)
        held = CSN_EXPLAIN_OUTSIDE;
    csn_denial d = {.op = "write",
                    .target = csn_explain_span_text(w, target),
                    .resolved = resolved,
                    .rule = where->fact.rule ? where->fact.rule : held,
                    .source = where->fact.source,
                    .hint = hint_for(w, CSN_OP_WRITE, where, false)};
    csn_explain_deny(w, &d);
}
