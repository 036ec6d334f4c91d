/* upload.c: uploads a file to a container as a tar archive with one member.
 *
 * The archive API needs the size in advance, so the content is spooled to an unnamed file. It
 * sets the owner from the archive, so uid and gid of the commands' user are read from the
 * container once. The request is sent at most once. */
#include <stdio.h>
#include <string.h>

#include "backend/docker/docker.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "remote/ustar.h"

#define UPLOAD_MS    600000u
#define OWNER_MS     60000u
#define FILE_MODE    0600u
#define WORKDIR_MODE 0777u /* the user of commands is known by name only */

/* With the lock held: reads uid and gid of the commands' user. */
static csn_status read_owner(csn_remote *r, csn_error **err)
{
    const csn_remote_script s = {.text = "id -u; id -g",
                                 .deadline_ns = csn_deadline_in(OWNER_MS)};
    csn_docker *d = csn_docker_of(r);
    csn_autobuf out;
    int code = -1;

    csn_buf_init(&out, 256);
    csn_status st = csn_remote_run_script(r, &s, &out, &code, err);
    if (st < 0)
        return st;
    if (out.len == 0 || sscanf(out.data, "%u\n%u", &d->uid, &d->gid) != 2)
        return csn_fail(err, CSN_UNAVAILABLE, "upload: id(1) does not work in the container");
    d->owner_known = true;
    return CSN_OK;
}

static int64_t read_archive(void *ctx, void *buf, size_t len)
{
    return csn_ustar_read(ctx, buf, len);
}

static csn_status send_archive(csn_remote *r, const char *dir, csn_ustar *u, csn_error **err)
{
    static const char *const headers[] = {"Content-Type: application/x-tar", NULL};
    const int32_t stop[] = {r->stop_fd};
    csn_autores res = {0};
    csn_autobuf url;

    csn_buf_init(&url, 32768);
    if (csn_buf_printf(&url, "http://localhost/containers/%s/archive?path=",
                       csn_docker_of(r)->container) != 0 ||
        csn_url_escape(&url, dir) != 0)
        return csn_fail(err, CSN_NOMEM, "upload");
    const csn_http_req q = {.method = "PUT",
                            .url = url.data,
                            .headers = headers,
                            .upload = read_archive,
                            .upload_ctx = u,
                            .upload_len = (int64_t)u->length,
                            .deadline_ns = csn_deadline_in(UPLOAD_MS),
                            .cancel_fds = stop,
                            .cancel_count = 1};
    csn_status st = csn_http_do(r->http, &q, &res, err);
    if (st == CSN_OK && res.status / 100 != 2)
        st = csn_remote_response_error(r, &res, "upload", err);
    return st;
}

csn_status csn_docker_upload(csn_remote *r, const char *path, const csn_source *content,
                             csn_error **err)
{
    csn_docker *d = csn_docker_of(r);
    const char *slash = strrchr(path, '/');
    csn_autofree char *dir =
        slash && slash > path ? strndup(path, (size_t)(slash - path)) : strdup("/");
    csn_autofd int fd = -1;
    csn_ustar_member m = {.name = slash ? slash + 1 : path, .mode = FILE_MODE};
    csn_ustar u;

    pthread_mutex_lock(&d->lock);
    csn_status st = d->owner_known ? CSN_OK : read_owner(r, err);
    pthread_mutex_unlock(&d->lock);
    if (st == CSN_OK)
        st = csn_remote_spool(content, &fd, &m.size, err);
    if (st < 0)
        return st;
    m.fd = fd;
    m.uid = d->uid;
    m.gid = d->gid;
    m.mtime = csn_wall_ms() / 1000;
    st = csn_ustar_init(&u, &m) == 0 && dir ? send_archive(r, dir, &u, err)
                                            : csn_fail(err, CSN_NOMEM, "upload");
    csn_ustar_release(&u);
    return st;
}

csn_status csn_docker_open_workdir(csn_remote *r, csn_error **err)
{
    const csn_ustar_member m = {.name = &CSN_DOCKER_WORKDIR[1],
                                .mode = WORKDIR_MODE,
                                .mtime = csn_wall_ms() / 1000,
                                .fd = -1,
                                .is_dir = true};
    csn_ustar u;

    csn_status st = csn_ustar_init(&u, &m) == 0 ? send_archive(r, "/", &u, err)
                                                : csn_fail(err, CSN_NOMEM, "create");
    csn_ustar_release(&u);
    return csn_wrap(st, err, "create " CSN_DOCKER_WORKDIR);
}
