/* envd.c: what requests to envd, the server inside each sandbox, have in common.
 *
 * envd is inside the sandbox and so as hostile as what runs there: its answers are bounded and
 * parsed, its words are shown escaped. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/e2b/e2b.h"
#include "base/base64.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/path.h"

#define ENVD_PORT  "49983"
#define KEEP_ALIVE "Keepalive-Ping-Interval: 50"

/* ---- headers ---------------------------------------------------------------------------- */

void csn_e2b_headers_add(csn_e2b_headers *h, const char *fmt, ...)
{
    va_list ap;
    char *text = NULL;

    if (h->count + 1 >= sizeof(h->list) / sizeof(h->list[0])) {
        h->failed = true;
        return;
    }
    va_start(ap, fmt);
    if (vasprintf(&text, fmt, ap) < 0)
        text = NULL;
    va_end(ap);
    h->failed |= !text;
    if (text)
        h->list[h->count++] = text;
}

void csn_e2b_headers_init(csn_e2b_headers *h, const csn_remote *r, const char *type,
                          const char *user)
{
    const csn_e2b *e = csn_e2b_of(r);
    char pair[64], coded[128];

    *h = (csn_e2b_headers){.count = 0};
    csn_e2b_headers_add(h, "E2b-Sandbox-Id: %s", e->sandbox);
    csn_e2b_headers_add(h, "E2b-Sandbox-Port: " ENVD_PORT);
    csn_e2b_headers_add(h, "Content-Type: %s", type);
    csn_e2b_headers_add(h, "Connect-Protocol-Version: 1");
    csn_e2b_headers_add(h, KEEP_ALIVE);
    if (e->token)
        csn_e2b_headers_add(h, "X-Access-Token: %s", e->token);
    if (user) {
        snprintf(pair, sizeof(pair), "%s:", user);
        csn_base64_encode(pair, strlen(pair), coded);
        csn_e2b_headers_add(h, "Authorization: Basic %s", coded);
    }
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

csn_status csn_e2b_refused(const csn_remote *r, int status, const char *code, const char *words,
                           const char *what, csn_error **err)
{
    for (size_t i = 0; code && i < sizeof(codes) / sizeof(codes[0]); i++)
        if (strcmp(codes[i].code, code) == 0)
            status = codes[i].status;
    if (status == 502 && csn_e2b_of(r)->paused) {
        csn_status st = csn_fail(err, CSN_UNAVAILABLE, "sandbox %s is paused", r->id);
        return csn_error_advise(st, err, "resume it first");
    }
    if (status == 502) /* nobody behind the proxy */
        return csn_fail(err, CSN_GONE, "sandbox %s does not run any more", r->id);
    if (status == 504)
        return csn_fail(err, CSN_TIMEOUT, "%s: deadline passed", what);
    return csn_remote_refused(r, status, what, words, err);
}

csn_status csn_e2b_failed(const csn_remote *r, const csn_http_res *res, const char *what,
                          csn_error **err)
{
    CSN_CLEANUP(csn_jval_freep) csn_jval *root = NULL;
    const char *code = NULL, *words = NULL;

    if (res->body.len > 0 &&
        csn_json_parse(res->body.data, res->body.len, "answer", &root, NULL) == CSN_OK) {
        code = csn_jval_string(csn_jval_get(root, "code"));
        words = csn_jval_string(csn_jval_get(root, "message"));
    }
    return csn_e2b_refused(r, res->status, code, words, what, err);
}

/* ---- calls ------------------------------------------------------------------------------ */

csn_status csn_e2b_call(csn_remote *r, const char *method, const csn_buf *body, uint64_t ms,
                        csn_jval **ret, csn_error **err)
{
    csn_autores res = {0};
    csn_autofree char *url = NULL;
    csn_e2b_headers h;
    const int32_t stop[] = {r->stop_fd};

    csn_e2b_headers_init(&h, r, "application/json", NULL);
    if (asprintf(&url, "%s/%s", csn_e2b_of(r)->envd_url, method) < 0 || h.failed) {
        csn_e2b_headers_release(&h);
        return csn_fail(err, CSN_NOMEM, "%s", method);
    }
    const csn_http_req q = {.method = "POST",
                            .url = url,
                            .headers = (const char *const *)h.list,
                            .body = body->data,
                            .body_len = body->len,
                            .deadline_ns = csn_deadline_in(ms),
                            .cancel_fds = stop,
                            .cancel_count = 1,
                            .body_max = CSN_E2B_MESSAGE_MAX};
    csn_status st = csn_http_do(r->http, &q, &res, err);
    csn_e2b_headers_release(&h);
    if (st == CSN_OK && res.status != 200)
        st = csn_e2b_failed(r, &res, method, err);
    if (st == CSN_OK && ret) {
        st = csn_json_parse(res.body.len ? res.body.data : "", res.body.len, method, ret, err);
        st = st == CSN_INVALID ? CSN_IO : st;
    }
    return st;
}
