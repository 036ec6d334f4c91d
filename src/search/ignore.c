/* ignore.c: the rules of .gitignore files.
 *
 * Files and paths are untrusted. A pattern becomes one of base/glob, whose cost is bounded by
 * pattern times path; a name or *.suffix, which most patterns are, is compared directly. Of the
 * rules that match a path the last one decides, and those of inner directories come later. */
#include "search/ignore.h"

#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/glob.h"
#include "base/path.h"

#define RULES_MAX 100000u

typedef enum rule_kind { NAME, SUFFIX, GLOB } rule_kind;

typedef struct rule {
    rule_kind kind;
    char *text; /* of a name or suffix */
    csn_glob_set *glob;
    bool negated, dirs_only;
    bool anchored; /* matches the path below the file's directory, else the last name */
} rule;

/* One ignore file. */
typedef struct rules {
    char *dir; /* from the top, "" or with a slash at the end */
    size_t dir_len;
    rule *v;
    size_t count, room;
} rules;

struct csn_ignore {
    char *prefix;
    rules *files;
    size_t count, room;
};

/* ---- lines to patterns ---- */

/* Cuts blanks at the end that no backslash precedes, as git does. */
static size_t trim(const char *line, size_t len)
{
    size_t end = 0;

    for (size_t i = 0; i < len; i++) {
        if (line[i] == '\\' && i + 1 < len)
            i++;
        else if (line[i] == ' ')
            continue;
        end = i + 1;
    }
    return end;
}

/* Copies a bracket expression at p, with named classes spelled out. NULL: not valid. */
static const char *copy_bracket(csn_buf *out, const char *p, const char *end)
{
    static const char *const classes[][2] = {
        {"[:alpha:]", "a-zA-Z"},    {"[:digit:]", "0-9"}, {"[:alnum:]", "a-zA-Z0-9"},
        {"[:upper:]", "A-Z"},       {"[:lower:]", "a-z"}, {"[:space:]", " \t\n\r\f\v"},
        {"[:xdigit:]", "0-9a-fA-F"}};
    const char *start = p;

    csn_buf_putc(out, *p++);
    if (p < end && (*p == '!' || *p == '^'))
        csn_buf_putc(out, *p++);
    for (const char *first = p; p < end && (*p != ']' || p == first);) {
        size_t i = 0, n = sizeof(classes) / sizeof(classes[0]);
        if (*p == '[' && p + 1 < end && p[1] == ':') {
            while (i < n && strncmp(p, classes[i][0], strlen(classes[i][0])) != 0)
                i++;
            if (i == n)
                return NULL;
            csn_buf_puts(out, classes[i][1]);
            p += strlen(classes[i][0]);
            continue;
        }
        if (*p == '/')
            return NULL;
        if (*p == '\\' && p + 1 < end)
            csn_buf_putc(out, *p++);
        csn_buf_putc(out, *p++);
    }
    return p < end && p > start ? p : NULL;
}

/* Stars that are not a whole component are one star. At the end, ** matches what is inside. */
static const char *copy_stars(csn_buf *out, const char *start, const char *p, const char *end)
{
    const char *after = p;

    while (after < end && *after == '*')
        after++;
    bool whole =
        after - p == 2 && (p == start || p[-1] == '/') && (after == end || *after == '/');
    csn_buf_puts(out, !whole ? "*" : after == end && p > start ? "**/*" : "**");
    return after - 1;
}

/* Into the language of base/glob, which has braces. False: git would never match it. */
static bool translate(csn_buf *out, const char *p, const char *end)
{
    const char *start = p;

    for (; p < end; p++) {
        if (*p == '\\') {
            if (p + 1 == end)
                return false;
            csn_buf_putc(out, *p++);
        } else if (*p == '{' || *p == '}' || *p == ',') {
            csn_buf_putc(out, '\\');
        } else if (*p == '*') {
            p = copy_stars(out, start, p, end);
            continue;
        } else if (*p == '[') {
            p = copy_bracket(out, p, end);
            if (!p)
                return false;
        }
        csn_buf_putc(out, *p);
    }
    return true;
}

/* 1: the rule is usable; 0: it matches nothing; or -ENOMEM. */
static int compile_pattern(rule *r, const char *p, size_t len)
{
    static const char magic[] = "*?[\\";
    csn_autobuf out = {0};
    bool suffix = !r->anchored && len > 1 && *p == '*';

    if (strcspn(p + suffix, magic) >= len - suffix) {
        r->kind = suffix ? SUFFIX : NAME;
        r->text = strndup(p + suffix, len - suffix);
        return r->text ? 1 : -ENOMEM;
    }
    csn_buf_init(&out, 4 * (size_t)PATH_MAX);
    bool ok = translate(&out, p, p + len);
    if (out.err)
        return out.err == ENOSPC ? 0 : -ENOMEM;
    r->kind = GLOB;
    csn_status st = ok ? csn_glob_compile(out.data, &r->glob, NULL) : CSN_INVALID;
    return st == CSN_OK ? 1 : st == CSN_NOMEM ? -ENOMEM : 0;
}

static void rule_release(rule *r)
{
    free(r->text);
    csn_glob_free(r->glob);
}

static rule *next_rule(rules *f)
{
    if (f->count == f->room) {
        size_t room = f->room ? 2 * f->room : 16;
        rule *more = reallocarray(f->v, room, sizeof(*more));
        if (!more)
            return NULL;
        f->v = more;
        f->room = room;
    }
    return &f->v[f->count];
}

/* `line` is NUL-terminated at `len`. */
static int add_line(rules *f, char *line, size_t len)
{
    rule r = {.negated = *line == '!'};

    len = trim(line, len);
    line += r.negated;
    len -= r.negated && len > 0;
    if (len == 0 || (!r.negated && *line == '#') || f->count >= RULES_MAX)
        return 0;
    r.dirs_only = line[len - 1] == '/';
    len -= r.dirs_only;
    r.anchored = memchr(line, '/', len) != NULL;
    size_t lead = len > 0 && *line == '/';
    line += lead;
    len -= lead;
    line[len] = '\0';
    /* No path has an empty component; base/glob would pass over it. */
    if (len == 0 || line[len - 1] == '/' || *line == '/' || strstr(line, "//"))
        return 0;
    rule *at = next_rule(f);
    int rc = at ? compile_pattern(&r, line, len) : -ENOMEM;
    if (rc > 0)
        f->v[f->count++] = r;
    else
        rule_release(&r);
    return rc < 0 ? rc : 0;
}

/* ---- files ---- */

static void rules_release(rules *f)
{
    for (size_t i = 0; i < f->count; i++)
        rule_release(&f->v[i]);
    free(f->v);
    free(f->dir);
    *f = (rules){0};
}

csn_ignore *csn_ignore_new(const char *prefix)
{
    csn_ignore *ig = calloc(1, sizeof(*ig));

    if (ig && !(ig->prefix = strdup(prefix))) {
        free(ig);
        return NULL;
    }
    return ig;
}

void csn_ignore_free(csn_ignore *ig)
{
    if (!ig)
        return;
    csn_ignore_reset(ig, 0);
    free(ig->files);
    free(ig->prefix);
    free(ig);
}

size_t csn_ignore_mark(const csn_ignore *ig)
{
    return ig->count;
}

void csn_ignore_reset(csn_ignore *ig, size_t mark)
{
    while (ig->count > mark)
        rules_release(&ig->files[--ig->count]);
}

static int add_lines(rules *f, char *text, size_t len)
{
    int rc = 0;

    if (len >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0) {
        text += 3;
        len -= 3;
    }
    for (char *end = text + len; rc == 0 && text < end;) {
        char *nl = memchr(text, '\n', (size_t)(end - text));
        size_t n = (size_t)((nl ? nl : end) - text);
        size_t cr = nl && n > 0 && text[n - 1] == '\r';
        text[n - cr] = '\0';
        rc = strlen(text) == n - cr ? add_line(f, text, n - cr) : 0;
        text += n + 1;
    }
    return rc;
}

int csn_ignore_add(csn_ignore *ig, const char *dir, bool above, const char *text, size_t len)
{
    csn_autofree char *copy = malloc(len + 1);
    rules f = {0};

    if (ig->count == ig->room) {
        size_t room = ig->room ? 2 * ig->room : 8;
        rules *more = reallocarray(ig->files, room, sizeof(*more));
        if (!more)
            return -ENOMEM;
        ig->files = more;
        ig->room = room;
    }
    if (!copy || asprintf(&f.dir, "%s%s", above ? "" : ig->prefix, dir) < 0)
        return -ENOMEM;
    f.dir_len = strlen(f.dir);
    memcpy(copy, text, len);
    copy[len] = '\0';
    int rc = add_lines(&f, copy, len);
    ig->files[ig->count++] = f;
    return rc;
}

/* ---- matching ---- */

static bool rule_matches(const rule *r, const char *below, const char *name, bool is_dir)
{
    const char *path = r->anchored ? below : name;

    if (r->dirs_only && !is_dir)
        return false;
    if (r->kind == NAME)
        return strcmp(path, r->text) == 0;
    if (r->kind == GLOB)
        return csn_glob_match(r->glob, path);
    size_t len = strlen(path), n = strlen(r->text);
    return len >= n && memcmp(path + len - n, r->text, n) == 0;
}

bool csn_ignore_match(const csn_ignore *ig, const char *path, bool is_dir)
{
    char full[2 * PATH_MAX];
    const char *name = csn_path_base(path);

    if (strcmp(name, ".git") == 0)
        return true;
    snprintf(full, sizeof(full), "%s%s", ig->prefix, path);
    for (size_t i = ig->count; i > 0; i--) {
        const rules *f = &ig->files[i - 1];
        if (strncmp(full, f->dir, f->dir_len) != 0)
            continue;
        for (size_t k = f->count; k > 0; k--)
            if (rule_matches(&f->v[k - 1], full + f->dir_len, name, is_dir))
                return !f->v[k - 1].negated;
    }
    return false;
}

bool csn_ignore_hides(const csn_ignore *ig, const char *path, bool is_dir)
{
    char above[PATH_MAX];

    for (const char *p = strchr(path, '/'); p; p = strchr(p + 1, '/')) {
        size_t len = (size_t)(p - path);
        if (len >= sizeof(above))
            return false;
        memcpy(above, path, len);
        above[len] = '\0';
        if (csn_ignore_match(ig, above, true))
            return true;
    }
    return csn_ignore_match(ig, path, is_dir);
}
