/* request.c: where the server is, who we are to it, and one request.
 *
 * The token goes to the host of the base URL and nowhere else. A request to a session that has
 * ended was not acted on: it is made again, once, in the session that takes its place. Nothing
 * else of what may change something is ever made twice. What the server says is bounded, parsed
 * and shown escaped. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/vercel/vercel.h"
#include "base/base64.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"

#define BASE_URL    "https://vercel.com/api"
#define ASK_MS      60000u
#define ANSWER_MAX  (4u * 1024u * 1024u)
#define TOKEN_MAX   16384u
#define HEADERS_MAX 8u

/* ---- the credential --------------------------------------------------------------------- */

/* NULL: not set, or empty. */
static const char *variable(const char *name)
{
    const char *v = getenv(name);

    return v && *v ? v : NULL;
}

typedef struct credential {
    char *token, *team, *project;
    bool triple;
} credential;

static void credential_release(credential *c)
{
    free(c->token);
    free(c->team);
    free(c->project);
}

/* Base64 as tokens have it, in the alphabet of base.h. malloc'd, or NULL. */
static char *decode_url64(const char *text, size_t len)
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

/* Team and project are claims of an OIDC token. It is not for us to check its signature. */
static bool read_claims(const char *token, credential *c)
{
    CSN_CLEANUP(csn_jval_freep) csn_jval *root = NULL;
    const char *first = strchr(token, '.'), *second = first ? strchr(first + 1, '.') : NULL;

    if (!second || strchr(second + 1, '.') || strlen(token) > TOKEN_MAX)
        return false;
    csn_autofree char *payload = decode_url64(first + 1, (size_t)(second - first - 1));
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

static bool fits_header(const char *text)
{
    for (; *text; text++)
        if (*text <= ' ' || *text > '~')
            return false;
    return true;
}

/* All three variables, else the one; some of the three are a mistake that is named. */
static csn_status get_credential(credential *c, csn_error **err)
{
    const char *const names[] = {"VERCEL_TOKEN", "VERCEL_TEAM_ID", "VERCEL_PROJECT_ID"};
    const char *values[3], *oidc = variable("VERCEL_OIDC_TOKEN"), *missing = NULL;

    for (size_t i = 0; i < 3; i++) {
        values[i] = variable(names[i]);
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
        return csn_remote_no_credential(&csn_vercel_kind, err);
    const char *token = missing ? oidc : values[0];
    if (!fits_header(token))
        return csn_fail(err, CSN_AUTH, "%s has characters that no token has",
                        missing ? "VERCEL_OIDC_TOKEN" : "VERCEL_TOKEN");
    c->triple = !missing;
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

csn_status csn_vercel_has_credential(csn_error **err)
{
    credential c = {.token = NULL};
    csn_status st = get_credential(&c, err);

    credential_release(&c);
    return st;
}

csn_status csn_vercel_configure(csn_remote *r, csn_error **err)
{
    const char *url = variable("CAISSON_VERCEL_URL");
    credential c = {.token = NULL};
    csn_vercel *v = r->own = calloc(1, sizeof(*v));

    if (!v)
        return csn_fail(err, CSN_NOMEM, "open");
    pthread_mutex_init(&v->lock, NULL);
    url = url ? url : BASE_URL;
    size_t len = strlen(url);
    while (len > 0 && url[len - 1] == '/')
        len--;
    v->url = strndup(url, len);
    csn_status st = get_credential(&c, err);
    v->token = c.token;
    v->team = c.team;
    v->project = c.project;
    v->triple = c.triple;
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
    r->own = NULL;
}

/* ---- one request ------------------------------------------------------------------------ */

typedef struct said {
    char code[64], *words; /* words: malloc'd, or NULL */
} said;

/* {"error":{"code","message"}} */
static void read_error(const csn_buf *body, said *ret)
{
    CSN_CLEANUP(csn_jval_freep) csn_jval *root = NULL;

    *ret = (said){.words = NULL};
    if (body->len == 0 || csn_json_parse(body->data, body->len, "answer", &root, NULL) < 0)
        return;
    const csn_jval *e = csn_jval_get(root, "error");
    const char *code = csn_jval_string(csn_jval_get(e, "code"));
    const char *words = csn_jval_string(csn_jval_get(e, "message"));
    snprintf(ret->code, sizeof(ret->code), "%s", code ? code : "");
    ret->words = words ? strdup(words) : NULL;
}

static bool session_ended(int status, const said *s)
{
    return status == 410 || (status == 422 && (strcmp(s->code, "sandbox_stopping") == 0 ||
                                               strcmp(s->code, "sandbox_snapshotting") == 0));
}

static csn_status refused(const csn_remote *r, int status, const said *s, const char *what,
                          csn_error **err)
{
    if (strcmp(s->code, "snapshot_not_found") == 0)
        return csn_remote_refused(r, 404, what, s->words, err);
    if (session_ended(status, s))
        return csn_fail(err, CSN_GONE, "sandbox %s has ended", r->id);
    csn_status st = csn_remote_refused(r, status == 403 ? 401 : status, what, s->words, err);
    if (st == CSN_AUTH)
        csn_error_advise(st, err, "look at %s",
                         csn_vercel_kind.secrets[csn_vercel_of(r)->triple]);
    return st;
}

static int put_url(const csn_remote *r, const csn_vercel_call *c, const char *session,
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

static csn_status once(csn_remote *r, const csn_vercel_call *c, const char *session,
                       csn_http_res *ret, csn_error **err)
{
    const char *headers[HEADERS_MAX] = {NULL};
    csn_autofree char *token = NULL;
    csn_http_req q = c->http;
    csn_autobuf url;
    size_t n = 0;

    csn_buf_init(&url, 65536);
    if (put_url(r, c, session, &url) != 0 ||
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

csn_status csn_vercel_do(csn_remote *r, const csn_vercel_call *c, csn_http_res *ret,
                         csn_error **err)
{
    for (bool again = false;; again = true) {
        csn_autofree char *session = NULL;
        said s = {.words = NULL};

        if (c->session) {
            pthread_mutex_lock(&csn_vercel_of(r)->lock);
            session = strdup(csn_vercel_of(r)->session);
            pthread_mutex_unlock(&csn_vercel_of(r)->lock);
            if (!session)
                return csn_fail(err, CSN_NOMEM, "%s", c->what);
        }
        csn_status st = once(r, c, session, ret, err);
        if (st < 0 || ret->status / 100 == 2)
            return st;
        read_error(&ret->body, &s);
        bool resume = session && !again && csn_vercel_lasts(r);
        if (!resume || !session_ended(ret->status, &s))
            st = refused(r, ret->status, &s, c->what, err);
        else
            st = csn_vercel_resume(r, session, &c->http, err);
        ret->sent = ret->sent && ret->status >= 500; /* a refusal is not an act */
        free(s.words);
        if (st < 0)
            return st;
    }
}

csn_status csn_vercel_ask(csn_remote *r, csn_vercel_call c, const csn_buf *body, csn_jval **ret,
                          csn_http_res *res, csn_error **err)
{
    const int32_t stop[] = {r->stop_fd};

    c.http.body = body ? body->data : NULL;
    c.http.body_len = body ? body->len : 0;
    c.http.deadline_ns = c.http.deadline_ns ? c.http.deadline_ns : csn_deadline_in(ASK_MS);
    c.http.body_max = ANSWER_MAX;
    if (!c.http.cancel_fds) {
        c.http.cancel_fds = stop;
        c.http.cancel_count = 1;
    }
    csn_status st = csn_vercel_do(r, &c, res, err);
    if (st < 0 || !ret)
        return st;
    st = csn_json_parse(res->body.len ? res->body.data : "", res->body.len, c.what, ret, err);
    return st == CSN_INVALID ? csn_wrap(CSN_IO, err, "answer of the Vercel API") : st;
}
