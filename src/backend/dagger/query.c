/* query.c: one GraphQL request to the session of an engine, and what its answer means.
 *
 * The answer comes from an engine that ran hostile commands: it is bounded, parsed strictly and
 * believed in nothing but the shape that was asked for. An engine says 200 also when it failed,
 * so `errors` is looked at whatever the status. What must hold: a query that may have run
 * something is sent once. The one repetition is after the engine said that it does not know a
 * field: such a query was refused as a whole, before anything of it ran. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/dagger/dagger.h"
#include "base/base64.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/json_write.h"

#define QUERY_MAX  (16u * 1024u * 1024u)
#define ANSWER_MAX (16u * 1024u * 1024u)
#define ID_MAX     (200u * 1024u)
/* An engine says nothing while a command runs. A session that dies closes its connection. */
#define SILENCE_MS (7u * 24u * 3600u * 1000u)

int csn_dagger_literal(csn_buf *b, const char *s)
{
    csn_json j;

    csn_json_begin(&j, b);
    csn_json_str(&j, s);
    return csn_json_end(&j);
}

const csn_jval *csn_dagger_at(const csn_jval *v, const char *path)
{
    char name[64];

    while (v && *path) {
        size_t n = strcspn(path, ".");
        snprintf(name, sizeof(name), "%.*s", (int)n, path);
        v = csn_jval_get(v, name);
        path += n + (path[n] == '.');
    }
    return v;
}

const char *csn_dagger_id_at(const csn_jval *v, const char *path)
{
    const char *id = csn_jval_string(csn_dagger_at(v, path));

    return id && *id && strlen(id) <= ID_MAX && !strpbrk(id, "\r\n") ? id : NULL;
}

void csn_dagger_answer_release(csn_dagger_answer *a)
{
    csn_jval_free(a->root);
}

/* ---- the request ------------------------------------------------------------------------ */

static int put_query(csn_buf *b, const csn_dagger_query *q, bool by_load)
{
    int e = csn_buf_puts(b, "{ ");

    if (q->on && e == 0)
        e = by_load ? csn_buf_printf(b, "load%sFromID(id: ", q->type)
                    : csn_buf_puts(b, "node(id: ");
    if (q->on && e == 0)
        e = csn_dagger_literal(b, q->on);
    if (q->on && e == 0)
        e = by_load ? csn_buf_puts(b, ") { ") : csn_buf_printf(b, ") { ... on %s { ", q->type);
    e = e ? e : csn_buf_append(b, q->select->data, q->select->len);
    return e ? e : csn_buf_puts(b, !q->on ? " }" : by_load ? " } }" : " } } }");
}

static int put_body(csn_buf *body, const csn_dagger_query *q, bool by_load)
{
    csn_autobuf text;
    csn_json j;

    csn_buf_init(&text, QUERY_MAX);
    int e = put_query(&text, q, by_load);
    if (e != 0)
        return e;
    csn_json_begin(&j, body);
    csn_json_object(&j);
    csn_json_kstr(&j, "query", text.data);
    csn_json_object_end(&j);
    return csn_json_end(&j);
}

/* The token is the user's name, the password is empty. malloc'd. */
static char *authorization(const char *token)
{
    csn_autofree char *pair = NULL, *text = NULL;
    char *header = NULL;

    if (asprintf(&pair, "%s:", token) < 0)
        pair = NULL;
    text = pair ? malloc(csn_base64_size(strlen(pair)) + 1) : NULL;
    if (!text)
        return NULL;
    csn_base64_encode(pair, strlen(pair), text);
    return asprintf(&header, "Authorization: Basic %s", text) < 0 ? NULL : header;
}

static csn_status post(csn_remote *r, const csn_dagger_query *q, const csn_buf *body,
                       csn_http_res *res, csn_error **err)
{
    const csn_dagger_session *s = &csn_dagger_of(r)->session;
    csn_autofree char *credential = authorization(s->token);
    char url[64];

    if (!credential)
        return csn_fail(err, CSN_NOMEM, "%s", q->what);
    snprintf(url, sizeof(url), "http://127.0.0.1:%u/query", s->port);
    const char *const headers[] = {
        credential, "Content-Type: application/json",
        "Accept: application/graphql-response+json, application/json", NULL};
    const csn_http_req h = {.method = "POST",
                            .url = url,
                            .headers = headers,
                            .body = body->data,
                            .body_len = body->len,
                            .repeat = q->repeat,
                            .direct = true,
                            .deadline_ns = q->deadline_ns,
                            .silence_ms = SILENCE_MS,
                            .cancel_fds = q->cancel_fds,
                            .cancel_count = 3,
                            .on_alarm = q->on_alarm,
                            .ctx = q->ctx,
                            .body_max = ANSWER_MAX};
    return csn_http_do(r->http, &h, res, err);
}

/* ---- the answer ------------------------------------------------------------------------- */

/* The engine refused, in its own words. */
static csn_status refused(const csn_remote *r, const csn_dagger_query *q, int status,
                          const csn_jval *error, csn_dagger_answer *ret, csn_error **err)
{
    const csn_jval *more = csn_jval_get(error, "extensions");
    const char *type = csn_jval_string(csn_jval_get(more, "_type"));
    const char *said = csn_jval_string(csn_jval_get(error, "message"));
    int64_t code = -1;

    snprintf(ret->said, sizeof(ret->said), "%s", said ? said : "no reason given");
    if (status == 401 || status == 403 || status >= 500)
        return csn_remote_refused(r, status, q->what, said, err);
    if (type && strcmp(type, "EXEC_ERROR") == 0) {
        ret->exec_error = true;
        (void)csn_jget_i64(more, "exitCode", &code, NULL);
        ret->exit_code = code >= 0 && code <= 255 ? (int)code : -1;
        return csn_fail(err, CSN_IO, "%s: its container ended with exit code %d", q->what,
                        ret->exit_code);
    }
    return csn_fail(err, CSN_IO, "%s: the engine says: %s", q->what, ret->said);
}

static csn_status read_answer(const csn_remote *r, const csn_dagger_query *q,
                              const csn_http_res *res, csn_dagger_answer *ret, csn_error **err)
{
    csn_status st = csn_json_parse(res->body.len ? res->body.data : "", res->body.len,
                                   "answer of the engine", &ret->root, NULL);
    const csn_jval *error = csn_jval_at(csn_jval_get(ret->root, "errors"), 0);

    if (error)
        return refused(r, q, res->status, error, ret, err);
    if (res->status / 100 != 2)
        return csn_remote_refused(r, res->status, q->what, NULL, err);
    if (st < 0)
        return csn_fail(err, CSN_IO, "%s: the answer of the engine is not JSON", q->what);
    const csn_jval *data = csn_jval_get(ret->root, "data");
    csn_autofree char *load = NULL;
    if (q->on && asprintf(&load, "load%sFromID", q->type) < 0)
        return csn_fail(err, CSN_NOMEM, "%s", q->what);
    const csn_jval *by_load = load ? csn_jval_get(data, load) : NULL;
    ret->at = !q->on ? data : by_load ? by_load : csn_jval_get(data, "node");
    if (!csn_jval_is_object(ret->at))
        return csn_fail(err, CSN_IO, "%s: the answer of the engine lacks what was asked",
                        q->what);
    return CSN_OK;
}

static csn_status ask_once(csn_remote *r, const csn_dagger_query *q, bool by_load,
                           csn_dagger_answer *ret, csn_error **err)
{
    csn_autores res = {0};
    csn_autobuf body;

    csn_buf_init(&body, 2 * QUERY_MAX);
    int e = put_body(&body, q, by_load);
    if (e != 0)
        return csn_fail_errno(err, e, "%s", q->what);
    csn_status st = post(r, q, &body, &res, err);
    ret->sent = res.sent;
    return st < 0 ? st : read_answer(r, q, &res, ret, err);
}

csn_status csn_dagger_ask(csn_remote *r, const csn_dagger_query *q, csn_dagger_answer *ret,
                          csn_error **err)
{
    csn_dagger *d = csn_dagger_of(r);
    bool by_load = d->by_load;
    csn_error *why = NULL;

    *ret = (csn_dagger_answer){.exit_code = -1};
    csn_status st = ask_once(r, q, by_load, ret, &why);
    bool unknown =
        st < 0 && q->on && !by_load && strstr(ret->said, "Cannot query field \"node\"") != NULL;
    if (!unknown) {
        if (err)
            *err = CSN_STEAL(why);
        csn_error_free(why);
        return st;
    }
    csn_error_free(why);
    csn_dagger_answer_release(ret);
    *ret = (csn_dagger_answer){.exit_code = -1};
    d->by_load = true;
    return ask_once(r, q, true, ret, err);
}
