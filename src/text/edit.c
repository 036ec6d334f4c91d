/* edit.c: replaces exact strings in the bytes of a file, with hints when a string is not found.
 *
 * File (at most CSN_EDIT_FILE_MAX) and edits are untrusted bytes: nothing in them is a pattern,
 * `$&` in a new string is two literal bytes, NUL and invalid UTF-8 pass through. Invariants:
 * either all edits are applied and *out is the result, or *out is untouched; matches are
 * counted left to right without overlap; searches for a hint are linear, because an agent can
 * fail as often as it likes. */
#include "text/edit.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "base/path.h"
#include "base/utf8.h"

#define SHOWN_BYTES   120u               /* bytes of a string in a message */
#define HINT_LINES    5u                 /* line numbers listed in a hint */
#define NEAR_LINE     256u               /* bytes of a line that are compared */
#define NEAR_SCAN_MAX (8u * 1024 * 1024) /* bytes searched for the nearest line */
#define NEAR_PERCENT  50u                /* least similarity of a line in a hint */
#define PAIRS         1024u              /* buckets for pairs of letters */

/* One edit with its lengths, and its index in the call. */
typedef struct edit {
    const char *old, *new;
    size_t old_len, new_len;
    bool all;
    size_t index, count;
} edit;

/* Appends text for a message: one line, cut at a character, controls and bad bytes escaped. */
static void show(const char *s, size_t len, csn_buf *out)
{
    size_t end = len;

    if (end > SHOWN_BYTES) {
        end = SHOWN_BYTES;
        end -= csn_utf8_cut_tail(s, end);
    }
    for (size_t i = 0; i < end;) {
        const unsigned char *p = (const unsigned char *)s + i;
        size_t n = csn_utf8_char(p, end - i);
        if (*p == '\n' || *p == '\t' || *p == '\r') {
            (void)csn_buf_printf(out, "\\%c", *p == '\n' ? 'n' : *p == '\t' ? 't' : 'r');
            n = 1;
        } else if (n == 0 || *p < ' ' || *p == 0x7f) {
            (void)csn_buf_printf(out, "\\x%02x", *p);
            n = 1;
        } else {
            (void)csn_buf_append(out, p, n);
        }
        i += n;
    }
    if (end < len)
        (void)csn_buf_puts(out, "...");
}

/* Used only for messages: applying edits never counts lines. */
static uint64_t line_of(const char *text, size_t pos)
{
    uint64_t line = 1;

    for (size_t i = 0; i < pos; i++)
        line += text[i] == '\n';
    return line;
}

/* The line around pos, without its newline. */
static const char *line_at(const char *text, size_t len, size_t pos, size_t *ret_len)
{
    const char *start = memrchr(text, '\n', pos);
    const char *end = memchr(text + pos, '\n', len - pos);

    start = start ? start + 1 : text;
    *ret_len = (size_t)((end ? end : text + len) - start);
    return start;
}

/* ---- hints for a string that was not found ------------------------------------------- */

/* Copies s with \r\n instead of \n (or the other way round). */
static int turn_line_ends(const char *s, size_t len, bool to_crlf, csn_buf *out)
{
    int rc = 0;

    for (size_t i = 0; i < len && rc == 0; i++) {
        bool pair = s[i] == '\r' && i + 1 < len && s[i + 1] == '\n';
        if (pair && !to_crlf)
            continue;
        if (to_crlf && s[i] == '\n' && (i == 0 || s[i - 1] != '\r'))
            rc = csn_buf_putc(out, '\r');
        if (rc == 0)
            rc = csn_buf_putc(out, s[i]);
    }
    return rc;
}

/* Checks the most frequent cause first: the model saw \n where the file has \r\n. */
static bool hint_line_ends(const edit *e, const char *text, size_t len, csn_buf *hint)
{
    for (int to_crlf = 1; to_crlf >= 0; to_crlf--) {
        csn_autobuf turned;
        csn_buf_init(&turned, e->old_len * 2 + 1);
        if (turn_line_ends(e->old, e->old_len, to_crlf, &turned) != 0 ||
            turned.len == e->old_len)
            continue;
        const char *at = memmem(text, len, turned.data, turned.len);
        if (!at)
            continue;
        (void)csn_buf_printf(hint,
                             "only the line endings differ: the file has %s at line %llu, "
                             "old_string has %s",
                             to_crlf ? "CRLF (\\r\\n)" : "LF (\\n)",
                             (unsigned long long)line_of(text, (size_t)(at - text)),
                             to_crlf ? "LF (\\n)" : "CRLF (\\r\\n)");
        return true;
    }
    return false;
}

static bool is_white(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* Removes all white space, so that re-indented and re-wrapped code matches. */
static size_t squeeze(const char *s, size_t len, char *out)
{
    size_t n = 0;

    for (size_t i = 0; i < len; i++)
        if (!is_white(s[i]))
            out[n++] = s[i];
    return n;
}

/* Hints at a place that differs only in white space. */
static bool hint_white_space(const edit *e, const char *text, size_t len, csn_buf *hint)
{
    csn_autofree char *want = malloc(e->old_len + 1), *have = malloc(len + 1);

    if (!want || !have)
        return false;
    size_t want_len = squeeze(e->old, e->old_len, want);
    size_t have_len = squeeze(text, len, have);
    const char *at = want_len > 0 ? memmem(have, have_len, want, want_len) : NULL;
    if (!at)
        return false;
    size_t skip = (size_t)(at - have), pos = 0, line_len;
    for (;; pos++)
        if (!is_white(text[pos]) && skip-- == 0)
            break;
    const char *line = line_at(text, len, pos, &line_len);
    (void)csn_buf_printf(hint, "only white space differs at line %llu: '",
                         (unsigned long long)line_of(text, pos));
    show(line, line_len, hint);
    (void)csn_buf_puts(hint, "'");
    return true;
}

/* Counts the pairs of letters in a line, ignoring case and outer blanks. */
typedef struct pairs {
    uint16_t count[PAIRS];
    size_t total;
} pairs;

static const char *trim(const char *s, size_t *len)
{
    while (*len > 0 && is_white(*s)) {
        s++;
        --*len;
    }
    while (*len > 0 && is_white(s[*len - 1]))
        --*len;
    if (*len > NEAR_LINE)
        *len = NEAR_LINE;
    return s;
}

/* Returns the bucket of a pair. A collision only makes two lines look slightly more alike. */
static unsigned pair_at(const char *s)
{
    unsigned a = (unsigned)tolower((unsigned char)s[0]);
    unsigned b = (unsigned)tolower((unsigned char)s[1]);

    return (a * 31u + b) % PAIRS;
}

/* Returns the per cent of pairs that two lines share (Dice coefficient). `want` is unchanged on
 * return. */
static unsigned alike(pairs *want, const char *s, size_t len)
{
    size_t shared = 0;

    s = trim(s, &len);
    if (len < 2 || want->total == 0)
        return 0;
    size_t total = len - 1, used = 0;
    /* each pair of `want` counts once; the counts are restored below */
    uint16_t spent[NEAR_LINE];
    for (size_t i = 0; i < total; i++) {
        unsigned p = pair_at(s + i);
        if (want->count[p] == 0)
            continue;
        want->count[p]--;
        spent[used++] = (uint16_t)p;
        shared++;
    }
    while (used > 0)
        want->count[spent[--used]]++;
    return (unsigned)(200 * shared / (total + want->total));
}

/* Hints at the line most similar to the first line of old that is not blank. The score ignores
 * the order of pairs, which is cheap and enough to find a typo. */
static void hint_nearest(const edit *e, const char *text, size_t len, csn_buf *hint)
{
    pairs want = {0};
    const char *first = e->old;
    size_t first_len = e->old_len, best_at = 0, best_len = 0;
    unsigned best = 0;

    first = trim(first, &first_len); /* skip blank lines */
    const char *nl = memchr(first, '\n', first_len);
    if (nl)
        first_len = (size_t)(nl - first);
    for (size_t i = 0; i + 1 < first_len; i++, want.total++)
        want.count[pair_at(first + i)]++;
    size_t scan = len < NEAR_SCAN_MAX ? len : NEAR_SCAN_MAX;
    for (size_t pos = 0; pos < scan;) {
        const char *end = memchr(text + pos, '\n', len - pos);
        size_t line_len = end ? (size_t)(end - text) - pos : len - pos;
        unsigned score = alike(&want, text + pos, line_len);
        if (score > best) {
            best = score;
            best_at = pos;
            best_len = line_len;
        }
        pos += line_len + 1;
    }
    if (best < NEAR_PERCENT) {
        (void)csn_buf_puts(hint, len == 0 ? "the file is empty" : "no line comes near it");
        return;
    }
    (void)csn_buf_printf(hint, "the nearest line is %llu: '",
                         (unsigned long long)line_of(text, best_at));
    show(text + best_at, best_len, hint);
    (void)csn_buf_puts(hint, "'");
}

/* ---- errors -------------------------------------------------------------------------- */

/* Starts the hint with the number of the edit if there are several. */
static void hint_begin(const edit *e, csn_buf *hint)
{
    csn_buf_init(hint, 4096);
    if (e->count > 1)
        (void)csn_buf_printf(hint, "edit %zu of %zu: ", e->index + 1, e->count);
}

/* Searches for a hint only if the caller wants an error. */
static csn_status fail_no_match(const char *path, const edit *e, const char *text, size_t len,
                                csn_error **err)
{
    csn_autobuf shown, hint;

    csn_buf_init(&shown, 4096);
    hint_begin(e, &hint);
    show(e->old, e->old_len, &shown);
    csn_status st = csn_fail(err, CSN_NO_MATCH, "String not found in file: '%s'",
                             shown.data ? shown.data : "");
    if (!err)
        return st;
    if (!hint_line_ends(e, text, len, &hint) && !hint_white_space(e, text, len, &hint))
        hint_nearest(e, text, len, &hint);
    st = csn_error_note(st, err, NULL, path);
    return csn_error_advise(st, err, "%s", hint.data ? hint.data : "");
}

static csn_status fail_ambiguous(const char *path, const edit *e, const char *text, size_t len,
                                 csn_error **err)
{
    csn_autobuf shown, hint;
    const char *p = text, *end = text + len, *seen = text;
    uint64_t line = 1, found = 0;

    csn_buf_init(&shown, 4096);
    hint_begin(e, &hint);
    show(e->old, e->old_len, &shown);
    csn_status st =
        csn_fail(err, CSN_AMBIGUOUS,
                 "String '%s' appears multiple times. Use replaceAll=true to replace "
                 "all occurrences.",
                 shown.data ? shown.data : "");
    (void)csn_buf_puts(&hint, "it is at line");
    while ((p = memmem(p, (size_t)(end - p), e->old, e->old_len)) != NULL) {
        line += line_of(seen, (size_t)(p - seen)) - 1;
        seen = p;
        if (found < HINT_LINES)
            (void)csn_buf_printf(&hint, "%s %llu", found ? "," : "", (unsigned long long)line);
        found++;
        p += e->old_len;
    }
    (void)csn_buf_printf(&hint, "%s (%llu in all); add lines around it to make it unique",
                         found > HINT_LINES ? " ..." : "", (unsigned long long)found);
    st = csn_error_note(st, err, NULL, path);
    return csn_error_advise(st, err, "%s", hint.data ? hint.data : "");
}

static csn_status fail_buffer(int errnum, const char *path, csn_error **err)
{
    csn_status st = errnum == ENOSPC
                        ? csn_fail(err, CSN_TOO_LARGE, "the edited file would be too large")
                        : csn_fail(err, CSN_NOMEM, "edit");

    return csn_error_note(st, err, NULL, path);
}

/* ---- applying ------------------------------------------------------------------------ */

/* A length of 0 means strlen, so an empty new_string needs no length. */
static csn_status check(const csn_edit_item *item, size_t index, size_t count, edit *ret,
                        csn_error **err)
{
    if (!item->old_string)
        return csn_fail(err, CSN_INVALID, "edit %zu: old_string is missing", index + 1);
    *ret = (edit){.old = item->old_string,
                  .old_len = item->old_len ? item->old_len : strlen(item->old_string),
                  .new = item->new_string ? item->new_string : "",
                  .all = item->replace_all != 0,
                  .index = index,
                  .count = count};
    ret->new_len = item->new_len && item->new_string ? item->new_len : strlen(ret->new);
    if (ret->old_len == 0)
        return csn_fail(err, CSN_INVALID, "edit %zu: old_string is empty", index + 1);
    return CSN_OK;
}

/* Checks uniqueness first. Replacing continues after each match, so an edit does not match the
 * text that it inserted. */
static csn_status apply_one(const char *path, const edit *e, const char *text, size_t len,
                            csn_buf *out, uint64_t *count, csn_error **err)
{
    const char *end = text + len, *done = text;
    const char *hit = memmem(text, len, e->old, e->old_len);
    int rc = 0;

    if (!hit)
        return fail_no_match(path, e, text, len, err);
    const char *after = hit + e->old_len;
    if (!e->all && memmem(after, (size_t)(end - after), e->old, e->old_len))
        return fail_ambiguous(path, e, text, len, err);
    for (; hit && rc == 0; hit = memmem(done, (size_t)(end - done), e->old, e->old_len)) {
        rc = csn_buf_append(out, done, (size_t)(hit - done));
        if (rc == 0)
            rc = csn_buf_append(out, e->new, e->new_len);
        done = hit + e->old_len;
        ++*count;
    }
    if (rc == 0)
        rc = csn_buf_append(out, done, (size_t)(end - done));
    return rc == 0 ? CSN_OK : fail_buffer(rc, path, err);
}

/* Alternates between two buffers; out is replaced at the end. */
csn_status csn_edit_apply(const char *path, const char *text, size_t len,
                          const csn_edit_item *edits, size_t count, csn_buf *out,
                          uint64_t *ret_occurrences, csn_error **err)
{
    csn_autobuf now, next; /* the current text and the next one */
    uint64_t occurrences = 0;

    csn_buf_init(&now, out->max);
    csn_buf_init(&next, out->max);
    if (!text)
        text = "";
    if (!edits || count == 0)
        return csn_error_note(csn_fail(err, CSN_INVALID, "no edits given"), err, NULL, path);
    for (size_t i = 0; i < count; i++) {
        edit e = {0};
        csn_status st = check(&edits[i], i, count, &e, err);
        if (st < 0)
            return csn_error_note(st, err, NULL, path);
        st = apply_one(path, &e,
                       i == 0     ? text
                       : now.data ? now.data
                                  : "",
                       i == 0 ? len : now.len, &next, &occurrences, err);
        if (st < 0)
            return st;
        csn_buf spare = now;
        now = next;
        next = spare;
        next.len = 0;
    }
    csn_buf spare = *out;
    *out = now;
    now = spare;
    *ret_occurrences = occurrences;
    return CSN_OK;
}
