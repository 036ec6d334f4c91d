/* patch.c: writes the change of one file as a git patch.
 *
 * Paths and contents come from a sandbox. A path is quoted as git does, so that no byte of it
 * can end a header line or pass for another header; content lines always follow a ' ', '-' or
 * '+' inside of a hunk whose header counts them. Invariant: either the whole patch is appended
 * or *out is as before. */
#include "text/patch.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "base/error.h"
#include "base/hash.h"

#define GIT_FILE 0100644u
#define GIT_EXEC 0100755u
#define GIT_LINK 0120000u

static uint32_t git_mode(const csn_patch_file *f)
{
    if (S_ISLNK(f->mode))
        return GIT_LINK;
    return f->mode & S_IXUSR ? GIT_EXEC : GIT_FILE;
}

static bool same_path(const csn_patch_file *before, const csn_patch_file *after)
{
    return strcmp(before->path, after->path) == 0;
}

csn_patch_kind csn_patch_kind_of(const csn_patch_file *before, const csn_patch_file *after)
{
    if (!before)
        return CSN_PATCH_ADDED;
    if (!after)
        return CSN_PATCH_DELETED;
    if (S_ISLNK(before->mode) != S_ISLNK(after->mode))
        return CSN_PATCH_RETYPED;
    if (!csn_text_equal(before->content, after->content))
        return CSN_PATCH_MODIFIED;
    if (git_mode(before) != git_mode(after))
        return CSN_PATCH_MODE;
    return same_path(before, after) ? CSN_PATCH_SAME : CSN_PATCH_RENAMED;
}

/* ---- checks ---------------------------------------------------------------------------- */

static bool path_is_plain(const char *path)
{
    for (const char *p = path;; p++) {
        size_t n = strcspn(p, "/");
        if (n == 0 || (n == 1 && *p == '.') || (n == 2 && p[0] == '.' && p[1] == '.'))
            return false;
        p += n;
        if (*p == '\0')
            return true;
    }
}

static csn_status check_file(const csn_patch_file *f, csn_error **err)
{
    if (!f)
        return CSN_OK;
    if (!f->path || !path_is_plain(f->path))
        return csn_fail(err, CSN_INVALID,
                        "patch: '%s' is not a relative path without empty, '.' and '..' parts",
                        f->path ? f->path : "");
    if (!S_ISREG(f->mode) && !S_ISLNK(f->mode))
        return csn_fail(err, CSN_INVALID,
                        "patch: %s: only files and symbolic links have a form in a patch",
                        f->path);
    return CSN_OK;
}

static csn_status check(const csn_patch_file *before, const csn_patch_file *after,
                        csn_error **err)
{
    if (!before && !after)
        return csn_fail(err, CSN_INVALID, "patch: no file given");
    csn_status st = check_file(before, err);
    return st == CSN_OK ? check_file(after, err) : st;
}

/* ---- headers --------------------------------------------------------------------------- */

/* The letter after the backslash, or 0. */
static char escape_letter(unsigned char c)
{
    static const char from[] = "\a\b\t\n\v\f\r\"\\", to[] = "abtnvfr\"\\";
    const char *at = c ? strchr(from, c) : NULL;

    return at ? to[at - from] : '\0';
}

static bool needs_quotes(const char *path)
{
    for (const unsigned char *p = (const unsigned char *)path; *p; p++)
        if (*p < ' ' || *p > '~' || *p == '"' || *p == '\\')
            return true;
    return false;
}

/* Callers that append many pieces check out->err once. */
int csn_patch_put_path(csn_buf *out, const char *prefix, const char *path)
{
    int rc = 0;

    if (!needs_quotes(path)) {
        rc = csn_buf_puts(out, prefix);
        return rc == 0 ? csn_buf_puts(out, path) : rc;
    }
    rc = csn_buf_printf(out, "\"%s", prefix);
    for (const unsigned char *p = (const unsigned char *)path; *p && rc == 0; p++) {
        char letter = escape_letter(*p);
        if (letter)
            rc = csn_buf_printf(out, "\\%c", letter);
        else if (*p < ' ' || *p > '~')
            rc = csn_buf_printf(out, "\\%03o", *p);
        else
            rc = csn_buf_putc(out, (char)*p);
    }
    return rc == 0 ? csn_buf_putc(out, '"') : rc;
}

static void put_side(csn_buf *out, const char *prefix, const csn_patch_file *f)
{
    if (f)
        (void)csn_patch_put_path(out, prefix, f->path);
    else
        (void)csn_buf_puts(out, "/dev/null");
}

/* As git, a tab ends a name with a space: other tools would take the rest for a date. */
static void put_name_line(csn_buf *out, const char *mark, const char *prefix,
                          const csn_patch_file *f)
{
    (void)csn_buf_puts(out, mark);
    put_side(out, prefix, f);
    (void)csn_buf_puts(out, f && strchr(f->path, ' ') ? "\t\n" : "\n");
}

static void put_headers(csn_buf *out, const csn_patch_file *before, const csn_patch_file *after)
{
    (void)csn_buf_puts(out, "diff --git ");
    (void)csn_patch_put_path(out, "a/", before ? before->path : after->path);
    (void)csn_buf_putc(out, ' ');
    (void)csn_patch_put_path(out, "b/", after ? after->path : before->path);
    (void)csn_buf_putc(out, '\n');
    if (!before)
        (void)csn_buf_printf(out, "new file mode %o\n", git_mode(after));
    else if (!after)
        (void)csn_buf_printf(out, "deleted file mode %o\n", git_mode(before));
    else if (git_mode(before) != git_mode(after))
        (void)csn_buf_printf(out, "old mode %o\nnew mode %o\n", git_mode(before),
                             git_mode(after));
    if (before && after && !same_path(before, after)) {
        (void)csn_buf_puts(out, "rename from ");
        (void)csn_patch_put_path(out, "", before->path);
        (void)csn_buf_puts(out, "\nrename to ");
        (void)csn_patch_put_path(out, "", after->path);
        (void)csn_buf_putc(out, '\n');
    }
}

static void put_hash(csn_buf *out, const char *which, const csn_patch_file *f)
{
    char hex[CSN_HASH_HEX];

    if (!f)
        return;
    csn_hash_bytes(f->content.data ? f->content.data : "", f->content.len, hex);
    (void)csn_buf_printf(out, "# %s: %zu bytes, sha256 %s\n", which, f->content.len, hex);
}

/* git takes no header without an extended line. Ids of zeros stand for unknown ones. */
static void put_binary(csn_buf *out, const csn_patch_file *before, const csn_patch_file *after)
{
    (void)csn_buf_puts(out, "index 0000000..0000000");
    if (before && after && git_mode(before) == git_mode(after))
        (void)csn_buf_printf(out, " %o", git_mode(after));
    (void)csn_buf_putc(out, '\n');
    (void)csn_buf_puts(out, "Binary files ");
    put_side(out, "a/", before);
    (void)csn_buf_puts(out, " and ");
    put_side(out, "b/", after);
    (void)csn_buf_puts(out, " differ\n");
    put_hash(out, "old", before);
    put_hash(out, "new", after);
}

/* ---- hunks ----------------------------------------------------------------------------- */

/* A position in a text that only moves forward. */
typedef struct cursor {
    csn_text text;
    size_t at, line;
} cursor;

static void skip_to(cursor *c, size_t line)
{
    for (; c->line < line && c->at < c->text.len; c->line++)
        c->at += csn_text_line_len(c->text, c->at);
}

static void put_lines(csn_buf *out, char mark, cursor *c, size_t end)
{
    for (; c->line < end && c->at < c->text.len; c->line++) {
        size_t len = csn_text_line_len(c->text, c->at);
        const char *line = c->text.data + c->at;
        (void)csn_buf_putc(out, mark);
        (void)csn_buf_append(out, line, len);
        if (line[len - 1] != '\n')
            (void)csn_buf_puts(out, "\n\\ No newline at end of file\n");
        c->at += len;
    }
}

/* "start,count": without the count if it is 1; an empty range is named by the line before. */
static void put_range(csn_buf *out, char mark, size_t start, size_t count)
{
    (void)csn_buf_printf(out, "%c%zu", mark, count ? start + 1 : start);
    if (count != 1)
        (void)csn_buf_printf(out, ",%zu", count);
}

/* Writes hunks [from, to), which share their context, as one. */
static void put_group(csn_buf *out, const csn_hunk *from, const csn_hunk *to, size_t context,
                      size_t a_lines, cursor *a, cursor *b)
{
    const csn_hunk *last = to - 1;
    size_t before = from->a_start < context ? from->a_start : context;
    size_t a_end = last->a_start + last->a_count, b_end = last->b_start + last->b_count;
    size_t after = a_lines - a_end < context ? a_lines - a_end : context;
    size_t a_start = from->a_start - before, b_start = from->b_start - before;

    (void)csn_buf_puts(out, "@@ ");
    put_range(out, '-', a_start, a_end + after - a_start);
    (void)csn_buf_putc(out, ' ');
    put_range(out, '+', b_start, b_end + after - b_start);
    (void)csn_buf_puts(out, " @@\n");
    skip_to(a, a_start);
    for (const csn_hunk *h = from; h < to; h++) {
        put_lines(out, ' ', a, h->a_start);
        put_lines(out, '-', a, h->a_start + h->a_count);
        skip_to(b, h->b_start);
        put_lines(out, '+', b, h->b_start + h->b_count);
    }
    put_lines(out, ' ', a, a_end + after);
}

static void put_hunks(csn_buf *out, const csn_linediff *d, size_t context, csn_text a,
                      csn_text b)
{
    const csn_hunk *end = d->hunks + d->count;
    size_t a_lines = csn_text_count_lines(a);
    cursor at_a = {.text = a}, at_b = {.text = b};

    for (const csn_hunk *from = d->hunks, *to; from < end && out->err == 0; from = to) {
        for (to = from + 1; to < end; to++) {
            size_t between = to->a_start - (to[-1].a_start + to[-1].a_count);
            if (between / 2 + between % 2 > context) /* more than 2 * context */
                break;
        }
        put_group(out, from, to, context, a_lines, &at_a, &at_b);
    }
}

/* ---- one change ------------------------------------------------------------------------- */

static csn_text content_of(const csn_patch_file *f)
{
    return f ? f->content : (csn_text){0};
}

static bool is_binary(const csn_patch_file *before, const csn_patch_file *after)
{
    return csn_text_is_binary(content_of(before)) || csn_text_is_binary(content_of(after));
}

/* Writes anything but a change of type; out is NULL if only the counts are wanted. Failures of
 * the buffer stay in out->err. */
static csn_status write_one(const csn_patch_file *before, const csn_patch_file *after,
                            size_t context, csn_buf *out, csn_patch_stat *stat, csn_error **err)
{
    csn_text a = content_of(before), b = content_of(after);
    CSN_CLEANUP(csn_linediff_release) csn_linediff d = {0};

    if (csn_patch_kind_of(before, after) == CSN_PATCH_SAME)
        return CSN_OK;
    if (out)
        put_headers(out, before, after);
    if (csn_text_equal(a, b))
        return CSN_OK;
    if (is_binary(before, after)) {
        stat->binary = true;
        if (out)
            put_binary(out, before, after);
        return CSN_OK;
    }
    csn_status st = csn_linediff_make(a, b, NULL, &d, err);
    if (st != CSN_OK)
        return st;
    for (size_t i = 0; i < d.count; i++) {
        stat->removed += d.hunks[i].a_count;
        stat->added += d.hunks[i].b_count;
    }
    if (!out)
        return CSN_OK;
    put_name_line(out, "--- ", "a/", before);
    put_name_line(out, "+++ ", "b/", after);
    put_hunks(out, &d, context, a, b);
    return CSN_OK;
}

static csn_status write_change(const csn_patch_file *before, const csn_patch_file *after,
                               size_t context, csn_buf *out, csn_patch_stat *ret,
                               csn_error **err)
{
    csn_patch_stat stat = {0};
    csn_status st = check(before, after, err);
    const char *path = after ? after->path : before ? before->path : NULL;

    if (st == CSN_OK && csn_patch_kind_of(before, after) == CSN_PATCH_RETYPED) {
        st = write_one(before, NULL, context, out, &stat, err);
        before = NULL;
    }
    if (st == CSN_OK)
        st = write_one(before, after, context, out, &stat, err);
    if (st == CSN_OK && out && out->err != 0)
        st = out->err == ENOSPC
                 ? csn_fail(err, CSN_TOO_LARGE, "patch: %s: the patch would be too large", path)
                 : csn_fail(err, CSN_NOMEM, "patch: %s: no memory", path);
    if (st == CSN_OK && ret)
        *ret = stat;
    return st;
}

csn_status csn_patch_write(const csn_patch_file *before, const csn_patch_file *after,
                           unsigned context, csn_buf *out, csn_patch_stat *ret_stat,
                           csn_error **err)
{
    size_t len = out->len;
    int earlier = out->err;

    out->err = 0; /* a failure of an earlier caller is not one of this patch */
    csn_status st = write_change(before, after, context, out, ret_stat, err);
    if (st != CSN_OK && out->data) {
        out->len = len;
        out->data[len] = '\0';
    }
    if (earlier != 0 || st != CSN_OK)
        out->err = earlier;
    return st;
}

csn_status csn_patch_count(const csn_patch_file *before, const csn_patch_file *after,
                           csn_patch_stat *ret, csn_error **err)
{
    return write_change(before, after, 0, NULL, ret, err);
}
