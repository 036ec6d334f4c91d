/* api.c: the life of a sandbox: made, found, kept alive, ended; its sessions.
 *
 * A sandbox has a name of our making, so one that nobody answered for is found by it and ended.
 * Making is never repeated. A sandbox that is not detached has one session and ends with it; a
 * detached one lasts (`persistent`): the provider keeps its files when a session ends, and
 * starts another one when it is asked to. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/vercel/vercel.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/strv.h"

#define RUNTIME  "python3.13"
#define SNAPSHOT "snapshot:"
#define KEPT     " kept" /* in the record, behind the name */
#define ID_MAX   128u
#define TAKE_MS  600000u
#define BODY_MAX (8u * 1024u * 1024u) /* network rules can be many */

bool csn_vercel_id_fits(const char *id)
{
    size_t n =
        id ? strspn(id, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") : 0;

    return n > 0 && id[n] == '\0' && n <= ID_MAX;
}

/* ---- what the server says of a sandbox -------------------------------------------------- */

/* How long the session still has, by its own times and this host's clock. */
static uint64_t left_ms(const csn_jval *session)
{
    int64_t begun = 0, timeout = 0;

    (void)csn_jget_i64(session, "createdAt", &begun, NULL);
    (void)csn_jget_i64(session, "startedAt", &begun, NULL);
    (void)csn_jget_i64(session, "timeout", &timeout, NULL);
    if (begun < 0 || timeout < 0 || timeout > INT64_MAX / 4 || begun > INT64_MAX / 4)
        return 0;
    int64_t left = begun + timeout - csn_wall_ms();
    return left > 0 ? (uint64_t)left : 0;
}

/* Takes the session of an answer. With v->lock held, or before anybody else has the state. */
static csn_status take_session(csn_remote *r, const csn_jval *root, csn_error **err)
{
    csn_vercel *v = csn_vercel_of(r);
    const csn_jval *session = csn_jval_get(root, "session");
    const char *id = csn_jval_string(csn_jval_get(session, "id"));

    if (!csn_vercel_id_fits(id))
        return csn_fail(err, CSN_IO, "the answer of the Vercel API names no session");
    char *copy = strdup(id);
    if (!copy)
        return csn_fail(err, CSN_NOMEM, "session");
    free(v->session);
    v->session = copy;
    csn_remote_expires_in(r, left_ms(session));
    return CSN_OK;
}

/* "/v2/sandboxes/NAME" and "&projectId=ID" plus `more`. */
static csn_status of_sandbox(const csn_remote *r, const char *more, csn_buf *path,
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

/* GET with resume: a session that runs, be it a new one. needs: as csn_vercel_resume, or NULL.
 */
static csn_status wake(csn_remote *r, const csn_http_req *needs, csn_error **err)
{
    CSN_CLEANUP(csn_jval_freep) csn_jval *root = NULL;
    csn_autores res = {0};
    csn_autobuf path, query;

    csn_status st = of_sandbox(r, "&resume=true", &path, &query, err);
    csn_vercel_call c = {.what = "find the sandbox",
                         .path = path.data,
                         .query = query.data,
                         .http = {.method = "GET", .repeat = CSN_HTTP_SAFE}};
    if (needs) {
        c.http.deadline_ns = needs->deadline_ns;
        c.http.cancel_fds = needs->cancel_fds;
        c.http.cancel_count = needs->cancel_count;
    }
    if (st == CSN_OK)
        st = csn_vercel_ask(r, c, NULL, &root, &res, err);
    if (st == CSN_NOT_FOUND) {
        if (err)
            csn_error_free(*err);
        return csn_fail(err, CSN_GONE, "sandbox %s has ended", r->id);
    }
    return st == CSN_OK ? take_session(r, root, err) : st;
}

csn_status csn_vercel_resume(csn_remote *r, const char *ended, const csn_http_req *needs,
                             csn_error **err)
{
    csn_vercel *v = csn_vercel_of(r);
    csn_status st = CSN_OK;

    pthread_mutex_lock(&v->lock);
    if (strcmp(v->session, ended) == 0)
        st = wake(r, needs, err);
    pthread_mutex_unlock(&v->lock);
    return st;
}

/* ---- making ----------------------------------------------------------------------------- */

static bool is_runtime(const char *image)
{
    static const char *const known[] = {"node22", "node24", "node26", "python3.13", NULL};

    return csn_strv_has(known, image);
}

/* A runtime of the provider's, a snapshot, or an image. */
static void put_image(csn_json *j, const char *image)
{
    if (!image || is_runtime(image)) {
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

static int put_create(const csn_remote *r, csn_buf *b)
{
    const csn_config *c = r->config;
    csn_json j;

    csn_json_begin(&j, b);
    csn_json_object(&j);
    csn_json_kstr(&j, "projectId", csn_vercel_of(r)->project);
    csn_json_kstr(&j, "name", csn_vercel_of(r)->name);
    csn_json_key(&j, "ports");
    csn_json_array(&j);
    csn_json_array_end(&j);
    csn_json_kuint(&j, "timeout", csn_remote_lifetime_ms(c));
    csn_json_kbool(&j, "persistent", csn_vercel_lasts(r));
    put_image(&j, c->image);
    csn_vercel_put_policy(&j, c);
    csn_json_key(&j, "tags");
    csn_json_object(&j);
    csn_json_kstr(&j, "caisson", r->id);
    csn_json_object_end(&j);
    csn_json_object_end(&j);
    return csn_json_end(&j);
}

csn_status csn_vercel_make(csn_remote *r, csn_error **err)
{
    CSN_CLEANUP(csn_jval_freep) csn_jval *root = NULL;
    bool runtime = !r->config->image || is_runtime(r->config->image);
    const csn_vercel_call c = {.what = "create a sandbox",
                               .path = runtime ? "/v2/sandboxes" : "/v3/sandboxes",
                               .http = {.method = "POST", .repeat = CSN_HTTP_ONCE}};
    csn_autores res = {0};
    csn_autobuf body;

    csn_buf_init(&body, BODY_MAX);
    free(csn_vercel_of(r)->name);
    if (asprintf(&csn_vercel_of(r)->name, "caisson-%s", r->id) < 0) {
        csn_vercel_of(r)->name = NULL;
        return csn_fail(err, CSN_NOMEM, "%s", c.what);
    }
    int e = put_create(r, &body);
    if (e != 0)
        return csn_fail_errno(err, e, "%s", c.what);
    csn_status st = csn_vercel_ask(r, c, &body, &root, &res, err);
    if (st == CSN_OK)
        st = take_session(r, root, err);
    if (st < 0 && res.sent) /* nobody said whether it was made */
        (void)csn_vercel_end(r, NULL);
    if (st == CSN_OK)
        csn_remote_expires_in(r, csn_remote_lifetime_ms(r->config));
    return st;
}

/* ---- one that is there ------------------------------------------------------------------ */

csn_status csn_vercel_find(csn_remote *r, const char *note, csn_error **err)
{
    csn_vercel *v = csn_vercel_of(r);
    const char *kept = strstr(note, KEPT);

    free(v->name);
    v->name = kept ? strndup(note, (size_t)(kept - note)) : strdup(note);
    if (!v->name)
        return csn_fail(err, CSN_NOMEM, "find");
    if (!csn_vercel_id_fits(v->name))
        return csn_fail(err, CSN_GONE, "what is on record is not the name of a sandbox");
    return wake(r, NULL, err);
}

int csn_vercel_note(const csn_remote *r, csn_buf *out)
{
    const csn_vercel *v = csn_vercel_of(r);

    return csn_buf_printf(out, "%s%s", v->name, v->kept ? KEPT : "");
}

/* Before the first snapshot is made: it is worth more than one too many is in the way. */
static csn_status keep_snapshots(csn_remote *r, csn_error **err)
{
    csn_vercel *v = csn_vercel_of(r);

    pthread_mutex_lock(&v->lock);
    v->kept = true;
    csn_status st = csn_remote_commit(r, err);
    pthread_mutex_unlock(&v->lock);
    return st;
}

/* Also one that another process asked for. */
static bool keeps_snapshots(csn_remote *r)
{
    csn_autobuf text = {0};

    pthread_mutex_lock(&csn_vercel_of(r)->lock);
    bool kept = csn_vercel_of(r)->kept;
    pthread_mutex_unlock(&csn_vercel_of(r)->lock);
    return kept || (csn_remote_shared(r) && csn_remote_read_note(r, &text, NULL) == CSN_OK &&
                    strstr(text.data, KEPT));
}

/* The provider stops the session for it, and the next call gets another one. */
csn_status csn_vercel_snapshot(void *state, char **ret, csn_error **err)
{
    CSN_CLEANUP(csn_jval_freep) csn_jval *root = NULL;
    csn_remote *r = state;
    csn_autores res = {0};
    const csn_vercel_call c = {.what = "make a snapshot",
                               .path = "/snapshot",
                               .session = true,
                               .http = {.method = "POST",
                                        .repeat = CSN_HTTP_ONCE,
                                        .deadline_ns = csn_deadline_in(TAKE_MS)}};

    if (!csn_vercel_lasts(r))
        return csn_fail(err, CSN_UNSUPPORTED,
                        "backend 'vercel' makes snapshots of detached sandboxes only: one that "
                        "is not ends with it");
    csn_status st = keep_snapshots(r, err);
    if (st == CSN_OK)
        st = csn_vercel_ask(r, c, NULL, &root, &res, err);
    if (st < 0)
        return st;
    const char *id = csn_jval_string(csn_jval_get(csn_jval_get(root, "snapshot"), "id"));
    if (!csn_vercel_id_fits(id))
        return csn_fail(err, CSN_IO, "the answer of the Vercel API names no snapshot");
    if (asprintf(ret, SNAPSHOT "%s", id) < 0) {
        *ret = NULL;
        return csn_fail(err, CSN_NOMEM, "%s", c.what);
    }
    return CSN_OK;
}

/* CSN_OK also when there is nothing any more. */
static csn_status be_gone(csn_remote *r, csn_vercel_call c, csn_error **err)
{
    static const int32_t none[] = {-1};
    csn_autores res = {0};
    csn_error *why = NULL;

    c.http.cancel_fds = none;
    c.http.cancel_count = 1;
    c.http.repeat = CSN_HTTP_SAFE;
    csn_status st = csn_vercel_ask(r, c, NULL, NULL, &res, &why);
    if (st == CSN_NOT_FOUND || st == CSN_GONE)
        st = CSN_OK;
    if (st < 0 && err)
        *err = CSN_STEAL(why);
    csn_error_free(why);
    return st;
}

/* Its session is stopped first: deleting is not said to do that. No session is replaced for
 * it, so its path is given in full. */
csn_status csn_vercel_end(csn_remote *r, csn_error **err)
{
    csn_vercel *v = csn_vercel_of(r);
    csn_autofree char *stop = NULL;
    csn_autobuf path, query;

    const char *more = keeps_snapshots(r) ? "" : "&deleteOrphanSnapshots=true";
    csn_status st = of_sandbox(r, more, &path, &query, err);
    if (st < 0)
        return st;
    pthread_mutex_lock(&v->lock);
    int n = v->session ? asprintf(&stop, "/v2/sandboxes/sessions/%s/stop", v->session) : 0;
    pthread_mutex_unlock(&v->lock);
    if (n > 0)
        (void)be_gone(r,
                      (csn_vercel_call){
                          .what = "stop the session", .path = stop, .http = {.method = "POST"}},
                      NULL);
    return be_gone(r,
                   (csn_vercel_call){.what = "delete the sandbox",
                                     .path = path.data,
                                     .query = query.data,
                                     .http = {.method = "DELETE"}},
                   err);
}

/* The provider adds to a lifetime, and cannot take from it. */
csn_status csn_vercel_extend(csn_remote *r, uint64_t ms, csn_error **err)
{
    const csn_vercel_call c = {.what = "extend the lifetime",
                               .path = "/extend-timeout",
                               .session = true,
                               .http = {.method = "POST", .repeat = CSN_HTTP_ONCE}};
    csn_autores res = {0};
    csn_autobuf body;

    csn_buf_init(&body, 256);
    pthread_mutex_lock(&r->lock);
    int64_t left = r->expires_ms - csn_wall_ms();
    pthread_mutex_unlock(&r->lock);
    uint64_t have = left > 0 ? (uint64_t)left : 0;
    if (ms <= have)
        return csn_fail(err, CSN_UNSUPPORTED,
                        "backend 'vercel' can make a lifetime only longer: %llu ms are left",
                        (unsigned long long)have);
    int e = csn_buf_printf(&body, "{\"duration\":%llu}", (unsigned long long)(ms - have));
    csn_status st =
        e ? csn_fail_errno(err, e, "extend") : csn_vercel_ask(r, c, &body, NULL, &res, err);
    if (st == CSN_OK)
        csn_remote_expires_in(r, ms);
    return st;
}
