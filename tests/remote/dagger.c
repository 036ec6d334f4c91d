/* dagger.c: the dagger backend over a line that breaks in every way, and what only this backend
 * does: one state after another, sessions of its own, engines of two ages.
 *
 * Each test has its own double and fault proxy. What is shown: a command is run at most once,
 * whatever happens; an answer that breaks off is an unknown end and leaves no trace in the
 * sandbox; nothing hangs beyond its deadline; one create, however many ask first; no update is
 * lost among threads and processes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "caisson/caisson.h"
#include "doubles/double.h"
#include "remote/http.h"
#include "remote/line.h"
#include "support/support.h"

#define TOKEN "a token"

static void set_port(int port)
{
    char text[16];

    snprintf(text, sizeof(text), "%d", port);
    setenv("DAGGER_SESSION_PORT", text, 1);
    setenv("DAGGER_SESSION_TOKEN", TOKEN, 1);
}

static int start(const char *more, const char *value)
{
    char to[16];

    dir = csn_test_tmpdir();
    ws = csn_test_join(dir, "ws");
    csn_test_mkdir(ws);
    setenv("XDG_STATE_HOME", dir, 1);
    setenv("XDG_RUNTIME_DIR", dir, 1);
    unsetenv("CAISSON_BACKEND");
    unsetenv("_EXPERIMENTAL_DAGGER_CLI_BIN");
    const char *const args[] = {"--root", ws, "--token", TOKEN, more, value, NULL};
    double_port = csn_double_start("dagger.mjs", args);
    snprintf(to, sizeof(to), "%d", double_port);
    const char *const through[] = {"--to", to, NULL};
    proxy_port = double_port < 0 ? -1 : csn_double_start("fault.mjs", through);
    if (proxy_port < 0)
        return 0; /* the test says so */
    set_port(proxy_port);
    return csn_http_new("faults", NULL, &http, NULL) == CSN_OK ? 0 : -1;
}

static int setup(void **state)
{
    (void)state;
    return start(NULL, NULL);
}

static int setup_old(void **state)
{
    (void)state;
    return start("--old", "yes");
}

static void fault(const char *rule)
{
    free(ask(proxy_port, "/_fault", rule));
}

static void no_fault(void)
{
    fault("{\"match\":\"$none\",\"mode\":\"drop\",\"times\":0}");
}

static int execs(void)
{
    return count(double_port, "/_double/counts", "exec");
}

static void open_with(uint32_t flags)
{
    need_double();
    csn_config c = {.size = sizeof(c), .backend = "dagger", .audit = "none", .flags = flags};
    assert_int_equal(csn_open(&c, &sb, E), CSN_OK);
}

/* The command's result; it must have run. */
static csn_exec_result *run(const char *command)
{
    csn_exec_result *r = NULL;
    csn_status st = csn_sh(sb, command, CSN_OPTS(csn_exec_opts, .timeout_ms = LONG_MS), &r, E);

    if (st < 0)
        print_message("%s: %s\n", command, csn_error_message(err));
    assert_int_equal(st, CSN_OK);
    return r;
}

static void prints(const char *command, const char *want)
{
    csn_exec_result *r = run(command);

    assert_string_equal(r->out.data, want);
    csn_exec_result_free(r);
}

static void ready(void)
{
    open_with(0);
    prints("echo here", "here\n");
}

#define EXEC "\"match\":\"POST /query\",\"body\":\"CAISSON_TURN\""

/* ---- the line --------------------------------------------------------------------------- */

static void cut_anywhere_is_an_unknown_end_without_a_trace(void **state)
{
    static const int places[] = {0, 1, 9, 30, 80, 120};

    (void)state;
    ready();
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        csn_exec_result *r = NULL;
        int before = execs();
        char rule[128];

        snprintf(rule, sizeof(rule), "{" EXEC ",\"mode\":\"cut\",\"bytes\":%d}", places[i]);
        fault(rule);
        csn_status st = csn_sh(sb, "echo x >>trace; echo one", NULL, &r, E);
        if (st != CSN_IO && st != CSN_UNAVAILABLE)
            print_message("at %d: %s\n", places[i], csn_status_name(st));
        assert_true(st == CSN_IO || st == CSN_UNAVAILABLE);
        assert_non_null(strstr(csn_error_hint(err), "may have started"));
        assert_null(r);
        assert_true(execs() <= before + 1); /* never twice */
    }
    no_fault();
    prints("cat trace || echo none", "none\n");
}

static void refusals_before_and_after(void **state)
{
    static const struct {
        const char *rule;
        csn_status want;
        int ran;
    } cases[] = {
        {"{" EXEC ",\"mode\":\"status\",\"status\":503}", CSN_UNAVAILABLE, 0},
        {"{" EXEC ",\"mode\":\"status\",\"status\":500}", CSN_UNAVAILABLE, 0},
        {"{" EXEC ",\"mode\":\"status\",\"status\":502}", CSN_UNAVAILABLE, 0},
        {"{" EXEC ",\"mode\":\"status-after\",\"status\":500}", CSN_UNAVAILABLE, 1},
        {"{" EXEC ",\"mode\":\"drop\"}", CSN_UNAVAILABLE, 0},
        {"{" EXEC ",\"mode\":\"drop-after\"}", CSN_UNAVAILABLE, 1},
        {"{" EXEC ",\"mode\":\"status\",\"status\":410}", CSN_GONE, 0},
        {"{" EXEC ",\"mode\":\"status\",\"status\":401}", CSN_AUTH, 0},
        {"{" EXEC ",\"mode\":\"json\"}", CSN_IO, 1},
        {"{" EXEC ",\"mode\":\"length\"}", CSN_IO, 1},
        {"{" EXEC ",\"mode\":\"endless\"}", CSN_TOO_LARGE, 1},
    };

    (void)state;
    ready();
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        csn_exec_result *r = NULL;
        int before = execs();

        fault(cases[i].rule);
        csn_status st = csn_sh(sb, "echo x >>trace", NULL, &r, E);
        if (st != cases[i].want)
            print_message("%s: %s\n", cases[i].rule, csn_status_name(st));
        assert_int_equal(st, cases[i].want);
        assert_null(r);
        assert_int_equal(count(proxy_port, "/_fault", "POST /query"), 1);
        for (int wait = 0; execs() < before + cases[i].ran && wait < 3000; wait++)
            csn_test_nap(20);
        assert_int_equal(execs(), before + cases[i].ran);
    }
    no_fault();
    prints("cat trace || echo none", "none\n");
}

static void too_many_requests_are_waited_out(void **state)
{
    (void)state;
    ready();
    int before = execs();
    fault("{" EXEC ",\"mode\":\"status\",\"status\":429,\"retryAfter\":1,\"times\":2}");
    prints("echo ran", "ran\n");
    assert_int_equal(execs(), before + 1);
}

static void nothing_hangs_beyond_its_deadline(void **state)
{
    csn_exec_result *r = NULL;
    uint64_t begun = csn_now_ns();

    (void)state;
    ready();
    fault("{" EXEC ",\"mode\":\"hang\"}");
    assert_int_equal(csn_sh(sb, "true", CSN_OPTS(csn_exec_opts, .timeout_ms = 300), &r, E),
                     CSN_OK);
    assert_true(r->timed_out && r->exit_code == -1 && r->failed);
    csn_exec_result_free(r);
    assert_true(csn_now_ns() - begun < LONG_MS * 1000000ull);
}

static void *destroy_later(void *arg)
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
    fault("{" EXEC ",\"mode\":\"hang\",\"times\":100}");
    assert_int_equal(pthread_create(&t, NULL, destroy_later, sb), 0);
    csn_status st = csn_sh(sb, "true", CSN_OPTS(csn_exec_opts, .timeout_ms = 600000), &r, E);
    pthread_join(t, NULL);
    assert_true(st == CSN_OK ? r->interrupted : st == CSN_CANCELLED);
    csn_exec_result_free(r);
}

/* ---- making ----------------------------------------------------------------------------- */

#define THREADS  64
#define QUEUE_MS (5u * LONG_MS) /* they run one after the other */

static void *first_call(void *arg)
{
    csn_exec_result *r = NULL;

    *(csn_status *)arg =
        csn_sh(sb, "true", CSN_OPTS(csn_exec_opts, .timeout_ms = QUEUE_MS), &r, NULL);
    csn_exec_result_free(r);
    return NULL;
}

static void first_calls(csn_status *st)
{
    pthread_t t[THREADS];

    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&t[i], NULL, first_call, &st[i]), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(t[i], NULL);
}

static void one_create_for_sixty_four_first_calls(void **state)
{
    csn_status st[THREADS];

    (void)state;
    open_with(0);
    assert_int_equal(count(double_port, "/_double/counts", "from"), 0);
    first_calls(st);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(st[i], CSN_OK);
    assert_int_equal(count(double_port, "/_double/counts", "from"), 1);
}

static void failed_create_is_shared_and_forgotten(void **state)
{
    csn_status st[THREADS];

    (void)state;
    open_with(0);
    fault("{\"match\":\"POST /query\",\"body\":\"from.address\",\"mode\":\"status-after\","
          "\"status\":500,\"times\":1000}");
    first_calls(st);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(st[i], CSN_UNAVAILABLE);
    int tries = count(proxy_port, "/_fault", "hits");
    assert_true(tries >= 1 && tries < THREADS / 2);
    no_fault();
    prints("echo there", "there\n");
}

static void refusals_say_what_to_do(void **state)
{
    csn_config c = {.size = sizeof(c), .backend = "dagger", .image = "no-such-image"};
    csn_exec_result *r = NULL;
    csn_sandbox *none = NULL;

    (void)state;
    open_with(0);
    setenv("DAGGER_SESSION_TOKEN", "another", 1);
    assert_int_equal(csn_sh(sb, "true", NULL, &r, E), CSN_AUTH);
    assert_non_null(strstr(csn_error_hint(err), "DAGGER_SESSION_TOKEN"));
    setenv("DAGGER_SESSION_TOKEN", TOKEN, 1);
    assert_int_equal(csn_open(&c, &none, E), CSN_OK);
    assert_int_equal(csn_sh(none, "true", NULL, &r, E), CSN_NOT_FOUND);
    assert_non_null(strstr(csn_error_message(err), "no-such-image"));
    csn_close(none);
    none = NULL;
    unsetenv("DAGGER_SESSION_TOKEN");
    assert_int_equal(csn_open(&c, &none, E), CSN_AUTH);
    assert_non_null(strstr(csn_error_message(err), "DAGGER_SESSION_TOKEN"));
    unsetenv("DAGGER_SESSION_PORT");
    setenv("PATH", "/nowhere", 1);
    assert_int_equal(csn_open(&c, &none, E), CSN_AUTH);
    assert_non_null(strstr(csn_error_hint(err), "DAGGER_SESSION_PORT"));
    setenv("PATH", "/usr/local/bin:/usr/bin:/bin", 1);
    assert_null(none);
}

/* ---- commands --------------------------------------------------------------------------- */

static void every_exit_code_and_its_files_are_kept(void **state)
{
    static const int codes[] = {0, 1, 99, 125, 127, 128, 129, 137, 139, 143, 191, 192, 255};

    (void)state;
    ready();
    for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
        char command[64], want[16];
        snprintf(command, sizeof(command), "echo %d >code; exit %d", codes[i], codes[i]);
        csn_exec_result *r = run(command);
        assert_int_equal(r->exit_code, codes[i]);
        assert_null(r->signal);
        csn_exec_result_free(r);
        snprintf(want, sizeof(want), "%d\n", codes[i]);
        prints("cat code", want);
    }
    csn_exec_result *r = run("echo killed >code; kill -9 $$");
    assert_int_equal(r->exit_code, -1);
    assert_string_equal(r->signal, "SIGKILL");
    csn_exec_result_free(r);
    prints("cat code", "killed\n");
}

/* The wrapper is killed with everything else: nobody knows how the command ended. */
static void command_that_kills_its_wrapper_has_an_unknown_end(void **state)
{
    (void)state;
    ready();
    csn_exec_result *r = run("echo x >trace; kill -9 -1; sleep 5");
    assert_int_equal(r->exit_code, -1);
    assert_true(r->failed);
    assert_non_null(strstr(r->err.data, "not known"));
    csn_exec_result_free(r);
    prints("cat trace || echo none", "none\n");
}

static void large_output_is_counted_and_kept_as_asked(void **state)
{
    csn_exec_result *r = NULL;
    csn_exec_opts o = {.size = sizeof(o), .timeout_ms = LONG_MS, .output_max = 10};

    (void)state;
    ready();
    const char *make = "head -c 5000000 /dev/zero; printf end; head -c 2000000 /dev/zero >&2";
    assert_int_equal(csn_sh(sb, make, &o, &r, E), CSN_OK);
    assert_int_equal(r->out.total, 5000003);
    assert_int_equal(r->err.total, 2000000);
    assert_int_equal(r->out.len, 10);
    csn_exec_result_free(r);
    o.flags = CSN_EXEC_KEEP_TAIL;
    assert_int_equal(csn_sh(sb, make, &o, &r, E), CSN_OK);
    assert_int_equal(r->out.total, 5000003);
    assert_memory_equal(r->out.data + 7, "end", 3);
    csn_exec_result_free(r);
    prints("ls -A /tmp | grep -c '^.caisson'", "1\n"); /* that of this command, no other */
}

/* An engine must not take one command for another. */
static void same_command_runs_again(void **state)
{
    (void)state;
    ready();
    for (int i = 1; i <= 3; i++) {
        char want[16];
        snprintf(want, sizeof(want), "%d\n", i);
        prints("echo x >>n; wc -l <n", want);
    }
}

static void engine_without_node_is_asked_otherwise(void **state)
{
    (void)state;
    ready();
    int before = execs();
    prints("echo x >>n; wc -l <n", "1\n");
    prints("echo x >>n; wc -l <n", "2\n");
    assert_int_equal(execs(), before + 2);
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

static void nothing_grows(void **state)
{
    (void)state;
    ready();
    for (int i = 0; i < 20; i++)
        prints("echo x", "x\n");
    size_t kb = resident_kb(), fds = csn_test_fd_count();
    for (int i = 0; i < 100; i++)
        prints("echo x", "x\n");
    assert_true(csn_test_fd_count() <= fds + 2);
#ifndef __SANITIZE_ADDRESS__ /* its quarantine grows on purpose */
    assert_true(resident_kb() <= kb + 2048);
#else
    (void)kb;
#endif
}

/* ---- threads and processes -------------------------------------------------------------- */

static void *append(void *arg)
{
    csn_exec_result *r = NULL;

    for (int i = 0; i < 3; i++) {
        *(csn_status *)arg = csn_sh(sb, "echo x >>lines",
                                    CSN_OPTS(csn_exec_opts, .timeout_ms = LONG_MS), &r, NULL);
        csn_exec_result_free(r);
        r = NULL;
    }
    return NULL;
}

static void no_thread_loses_what_another_wrote(void **state)
{
    pthread_t t[8];
    csn_status st[8];

    (void)state;
    ready();
    for (int i = 0; i < 8; i++)
        assert_int_equal(pthread_create(&t[i], NULL, append, &st[i]), 0);
    for (int i = 0; i < 8; i++) {
        pthread_join(t[i], NULL);
        assert_int_equal(st[i], CSN_OK);
    }
    prints("wc -l <lines", "24\n");
}

static pid_t append_elsewhere(const char *id)
{
    pid_t pid = fork();

    if (pid != 0)
        return pid;
    csn_status st = CSN_OK;
    sb = NULL;
    if (csn_connect(id, &sb, NULL) < 0)
        _exit(1);
    append(&st);
    _exit(st == CSN_OK ? 0 : 2);
}

static void no_process_loses_what_another_wrote(void **state)
{
    pid_t pids[4];

    (void)state;
    open_with(CSN_OPEN_DETACHED);
    prints("echo x >>lines; echo begun", "begun\n");
    for (int i = 0; i < 4; i++)
        pids[i] = append_elsewhere(csn_id(sb));
    for (int i = 0; i < 4; i++) {
        int status = -1;
        assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
        assert_int_equal(status, 0);
    }
    prints("wc -l <lines", "13\n");
    assert_int_equal(csn_destroy(sb, E), CSN_OK);
}

/* ---- sessions --------------------------------------------------------------------------- */

/* A program that does what `dagger session` does; notes its number and its end. */
static void fake_program(void)
{
    char *path = csn_test_join(dir, "dagger"), *pid = csn_test_join(dir, "pid");
    char *text = csn_test_format("#!/bin/sh\n[ \"$1\" = session ] || exit 9\necho $$ >%s\n"
                                 "exec node %s/dagger.mjs --session yes --token own\n",
                                 pid, getenv("CSN_TEST_DOUBLES"));

    csn_test_put(path, text, strlen(text));
    assert_int_equal(chmod(path, 0755), 0);
    setenv("_EXPERIMENTAL_DAGGER_CLI_BIN", path, 1);
    unsetenv("DAGGER_SESSION_PORT");
    unsetenv("DAGGER_SESSION_TOKEN");
    free(path);
    free(pid);
    free(text);
}

static pid_t session_pid(void)
{
    char *path = csn_test_join(dir, "pid"), *text = csn_test_get(path, NULL);
    pid_t pid = (pid_t)strtol(text, NULL, 10);

    free(path);
    free(text);
    assert_true(pid > 0);
    return pid;
}

static void session_of_our_own_ends_with_the_sandbox(void **state)
{
    (void)state;
    need_double();
    fake_program();
    open_with(0);
    prints("echo x >f; cat f", "x\n");
    pid_t pid = session_pid();
    assert_true(csn_test_alive(pid));
    csn_close(sb);
    sb = NULL;
    assert_true(csn_test_wait_dead(pid));
}

static void session_of_a_killed_owner_ends_too(void **state)
{
    (void)state;
    need_double();
    fake_program();
    pid_t child = fork();
    if (child == 0) {
        open_with(0);
        prints("echo there", "there\n");
        raise(SIGKILL);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status));
    assert_true(csn_test_wait_dead(session_pid()));
}

static void session_of_a_detached_sandbox_lives_until_destroy(void **state)
{
    (void)state;
    need_double();
    fake_program();
    open_with(CSN_OPEN_DETACHED);
    prints("echo kept >f; echo ok", "ok\n");
    char *id = strdup(csn_id(sb));
    csn_close(sb);
    sb = NULL;
    pid_t pid = session_pid();
    for (int i = 0; i < 2; i++) {
        assert_int_equal(csn_connect(id, &sb, E), CSN_OK);
        prints("cat f", "kept\n");
        csn_close(sb);
        sb = NULL;
    }
    assert_true(csn_test_alive(pid));
    assert_int_equal(csn_connect(id, &sb, E), CSN_OK);
    assert_int_equal(csn_destroy(sb, E), CSN_OK);
    assert_true(csn_test_wait_dead(pid));
    free(id);
}

static void program_that_says_nothing_useful_is_told_of(void **state)
{
    csn_exec_result *r = NULL;
    char *path;

    (void)state;
    need_double();
    fake_program();
    path = csn_test_join(dir, "dagger");
    csn_test_put(path, "#!/bin/sh\necho no engine\n", 25);
    open_with(0);
    assert_int_equal(csn_sh(sb, "true", NULL, &r, E), CSN_UNAVAILABLE);
    csn_test_put(path, "#!/bin/sh\nexit 1\n", 17);
    assert_int_equal(csn_sh(sb, "true", NULL, &r, E), CSN_UNAVAILABLE);
    assert_non_null(strstr(csn_error_hint(err), "by hand"));
    free(path);
}

int main(void)
{
#define T(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(cut_anywhere_is_an_unknown_end_without_a_trace),
        T(refusals_before_and_after),
        T(too_many_requests_are_waited_out),
        T(nothing_hangs_beyond_its_deadline),
        T(destroy_ends_a_call_that_hangs),
        T(one_create_for_sixty_four_first_calls),
        T(failed_create_is_shared_and_forgotten),
        T(refusals_say_what_to_do),
        T(every_exit_code_and_its_files_are_kept),
        T(command_that_kills_its_wrapper_has_an_unknown_end),
        T(large_output_is_counted_and_kept_as_asked),
        T(same_command_runs_again),
        cmocka_unit_test_setup_teardown(engine_without_node_is_asked_otherwise, setup_old,
                                        teardown),
        T(nothing_grows),
        T(no_thread_loses_what_another_wrote),
        T(no_process_loses_what_another_wrote),
        T(session_of_our_own_ends_with_the_sandbox),
        T(session_of_a_killed_owner_ends_too),
        T(session_of_a_detached_sandbox_lives_until_destroy),
        T(program_that_says_nothing_useful_is_told_of),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
