/* stream.c: parses the framings of response streams: NDJSON, Connect-RPC, Docker attach.
 *
 * The bytes come from a server and are not trusted: every length is checked before memory is
 * allocated for it, and memory grows with the bytes received, not with the announced length.
 * Time is linear in the number of bytes, in whatever pieces they arrive. Fuzzed by
 * fuzz_stream. */
#include "remote/stream.h"

#include <errno.h>
#include <string.h>

#include "base/error.h"

void csn_stream_parser_init(csn_stream_parser *s, csn_stream_format format, size_t max,
                            csn_message_fn fn, void *ctx)
{
    *s = (csn_stream_parser){.format = format, .fn = fn, .ctx = ctx, .max = max};
    csn_buf_init(&s->part, max + 1);
}

void csn_stream_parser_release(csn_stream_parser *s)
{
    csn_buf_release(&s->part);
}

static csn_status too_large(const csn_stream_parser *s, csn_error **err)
{
    return csn_fail(err, CSN_TOO_LARGE, "a message of the stream is over %zu bytes", s->max);
}

static csn_status append_part(csn_stream_parser *s, const char *data, size_t len,
                              csn_error **err)
{
    if (len > s->max - s->part.len)
        return too_large(s, err);
    return csn_buf_append(&s->part, data, len) == 0
               ? CSN_OK
               : csn_fail(err, CSN_NOMEM, "message of a stream");
}

/* Delivers the first len bytes of `part` and keeps its memory for the next message. */
static void deliver(csn_stream_parser *s, size_t len, uint8_t flags)
{
    const csn_message m = {.data = len ? s->part.data : "", .len = len, .flags = flags};

    if (s->fn(s->ctx, &m) != 0)
        s->stopped = true;
    s->part.len = 0;
}

/* ---- lines ------------------------------------------------------------------------------ */

static void end_line(csn_stream_parser *s)
{
    size_t len = s->part.len;

    while (len > 0 && s->part.data[len - 1] != '\0' && strchr(" \t\r", s->part.data[len - 1]))
        len--;
    s->part.len = 0;
    if (len > 0) {
        s->part.data[len] = '\0';
        deliver(s, len, 0);
    }
}

static csn_status feed_lines(csn_stream_parser *s, const char *p, size_t len, csn_error **err)
{
    while (len > 0 && !s->stopped) {
        const char *nl = memchr(p, '\n', len);
        size_t n = nl ? (size_t)(nl - p) : len;
        csn_status st = append_part(s, p, n, err);
        if (st < 0)
            return st;
        if (!nl)
            break;
        end_line(s);
        p += n + 1;
        len -= n + 1;
    }
    return CSN_OK;
}

/* ---- frames ----------------------------------------------------------------------------- */

static size_t head_size(const csn_stream_parser *s)
{
    return s->format == CSN_STREAM_CONNECT ? 5 : 8;
}

/* The length is in the last four bytes of either header. */
static size_t frame_length(const csn_stream_parser *s)
{
    const uint8_t *p = s->head + head_size(s) - 4;

    return (size_t)p[0] << 24 | (size_t)p[1] << 16 | (size_t)p[2] << 8 | p[3];
}

/* Rejects a Docker header with an unknown stream number or non-zero padding: terminal output
 * has no frames and must not be parsed as headers. */
static bool head_valid(const csn_stream_parser *s)
{
    const uint8_t *h = s->head;

    return s->format == CSN_STREAM_CONNECT || (h[0] < 4 && !h[1] && !h[2] && !h[3]);
}

/* False: the header is incomplete. */
static bool fill_head(csn_stream_parser *s, const char **p, size_t *len)
{
    size_t n = head_size(s) - s->head_len;

    n = n < *len ? n : *len;
    memcpy(s->head + s->head_len, *p, n);
    s->head_len += n;
    *p += n;
    *len -= n;
    return s->head_len == head_size(s);
}

static csn_status feed_frames(csn_stream_parser *s, const char *p, size_t len, csn_error **err)
{
    while (!s->stopped && fill_head(s, &p, &len)) {
        if (!head_valid(s))
            return csn_fail(err, CSN_IO, "the stream has a malformed frame header");
        size_t want = frame_length(s);
        if (want > s->max)
            return too_large(s, err);
        size_t n = want - s->part.len < len ? want - s->part.len : len;
        csn_status st = append_part(s, p, n, err);
        if (st < 0)
            return st;
        p += n;
        len -= n;
        if (s->part.len < want)
            return CSN_OK;
        deliver(s, want, s->head[0]);
        s->head_len = 0;
        if (len == 0)
            return CSN_OK;
    }
    return CSN_OK;
}

csn_status csn_stream_parser_feed(csn_stream_parser *s, const void *data, size_t len,
                                  csn_error **err)
{
    if (len == 0 || s->stopped)
        return CSN_OK;
    return s->format == CSN_STREAM_LINES ? feed_lines(s, data, len, err)
                                         : feed_frames(s, data, len, err);
}

csn_status csn_stream_parser_finish(csn_stream_parser *s, csn_error **err)
{
    if (s->stopped)
        return CSN_OK;
    if (s->head_len > 0)
        return csn_fail(err, CSN_IO, "the stream broke off inside a message");
    if (s->part.len > 0)
        end_line(s);
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
