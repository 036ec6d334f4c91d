/* faults.c: a remote backend against a line that breaks in every way: through the fault proxy
 * to its double.
 *
 *   remote_faults PROVIDER
 *
 * Each test has its own double and proxy. What is shown: a command is run at most once,
 * whatever happens; a stream that breaks off is an unknown end, never a success; nothing hangs
 * beyond its deadline; one create, however many ask first; nothing grows. Times are compared
 * only with limits that a busy machine keeps. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dirent.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "caisson/caisson.h"
#include "doubles/double.h"
#include "remote/http.h"
#include "remote/line.h"
#include "support/support.h"

/* What differs between providers. Rules match "METHOD /path", counts name the same. */
typedef struct refusal {
    const char *how; /* the rest of a rule that matches `start` */
    csn_status want;
    size_t runs; /* of the command */
} refusal;
typedef struct provider {
    const char *name, *file, *key; /* key: the variable with a credential */
    const char *urls[3];           /* variables, NULL-terminated */
    const char *base;              /* of the URL */
    const char *start, *start_seen;
    const char *create, *create_seen, *delete_seen;
    int cuts[16]; /* places in the stream of a command, ended by -1 */
    refusal refusals[16];
} provider;

static const provider providers[] = {
    {.name = "e2b",
     .file = "e2b.mjs",
     .key = "E2B_API_KEY",
     .urls = {"E2B_API_URL", "E2B_SANDBOX_URL"},
     .base = "",
     .start = "POST /process",
     .start_seen = "POST /process.Process/Start",
     .create = "POST /v2/sandboxes$",
     .create_seen = "POST /v2/sandboxes",
     .delete_seen = "DELETE /sandboxes/ID",
     .cuts = {0, 1, 4, 5, 20, 38, 39, 60, 90, 120, -1},
     .refusals = {{"\"mode\":\"status\",\"status\":503", CSN_UNAVAILABLE, 0},
                  {"\"mode\":\"status\",\"status\":500", CSN_UNAVAILABLE, 0},
                  {"\"mode\":\"status-after\",\"status\":500", CSN_UNAVAILABLE, 1},
                  {"\"mode\":\"drop\"", CSN_UNAVAILABLE, 0},
                  {"\"mode\":\"drop-after\"", CSN_UNAVAILABLE, 1},
                  {"\"mode\":\"status\",\"status\":502", CSN_GONE, 0},
                  {"\"mode\":\"status\",\"status\":410", CSN_GONE, 0},
                  {"\"mode\":\"status\",\"status\":401", CSN_AUTH, 0},
                  {"\"mode\":\"json\"", CSN_TOO_LARGE, 1},
                  {"\"mode\":\"length\"", CSN_TOO_LARGE, 1},
                  {"\"mode\":\"endless\"", CSN_TOO_LARGE, 1}}},
    {.name = "vercel",
     .file = "vercel.mjs",
     .key = "VERCEL_TOKEN",
     .urls = {"CAISSON_VERCEL_URL"},
     .base = "/api",
     .start = "POST .*/cmd$",
     .start_seen = "POST /api/v2/sandboxes/sessions/ID/cmd",
     .create = "POST /api/v2/sandboxes$",
     .create_seen = "POST /api/v2/sandboxes",
     .delete_seen = "DELETE /api/v2/sandboxes/NAME",
     .cuts = {0, 1, 12, 100, 1000, 1800, 2000, 2100, 2200, 2250, 2300, 2350, 2400, 3000, -1},
     .refusals = {{"\"mode\":\"status\",\"status\":503", CSN_UNAVAILABLE, 0},
                  {"\"mode\":\"status\",\"status\":502", CSN_UNAVAILABLE, 0},
                  {"\"mode\":\"status-after\",\"status\":500", CSN_UNAVAILABLE, 1},
                  {"\"mode\":\"drop\"", CSN_UNAVAILABLE, 0},
                  {"\"mode\":\"drop-after\"", CSN_UNAVAILABLE, 1},
                  {"\"mode\":\"status\",\"status\":410", CSN_GONE, 0},
                  {"\"mode\":\"status\",\"status\":401", CSN_AUTH, 0},
                  {"\"mode\":\"status\",\"status\":403", CSN_AUTH, 0},
                  {"\"mode\":\"json\"", CSN_IO, 1},
                  {"\"mode\":\"endless\"", CSN_TOO_LARGE, 1}}},
};
static const provider *of = providers;

static void set_urls(int port)
{
    char url[64];

    snprintf(url, sizeof(url), "http://127.0.0.1:%d%s", port, of->base);
    for (size_t i = 0; of->urls[i]; i++)
        setenv(of->urls[i], url, 1);
}

static int setup(void **state)
{
    char to[16];

    (void)state;
    dir = csn_test_tmpdir();
    ws = csn_test_join(dir, "ws");
    csn_test_mkdir(ws);
    setenv("XDG_STATE_HOME", dir, 1);
    setenv("XDG_RUNTIME_DIR", dir, 1);
    setenv(of->key, "k", 1);
    setenv("VERCEL_TEAM_ID", "team", 1);
    setenv("VERCEL_PROJECT_ID", "project", 1);
    unsetenv("VERCEL_OIDC_TOKEN");
    unsetenv("CAISSON_BACKEND");
    const char *const root[] = {"--root", ws, NULL};
    double_port = csn_double_start(of->file, root);
    snprintf(to, sizeof(to), "%d", double_port);
    const char *const through[] = {"--to", to, NULL};
    proxy_port = double_port < 0 ? -1 : csn_double_start("fault.mjs", through);
    if (proxy_port < 0)
        return 0; /* the test says so */
    set_urls(proxy_port);
    return csn_http_new("faults", NULL, &http, NULL) == CSN_OK ? 0 : -1;
}

/* match: a field of the provider; how: the rest of the rule. */
static void fault(const char *match, const char *how)
{
    char *rule = csn_test_format("{\"match\":\"%s\",%s}", match, how);

    free(ask(proxy_port, "/_fault", rule));
    free(rule);
}

static void no_fault(void)
{
    fault("$none", "\"mode\":\"drop\",\"times\":0");
}

static void open_sandbox(uint32_t flags, uint64_t lifetime_ms)
{
    need_double();
    csn_config c = {.size = sizeof(c),
                    .backend = of->name,
                    .audit = "none",
                    .flags = flags,
                    .lifetime_ms = lifetime_ms};
    assert_int_equal(csn_open(&c, &sb, E), CSN_OK);
}

static void ready_with(uint32_t flags)
{
    csn_exec_result *r = NULL;

    open_sandbox(flags, 0);
    csn_status st = csn_sh(sb, "true", CSN_OPTS(csn_exec_opts, .timeout_ms = LONG_MS), &r, E);
    if (st < 0)
        print_message("%s\n", csn_error_message(err));
    assert_int_equal(st, CSN_OK);
    assert_int_equal(r->exit_code, 0);
    csn_exec_result_free(r);
}

static void ready(void)
{
    ready_with(0);
}

/* How many times the command of run_counted ran: asked on the host, not over the line. */
static size_t runs(void)
{
    char *path = csn_test_join(ws, "runs");
    size_t len = 0;
    char *text = csn_test_get(path, &len);

    free(text);
    free(path);
    return len;
}

static csn_status run_counted(const char *more, csn_exec_result **ret)
{
    char *cmd = csn_test_format("printf x >>runs; %s", more);
    csn_status st = csn_sh(sb, cmd, CSN_OPTS(csn_exec_opts, .timeout_ms = LONG_MS), ret, E);

    free(cmd);
    return st;
}

/* ---- tests ------------------------------------------------------------------------------ */

/* What came before the cut may have been all there was to say. */
static void check_cut(csn_status st, const csn_exec_result *r)
{
    if (st < 0) {
        assert_true(st == CSN_IO || st == CSN_UNAVAILABLE);
        assert_non_null(strstr(csn_error_hint(err), "may have started"));
    } else if (r->exit_code == 0 && r->truncated) { /* it was found again before it ended */
        assert_non_null(strstr(r->err.data, "is missing"));
    } else if (r->exit_code == 0) {
        assert_string_equal(r->out.data, "one\ntwo\n");
    } else { /* it was seen to start */
        assert_int_equal(r->exit_code, -1);
        assert_true(r->failed);
        assert_null(r->signal);
        assert_non_null(strstr(r->err.data, "not known"));
    }
}

static void cut_anywhere_is_an_unknown_end(void **state)
{
    size_t done = 0, unknown = 0;

    (void)state;
    ready();
    for (size_t i = 0; of->cuts[i] >= 0; i++) {
        csn_exec_result *r = NULL;
        char how[64];

        snprintf(how, sizeof(how), "\"mode\":\"cut\",\"bytes\":%d", of->cuts[i]);
        fault(of->start, how);
        csn_status st = run_counted("echo one; echo two", &r);
        check_cut(st, r);
        unknown += st < 0 || r->exit_code != 0 || r->truncated;
        csn_exec_result_free(r);
        done += 1;
        assert_true(runs() <= done); /* never twice */
    }
    assert_true(unknown >= 5);
    no_fault();
    csn_exec_result *r = NULL;
    assert_int_equal(run_counted("true", &r),
                     CSN_OK); /* and the sandbox is as good as before */
    assert_int_equal(r->exit_code, 0);
    csn_exec_result_free(r);
}

static void refusals_before_and_after(void **state)
{
    size_t total = 0;

    (void)state;
    ready();
    for (const refusal *c = of->refusals; c->how; c++) {
        csn_exec_result *r = NULL;

        fault(of->start, c->how);
        csn_status st = run_counted("true", &r);
        if (st != c->want)
            print_message("%s: %s\n", c->how, csn_status_name(st));
        assert_int_equal(st, c->want);
        assert_null(r);
        assert_int_equal(count(proxy_port, "/_fault", of->start_seen), 1);
        total += c->runs;
        for (int wait = 0; runs() < total && wait < 3000; wait++)
            csn_test_nap(20); /* the double runs it while we were told otherwise */
        assert_int_equal(runs(), total);
    }
}

static void too_many_requests_are_waited_out(void **state)
{
    csn_exec_result *r = NULL;

    (void)state;
    ready();
    fault(of->start, "\"mode\":\"status\",\"status\":429,\"retryAfter\":1,\"times\":2");
    assert_int_equal(run_counted("true", &r), CSN_OK);
    assert_int_equal(r->exit_code, 0);
    assert_int_equal(runs(), 1);
    csn_exec_result_free(r);
}

static void nothing_hangs_beyond_its_deadline(void **state)
{
    static const char *const rules[] = {
        "\"mode\":\"hang\"",
        "\"mode\":\"slow\",\"delay\":20000",
    };
    uint64_t start = csn_now_ns();

    (void)state;
    ready();
    for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
        csn_exec_result *r = NULL;
        fault(of->start, rules[i]);
        assert_int_equal(csn_sh(sb, "true", CSN_OPTS(csn_exec_opts, .timeout_ms = 300), &r, E),
                         CSN_OK);
        assert_true(r->timed_out && r->exit_code == -1 && r->failed);
        csn_exec_result_free(r);
    }
    assert_true(csn_now_ns() - start < LONG_MS * 1000000ull);
}

static void *close_later(void *arg)
{
    while (count(proxy_port, "/_fault", "hits") < 1) /* it hangs */
        csn_test_nap(10);
    (void)csn_destroy(arg, NULL);
    return NULL;
}

static void destroy_ends_a_call_that_hangs(void **state)
{
    csn_exec_result *r = NULL;
    pthread_t t;

    (void)state;
    ready();
    fault(of->start, "\"mode\":\"hang\",\"times\":100");
    assert_int_equal(pthread_create(&t, NULL, close_later, sb), 0);
    csn_status st = csn_sh(sb, "true", CSN_OPTS(csn_exec_opts, .timeout_ms = 600000), &r, E);
    pthread_join(t, NULL);
    assert_true(st == CSN_OK ? r->interrupted : st == CSN_CANCELLED);
    csn_exec_result_free(r);
    assert_int_equal(count(proxy_port, "/_fault", "hits"), 1); /* nothing to kill: it is gone */
}

static void *hopeless(void *arg)
{
    csn_status *st = arg;
    csn_exec_result *r = NULL;

    *st = csn_sh(sb, "true", NULL, &r, NULL);
    csn_exec_result_free(r);
    return NULL;
}

#define THREADS 64

static void first_calls(csn_status *st)
{
    pthread_t t[THREADS];

    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&t[i], NULL, hopeless, &st[i]), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(t[i], NULL);
}

static void one_create_for_sixty_four_first_calls(void **state)
{
    csn_status st[THREADS];

    (void)state;
    open_sandbox(0, 0);
    assert_int_equal(count(double_port, "/_double/counts", of->create_seen), 0);
    first_calls(st);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(st[i], CSN_OK);
    assert_int_equal(count(double_port, "/_double/counts", of->create_seen), 1);
}

static void failed_create_is_shared_and_forgotten(void **state)
{
    csn_status st[THREADS];
    csn_exec_result *r = NULL;

    (void)state;
    open_sandbox(0, 0);
    fault(of->create, "\"mode\":\"status-after\",\"status\":500,\"times\":1000");
    first_calls(st);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(st[i], CSN_UNAVAILABLE);
    /* those who came together fail together: far fewer tries than callers */
    int tries = count(proxy_port, "/_fault", "hits");
    assert_true(tries >= 1 && tries < THREADS / 2);
    /* and what the server made before it failed to say so is not left behind */
    assert_int_equal(count(double_port, "/_double/counts", of->delete_seen), tries);
    no_fault();
    assert_int_equal(csn_sh(sb, "true", NULL, &r, E), CSN_OK);
    csn_exec_result_free(r);
}

static void refused_key_names_the_variable(void **state)
{
    csn_exec_result *r = NULL;
    csn_sandbox *none = NULL;

    (void)state;
    open_sandbox(0, 0);
    fault(of->create, "\"mode\":\"status\",\"status\":401");
    assert_int_equal(csn_sh(sb, "true", NULL, &r, E), CSN_AUTH);
    assert_non_null(strstr(csn_error_hint(err), of->key));
    unsetenv(of->key);
    csn_config c = {.size = sizeof(c), .backend = of->name};
    assert_int_equal(csn_open(&c, &none, E), CSN_AUTH);
    assert_non_null(strstr(csn_error_hint(err), of->key));
    setenv(of->key, "k", 1);
}

/* Only where a sandbox outlives its machine. */
static void ended_session_is_replaced_once(void **state)
{
    csn_exec_result *r = NULL;

    (void)state;
    if (strcmp(of->name, "vercel") != 0) {
        print_message("sandboxes of '%s' end with their machine\n", of->name);
        skip();
    }
    ready_with(CSN_OPEN_DETACHED);
    fault(of->start, "\"mode\":\"status\",\"status\":410");
    assert_int_equal(run_counted("true", &r), CSN_OK);
    assert_int_equal(r->exit_code, 0);
    csn_exec_result_free(r);
    assert_int_equal(runs(), 1);
    assert_int_equal(count(proxy_port, "/_fault", of->start_seen), 2);
    fault(of->start, "\"mode\":\"status\",\"status\":410,\"times\":2");
    assert_int_equal(run_counted("true", &r), CSN_GONE);
    assert_int_equal(count(proxy_port, "/_fault", of->start_seen), 2);
    assert_int_equal(runs(), 1);
    no_fault();
    assert_int_equal(csn_destroy(sb, E), CSN_OK);
}

/* One that was opened by itself is over with its session: nothing is made in its place. */
static void ended_sandbox_is_gone(void **state)
{
    csn_exec_result *r = NULL;
    csn_status st = CSN_OK;

    (void)state;
    open_sandbox(0, 2000);
    for (int i = 0; st == CSN_OK && i < 1000; i++) {
        st = csn_sh(sb, "sleep 0.1", NULL, &r, E);
        csn_exec_result_free(r);
        r = NULL;
    }
    assert_int_equal(st, CSN_GONE);
    assert_int_equal(count(double_port, "/_double/counts", of->create_seen), 1);
}

/* The state of the only sandbox in the list; "": it is empty. */
static void has_state(const char *want)
{
    csn_sandbox_list *l = NULL;

    assert_int_equal(csn_sandboxes(&l, E), CSN_OK);
    assert_int_equal(l->count, want[0] ? 1 : 0);
    if (l->count > 0)
        assert_string_equal(l->items[0].state, want);
    csn_sandbox_list_free(l);
}

/* Another key is told the same as one whose sandbox has ended. */
static void sandbox_that_is_not_found_is_kept(void **state)
{
    (void)state;
    ready_with(CSN_OPEN_DETACHED);
    char *id = strdup(csn_id(sb));
    csn_close(sb);
    sb = NULL;
    assert_int_equal(csn_forget(id, E), CSN_CONFLICT);
    fault("GET .*sandboxes/", "\"mode\":\"status\",\"status\":404,\"times\":1000");
    assert_int_equal(csn_connect(id, &sb, E), CSN_NOT_FOUND);
    assert_non_null(strstr(csn_error_message(err), of->key));
    assert_non_null(strstr(csn_error_hint(err), "--forget"));
    has_state("unknown");
    no_fault();
    has_state("running");
    fault("(GET|DELETE) .*sandboxes/", "\"mode\":\"status\",\"status\":404,\"times\":1000");
    assert_int_equal(csn_destroy_id(id, E), CSN_UNAVAILABLE);
    assert_non_null(strstr(csn_error_message(err), of->key));
    char *seen = ask(proxy_port, "/_fault", NULL);
    assert_non_null(strstr(seen, "\"DELETE ")); /* it was tried */
    free(seen);
    has_state("unknown");
    no_fault();
    assert_int_equal(csn_destroy_id(id, E), CSN_OK);
    has_state("");
    ready_with(CSN_OPEN_DETACHED);
    fault("GET .*sandboxes/", "\"mode\":\"status\",\"status\":404,\"times\":1000");
    assert_int_equal(csn_forget(csn_id(sb), E), CSN_OK);
    has_state("");
    no_fault();
    assert_int_equal(csn_destroy(sb, E), CSN_OK);
    free(id);
}

static size_t resident_kb(void)
{
    unsigned long pages = 0, resident = 0;
    FILE *f = fopen("/proc/self/statm", "re");

    if (f && fscanf(f, "%lu %lu", &pages, &resident) != 2)
        resident = 0;
    if (f)
        fclose(f);
    return resident * (size_t)sysconf(_SC_PAGESIZE) / 1024;
}

static void run_many(int n)
{
    for (int i = 0; i < n; i++) {
        csn_exec_result *r = NULL;
        assert_int_equal(csn_exec(sb, (const char *const[]){"true", NULL}, NULL, &r, E),
                         CSN_OK);
        csn_exec_result_free(r);
    }
}

static void nothing_grows(void **state)
{
    (void)state;
    ready();
    run_many(50);
    size_t kb = resident_kb(), fds = csn_test_fd_count();
    run_many(300);
    assert_true(csn_test_fd_count() <= fds + 2);
#ifndef __SANITIZE_ADDRESS__ /* its quarantine grows on purpose */
    assert_true(resident_kb() <= kb + 2048);
#else
    (void)kb;
#endif
}

static const provider *find_provider(const char *name)
{
    for (size_t i = 0; i < sizeof(providers) / sizeof(providers[0]); i++)
        if (strcmp(providers[i].name, name) == 0)
            return &providers[i];
    return NULL;
}

int main(int argc, char **argv)
{
#define T(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(cut_anywhere_is_an_unknown_end),        T(refusals_before_and_after),
        T(too_many_requests_are_waited_out),      T(nothing_hangs_beyond_its_deadline),
        T(destroy_ends_a_call_that_hangs),        T(one_create_for_sixty_four_first_calls),
        T(failed_create_is_shared_and_forgotten), T(refused_key_names_the_variable),
        T(ended_session_is_replaced_once),        T(ended_sandbox_is_gone),
        T(sandbox_that_is_not_found_is_kept),     T(nothing_grows),
    };

    of = find_provider(argc > 1 ? argv[1] : "");
    if (!of) {
        fprintf(stderr, "usage: remote_faults PROVIDER\n");
        return 2;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
