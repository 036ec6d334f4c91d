/* query.c: sends a GraphQL request to a Dagger session and interprets the response.
 *
 * The engine has run hostile commands: its response has a maximum size, is parsed strictly, and
 * only requested fields are used. An engine may return status 200 on failure, so `errors` is
 * read for every status.
 *
 * Invariant: a query that may have run a command is sent once. A query that the engine rejected
 * because of an unknown field is sent again in another form: no part of it was executed. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/dagger/dagger.h"
#include "base/cleanup.h"
#include "base/error.h"

#define QUERY_MAX    (16u * 1024u * 1024u)
#define RESPONSE_MAX (16u * 1024u * 1024u)
#define ID_MAX       (200u * 1024u)
/* Effectively no limit: an engine sends nothing while a command runs, and the connection of a
 * session that dies is closed. */
#define IDLE_MS (7u * 24u * 3600u * 1000u)

/* A JSON string is also a GraphQL string. */
static int append_literal(csn_buf *b, const char *s)
{
    csn_json j;

    csn_json_begin(&j, b);
    csn_json_str(&j, s);
    return csn_json_end(&j);
}

int csn_dagger_append(csn_buf *b, const char *text, ...)
{
    va_list ap;
    int e = 0;

    va_start(ap, text);
    while (e == 0 && *text) {
        size_t n = strcspn(text, "?");
        e = csn_buf_append(b, text, n);
        text += n;
        if (e == 0 && *text) {
            e = append_literal(b, va_arg(ap, const char *));
            text++;
        }
    }
    va_end(ap);
    return e;
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

void csn_dagger_response_release(csn_dagger_response *a)
{
    csn_jval_free(a->root);
}

/* ---- the request ------------------------------------------------------------------------ */

static int query_text(csn_buf *b, const csn_dagger_query *q, bool no_node_query)
{
    int e = !q->container ? csn_buf_puts(b, "{ ")
            : no_node_query
                ? csn_dagger_append(b, "{ loadContainerFromID(id: ?) { ", q->container)
                : csn_dagger_append(b, "{ node(id: ?) { ... on Container { ", q->container);

    e = e ? e : csn_buf_puts(b, q->selection);
    return e ? e : csn_buf_puts(b, !q->container ? " }" : no_node_query ? " } }" : " } } }");
}

static int request_body(csn_buf *body, const csn_dagger_query *q, bool no_node_query)
{
    csn_autobuf text;
    csn_json j;

    csn_buf_init(&text, QUERY_MAX);
    int e = query_text(&text, q, no_node_query);
    if (e != 0)
        return e;
    csn_json_begin(&j, body);
    csn_json_object(&j);
    csn_json_kstr(&j, "query", text.data);
    csn_json_object_end(&j);
    return csn_json_end(&j);
}

static csn_status post(csn_remote *r, const csn_dagger_query *q, const csn_buf *body,
                       csn_http_res *res, csn_error **err)
{
    const csn_dagger_session *s = &csn_dagger_of(r)->session;
    const int32_t stop[] = {r->stop_fd, -1, -1};
    csn_autofree char *credential = csn_remote_basic_auth(s->token);
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
                            .retry = q->retry,
                            .no_proxy = true,
                            .deadline_ns = q->deadline_ns,
                            .idle_ms = IDLE_MS,
                            .cancel_fds = q->cancel_fds ? q->cancel_fds : stop,
                            .cancel_count = 3,
                            .on_interrupt = q->on_interrupt,
                            .ctx = q->ctx,
                            .body_max = RESPONSE_MAX};
    return csn_http_do(r->http, &h, res, err);
}

/* ---- the response ----------------------------------------------------------------------- */

static csn_status engine_error(const csn_remote *r, const csn_dagger_query *q, int status,
                               const csn_jval *error, csn_dagger_response *ret, csn_error **err)
{
    const csn_jval *more = csn_jval_get(error, "extensions");
    const char *type = csn_jval_string(csn_jval_get(more, "_type"));
    const char *message = csn_jval_string(csn_jval_get(error, "message"));
    int64_t code = -1;

    snprintf(ret->message, sizeof(ret->message), "%s", message ? message : "no reason given");
    if (status == 401 || status == 403 || status >= 500)
        return csn_remote_http_error(r, status, q->what, message, err);
    if (type && strcmp(type, "EXEC_ERROR") == 0) {
        ret->exec_error = true;
        (void)csn_jget_i64(more, "exitCode", &code, NULL);
        return csn_fail(err, CSN_IO, "%s: its container ended with exit code %d", q->what,
                        code >= 0 && code <= 255 ? (int)code : -1);
    }
    return csn_fail(err, CSN_IO, "%s: the engine reports: %s", q->what, ret->message);
}

static csn_status read_response(const csn_remote *r, const csn_dagger_query *q,
                                bool no_node_query, const csn_http_res *res,
                                csn_dagger_response *ret, csn_error **err)
{
    csn_status st = csn_remote_parse(res, "response of the engine", &ret->root, NULL);
    const csn_jval *error = csn_jval_at(csn_jval_get(ret->root, "errors"), 0);

    if (error)
        return engine_error(r, q, res->status, error, ret, err);
    if (res->status / 100 != 2)
        return csn_remote_http_error(r, res->status, q->what, NULL, err);
    if (st < 0)
        return csn_fail(err, CSN_IO, "%s: the response of the engine is not JSON", q->what);
    const csn_jval *data = csn_jval_get(ret->root, "data");
    ret->data = !q->container   ? data
                : no_node_query ? csn_jval_get(data, "loadContainerFromID")
                                : csn_jval_get(data, "node");
    if (!csn_jval_is_object(ret->data))
        return csn_fail(err, CSN_IO, "%s: the response of the engine is incomplete", q->what);
    return CSN_OK;
}

static csn_status send_once(csn_remote *r, const csn_dagger_query *q, bool no_node_query,
                            csn_dagger_response *ret, csn_error **err)
{
    csn_autores res = {0};
    csn_autobuf body;

    *ret = (csn_dagger_response){0};
    csn_buf_init(&body, 2 * QUERY_MAX);
    int e = request_body(&body, q, no_node_query);
    if (e != 0)
        return csn_fail_errno(err, e, "%s", q->what);
    csn_status st = post(r, q, &body, &res, err);
    ret->sent = res.sent;
    return st < 0 ? st : read_response(r, q, no_node_query, &res, ret, err);
}

csn_status csn_dagger_send(csn_remote *r, const csn_dagger_query *q, csn_dagger_response *ret,
                           csn_error **err)
{
    csn_dagger *d = csn_dagger_of(r);
    bool no_node_query = d->no_node_query;
    csn_error *why = NULL;
    csn_status st = send_once(r, q, no_node_query, ret, &why);

    if (st < 0 && q->container && !no_node_query &&
        strstr(ret->message, "Cannot query field \"node\"")) {
        csn_error_free(CSN_STEAL(why));
        csn_dagger_response_release(ret);
        d->no_node_query = true;
        st = send_once(r, q, true, ret, &why);
    }
    if (err)
        *err = CSN_STEAL(why);
    csn_error_free(why);
    return st;
}

csn_status csn_dagger_send_for_id(csn_remote *r, const csn_dagger_query *q, const char *path,
                                  char **ret, csn_error **err)
{
    csn_auto_dagger_response a = {0};
    csn_status st = csn_dagger_send(r, q, &a, err);

    if (st < 0)
        return st;
    const char *id = csn_dagger_id_at(a.data, path);
    if (!id)
        return csn_fail(err, CSN_IO, "%s: the engine returned no id", q->what);
    *ret = strdup(id);
    return *ret ? CSN_OK : csn_fail(err, CSN_NOMEM, "%s", q->what);
}
