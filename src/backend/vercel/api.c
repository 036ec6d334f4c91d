/* api.c: creates, connects, extends, snapshots and deletes Vercel sandboxes and sessions.
 *
 * caisson chooses the name of a sandbox. A create request is sent at most once; if its outcome
 * is unknown, the sandbox is deleted by name. A sandbox that is not detached has one session
 * and ends with it. A detached sandbox is persistent: Vercel keeps its files when a session
 * ends and starts another session on request. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/vercel/vercel.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/strv.h"

#define RUNTIME        "python3.13"
#define SNAPSHOT       "snapshot:"
#define KEEP_SNAPSHOTS " kept" /* in the record, after the name */
#define SNAPSHOT_MS    600000u
#define BODY_MAX       (8u * 1024u * 1024u) /* network rules can be long */

/* ---- sessions --------------------------------------------------------------------------- */

/* Uses the times in the session object and this host's clock. */
static uint64_t remaining_ms(const csn_jval *session)
{
    int64_t start = 0, timeout = 0;

    (void)csn_jget_i64(session, "createdAt", &start, NULL);
    (void)csn_jget_i64(session, "startedAt", &start, NULL);
    (void)csn_jget_i64(session, "timeout", &timeout, NULL);
    if (start < 0 || timeout < 0 || timeout > INT64_MAX / 4 || start > INT64_MAX / 4)
        return 0;
    int64_t left = start + timeout - csn_wall_ms();
    return left > 0 ? (uint64_t)left : 0;
}

/* With the lock held, or before the state is shared. */
static csn_status read_session(csn_remote *r, const csn_jval *root, csn_error **err)
{
    const csn_jval *session = csn_jval_get(root, "session");
    const char *id = csn_jval_string(csn_jval_get(session, "id"));

    if (!csn_remote_id_valid(id))
        return csn_fail(err, CSN_IO, "the response of the Vercel API names no session");
    csn_status st = csn_remote_set_string(&csn_vercel_of(r)->session, id, err);
    if (st == CSN_OK)
        csn_remote_expires_in(r, remaining_ms(session));
    return st;
}

/* path: "/v2/sandboxes/NAME"; query: "&projectId=ID" and `more`. */
static csn_status sandbox_url(const csn_remote *r, const char *more, csn_buf *path,
                              csn_buf *query, csn_error **err)
{
    const csn_vercel *v = csn_vercel_of(r);

    csn_buf_init(path, 4096);
    csn_buf_init(query, 4096);
    int e = csn_buf_puts(path, "/v2/sandboxes/");
    e = e ? e : csn_url_escape(path, v->name);
    e = e ? e : csn_buf_puts(query, "&projectId=");
    e = e ? e : csn_url_escape(query, v->project);
    e = e ? e : csn_buf_puts(query, more);
    return e == 0 ? CSN_OK : csn_fail_errno(err, e, "sandbox");
}

/* Gets the running session, or starts one. `needs` as csn_vercel_resume's; or NULL. */
static csn_status get_session(csn_remote *r, const csn_http_req *needs, csn_error **err)
{
    CSN_CLEANUP(csn_jval_freep) csn_jval *root = NULL;
    csn_autores res = {0};
    csn_autobuf path, query;

    csn_status st = sandbox_url(r, "&resume=true", &path, &query, err);
    csn_vercel_call c = {.what = "find the sandbox",
                         .path = path.data,
                         .query = query.data,
                         .http = {.method = "GET", .retry = CSN_HTTP_IDEMPOTENT}};
    if (needs) {
        c.http.deadline_ns = needs->deadline_ns;
        c.http.cancel_fds = needs->cancel_fds;
        c.http.cancel_count = needs->cancel_count;
    }
    if (st == CSN_OK)
        st = csn_vercel_request_json(r, c, NULL, &root, &res, err);
    if (st == CSN_NOT_FOUND) {
        if (err)
            csn_error_free(*err);
        return csn_remote_gone(r, err);
    }
    return st == CSN_OK ? read_session(r, root, err) : st;
}

csn_status csn_vercel_resume(csn_remote *r, const char *ended, const csn_http_req *needs,
                             csn_error **err)
{
    csn_vercel *v = csn_vercel_of(r);
    csn_status st = CSN_OK;

    pthread_mutex_lock(&v->lock);
    if (strcmp(v->session, ended) == 0)
        st = get_session(r, needs, err);
    pthread_mutex_unlock(&v->lock);
    return st;
}

/* ---- creating --------------------------------------------------------------------------- */

static bool is_runtime(const char *image)
{
    static const char *const runtimes[] = {"node22", "node24", "node26", "python3.13", NULL};

    return !image || csn_strv_has(runtimes, image);
}

/* Writes the image as one of Vercel's runtimes, a snapshot, or a container image. */
static void json_image(csn_json *j, const char *image)
{
    if (is_runtime(image)) {
        csn_json_kstr(j, "runtime", image ? image : RUNTIME);
        return;
    }
    if (!csn_str_starts(image, SNAPSHOT)) {
        csn_json_kstr(j, "image", image);
        return;
    }
    csn_json_key(j, "source");
    csn_json_object(j);
    csn_json_kstr(j, "type", "snapshot");
    csn_json_kstr(j, "snapshotId", image + strlen(SNAPSHOT));
    csn_json_object_end(j);
}

static int create_body(const csn_remote *r, csn_buf *b)
{
    const csn_config *c = r->config;
    csn_json j;

    csn_json_begin(&j, b);
    csn_json_object(&j);
    csn_json_kstr(&j, "projectId", csn_vercel_of(r)->project);
    csn_json_kstr(&j, "name", csn_vercel_of(r)->name);
    csn_remote_json_strings(&j, "ports", NULL);
    csn_json_kuint(&j, "timeout", csn_remote_lifetime_ms(c));
    csn_json_kbool(&j, "persistent", csn_remote_shared(r));
    json_image(&j, c->image);
    csn_vercel_json_network(&j, c);
    csn_json_key(&j, "tags");
    csn_json_object(&j);
    csn_json_kstr(&j, "caisson", r->id);
    csn_json_object_end(&j);
    csn_json_object_end(&j);
    return csn_json_end(&j);
}

csn_status csn_vercel_create(csn_remote *r, csn_error **err)
{
    CSN_CLEANUP(csn_jval_freep) csn_jval *root = NULL;
    const csn_vercel_call c = {.what = "create a sandbox",
                               .path = is_runtime(r->config->image) ? "/v2/sandboxes"
                                                                    : "/v3/sandboxes",
                               .http = {.method = "POST", .retry = CSN_HTTP_ONCE}};
    csn_vercel *v = csn_vercel_of(r);
    csn_autores res = {0};
    csn_autobuf body;

    csn_buf_init(&body, BODY_MAX);
    free(v->name);
    if (asprintf(&v->name, "caisson-%s", r->id) < 0) {
        v->name = NULL;
        return csn_fail(err, CSN_NOMEM, "%s", c.what);
    }
    int e = create_body(r, &body);
    if (e != 0)
        return csn_fail_errno(err, e, "%s", c.what);
    csn_status st = csn_vercel_request_json(r, c, &body, &root, &res, err);
    if (st == CSN_OK)
        st = read_session(r, root, err);
    if (st < 0 && res.sent) /* the sandbox may have been created */
        (void)csn_vercel_destroy(r, NULL);
    if (st == CSN_OK)
        csn_remote_expires_in(r, csn_remote_lifetime_ms(r->config));
    return st;
}

/* ---- existing sandboxes ----------------------------------------------------------------- */

csn_status csn_vercel_connect(csn_remote *r, const char *record, csn_error **err)
{
    csn_vercel *v = csn_vercel_of(r);
    const char *suffix = strstr(record, KEEP_SNAPSHOTS);

    free(v->name);
    v->name = suffix ? strndup(record, (size_t)(suffix - record)) : strdup(record);
    if (!v->name)
        return csn_fail(err, CSN_NOMEM, "connect");
    if (!csn_remote_id_valid(v->name))
        return csn_fail(err, CSN_GONE, "the record of sandbox %s is damaged", r->id);
    csn_status st = get_session(r, NULL, err);
    if (st != CSN_GONE)
        return st;
    if (err)
        csn_error_free(CSN_STEAL(*err));
    return csn_remote_unknown(r, err);
}

int csn_vercel_write_record(const csn_remote *r, csn_buf *out)
{
    const csn_vercel *v = csn_vercel_of(r);

    return csn_buf_printf(out, "%s%s", v->name, v->keep_snapshots ? KEEP_SNAPSHOTS : "");
}

/* Called before a snapshot is taken: if the process dies in between, a leftover snapshot is
 * better than a deleted one. */
static csn_status record_keep_snapshots(csn_remote *r, csn_error **err)
{
    csn_vercel *v = csn_vercel_of(r);

    pthread_mutex_lock(&v->lock);
    v->keep_snapshots = true;
    csn_status st = csn_remote_commit(r, err);
    pthread_mutex_unlock(&v->lock);
    return st;
}

/* Reads the record too: another process may have taken a snapshot. */
static bool must_keep_snapshots(csn_remote *r)
{
    csn_vercel *v = csn_vercel_of(r);
    csn_autobuf record = {0};

    pthread_mutex_lock(&v->lock);
    bool keep = v->keep_snapshots;
    pthread_mutex_unlock(&v->lock);
    return keep ||
           (csn_remote_shared(r) && csn_remote_read_record(r, &record, NULL) == CSN_OK &&
            strstr(record.data, KEEP_SNAPSHOTS));
}

/* Vercel stops the session; the next request starts another one. */
csn_status csn_vercel_snapshot(void *state, char **ret, csn_error **err)
{
    CSN_CLEANUP(csn_jval_freep) csn_jval *root = NULL;
    csn_remote *r = state;
    csn_autores res = {0};
    const csn_vercel_call c = {.what = "take a snapshot",
                               .path = "/snapshot",
                               .in_session = true,
                               .http = {.method = "POST",
                                        .retry = CSN_HTTP_ONCE,
                                        .deadline_ns = csn_deadline_in(SNAPSHOT_MS)}};

    if (!csn_remote_shared(r))
        return csn_fail(err, CSN_UNSUPPORTED,
                        "backend 'vercel' takes snapshots of detached sandboxes only: any "
                        "other ends with its snapshot");
    csn_status st = record_keep_snapshots(r, err);
    if (st == CSN_OK)
        st = csn_vercel_request_json(r, c, NULL, &root, &res, err);
    if (st < 0)
        return st;
    const char *id = csn_jval_string(csn_jval_get(csn_jval_get(root, "snapshot"), "id"));
    if (!csn_remote_id_valid(id))
        return csn_fail(err, CSN_IO, "the response of the Vercel API names no snapshot");
    if (asprintf(ret, SNAPSHOT "%s", id) < 0) {
        *ret = NULL;
        return csn_fail(err, CSN_NOMEM, "%s", c.what);
    }
    return CSN_OK;
}

/* Idempotent: CSN_OK when the object does not exist. */
static csn_status stop_or_delete(csn_remote *r, csn_vercel_call c, csn_error **err)
{
    static const int32_t none[] = {-1};
    csn_autores res = {0};
    csn_error *why = NULL;

    c.http.cancel_fds = none;
    c.http.cancel_count = 1;
    c.http.retry = CSN_HTTP_IDEMPOTENT;
    csn_status st = csn_vercel_request_json(r, c, NULL, NULL, &res, &why);
    if (st == CSN_NOT_FOUND || st == CSN_GONE)
        st = CSN_OK;
    if (st < 0 && err)
        *err = CSN_STEAL(why);
    csn_error_free(why);
    return st;
}

/* Stops the session first, because the API does not guarantee that deleting the sandbox does.
 * Uses the full path of the session: with in_session an ended session would be replaced by a
 * new one. */
csn_status csn_vercel_destroy(csn_remote *r, csn_error **err)
{
    csn_vercel *v = csn_vercel_of(r);
    csn_autofree char *stop_path = NULL;
    csn_autobuf path, query;

    const char *more = must_keep_snapshots(r) ? "" : "&deleteOrphanSnapshots=true";
    csn_status st = sandbox_url(r, more, &path, &query, err);
    if (st < 0)
        return st;
    pthread_mutex_lock(&v->lock);
    int n = v->session ? asprintf(&stop_path, "/v2/sandboxes/sessions/%s/stop", v->session) : 0;
    pthread_mutex_unlock(&v->lock);
    const csn_vercel_call stop = {
        .what = "stop the session", .path = stop_path, .http = {.method = "POST"}};
    if (n > 0)
        (void)stop_or_delete(r, stop, NULL);
    const csn_vercel_call delete = {.what = "delete the sandbox",
                                    .path = path.data,
                                    .query = query.data,
                                    .http = {.method = "DELETE"}};
    return stop_or_delete(r, delete, err);
}

/* The API can only lengthen a lifetime. */
csn_status csn_vercel_extend(csn_remote *r, uint64_t ms, csn_error **err)
{
    const csn_vercel_call c = {.what = "extend the lifetime",
                               .path = "/extend-timeout",
                               .in_session = true,
                               .http = {.method = "POST", .retry = CSN_HTTP_ONCE}};
    csn_autores res = {0};
    csn_autobuf body;

    csn_buf_init(&body, 256);
    pthread_mutex_lock(&r->lock);
    int64_t left = r->expires_ms - csn_wall_ms();
    pthread_mutex_unlock(&r->lock);
    uint64_t have = left > 0 ? (uint64_t)left : 0;
    if (ms <= have)
        return csn_fail(err, CSN_UNSUPPORTED,
                        "backend 'vercel' cannot shorten a lifetime: %llu ms are left",
                        (unsigned long long)have);
    int e = csn_buf_printf(&body, "{\"duration\":%llu}", (unsigned long long)(ms - have));
    csn_status st = e ? csn_fail_errno(err, e, "extend")
                      : csn_vercel_request_json(r, c, &body, NULL, &res, err);
    if (st == CSN_OK)
        csn_remote_expires_in(r, ms);
    return st;
}
