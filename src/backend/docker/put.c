/* put.c: one file into a container, as an archive of one member.
 *
 * Called by src/remote for stdin that is too large for a command line, and for ripgrep. The
 * archive interface wants to know sizes first and makes files of whom the archive names: so the
 * content, whose size nobody knows, waits in a file without a name, and the user of the
 * commands is asked for once. The path is ours, the bytes are the caller's. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "backend/docker/docker.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"

#define BLOCK  512u
#define PUT_MS 600000u
#define ASK_MS 60000u
#define MODE   0600u

/* ---- the owner -------------------------------------------------------------------------- */

static csn_status ask_owner(csn_remote *r, csn_error **err)
{
    const csn_remote_script s = {.text = "id -u; id -g",
                                 .deadline_ns = csn_deadline_in(ASK_MS)};
    csn_docker *d = csn_docker_of(r);
    csn_autobuf out;
    int code = -1;

    csn_buf_init(&out, 256);
    csn_status st = csn_remote_ask(r, &s, &out, &code, err);
    if (st < 0)
        return st;
    if (out.len == 0 || sscanf(out.data, "%u\n%u", &d->uid, &d->gid) != 2)
        return csn_fail(err, CSN_UNAVAILABLE, "the container cannot tell its user");
    d->owner_known = true;
    return CSN_OK;
}

/* ---- the content ------------------------------------------------------------------------ */

static int open_unnamed(void)
{
    const char *dir = getenv("TMPDIR");
    int fd = open(dir && *dir == '/' ? dir : "/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

    return fd >= 0 ? fd : memfd_create("caisson-put", MFD_CLOEXEC);
}

static csn_status spool(const csn_source *content, int fd, uint64_t *ret_len, csn_error **err)
{
    char buf[65536];

    for (;;) {
        int64_t n = content->read(content->ctx, buf, sizeof(buf));
        if (n < 0 || n > (int64_t)sizeof(buf))
            return csn_fail(err, CSN_IO, "what was to be sent could not be read");
        if (n == 0)
            return CSN_OK;
        for (int64_t at = 0; at < n;) {
            ssize_t w = write(fd, buf + at, (size_t)(n - at));
            if (w < 0 && errno != EINTR)
                return csn_fail_errno(err, errno, "upload");
            at += w > 0 ? w : 0;
        }
        *ret_len += (uint64_t)n;
    }
}

/* ---- the archive ------------------------------------------------------------------------ */

typedef struct archive {
    char head[BLOCK];
    int fd;
    uint64_t len, pos, total; /* pos in all of the archive */
} archive;

/* Octal digits and a NUL; what is too large for them in base 256, as all readers know. */
static void put_number(char *field, size_t width, uint64_t value)
{
    bool octal = value >> 3 * (width - 1) == 0;
    size_t last = octal ? width - 2 : width - 1;

    memset(field, octal ? '0' : 0, width);
    for (size_t i = 0; i <= last && value > 0; i++, value >>= octal ? 3 : 8)
        field[last - i] = (char)(octal ? '0' + (value & 7) : value & 0xff);
    if (octal)
        field[width - 1] = '\0';
    else
        field[0] = (char)(field[0] | 0x80);
}

/* One member in ustar's format. */
static void put_head(archive *a, const char *name, unsigned uid, unsigned gid)
{
    unsigned sum = 0;

    memset(a->head, 0, sizeof(a->head));
    memcpy(a->head, name, strlen(name));
    put_number(a->head + 100, 8, MODE);
    put_number(a->head + 108, 8, uid);
    put_number(a->head + 116, 8, gid);
    put_number(a->head + 124, 12, a->len);
    put_number(a->head + 136, 12, (uint64_t)csn_wall_ms() / 1000);
    memset(a->head + 148, ' ', 8);
    a->head[156] = '0';
    memcpy(a->head + 257, "ustar", 6);
    memcpy(a->head + 263, "00", 2);
    for (size_t i = 0; i < sizeof(a->head); i++)
        sum += (unsigned char)a->head[i];
    put_number(a->head + 148, 7, sum);
}

/* The head, the content, zeros up to a whole block and two blocks more. */
static int64_t next_bytes(void *ctx, void *buf, size_t len)
{
    archive *a = ctx;
    uint64_t left = a->total - a->pos;
    size_t n = left < len ? (size_t)left : len;

    if (n == 0)
        return 0;
    if (a->pos < BLOCK) {
        n = n < BLOCK - a->pos ? n : BLOCK - (size_t)a->pos;
        memcpy(buf, a->head + a->pos, n);
    } else if (a->pos < BLOCK + a->len) {
        uint64_t at = a->pos - BLOCK;
        n = n < a->len - at ? n : (size_t)(a->len - at);
        ssize_t got = pread(a->fd, buf, n, (off_t)at);
        if (got <= 0)
            return -1;
        n = (size_t)got;
    } else {
        memset(buf, 0, n);
    }
    a->pos += n;
    return (int64_t)n;
}

static csn_status send_archive(csn_remote *r, const char *path, archive *a, csn_error **err)
{
    static const char *const headers[] = {"Content-Type: application/x-tar", NULL};
    const char *slash = strrchr(path, '/');
    csn_autofree char *dir =
        slash && slash > path ? strndup(path, (size_t)(slash - path)) : NULL;
    const int32_t stop[] = {r->stop_fd};
    csn_autores res = {0};
    csn_autobuf url;

    csn_buf_init(&url, 32768);
    if (csn_buf_printf(&url, "http://localhost/containers/%s/archive?path=",
                       csn_docker_of(r)->container) != 0 ||
        csn_url_escape(&url, dir ? dir : "/") != 0)
        return csn_fail(err, CSN_NOMEM, "upload");
    const csn_http_req q = {.method = "PUT",
                            .url = url.data,
                            .headers = headers,
                            .upload = next_bytes,
                            .upload_ctx = a,
                            .upload_len = (int64_t)a->total,
                            .deadline_ns = csn_deadline_in(PUT_MS),
                            .cancel_fds = stop,
                            .cancel_count = 1};
    csn_status st = csn_http_do(r->http, &q, &res, err);
    if (st == CSN_OK && res.status / 100 != 2)
        st = csn_docker_refused(r, &res, "upload", err);
    return st;
}

csn_status csn_docker_put(csn_remote *r, const char *path, const csn_source *content,
                          csn_error **err)
{
    csn_docker *d = csn_docker_of(r);
    csn_autofd int fd = open_unnamed();
    archive a = {.fd = fd};
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;

    if (fd < 0)
        return csn_fail_errno(err, errno, "upload");
    if (strlen(name) >= 100)
        return csn_fail(err, CSN_INVALID, "upload: the name '%.100s' is too long", name);
    pthread_mutex_lock(&d->lock);
    csn_status st = d->owner_known ? CSN_OK : ask_owner(r, err);
    pthread_mutex_unlock(&d->lock);
    if (st == CSN_OK)
        st = spool(content, fd, &a.len, err);
    if (st < 0)
        return st;
    a.total = BLOCK + (a.len + BLOCK - 1) / BLOCK * BLOCK + 2ull * BLOCK;
    put_head(&a, name, d->uid, d->gid);
    return send_archive(r, path, &a, err);
}
