/* session.c: persistent shells: what one command leaves (directory, variables, functions) the
 * next one finds; restart begins afresh; nothing a command does can hang or confuse the shell.
 */
#include "conformance/conformance.h"

#include <pthread.h>

static csn_exec_result *in(csn_fx *f, const char *session, const char *command)
{
    csn_exec_result *r = NULL;

    ok(csn_sh(f->sb, command, EXEC(.session = session, .timeout_ms = 60000), &r, E));
    return r;
}

/* Runs it and compares its stdout. */
static void says_in(csn_fx *f, const char *session, const char *command, const char *want)
{
    AUTO(csn_exec_result, r);

    r = in(f, session, command);
    if (strcmp(r->out.data, want) != 0)
        print_message("%s\n  stderr: %s\n", command, r->err.data);
    assert_string_equal(r->out.data, want);
    assert_int_equal(r->timed_out, 0);
}

/* S2: restart?; a shell that lives between calls */
static void session_keeps_directory_variables_and_functions(csn_fx *f)
{
    says_in(f, "a", "mkdir -p sub && cd sub && echo x > file", "");
    says_in(f, "a", "V='kept value'; export W=exported; greet() { echo \"hi $1\"; }", "");
    says_in(f, "a", "cat file; echo $V; env | grep ^W=; greet you",
            "x\nkept value\nW=exported\nhi you\n");
    /* calls without the session know nothing of it */
    assert_string_equal(csn_fx_out(f, "echo \"[$V]\"; test -e file || echo top"), "[]\ntop\n");
}

static void session_keeps_streams_and_exit_codes_apart(csn_fx *f)
{
    AUTO(csn_exec_result, r);

    r = in(f, "a", "echo out; echo err >&2; false");
    assert_string_equal(r->out.data, "out\n");
    assert_string_equal(r->err.data, "err\n");
    assert_int_equal(r->exit_code, 1);
    assert_int_equal(r->failed, 1);
    csn_exec_result_free(r);
    r = in(f, "a", "(exit 42)");
    assert_int_equal(r->exit_code, 42);
}

static void sessions_are_independent(csn_fx *f)
{
    says_in(f, "one", "V=1", "");
    says_in(f, "two", "V=2", "");
    says_in(f, "one", "echo $V", "1\n");
    says_in(f, "two", "echo $V", "2\n");
}

static void restart_begins_afresh(csn_fx *f)
{
    AUTO(csn_exec_result, r);

    says_in(f, "a", "V=old; mkdir -p d; cd d", "");
    ok(csn_sh(f->sb, "echo \"[$V]\"; test -d d && echo top",
              EXEC(.session = "a", .flags = CSN_EXEC_RESTART), &r, E));
    assert_string_equal(r->out.data, "[]\ntop\n");
    says_in(f, "a", "echo again", "again\n");
}

static void restart_ends_what_the_old_shell_ran(csn_fx *f)
{
    AUTO(csn_exec_result, r);

    says_in(f, "a", "sleep 1000 & echo $! > pid", "");
    pid_t pid = csn_fx_pid(f, "pid");
    assert_true(csn_test_alive(pid));
    ok(csn_sh(f->sb, "true", EXEC(.session = "a", .flags = CSN_EXEC_RESTART), &r, E));
    assert_true(csn_test_wait_dead(pid));
}

static void exit_ends_the_shell_and_the_next_call_has_a_new_one(csn_fx *f)
{
    AUTO(csn_exec_result, r);

    says_in(f, "a", "V=1", "");
    r = in(f, "a", "echo bye; exit 5");
    assert_string_equal(r->out.data, "bye\n");
    assert_int_equal(r->exit_code, 5);
    says_in(f, "a", "echo \"[$V]\"", "[]\n");
}

static void shell_that_is_killed_is_replaced(csn_fx *f)
{
    AUTO(csn_exec_result, r);

    r = in(f, "a", "V=1; kill -KILL $$; sleep 5");
    assert_int_equal(r->failed, 1);
    says_in(f, "a", "echo \"[$V]\"", "[]\n");
}

/* Text that closes a quote, a here-document or a line is not the shell's end. */
static void odd_commands_do_not_confuse_it(csn_fx *f)
{
    AUTO(csn_exec_result, bad);

    says_in(f, "a", "cat <<EOF\nline 1\nEOF\necho after", "line 1\nafter\n");
    says_in(f, "a", "printf 'no newline'", "no newline");
    says_in(f, "a", "# only a comment", "");
    says_in(f, "a", "", "");
    says_in(f, "a", "echo 'multi\nline'", "multi\nline\n");
    bad = in(f, "a", "echo 'unbalanced");
    assert_int_not_equal(bad->exit_code, 0);
    says_in(f, "a", "echo fine", "fine\n");
    csn_exec_result_free(bad);
    bad = in(f, "a", "if true; then");
    assert_int_not_equal(bad->exit_code, 0);
    says_in(f, "a", "echo fine", "fine\n");
    says_in(f, "a", "cat", ""); /* its stdin is not our commands */
    says_in(f, "a", "read x; echo \"[$x]\"", "[]\n");
}

static void set_e_ends_the_shell_not_the_session(csn_fx *f)
{
    AUTO(csn_exec_result, r);

    r = in(f, "a", "set -e; false; echo not reached");
    assert_string_equal(r->out.data, "");
    assert_int_equal(r->failed, 1);
    says_in(f, "a", "echo alive", "alive\n");
}

static void timeout_in_a_session(csn_fx *f)
{
    AUTO(csn_exec_result, r);

    says_in(f, "a", "V=1", "");
    r = csn_fx_timed_out(f, "echo $$ > pid; echo part; sleep 1000", "a", 500);
    assert_string_equal(r->out.data, "part\n");
    says_in(f, "a", "echo alive", "alive\n");
}

static void background_jobs_of_a_session_do_not_delay(csn_fx *f)
{
    says_in(f, "a", "sleep 1000 & echo started", "started\n");
    says_in(f, "a", "jobs | grep -c sleep", "1\n");
}

static void session_has_env_cwd_and_home(csn_fx *f)
{
    AUTO(csn_exec_result, r);

    csn_fx_run(f, "mkdir -p sub && echo in > sub/f");
    ok(csn_sh(f->sb, "echo $CALL; cat f",
              EXEC(.session = "a", .cwd = "sub", .env = ARGV("CALL=c1")), &r, E));
    assert_string_equal(r->out.data, "c1\nin\n");
    says_in(f, "a", "printf %s \"$HOME\"", csn_fx_home(f));
}

static void session_output_has_the_ceiling(csn_fx *f)
{
    AUTO(csn_exec_result, r);

    ok(csn_sh(f->sb, "yes | head -c 5000", EXEC(.session = "a", .output_max = 100), &r, E));
    assert_int_equal(r->out.len, 100);
    assert_int_equal(r->out.total, 5000);
    assert_int_equal(r->truncated, 1);
}

static void session_names_are_checked(csn_fx *f)
{
    csn_exec_result *r = NULL;
    char *lng = csn_fx_fill(f, 64);

    fails(CSN_INVALID, csn_sh(f->sb, "true", EXEC(.session = ""), &r, E));
    fails(CSN_INVALID, csn_sh(f->sb, "true", EXEC(.session = lng), &r, E));
}

typedef struct worker {
    csn_sandbox *sb;
    int bad;
} worker;

static void *count_up(void *ctx)
{
    worker *w = ctx;

    for (int i = 0; i < 10; i++) {
        csn_exec_result *r = NULL;
        csn_status st =
            csn_sh(w->sb, "N=$((N+1)); echo $N >> log", EXEC(.session = "shared"), &r, NULL);
        w->bad += st != CSN_OK || r->exit_code != 0;
        csn_exec_result_free(r);
    }
    return NULL;
}

static void one_session_runs_one_command_at_a_time(csn_fx *f)
{
    pthread_t t[4];
    worker w[4];

    for (int i = 0; i < 4; i++) {
        w[i] = (worker){.sb = f->sb};
        pthread_create(&t[i], NULL, count_up, &w[i]);
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(t[i], NULL);
        assert_int_equal(w[i].bad, 0);
    }
    says_in(f, "shared", "echo $N; wc -l < log | tr -d ' '; tail -n 1 log", "40\n40\n40\n");
}

const csn_conf_test csn_conf_session[] = {
    T_NEED(session_keeps_directory_variables_and_functions, CAP_SESSION),
    T_NEED(session_keeps_streams_and_exit_codes_apart, CAP_SESSION),
    T_NEED(sessions_are_independent, CAP_SESSION),
    T_NEED(restart_begins_afresh, CAP_SESSION),
    T_NEED(restart_ends_what_the_old_shell_ran, CAP_SESSION),
    T_NEED(exit_ends_the_shell_and_the_next_call_has_a_new_one, CAP_SESSION),
    T_NEED(shell_that_is_killed_is_replaced, CAP_SESSION),
    T_NEED(odd_commands_do_not_confuse_it, CAP_SESSION),
    T_NEED(set_e_ends_the_shell_not_the_session, CAP_SESSION),
    T_NEED(timeout_in_a_session, CAP_SESSION),
    T_NEED(background_jobs_of_a_session_do_not_delay, CAP_SESSION),
    T_NEED(session_has_env_cwd_and_home, CAP_SESSION),
    T_NEED(session_output_has_the_ceiling, CAP_SESSION),
    T_NEED(session_names_are_checked, CAP_SESSION),
    T_NEED(one_session_runs_one_command_at_a_time, CAP_SESSION),
    T_END,
};
