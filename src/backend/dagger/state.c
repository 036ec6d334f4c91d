/* state.c: the container that a sandbox is: made, found again, replaced, and files put into it.
 *
 * Called through the csn_remote_kind, with the turn where the sandbox changes. Ids are opaque
 * text of the engine's; they are kept, never looked into. What must hold: the sandbox becomes
 * something else only as a whole, when the engine has said that the new state is there; a
 * record is never behind the state that a caller was told of. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/dagger/dagger.h"
#include "base/base64.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/json_write.h"
#include "base/strv.h"

#define MAKE_MS    600000u /* an image may have to be fetched */
#define FIND_MS    60000u
#define CHUNK_MS   120000u
#define CHUNK      (4u * 1024u * 1024u) /* of a file, in one request */
#define SELECT_MAX (8u * 1024u * 1024u)
#define TEXT_MAX   (512u * 1024u)

/* ---- one state after another ------------------------------------------------------------ */

static csn_status take_id(csn_remote *r, const char *id, csn_error **err)
{
    csn_dagger *d = csn_dagger_of(r);
    char *copy = strdup(id);

    if (!copy)
        return csn_fail(err, CSN_NOMEM, "the sandbox's state");
    pthread_mutex_lock(&r->lock);
    char *old = d->container;
    d->container = copy;
    pthread_mutex_unlock(&r->lock);
    free(old);
    return CSN_OK;
}

csn_status csn_dagger_become(csn_remote *r, const char *id, csn_error **err)
{
    csn_status st = take_id(r, id, err);

    return st == CSN_OK && r->noted && csn_remote_shared(r) ? csn_remote_commit(r, err) : st;
}

/* What is on record. Before the first record there is nobody else. */
static csn_status recorded(csn_remote *r, char **ret, csn_error **err)
{
    CSN_CLEANUP(csn_jval_freep) csn_jval *root = NULL;
    csn_autobuf text = {0};

    csn_status st = csn_remote_read_note(r, &text, err);
    if (st < 0)
        return st;
    const char *id = csn_json_parse(text.data, text.len, "record", &root, NULL) == CSN_OK
                         ? csn_dagger_id_at(root, "container")
                         : NULL;
    *ret = id ? strdup(id) : NULL;
    return *ret ? CSN_OK : csn_fail(err, CSN_IO, "the record of '%s' is damaged", r->id);
}

csn_status csn_dagger_now(csn_remote *r, char **ret, csn_error **err)
{
    if (r->noted && csn_remote_shared(r))
        return recorded(r, ret, err);
    pthread_mutex_lock(&r->lock);
    *ret = strdup(csn_dagger_of(r)->container);
    pthread_mutex_unlock(&r->lock);
    return *ret ? CSN_OK : csn_fail(err, CSN_NOMEM, "the sandbox's state");
}

/* What other processes made of it since. */
static csn_status learn(csn_remote *r, csn_error **err)
{
    csn_autofree char *id = NULL;

    if (!r->noted || !csn_remote_shared(r))
        return CSN_OK;
    csn_status st = recorded(r, &id, err);
    return st < 0 ? st : take_id(r, id, err);
}

csn_status csn_dagger_begin(csn_remote *r, uint64_t deadline_ns, const int32_t cancel_fds[3],
                            csn_error **err)
{
    csn_dagger *d = csn_dagger_of(r);
    csn_status st = csn_step_lock_take(d->turn, r, deadline_ns, cancel_fds, err);

    if (st < 0)
        return st;
    st = learn(r, err);
    if (st < 0)
        csn_step_lock_give(d->turn);
    return st;
}

/* ---- making and finding ----------------------------------------------------------------- */

static int put_from(csn_buf *b, const char *image)
{
    int e = csn_buf_puts(b, "container { from(address: ");

    e = e ? e : csn_dagger_literal(b, image);
    return e ? e
             : csn_buf_puts(
                   b,
                   ") { withExec(args: [\"/bin/sh\", \"-c\", \"mkdir -p " CSN_DAGGER_WORKDIR
                   " && test -w " CSN_DAGGER_WORKDIR
                   "\"]) { withWorkdir(path: \"" CSN_DAGGER_WORKDIR "\") { user sync } } } }");
}

static csn_status why_not_made(const csn_dagger_answer *a, const char *image, csn_status st,
                               csn_error **err)
{
    bool missing = strstr(a->said, "not found") || strstr(a->said, "pull access denied");

    if (!a->exec_error && !missing)
        return st;
    if (err) {
        csn_error_free(*err);
        *err = NULL;
    }
    if (missing)
        return csn_fail(err, CSN_NOT_FOUND, "image '%.200s': %s", image, a->said);
    return csn_fail(err, CSN_UNSUPPORTED,
                    "image '%.200s' has no sh, or its user may not make " CSN_DAGGER_WORKDIR,
                    image);
}

static csn_status keep(csn_remote *r, const char *id, const char *user, csn_error **err)
{
    char *copy = strdup(user ? user : "");

    free(csn_dagger_of(r)->user);
    csn_dagger_of(r)->user = copy;
    return copy ? take_id(r, id, err) : csn_fail(err, CSN_NOMEM, "open");
}

static csn_status make_container(csn_remote *r, csn_error **err)
{
    const char *image = r->config->image ? r->config->image : CSN_DAGGER_IMAGE;
    const int32_t stop[] = {r->stop_fd, -1, -1};
    csn_autoanswer a = {0};
    csn_autobuf select;

    csn_buf_init(&select, TEXT_MAX);
    int e = put_from(&select, image);
    if (e != 0)
        return csn_fail_errno(err, e, "image");
    const csn_dagger_query q = {.select = &select,
                                .what = "make a container",
                                .repeat = CSN_HTTP_ONCE,
                                .deadline_ns = csn_deadline_in(MAKE_MS),
                                .cancel_fds = stop};
    csn_status st = csn_dagger_ask(r, &q, &a, err);
    if (st < 0)
        return why_not_made(&a, image, st, err);
    const csn_jval *at = csn_dagger_at(a.at, "container.from.withExec.withWorkdir");
    const char *id = csn_dagger_id_at(at, "sync");
    if (!id)
        return csn_fail(err, CSN_IO, "the engine named no container");
    return keep(r, id, csn_jval_string(csn_jval_get(at, "user")), err);
}

/* Is it there? `lost`, in the caller's words: the engine has forgotten it. All else is the
 * line's fault. Release the answer in any case: it has `user`. */
static csn_status check_there(csn_remote *r, const char *id, csn_dagger_answer *a,
                              csn_status lost, const char *words, csn_error **err)
{
    const int32_t stop[] = {r->stop_fd, -1, -1};
    csn_autobuf select;

    csn_buf_init(&select, 64);
    if (csn_buf_puts(&select, "user sync") != 0)
        return csn_fail(err, CSN_NOMEM, "open");
    const csn_dagger_query q = {.on = id,
                                .type = "Container",
                                .select = &select,
                                .what = "find the container",
                                .repeat = CSN_HTTP_SAFE,
                                .deadline_ns = csn_deadline_in(FIND_MS),
                                .cancel_fds = stop};
    csn_status st = csn_dagger_ask(r, &q, a, err);
    if (st == CSN_OK && !csn_dagger_id_at(a->at, "sync"))
        return csn_fail(err, lost, "%s", words);
    return st == CSN_IO && a->said[0] ? csn_wrap(lost, err, "%s", words) : st;
}

static csn_status take_up(csn_remote *r, const char *id, csn_status lost, const char *words,
                          csn_error **err)
{
    csn_autoanswer a = {0};
    csn_status st = check_there(r, id, &a, lost, words, err);

    return st == CSN_OK ? keep(r, id, csn_jval_string(csn_jval_get(a.at, "user")), err) : st;
}

static const char no_snapshot[] = "the engine does not have this snapshot";

/* Of an image, or of a state that a sandbox once had. */
csn_status csn_dagger_make(csn_remote *r, csn_error **err)
{
    const char *image = r->config->image;
    csn_status st = csn_dagger_session_open(r, err);

    if (st == CSN_OK && image && csn_str_starts(image, CSN_DAGGER_STATE))
        st = take_up(r, image + strlen(CSN_DAGGER_STATE), CSN_NOT_FOUND, no_snapshot, err);
    else if (st == CSN_OK)
        st = make_container(r, err);
    if (st < 0)
        csn_dagger_session_end(csn_dagger_of(r));
    return st;
}

csn_status csn_dagger_find(csn_remote *r, const char *note, csn_error **err)
{
    CSN_CLEANUP(csn_jval_freep) csn_jval *root = NULL;
    csn_status st = csn_json_parse(note, strlen(note), "record", &root, NULL);
    const char *id = st == CSN_OK ? csn_dagger_id_at(root, "container") : NULL;

    if (!id)
        return csn_fail(err, CSN_GONE, "what is on record is not a container");
    st = csn_jval_has(root, "pid") ? csn_dagger_session_adopt(csn_dagger_of(r), root, err)
                                   : csn_dagger_session_open(r, err);
    return st < 0
               ? st
               : take_up(r, id, CSN_GONE, "the engine does not have the sandbox any more", err);
}

int csn_dagger_note(const csn_remote *r, csn_buf *out)
{
    const csn_dagger *d = csn_dagger_of(r);
    csn_json j;

    csn_json_begin(&j, out);
    csn_json_object(&j);
    csn_json_kstr(&j, "container", d->container);
    if (d->session.pid > 0) {
        csn_json_kuint(&j, "port", d->session.port);
        csn_json_kstr(&j, "token", d->session.token);
        csn_json_kuint(&j, "pid", (uint64_t)d->session.pid);
        csn_json_kuint(&j, "born", d->session.born);
    }
    csn_json_object_end(&j);
    return csn_json_end(&j);
}

/* A state is a value: there is nothing to remove at the engine, which forgets what nobody
 * uses. */
csn_status csn_dagger_end(csn_remote *r, csn_error **err)
{
    (void)err;
    csn_dagger_session_end(csn_dagger_of(r));
    return CSN_OK;
}

csn_status csn_dagger_snapshot(void *state, char **ret, csn_error **err)
{
    csn_autofree char *id = NULL;
    csn_status st = csn_dagger_now(state, &id, err);

    if (st == CSN_OK && asprintf(ret, CSN_DAGGER_STATE "%s", id) < 0) {
        *ret = NULL;
        st = csn_fail(err, CSN_NOMEM, "snapshot");
    }
    return st;
}

/* With the turn. */
static csn_status go_back(csn_remote *r, const char *id, csn_error **err)
{
    csn_autoanswer a = {0};
    csn_status st = check_there(r, id, &a, CSN_NOT_FOUND, no_snapshot, err);

    if (st < 0)
        return st;
    const char *user = csn_jval_string(csn_jval_get(a.at, "user"));
    if (strcmp(user ? user : "", csn_dagger_of(r)->user) != 0)
        return csn_fail(err, CSN_INVALID, "the snapshot is not one of this sandbox");
    return csn_dagger_become(r, id, err);
}

csn_status csn_dagger_rollback(void *state, const char *snapshot, csn_error **err)
{
    csn_remote *r = state;
    const int32_t stop[] = {r->stop_fd, -1, -1};

    if (!csn_str_starts(snapshot, CSN_DAGGER_STATE))
        return csn_fail(err, CSN_INVALID, "this is not the name of a snapshot of 'dagger'");
    csn_status st = csn_dagger_begin(r, csn_deadline_in(CHUNK_MS), stop, err);
    if (st < 0)
        return st;
    st = go_back(r, snapshot + strlen(CSN_DAGGER_STATE), err);
    csn_step_lock_give(csn_dagger_of(r)->turn);
    return st;
}

void csn_dagger_release(csn_remote *r)
{
    csn_dagger *d = csn_dagger_of(r);

    if (!d)
        return;
    csn_dagger_session_release(d);
    csn_step_lock_free(d->turn);
    free(d->container);
    free(d->user);
    free(d);
    r->own = NULL;
}

/* ---- files ------------------------------------------------------------------------------ */

/* Text is all that a query carries: content goes in as base64 and is decoded inside. This
 * happens on a branch of the sandbox, so that nobody waits for a slow source; only the
 * finished file is put into the sandbox. */
typedef struct upload {
    csn_remote *r;
    const char *path;
    char *branch; /* the container in which the file grows */
    bool begun;
} upload;

static csn_status fill(const csn_source *content, char *buf, size_t *ret_len, csn_error **err)
{
    size_t len = 0;

    while (len < CHUNK) {
        int64_t n = content->read(content->ctx, buf + len, CHUNK - len);
        if (n < 0 || (uint64_t)n > CHUNK - len)
            return csn_fail(err, CSN_IO, "what was to be sent could not be read");
        if (n == 0)
            break;
        len += (size_t)n;
    }
    *ret_len = len;
    return CSN_OK;
}

static int put_chunk(csn_buf *b, const upload *u, const char *data, size_t len)
{
    csn_autofree char *text = malloc(csn_base64_size(len) + 1);

    if (!text)
        return ENOMEM;
    csn_base64_encode(data, len, text);
    csn_autofree char *part = NULL;
    if (asprintf(&part, "%s.part", u->path) < 0)
        return ENOMEM;
    int e = csn_buf_puts(b, "withNewFile(path: ");
    e = e ? e : csn_dagger_literal(b, part);
    e = e ? e
          : csn_buf_printf(b, ", contents: \"%s\", permissions: 420) { withExec(args: [", text);
    e = e ? e : csn_buf_puts(b, "\"/bin/sh\", \"-c\", ");
    e = e ? e
          : csn_dagger_literal(b, u->begun ? "umask 077; base64 -d <\"$1.part\" >>\"$1\""
                                           : "umask 077; base64 -d <\"$1.part\" >\"$1\"");
    e = e ? e : csn_buf_puts(b, ", \"sh\", ");
    e = e ? e : csn_dagger_literal(b, u->path);
    return e ? e : csn_buf_puts(b, "]) { sync } }");
}

static csn_status send_chunk(upload *u, const char *data, size_t len, csn_error **err)
{
    const int32_t stop[] = {u->r->stop_fd, -1, -1};
    csn_autoanswer a = {0};
    csn_autobuf select;

    csn_buf_init(&select, SELECT_MAX);
    int e = put_chunk(&select, u, data, len);
    if (e != 0)
        return csn_fail_errno(err, e, "send a file");
    const csn_dagger_query q = {.on = u->branch,
                                .type = "Container",
                                .select = &select,
                                .what = "send a file",
                                .repeat = CSN_HTTP_SAFE, /* the same branch, once more */
                                .deadline_ns = csn_deadline_in(CHUNK_MS),
                                .cancel_fds = stop};
    csn_status st = csn_dagger_ask(u->r, &q, &a, err);
    if (st < 0)
        return st;
    const char *id = csn_dagger_id_at(a.at, "withNewFile.withExec.sync");
    char *next = id ? strdup(id) : NULL;
    if (!next)
        return csn_fail(err, id ? CSN_NOMEM : CSN_IO, "the engine named no container");
    free(u->branch);
    u->branch = next;
    u->begun = true;
    return CSN_OK;
}

/* The id of the finished file; malloc'd. */
static csn_status file_id(const upload *u, char **ret, csn_error **err)
{
    const int32_t stop[] = {u->r->stop_fd, -1, -1};
    csn_autoanswer a = {0};
    csn_autobuf select;

    csn_buf_init(&select, TEXT_MAX);
    int e = csn_buf_puts(&select, "file(path: ");
    e = e ? e : csn_dagger_literal(&select, u->path);
    e = e ? e : csn_buf_puts(&select, ") { id }");
    if (e != 0)
        return csn_fail_errno(err, e, "send a file");
    const csn_dagger_query q = {.on = u->branch,
                                .type = "Container",
                                .select = &select,
                                .what = "send a file",
                                .repeat = CSN_HTTP_SAFE,
                                .deadline_ns = csn_deadline_in(CHUNK_MS),
                                .cancel_fds = stop};
    csn_status st = csn_dagger_ask(u->r, &q, &a, err);
    if (st < 0)
        return st;
    const char *id = csn_dagger_id_at(a.at, "file.id");
    *ret = id ? strdup(id) : NULL;
    return *ret ? CSN_OK : csn_fail(err, CSN_IO, "the engine named no file");
}

static int put_file(csn_buf *b, const char *path, const char *file, const char *user)
{
    int e = csn_buf_puts(b, "withFile(path: ");

    e = e ? e : csn_dagger_literal(b, path);
    e = e ? e : csn_buf_puts(b, ", source: ");
    e = e ? e : csn_dagger_literal(b, file);
    if (e == 0 && *user) {
        e = csn_buf_puts(b, ", owner: ");
        e = e ? e : csn_dagger_literal(b, user);
    }
    return e ? e : csn_buf_puts(b, ") { sync }");
}

/* With the turn. */
static csn_status place_file(const upload *u, const char *file, csn_error **err)
{
    csn_dagger *d = csn_dagger_of(u->r);
    const int32_t stop[] = {u->r->stop_fd, -1, -1};
    csn_autoanswer a = {0};
    csn_autobuf select;

    csn_buf_init(&select, TEXT_MAX);
    int e = put_file(&select, u->path, file, d->user);
    if (e != 0)
        return csn_fail_errno(err, e, "send a file");
    const csn_dagger_query q = {.on = d->container,
                                .type = "Container",
                                .select = &select,
                                .what = "send a file",
                                .repeat = CSN_HTTP_SAFE,
                                .deadline_ns = csn_deadline_in(CHUNK_MS),
                                .cancel_fds = stop};
    csn_status st = csn_dagger_ask(u->r, &q, &a, err);
    if (st < 0)
        return st;
    const char *id = csn_dagger_id_at(a.at, "withFile.sync");
    return id ? csn_dagger_become(u->r, id, err)
              : csn_fail(err, CSN_IO, "the engine named no container");
}

static csn_status send_all(upload *u, const csn_source *content, char **ret_file,
                           csn_error **err)
{
    csn_autofree char *buf = malloc(CHUNK);
    size_t len = CHUNK;
    csn_status st = buf ? CSN_OK : csn_fail(err, CSN_NOMEM, "send a file");

    while (st == CSN_OK && len == CHUNK) {
        st = fill(content, buf, &len, err);
        if (st == CSN_OK && (len > 0 || !u->begun))
            st = send_chunk(u, buf, len, err);
    }
    return st < 0 ? st : file_id(u, ret_file, err);
}

csn_status csn_dagger_put(csn_remote *r, const char *path, const csn_source *content,
                          csn_error **err)
{
    csn_dagger *d = csn_dagger_of(r);
    const int32_t stop[] = {r->stop_fd, -1, -1};
    upload u = {.r = r, .path = path};
    csn_autofree char *file = NULL;

    csn_status st = csn_dagger_now(r, &u.branch, err);
    if (st == CSN_OK)
        st = send_all(&u, content, &file, err);
    free(u.branch);
    if (st == CSN_OK)
        st = csn_dagger_begin(r, csn_deadline_in(CHUNK_MS), stop, err);
    if (st < 0)
        return st;
    st = place_file(&u, file, err);
    csn_step_lock_give(d->turn);
    return st;
}
