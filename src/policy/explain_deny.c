/* explain_deny.c: asks what there is, and makes denials of what is not.
 *
 * Called by explain.c with what explain_cut.c found. A path of the command becomes absolute and
 * is asked about at most once; a denial is made from the answer, with the hint that
 * explain_hint.c allows. What must hold: the questions have a ceiling, a path with `..` counts
 * only as what the host resolves it to, and all texts are in the arena of this call. A lack of
 * memory is remembered and ends the call. */
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "base/path.h"
#include "policy/explain_parts.h"
#include "policy/rules.h"

#define PATH_DIRS 24u /* of a search path, asked for one name */
#define LEVELS    8u  /* above a path that was to be made */

static const csn_explain_fact nothing;
static const char why_denied[] = "no grant is offered: it is denied by name";

const char *csn_explain_keep(csn_explaining *w, const char *s)
{
    char *copy = csn_arena_strdup(w->arena, s);

    if (s && !copy)
        w->out_of_memory = true;
    return copy;
}

/* Where a path leads is said in texts that people read: what cannot be shown is not taken. */
static const char *keep_clean(csn_explaining *w, const char *s)
{
    return s && *s == '/' && csn_scrap_clean((csn_scrap){s, strlen(s)}) ? csn_explain_keep(w, s)
                                                                        : NULL;
}

/* Each path is asked for once. NULL when the questions are used up. */
const csn_asked *csn_explain_ask(csn_explaining *w, const char *path)
{
    for (size_t i = 0; i < w->asks; i++)
        if (strcmp(w->asked[i].path, path) == 0)
            return &w->asked[i];
    if (w->asks == CSN_EXPLAIN_ASKS)
        return NULL;
    csn_asked *a = &w->asked[w->asks];
    a->path = csn_explain_keep(w, path);
    if (!a->path)
        return NULL;
    w->asks++;
    a->fact = nothing;
    w->in->look(w->in->ctx, a->path, &a->fact);
    bool unshown = a->fact.resolved && *a->fact.resolved;
    a->fact.resolved = keep_clean(w, a->fact.resolved);
    a->fact.needs = keep_clean(w, a->fact.needs);
    a->fact.source = csn_explain_keep(w, a->fact.source);
    a->fact.rule = csn_explain_keep(w, a->fact.rule);
    if (unshown && !a->fact.resolved)
        a->fact = nothing;
    return a;
}

static bool has_dotdot(const char *path)
{
    size_t len = strlen(path);
    return strstr(path, "/../") || (len >= 3 && strcmp(path + len - 3, "/..") == 0);
}

/* Without "//", "/./" and a slash at the end, which change nothing. `..` stays: only the kernel
 * knows what it means. */
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

/* The scrap as an absolute path in w->path; false: it cannot be one. */
static bool place(csn_explaining *w, csn_scrap s)
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

const csn_asked *csn_explain_ask_scrap(csn_explaining *w, csn_scrap s)
{
    if (!place(w, s))
        return NULL;
    const csn_asked *a = csn_explain_ask(w, w->path);
    /* A name with `..` is worth what it resolves to, and nothing without that. */
    return a && has_dotdot(a->path) && !a->fact.resolved ? NULL : a;
}

const csn_asked *csn_explain_ask_parent(csn_explaining *w, const char *path)
{
    csn_autofree char *dir = csn_path_dir(path);

    if (!dir) {
        w->out_of_memory = true;
        return NULL;
    }
    const csn_asked *a = has_dotdot(path) ? NULL : csn_explain_ask(w, dir);
    return a && a->fact.dir ? a : NULL;
}

const csn_asked *csn_explain_ask_above(csn_explaining *w, const char *path)
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
        const csn_asked *a = csn_explain_ask(w, dir);
        if (!a || a->fact.host || a->fact.inside)
            return a && a->fact.dir ? a : NULL;
    }
    return NULL;
}

/* The first that the host has decides: if the command sees it too, nothing was kept from it. */
const csn_asked *csn_explain_search(csn_explaining *w, csn_scrap name, const char *dirs)
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
            const csn_asked *a = has_dotdot(w->path) ? NULL : csn_explain_ask(w, w->path);
            if (a && a->fact.host && !a->fact.dir)
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

/* Once is enough, and one grant that helps several files is one denial. */
static bool is_known(const csn_explaining *w, const csn_denial *d)
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

void csn_explain_deny(csn_explaining *w, const csn_denial *d)
{
    if (!w->out_of_memory && w->count < CSN_EXPLAIN_DENIALS && !is_known(w, d))
        w->items[w->count++] = *d;
}

const char *csn_explain_option(csn_explaining *w, uint32_t op, const char *path)
{
    csn_autofree char *hint = csn_rules_hint(op, path);
    const char *kept = hint ? csn_explain_keep(w, hint) : NULL;
    w->out_of_memory = w->out_of_memory || !kept;
    return kept;
}

static const char *offer(csn_explaining *w, uint32_t op, const csn_place *p)
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

static const char *really(const csn_asked *a)
{
    return a->fact.resolved ? a->fact.resolved : a->path;
}

/* A link needs its own place too, unless the command sees it and only misses what it leads to.
 * That place is named as the host resolves it, as all others. */
static const char *offer_link(csn_explaining *w, const csn_asked *a, csn_place p,
                              const char *target)
{
    const csn_asked *dir = csn_explain_ask_parent(w, a->path);

    if (!dir || dir->fact.inside || !target || target[0] != '-')
        return target;
    p.path = csn_arena_printf(w->arena, "%s/%s", really(dir), csn_path_base(a->path));
    const char *own = p.path ? offer(w, CSN_OP_READ, &p) : NULL;
    if (!own || own[0] != '-' || same(own, target))
        return own;
    const char *both = csn_arena_printf(w->arena, "%s %s", target, own);
    w->out_of_memory = w->out_of_memory || !both;
    return both;
}

/* Always of the real path: a hint that names a link grants whatever the link leads to by then,
 * and the command may have made it. */
static const char *hint_for(csn_explaining *w, uint32_t op, const csn_asked *a, bool tool)
{
    const csn_explain_fact *f = &a->fact;
    csn_place p = {.asked = a->path,
                   .path = really(a),
                   .dir = f->dir,
                   .socket = f->socket,
                   .tool = tool,
                   .write = op == CSN_OP_WRITE};
    const char *hint = f->rule ? why_denied : offer(w, op, &p);

    return f->link && op == CSN_OP_READ ? offer_link(w, a, p, hint) : hint;
}

const char *csn_explain_scrap_text(csn_explaining *w, csn_scrap s)
{
    const char *text = csn_arena_memdup(w->arena, s.at, s.len);

    w->out_of_memory = w->out_of_memory || !text;
    return text;
}

bool csn_explain_deny_missing(csn_explaining *w, csn_scrap target, const csn_asked *a,
                              bool exec)
{
    if (!a || !a->fact.host || !a->fact.host_readable ||
        (a->fact.inside && a->fact.inside_readable))
        return false;
    csn_denial d = {.op = exec ? "exec" : "read",
                    .target = csn_explain_scrap_text(w, target),
                    .resolved = really(a),
                    .rule = a->fact.rule ? a->fact.rule : "not granted",
                    .source = a->fact.source,
                    .hint = hint_for(w, CSN_OP_READ, a, exec && !a->fact.dir)};
    csn_explain_deny(w, &d);
    return true;
}

void csn_explain_deny_write(csn_explaining *w, csn_scrap target, const csn_asked *where,
                            const char *resolved)
{
    const char *held = where->fact.inside ? "read-only" : "not granted";
    csn_denial d = {.op = "write",
                    .target = csn_explain_scrap_text(w, target),
                    .resolved = resolved,
                    .rule = where->fact.rule ? where->fact.rule : held,
                    .source = where->fact.source,
                    .hint = hint_for(w, CSN_OP_WRITE, where, false)};
    csn_explain_deny(w, &d);
}
