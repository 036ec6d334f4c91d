/* faults.c: the e2b backend against a line that breaks in every way: through the fault proxy to
 * the double.
 *
 * Each test has its own double and proxy. What is shown: a command is run at most once,
 * whatever happens; a stream that breaks off is an unknown end, never a success; nothing hangs
 * beyond its deadline; one create, however many ask first. Times are compared only with limits
 * that a busy machine keeps. */
#include <pthread.h>
#include <unistd.h>

#include "remote/room.h"

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

#define START "POST /process"

/* ---- tests ------------------------------------------------------------------------------ */

static void cut_anywhere_is_an_unknown_end(void **state)
{
    static const int places[] = {0, 1, 4, 5, 20, 38, 39, 60, 90, 120};
    size_t done = 0;

    (void)state;
    ready();
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        csn_exec_result *r = NULL;
        char rule[128];

        snprintf(rule, sizeof(rule), "{\"match\":\"" START "\",\"mode\":\"cut\",\"bytes\":%d}",
                 places[i]);
        fault(rule);
        csn_status st = run_counted("echo one; echo two", &r);
        if (st == CSN_OK && r->exit_code == 0) { /* it was found again before it ended */
            assert_true(r->truncated);
            assert_non_null(strstr(r->err.data, "is missing"));
        } else if (st == CSN_OK) { /* it was seen to start */
            assert_int_equal(r->exit_code, -1);
            assert_true(r->failed && r->truncated);
            assert_null(r->signal);
            assert_non_null(strstr(r->err.data, "not known"));
        } else {
            assert_true(st == CSN_IO || st == CSN_UNAVAILABLE);
            assert_non_null(strstr(csn_error_hint(err), "may have started"));
        }
        csn_exec_result_free(r);
        done += 1;
        assert_true(runs() <= done); /* never twice */
    }
    fault("{\"match\":\"$none\",\"mode\":\"drop\",\"times\":0}");
    csn_exec_result *r = NULL;
    assert_int_equal(run_counted("true", &r),
                     CSN_OK); /* and the sandbox is as good as before */
    assert_int_equal(r->exit_code, 0);
    csn_exec_result_free(r);
}

static void refusals_before_and_after(void **state)
{
    static const struct {
        const char *rule;
        csn_status want;
        size_t runs; /* of the command */
    } cases[] = {
        {"{\"match\":\"" START "\",\"mode\":\"status\",\"status\":503}", CSN_UNAVAILABLE, 0},
        {"{\"match\":\"" START "\",\"mode\":\"status\",\"status\":500}", CSN_UNAVAILABLE, 0},
        {"{\"match\":\"" START "\",\"mode\":\"status-after\",\"status\":500}", CSN_UNAVAILABLE,
         1},
        {"{\"match\":\"" START "\",\"mode\":\"drop\"}", CSN_UNAVAILABLE, 0},
        {"{\"match\":\"" START "\",\"mode\":\"drop-after\"}", CSN_UNAVAILABLE, 1},
        {"{\"match\":\"" START "\",\"mode\":\"status\",\"status\":502}", CSN_GONE, 0},
        {"{\"match\":\"" START "\",\"mode\":\"status\",\"status\":410}", CSN_GONE, 0},
        {"{\"match\":\"" START "\",\"mode\":\"status\",\"status\":401}", CSN_AUTH, 0},
        {"{\"match\":\"" START "\",\"mode\":\"json\"}", CSN_TOO_LARGE, 1},
        {"{\"match\":\"" START "\",\"mode\":\"length\"}", CSN_TOO_LARGE, 1},
        {"{\"match\":\"" START "\",\"mode\":\"endless\"}", CSN_TOO_LARGE, 1},
    };
    size_t total = 0;

    (void)state;
    ready();
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        csn_exec_result *r = NULL;

        fault(cases[i].rule);
        csn_status st = run_counted("true", &r);
        if (st != cases[i].want)
            print_message("%s: %s\n", cases[i].rule, csn_status_name(st));
        assert_int_equal(st, cases[i].want);
        assert_null(r);
        assert_int_equal(count(proxy_port, "/_fault", "POST /process.Process/Start"), 1);
        total += cases[i].runs;
        for (int wait = 0; runs() < total && wait < 200; wait++)
            csn_test_nap(20); /* the double runs it while we were told otherwise */
        assert_int_equal(runs(), total);
    }
}

static void too_many_requests_are_waited_out(void **state)
{
    csn_exec_result *r = NULL;

    (void)state;
    ready();
    fault("{\"match\":\"" START
          "\",\"mode\":\"status\",\"status\":429,\"retryAfter\":1,\"times\":2}");
    assert_int_equal(run_counted("true", &r), CSN_OK);
    assert_int_equal(r->exit_code, 0);
    assert_int_equal(runs(), 1);
    csn_exec_result_free(r);
}

static void nothing_hangs_beyond_its_deadline(void **state)
{
    static const char *const rules[] = {
        "{\"match\":\"" START "\",\"mode\":\"hang\"}",
        "{\"match\":\"" START "\",\"mode\":\"slow\",\"delay\":20000}",
    };
    uint64_t start = csn_now_ns();

    (void)state;
    ready();
    for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
        csn_exec_result *r = NULL;
        fault(rules[i]);
        assert_int_equal(csn_sh(sb, "true", CSN_OPTS(csn_exec_opts, .timeout_ms = 300), &r, E),
                         CSN_OK);
        assert_true(r->timed_out && r->exit_code == -1 && r->failed);
        csn_exec_result_free(r);
    }
    assert_true(csn_now_ns() - start < LONG_MS * 1000000ull);
}

static void *close_later(void *arg)
{
    csn_test_nap(200);
    (void)csn_destroy(arg, NULL);
    return NULL;
}

static void destroy_ends_a_call_that_hangs(void **state)
{
    csn_exec_result *r = NULL;
    pthread_t t;

    (void)state;
    ready();
    fault("{\"match\":\"" START "\",\"mode\":\"hang\",\"times\":100}");
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
    open_sandbox();
    assert_int_equal(count(double_port, "/_double/counts", "POST /v2/sandboxes"), 0);
    first_calls(st);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(st[i], CSN_OK);
    assert_int_equal(count(double_port, "/_double/counts", "POST /v2/sandboxes"), 1);
}

static void failed_create_is_shared_and_forgotten(void **state)
{
    csn_status st[THREADS];
    csn_exec_result *r = NULL;

    (void)state;
    open_sandbox();
    fault("{\"match\":\"POST /v2/sandboxes$\",\"mode\":\"status-after\",\"status\":500,"
          "\"times\":1000}");
    first_calls(st);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(st[i], CSN_UNAVAILABLE);
    /* those who came together fail together: far fewer tries than callers */
    int tries = count(proxy_port, "/_fault", "hits");
    assert_true(tries >= 1 && tries < THREADS / 2);
    /* and what the server made before it failed to say so is not left behind */
    assert_int_equal(count(double_port, "/_double/counts", "DELETE /sandboxes/ID"), tries);
    fault("{\"match\":\"$none\",\"mode\":\"drop\",\"times\":0}");
    assert_int_equal(csn_sh(sb, "true", NULL, &r, E), CSN_OK);
    csn_exec_result_free(r);
}

static void refused_key_names_the_variable(void **state)
{
    csn_exec_result *r = NULL;
    csn_sandbox *none = NULL;

    (void)state;
    open_sandbox();
    fault("{\"match\":\"POST /v2/sandboxes$\",\"mode\":\"status\",\"status\":401}");
    assert_int_equal(csn_sh(sb, "true", NULL, &r, E), CSN_AUTH);
    assert_non_null(strstr(csn_error_hint(err), "E2B_API_KEY"));
    unsetenv("E2B_API_KEY");
    csn_config c = {.size = sizeof(c), .backend = "e2b"};
    assert_int_equal(csn_open(&c, &none, E), CSN_AUTH);
    assert_non_null(strstr(csn_error_message(err), "E2B_API_KEY"));
    setenv("E2B_API_KEY", "k", 1);
}

int main(void)
{
#define T(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(cut_anywhere_is_an_unknown_end),        T(refusals_before_and_after),
        T(too_many_requests_are_waited_out),      T(nothing_hangs_beyond_its_deadline),
        T(destroy_ends_a_call_that_hangs),        T(one_create_for_sixty_four_first_calls),
        T(failed_create_is_shared_and_forgotten), T(refused_key_names_the_variable),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
