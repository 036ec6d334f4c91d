/* files.c: a file into the sandbox: as a gzip'd tar of one entry.
 *
 * Called by src/remote for stdin that does not fit into a command, and for ripgrep. A tar has
 * the length of a file before its bytes and a source has no length, so the content is kept in a
 * nameless file of this host first; that also lets it be sent again when a session has ended.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "backend/vercel/targz.h"
#include "backend/vercel/vercel.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"

#define PUT_MS    600000u
#define FILE_MODE 0644u

/* A file without a name: on disk, or in memory where the file system knows no such thing. */
static int nameless(void)
{
    const char *dir = getenv("TMPDIR");
    int fd = open(dir && *dir ? dir : "/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

    return fd >= 0 ? fd : memfd_create("upload", MFD_CLOEXEC);
}

static int write_all(int fd, const char *data, size_t len)
{
    while (len > 0) {
        ssize_t n = write(fd, data, len);
        if (n < 0 && errno != EINTR)
            return errno;
        data += n > 0 ? n : 0;
        len -= n > 0 ? (size_t)n : 0;
    }
    return 0;
}

/* All of the source; *ret_size: how much that was. */
static csn_status spool(const csn_source *from, int to, uint64_t *ret_size, csn_error **err)
{
    char buf[32768];

    for (*ret_size = 0;;) {
        int64_t n = from->read(from->ctx, buf, sizeof(buf));
        if (n < 0 || n > (int64_t)sizeof(buf))
            return csn_fail(err, CSN_IO, "what was to be sent could not be read");
        if (n == 0)
            return CSN_OK;
        int e = write_all(to, buf, (size_t)n);
        if (e != 0)
            return csn_fail_errno(err, e, "upload");
        *ret_size += (uint64_t)n;
    }
}

static int64_t give(void *ctx, void *buf, size_t len)
{
    return csn_targz_read(ctx, buf, len);
}

static void start_over(void *ctx)
{
    csn_targz_rewind(ctx);
}

static csn_status send_tar(csn_remote *r, csn_targz *tar, csn_error **err)
{
    static const char *const headers[] = {"Content-Type: application/gzip", "x-cwd: /", NULL};
    const int32_t stop[] = {r->stop_fd};
    csn_autores res = {0};
    const csn_vercel_call c = {.what = "write a file",
                               .path = "/fs/write",
                               .session = true,
                               .headers = headers,
                               .rewind = start_over,
                               .http = {.method = "POST",
                                        .upload = give,
                                        .upload_ctx = tar,
                                        .upload_len = (int64_t)csn_targz_length(tar),
                                        .repeat = CSN_HTTP_SAFE,
                                        .deadline_ns = csn_deadline_in(PUT_MS),
                                        .cancel_fds = stop,
                                        .cancel_count = 1}};

    return csn_vercel_do(r, &c, &res, err);
}

csn_status csn_vercel_put(csn_remote *r, const char *path, const csn_source *content,
                          csn_error **err)
{
    csn_autofd int fd = nameless();
    csn_autofree csn_targz *tar = calloc(1, sizeof(*tar));
    uint64_t size = 0;

    if (fd < 0 || !tar)
        return csn_fail_errno(err, fd >= 0 ? ENOMEM : errno, "upload");
    csn_status st = spool(content, fd, &size, err);
    if (st < 0)
        return st;
    int e = csn_targz_init(tar, path + strspn(path, "/"), FILE_MODE, fd, size);
    st = e ? csn_fail_errno(err, e, "upload") : send_tar(r, tar, err);
    csn_targz_release(tar);
    return st;
}
