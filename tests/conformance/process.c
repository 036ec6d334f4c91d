/* process.c: background processes: start, list, logs, wait, signal, stdin, terminals, and
 * waiting for a port or a line. All need the capability "background". */
#include "conformance/conformance.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#define SOON 60000 /* ms; what should happen at once may take this long on a busy machine */

static csn_process *start(csn_fx *f, const char *command, const csn_exec_opts *opts)
{
    csn_process *p = NULL;

    ok(csn_start_sh(f->sb, command, opts, &p, E));
    assert_true(csn_process_pid(p) > 0);
    return p;
}

/* All output so far and to come, until the end of the stream. */
static char *all_logs(csn_fx *f, csn_process *p, int stream)
{
    char *text = calloc(1, 1);
    size_t len = 0;
    uint64_t at = 0;

    for (;;) {
        AUTO(csn_log_chunk, c);

        ok(csn_process_logs(p, stream, at, SOON, &c, E));
        text = realloc(text, len + c->len + 1);
        assert_non_null(text);
        memcpy(text + len, c->data, c->len);
        len += c->len;
        text[len] = '\0';
        at = c->offset + c->len;
        if (c->end)
            break;
    }
    return csn_fx_keep(f, text);
}

static csn_process_info wait_end(csn_process *p)
{
    AUTO(csn_process_list, l);

    ok(csn_process_wait(p, SOON, &l, E));
    assert_int_equal(l->count, 1);
    assert_string_equal(l->items[0].state, "exited");
    csn_process_info i = l->items[0];
    i.command = NULL; /* borrowed */
    i.state = NULL;
    i.signal = l->items[0].signal ? "signalled" : NULL;
    return i;
}

static void start_returns_at_once(csn_fx *f)
{
    AUTO(csn_process, p);
    AUTO(csn_process_list, l);
    AUTO(csn_process_list, w);

    p = start(f, "echo $$ > pid; exec sleep 1000", NULL);
    assert_true(csn_fx_pid(f, "pid") > 0);
    ok(csn_processes(f->sb, &l, E));
    assert_int_equal(l->count, 1);
    assert_int_equal(l->items[0].pid, csn_process_pid(p));
    assert_string_equal(l->items[0].state, "running");
    assert_int_equal(l->items[0].exit_code, -1);
    assert_null(l->items[0].signal);
    assert_int_equal(l->items[0].pty, 0);
    has(l->items[0].command, "sleep 1000");
    assert_in_range(csn_test_now_ms() - l->items[0].started_ms + 1000, 0, 3601000);
    fails(CSN_TIMEOUT, csn_process_wait(p, 50, &w, E));
    ok(csn_process_signal(p, SIGKILL, E));
    (void)wait_end(p);
}

static void wait_tells_how_it_ended(csn_fx *f)
{
    AUTO(csn_process, p);
    AUTO(csn_process, q);
    AUTO(csn_process_list, l);

    p = start(f, "exit 7", NULL);
    csn_process_info i = wait_end(p);
    assert_int_equal(i.exit_code, 7);
    assert_null(i.signal);
    i = wait_end(p); /* the answer stays */
    assert_int_equal(i.exit_code, 7);
    q = start(f, "kill -KILL $$", NULL);
    ok(csn_process_wait(q, SOON, &l, E));
    assert_string_equal(l->items[0].signal, "SIGKILL");
    assert_int_equal(l->items[0].exit_code, -1);
}

typedef struct waiter {
    csn_process *p;
    csn_status wait, logs;
} waiter;

static void *wait_for_ever(void *arg)
{
    waiter *w = arg;
    csn_log_chunk *c = NULL;

    w->wait = csn_process_wait(w->p, CSN_NO_LIMIT, NULL, NULL);
    w->logs = csn_process_logs(w->p, CSN_STDOUT, 0, CSN_NO_LIMIT, &c, NULL);
    csn_log_chunk_free(c);
    return NULL;
}

static void destroy_ends_a_wait_without_limit(csn_fx *f)
{
    waiter w = {.p = start(f, "echo $$ > pid; sleep 1000", NULL)};
    pthread_t t;

    pthread_create(&t, NULL, wait_for_ever, &w);
    pid_t pid = csn_fx_pid(f, "pid");
    ok(csn_destroy(f->sb, E));
    pthread_join(t, NULL);
    assert_true(w.wait == CSN_CANCELLED || w.wait == CSN_GONE);
    assert_int_equal(w.logs, CSN_GONE); /* called after destroy had ended the wait */
    assert_true(csn_test_wait_dead(pid));
    csn_process_free(w.p);
}

static void logs_can_be_read_again_from_any_offset(csn_fx *f)
{
    AUTO(csn_process, p);
    AUTO(csn_log_chunk, a);
    AUTO(csn_log_chunk, b);
    AUTO(csn_log_chunk, c);

    p = start(f, "printf 0123456789; printf err >&2", NULL);
    (void)wait_end(p);
    assert_string_equal(all_logs(f, p, CSN_STDOUT), "0123456789");
    assert_string_equal(all_logs(f, p, CSN_STDERR), "err");
    ok(csn_process_logs(p, CSN_STDOUT, 4, 0, &a, E));
    assert_int_equal(a->offset, 4);
    assert_int_equal(a->dropped, 0);
    assert_int_equal(a->total, 10);
    assert_string_equal(a->data, "456789");
    ok(csn_process_logs(p, CSN_STDOUT, 10, 0, &b, E));
    assert_int_equal(b->len, 0);
    assert_int_equal(b->end, 1);
    ok(csn_process_logs(p, CSN_STDOUT, 1000, 0, &c, E));
    assert_int_equal(c->len, 0);
    fails(CSN_INVALID, csn_process_logs(p, 3, 0, 0, &(csn_log_chunk *){NULL}, E));
}

static void logs_follow_a_running_process(csn_fx *f)
{
    AUTO(csn_process, p);
    AUTO(csn_log_chunk, first);
    AUTO(csn_log_chunk, none);

    p = start(f, "echo one; while ! test -e go; do sleep 0.05; done; echo two", NULL);
    ok(csn_process_logs(p, CSN_STDOUT, 0, SOON, &first, E));
    assert_string_equal(first->data, "one\n");
    assert_int_equal(first->end, 0);
    ok(csn_process_logs(p, CSN_STDOUT, 4, 50, &none, E)); /* nothing yet: an empty answer */
    assert_int_equal(none->len, 0);
    assert_int_equal(none->end, 0);
    csn_fx_put(f, "go", "");
    assert_string_equal(all_logs(f, p, CSN_STDOUT), "one\ntwo\n");
}

static void logs_are_bounded_and_say_what_was_dropped(csn_fx *f)
{
    AUTO(csn_process, p);
    AUTO(csn_log_chunk, c);

    p = start(f, "yes 0123456789abcde | head -c 100000; printf END", EXEC(.output_max = 4096));
    (void)wait_end(p);
    ok(csn_process_logs(p, CSN_STDOUT, 0, 0, &c, E));
    assert_int_equal(c->total, 100003);
    assert_true(c->dropped > 0);
    assert_int_equal(c->offset, c->dropped);
    char *rest = NULL;
    assert_true(c->len <= 65536);
    rest = all_logs(f, p, CSN_STDOUT);
    assert_string_equal(rest + strlen(rest) - 3, "END");
}

static void signals_reach_the_process(csn_fx *f)
{
    AUTO(csn_process, p);

    p = start(f, "trap 'echo caught; exit 3' USR1; echo ready; while :; do sleep 0.05; done",
              NULL);
    ok(csn_wait_log(f->sb, "ready", SOON, E));
    ok(csn_process_signal(p, SIGUSR1, E));
    assert_int_equal(wait_end(p).exit_code, 3);
    assert_string_equal(all_logs(f, p, CSN_STDOUT), "ready\ncaught\n");
    fails(CSN_NOT_FOUND, csn_process_signal(p, SIGTERM, E));
    fails(CSN_INVALID, csn_process_signal(p, 9999, E));
}

static void kill_reaches_the_whole_tree(csn_fx *f)
{
    AUTO(csn_process, p);

    p = start(f,
              "setsid sh -c 'echo $$ > p1; trap \"\" TERM; while :; do sleep 1; done' & "
              "sleep 1000 & echo $! > p2; wait",
              NULL);
    pid_t a = csn_fx_pid(f, "p1"), b = csn_fx_pid(f, "p2");
    ok(csn_process_signal(p, SIGKILL, E));
    (void)wait_end(p);
    assert_true(csn_test_wait_dead(a));
    assert_true(csn_test_wait_dead(b));
}

static void stdin_can_be_written_and_closed(csn_fx *f)
{
    AUTO(csn_process, p);
    AUTO(csn_process, none);

    p = start(f, "cat; echo eof", EXEC(.flags = CSN_EXEC_STDIN));
    ok(csn_process_write(p, "hello ", 6, SOON, E));
    ok(csn_process_write(p, "world\n", 6, SOON, E));
    ok(csn_wait_log(f->sb, "hello world", SOON, E));
    ok(csn_process_close_stdin(p, E));
    assert_int_equal(wait_end(p).exit_code, 0);
    assert_string_equal(all_logs(f, p, CSN_STDOUT), "hello world\neof\n");
    none = start(f, "cat", NULL); /* without the flag: empty, and nothing to write to */
    (void)wait_end(none);
    csn_conf_reset();
    assert_int_not_equal(csn_process_write(none, "x", 1, 100, E), CSN_OK);
}

static void writing_to_one_that_does_not_read_times_out(csn_fx *f)
{
    AUTO(csn_process, p);
    char *data = csn_fx_fill(f, 1048576);

    p = start(f, "sleep 1000", EXEC(.flags = CSN_EXEC_STDIN));
    fails(CSN_TIMEOUT, csn_process_write(p, data, 1048576, 200, E));
    ok(csn_process_signal(p, SIGKILL, E));
    (void)wait_end(p);
}

static void terminal_has_a_size(csn_fx *f)
{
    AUTO(csn_process, p);
    AUTO(csn_process_list, l);

    p = start(
        f,
        "test -t 0 && test -t 1 && test -t 2 && stty size; trap 'stty size; exit 0' WINCH; "
        "echo ready; while :; do sleep 0.05; done",
        EXEC(.flags = CSN_EXEC_PTY, .rows = 33, .cols = 77));
    ok(csn_wait_log(f->sb, "ready", SOON, E));
    ok(csn_processes(f->sb, &l, E));
    assert_int_equal(l->items[0].pty, 1);
    ok(csn_process_resize(p, 44, 88, E));
    (void)wait_end(p);
    const char *out = all_logs(f, p, CSN_STDOUT);
    has(out, "33 77");
    has(out, "44 88");
}

static void terminal_takes_input(csn_fx *f)
{
    AUTO(csn_process, p);

    p = start(f, "read line; echo \"got:$line\"", EXEC(.flags = CSN_EXEC_PTY | CSN_EXEC_STDIN));
    ok(csn_process_write(p, "typed\n", 6, SOON, E));
    assert_int_equal(wait_end(p).exit_code, 0);
    has(all_logs(f, p, CSN_STDOUT), "got:typed");
}

static void control_c_on_a_terminal_interrupts(csn_fx *f)
{
    AUTO(csn_process, p);
    AUTO(csn_process_list, l);

    p = start(f, "echo ready; exec sleep 1000", EXEC(.flags = CSN_EXEC_PTY | CSN_EXEC_STDIN));
    ok(csn_wait_log(f->sb, "ready", SOON, E));
    csn_test_nap(100); /* the exec of sleep */
    ok(csn_process_write(p, "\003", 1, SOON, E));
    ok(csn_process_wait(p, SOON, &l, E));
    assert_string_equal(l->items[0].signal, "SIGINT");
}

static void resize_without_a_terminal_is_refused(csn_fx *f)
{
    AUTO(csn_process, p);

    p = start(f, "sleep 1000", NULL);
    fails(CSN_INVALID, csn_process_resize(p, 10, 10, E));
    ok(csn_process_signal(p, SIGKILL, E));
    (void)wait_end(p);
}

static void process_can_be_found_again_by_pid(csn_fx *f)
{
    AUTO(csn_process, p);
    AUTO(csn_process, again);
    csn_process *none = NULL;

    p = start(f, "echo hi; sleep 1000", NULL);
    ok(csn_process_open(f->sb, csn_process_pid(p), &again, E));
    assert_int_equal(csn_process_pid(again), csn_process_pid(p));
    ok(csn_wait_log(f->sb, "hi", SOON, E));
    ok(csn_process_signal(again, SIGTERM, E));
    (void)wait_end(p);
    fails(CSN_NOT_FOUND, csn_process_open(f->sb, 999999999, &none, E));
    fails(CSN_INVALID, csn_process_open(f->sb, -1, &none, E));
    /* a process of the host is none of the sandbox's */
    fails(CSN_NOT_FOUND, csn_process_open(f->sb, getpid(), &none, E));
}

static void tied_process_ends_with_its_handle(csn_fx *f)
{
    csn_process *p = start(f, "echo $$ > pid; exec sleep 1000", EXEC(.flags = CSN_EXEC_TIED));
    pid_t pid = csn_fx_pid(f, "pid");

    assert_true(csn_test_alive(pid));
    csn_process_free(p);
    assert_true(csn_test_wait_dead(pid));
}

static void untied_process_outlives_its_handle(csn_fx *f)
{
    csn_process *p = start(f, "echo $$ > pid; exec sleep 1000", NULL);
    pid_t pid = csn_fx_pid(f, "pid");

    csn_process_free(p);
    csn_fx_run(f, "sleep 0.3");
    assert_true(csn_test_alive(pid));
    csn_fx_close(f);
    assert_true(csn_test_wait_dead(pid));
}

static void process_timeout_ends_it(csn_fx *f)
{
    AUTO(csn_process, p);
    AUTO(csn_process_list, l);

    p = start(f, "sleep 1000", EXEC(.timeout_ms = 300));
    ok(csn_process_wait(p, SOON, &l, E));
    assert_string_equal(l->items[0].state, "exited");
    assert_non_null(l->items[0].signal);
}

static void start_gets_argv_env_and_cwd(csn_fx *f)
{
    AUTO(csn_process, p);

    csn_fx_run(f, "mkdir sub && echo x > sub/here");
    ok(csn_start(f->sb,
                 ARGV("sh", "-c", "cat here; printf '%s|' \"$V\" \"$@\"", "sh", "a b", "$c"),
                 EXEC(.cwd = "sub", .env = ARGV("V=v 1")), &p, E));
    (void)wait_end(p);
    assert_string_equal(all_logs(f, p, CSN_STDOUT), "x\nv 1|a b|$c|");
}

static void start_refuses_what_makes_no_sense(csn_fx *f)
{
    csn_process *p = NULL;

    fails(CSN_INVALID, csn_start_sh(f->sb, "true", EXEC(.session = "s"), &p, E));
    fails(CSN_INVALID,
          csn_start_sh(f->sb, "true", EXEC(.on_output = (csn_output_fn)abort), &p, E));
    fails(CSN_INVALID, csn_start(f->sb, NULL, NULL, &p, E));
    fails(CSN_INVALID, csn_start(f->sb, (const char *const[]){NULL}, NULL, &p, E));
    fails(CSN_INVALID, csn_start_sh(f->sb, NULL, NULL, &p, E));
    fails(CSN_INVALID, csn_start_sh(f->sb, "true", EXEC(.flags = 1u << 30), &p, E));
    fails(CSN_NOT_FOUND, csn_start_sh(f->sb, "true", EXEC(.cwd = "missing"), &p, E));
    assert_null(p);
}

static void start_of_a_missing_program_is_told(csn_fx *f)
{
    csn_process *p = NULL;

    csn_conf_reset();
    csn_status st = csn_start(f->sb, ARGV("no-such-command-here"), NULL, &p, E);
    if (st == CSN_OK) { /* as a command: 127 */
        assert_int_equal(wait_end(p).exit_code, 127);
        csn_process_free(p);
    } else { /* or at once */
        assert_int_equal(st, CSN_NOT_FOUND);
        says("no-such-command-here");
    }
}

static void many_processes_at_once(csn_fx *f)
{
    csn_process *p[24];
    AUTO(csn_process_list, l);

    for (size_t i = 0; i < 24; i++)
        p[i] = start(f, csn_fx_keep(f, csn_test_format("echo n%zu; exit %zu", i, i)), NULL);
    for (size_t i = 0; i < 24; i++)
        assert_int_equal(wait_end(p[i]).exit_code, (int)i);
    ok(csn_processes(f->sb, &l, E));
    assert_int_equal(l->count, 24); /* until destroy they can be asked about */
    for (size_t i = 0; i < 24; i++) {
        assert_string_equal(all_logs(f, p[i], CSN_STDOUT),
                            csn_fx_keep(f, csn_test_format("n%zu\n", i)));
        csn_process_free(p[i]);
    }
}

static void wait_log_sees_old_and_new_output(csn_fx *f)
{
    AUTO(csn_process, p);

    p = start(f,
              "echo Listening on 80; sleep 0.3; printf 'split te'; sleep 0.3; echo xt; "
              "echo oops >&2; sleep 1000",
              NULL);
    ok(csn_wait_log(f->sb, "Listening", SOON, E));
    ok(csn_wait_log(f->sb, "Listening", SOON, E));
    ok(csn_wait_log(f->sb, "split text", SOON, E)); /* in two writes */
    ok(csn_wait_log(f->sb, "oops", SOON, E));
    fails(CSN_TIMEOUT, csn_wait_log(f->sb, "never written", 100, E));
    fails(CSN_INVALID, csn_wait_log(f->sb, "", 100, E));
}

/* ---- ports ---- */

typedef struct listener {
    int fd;
    uint16_t port;
} listener;

static void *listen_later(void *ctx)
{
    listener *l = ctx;

    csn_test_nap(300);
    (void)listen(l->fd, 4);
    return NULL;
}

/* In a sandbox with a network of its own somebody inside must listen. */
static void wait_port_inside(csn_fx *f)
{
    AUTO(csn_process, p);
    AUTO(csn_exec_result, r);

    ok(csn_sh(f->sb, "command -v perl || command -v nc", NULL, &r, E));
    if (r->failed)
        not_here("neither perl nor nc to listen with");
    fails(CSN_TIMEOUT, csn_wait_port(f->sb, 7345, 100, E));
    p = start(f,
              strstr(r->out.data, "perl")
                  ? "sleep 0.2; exec perl -MSocket -e 'socket(S, PF_INET, SOCK_STREAM, 0); "
                    "bind(S, sockaddr_in(7345, INADDR_LOOPBACK)); listen(S, 5); sleep 1000'"
                  : "sleep 0.2; while :; do nc -l -p 7345; done",
              NULL);
    ok(csn_wait_port(f->sb, 7345, SOON, E));
}

static void wait_port_waits_for_a_listener(csn_fx *f)
{
    if (f->be->traits & CONF_PIDNS) {
        wait_port_inside(f);
        return;
    }
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(a);
    listener l = {.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    pthread_t t;

    assert_int_equal(bind(l.fd, (struct sockaddr *)&a, sizeof(a)), 0);
    assert_int_equal(getsockname(l.fd, (struct sockaddr *)&a, &len), 0);
    l.port = ntohs(a.sin_port);
    fails(CSN_TIMEOUT, csn_wait_port(f->sb, l.port, 100, E));
    pthread_create(&t, NULL, listen_later, &l);
    ok(csn_wait_port(f->sb, l.port, SOON, E));
    pthread_join(t, NULL);
    close(l.fd);
    fails(CSN_INVALID, csn_wait_port(f->sb, 0, 100, E));
}

const csn_conf_test csn_conf_process[] = {
    T_NEED(start_returns_at_once, CAP_PROCESS),
    T_NEED(wait_tells_how_it_ended, CAP_PROCESS),
    T_NEED(destroy_ends_a_wait_without_limit, CAP_PROCESS),
    T_NEED(logs_can_be_read_again_from_any_offset, CAP_PROCESS),
    T_NEED(logs_follow_a_running_process, CAP_PROCESS),
    T_NEED(logs_are_bounded_and_say_what_was_dropped, CAP_PROCESS),
    T_NEED(signals_reach_the_process, CAP_PROCESS),
    T_NEED(kill_reaches_the_whole_tree, CAP_PROCESS),
    T_NEED(stdin_can_be_written_and_closed, CAP_PROCESS),
    T_NEED(writing_to_one_that_does_not_read_times_out, CAP_PROCESS),
    T_NEED(terminal_has_a_size, CAP_TERM),
    T_NEED(terminal_takes_input, CAP_TERM),
    T_NEED(control_c_on_a_terminal_interrupts, CAP_TERM),
    T_NEED(resize_without_a_terminal_is_refused, CAP_TERM),
    T_NEED(process_can_be_found_again_by_pid, CAP_PROCESS),
    T_NEED(tied_process_ends_with_its_handle, CAP_PROCESS),
    T_NEED(untied_process_outlives_its_handle, CAP_PROCESS),
    T_NEED(process_timeout_ends_it, CAP_PROCESS),
    T_NEED(start_gets_argv_env_and_cwd, CAP_PROCESS),
    T_NEED(start_refuses_what_makes_no_sense, CAP_PROCESS),
    T_NEED(start_of_a_missing_program_is_told, CAP_PROCESS),
    T_NEED(many_processes_at_once, CAP_PROCESS),
    T_NEED(wait_log_sees_old_and_new_output, CAP_PROCESS),
    T_NEED(wait_port_waits_for_a_listener, CAP_PORT),
    T_END,
};
