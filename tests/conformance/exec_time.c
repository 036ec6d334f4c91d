/* exec_time.c: timeouts and cancellation. Both end the whole tree, however it was detached, and
 * leave what was already written. Nothing here measures how fast that is: a command that is
 * left alone would run for a thousand seconds, so its return is the proof. */
#include "conformance/conformance.h"

#include <pthread.h>
#include <signal.h>
#include <sys/time.h>

/* S2: exec("sleep 10", { timeout: 100 }); S3: "should handle command timeout"; S4: timeout */
static void timeout_ends_the_command_and_keeps_its_output(csn_fx *f)
{
    AUTO(csn_exec_result, r);

    /* stderr first: who has printed on stdout has printed both */
    r = csn_fx_timed_out(f, "echo oops >&2; echo before; exec sleep 1000", NULL, 1000);
    assert_int_equal(r->interrupted, 1);
    assert_int_equal(r->failed, 1);
    assert_int_equal(r->exit_code, -1);
    assert_string_equal(r->killed_by, "timeout");
    assert_string_equal(r->out.data, "before\n");
    assert_string_equal(r->err.data, "oops\n");
    assert_true(r->duration_ms >= 999);
}

static void timeout_of_argv(csn_fx *f)
{
    AUTO(csn_exec_result, r);

    ok(csn_exec(f->sb, ARGV("sleep", "1000"), EXEC(.timeout_ms = 100), &r, E));
    assert_int_equal(r->timed_out, 1);
    assert_string_equal(r->killed_by, "timeout");
}

static void sandbox_works_after_a_timeout(csn_fx *f)
{
    for (int i = 0; i < 5; i++) {
        AUTO(csn_exec_result, r);
        ok(csn_sh(f->sb, "sleep 1000", EXEC(.timeout_ms = 50), &r, E));
        assert_int_equal(r->timed_out, 1);
        assert_string_equal(csn_fx_out(f, "echo fine"), "fine\n");
    }
}

static void command_that_ignores_term_is_killed(csn_fx *f)
{
    AUTO(csn_exec_result, r);

    r = csn_fx_timed_out(
        f, "trap '' TERM INT HUP; echo $$ > pid; echo ready; while :; do sleep 1; done", NULL,
        500);
    assert_true(csn_test_wait_dead(csn_fx_pid(f, "pid")));
}

static void command_that_is_stopped_is_killed(csn_fx *f)
{
    AUTO(csn_exec_result, r);

    r = csn_fx_timed_out(f, "echo $$ > pid; echo ready; kill -STOP $$; echo woke", NULL, 500);
    assert_true(csn_test_wait_dead(csn_fx_pid(f, "pid")));
}

/* C9: the whole tree: children, and grandchildren that left by double fork and setsid. */
static void timeout_ends_the_whole_tree(csn_fx *f)
{
    AUTO(csn_exec_result, r);

    r = csn_fx_timed_out(
        f,
        "rm -f p1 p2 p3; sleep 1000 & echo $! > p1\n"
        "(setsid sh -c 'echo $$ > p2; trap \"\" TERM HUP; while :; do sleep 1; done' &)\n"
        "setsid sh -c '(sh -c \"echo \\$\\$ > p3; exec sleep 1000\" &)' \n"
        "while ! test -s p2 || ! test -s p3; do sleep 0.02; done\n"
        "echo ready; wait; sleep 1000",
        NULL, 3000);
    assert_string_equal(r->out.data, "ready\n");
    assert_true(csn_test_wait_dead(csn_fx_pid(f, "p1")));
    assert_true(csn_test_wait_dead(csn_fx_pid(f, "p2")));
    assert_true(csn_test_wait_dead(csn_fx_pid(f, "p3")));
}

static void timeout_spares_other_commands(csn_fx *f)
{
    AUTO(csn_exec_result, r);

    csn_fx_run(f, "sleep 1000 & echo $! > other");
    pid_t other = csn_fx_pid(f, "other");
    ok(csn_sh(f->sb, "sleep 1000", EXEC(.timeout_ms = 100), &r, E));
    assert_int_equal(r->timed_out, 1);
    assert_true(csn_test_alive(other));
}

static void timeout_of_the_config_is_the_default(csn_fx *f)
{
    AUTO(csn_exec_result, r);
    AUTO(csn_exec_result, longer);
    AUTO(csn_exec_result, none);

    csn_fx_open(f, CFG(.timeout_ms = 700));
    ok(csn_sh(f->sb, "sleep 1000", NULL, &r, E));
    assert_int_equal(r->timed_out, 1);
    ok(csn_sh(f->sb, "sleep 1", EXEC(.timeout_ms = 60000), &longer, E));
    assert_int_equal(longer->timed_out, 0);
    ok(csn_sh(f->sb, "sleep 1", EXEC(.timeout_ms = CSN_NO_LIMIT), &none, E));
    assert_int_equal(none->timed_out, 0);
    assert_int_equal(none->exit_code, 0);
}

/* S0: timeout 30000 by default. The one test that must wait. */
static void default_timeout_is_thirty_seconds(csn_fx *f)
{
    AUTO(csn_exec_result, r);

    ok(csn_sh(f->sb, "echo start; exec sleep 1000", NULL, &r, E));
    assert_int_equal(r->timed_out, 1);
    assert_true(r->duration_ms >= 29999);
    assert_true(r->duration_ms < 120000);
    assert_string_equal(r->out.data, "start\n");
}

/* ---- cancel ---- */

typedef struct worker {
    csn_sandbox *sb;
    csn_cancel *cancel;
    const char *command;
    csn_status st;
    uint32_t interrupted, timed_out;
    char killed_by[16];
} worker;

static void *work(void *ctx)
{
    worker *w = ctx;
    csn_exec_result *r = NULL;

    w->st =
        csn_sh(w->sb, w->command, EXEC(.cancel = w->cancel, .timeout_ms = 170000), &r, NULL);
    if (w->st == CSN_OK) {
        w->interrupted = r->interrupted;
        w->timed_out = r->timed_out;
        snprintf(w->killed_by, sizeof(w->killed_by), "%s", r->killed_by ? r->killed_by : "");
    }
    csn_exec_result_free(r);
    return NULL;
}

static void was_cancelled(const worker *w)
{
    assert_int_equal(w->st, CSN_OK);
    assert_int_equal(w->interrupted, 1);
    assert_int_equal(w->timed_out, 0);
    assert_string_equal(w->killed_by, "cancel");
}

/* S1: ctx cancellation */
static void cancel_from_another_thread(csn_fx *f)
{
    AUTO(csn_cancel, c);
    pthread_t t;

    ok(csn_cancel_new(&c, E));
    worker w = {.sb = f->sb, .cancel = c, .command = "echo $$ > pid; exec sleep 1000"};
    pthread_create(&t, NULL, work, &w);
    pid_t pid = csn_fx_pid(f, "pid");
    csn_cancel_fire(c);
    pthread_join(t, NULL);
    was_cancelled(&w);
    assert_true(csn_test_wait_dead(pid));
}

static void one_cancel_stops_many_calls(csn_fx *f)
{
    AUTO(csn_cancel, c);
    pthread_t t[6];
    worker w[6];

    ok(csn_cancel_new(&c, E));
    for (int i = 0; i < 6; i++) {
        w[i] = (worker){.sb = f->sb, .cancel = c};
        w[i].command = csn_fx_keep(f, csn_test_format("echo $$ > pid%d; exec sleep 1000", i));
        pthread_create(&t[i], NULL, work, &w[i]);
    }
    for (int i = 0; i < 6 && csn_fx_can(f->sb, CAP_LIVE); i++) /* else one runs, others wait */
        (void)csn_fx_pid(f, csn_fx_keep(f, csn_test_format("pid%d", i)));
    csn_cancel_fire(c);
    for (int i = 0; i < 6; i++) {
        pthread_join(t[i], NULL);
        was_cancelled(&w[i]);
    }
}

static void fired_cancel_stops_every_later_call(csn_fx *f)
{
    AUTO(csn_cancel, c);
    csn_read_result *read = NULL;
    csn_grep_result *grep = NULL;

    csn_fx_put(f, "file", "x\n");
    ok(csn_cancel_new(&c, E));
    csn_cancel_fire(c);
    csn_cancel_fire(c); /* twice is fine */
    for (int i = 0; i < 3; i++) {
        AUTO(csn_exec_result, r);

        csn_conf_reset();
        csn_status st = csn_sh(f->sb, "sleep 20; echo done > done", EXEC(.cancel = c), &r, E);
        if (st == CSN_OK)
            assert_int_equal(r->interrupted, 1);
        else
            assert_int_equal(st, CSN_CANCELLED);
    }
    assert_false(csn_fx_exists(f, "done"));
    fails(CSN_CANCELLED,
          csn_read(f->sb, "file", CSN_OPTS(csn_read_opts, .cancel = c), &read, E));
    fails(CSN_CANCELLED, csn_grep(f->sb, "x", CSN_OPTS(csn_grep_opts, .cancel = c), &grep, E));
    fails(CSN_CANCELLED,
          csn_export(f->sb, ".", f->outside, CSN_OPTS(csn_transfer_opts, .cancel = c), E));
    csn_fx_canary(f);
}

static csn_cancel *volatile alarm_cancel;

static void on_alarm(int signo)
{
    (void)signo;
    csn_cancel_fire(alarm_cancel);
}

static void cancel_may_fire_in_a_signal_handler(csn_fx *f)
{
    AUTO(csn_cancel, c);
    struct sigaction sa = {.sa_handler = on_alarm};
    struct itimerval in = {.it_value = {.tv_usec = 300000}};

    ok(csn_cancel_new(&c, E));
    alarm_cancel = c;
    sigaction(SIGALRM, &sa, NULL);
    setitimer(ITIMER_REAL, &in, NULL);
    worker w = {.sb = f->sb, .cancel = c, .command = "exec sleep 1000"};
    (void)work(&w);
    if (w.st == CSN_OK) /* a slow machine may be interrupted before the command runs */
        was_cancelled(&w);
    else
        assert_int_equal(w.st, CSN_CANCELLED);
}

static void unfired_cancel_changes_nothing(csn_fx *f)
{
    AUTO(csn_cancel, c);
    AUTO(csn_exec_result, r);

    ok(csn_cancel_new(&c, E));
    ok(csn_sh(f->sb, "echo x", EXEC(.cancel = c), &r, E));
    assert_int_equal(r->interrupted, 0);
    assert_string_equal(r->out.data, "x\n");
}

/* Signals of the host program (timers, profilers) must not end or break a call. */
static void on_tick(int signo)
{
    (void)signo;
}

static void signals_of_the_caller_do_not_disturb(csn_fx *f)
{
    struct sigaction sa = {.sa_handler = on_tick}; /* no SA_RESTART: EINTR everywhere */
    struct itimerval often = {.it_interval = {.tv_usec = 2000}, .it_value = {.tv_usec = 2000}};
    struct itimerval off = {0};
    AUTO(csn_exec_result, r);

    sigaction(SIGALRM, &sa, NULL);
    setitimer(ITIMER_REAL, &often, NULL);
    csn_status st = csn_sh(f->sb, "sleep 0.5; yes | head -c 200000", NULL, &r, NULL);
    for (int i = 0; i < 30 && st == CSN_OK; i++)
        st = csn_write(f->sb, "file", "content", 7, NULL, NULL, NULL);
    setitimer(ITIMER_REAL, &off, NULL);
    assert_int_equal(st, CSN_OK);
    assert_int_equal(r->out.len, 200000);
    csn_fx_holds(f, "file", "content");
}

const csn_conf_test csn_conf_exec_time[] = {
    T(timeout_ends_the_command_and_keeps_its_output),
    T(timeout_of_argv),
    T(sandbox_works_after_a_timeout),
    T(command_that_ignores_term_is_killed),
    T(command_that_is_stopped_is_killed),
    T_TRAIT(timeout_ends_the_whole_tree, CONF_TREE),
    T_TRAIT(timeout_spares_other_commands, CONF_LIVES),
    T_CLOSED(timeout_of_the_config_is_the_default),
    T(default_timeout_is_thirty_seconds),
    T(cancel_from_another_thread),
    T(one_cancel_stops_many_calls),
    T(fired_cancel_stops_every_later_call),
    T(cancel_may_fire_in_a_signal_handler),
    T(unfired_cancel_changes_nothing),
    T(signals_of_the_caller_do_not_disturb),
    T_END,
};
