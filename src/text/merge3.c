/* merge3.c: three-way merge by lines, from the definition of diff3.
 *
 * The base is compared with each side. A region is a maximal union of hunks of both sides that
 * overlap or touch in lines of the base; outside of regions all three texts are equal. Each
 * region is decided by the bytes that the three texts have there. Texts come from a sandbox:
 * they are read once, forward, and the two diffs have allowances of their own, so that the
 * result does not depend on which side is called ours. Invariant: either the whole result is
 * appended or *out is as before. */
#include "text/merge3.h"

#include <errno.h>
#include <string.h>

#include "base/error.h"

/* A text of which lines are taken from the front. */
typedef struct reader {
    csn_text rest;
    size_t line;
} reader;

/* A changed text, and the hunks of the base that are not merged yet. */
typedef struct side {
    reader text;
    csn_linediff diff;
    size_t next; /* hunk */
} side;

typedef struct merge {
    reader base;
    side ours, theirs;
    const csn_merge3_opts *opts;
    csn_buf *out;
    size_t start; /* length of out before the merge */
    size_t conflicts;
} merge;

/* What the three texts have in one region. */
typedef struct region {
    csn_text base, ours, theirs;
} region;

static void merge_release(merge *m)
{
    csn_linediff_release(&m->ours.diff);
    csn_linediff_release(&m->theirs.diff);
}

static csn_text take_lines(reader *r, size_t lines)
{
    csn_text taken = {r->rest.data, 0};

    for (size_t n = 0; n < lines && taken.len < r->rest.len; n++)
        taken.len += csn_text_line_len(r->rest, taken.len);
    if (taken.len > 0)
        r->rest = (csn_text){r->rest.data + taken.len, r->rest.len - taken.len};
    r->line += lines;
    return taken;
}

static void put(csn_buf *out, csn_text t)
{
    if (t.len > 0)
        (void)csn_buf_append(out, t.data, t.len);
}

/* ---- conflicts ------------------------------------------------------------------------- */

static bool ends_with(csn_text t, const char *end)
{
    size_t len = strlen(end);

    return t.len >= len && memcmp(t.data + t.len - len, end, len) == 0;
}

/* Counts the lines that end with CRLF and those that end with a bare LF. */
static void count_line_ends(csn_text t, size_t *crlf, size_t *lf)
{
    for (size_t at = 0, len; at < t.len; at += len) {
        len = csn_text_line_len(t, at);
        csn_text line = {t.data + at, len};
        if (ends_with(line, "\r\n"))
            ++*crlf;
        else if (ends_with(line, "\n"))
            ++*lf;
    }
}

/* The line end of the markers: CRLF if all lines of the conflict have it. Without a line that
 * ends, the merged line before decides. */
static const char *marker_end(const merge *m, const region *r)
{
    size_t crlf = 0, lf = 0;

    count_line_ends(r->ours, &crlf, &lf);
    count_line_ends(r->theirs, &crlf, &lf);
    if (crlf + lf == 0)
        count_line_ends(r->base, &crlf, &lf);
    if (crlf + lf > 0)
        return lf == 0 ? "\r\n" : "\n";
    if (m->out->len == m->start)
        return "\n";
    csn_text before = {m->out->data + m->start, m->out->len - m->start};
    return ends_with(before, "\r\n") ? "\r\n" : "\n";
}

static void put_marker(csn_buf *out, const char *marker, const char *label, const char *end)
{
    (void)csn_buf_puts(out, marker);
    if (label && *label) {
        (void)csn_buf_putc(out, ' ');
        (void)csn_buf_puts(out, label);
    }
    (void)csn_buf_puts(out, end);
}

/* A marker follows, so the last line needs an end. */
static void put_part(csn_buf *out, csn_text t, const char *end)
{
    put(out, t);
    if (t.len > 0 && !ends_with(t, "\n"))
        (void)csn_buf_puts(out, end);
}

static void put_conflict(merge *m, region r)
{
    const csn_merge3_opts *o = m->opts;
    csn_text common = r.ours, last = {0};

    if (!o->diff3) { /* the lines of the base would not fit shortened sides */
        (void)csn_text_cut_first_lines(&r.ours, &r.theirs);
        put(m->out, (csn_text){common.data, common.len - r.ours.len});
        common = r.ours;
        csn_text_cut_last_lines(&r.ours, &r.theirs);
        if (common.len > r.ours.len)
            last = (csn_text){r.ours.data + r.ours.len, common.len - r.ours.len};
    }
    const char *end = marker_end(m, &r);
    put_marker(m->out, "<<<<<<<", o->ours, end);
    put_part(m->out, r.ours, end);
    if (o->diff3) {
        put_marker(m->out, "|||||||", o->base, end);
        put_part(m->out, r.base, end);
    }
    put_marker(m->out, "=======", NULL, end);
    put_part(m->out, r.theirs, end);
    put_marker(m->out, ">>>>>>>", o->theirs, end);
    put(m->out, last);
    m->conflicts++;
}

/* ---- regions --------------------------------------------------------------------------- */

static const csn_hunk *pending_hunk(const side *s)
{
    return s->next < s->diff.count ? &s->diff.hunks[s->next] : NULL;
}

/* The line of the base at which the next region starts; false: there is none. */
static bool find_region(const merge *m, size_t *ret)
{
    const csn_hunk *ours = pending_hunk(&m->ours), *theirs = pending_hunk(&m->theirs);

    if (!ours && !theirs)
        return false;
    if (ours && theirs)
        *ret = ours->a_start < theirs->a_start ? ours->a_start : theirs->a_start;
    else
        *ret = ours ? ours->a_start : theirs->a_start;
    return true;
}

/* Adds the hunks of s that start at or before *end, which moves to the end of the last one.
 * *growth: lines that they add, and *loss: lines that they remove. */
static bool absorb(side *s, size_t *end, size_t *growth, size_t *loss)
{
    bool any = false;

    for (const csn_hunk *h = pending_hunk(s); h && h->a_start <= *end; h = pending_hunk(s)) {
        if (h->a_start + h->a_count > *end)
            *end = h->a_start + h->a_count;
        *growth += h->b_count;
        *loss += h->a_count;
        s->next++;
        any = true;
    }
    return any;
}

/* Takes the region that starts where all three readers are. */
static region take_region(merge *m)
{
    size_t start = m->base.line, end = start;
    size_t growth[2] = {0}, loss[2] = {0};
    bool more = true;

    while (more) {
        more = absorb(&m->ours, &end, &growth[0], &loss[0]);
        more = absorb(&m->theirs, &end, &growth[1], &loss[1]) || more;
    }
    return (region){
        .base = take_lines(&m->base, end - start),
        .ours = take_lines(&m->ours.text, end - start - loss[0] + growth[0]),
        .theirs = take_lines(&m->theirs.text, end - start - loss[1] + growth[1]),
    };
}

static void merge_region(merge *m, region r)
{
    if (csn_text_equal(r.ours, r.theirs) || csn_text_equal(r.theirs, r.base))
        put(m->out, r.ours);
    else if (csn_text_equal(r.ours, r.base))
        put(m->out, r.theirs);
    else
        put_conflict(m, r);
}

static void merge_lines(merge *m)
{
    size_t start = 0;

    while (m->out->err == 0 && find_region(m, &start)) {
        size_t unchanged = start - m->base.line;
        put(m->out, take_lines(&m->base, unchanged));
        (void)take_lines(&m->ours.text, unchanged);
        (void)take_lines(&m->theirs.text, unchanged);
        merge_region(m, take_region(m));
    }
    put(m->out, m->base.rest);
}

/* ---- one merge ------------------------------------------------------------------------- */

static bool has_line_end(const char *label)
{
    return label && strchr(label, '\n');
}

static csn_status merge_texts(merge *m, csn_merge3_result *ret, csn_error **err)
{
    csn_text base = m->base.rest, ours = m->ours.text.rest, theirs = m->theirs.text.rest;

    if (csn_text_is_binary(base) || csn_text_is_binary(ours) || csn_text_is_binary(theirs)) {
        bool take_theirs = csn_text_equal(ours, base);
        ret->binary = true;
        ret->conflicts =
            !take_theirs && !csn_text_equal(theirs, base) && !csn_text_equal(ours, theirs);
        put(m->out, take_theirs ? theirs : ours);
        return CSN_OK;
    }
    csn_status st = csn_linediff_make(base, ours, NULL, &m->ours.diff, err);
    if (st == CSN_OK)
        st = csn_linediff_make(base, theirs, NULL, &m->theirs.diff, err);
    if (st != CSN_OK)
        return st;
    merge_lines(m);
    ret->conflicts = m->conflicts;
    return CSN_OK;
}

csn_status csn_merge3(csn_text base, csn_text ours, csn_text theirs,
                      const csn_merge3_opts *opts, csn_buf *out, csn_merge3_result *ret,
                      csn_error **err)
{
    static const csn_merge3_opts none;
    csn_merge3_result result = {0};
    int earlier = out->err;
    CSN_CLEANUP(merge_release)
    merge m = {.base.rest = base,
               .ours.text.rest = ours,
               .theirs.text.rest = theirs,
               .opts = opts ? opts : &none,
               .out = out,
               .start = out->len};

    if (has_line_end(m.opts->ours) || has_line_end(m.opts->theirs) ||
        has_line_end(m.opts->base))
        return csn_fail(err, CSN_INVALID, "merge: a label has a line end");
    out->err = 0; /* a failure of an earlier caller is not one of this merge */
    csn_status st = merge_texts(&m, &result, err);
    if (st == CSN_OK && out->err == ENOSPC)
        st = csn_fail(err, CSN_TOO_LARGE, "the merged text would be too large");
    else if (st == CSN_OK && out->err != 0)
        st = csn_fail(err, CSN_NOMEM, "no memory to merge two texts");
    if (st == CSN_OK)
        *ret = result;
    else if (out->data) {
        out->len = m.start;
        out->data[out->len] = '\0';
    }
    if (earlier != 0 || st != CSN_OK)
        out->err = earlier;
    return st;
}
