/* room.h: a double of E2B, the fault proxy before it, and a sandbox through both; for the
 * length of one test. */
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
#include "net/http.h"
#include "support/support.h"

#define LONG_MS 120000u /* far more than anything here takes */

static int double_port, proxy_port;
static char *dir, *ws;
static csn_http *http;
static csn_sandbox *sb;
static csn_error *err;

#define E (csn_error_free(err), err = NULL, &err)

static inline void set_url(const char *name, int port)
{
    char url[64];

    snprintf(url, sizeof(url), "http://127.0.0.1:%d", port);
    setenv(name, url, 1);
}

static inline int setup(void **state)
{
    char to[16];

    (void)state;
    dir = csn_test_tmpdir();
    ws = csn_test_join(dir, "ws");
    csn_test_mkdir(ws);
    setenv("XDG_STATE_HOME", dir, 1);
    setenv("XDG_RUNTIME_DIR", dir, 1);
    setenv("E2B_API_KEY", "k", 1);
    unsetenv("CAISSON_BACKEND");
    const char *const root[] = {"--root", ws, NULL};
    double_port = csn_double_start("e2b.mjs", root);
    snprintf(to, sizeof(to), "%d", double_port);
    const char *const through[] = {"--to", to, NULL};
    proxy_port = double_port < 0 ? -1 : csn_double_start("fault.mjs", through);
    if (proxy_port < 0)
        return 0; /* the test says so */
    set_url("E2B_API_URL", proxy_port);
    set_url("E2B_SANDBOX_URL", proxy_port);
    return csn_http_new("test", NULL, &http, NULL) == CSN_OK ? 0 : -1;
}

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
                      .deadline_ns = csn_deadline_in(LONG_MS)};
    assert_int_equal(csn_http_do(http, &q, &r, NULL), CSN_OK);
    char *text = strdup(r.body.data ? r.body.data : "");
    csn_http_res_release(&r);
    return text;
}

static inline void fault(const char *rule)
{
    free(ask(proxy_port, "/_fault", rule));
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

static inline void open_sandbox(void)
{
    need_double();
    csn_config c = {.size = sizeof(c), .backend = "e2b", .audit = "none"};
    assert_int_equal(csn_open(&c, &sb, E), CSN_OK);
}

static inline void ready(void)
{
    csn_exec_result *r = NULL;

    open_sandbox();
    csn_status st = csn_sh(sb, "true", CSN_OPTS(csn_exec_opts, .timeout_ms = LONG_MS), &r, E);
    if (st < 0)
        print_message("%s\n", csn_error_message(err));
    assert_int_equal(st, CSN_OK);
    assert_int_equal(r->exit_code, 0);
    csn_exec_result_free(r);
}
