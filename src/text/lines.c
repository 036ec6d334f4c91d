/* lines.c: extracts the line window of csn_read from a stream.
 *
 * Chunks may have any size; the result does not depend on them. An attacker controls the
 * content: lines may be endless, so memory is bounded by byte_max (plus the numbers).
 * Invariants: kept content is exact, at most byte_max bytes, and does not end inside a UTF-8
 * character; lines end at \n only; of cut_by_lines and cut_by_bytes only the first to happen is
 * set. */
#include "text/lines.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/utf8.h"

#define NUMBER_BYTES 21u /* longest "%6d\t" */

void csn_lines_init(csn_lines *w, uint64_t offset, uint64_t limit, size_t byte_max,
                    bool numbers)
{
    size_t max = byte_max;

    *w = (csn_lines){.offset = offset,
                     .limit = limit,
                     .numbers = numbers,
                     .byte_max = byte_max,
                     .at_line_start = true};
    if (numbers) {
        /* Every kept line has at least one byte, so at most byte_max lines get a number. */
        uint64_t lines = limit < byte_max ? limit : byte_max;
        size_t extra;
        if (__builtin_mul_overflow(lines, NUMBER_BYTES, &extra) ||
            __builtin_add_overflow(max, extra, &max))
            max = SIZE_MAX / 2;
    }
    csn_buf_init(&w->out, max);
}

void csn_lines_release(csn_lines *w)
{
    csn_buf_release(&w->out);
}

static bool in_window(const csn_lines *w)
{
    return w->line >= w->offset && w->line - w->offset < w->limit;
}

static bool past_window(const csn_lines *w)
{
    return w->line >= w->offset && w->line - w->offset >= w->limit;
}

/* Called when byte_max was reached and `next` did not fit. If `next` continues a UTF-8
 * character, its kept start is removed; bytes that are not UTF-8 stay. Only one further byte is
 * examined, so that the result does not depend on the chunks. */
static void drop_cut_char(csn_lines *w, char next)
{
    unsigned char joined[4];
    size_t cut = csn_utf8_cut_tail(w->out.data + w->mark, w->out.len - w->mark);

    if (cut == 0 || cut > 3)
        return;
    memcpy(joined, w->out.data + w->out.len - cut, cut);
    joined[cut] = (unsigned char)next;
    if (csn_utf8_char(joined, cut + 1) == 0 &&
        csn_utf8_cut_tail((const char *)joined, cut + 1) != cut + 1)
        return;
    w->out.len -= cut;
    w->content_bytes -= cut;
    if (w->out.len == w->mark) { /* nothing is left of this line */
        w->out.len = w->line_begin;
        w->output_lines--;
    }
    w->out.data[w->out.len] = '\0';
}

/* Keeps the bytes of the current line that fit. */
static int keep(csn_lines *w, const char *data, size_t len)
{
    size_t room = w->byte_max - w->content_bytes;
    size_t take = len < room ? len : room;
    int rc = 0;

    if (take > 0 && w->at_line_start) {
        w->line_begin = w->out.len;
        if (w->numbers)
            rc = csn_buf_printf(&w->out, "%6" PRIu64 "\t", w->line + 1);
        if (rc != 0)
            return rc;
        w->mark = w->out.len;
        w->output_lines++;
    }
    if (take > 0 && (rc = csn_buf_append(&w->out, data, take)) != 0)
        return rc;
    w->content_bytes += take;
    if (take < len) {
        w->cut_by_bytes = true;
        /* with take 0 at the start of a line the last kept byte is a \n: nothing to remove */
        if (w->out.len > 0 && !(take == 0 && w->at_line_start))
            drop_cut_char(w, data[take]);
    }
    return 0;
}

/* Counts the lines after the window. */
static void count_only(csn_lines *w, const char *data, size_t len)
{
    uint64_t n = 0;

    for (size_t i = 0; i < len; i++)
        n += data[i] == '\n';
    w->line += n;
    w->at_line_start = data[len - 1] == '\n';
}

/* Skips to the window, keeps it, then only counts. */
int csn_lines_feed(csn_lines *w, const void *data, size_t len)
{
    const char *p = data, *end = p + len;

    if (w->err != 0)
        return w->err;
    w->fed += len;
    while (p < end) {
        if (past_window(w) && !w->cut_by_bytes)
            w->cut_by_lines = true;
        if (w->cut_by_bytes || w->cut_by_lines) {
            count_only(w, p, (size_t)(end - p));
            return 0;
        }
        const char *nl = memchr(p, '\n', (size_t)(end - p));
        size_t n = (size_t)((nl ? nl + 1 : end) - p);
        if (in_window(w) && (w->err = keep(w, p, n)) != 0)
            return w->err;
        p += n;
        w->at_line_start = nl != NULL;
        if (nl)
            w->line++;
    }
    return 0;
}

bool csn_lines_complete(const csn_lines *w)
{
    return w->cut_by_bytes || past_window(w);
}

uint64_t csn_lines_total(const csn_lines *w)
{
    return w->line + (w->at_line_start ? 0 : 1);
}
