/* stream.c: the framings that providers stream with.
 *
 * Called by the remote backends with what net/http hands over; fuzzed (fuzz_stream). The bytes
 * are a server's, or of whoever stands in its place: every length is checked before memory is
 * taken for it, and memory grows with what has come, never with what was announced. Cost is
 * linear in the bytes, however small the pieces. */
#include "remote/stream.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"

void csn_stream_init(csn_stream *s, csn_stream_kind kind, size_t max, csn_message_fn fn,
                     void *ctx)
{
    *s = (csn_stream){.kind = kind, .fn = fn, .ctx = ctx, .max = max};
    csn_buf_init(&s->part, max + 1);
    csn_buf_init(&s->data, max + 1);
}

void csn_stream_release(csn_stream *s)
{
    csn_buf_release(&s->part);
    csn_buf_release(&s->data);
}

static csn_status over(const csn_stream *s, int errnum, csn_error **err)
{
    if (errnum == ENOMEM)
        return csn_fail(err, CSN_NOMEM, "message of a stream");
    return csn_fail(err, CSN_TOO_LARGE, "a message of the stream is over %zu bytes", s->max);
}

static void tell(csn_stream *s, const csn_message *m)
{
    if (s->fn(s->ctx, m) != 0)
        s->stopped = true;
}

/* Keeps the memory for the next one. */
static void clear(csn_buf *b)
{
    b->len = 0;
}

/* ---- server-sent events ----------------------------------------------------------------- */

static csn_status sse_dispatch(csn_stream *s, csn_error **err)
{
    if (s->data.len > 0) {
        s->data.data[--s->data.len] = '\0'; /* the newline after the last line */
        csn_message m = {.data = s->data.data,
                         .len = s->data.len,
                         .event = s->event[0] ? s->event : "message"};
        tell(s, &m);
    }
    clear(&s->data);
    s->event[0] = '\0';
    (void)err;
    return CSN_OK;
}

static csn_status sse_line(csn_stream *s, const char *line, size_t len, csn_error **err)
{
    if (len == 0)
        return sse_dispatch(s, err);
    const char *colon = memchr(line, ':', len);
    size_t name = colon ? (size_t)(colon - line) : len;
    const char *value = colon ? colon + 1 : line + len;
    size_t left = (size_t)(line + len - value);
    if (left > 0 && *value == ' ') {
        value++;
        left--;
    }
    if (name == 5 && memcmp(line, "event", 5) == 0) {
        snprintf(s->event, sizeof(s->event), "%.*s", (int)(left < 64 ? left : 63), value);
        return CSN_OK;
    }
    if (name != 4 || memcmp(line, "data", 4) != 0)
        return CSN_OK; /* a comment, id, retry, or something newer */
    if (s->data.len + left > s->max)
        return over(s, ENOSPC, err);
    int e = csn_buf_append(&s->data, value, left);
    if (e == 0)
        e = csn_buf_putc(&s->data, '\n');
    return e == 0 ? CSN_OK : over(s, e, err);
}

/* ---- lines ------------------------------------------------------------------------------ */

static csn_status line_done(csn_stream *s, csn_error **err)
{
    const char *line = s->part.len ? s->part.data : "";
    size_t len = s->part.len;
    csn_status st = CSN_OK;

    if (s->kind == CSN_STREAM_SSE) {
        st = sse_line(s, line, len, err);
    } else {
        while (len > 0 && strchr(" \t\r", line[len - 1]) && line[len - 1] != '\0')
            len--;
        if (len > 0) {
            s->part.data[len] = '\0';
            tell(s, &(csn_message){.data = line, .len = len});
        }
    }
    clear(&s->part);
    return st;
}

static csn_status feed_lines(csn_stream *s, const char *p, size_t len, csn_error **err)
{
    const char *end = p + len;
    csn_status st = CSN_OK;

    while (p < end && st == CSN_OK && !s->stopped) {
        if (s->skip_lf && *p == '\n')
            p++;
        s->skip_lf = false;
        size_t left = (size_t)(end - p);
        const char *stop = memchr(p, '\n', left);
        const char *cr = s->kind == CSN_STREAM_SSE
                             ? memchr(p, '\r', stop ? (size_t)(stop - p) : left)
                             : NULL;
        stop = cr ? cr : stop;
        size_t n = stop ? (size_t)(stop - p) : left;
        if (s->part.len + n > s->max)
            return over(s, ENOSPC, err);
        int e = csn_buf_append(&s->part, p, n);
        if (e != 0)
            return over(s, e, err);
        p += n;
        if (!stop)
            break;
        s->skip_lf = *p++ == '\r';
        st = line_done(s, err);
    }
    return st;
}

/* ---- frames: Connect, and those of container engines ------------------------------------- */

static size_t head_size(const csn_stream *s)
{
    return s->kind == CSN_STREAM_CONNECT ? 5 : 8;
}

/* The length stands last in both. */
static size_t frame_length(const csn_stream *s)
{
    const uint8_t *p = s->head + head_size(s) - 4;

    return (size_t)p[0] << 24 | (size_t)p[1] << 16 | (size_t)p[2] << 8 | p[3];
}

/* Output of a terminal comes without frames: that would be taken for heads here. */
static bool head_fits(const csn_stream *s)
{
    const uint8_t *h = s->head;

    return s->kind == CSN_STREAM_CONNECT || (h[0] < 4 && !h[1] && !h[2] && !h[3]);
}

/* Takes what the head still lacks; false: more is needed. */
static bool fill_head(csn_stream *s, const char **p, size_t *len)
{
    size_t n = head_size(s) - s->head_have;

    n = n < *len ? n : *len;
    memcpy(s->head + s->head_have, *p, n);
    s->head_have += n;
    *p += n;
    *len -= n;
    return s->head_have == head_size(s);
}

static csn_status feed_frames(csn_stream *s, const char *p, size_t len, csn_error **err)
{
    while (!s->stopped) {
        if (!fill_head(s, &p, &len))
            return CSN_OK;
        if (!head_fits(s))
            return csn_fail(err, CSN_IO,
                            "the stream has something else where a message begins");
        size_t want = frame_length(s);
        if (want > s->max)
            return over(s, ENOSPC, err);
        size_t n = want - s->part.len < len ? want - s->part.len : len;
        int e = csn_buf_append(&s->part, p, n);
        if (e != 0)
            return over(s, e, err);
        p += n;
        len -= n;
        if (s->part.len < want)
            return CSN_OK;
        tell(s, &(csn_message){
                    .data = want ? s->part.data : "", .len = want, .flags = s->head[0]});
        clear(&s->part);
        s->head_have = 0;
        if (len == 0)
            return CSN_OK;
    }
    return CSN_OK;
}

csn_status csn_stream_feed(csn_stream *s, const void *data, size_t len, csn_error **err)
{
    if (len == 0 || s->stopped)
        return CSN_OK;
    bool frames = s->kind == CSN_STREAM_CONNECT || s->kind == CSN_STREAM_ENGINE;
    return frames ? feed_frames(s, data, len, err) : feed_lines(s, data, len, err);
}

csn_status csn_stream_end(csn_stream *s, csn_error **err)
{
    if (s->stopped)
        return CSN_OK;
    if (s->head_have > 0)
        return csn_fail(err, CSN_IO, "the stream broke off inside a message");
    if (s->kind == CSN_STREAM_LINES && s->part.len > 0)
        return line_done(s, err);
    /* an event that no empty line ended is not one */
    return CSN_OK;
}

int csn_connect_frame(csn_buf *b, uint8_t flags, const void *data, size_t len)
{
    const uint8_t head[5] = {flags, (uint8_t)(len >> 24), (uint8_t)(len >> 16),
                             (uint8_t)(len >> 8), (uint8_t)len};

    if (len > UINT32_MAX)
        return ENOSPC;
    int e = csn_buf_append(b, head, sizeof(head));
    return e ? e : csn_buf_append(b, data, len);
}
