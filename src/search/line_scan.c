/* line_scan.c: finds the matching lines of a file, with the lines around them.
 *
 * Bytes come in pieces. A window of whole lines is searched at once; line numbers are counted
 * only up to matches and at the end of a window. A file with a NUL byte in its first 8 KiB is
 * binary and skipped. Patterns and lines are untrusted: the matcher limits its steps, and the
 * window is bounded. */
#include "search/line_scan.h"

#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "base/sniff.h"
#include "search/literal.h"

#define WINDOW_MAX                                                                             \
    (8u * 1024u * 1024u) /* a line longer than half of it is cut into several                  \
                          */
#define BINARY_PREFIX 8192u

static size_t line_end(const csn_buf *b, size_t from, size_t limit)
{
    const char *nl = memchr(b->data + from, '\n', limit - from);

    return nl ? (size_t)(nl - b->data) : limit;
}

/* The next free item, or NULL. */
static csn_grep_match *add_item(csn_hits *h)
{
    if (h->count == h->cap) {
        size_t cap = h->cap ? 2 * h->cap : 64;
        csn_grep_match *more = reallocarray(h->items, cap, sizeof(*more));
        if (!more)
            return NULL;
        h->items = more;
        h->cap = cap;
    }
    return &h->items[h->count];
}

static int emit(csn_line_scan *sc, uint64_t line, size_t from, size_t to, bool is_context)
{
    csn_hits *h = sc->hits;
    size_t len = to - from > CSN_GREP_LINE_MAX ? CSN_GREP_LINE_MAX : to - from;
    csn_grep_match *m = add_item(h);
    char *text = csn_arena_memdup(h->arena, sc->buf.data + from, len);

    if (!sc->kept_path)
        sc->kept_path = csn_arena_strdup(h->arena, sc->path);
    if (!m || !text || !sc->kept_path) {
        h->st = CSN_NOMEM;
        return 1;
    }
    *m = (csn_grep_match){.path = sc->kept_path,
                          .line = line,
                          .text = text,
                          .text_len = len,
                          .is_context = is_context};
    h->count++;
    sc->shown_line = line;
    return 0;
}

/* Adds the context before a match, without lines that are in the results already. */
static int emit_before(csn_line_scan *sc, uint64_t line, size_t from)
{
    size_t starts[CSN_SCAN_CONTEXT_MAX];
    uint32_t n = 0;
    size_t at = from;

    while (n < sc->hits->context && at > 0 && line - n > sc->shown_line + 1) {
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
static int emit_after(csn_line_scan *sc, size_t *at, uint64_t *line, size_t to)
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

/* Adds the line of a match at `from`, after the context due before it. */
static int take_match(csn_line_scan *sc, size_t *at, uint64_t *line, size_t from, size_t to)
{
    const char *nl = from > *at ? memrchr(sc->buf.data + *at, '\n', from - *at) : NULL;
    size_t start = nl ? (size_t)(nl - sc->buf.data) + 1 : *at;
    size_t end = line_end(&sc->buf, from, to);

    if (emit_after(sc, at, line, start) != 0)
        return 1;
    if (start > *at)
        *line += csn_count_newlines(sc->buf.data + *at, start - *at);
    if (sc->hits->context > 0 && emit_before(sc, *line, start) != 0)
        return 1;
    if (emit(sc, *line, start, end, false) != 0)
        return 1;
    sc->after = sc->hits->context;
    *at = end + 1;
    (*line)++;
    if (++sc->hits->matches >= sc->hits->max) {
        sc->hits->truncated = true;
        return 1;
    }
    return 0;
}

/* Searches the whole lines [fresh, to). `last`: no more bytes follow. */
static int scan(csn_line_scan *sc, size_t to, bool last)
{
    size_t at = sc->fresh;
    uint64_t line = sc->fresh_line;

    csn_matcher_window(sc->hits->matcher, sc->buf.data, to);
    while (at < to) {
        size_t from = 0, until = 0;
        /* The search covers the whole window, but a match must not span lines: if one does,
         * search again in the line where it begins. */
        int rc = csn_matcher_find(sc->hits->matcher, sc->buf.data, to, at, &from, &until);
        if (rc < 0) {
            sc->hits->st = (csn_status)rc;
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
            rc = csn_matcher_find(sc->hits->matcher, sc->buf.data, end, start < at ? at : start,
                                  &from, &until);
            if (rc <= 0) {
                if (emit_after(sc, &at, &line, end < to ? end + 1 : to) != 0)
                    return 1;
                if (at <= end) {
                    line += csn_count_newlines(sc->buf.data + at, end - at) + 1;
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
    if (at < to && !last)
        line += csn_count_newlines(sc->buf.data + at, to - at);
    sc->fresh = to;
    sc->fresh_line = line;
    return 0;
}

/* Drops searched lines, except the last ones, which may become context. */
static void slide(csn_line_scan *sc)
{
    size_t keep = sc->fresh;

    for (uint32_t n = 0; n < sc->hits->context && keep > 0; n++) {
        const char *nl = keep > 1 ? memrchr(sc->buf.data, '\n', keep - 1) : NULL;
        keep = nl ? (size_t)(nl - sc->buf.data) + 1 : 0;
    }
    if (sc->fresh - keep > WINDOW_MAX / 2)
        keep = sc->fresh; /* do not keep megabytes of context */
    memmove(sc->buf.data, sc->buf.data + keep, sc->buf.len - keep);
    sc->buf.len -= keep;
    sc->fresh -= keep;
}

/* ---- the file in pieces ---- */

void csn_line_scan_init(csn_line_scan *sc, csn_hits *hits)
{
    *sc = (csn_line_scan){.hits = hits};
    csn_buf_init(&sc->buf, 4 * (size_t)WINDOW_MAX);
}

void csn_line_scan_release(csn_line_scan *sc)
{
    csn_buf_release(&sc->buf);
}

void csn_line_scan_start(csn_line_scan *sc, const char *path)
{
    sc->path = path;
    sc->kept_path = NULL;
    sc->buf.len = sc->fresh = 0;
    sc->fresh_line = 1;
    sc->shown_line = 0;
    sc->after = 0;
    sc->looked = sc->binary = false;
}

char *csn_line_scan_room(csn_line_scan *sc, size_t len)
{
    if (csn_buf_reserve(&sc->buf, len) != 0) {
        sc->hits->st = CSN_NOMEM;
        return NULL;
    }
    return sc->buf.data + sc->buf.len;
}

/* The end of the lines that can be searched now. */
static size_t whole_lines(const csn_line_scan *sc)
{
    const char *nl = memrchr(sc->buf.data + sc->fresh, '\n', sc->buf.len - sc->fresh);

    if (nl)
        return (size_t)(nl - sc->buf.data) + 1;
    return sc->buf.len - sc->fresh > WINDOW_MAX / 2 ? sc->buf.len : sc->fresh;
}

bool csn_line_scan_took(csn_line_scan *sc, size_t len, bool last)
{
    const char *data = sc->buf.data + sc->buf.len;

    if (!sc->looked) {
        sc->looked = true;
        sc->binary = csn_sniff_binary(data, len < BINARY_PREFIX ? len : BINARY_PREFIX);
        if (sc->binary)
            return false;
    }
    sc->buf.len += len;
    size_t to = last ? sc->buf.len : whole_lines(sc);
    if (to > sc->fresh) {
        if (scan(sc, to, last) != 0)
            return false;
        if (!last)
            slide(sc);
    }
    return true;
}

bool csn_line_scan_feed(csn_line_scan *sc, const void *data, size_t len)
{
    char *room = csn_line_scan_room(sc, len);

    if (!room)
        return false;
    memcpy(room, data, len);
    return csn_line_scan_took(sc, len, false);
}

void csn_line_scan_end(csn_line_scan *sc)
{
    bool whole = !sc->binary && sc->hits->st == CSN_OK && !sc->hits->truncated;

    if (whole && sc->buf.len > sc->fresh)
        (void)scan(sc, sc->buf.len, true);
}
