/* package_config_toml.c: the strings of a TOML file that name an index, for uv and cargo.
 *
 * A tolerant reader, not a parser: it knows tables, keys, strings, arrays and inline tables far
 * enough to tell under which key a string stands, and passes over everything else. One pass, no
 * recursion, no memory of its own. */
#include <string.h>

#include "policy/package_config_parts.h"

#define NAME_MAX_BYTES 256u /* of a key or table; a longer one is none that we know */

typedef struct toml {
    csn_span rest;
    csn_span table;      /* of the last [table] or [[table]] */
    csn_span outer, key; /* the key at the start of a line; the last key, in braces too */
    const char *start;   /* where the next key begins, if one comes */
    unsigned depth;      /* of open brackets and braces in a value */
    bool in_value;
} toml;

static void skip(toml *t, size_t n)
{
    n = n < t->rest.len ? n : t->rest.len;
    t->rest = (csn_span){t->rest.at + n, t->rest.len - n};
}

static void skip_line(toml *t)
{
    const char *nl = memchr(t->rest.at, '\n', t->rest.len);
    skip(t, nl ? (size_t)(nl - t->rest.at) : t->rest.len);
}

/* A string in any of the four quotings, without them; escapes stay as they are written, and no
 * address has any. An unfinished one ends with its line. */
static csn_span take_string(toml *t)
{
    char quote = t->rest.at[0];
    const char three[3] = {quote, quote, quote};
    bool block = t->rest.len >= 3 && memcmp(t->rest.at, three, 3) == 0;

    skip(t, block ? 3 : 1);
    csn_span s = {t->rest.at, 0};
    if (block) {
        const char *end = memmem(t->rest.at, t->rest.len, three, 3);
        s.len = end ? (size_t)(end - s.at) : t->rest.len;
        skip(t, s.len + 3);
        return s;
    }
    while (s.len < t->rest.len && s.at[s.len] != quote && s.at[s.len] != '\n')
        s.len += quote == '"' && s.at[s.len] == '\\' && s.len + 1 < t->rest.len ? 2 : 1;
    if (s.len > t->rest.len)
        s.len = t->rest.len;
    skip(t, s.len + (s.len < t->rest.len && s.at[s.len] == quote ? 1 : 0));
    return s;
}

/* A key or the name of a table. Bounded, so that no input has it looked at again and again. */
static csn_span name_from(const char *from, const char *end)
{
    size_t n = (size_t)(end - from);
    return csn_span_trim((csn_span){from, n <= NAME_MAX_BYTES ? n : 0});
}

/* [a.b] or [[a.b]] at the start of a line. */
static void take_table(toml *t)
{
    while (t->rest.len > 0 && t->rest.at[0] == '[')
        skip(t, 1);
    const char *name = t->rest.at;
    skip_line(t);
    const char *end = memchr(name, ']', (size_t)(t->rest.at - name));
    t->table = name_from(name, end ? end : t->rest.at);
    t->outer = t->key = (csn_span){name, 0};
    t->start = t->rest.at;
}

static csn_span unquoted(csn_span s)
{
    s = csn_span_trim(s);
    if (s.len >= 2 && (s.at[0] == '"' || s.at[0] == '\'') && s.at[s.len - 1] == s.at[0])
        s = (csn_span){s.at + 1, s.len - 2};
    return s;
}

/* The part of a dotted name before the first dot, and after the last. */
static csn_span first_part(csn_span s)
{
    const char *dot = s.len ? memchr(s.at, '.', s.len) : NULL;
    return unquoted(dot ? (csn_span){s.at, (size_t)(dot - s.at)} : s);
}

static csn_span last_part(csn_span s)
{
    const char *dot = s.len ? memrchr(s.at, '.', s.len) : NULL;
    return unquoted(dot ? (csn_span){dot + 1, (size_t)(s.at + s.len - dot) - 1} : s);
}

static bool one_of(csn_span s, const char *const *words)
{
    for (; *words; words++)
        if (csn_span_is(s, *words))
            return true;
    return false;
}

static bool names_index(const toml *t, csn_registry_format format)
{
    static const char *const uv[] = {"index-url",  "extra-index-url",       "default-index",
                                     "find-links", "python-install-mirror", NULL};
    static const char *const cargo_top[] = {"registries", "registry", "source", NULL};
    static const char *const cargo[] = {"index", "registry", "git", NULL};
    csn_span key = last_part(t->key);
    csn_span top = first_part(t->table.len > 0 ? t->table : t->outer);

    if (format == CSN_REGISTRY_CARGO)
        return one_of(top, cargo_top) && one_of(key, cargo);
    return one_of(key, uv) || (csn_span_is(key, "url") && csn_span_is(top, "index"));
}

static void take_sign(toml *t)
{
    char c = t->rest.at[0];

    if (c == '=') {
        t->key = name_from(t->start, t->rest.at);
        if (!t->in_value)
            t->outer = t->key;
        t->in_value = true;
    } else if (t->in_value && (c == '[' || c == '{')) {
        t->depth++;
    } else if (t->depth > 0 && (c == ']' || c == '}')) {
        t->depth--;
    } else if (c == '\n' && t->depth == 0) {
        t->in_value = false;
    }
    skip(t, 1);
    if (c == '\n' || c == '{' || c == ',')
        t->start = t->rest.at;
}

void csn_registry_toml(csn_registry_scan *scan, csn_registry_format format, csn_span text)
{
    toml t = {.rest = text, .table = {text.at, 0}, .outer = {text.at, 0}, .start = text.at};

    t.key = t.outer;
    while (t.rest.len > 0 && scan->told < CSN_REGISTRY_HOSTS_MAX) {
        char c = t.rest.at[0];
        if (c == '#') {
            skip_line(&t);
        } else if (c == '"' || c == '\'') {
            csn_span s = take_string(&t);
            if (t.in_value && names_index(&t, format))
                csn_registry_urls(scan, s);
        } else if (c == '[' && !t.in_value) {
            take_table(&t);
        } else {
            take_sign(&t);
        }
    }
}
