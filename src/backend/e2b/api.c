/* api.c: the control plane: sandboxes are made, found, kept alive and ended.
 *
 * REST with JSON and a key. The key goes to the API's host and nowhere else; what create
 * returns (a token of the sandbox, the host of its envd) goes to envd. Making a sandbox is
 * never repeated; all else may be. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "backend/e2b/e2b.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/json_write.h"
#include "base/strv.h"

#define API_MS    60000u
#define ENVD_PORT "49983"
#define DOMAIN    "e2b.app"
#define ID_MAX    128u
#define BODY_MAX  (256u * 1024u)

/* ---- where and with what ---------------------------------------------------------------- */

/* NULL: not set, or empty. */
static const char *variable(const char *name)
{
    const char *v = getenv(name);

    return v && *v ? v : NULL;
}

bool csn_e2b_has_key(void)
{
    return variable("E2B_API_KEY") != NULL;
}

/* Without slashes at the end. malloc'd. */
static char *trimmed(const char *url)
{
    size_t len = strlen(url);

    while (len > 0 && url[len - 1] == '/')
        len--;
    return strndup(url, len);
}

csn_status csn_e2b_configure(csn_remote *r, csn_error **err)
{
    const char *api = variable("E2B_API_URL"), *key = variable("E2B_API_KEY");
    const char *domain = variable("E2B_DOMAIN");
    csn_autofree char *made = NULL;
    csn_e2b *e = r->own = calloc(1, sizeof(*e));

    if (!e)
        return csn_fail(err, CSN_NOMEM, "open");
    if (!key)
        return csn_remote_no_credential(r->kind, err);
    if (strpbrk(key, "\r\n"))
        return csn_fail(err, CSN_AUTH, "E2B_API_KEY has a line break in it");
    if (!api && asprintf(&made, "https://api.%s", domain ? domain : DOMAIN) < 0)
        made = NULL;
    e->key = strdup(key);
    e->api_url = api || made ? trimmed(api ? api : made) : NULL;
    return e->key && e->api_url ? CSN_OK : csn_fail(err, CSN_NOMEM, "open");
}

void csn_e2b_release(csn_remote *r)
{
    csn_e2b *e = csn_e2b_of(r);

    if (!e)
        return;
    free(e->key);
    free(e->api_url);
    free(e->envd_url);
    free(e->sandbox);
    free(e->token);
    free(e->version);
    free(e);
    r->own = NULL;
}

/* Clouds that route all sandboxes through one host; others give each a name of its own. */
static bool shared_host(const char *domain)
{
    static const char *const known[] = {"e2b.app", "e2b.dev", "e2b.pro", "e2b-staging.dev",
                                        NULL};

    return csn_strv_has(known, domain);
}

static csn_status set_envd(csn_e2b *e, const char *domain, csn_error **err)
{
    const char *url = variable("E2B_SANDBOX_URL");
    const char *own = variable("E2B_DOMAIN");
    csn_autofree char *made = NULL;
    int n = 0;

    domain = domain && *domain ? domain : own ? own : DOMAIN;
    if (!url && shared_host(domain))
        n = asprintf(&made, "https://sandbox.%s", domain);
    else if (!url)
        n = asprintf(&made, "https://" ENVD_PORT "-%s.%s", e->sandbox, domain);
    free(e->envd_url);
    e->envd_url = n < 0 ? NULL : trimmed(url ? url : made);
    return e->envd_url ? CSN_OK : csn_fail(err, CSN_NOMEM, "open");
}

/* ---- requests --------------------------------------------------------------------------- */

/* The "message" of an error body, or NULL; malloc'd. */
static char *message_of(const csn_buf *body)
{
    CSN_CLEANUP(csn_jval_freep) csn_jval *root = NULL;
    const char *text = NULL;

    if (body->len == 0 || csn_json_parse(body->data, body->len, "answer", &root, NULL) < 0 ||
        csn_jget_str(root, "message", &text, NULL) < 0 || !text)
        return NULL;
    return strdup(text);
}

typedef struct api_call {
    const char *method, *path, *what;
    const csn_buf *body;
    csn_http_repeat repeat;
    bool always; /* also while the sandbox is being closed */
} api_call;

static csn_status api(csn_remote *r, const api_call *c, csn_http_res *res, csn_error **err)
{
    const csn_e2b *e = csn_e2b_of(r);
    csn_autofree char *url = NULL, *key = NULL;
    const int32_t stop[] = {c->always ? -1 : r->stop_fd};

    if (asprintf(&url, "%s%s", e->api_url, c->path) < 0 ||
        asprintf(&key, "X-API-KEY: %s", e->key) < 0)
        return csn_fail(err, CSN_NOMEM, "%s", c->what);
    const char *const headers[] = {key, "Content-Type: application/json",
                                   "Accept: application/json", NULL};
    const csn_http_req q = {.method = c->method,
                            .url = url,
                            .headers = headers,
                            .body = c->body ? c->body->data : NULL,
                            .body_len = c->body ? c->body->len : 0,
                            .repeat = c->repeat,
                            .deadline_ns = csn_deadline_in(API_MS),
                            .cancel_fds = stop,
                            .cancel_count = 1};
    return csn_http_do(r->http, &q, res, err);
}

static csn_status refused(const csn_remote *r, const csn_http_res *res, const char *what,
                          csn_error **err)
{
    csn_autofree char *said = message_of(&res->body);

    return csn_remote_refused(r, res->status, what, said, err);
}

/* Their ids become parts of URLs and headers: only what such an id can be. */
static bool id_fits(const char *id)
{
    size_t n =
        id ? strspn(id, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") : 0;

    return n > 0 && id[n] == '\0' && n <= ID_MAX;
}

static bool header_fits(const char *text)
{
    for (; text && *text; text++)
        if (*text <= ' ' || *text > '~')
            return false;
    return true;
}

/* What create and connect answer. */
static csn_status take_sandbox(csn_remote *r, const csn_http_res *res, csn_error **err)
{
    CSN_CLEANUP(csn_jval_freep) csn_jval *root = NULL;
    csn_e2b *e = csn_e2b_of(r);
    const char *id = NULL, *version = NULL, *token = NULL, *domain = NULL;

    csn_status st = csn_json_parse(res->body.len ? res->body.data : "", res->body.len,
                                   "answer of the E2B API", &root, err);
    if (st == CSN_OK)
        st = csn_jget_str(root, "sandboxID", &id, err);
    if (st == CSN_OK)
        st = csn_jget_str(root, "envdVersion", &version, err);
    if (st == CSN_OK)
        st = csn_jget_str(root, "envdAccessToken", &token, err);
    if (st == CSN_OK)
        st = csn_jget_str(root, "domain", &domain, err);
    if (st == CSN_OK && (!id_fits(id) || !header_fits(token) || !header_fits(domain)))
        st = csn_fail(err, CSN_IO, "the answer of the E2B API names no sandbox");
    if (st < 0)
        return st == CSN_INVALID ? csn_wrap(CSN_IO, err, "E2B API") : st;
    free(e->sandbox);
    free(e->token);
    free(e->version);
    e->sandbox = id ? strdup(id) : NULL;
    e->token = token ? strdup(token) : NULL;
    e->version = strdup(version ? version : "");
    if (!e->sandbox || !e->version || (token && !e->token))
        return csn_fail(err, CSN_NOMEM, "open");
    return set_envd(e, domain, err);
}

/* ---- making ----------------------------------------------------------------------------- */

static uint64_t seconds(uint64_t ms)
{
    return ms / 1000 + (ms % 1000 != 0);
}

static int put_create(const csn_remote *r, csn_buf *b)
{
    const csn_config *c = r->config;
    csn_json j;

    csn_json_begin(&j, b);
    csn_json_object(&j);
    csn_json_kstr(&j, "templateID", c->image ? c->image : "base");
    csn_json_kuint(&j, "timeout", seconds(csn_remote_lifetime_ms(c)));
    csn_json_key(&j, "metadata");
    csn_json_object(&j);
    csn_json_kstr(&j, "caisson", r->id);
    if (c->name)
        csn_json_kstr(&j, "name", c->name);
    csn_json_object_end(&j);
    csn_e2b_put_network(&j, c);
    csn_json_object_end(&j);
    return csn_json_end(&j);
}

static csn_status on_sandbox(csn_remote *r, api_call c, const char *id, const char *tail,
                             csn_http_res *res, csn_error **err)
{
    csn_autofree char *path = NULL;

    if (asprintf(&path, "%s/%s%s", c.path, id, tail) < 0)
        return csn_fail(err, CSN_NOMEM, "%s", c.what);
    c.path = path;
    return api(r, &c, res, err);
}

/* Nobody said whether it was made: if it was, it is found by its metadata and ended. Only a
 * courtesy: its lifetime ends it too. */
static void end_unknown(csn_remote *r)
{
    CSN_CLEANUP(csn_jval_freep) csn_jval *root = NULL;
    csn_autofree char *path = NULL;
    csn_autores res = {0};
    api_call c = {.method = "GET", .what = "list", .repeat = CSN_HTTP_SAFE, .always = true};

    if (asprintf(&path, "/v2/sandboxes?metadata=caisson%%3D%s", r->id) < 0) {
        path = NULL;
        return;
    }
    c.path = path;
    if (api(r, &c, &res, NULL) < 0 || res.status != 200 ||
        csn_json_parse(res.body.data, res.body.len, c.what, &root, NULL) < 0)
        return;
    for (size_t i = 0; i < csn_jval_count(root); i++) {
        const char *id = csn_jval_string(csn_jval_get(csn_jval_at(root, i), "sandboxID"));
        csn_autores gone = {0};
        const api_call del = {.method = "DELETE", .path = "/sandboxes", .always = true};
        if (id_fits(id))
            (void)on_sandbox(r, del, id, "", &gone, NULL);
    }
}

csn_status csn_e2b_make(csn_remote *r, csn_error **err)
{
    csn_autores res = {0};
    csn_autobuf body;
    const api_call c = {.method = "POST",
                        .path = "/v2/sandboxes",
                        .what = "create a sandbox",
                        .body = &body,
                        .repeat = CSN_HTTP_ONCE};

    csn_buf_init(&body, BODY_MAX);
    int e = put_create(r, &body);
    if (e != 0)
        return csn_fail_errno(err, e, "%s", c.what);
    csn_status st = api(r, &c, &res, err);
    if (st == CSN_OK && res.status / 100 != 2)
        st = refused(r, &res, c.what, err);
    else if (st == CSN_OK)
        st = take_sandbox(r, &res, err);
    if (st < 0 && res.sent && res.status / 100 != 4)
        end_unknown(r);
    if (st == CSN_OK)
        csn_remote_expires_in(r, csn_remote_lifetime_ms(r->config));
    return st;
}

/* ---- one that is there ------------------------------------------------------------------ */

static csn_status put_seconds(csn_buf *b, uint64_t ms, csn_error **err)
{
    csn_json j;

    csn_buf_init(b, 256);
    csn_json_begin(&j, b);
    csn_json_object(&j);
    csn_json_kuint(&j, "timeout", seconds(ms));
    csn_json_object_end(&j);
    return csn_json_end(&j) == 0 ? CSN_OK : csn_fail(err, CSN_NOMEM, "lifetime");
}

/* Connecting also wakes one that was paused, and starts its lifetime anew. */
static csn_status wake(csn_remote *r, const char *id, csn_http_res *res, csn_error **err)
{
    csn_autobuf body;
    const api_call c = {.method = "POST",
                        .path = "/v2/sandboxes",
                        .what = "connect to the sandbox",
                        .body = &body,
                        .repeat = CSN_HTTP_SAFE};

    csn_status st = put_seconds(&body, csn_remote_lifetime_ms(r->config), err);
    if (st == CSN_OK)
        st = on_sandbox(r, c, id, "/connect", res, err);
    if (st < 0)
        return st;
    if (res->status == 404)
        return csn_fail(err, CSN_GONE, "sandbox %s has ended", r->id);
    if (res->status / 100 != 2)
        return refused(r, res, c.what, err);
    csn_remote_expires_in(r, csn_remote_lifetime_ms(r->config));
    return CSN_OK;
}

/* A date as the API writes it, in UTC, in milliseconds; 0: it is none. */
static int64_t date_ms(const char *text)
{
    struct tm t = {0};
    const char *rest = text ? strptime(text, "%Y-%m-%dT%H:%M:%S", &t) : NULL;

    if (!rest || strcmp(rest + strspn(rest, ".0123456789"), "Z") != 0)
        return 0;
    time_t s = timegm(&t);
    return s > 0 ? (int64_t)s * 1000 : 0;
}

/* What its details say of its end; *ret: it is paused. */
static void take_details(csn_remote *r, const csn_http_res *res, bool *ret)
{
    CSN_CLEANUP(csn_jval_freep) csn_jval *root = NULL;

    if (res->body.len == 0 ||
        csn_json_parse(res->body.data, res->body.len, "details", &root, NULL) < 0)
        return;
    const char *state = csn_jval_string(csn_jval_get(root, "state"));
    *ret = state && strcmp(state, "paused") == 0;
    pthread_mutex_lock(&r->lock);
    r->expires_ms = date_ms(csn_jval_string(csn_jval_get(root, "endAt")));
    pthread_mutex_unlock(&r->lock);
}

/* One that runs is only asked about: connecting would let it live longer. */
csn_status csn_e2b_find(csn_remote *r, const char *note, csn_error **err)
{
    csn_autores res = {0};
    csn_autores woken = {0};
    bool paused = false;
    const api_call c = {.method = "GET",
                        .path = "/sandboxes",
                        .what = "find the sandbox",
                        .repeat = CSN_HTTP_SAFE};

    if (!id_fits(note))
        return csn_fail(err, CSN_GONE, "what is on record is not the id of a sandbox");
    csn_status st = on_sandbox(r, c, note, "", &res, err);
    if (st < 0)
        return st;
    if (res.status == 404)
        return csn_fail(err, CSN_GONE, "sandbox %s has ended", r->id);
    if (res.status / 100 != 2)
        return refused(r, &res, c.what, err);
    take_details(r, &res, &paused);
    if (!paused)
        return take_sandbox(r, &res, err);
    st = wake(r, note, &woken, err);
    return st == CSN_OK ? take_sandbox(r, &woken, err) : st;
}

csn_status csn_e2b_pause(void *state, csn_error **err)
{
    csn_remote *r = state;
    csn_autores res = {0};
    csn_autobuf body;
    const api_call c = {.method = "POST",
                        .path = "/sandboxes",
                        .what = "pause the sandbox",
                        .body = &body,
                        .repeat = CSN_HTTP_SAFE};

    csn_buf_init(&body, 16);
    csn_status st =
        csn_buf_puts(&body, "{}") == 0 ? CSN_OK : csn_fail(err, CSN_NOMEM, "%s", c.what);
    if (st == CSN_OK)
        st = on_sandbox(r, c, csn_e2b_of(r)->sandbox, "/pause", &res, err);
    if (st < 0)
        return st;
    if (res.status == 404)
        return csn_fail(err, CSN_GONE, "sandbox %s has ended", r->id);
    if (res.status / 100 != 2 && res.status != 409) /* 409: it is paused */
        return refused(r, &res, c.what, err);
    csn_e2b_of(r)->paused = true;
    pthread_mutex_lock(&r->lock);
    r->expires_ms = 0; /* it does not, as long as it is paused */
    pthread_mutex_unlock(&r->lock);
    return CSN_OK;
}

/* Where it is and its token stay as they were: other threads are using them. */
csn_status csn_e2b_resume(void *state, csn_error **err)
{
    csn_remote *r = state;
    csn_autores res = {0};
    csn_status st = wake(r, csn_e2b_of(r)->sandbox, &res, err);

    if (st == CSN_OK)
        csn_e2b_of(r)->paused = false;
    return st;
}

int csn_e2b_note(const csn_remote *r, csn_buf *out)
{
    return csn_buf_puts(out, csn_e2b_of(r)->sandbox);
}

csn_status csn_e2b_end(csn_remote *r, csn_error **err)
{
    csn_autores res = {0};
    const api_call c = {.method = "DELETE",
                        .path = "/sandboxes",
                        .what = "kill the sandbox",
                        .repeat = CSN_HTTP_SAFE,
                        .always = true};

    if (!csn_e2b_of(r)->sandbox)
        return CSN_OK;
    csn_status st = on_sandbox(r, c, csn_e2b_of(r)->sandbox, "", &res, err);
    if (st == CSN_OK && res.status / 100 != 2 && res.status != 404)
        st = refused(r, &res, c.what, err);
    return st;
}

csn_status csn_e2b_extend(csn_remote *r, uint64_t ms, csn_error **err)
{
    csn_autores res = {0};
    csn_autobuf body;
    const api_call c = {.method = "POST",
                        .path = "/sandboxes",
                        .what = "set the lifetime",
                        .body = &body,
                        .repeat = CSN_HTTP_SAFE};

    csn_status st = put_seconds(&body, ms, err);
    if (st == CSN_OK)
        st = on_sandbox(r, c, csn_e2b_of(r)->sandbox, "/timeout", &res, err);
    if (st < 0)
        return st;
    if (res.status == 404)
        return csn_fail(err, CSN_GONE, "sandbox %s has ended", r->id);
    if (res.status / 100 != 2)
        return refused(r, &res, c.what, err);
    csn_remote_expires_in(r, ms);
    return CSN_OK;
}
