/* glob.c: shell patterns over relative paths.
 *
 * Pattern and path may both come from an agent, so the cost is bounded by their product: braces
 * are expanded at compile time, with a limit on alternatives and steps; a star or ** that fails
 * backtracks to the latest one only (going further back cannot help, since the latest star can
 * match whatever an earlier one could). Empty and "." components are ignored. */
#include "base/glob.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/path.h"

/* One pattern without braces: its components, each NUL-terminated; a NULL stands for "**". */
typedef struct alternative {
    const char **parts;
    size_t count;
} alternative;

struct csn_glob_set {
    csn_arena *arena; /* holds this too */
    alternative alts[CSN_GLOB_BRACES_MAX];
    size_t count;
};

CSN_DEFINE_CLEANUP(csn_glob_set, csn_glob_free)

/* ---- pieces of a pattern ---- */

/* The ']' that closes the bracket before p in this component, or NULL. */
static const char *bracket_end(const char *p)
{
    if (*p == '!' || *p == '^')
        p++;
    if (*p == ']') /* at the start it is an ordinary member */
        p++;
    for (; *p && *p != '/' && *p != ']'; p++)
        if (*p == '\\' && p[1])
            p++;
    return *p == ']' ? p : NULL;
}

/* The end of the element at p: an escaped byte, a bracket expression or a single byte. */
static const char *element_end(const char *p)
{
    if (*p == '\\' && p[1])
        return p + 2;
    const char *close = *p == '[' ? bracket_end(p + 1) : NULL;
    return close ? close + 1 : p + 1;
}

/* Is c in the bracket expression whose members start at p? */
static bool bracket_match(const char *p, unsigned char c)
{
    bool negate = *p == '!' || *p == '^', found = false;
    const char *end = bracket_end(p);

    if (negate)
        p++;
    while (p < end) {
        if (*p == '\\')
            p++;
        unsigned char lo = (unsigned char)*p++, hi = lo;
        if (*p == '-' && p + 1 < end) {
            p += p[1] == '\\' ? 2 : 1;
            hi = (unsigned char)*p++;
        }
        found = found || (c >= lo && c <= hi);
    }
    return found != negate;
}

/* Brackets and backslashes are complete: compiling has checked that. */
static bool element_match(const char *p, unsigned char c)
{
    if (*p == '?')
        return true;
    if (*p == '[')
        return bracket_match(p + 1, c);
    if (*p == '\\')
        p++;
    return (unsigned char)*p == c;
}

static bool component_match(const char *pattern, const char *name, size_t len)
{
    const char *p = pattern, *after_star = NULL;
    size_t i = 0, mark = 0;

    while (i < len) {
        if (*p == '*') {
            after_star = ++p;
            mark = i;
        } else if (*p && element_match(p, (unsigned char)name[i])) {
            p = element_end(p);
            i++;
        } else if (after_star) { /* let the star match one more byte */
            p = after_star;
            i = ++mark;
        } else {
            return false;
        }
    }
    return !p[strspn(p, "*")];
}

/* The next component at *s; moves *s past it. Length 0 at the end. */
static const char *next_component(const char **s, size_t *ret_len)
{
    const char *start;

    do {
        start = *s + strspn(*s, "/");
        *ret_len = strcspn(start, "/");
        *s = start + *ret_len;
    } while (*ret_len == 1 && *start == '.');
    return start;
}

/* ---- compiling ---- */

/* A pattern to be expanded; there are no braces before `done`. */
typedef struct pending {
    char *text;
    size_t done;
} pending;

/* The end of the alternative at p: its ',' or '}' (or the end of an unclosed brace). */
static const char *brace_item_end(const char *p)
{
    size_t depth = 0;

    for (; *p; p = element_end(p)) {
        if (depth == 0 && (*p == ',' || *p == '}'))
            break;
        if (*p == '{')
            depth++;
        else if (*p == '}')
            depth--;
    }
    return p;
}

/* The '}' that closes the brace before p, or NULL. */
static const char *brace_close(const char *p)
{
    for (p = brace_item_end(p); *p == ',';)
        p = brace_item_end(p + 1);
    return *p == '}' ? p : NULL;
}

static csn_status bad_pattern(const char *pattern, const char *why, csn_error **err)
{
    csn_autofree char *shown = csn_path_printable(pattern);

    return csn_fail(err, CSN_INVALID, "glob pattern %s: %s", shown ? shown : "", why);
}

/* Splits one pattern without braces into components and adds it to the set. */
static csn_status add_alternative(csn_glob_set *g, const char *text, csn_error **err)
{
    const char *rest = text;
    size_t len, max = 1;

    for (const char *p = text; *p; p++)
        max += *p == '/';
    alternative *alt = &g->alts[g->count];
    *alt = (alternative){.parts = csn_arena_array(g->arena, max, sizeof(*alt->parts))};
    if (!alt->parts)
        return csn_fail(err, CSN_NOMEM, "glob pattern: out of memory");
    for (;;) {
        const char *start = next_component(&rest, &len);
        if (len == 0)
            break;
        char *part = csn_arena_memdup(g->arena, start, len);
        if (!part)
            return csn_fail(err, CSN_NOMEM, "glob pattern: out of memory");
        for (const char *p = part; *p; p = element_end(p)) {
            if (*p == '[' && !bracket_end(p + 1))
                return bad_pattern(text, "a [ is not closed", err);
            if (*p == '\\' && !p[1])
                return bad_pattern(text, "nothing follows the last backslash", err);
        }
        /* in "a**b" they are two ordinary stars */
        bool any_depth = strcmp(part, "**") == 0;
        if (any_depth && alt->count > 0 && !alt->parts[alt->count - 1])
            continue; /* two in a row match the same as one */
        alt->parts[alt->count++] = any_depth ? NULL : part;
    }
    g->count++;
    return CSN_OK;
}

/* Replaces the top of the stack by one pattern for each item of its first brace. */
static csn_status expand_brace(csn_arena *scratch, pending *stack, size_t *depth, size_t taken,
                               csn_error **err)
{
    pending top = stack[--*depth];
    const char *open = top.text + top.done, *close = brace_close(open + 1);

    if (!close)
        return bad_pattern(top.text, "a { is not closed", err);
    for (const char *item = open + 1; item <= close;) {
        const char *end = brace_item_end(item);
        if (taken + *depth == CSN_GLOB_BRACES_MAX)
            return csn_fail(err, CSN_TOO_LARGE,
                            "glob pattern: braces give more than %u patterns",
                            CSN_GLOB_BRACES_MAX);
        char *text = csn_arena_printf(scratch, "%.*s%.*s%s", (int)top.done, top.text,
                                      (int)(end - item), item, close + 1);
        if (!text)
            return csn_fail(err, CSN_NOMEM, "glob pattern: out of memory");
        stack[(*depth)++] = (pending){text, top.done};
        item = end + 1;
    }
    return CSN_OK;
}

/* Depth first with an explicit stack, since the pattern controls the nesting. Each entry of the
 * stack yields at least one alternative, so stack and set together stay below the limit. */
static csn_status expand(csn_glob_set *g, const char *pattern, csn_error **err)
{
    CSN_CLEANUP(csn_arena_freep) csn_arena *scratch = csn_arena_new();
    pending stack[CSN_GLOB_BRACES_MAX];
    size_t depth = 1, steps = 0;
    csn_status st = CSN_OK;

    stack[0] = (pending){scratch ? csn_arena_strdup(scratch, pattern) : NULL, 0};
    if (!stack[0].text)
        return csn_fail(err, CSN_NOMEM, "glob pattern: out of memory");
    while (depth > 0 && st == CSN_OK) {
        pending *top = &stack[depth - 1];
        const char *p = top->text + top->done;
        while (*p && *p != '{')
            p = element_end(p);
        top->done = (size_t)(p - top->text);
        if (!*p)
            st = add_alternative(g, stack[--depth].text, err);
        else if (++steps > CSN_GLOB_STEPS_MAX)
            st = csn_fail(err, CSN_TOO_LARGE, "glob pattern: more than %u braces to expand",
                          CSN_GLOB_STEPS_MAX);
        else
            st = expand_brace(scratch, stack, &depth, g->count, err);
    }
    return st;
}

csn_status csn_glob_compile(const char *pattern, csn_glob_set **ret, csn_error **err)
{
    if (!pattern || !pattern[0])
        return csn_fail(err, CSN_INVALID, "glob pattern is empty");
    /* Bounds what expanding and matching can cost. */
    if (strlen(pattern) >= CSN_PATH_MAX)
        return csn_fail(err, CSN_INVALID, "glob pattern is longer than %u bytes",
                        CSN_PATH_MAX - 1);
    csn_arena *arena = csn_arena_new();
    CSN_CLEANUP(csn_glob_freep)
    csn_glob_set *g = arena ? csn_arena_alloc(arena, sizeof(*g)) : NULL;
    if (!g) {
        csn_arena_free(arena);
        return csn_fail(err, CSN_NOMEM, "glob pattern: out of memory");
    }
    g->arena = arena;
    csn_status st = expand(g, pattern, err);
    if (st < 0)
        return st;
    *ret = CSN_STEAL(g);
    return CSN_OK;
}

void csn_glob_free(csn_glob_set *g)
{
    if (g)
        csn_arena_free(g->arena);
}

/* ---- matching ---- */

/* Like component_match, with components as letters and ** as the star. */
static bool path_match(const alternative *alt, const char *path)
{
    const char *rest = path, *mark = NULL;
    size_t i = 0, after_star = 0, len;

    for (;;) {
        const char *here = rest, *name = next_component(&rest, &len);
        if (len == 0)
            break;
        if (i < alt->count && !alt->parts[i]) {
            after_star = ++i;
            mark = rest = here;
        } else if (i < alt->count && component_match(alt->parts[i], name, len)) {
            i++;
        } else if (mark) {
            next_component(&mark, &len);
            rest = mark;
            i = after_star;
        } else {
            return false;
        }
    }
    while (i < alt->count && !alt->parts[i])
        i++;
    return i == alt->count;
}

bool csn_glob_match(const csn_glob_set *g, const char *path)
{
    for (size_t i = 0; i < g->count; i++)
        if (path_match(&g->alts[i], path))
            return true;
    return false;
}

/* Every component of dir must match, and some of the pattern must be left. */
static bool may_descend(const alternative *alt, const char *dir)
{
    for (size_t i = 0; i < alt->count; i++) {
        size_t len;
        const char *name = next_component(&dir, &len);
        if (!alt->parts[i] || len == 0)
            return true;
        if (!component_match(alt->parts[i], name, len))
            return false;
    }
    return false;
}

bool csn_glob_may_descend(const csn_glob_set *g, const char *dir)
{
    for (size_t i = 0; i < g->count; i++)
        if (may_descend(&g->alts[i], dir))
            return true;
    return false;
}

bool csn_glob_has_magic(const char *pattern)
{
    return strpbrk(pattern, "*?[{");
}
