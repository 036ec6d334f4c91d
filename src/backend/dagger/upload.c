/* upload.c: uploads a file to the sandbox in base64 chunks.
 *
 * Queries carry text only, so content is sent as base64 and decoded inside. The file is built
 * in a separate container derived from the current one, so a slow source does not hold the step
 * lock; only the finished file is added to the sandbox. Every step is idempotent: it derives a
 * container from a fixed id. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "backend/dagger/dagger.h"
#include "base/base64.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"

#define WHAT          "upload a file"
#define STEP_MS       120000u
#define CHUNK         (4u * 1024u * 1024u)
#define SELECTION_MAX (8u * 1024u * 1024u)

typedef struct upload {
    csn_remote *r;
    const char *path;
    char *branch; /* the container in which the file is built */
    bool begun;
} upload;

static csn_status read_chunk(const csn_source *content, char *buf, size_t *ret_len,
                             csn_error **err)
{
    size_t len = 0;

    while (len < CHUNK) {
        int64_t n = content->read(content->ctx, buf + len, CHUNK - len);
        if (n < 0 || (uint64_t)n > CHUNK - len)
            return csn_fail(err, CSN_IO, "upload: the content cannot be read");
        if (n == 0)
            break;
        len += (size_t)n;
    }
    *ret_len = len;
    return CSN_OK;
}

/* Sends `selection` for a container and returns the id at `result`. e: errno of building
 * selection, or 0. */
static csn_status derive(csn_remote *r, const char *container, const csn_buf *selection, int e,
                         const char *result, char **ret, csn_error **err)
{
    const csn_dagger_query q = {.what = WHAT,
                                .container = container,
                                .selection = selection->data,
                                .retry = CSN_HTTP_IDEMPOTENT,
                                .deadline_ns = csn_deadline_in(STEP_MS)};

    return e ? csn_fail_errno(err, e, WHAT) : csn_dagger_send_for_id(r, &q, result, ret, err);
}

static csn_status send_chunk(upload *u, const char *data, size_t len, csn_error **err)
{
    csn_autofree char *base64 = malloc(csn_base64_size(len) + 1), *part = NULL, *next = NULL;
    csn_autobuf selection;
    int e = ENOMEM;

    csn_buf_init(&selection, SELECTION_MAX);
    if (asprintf(&part, "%s.part", u->path) < 0)
        part = NULL;
    if (base64 && part) {
        csn_base64_encode(data, len, base64);
        e = csn_dagger_append(&selection,
                              "withNewFile(path: ?, contents: ?, permissions: 420) { "
                              "withExec(args: [\"/bin/sh\", \"-c\", ?, \"sh\", ?]) { sync } }",
                              part, base64,
                              u->begun ? "umask 077; base64 -d <\"$1.part\" >>\"$1\""
                                       : "umask 077; base64 -d <\"$1.part\" >\"$1\"",
                              u->path);
    }
    csn_status st =
        derive(u->r, u->branch, &selection, e, "withNewFile.withExec.sync", &next, err);
    if (st < 0)
        return st;
    free(u->branch);
    u->branch = CSN_STEAL(next);
    u->begun = true;
    return CSN_OK;
}

/* The id of the finished file. */
static csn_status file_id(const upload *u, char **ret, csn_error **err)
{
    csn_autobuf selection;

    csn_buf_init(&selection, SELECTION_MAX);
    int e = csn_dagger_append(&selection, "file(path: ?) { id }", u->path);
    return derive(u->r, u->branch, &selection, e, "file.id", ret, err);
}

static csn_status send_chunks(upload *u, const csn_source *content, char **ret_file,
                              csn_error **err)
{
    csn_autofree char *buf = malloc(CHUNK);
    size_t len = CHUNK;
    csn_status st = buf ? CSN_OK : csn_fail(err, CSN_NOMEM, WHAT);

    while (st == CSN_OK && len == CHUNK) {
        st = read_chunk(content, buf, &len, err);
        if (st == CSN_OK && (len > 0 || !u->begun))
            st = send_chunk(u, buf, len, err);
    }
    return st < 0 ? st : file_id(u, ret_file, err);
}

/* With the step lock held. */
static csn_status add_file(const upload *u, const char *file, csn_error **err)
{
    const csn_dagger *d = csn_dagger_of(u->r);
    csn_autofree char *container = NULL;
    csn_autobuf selection;

    csn_buf_init(&selection, SELECTION_MAX);
    int e = csn_dagger_append(&selection, "withFile(path: ?, source: ?", u->path, file);
    if (e == 0 && d->user[0])
        e = csn_dagger_append(&selection, ", owner: ?", d->user);
    e = e ? e : csn_buf_puts(&selection, ") { sync }");
    csn_status st = derive(u->r, d->container, &selection, e, "withFile.sync", &container, err);
    return st == CSN_OK ? csn_dagger_commit(u->r, container, err) : st;
}

csn_status csn_dagger_upload(csn_remote *r, const char *path, const csn_source *content,
                             csn_error **err)
{
    const int32_t stop[] = {r->stop_fd, -1, -1};
    upload u = {.r = r, .path = path};
    csn_autofree char *file = NULL;

    csn_status st = csn_dagger_current(r, &u.branch, err);
    if (st == CSN_OK)
        st = send_chunks(&u, content, &file, err);
    free(u.branch);
    if (st == CSN_OK)
        st = csn_dagger_step_begin(r, csn_deadline_in(STEP_MS), stop, err);
    if (st < 0)
        return st;
    st = add_file(&u, file, err);
    csn_step_lock_release(csn_dagger_of(r)->step_lock);
    return st;
}
