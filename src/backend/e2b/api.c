/* api.c: creates, finds, extends, pauses and kills sandboxes through the E2B control plane.
 *
 * REST with JSON and an API key. The key is sent only to the API's host; envd receives the
 * access token that create returns. A create request is sent at most once; every other request
 * is idempotent. If the outcome of create is unknown, the sandbox is found by its metadata and
 * killed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "backend/e2b/e2b.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/strv.h"

#define API_MS   60000u
#define DOMAIN   "e2b.app"
#define BODY_MAX (256u * 1024u)

/* ---- configuration ---------------------------------------------------------------------- */

bool csn_e2b_has_key(void)
{
    return csn_remote_getenv("E2B_API_KEY") != NULL;
}

csn_status csn_e2b_configure(csn_remote *r, csn_error **err)
{
    const char *api = csn_remote_getenv("E2B_API_URL");
    const char *key = csn_remote_getenv("E2B_API_KEY");
    const char *domain = csn_remote_getenv("E2B_DOMAIN");
    csn_autofree char *url = NULL;
    csn_e2b *e = r->data = calloc(1, sizeof(*e));

    if (!e)
        return csn_fail(err, CSN_NOMEM, "open");
    if (!key)
        return csn_remote_missing_credential(r->provider, err);
    if (strpbrk(key, "\r\n"))
        return csn_fail(err, CSN_AUTH, "E2B_API_KEY has a line break in it");
    if (!api && asprintf(&url, "https://api.%s", domain ? domain : DOMAIN) < 0)
        url = NULL;
    e->key = strdup(key);
    e->api_url = api || url ? csn_remote_trim_url(api ? api : url) : NULL;
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
    free(e);
    r->data = NULL;
}

/* E2B's own clouds route all sandboxes through one host; other servers give each sandbox a host
 * name. */
static csn_status set_envd_url(csn_e2b *e, const char *domain, csn_error **err)
{
    static const char *const shared[] = {"e2b.app", "e2b.dev", "e2b.pro", "e2b-staging.dev",
                                         NULL};
    const char *url = csn_remote_getenv("E2B_SANDBOX_URL");
    const char *configured = csn_remote_getenv("E2B_DOMAIN");
    csn_autofree char *built = NULL;
    int n = 0;

    domain = domain && *domain ? domain : configured ? configured : DOMAIN;
    if (!url && csn_strv_has(shared, domain))
        n = asprintf(&built, "https://sandbox.%s", domain);
    else if (!url)
        n = asprintf(&built, "https://" CSN_E2B_ENVD_PORT "-%s.%s", e->sandbox, domain);
    free(e->envd_url);
    e->envd_url = n < 0 ? NULL : csn_remote_trim_url(url ? url : built);
    return e->envd_url ? CSN_OK : csn_fail(err, CSN_NOMEM, "open");
}

/* ---- requests --------------------------------------------------------------------------- */

typedef struct api_call {
    const char *what; /* for error messages */
    const char *method;
    const char *path;
    const char *id, *action; /* appended to the path: "/ID" and the action; or NULL */
    const csn_buf *body;
    csn_http_retry retry;
    bool ignore_stop; /* send it even while the sandbox is being closed */
} api_call;

static csn_status send_call(csn_remote *r, const api_call *c, csn_http_res *res,
                            csn_error **err)
{
    const csn_e2b *e = csn_e2b_of(r);
    csn_autofree char *url = NULL, *key = NULL;
    const int32_t stop[] = {c->ignore_stop ? -1 : r->stop_fd};

    if (asprintf(&url, "%s%s%s%s%s", e->api_url, c->path, c->id ? "/" : "", c->id ? c->id : "",
                 c->action ? c->action : "") < 0 ||
        asprintf(&key, "X-API-KEY: %s", e->key) < 0)
        return csn_fail(err, CSN_NOMEM, "%s", c->what);
    const char *const headers[] = {key, "Content-Type: application/json",
                                   "Accept: application/json", NULL};
    const csn_http_req q = {.method = c->method,
                            .url = url,
                            .headers = headers,
                            .body = c->body ? c->body->data : NULL,
                            .body_len = c->body ? c->body->len : 0,
                            .retry = c->retry,
                            .deadline_ns = csn_deadline_in(API_MS),
                            .cancel_fds = stop,
                            .cancel_count = 1};
    return csn_http_do(r->http, &q, res, err);
}

/* CSN_OK for a 2xx, CSN_GONE for a 404. */
static csn_status call(csn_remote *r, const api_call *c, csn_http_res *res, csn_error **err)
{
    csn_status st = send_call(r, c, res, err);

    if (st == CSN_OK && res->status == 404 && c->id)
        return csn_remote_gone(r, err);
    if (st == CSN_OK && res->status / 100 != 2)
        return csn_remote_response_error(r, res, c->what, err);
    return st;
}

/* {"timeout":SECONDS}, rounded up. */
static csn_status timeout_body(csn_buf *b, uint64_t ms, csn_error **err)
{
    csn_buf_init(b, 256);
    return csn_buf_printf(b, "{\"timeout\":%llu}",
                          (unsigned long long)csn_remote_seconds(ms)) == 0
               ? CSN_OK
               : csn_fail(err, CSN_NOMEM, "lifetime");
}

/* Reads the response of create, get and connect. Checks that id, token and domain are safe in
 * URLs and headers. */
static csn_status read_sandbox(csn_remote *r, const csn_http_res *res, csn_error **err)
{
    CSN_CLEANUP(csn_jval_freep) csn_jval *root = NULL;
    csn_e2b *e = csn_e2b_of(r);
    const char *id = NULL, *token = NULL, *domain = NULL;
    const struct {
        const char *key, **value;
    } fields[] = {{"sandboxID", &id}, {"envdAccessToken", &token}, {"domain", &domain}};
    csn_status st = csn_remote_parse(res, "response of the E2B API", &root, err);

    for (size_t i = 0; st == CSN_OK && i < sizeof(fields) / sizeof(fields[0]); i++)
        st = csn_jget_str(root, fields[i].key, fields[i].value, err);
    if (st == CSN_OK && (!csn_remote_id_valid(id) || !csn_remote_header_valid(token) ||
                         !csn_remote_header_valid(domain)))
        st = csn_fail(err, CSN_IO, "the response of the E2B API names no sandbox");
    if (st == CSN_INVALID)
        st = csn_wrap(CSN_IO, err, "E2B API");
    if (st == CSN_OK)
        st = csn_remote_set_string(&e->sandbox, id, err);
    if (st == CSN_OK)
        st = csn_remote_set_string(&e->token, token, err);
    return st == CSN_OK ? set_envd_url(e, domain, err) : st;
}

/* ---- creating --------------------------------------------------------------------------- */

static int create_body(const csn_remote *r, csn_buf *b)
{
    const csn_config *c = r->config;
    csn_json j;

    csn_json_begin(&j, b);
    csn_json_object(&j);
    csn_json_kstr(&j, "templateID", c->image ? c->image : "base");
    csn_json_kuint(&j, "timeout", csn_remote_seconds(csn_remote_lifetime_ms(c)));
    csn_json_key(&j, "metadata");
    csn_json_object(&j);
    csn_json_kstr(&j, "caisson", r->id);
    if (c->name)
        csn_json_kstr(&j, "name", c->name);
    csn_json_object_end(&j);
    csn_e2b_json_network(&j, c);
    csn_json_object_end(&j);
    return csn_json_end(&j);
}

/* Called after a create request with unknown outcome. Best effort: the sandbox also ends with
 * its lifetime. */
static void kill_by_metadata(csn_remote *r)
{
    CSN_CLEANUP(csn_jval_freep) csn_jval *root = NULL;
    csn_autofree char *path = NULL;
    csn_autores res = {0};
    api_call list = {
        .what = "list", .method = "GET", .retry = CSN_HTTP_IDEMPOTENT, .ignore_stop = true};

    if (asprintf(&path, "/v2/sandboxes?metadata=caisson%%3D%s", r->id) < 0) {
        path = NULL;
        return;
    }
    list.path = path;
    if (call(r, &list, &res, NULL) < 0 || csn_remote_parse(&res, list.what, &root, NULL) < 0)
        return;
    for (size_t i = 0; i < csn_jval_count(root); i++) {
        const char *id = csn_jval_string(csn_jval_get(csn_jval_at(root, i), "sandboxID"));
        csn_autores killed = {0};
        const api_call kill = {.what = "kill the sandbox",
                               .method = "DELETE",
                               .path = "/sandboxes",
                               .id = id,
                               .ignore_stop = true};
        if (csn_remote_id_valid(id))
            (void)call(r, &kill, &killed, NULL);
    }
}

csn_status csn_e2b_create(csn_remote *r, csn_error **err)
{
    csn_autores res = {0};
    csn_autobuf body;
    const api_call c = {.what = "create a sandbox",
                        .method = "POST",
                        .path = "/v2/sandboxes",
                        .body = &body,
                        .retry = CSN_HTTP_ONCE};

    csn_buf_init(&body, BODY_MAX);
    int e = create_body(r, &body);
    if (e != 0)
        return csn_fail_errno(err, e, "%s", c.what);
    csn_status st = call(r, &c, &res, err);
    if (st == CSN_OK)
        st = read_sandbox(r, &res, err);
    if (st < 0 && res.sent && res.status / 100 != 4)
        kill_by_metadata(r);
    if (st == CSN_OK)
        csn_remote_expires_in(r, csn_remote_lifetime_ms(r->config));
    return st;
}

/* ---- existing sandboxes ----------------------------------------------------------------- */

/* The API's connect resumes a paused sandbox and restarts its lifetime. */
static csn_status api_connect(csn_remote *r, const char *id, csn_http_res *res, csn_error **err)
{
    csn_autobuf body;
    const api_call c = {.what = "connect to the sandbox",
                        .method = "POST",
                        .path = "/v2/sandboxes",
                        .id = id,
                        .action = "/connect",
                        .body = &body,
                        .retry = CSN_HTTP_IDEMPOTENT};
    uint64_t ms = csn_remote_lifetime_ms(r->config);

    csn_status st = timeout_body(&body, ms, err);
    if (st == CSN_OK)
        st = call(r, &c, res, err);
    if (st == CSN_OK)
        csn_remote_expires_in(r, ms);
    return st;
}

/* An RFC 3339 time in UTC as milliseconds; 0: invalid. */
static int64_t parse_time_ms(const char *text)
{
    struct tm t = {0};
    const char *rest = text ? strptime(text, "%Y-%m-%dT%H:%M:%S", &t) : NULL;

    if (!rest || strcmp(rest + strspn(rest, ".0123456789"), "Z") != 0)
        return 0;
    time_t s = timegm(&t);
    return s > 0 ? (int64_t)s * 1000 : 0;
}

static void set_expiry(csn_remote *r, int64_t expires_ms)
{
    pthread_mutex_lock(&r->lock);
    r->expires_ms = expires_ms;
    pthread_mutex_unlock(&r->lock);
}

/* Reads the end of the sandbox's lifetime. True: the sandbox is paused. */
static bool read_state(csn_remote *r, const csn_http_res *res)
{
    CSN_CLEANUP(csn_jval_freep) csn_jval *root = NULL;

    if (csn_remote_parse(res, "sandbox", &root, NULL) < 0)
        return false;
    const char *state = csn_jval_string(csn_jval_get(root, "state"));
    set_expiry(r, parse_time_ms(csn_jval_string(csn_jval_get(root, "endAt"))));
    return state && strcmp(state, "paused") == 0;
}

/* Queries a running sandbox instead of using the API's connect, which would restart its
 * lifetime. */
csn_status csn_e2b_connect(csn_remote *r, const char *record, csn_error **err)
{
    csn_autores res = {0};
    csn_autores resumed = {0};
    const api_call c = {.what = "find the sandbox",
                        .method = "GET",
                        .path = "/sandboxes",
                        .id = record,
                        .retry = CSN_HTTP_IDEMPOTENT};

    if (!csn_remote_id_valid(record))
        return csn_fail(err, CSN_GONE, "the record of sandbox %s is damaged", r->id);
    csn_status st = csn_remote_set_string(&csn_e2b_of(r)->sandbox, record, err);
    if (st == CSN_OK)
        st = send_call(r, &c, &res, err);
    if (st < 0)
        return st;
    if (res.status == 404)
        return csn_remote_unknown(r, err);
    if (res.status / 100 != 2)
        return csn_remote_response_error(r, &res, c.what, err);
    if (!read_state(r, &res))
        return read_sandbox(r, &res, err);
    st = api_connect(r, record, &resumed, err);
    return st == CSN_OK ? read_sandbox(r, &resumed, err) : st;
}

csn_status csn_e2b_pause(void *state, csn_error **err)
{
    csn_remote *r = state;
    csn_autores res = {0};
    const csn_buf body = {.data = "{}", .len = 2};
    const api_call c = {.what = "pause the sandbox",
                        .method = "POST",
                        .path = "/sandboxes",
                        .id = csn_e2b_of(r)->sandbox,
                        .action = "/pause",
                        .body = &body,
                        .retry = CSN_HTTP_IDEMPOTENT};
    csn_status st = send_call(r, &c, &res, err);

    if (st < 0)
        return st;
    if (res.status == 404)
        return csn_remote_gone(r, err);
    if (res.status / 100 != 2 && res.status != 409) /* 409: paused already */
        return csn_remote_response_error(r, &res, c.what, err);
    csn_e2b_of(r)->paused = true;
    set_expiry(r, 0); /* a paused sandbox does not expire */
    return CSN_OK;
}

/* Leaves URL and token unchanged: they stay valid, and other threads use them. */
csn_status csn_e2b_resume(void *state, csn_error **err)
{
    csn_remote *r = state;
    csn_autores res = {0};
    csn_status st = api_connect(r, csn_e2b_of(r)->sandbox, &res, err);

    if (st == CSN_OK)
        csn_e2b_of(r)->paused = false;
    return st;
}

int csn_e2b_write_record(const csn_remote *r, csn_buf *out)
{
    return csn_buf_puts(out, csn_e2b_of(r)->sandbox);
}

csn_status csn_e2b_destroy(csn_remote *r, csn_error **err)
{
    csn_autores res = {0};
    const api_call c = {.what = "kill the sandbox",
                        .method = "DELETE",
                        .path = "/sandboxes",
                        .id = csn_e2b_of(r)->sandbox,
                        .retry = CSN_HTTP_IDEMPOTENT,
                        .ignore_stop = true};

    if (!c.id)
        return CSN_OK;
    csn_status st = send_call(r, &c, &res, err);
    if (st == CSN_OK && res.status / 100 != 2 && res.status != 404)
        st = csn_remote_response_error(r, &res, c.what, err);
    return st;
}

csn_status csn_e2b_extend(csn_remote *r, uint64_t ms, csn_error **err)
{
    csn_autores res = {0};
    csn_autobuf body;
    const api_call c = {.what = "set the lifetime",
                        .method = "POST",
                        .path = "/sandboxes",
                        .id = csn_e2b_of(r)->sandbox,
                        .action = "/timeout",
                        .body = &body,
                        .retry = CSN_HTTP_IDEMPOTENT};
    csn_status st = timeout_body(&body, ms, err);

    if (st == CSN_OK)
        st = call(r, &c, &res, err);
    if (st == CSN_OK)
        csn_remote_expires_in(r, ms);
    return st;
}
