/* upload.c: uploads a file to the sandbox as a gzipped tar with one member.
 *
 * A tar header contains the file's size, which is not known until the source ends. The content
 * is therefore spooled to an unnamed file first, from which it can also be sent again in a new
 * session. */
#include <stdlib.h>
#include <string.h>

#include "backend/vercel/targz.h"
#include "backend/vercel/vercel.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"

#define UPLOAD_MS 600000u
#define FILE_MODE 0644u

static int64_t read_targz(void *ctx, void *buf, size_t len)
{
    return csn_targz_read(ctx, buf, len);
}

static void rewind_targz(void *ctx)
{
    csn_targz_rewind(ctx);
}

static csn_status send_targz(csn_remote *r, csn_targz *t, csn_error **err)
{
    static const char *const headers[] = {"Content-Type: application/gzip", "x-cwd: /", NULL};
    const int32_t stop[] = {r->stop_fd};
    csn_autores res = {0};
    const csn_vercel_call c = {.what = "write a file",
                               .path = "/fs/write",
                               .in_session = true,
                               .headers = headers,
                               .rewind = rewind_targz,
                               .http = {.method = "POST",
                                        .upload = read_targz,
                                        .upload_ctx = t,
                                        .upload_len = (int64_t)csn_targz_length(t),
                                        .retry = CSN_HTTP_IDEMPOTENT,
                                        .deadline_ns = csn_deadline_in(UPLOAD_MS),
                                        .cancel_fds = stop,
                                        .cancel_count = 1}};

    return csn_vercel_request(r, &c, &res, err);
}

csn_status csn_vercel_upload(csn_remote *r, const char *path, const csn_source *content,
                             csn_error **err)
{
    csn_autofree csn_targz *t = calloc(1, sizeof(*t));
    csn_autofd int fd = -1;
    uint64_t size = 0;

    if (!t)
        return csn_fail(err, CSN_NOMEM, "upload");
    csn_status st = csn_remote_spool(content, &fd, &size, err);
    if (st < 0)
        return st;
    const csn_ustar_member m = {
        .name = path + strspn(path, "/"), .mode = FILE_MODE, .fd = fd, .size = size};
    int e = csn_targz_init(t, &m);
    st = e ? csn_fail_errno(err, e, "upload") : send_targz(r, t, err);
    csn_targz_release(t);
    return st;
}
