/* tls.c: the e2b backend over TLS and through proxies: whom it trusts, and which way it goes.
 *
 * A double of the provider behind a server with a certificate of a test's own authority. What
 * is shown: with that authority everything works; without it, or with a certificate for another
 * host, nothing is sent, not even the key; the proxy variables lead through a tunnel, in which
 * the certificate is checked all the same. */
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

#define LONG_MS 120000u

static char *dir, *ws, *keys, *authority;
static int double_port;
static csn_sandbox *sb;
static csn_error *err;

#define E (csn_error_free(err), err = NULL, &err)

static const char *const proxies[] = {"http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy",
                                      "ALL_PROXY",  "no_proxy",    "NO_PROXY",    NULL};

static int setup(void **state)
{
    (void)state;
    dir = csn_test_tmpdir();
    ws = csn_test_join(dir, "ws");
    keys = csn_test_join(dir, "keys");
    authority = csn_test_join(keys, "ca.pem");
    csn_test_mkdir(ws);
    csn_test_mkdir(keys);
    setenv("XDG_STATE_HOME", dir, 1);
    setenv("XDG_RUNTIME_DIR", dir, 1);
    setenv("E2B_API_KEY", "k", 1);
    unsetenv("CAISSON_BACKEND");
    unsetenv("SSL_CERT_FILE");
    unsetenv("SSL_CERT_DIR");
    for (size_t i = 0; proxies[i]; i++)
        unsetenv(proxies[i]);
    const char *const root[] = {"--root", ws, NULL};
    double_port = csn_double_start("e2b.mjs", root);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    csn_close(sb);
    sb = NULL;
    csn_double_end_all();
    csn_test_remove(dir);
    free(dir);
    free(ws);
    free(keys);
    free(authority);
    csn_error_free(err);
    err = NULL;
    return 0;
}

static int must(int port)
{
    if (port >= 0)
        return port;
    if (getenv("CSN_MUST_WORK"))
        fail_msg("%s", csn_double_why());
    print_message("%s\n", csn_double_why());
    skip();
    return -1;
}

/* A server whose certificate is for `name`, in front of the double. */
static int start_tls(const char *name)
{
    char to[16];

    snprintf(to, sizeof(to), "%d", must(double_port));
    const char *const args[] = {"--to", to, "--dir", keys, "--name", name, NULL};
    return must(csn_double_start("tls.mjs", args));
}

static void use_url(const char *scheme, const char *host, int port)
{
    char url[96];

    snprintf(url, sizeof(url), "%s://%s:%d", scheme, host, port);
    setenv("E2B_API_URL", url, 1);
    setenv("E2B_SANDBOX_URL", url, 1);
}

static csn_status run_one(void)
{
    csn_config c = {.size = sizeof(c), .backend = "e2b", .audit = "none"};
    csn_exec_result *r = NULL;

    csn_close(sb);
    sb = NULL;
    assert_int_equal(csn_open(&c, &sb, E), CSN_OK);
    csn_status st =
        csn_sh(sb, "echo through", CSN_OPTS(csn_exec_opts, .timeout_ms = LONG_MS), &r, E);
    if (st == CSN_OK)
        assert_string_equal(r->out.data, "through\n");
    csn_exec_result_free(r);
    return st;
}

/* What a server says about itself. */
static char *ask(int port, const char *path)
{
    csn_http *http = NULL;
    csn_http_res r = {0};
    char url[64];

    snprintf(url, sizeof(url), "http://127.0.0.1:%d%s", port, path);
    const csn_http_req q = {
        .method = "GET", .url = url, .deadline_ns = csn_deadline_in(LONG_MS)};
    assert_int_equal(csn_http_new("tls", NULL, &http, NULL), CSN_OK);
    assert_int_equal(csn_http_do(http, &q, &r, NULL), CSN_OK);
    char *text = strdup(r.body.data ? r.body.data : "");
    csn_http_res_release(&r);
    csn_http_free(http);
    return text;
}

/* Refused before anything of ours was on the line. */
static void refused(void)
{
    csn_status st = run_one();
    char *seen = ask(double_port, "/_double/counts");

    assert_int_equal(st, CSN_UNAVAILABLE);
    assert_non_null(strstr(csn_error_message(err), "is not trusted"));
    assert_string_equal(seen, "{}");
    free(seen);
}

static void the_named_authority_is_trusted(void **state)
{
    (void)state;
    use_url("https", "127.0.0.1", start_tls("IP:127.0.0.1"));
    setenv("SSL_CERT_FILE", authority, 1);
    assert_int_equal(run_one(), CSN_OK);
}

static void an_unknown_authority_is_not(void **state)
{
    (void)state;
    use_url("https", "127.0.0.1", start_tls("IP:127.0.0.1"));
    refused();
}

static void nor_is_a_certificate_for_another_host(void **state)
{
    (void)state;
    use_url("https", "127.0.0.1", start_tls("somebody-else.test"));
    setenv("SSL_CERT_FILE", authority, 1);
    refused();
}

/* All that leads to `port`, with the name of the provider as it is. */
static int start_proxy(int port)
{
    char to[16];

    snprintf(to, sizeof(to), "%d", port);
    const char *const args[] = {"--to", to, NULL};
    return must(csn_double_start("tunnel.mjs", args));
}

static void name_proxy(const char *variable, int port)
{
    char url[64];

    snprintf(url, sizeof(url), "http://127.0.0.1:%d", port);
    setenv(variable, url, 1);
}

static void https_goes_through_a_tunnel(void **state)
{
    (void)state;
    int proxy = start_proxy(start_tls("provider.test"));
    name_proxy("https_proxy", proxy);
    use_url("https", "provider.test", 443);
    refused(); /* the tunnel's other end is checked as any server is */
    setenv("SSL_CERT_FILE", authority, 1);
    assert_int_equal(run_one(), CSN_OK);
    char *seen = ask(proxy, "/_tunnel");
    assert_non_null(strstr(seen, "\"CONNECT provider.test:443\""));
    assert_null(strstr(seen, "POST"));
    free(seen);
}

static void http_goes_through_the_proxy_unless_excepted(void **state)
{
    (void)state;
    int proxy = start_proxy(must(double_port));
    name_proxy("http_proxy", proxy);
    use_url("http", "provider.test", 80);
    assert_int_equal(run_one(), CSN_OK);
    csn_close(sb);
    sb = NULL;
    unsetenv("http_proxy");
    char *seen = ask(double_port, "/_double/counts");
    assert_non_null(strstr(seen, "POST /v2/sandboxes"));
    free(seen);
    seen = ask(proxy, "/_tunnel");
    assert_non_null(strstr(seen, "\"POST provider.test\""));
    free(seen);
    use_url("http", "127.0.0.1", double_port);
    setenv("no_proxy", "127.0.0.1", 1);
    name_proxy("http_proxy", 1); /* where nobody listens */
    assert_int_equal(run_one(), CSN_OK);
}

int main(void)
{
#define T(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(the_named_authority_is_trusted),
        T(an_unknown_authority_is_not),
        T(nor_is_a_certificate_for_another_host),
        T(https_goes_through_a_tunnel),
        T(http_goes_through_the_proxy_unless_excepted),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
