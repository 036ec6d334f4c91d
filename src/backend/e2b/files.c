/* files.c: content of files by envd's plain HTTP, up and down, as it is.
 *
 * Only content. What a path is, whether it may be read, links, modes, names that are not UTF-8,
 * atomic replacement, the exact reason of a failure: that the derived operations of the core
 * find out with the sandbox's own tools, as the sandbox's own user. envd would act as the
 * superuser, clean `..` out of paths by text, wait for ever on a fifo, and its answers have no
 * room for half of it. So the core looks first and asks here for the bytes alone. */
#include <stdio.h>
#include <string.h>

#include "backend/e2b/e2b.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/utf8.h"

#define PUT_MS  600000u
#define URL_MAX 32768u

static csn_status files_url(const csn_remote *r, const char *path, csn_buf *url,
                            csn_error **err)
{
    csn_buf_init(url, URL_MAX);
    int e = csn_buf_printf(url, "%s/files?path=", csn_e2b_of(r)->envd_url);
    e = e ? e : csn_url_escape(url, path);
    return e == 0 ? CSN_OK : csn_fail_errno(err, e, "address of a file");
}

/* ---- up --------------------------------------------------------------------------------- */

csn_status csn_e2b_put(csn_remote *r, const char *path, const csn_source *content,
                       csn_error **err)
{
    csn_autores res = {0};
    csn_autobuf url;
    csn_e2b_headers h;
    const int32_t stop[] = {r->stop_fd};

    csn_status st = files_url(r, path, &url, err);
    if (st < 0)
        return st;
    csn_e2b_headers_init(&h, r, "application/octet-stream", NULL);
    const csn_http_req q = {.method = "POST",
                            .url = url.data,
                            .headers = (const char *const *)h.list,
                            .upload = content->read,
                            .upload_ctx = content->ctx,
                            .upload_len = -1,
                            .repeat = CSN_HTTP_SAFE,
                            .deadline_ns = csn_deadline_in(PUT_MS),
                            .cancel_fds = stop,
                            .cancel_count = 1};
    st = h.failed ? csn_fail(err, CSN_NOMEM, "upload") : csn_http_do(r->http, &q, &res, err);
    csn_e2b_headers_release(&h);
    if (st == CSN_OK && res.status / 100 != 2)
        st = csn_e2b_failed(r, &res, "upload", err);
    return st;
}

/* ---- down ------------------------------------------------------------------------------- */

typedef struct fetching {
    const csn_sink *sink;
    csn_http_res res;
    uint64_t size, offset, length, got;
    bool begun, other; /* other: it is not, or no longer, the file that was asked for */
} fetching;

/* Exactly the part that was asked for, of a file of exactly that size? */
static bool is_that_part(const fetching *f)
{
    unsigned long long first = 0, last = 0, size = 0;

    return f->res.status == 206 &&
           sscanf(f->res.header, "bytes %llu-%llu/%llu", &first, &last, &size) == 3 &&
           first == f->offset && last == f->offset + f->length - 1 && size == f->size;
}

static int take_part(void *ctx, const void *data, size_t len)
{
    fetching *f = ctx;

    if (!f->begun) {
        f->begun = true;
        f->other = !is_that_part(f);
    }
    if (f->other || len > f->length - f->got)
        return 1;
    f->got += len;
    return f->sink->write(f->sink->ctx, CSN_STDOUT, data, len) == CSN_SINK_STOP;
}

/* Paths that envd reads as the kernel does. */
static bool plain_path(const char *path)
{
    size_t len = strlen(path);

    return path[0] == '/' && csn_utf8_valid(path, len) && !strstr(path, "/../") &&
           !(len >= 3 && strcmp(path + len - 3, "/..") == 0);
}

static csn_status conclude(const fetching *f, csn_status st, csn_error **err)
{
    bool told = f->begun && !f->other;

    /* Whatever it objects to, a command in the sandbox can say better. */
    if (st == CSN_OK && !told)
        return csn_fail(err, CSN_UNSUPPORTED, "read by a command instead");
    if (st == CSN_OK && !f->res.stopped && f->got != f->length)
        return csn_fail(err, CSN_IO, "%llu of %llu bytes of the file came",
                        (unsigned long long)f->got, (unsigned long long)f->length);
    return st;
}

csn_status csn_e2b_fetch(void *state, const char *path, uint64_t file_size, uint64_t offset,
                         uint64_t length, const int32_t *cancel_fds, const csn_sink *sink,
                         csn_error **err)
{
    csn_remote *r = state;
    fetching f = {.sink = sink, .size = file_size, .offset = offset, .length = length};
    const int32_t stop[] = {r->stop_fd, cancel_fds ? cancel_fds[0] : -1,
                            cancel_fds ? cancel_fds[1] : -1};
    csn_autobuf url;
    csn_e2b_headers h;

    csn_buf_init(&url, URL_MAX);
    if (!plain_path(path) || length == 0)
        return csn_fail(err, CSN_UNSUPPORTED, "read by a command instead");
    csn_status st = files_url(r, path, &url, err);
    if (st < 0)
        return st;
    csn_e2b_headers_init(&h, r, "application/octet-stream", NULL);
    csn_e2b_headers_add(&h, "Range: bytes=%llu-%llu", (unsigned long long)offset,
                        (unsigned long long)(offset + length - 1));
    const csn_http_req q = {.method = "GET",
                            .url = url.data,
                            .headers = (const char *const *)h.list,
                            .repeat = CSN_HTTP_SAFE,
                            .cancel_fds = stop,
                            .cancel_count = 3,
                            .on_body = take_part,
                            .ctx = &f,
                            .want_header = "Content-Range"};
    st = h.failed ? csn_fail(err, CSN_NOMEM, "read") : csn_http_do(r->http, &q, &f.res, err);
    csn_e2b_headers_release(&h);
    st = conclude(&f, st, err);
    csn_http_res_release(&f.res);
    return st;
}
