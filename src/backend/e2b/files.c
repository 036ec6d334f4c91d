/* files.c: uploads and downloads file content over envd's HTTP interface.
 *
 * Transfers content only. The core handles path resolution, permissions, links, modes, names
 * that are not UTF-8, atomic replacement and exact errors by running commands as the sandbox's
 * user. envd acts as root, removes `..` textually and blocks on a FIFO, so the core checks a
 * path before it calls these functions. */
#include <stdio.h>
#include <string.h>

#include "backend/e2b/e2b.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/utf8.h"

#define UPLOAD_MS 600000u
#define URL_MAX   32768u

static csn_status files_path(const char *file, csn_buf *path, csn_error **err)
{
    csn_buf_init(path, URL_MAX);
    int e = csn_buf_puts(path, "files?path=");
    e = e ? e : csn_url_escape(path, file);
    return e == 0 ? CSN_OK : csn_fail_errno(err, e, "URL of a file");
}

csn_status csn_e2b_upload(csn_remote *r, const char *file, const csn_source *content,
                          csn_error **err)
{
    const int32_t stop[] = {r->stop_fd};
    csn_autores res = {0};
    csn_autobuf path;
    csn_e2b_headers h;
    csn_http_req q = {.method = "POST",
                      .upload = content->read,
                      .upload_ctx = content->ctx,
                      .upload_len = -1,
                      .retry = CSN_HTTP_IDEMPOTENT,
                      .deadline_ns = csn_deadline_in(UPLOAD_MS),
                      .cancel_fds = stop,
                      .cancel_count = 1};

    csn_status st = files_path(file, &path, err);
    if (st < 0)
        return st;
    csn_e2b_headers_init(&h, r, "application/octet-stream", NULL);
    return csn_e2b_request(r, "upload", path.data, &h, &q, &res, err);
}

/* ---- downloads -------------------------------------------------------------------------- */

typedef struct download {
    const csn_sink *sink;
    csn_http_res res;
    uint64_t size, offset, length, received;
    bool begun;
    bool mismatch; /* the response is not the requested range or file */
} download;

static bool is_requested_range(const download *d)
{
    unsigned long long first = 0, last = 0, size = 0;

    return d->res.status == 206 &&
           sscanf(d->res.header, "bytes %llu-%llu/%llu", &first, &last, &size) == 3 &&
           first == d->offset && last == d->offset + d->length - 1 && size == d->size;
}

static int receive(void *ctx, const void *data, size_t len)
{
    download *d = ctx;

    if (!d->begun) {
        d->begun = true;
        d->mismatch = !is_requested_range(d);
    }
    if (d->mismatch || len > d->length - d->received)
        return CSN_HTTP_STOP;
    d->received += len;
    return d->sink->write(d->sink->ctx, CSN_STDOUT, data, len) == CSN_SINK_STOP;
}

/* True if envd resolves the path like the kernel. */
static bool is_plain_path(const char *path)
{
    size_t len = strlen(path);

    return path[0] == '/' && csn_utf8_valid(path, len) && !strstr(path, "/../") &&
           !(len >= 3 && strcmp(path + len - 3, "/..") == 0);
}

csn_status csn_e2b_fetch(void *state, const char *file, uint64_t file_size, uint64_t offset,
                         uint64_t length, const int32_t *cancel_fds, const csn_sink *sink,
                         csn_error **err)
{
    csn_remote *r = state;
    download d = {.sink = sink, .size = file_size, .offset = offset, .length = length};
    const int32_t cancel[] = {r->stop_fd, cancel_fds ? cancel_fds[0] : -1,
                              cancel_fds ? cancel_fds[1] : -1};
    csn_http_req q = {.method = "GET",
                      .retry = CSN_HTTP_IDEMPOTENT,
                      .cancel_fds = cancel,
                      .cancel_count = 3,
                      .on_body = receive,
                      .ctx = &d,
                      .response_header = "Content-Range"};
    csn_autobuf path;
    csn_e2b_headers h;

    csn_buf_init(&path, URL_MAX);
    if (!is_plain_path(file) || length == 0)
        return csn_fail(err, CSN_UNSUPPORTED, "read by a command instead");
    csn_status st = files_path(file, &path, err);
    if (st < 0)
        return st;
    csn_e2b_headers_init(&h, r, "application/octet-stream", NULL);
    csn_e2b_headers_add(&h, "Range: bytes=%llu-%llu", (unsigned long long)offset,
                        (unsigned long long)(offset + length - 1));
    st = csn_e2b_send(r, "read", path.data, &h, &q, &d.res, err);
    /* Fall back to the core's read by command, which returns the exact error. */
    if (st == CSN_OK && (!d.begun || d.mismatch))
        st = csn_fail(err, CSN_UNSUPPORTED, "read by a command instead");
    else if (st == CSN_OK && !d.res.stopped && d.received != length)
        st = csn_fail(err, CSN_IO, "the response ended after %llu of %llu bytes",
                      (unsigned long long)d.received, (unsigned long long)length);
    csn_http_res_release(&d.res);
    return st;
}
