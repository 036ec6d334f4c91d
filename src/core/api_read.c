/* api_read.c: csn_read (a window of lines, or an image) and csn_read_bytes.
 *
 * The file is streamed and only the window is kept. The first bytes decide whether it is an
 * image. Content is untrusted: every count is bounded and nothing is interpreted. */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/hash.h"
#include "base/limits.h"
#include "base/sniff.h"
#include "core/cancel.h"
#include "core/internal.h"
#include "core/result.h"
#include "text/lines.h"

#define READ_FLAGS (CSN_FILE_NOFOLLOW | CSN_FILE_NUMBERS | CSN_FILE_TEXT | CSN_FILE_HASH)

static const char empty_reminder[] = "System reminder: File exists but has empty contents";

typedef struct reader {
    csn_lines lines;
    csn_buf image;
    char head[CSN_SNIFF_BYTES]; /* buffered until the type of the file is known */
    size_t head_len;
    const char *mime;
    csn_hash hash;
    const csn_cancel *cancel;
    uint64_t fed;
    bool sniffed, hashing, stopped, cancelled;
    int err;
} reader;

static int pass_on(reader *r, const void *data, size_t len)
{
    r->fed += len;
    if (r->hashing)
        csn_hash_add(&r->hash, data, len);
    if (r->mime)
        r->err = csn_buf_append(&r->image, data, len);
    else
        r->err = csn_lines_feed(&r->lines, data, len);
    if (r->err != 0)
        return CSN_SINK_STOP;
    if (!r->mime && !r->hashing && csn_lines_complete(&r->lines) &&
        r->fed >= CSN_COUNT_LINES_MAX) {
        r->stopped = true;
        return CSN_SINK_STOP;
    }
    return CSN_SINK_MORE;
}

/* Determines the type of the file once CSN_SNIFF_BYTES have arrived or the file has ended. */
static int decide(reader *r)
{
    r->sniffed = true;
    r->mime = csn_sniff_image(r->head, r->head_len);
    return pass_on(r, r->head, r->head_len);
}

static int reader_write(void *ctx, int stream, const void *data, size_t len)
{
    reader *r = ctx;

    (void)stream;
    if (csn_cancel_fired(r->cancel)) {
        r->cancelled = true;
        return CSN_SINK_STOP;
    }
    if (r->sniffed)
        return pass_on(r, data, len);
    size_t n = sizeof(r->head) - r->head_len;
    if (n > len)
        n = len;
    memcpy(r->head + r->head_len, data, n);
    r->head_len += n;
    if (r->head_len < sizeof(r->head))
        return CSN_SINK_MORE;
    int rc = decide(r);
    if (rc != CSN_SINK_MORE || n == len)
        return rc;
    return pass_on(r, (const char *)data + n, len - n);
}

static void reader_init(reader *r, const csn_read_opts *o)
{
    uint64_t bytes = o->byte_max ? o->byte_max : CSN_READ_BYTES_DEFAULT;
    uint64_t image = o->byte_max ? o->byte_max : CSN_READ_IMAGE_MAX;

    *r = (reader){.cancel = o->cancel,
                  .hashing = (o->flags & CSN_FILE_HASH) != 0,
                  .sniffed = (o->flags & CSN_FILE_TEXT) != 0};
    csn_hash_init(&r->hash);
    csn_buf_init(&r->image, (size_t)image);
    csn_lines_init(&r->lines, o->offset, o->limit, (size_t)bytes,
                   (o->flags & CSN_FILE_NUMBERS) != 0);
}

/* For callers without options, or with those of the version in which 0 was the default. */
static uint64_t line_limit(const csn_read_opts *given, uint64_t limit)
{
    bool zero_is_default = !given || given->size <= offsetof(csn_read_opts, reserved);

    if (limit == CSN_LINES_DEFAULT || (limit == 0 && zero_is_default))
        return CSN_READ_LINES_DEFAULT;
    return limit;
}

static csn_status fill_text(reader *r, csn_read_result *res, uint32_t flags, csn_error **err)
{
    csn_arena *a = csn_result_arena(res);
    const csn_buf *out = &r->lines.out;

    res->total_lines = csn_lines_total(&r->lines);
    res->total_lines_exact = !r->stopped;
    res->output_lines = r->lines.output_lines;
    if (res->bytes == 0 && (flags & CSN_FILE_NUMBERS)) {
        res->content = empty_reminder;
        res->content_len = sizeof(empty_reminder) - 1;
        return CSN_OK;
    }
    res->content = csn_arena_memdup(a, out->data ? out->data : "", out->len);
    res->content_len = out->len;
    res->truncated_by = r->lines.cut_by_bytes ? "bytes" : NULL;
    if (!res->truncated_by &&
        (r->stopped || res->total_lines > r->lines.offset + r->lines.output_lines))
        res->truncated_by = "lines";
    res->truncated = res->truncated_by != NULL;
    return res->content ? CSN_OK : csn_fail(err, CSN_NOMEM, "read");
}

static csn_status fill_read(reader *r, const char *path, csn_read_result *res, uint32_t flags,
                            csn_error **err)
{
    char hex[CSN_HASH_HEX];

    if (!r->sniffed && r->err == 0 && !r->cancelled)
        (void)decide(r);
    if (r->cancelled)
        return csn_fail(err, CSN_CANCELLED, "read '%s'", path);
    if (r->err == ENOSPC)
        return csn_fail(err, CSN_TOO_LARGE, "'%s' is %s of more than %zu bytes", path,
                        r->mime ? r->mime : "a file", r->image.max);
    if (r->err != 0)
        return csn_fail_errno(err, r->err, "read '%s'", path);
    if (r->hashing) {
        csn_hash_hex(&r->hash, hex);
        res->hash = csn_arena_strdup(csn_result_arena(res), hex);
    }
    res->bytes = r->mime || r->fed > res->bytes ? r->fed : res->bytes;
    if (!r->mime)
        return fill_text(r, res, flags, err);
    res->is_image = 1;
    res->mime_type = r->mime;
    res->content = csn_arena_memdup(csn_result_arena(res), r->image.data ? r->image.data : "",
                                    r->image.len);
    res->content_len = r->image.len;
    return res->content ? CSN_OK : csn_fail(err, CSN_NOMEM, "read '%s'", path);
}

static csn_status read_inner(csn_call *c, const char *path, const csn_read_opts *o,
                             csn_read_result *res, csn_error **err)
{
    const char *joined = NULL;
    csn_file_stat fst = {0};
    reader r;

    if (o->byte_max > CSN_READ_BYTES_CEILING)
        return csn_fail(err, CSN_TOO_LARGE, "byte_max is over %u", CSN_READ_BYTES_CEILING);
    csn_status st = csn_call_path(c, path, &joined, err);
    if (st < 0)
        return st;
    reader_init(&r, o);
    csn_sink sink = {.write = reader_write, .ctx = &r};
    st = csn_fs_read(&c->fs, joined, o->flags & CSN_FILE_NOFOLLOW, 0, CSN_NO_LIMIT, &sink, &fst,
                     err);
    if (st == CSN_OK) {
        res->size = sizeof(*res);
        res->bytes = fst.file_size;
        st = fill_read(&r, path, res, o->flags, err);
    }
    c->event.bytes = r.fed;
    csn_lines_release(&r.lines);
    csn_buf_release(&r.image);
    return st;
}

csn_status csn_read(csn_sandbox *sb, const char *path, const csn_read_opts *opts,
                    csn_read_result **ret, csn_error **err)
{
    csn_call c;
    csn_read_opts o;
    csn_status st = csn_opts_take(opts, &o, sizeof(o), "read options", err);

    if (st == CSN_OK && !ret)
        st = csn_fail(err, CSN_INVALID, "read: no place for the result given");
    if (st == CSN_OK && o.reserved != 0)
        st = csn_fail(err, CSN_INVALID, "read options: reserved is not 0");
    if (st == CSN_OK)
        st = csn_flags_check(o.flags, READ_FLAGS, "read", err);
    if (st == CSN_OK)
        st = csn_call_begin(&c, sb, "read", path, err);
    if (st < 0)
        return csn_error_note(st, err, "read", path);
    o.limit = line_limit(opts, o.limit);
    csn_read_result *r = csn_result_new(sizeof(*r));
    st = r ? read_inner(&c, path, &o, r, err) : csn_fail(err, CSN_NOMEM, "read");
    return csn_call_return(&c, st, r, ret, err);
}

void csn_read_result_free(csn_read_result *r)
{
    csn_result_free(r);
}

typedef struct forward {
    csn_write_fn fn;
    void *ctx;
    const csn_cancel *cancel;
    uint64_t bytes;
    bool cancelled;
} forward;

static int forward_write(void *ctx, int stream, const void *data, size_t len)
{
    forward *f = ctx;

    (void)stream;
    f->cancelled = csn_cancel_fired(f->cancel) != 0;
    f->bytes += len;
    return f->cancelled || f->fn(f->ctx, data, len) != 0 ? CSN_SINK_STOP : CSN_SINK_MORE;
}

csn_status csn_read_bytes(csn_sandbox *sb, const char *path, const csn_read_opts *opts,
                          csn_write_fn sink_fn, void *sink_ctx, csn_error **err)
{
    csn_call c;
    csn_read_opts o;
    const char *joined = NULL;
    csn_file_stat fst;
    csn_status st = csn_opts_take(opts, &o, sizeof(o), "read options", err);

    if (st == CSN_OK && !sink_fn)
        st = csn_fail(err, CSN_INVALID, "read: no place for the bytes given");
    if (st == CSN_OK)
        st = csn_flags_check(o.flags, CSN_FILE_NOFOLLOW, "read_bytes", err);
    if (st == CSN_OK)
        st = csn_call_begin(&c, sb, "read", path, err);
    if (st < 0)
        return csn_error_note(st, err, "read", path);
    forward f = {.fn = sink_fn, .ctx = sink_ctx, .cancel = o.cancel};
    csn_sink sink = {.write = forward_write, .ctx = &f};
    st = csn_call_path(&c, path, &joined, err);
    if (st == CSN_OK)
        st = csn_fs_read(&c.fs, joined, o.flags, o.offset, o.limit ? o.limit : CSN_NO_LIMIT,
                         &sink, &fst, err);
    if (st == CSN_OK && f.cancelled)
        st = csn_fail(err, CSN_CANCELLED, "read '%s'", path);
    c.event.bytes = f.bytes;
    return csn_call_end(&c, st, err);
}
