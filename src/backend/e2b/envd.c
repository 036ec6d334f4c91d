/* envd.c: sends requests to envd, the server inside each sandbox.
 *
 * envd runs in the same VM as hostile commands: its responses have a maximum size, and its
 * messages are printed escaped. The code of a Connect-RPC error is mapped to the HTTP status
 * that the Connect specification assigns to it. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/e2b/e2b.h"
#include "base/clock.h"
#include "base/error.h"

/* ---- headers ---------------------------------------------------------------------------- */

static void add_owned(csn_e2b_headers *h, char *text)
{
    if (!text || h->count + 1 >= sizeof(h->list) / sizeof(h->list[0])) {
        h->failed = true;
        free(text);
        return;
    }
    h->list[h->count++] = text;
}

void csn_e2b_headers_add(csn_e2b_headers *h, const char *fmt, ...)
{
    va_list ap;
    char *text = NULL;

    va_start(ap, fmt);
    if (vasprintf(&text, fmt, ap) < 0)
        text = NULL;
    va_end(ap);
    add_owned(h, text);
}

void csn_e2b_headers_init(csn_e2b_headers *h, const csn_remote *r, const char *content_type,
                          const char *user)
{
    const csn_e2b *e = csn_e2b_of(r);

    *h = (csn_e2b_headers){.count = 0};
    csn_e2b_headers_add(h, "E2b-Sandbox-Id: %s", e->sandbox);
    csn_e2b_headers_add(h, "E2b-Sandbox-Port: " CSN_E2B_ENVD_PORT);
    csn_e2b_headers_add(h, "Content-Type: %s", content_type);
    csn_e2b_headers_add(h, "Connect-Protocol-Version: 1");
    csn_e2b_headers_add(h, "Keepalive-Ping-Interval: 50");
    if (e->token)
        csn_e2b_headers_add(h, "X-Access-Token: %s", e->token);
    if (user)
        add_owned(h, csn_remote_basic_auth(user));
}

void csn_e2b_headers_release(csn_e2b_headers *h)
{
    for (size_t i = 0; i < h->count; i++)
        free(h->list[i]);
}

/* ---- errors ----------------------------------------------------------------------------- */

static const struct {
    const char *code;
    int status;
} codes[] = {
    {"invalid_argument", 400},   {"failed_precondition", 400},
    {"out_of_range", 400},       {"unauthenticated", 401},
    {"permission_denied", 403},  {"not_found", 404},
    {"already_exists", 409},     {"aborted", 409},
    {"resource_exhausted", 429}, {"unimplemented", 501},
    {"internal", 500},           {"unknown", 500},
    {"unavailable", 502},        {"data_loss", 500},
    {"canceled", 499},           {"deadline_exceeded", 504},
};

csn_status csn_e2b_error(const csn_remote *r, int status, const csn_jval *error,
                         const char *what, csn_error **err)
{
    const char *code = csn_jval_string(csn_jval_get(error, "code"));

    for (size_t i = 0; code && i < sizeof(codes) / sizeof(codes[0]); i++)
        if (strcmp(codes[i].code, code) == 0)
            status = codes[i].status;
    if (status == 502 && csn_e2b_of(r)->paused) {
        csn_status st = csn_fail(err, CSN_UNAVAILABLE, "sandbox %s is paused", r->id);
        return csn_error_advise(st, err, "resume it first");
    }
    if (status == 502) /* the proxy found no sandbox */
        return csn_remote_gone(r, err);
    if (status == 504)
        return csn_fail(err, CSN_TIMEOUT, "%s: deadline passed", what);
    return csn_remote_http_error(r, status, what,
                                 csn_jval_string(csn_jval_get(error, "message")), err);
}

/* ---- calls ------------------------------------------------------------------------------ */

csn_status csn_e2b_send(csn_remote *r, const char *what, const char *path, csn_e2b_headers *h,
                        csn_http_req *q, csn_http_res *res, csn_error **err)
{
    csn_autofree char *url = NULL;

    if (asprintf(&url, "%s/%s", csn_e2b_of(r)->envd_url, path) < 0)
        url = NULL;
    q->url = url;
    q->headers = (const char *const *)h->list;
    csn_status st = h->failed || !url ? csn_fail(err, CSN_NOMEM, "%s", what)
                                      : csn_http_do(r->http, q, res, err);
    csn_e2b_headers_release(h);
    return st;
}

csn_status csn_e2b_request(csn_remote *r, const char *what, const char *path,
                           csn_e2b_headers *h, csn_http_req *q, csn_http_res *res,
                           csn_error **err)
{
    CSN_CLEANUP(csn_jval_freep) csn_jval *root = NULL;
    csn_status st = csn_e2b_send(r, what, path, h, q, res, err);

    if (st < 0 || res->status == 0 || res->status / 100 == 2)
        return st;
    (void)csn_remote_parse(res, what, &root, NULL);
    return csn_e2b_error(r, res->status, root, what, err);
}

csn_status csn_e2b_call(csn_remote *r, const char *method, const csn_buf *body, uint64_t ms,
                        csn_error **err)
{
    csn_autores res = {0};
    csn_e2b_headers h;
    const int32_t stop[] = {r->stop_fd};
    csn_http_req q = {.method = "POST",
                      .body = body->data,
                      .body_len = body->len,
                      .deadline_ns = csn_deadline_in(ms),
                      .cancel_fds = stop,
                      .cancel_count = 1,
                      .body_max = CSN_E2B_MESSAGE_MAX};

    csn_e2b_headers_init(&h, r, "application/json", NULL);
    return csn_e2b_request(r, method, method, &h, &q, &res, err);
}
