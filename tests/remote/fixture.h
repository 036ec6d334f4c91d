/* fixture.h: a double of E2B, the fault proxy before it, and a sandbox through both; for the
 * length of one test. */
#pragma once
#include "remote/line.h"

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

static inline void fault(const char *rule)
{
    free(ask(proxy_port, "/_fault", rule));
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
