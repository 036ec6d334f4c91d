/* line.h: what tests through a double and the fault proxy before it have in common: both ports,
 * one sandbox, and questions to the two. Each program has its own setup. */
#pragma once
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "caisson/caisson.h"
#include "doubles/double.h"
#include "remote/http.h"
#include "support/support.h"

#define LONG_MS 120000u /* far more than anything here takes */

static int double_port, proxy_port;
static char *dir, *ws;
static csn_http *http;
static csn_sandbox *sb;
static csn_error *err;

#define E (csn_error_free(err), err = NULL, &err)

static inline int teardown(void **state)
{
    (void)state;
    csn_close(sb);
    sb = NULL;
    csn_http_free(http);
    http = NULL;
    csn_double_end_all();
    csn_test_remove(dir);
    free(dir);
    free(ws);
    csn_error_free(err);
    err = NULL;
    return 0;
}

/* Asks the double or the proxy about itself. */
static inline char *ask(int port, const char *path, const char *body)
{
    csn_http_res r = {0};
    char url[64];

    snprintf(url, sizeof(url), "http://127.0.0.1:%d%s", port, path);
    csn_http_req q = {.method = body ? "POST" : "GET",
                      .url = url,
                      .body = body,
                      .body_len = body ? strlen(body) : 0,
                      .no_proxy = true, /* whatever proxy the test has set */
                      .deadline_ns = csn_deadline_in(LONG_MS)};
    assert_int_equal(csn_http_do(http, &q, &r, NULL), CSN_OK);
    char *text = strdup(r.body.data ? r.body.data : "");
    csn_http_res_release(&r);
    return text;
}

/* The number behind "key": in what the double or the proxy says. */
static inline int count(int port, const char *path, const char *key)
{
    char *text = ask(port, path, NULL), want[128];

    snprintf(want, sizeof(want), "\"%s\":", key);
    char *at = strstr(text, want);
    int n = at ? (int)strtol(at + strlen(want), NULL, 10) : 0;
    free(text);
    return n;
}

static inline void need_double(void)
{
    if (proxy_port >= 0)
        return;
    if (getenv("CSN_MUST_WORK"))
        fail_msg("%s", csn_double_why());
    print_message("%s\n", csn_double_why());
    skip();
}
