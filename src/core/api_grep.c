/* api_grep.c: csn_grep: finds matching lines in a file or a tree.
 *
 * Files are read in sorted order and streamed. A scanner holds a window of whole lines to
 * search, and the lines before it that may become context. A file with a NUL byte in its first
 * 8 KiB is binary and skipped. Patterns and lines are untrusted: the matcher limits its steps,
 * and the window is bounded. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/glob.h"
#include "base/limits.h"
#include "base/path.h"
#include "base/sniff.h"
#include "core/cancel.h"
#include "core/entries.h"
#include "core/internal.h"
#include "core/result.h"
#include "search/match.h"

#define CONTEXT_MAX   1000u
#define WINDOW_MAX    (8u * 1024u * 1024u) /* a line longer than this is cut into several */
#define BINARY_PREFIX 8192u

typedef struct search {
    csn_arena *arena;
    csn_matcher *matcher;
    const csn_cancel *cancel;
    uint32_t context;
    uint64_t max, matches;
    csn_grep_match *items;
    size_t count, cap;
    bool truncated;
    csn_status st; /* failure of the matcher or of an allocation */
} search;

/* One file. buf = [lines kept for context][lines not searched yet][start of the next line]. */
typedef struct scanner {
    search *s;
    const char *path; /* as it appears in results */
    csn_buf buf;
    size_t fresh;        /* start of the part not searched yet */
    uint64_t fresh_line; /* its line number, 1-based */
    uint64_t shown_line; /* last line in the results */
    uint32_t after;      /* context lines still due after the last match */
    bool looked, binary;
} scanner;

static size_t line_end(const csn_buf *b, size_t from, size_t limit)
{
    const char *nl = memchr(b->data + from, '\n', limit - from);

    return nl ? (size_t)(nl - b->data) : limit;
}

static int emit(scanner *sc, uint64_t line, size_t from, size_t to, bool is_context)
{
    search *s = sc->s;

    if (s->count == s->cap) {
        size_t cap = s->cap ? 2 * s->cap : 64;
        csn_grep_match *more = realloc(s->items, cap * sizeof(*more));
        if (!more) {
            s->st = CSN_NOMEM;
            return 1;
        }
        s->items = more;
        s->cap = cap;
    }
    size_t len = to - from;
    if (len > CSN_GREP_LINE_MAX)
        len = CSN_GREP_LINE_MAX;
    char *text = csn_arena_memdup(s->arena, sc->buf.data + from, len);
    if (!text) {
        s->st = CSN_NOMEM;
        return 1;
    }
    s->items[s->count++] = (csn_grep_match){.path = sc->path,
                                            .line = line,
                                            .text = text,
                                            .text_len = len,
                                            .is_context = is_context};
    sc->shown_line = line;
    return 0;
}

/* Adds the context before a match, without lines that are in the results already. */
static int emit_before(scanner *sc, uint64_t line, size_t from)
{
    size_t starts[CONTEXT_MAX];
    uint32_t n = 0;
    size_t at = from;

    while (n < sc->s->context && at > 0 && line - n > sc->shown_line + 1) {
        const char *nl = at > 1 ? memrchr(sc->buf.data, '\n', at - 1) : NULL;
        at = nl ? (size_t)(nl - sc->buf.data) + 1 : 0;
        starts[n++] = at;
    }
    for (uint32_t i = n; i > 0; i--) {
        size_t start = starts[i - 1];
        if (emit(sc, line - i, start, line_end(&sc->buf, start, from), true) != 0)
            return 1;
    }
    return 0;
}

/* Adds the context after the last match, up to `to` (a line start). Advances *at and *line. */
static int emit_after(scanner *sc, size_t *at, uint64_t *line, size_t to)
{
    while (sc->after > 0 && *at < to) {
        size_t end = line_end(&sc->buf, *at, to);
        if (emit(sc, *line, *at, end, true) != 0)
            return 1;
        sc->after--;
        *at = end + 1;
        (*line)++;
    }
    return 0;
}

static uint64_t count_newlines(const char *p, size_t len)
{
    uint64_t n = 0;
    const char *end = p + len;

    while ((p = memchr(p, '\n', (size_t)(end - p))) != NULL) {
        n++;
        p++;
    }
    return n;
}

/* Adds the line of a match at `from`, after the context due before it. */
static int take_match(scanner *sc, size_t *at, uint64_t *line, size_t from, size_t to)
{
    const char *nl = from > *at ? memrchr(sc->buf.data + *at, '\n', from - *at) : NULL;
    size_t start = nl ? (size_t)(nl - sc->buf.data) + 1 : *at;
    size_t end = line_end(&sc->buf, from, to);

    if (emit_after(sc, at, line, start) != 0)
        return 1;
    if (start > *at)
        *line += count_newlines(sc->buf.data + *at, start - *at);
    if (sc->s->context > 0 && emit_before(sc, *line, start) != 0)
        return 1;
    if (emit(sc, *line, start, end, false) != 0)
        return 1;
    sc->after = sc->s->context;
    *at = end + 1;
    (*line)++;
    if (++sc->s->matches >= sc->s->max) {
        sc->s->truncated = true;
        return 1;
    }
    return 0;
}

/* Searches the whole lines [fresh, to). */
static int scan(scanner *sc, size_t to)
{
    size_t at = sc->fresh;
    uint64_t line = sc->fresh_line;

    while (at < to) {
        size_t from = 0, until = 0;
        /* The search covers the whole window, but a match must not span lines: if one does,
         * search again in the line where it begins. */
        int rc = csn_matcher_find(sc->s->matcher, sc->buf.data, to, at, &from, &until);
        if (rc < 0) {
            sc->s->st = (csn_status)rc;
            return 1;
        }
        if (rc == 0)
            break;
        if (from >= to)
            break;
        size_t end = line_end(&sc->buf, from, to);
        if (until > end + 1) {
            const char *nl = memrchr(sc->buf.data, '\n', from);
            size_t start = nl ? (size_t)(nl - sc->buf.data) + 1 : 0;
            rc = csn_matcher_find(sc->s->matcher, sc->buf.data, end, start < at ? at : start,
                                  &from, &until);
            if (rc <= 0) {
                if (emit_after(sc, &at, &line, end < to ? end + 1 : to) != 0)
                    return 1;
                if (at <= end) {
                    line += count_newlines(sc->buf.data + at, end - at) + 1;
                    at = end + 1;
                }
                continue;
            }
        }
        if (take_match(sc, &at, &line, from, to) != 0)
            return 1;
    }
    if (emit_after(sc, &at, &line, to) != 0)
        return 1;
    if (at < to)
        line += count_newlines(sc->buf.data + at, to - at);
    sc->fresh = to;
    sc->fresh_line = line;
    return 0;
}

/* Drops searched lines, except the last ones, which may become context. */
static void slide(scanner *sc)
{
    size_t keep = sc->fresh;

    for (uint32_t n = 0; n < sc->s->context && keep > 0; n++) {
        const char *nl = keep > 1 ? memrchr(sc->buf.data, '\n', keep - 1) : NULL;
        keep = nl ? (size_t)(nl - sc->buf.data) + 1 : 0;
    }
    if (sc->fresh - keep > WINDOW_MAX / 2)
        keep = sc->fresh; /* do not keep megabytes of context */
    memmove(sc->buf.data, sc->buf.data + keep, sc->buf.len - keep);
    sc->buf.len -= keep;
    sc->fresh -= keep;
}

static int scanner_write(void *ctx, int stream, const void *data, size_t len)
{
    scanner *sc = ctx;
    search *s = sc->s;

    (void)stream;
    if (csn_cancel_fired(s->cancel)) {
        s->st = CSN_CANCELLED;
        return CSN_SINK_STOP;
    }
    if (!sc->looked) {
        sc->looked = true;
        sc->binary = csn_sniff_binary(data, len < BINARY_PREFIX ? len : BINARY_PREFIX);
        if (sc->binary)
            return CSN_SINK_STOP;
    }
    if (csn_buf_append(&sc->buf, data, len) != 0) {
        s->st = CSN_NOMEM;
        return CSN_SINK_STOP;
    }
    const char *nl = memrchr(sc->buf.data + sc->fresh, '\n', sc->buf.len - sc->fresh);
    size_t to = nl                                         ? (size_t)(nl - sc->buf.data) + 1
                : sc->buf.len - sc->fresh > WINDOW_MAX / 2 ? sc->buf.len
                                                           : sc->fresh;
    if (to > sc->fresh) {
        if (scan(sc, to) != 0)
            return CSN_SINK_STOP;
        slide(sc);
    }
    return CSN_SINK_MORE;
}

/* Returns false to stop the search. Files that cannot be read are skipped. */
static bool grep_file(csn_call *c, search *s, const char *joined, const char *shown)
{
    csn_file_stat fst;
    scanner sc = {.s = s, .path = shown, .fresh_line = 1};
    csn_sink sink = {.write = scanner_write, .ctx = &sc};

    csn_buf_init(&sc.buf, 4 * (size_t)WINDOW_MAX);
    csn_status st = csn_fs_read(&c->fs, joined, 0, 0, CSN_GREP_FILE_MAX, &sink, &fst, NULL);
    bool whole = st == CSN_OK && !sc.binary && s->st == CSN_OK && !s->truncated;
    if (whole && sc.buf.len > sc.fresh)
        (void)scan(&sc, sc.buf.len);
    csn_buf_release(&sc.buf);
    return s->st == CSN_OK && !s->truncated;
}

/* ---- which files --------------------------------------------------------------------------
 */

typedef struct finder {
    csn_entries entries;
    const csn_glob_set *glob; /* or NULL: all */
    bool by_name;             /* the glob has no slash and matches names at any depth */
} finder;

static int find_entry(void *ctx, const char *path, const csn_file_stat *st, const char *target)
{
    finder *f = ctx;

    if (!S_ISREG(st->mode))
        return 0;
    if (f->glob && *path && !csn_glob_match(f->glob, f->by_name ? csn_path_base(path) : path))
        return 0;
    return csn_entries_add(&f->entries, path, st, target);
}

static csn_status grep_tree(csn_call *c, search *s, const csn_grep_opts *o, const char *asked,
                            const char *joined, csn_error **err)
{
    csn_glob_set *set = NULL;
    csn_status st = o->glob ? csn_glob_compile(o->glob, &set, err) : CSN_OK;

    if (st < 0)
        return st;
    finder f = {.entries = {.arena = s->arena, .max = CSN_GLOB_MAX},
                .glob = set,
                .by_name = o->glob && !strchr(o->glob, '/')};
    st = csn_fs_walk(&c->fs, joined, 0, find_entry, &f, err);
    csn_entries_sort(&f.entries);
    bool more = f.entries.err == 0;
    for (size_t i = 0; st == CSN_OK && more && i < f.entries.count; i++) {
        csn_autofree char *full = NULL;
        const char *rel = f.entries.items[i].path;
        if (asprintf(&full, "%s%s%s", joined, *rel ? "/" : "", rel) < 0) {
            full = NULL;
            f.entries.err = ENOMEM;
            break;
        }
        more = grep_file(c, s, full, *rel ? rel : csn_arena_strdup(s->arena, asked));
    }
    if (st == CSN_OK && f.entries.err != 0)
        st = csn_fail(err, CSN_NOMEM, "grep");
    free(f.entries.items);
    csn_glob_free(set);
    return st;
}

static csn_status grep_inner(csn_call *c, const char *pattern, const csn_grep_opts *o,
                             csn_grep_result *r, csn_error **err)
{
    CSN_CLEANUP(csn_matcher_freep) csn_matcher *m = NULL;
    const char *asked = o->path ? o->path : ".";
    const char *joined = NULL;

    csn_status st = csn_matcher_new(pattern, o->flags, &m, err);
    if (st == CSN_OK)
        st = csn_call_path(c, asked, &joined, err);
    if (st < 0)
        return st;
    search s = {.arena = csn_result_arena(r),
                .matcher = m,
                .cancel = o->cancel,
                .context = o->context,
                .max = o->max ? o->max : CSN_GREP_MATCHES_DEFAULT};
    st = grep_tree(c, &s, o, asked, joined, err);
    if (st == CSN_OK && s.st < 0)
        st = csn_fail(err, s.st, "grep '%s': %s", pattern,
                      s.st == CSN_TOO_LARGE ? "the pattern takes too many steps"
                                            : csn_status_text(s.st));
    csn_grep_match *items =
        st == CSN_OK ? csn_arena_array(s.arena, s.count + 1, sizeof(*items)) : NULL;
    if (items && s.count > 0)
        memcpy(items, s.items, s.count * sizeof(*items));
    free(s.items);
    if (st == CSN_OK && !items)
        st = csn_fail(err, CSN_NOMEM, "grep");
    *r = (csn_grep_result){.items = items, .count = s.count, .truncated = s.truncated};
    return st;
}

csn_status csn_grep(csn_sandbox *sb, const char *pattern, const csn_grep_opts *opts,
                    csn_grep_result **ret, csn_error **err)
{
    csn_call c;
    csn_grep_opts o;
    csn_status st = csn_opts_take(opts, &o, sizeof(o), "grep options", err);

    if (st == CSN_OK)
        st = csn_flags_check(o.flags, CSN_GREP_REGEX | CSN_GREP_IGNORE_CASE, "grep", err);
    if (st == CSN_OK && (!ret || !pattern || !*pattern))
        st = csn_fail(err, CSN_INVALID, "grep: no pattern given");
    if (st == CSN_OK && o.context > CONTEXT_MAX)
        st = csn_fail(err, CSN_TOO_LARGE, "grep: at most %u lines of context", CONTEXT_MAX);
    if (st == CSN_OK)
        st = csn_call_begin(&c, sb, "grep", pattern, err);
    if (st < 0)
        return csn_error_note(st, err, "grep", opts ? o.path : NULL);
    csn_grep_result *r = csn_result_new(sizeof(*r));
    st = r ? grep_inner(&c, pattern, &o, r, err) : csn_fail(err, CSN_NOMEM, "grep");
    return csn_call_return(&c, st, r, ret, err);
}

void csn_grep_result_free(csn_grep_result *r)
{
    csn_result_free(r);
}
