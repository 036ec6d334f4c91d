/* request.c: reads the credential and sends requests to the Vercel API.
 *
 * The token is sent only to the host of the base URL. Invariant: a request to a session that
 * has ended had no effect and is sent once more in a new session; apart from that, only
 * idempotent requests are repeated. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/vercel/vercel.h"
#include "base/base64.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"

#define BASE_URL     "https://vercel.com/api"
#define REQUEST_MS   60000u
#define RESPONSE_MAX (4u * 1024u * 1024u)
#define TOKEN_MAX    16384u
#define HEADERS_MAX  8u

/* ---- configuration ---------------------------------------------------------------------- */

typedef struct credential {
    char *token, *team, *project;
    bool from_triple;
} credential;

static void credential_release(credential *c)
{
    free(c->token);
    free(c->team);
    free(c->project);
}

/* base64url without padding, as in a JWT. malloc'd, or NULL. */
static char *decode_base64url(const char *text, size_t len)
{
    csn_autofree char *plain = calloc(1, len + 4);
    char *out = calloc(1, len + 4);

    if (!plain || !out) {
        free(out);
        return NULL;
    }
    for (size_t i = 0; i < len; i++)
        plain[i] = text[i] == '-' ? '+' : text[i] == '_' ? '/' : text[i];
    for (; len % 4 != 0; len++)
        plain[len] = '=';
    long n = csn_base64_decode(plain, len, out);
    if (n < 0) {
        free(out);
        return NULL;
    }
    out[n] = '\0';
    return out;
}

/* Reads team and project from the claims of an OIDC token. The server verifies the
 * signature. */
static bool read_claims(const char *token, credential *c)
{
    CSN_CLEANUP(csn_jval_freep) csn_jval *root = NULL;
    const char *first = strchr(token, '.'), *second = first ? strchr(first + 1, '.') : NULL;

    if (!second || strchr(second + 1, '.') || strlen(token) > TOKEN_MAX)
        return false;
    csn_autofree char *payload = decode_base64url(first + 1, (size_t)(second - first - 1));
    if (!payload || csn_json_parse(payload, strlen(payload), "token", &root, NULL) < 0)
        return false;
    const char *team = csn_jval_string(csn_jval_get(root, "owner_id"));
    const char *project = csn_jval_string(csn_jval_get(root, "project_id"));
    if (!team || !project)
        return false;
    free(c->team);
    free(c->project);
    c->team = strdup(team);
    c->project = strdup(project);
    return true;
}

/* Reads the token, team and project variables or, without them, VERCEL_OIDC_TOKEN. */
static csn_status read_credential(credential *c, csn_error **err)
{
    const char *const names[] = {"VERCEL_TOKEN", "VERCEL_TEAM_ID", "VERCEL_PROJECT_ID"};
    const char *values[3], *oidc = csn_remote_getenv("VERCEL_OIDC_TOKEN"), *missing = NULL;

    for (size_t i = 0; i < 3; i++) {
        values[i] = csn_remote_getenv(names[i]);
        if (!values[i])
            missing = names[i];
    }
    if (missing && !oidc && values[0]) {
        csn_status st = csn_fail(err, CSN_AUTH,
                                 "backend 'vercel' needs a credential: VERCEL_TOKEN is set but "
                                 "%s is not",
                                 missing);
        return csn_error_advise(st, err, "set %s, or VERCEL_OIDC_TOKEN", missing);
    }
    if (missing && !oidc)
        return csn_remote_missing_credential(&csn_vercel_provider, err);
    const char *token = missing ? oidc : values[0];
    if (!csn_remote_header_valid(token))
        return csn_fail(err, CSN_AUTH, "%s has characters that a token cannot have",
                        missing ? "VERCEL_OIDC_TOKEN" : "VERCEL_TOKEN");
    c->from_triple = !missing;
    c->token = strdup(token);
    c->team = missing ? NULL : strdup(values[1]);
    c->project = missing ? NULL : strdup(values[2]);
    if (missing && !read_claims(token, c)) {
        csn_status st =
            csn_fail(err, CSN_AUTH, "VERCEL_OIDC_TOKEN names no owner_id and project_id");
        return csn_error_advise(st, err, "get a new one with `vercel env pull`");
    }
    return c->token && c->team && c->project ? CSN_OK : csn_fail(err, CSN_NOMEM, "open");
}

csn_status csn_vercel_check_credential(csn_error **err)
{
    credential c = {.token = NULL};
    csn_status st = read_credential(&c, err);

    credential_release(&c);
    return st;
}

csn_status csn_vercel_configure(csn_remote *r, csn_error **err)
{
    const char *url = csn_remote_getenv("CAISSON_VERCEL_URL");
    credential c = {.token = NULL};
    csn_vercel *v = r->data = calloc(1, sizeof(*v));

    if (!v)
        return csn_fail(err, CSN_NOMEM, "open");
    pthread_mutex_init(&v->lock, NULL);
    v->url = csn_remote_trim_url(url ? url : BASE_URL);
    csn_status st = read_credential(&c, err);
    v->token = c.token;
    v->team = c.team;
    v->project = c.project;
    v->from_triple = c.from_triple;
    return st == CSN_OK && !v->url ? csn_fail(err, CSN_NOMEM, "open") : st;
}

void csn_vercel_release(csn_remote *r)
{
    csn_vercel *v = csn_vercel_of(r);

    if (!v)
        return;
    pthread_mutex_destroy(&v->lock);
    free(v->token);
    free(v->team);
    free(v->project);
    free(v->url);
    free(v->name);
    free(v->session);
    free(v);
    r->data = NULL;
}

/* ---- requests --------------------------------------------------------------------------- */

typedef struct api_error {
    char code[64];
    char *message; /* malloc'd, or NULL */
} api_error;

/* {"error":{"code","message"}} */
static void read_error(const csn_http_res *res, api_error *ret)
{
    CSN_CLEANUP(csn_jval_freep) csn_jval *root = NULL;

    *ret = (api_error){.message = NULL};
    if (csn_remote_parse(res, "error", &root, NULL) < 0)
        return;
    const csn_jval *error = csn_jval_get(root, "error");
    const char *code = csn_jval_string(csn_jval_get(error, "code"));
    const char *message = csn_jval_string(csn_jval_get(error, "message"));
    snprintf(ret->code, sizeof(ret->code), "%s", code ? code : "");
    ret->message = message ? strdup(message) : NULL;
}

static bool session_ended(int status, const api_error *e)
{
    return status == 410 || (status == 422 && (strcmp(e->code, "sandbox_stopping") == 0 ||
                                               strcmp(e->code, "sandbox_snapshotting") == 0));
}

static csn_status request_error(const csn_remote *r, int status, const api_error *e,
                                const char *what, csn_error **err)
{
    if (strcmp(e->code, "snapshot_not_found") == 0)
        return csn_remote_http_error(r, 404, what, e->message, err);
    if (session_ended(status, e))
        return csn_remote_gone(r, err);
    csn_status st =
        csn_remote_http_error(r, status == 403 ? 401 : status, what, e->message, err);
    if (st == CSN_AUTH)
        csn_error_advise(st, err, "check %s",
                         csn_vercel_provider.credentials[csn_vercel_of(r)->from_triple]);
    return st;
}

static int build_url(const csn_remote *r, const csn_vercel_call *c, const char *session,
                     csn_buf *url)
{
    const csn_vercel *v = csn_vercel_of(r);
    int e = csn_buf_puts(url, v->url);

    if (e == 0 && session)
        e = csn_buf_printf(url, "/v2/sandboxes/sessions/%s", session);
    e = e ? e : csn_buf_printf(url, "%s?teamId=", c->path);
    e = e ? e : csn_url_escape(url, v->team);
    return e || !c->query ? e : csn_buf_puts(url, c->query);
}

static csn_status send_once(csn_remote *r, const csn_vercel_call *c, const char *session,
                            csn_http_res *ret, csn_error **err)
{
    const char *headers[HEADERS_MAX] = {NULL};
    csn_autofree char *token = NULL;
    csn_http_req q = c->http;
    csn_autobuf url;
    size_t n = 0;

    csn_buf_init(&url, 65536);
    if (build_url(r, c, session, &url) != 0 ||
        asprintf(&token, "Authorization: Bearer %s", csn_vercel_of(r)->token) < 0)
        return csn_fail(err, CSN_NOMEM, "%s", c->what);
    headers[n++] = token;
    if (!c->headers)
        headers[n++] = "Content-Type: application/json";
    for (size_t i = 0; c->headers && c->headers[i] && n < HEADERS_MAX - 1; i++)
        headers[n++] = c->headers[i];
    if (c->rewind)
        c->rewind(q.upload_ctx);
    q.url = url.data;
    q.headers = headers;
    csn_http_res_release(ret);
    *ret = (csn_http_res){0};
    return csn_http_do(r->http, &q, ret, err);
}

csn_status csn_vercel_request(csn_remote *r, const csn_vercel_call *c, csn_http_res *ret,
                              csn_error **err)
{
    for (bool again = false;; again = true) {
        csn_autofree char *session = NULL;
        api_error e = {.message = NULL};

        if (c->in_session) {
            pthread_mutex_lock(&csn_vercel_of(r)->lock);
            session = strdup(csn_vercel_of(r)->session);
            pthread_mutex_unlock(&csn_vercel_of(r)->lock);
            if (!session)
                return csn_fail(err, CSN_NOMEM, "%s", c->what);
        }
        csn_status st = send_once(r, c, session, ret, err);
        if (st < 0 || ret->status / 100 == 2)
            return st;
        read_error(ret, &e);
        bool resume = session && !again && csn_remote_shared(r);
        if (!resume || !session_ended(ret->status, &e))
            st = request_error(r, ret->status, &e, c->what, err);
        else
            st = csn_vercel_resume(r, session, &c->http, err);
        ret->sent = ret->sent && ret->status >= 500; /* below 500: the server rejected it */
        free(e.message);
        if (st < 0)
            return st;
    }
}

csn_status csn_vercel_request_json(csn_remote *r, csn_vercel_call c, const csn_buf *body,
                                   csn_jval **ret, csn_http_res *res, csn_error **err)
{
    const int32_t stop[] = {r->stop_fd};

    c.http.body = body ? body->data : NULL;
    c.http.body_len = body ? body->len : 0;
    c.http.deadline_ns = c.http.deadline_ns ? c.http.deadline_ns : csn_deadline_in(REQUEST_MS);
    c.http.body_max = RESPONSE_MAX;
    if (!c.http.cancel_fds) {
        c.http.cancel_fds = stop;
        c.http.cancel_count = 1;
    }
    csn_status st = csn_vercel_request(r, &c, res, err);
    if (st < 0 || !ret)
        return st;
    return csn_remote_parse(res, c.what, ret, err);
}
