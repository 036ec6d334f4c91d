/* runtime_process.c: background processes of the local backend, with a real keeper. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include "keeper_fixture.h"

static int64_t start_with(den *d, const char *text, uint32_t flags, uint64_t ring, void **tie)
{
    const char *argv[] = {"/bin/sh", "-c", text, NULL};
    csn_exec_req req = den_req(argv);
    csn_error *err = NULL;
    int64_t pid = 0;
    void *t = NULL;

    req.size = sizeof(req);
    req.flags = flags;
    req.command = text;
    csn_status st = d->ops->processes->start(d->state, &req, ring, &pid, &t, &err);
    if (st != CSN_OK)
        fail_msg("start: %s", csn_error_message(err));
    assert_true(pid > 0);
    if (tie)
        *tie = t;
    else
        assert_null(t);
    return pid;
}

static int64_t start(den *d, const char *text)
{
    return start_with(d, text, 0, 65536, NULL);
}

typedef struct seen {
    int count;
    csn_process_info info; /* of the last */
    char command[256], state[16];
    int64_t pids[300];
} seen;

static int see(void *ctx, const csn_process_info *info)
{
    seen *s = ctx;

    s->info = *info;
    snprintf(s->command, sizeof(s->command), "%s", info->command);
    snprintf(s->state, sizeof(s->state), "%s", info->state);
    if (s->count < 300)
        s->pids[s->count] = info->pid;
    s->count++;
    return 0;
}

static seen ask(den *d, int64_t pid, uint64_t wait_ms)
{
    seen s = {0};
    csn_error *err = NULL;
    csn_status st = d->ops->processes->list(d->state, pid, wait_ms, see, &s, &err);

    if (st != CSN_OK)
        fail_msg("processes: %s", csn_error_message(err));
    return s;
}

static csn_log_chunk logs(den *d, int64_t pid, int stream, uint64_t offset, uint64_t wait,
                          out *o)
{
    csn_sink sink = {den_sink, o};
    csn_log_chunk c;
    csn_error *err = NULL;

    memset(o, 0, sizeof(*o));
    csn_status st =
        d->ops->processes->logs(d->state, pid, stream, offset, wait, &sink, &c, &err);
    if (st != CSN_OK)
        fail_msg("logs: %s", csn_error_message(err));
    assert_int_equal(c.len, o->total[stream == CSN_STDERR]);
    return c;
}

/* Until the text is there; the process may be slow. */
static void await_log(den *d, int64_t pid, const char *text)
{
    out o;

    for (uint64_t at = 0;;) {
        csn_log_chunk c = logs(d, pid, CSN_STDOUT, at, DEN_SOON_MS, &o);
        csn_log_chunk all = logs(d, pid, CSN_STDOUT, 0, 0, &o);
        if (strstr(o.text[0], text))
            return;
        if (all.end || (c.len == 0 && c.offset == at))
            fail_msg("'%s' did not come: '%s'", text, o.text[0]);
        at = all.offset + all.len;
    }
}

static void process_runs_is_listed_and_waited_for(void **state)
{
    den d;
    out o;
    int64_t before = csn_wall_ms();

    (void)state;
    den_make(&d);
    assert_int_equal(ask(&d, 0, 0).count, 0);
    const char *text = "echo hi; echo oops >&2; until test -e go; do sleep 0.02; done; exit 3";
    int64_t pid = start(&d, text);
    seen s = ask(&d, pid, 0);
    assert_string_equal(s.state, "running");
    assert_int_equal(s.info.exit_code, -1);
    assert_string_equal(s.command, text);
    assert_true(s.info.started_ms >= before);
    assert_true(den_pid_alive((pid_t)pid)); /* the real pid */
    den_touch(&d, "go");
    s = ask(&d, pid, DEN_SOON_MS);
    assert_string_equal(s.state, "exited");
    assert_int_equal(s.info.exit_code, 3);
    assert_int_equal(s.info.out_total, 3);
    assert_int_equal(s.info.err_total, 5);
    csn_log_chunk c = logs(&d, pid, CSN_STDOUT, 0, 0, &o);
    assert_string_equal(o.text[0], "hi\n");
    assert_true(c.end && c.total == 3 && c.dropped == 0);
    logs(&d, pid, CSN_STDERR, 0, 0, &o);
    assert_string_equal(o.text[1], "oops\n");
    assert_int_equal(ask(&d, 0, 0).count, 1);
    den_clean(&d);
}

static void wait_that_is_too_short_says_it_runs(void **state)
{
    den d;

    (void)state;
    den_make(&d);
    int64_t pid = start(&d, "sleep 600");
    uint64_t from = csn_now_ns();
    seen s = ask(&d, pid, 100);
    assert_string_equal(s.state, "running");
    assert_true(csn_now_ns() - from >= 99000000);
    den_clean(&d);
}

static void unknown_process_is_not_found(void **state)
{
    den d;
    seen s = {0};
    csn_error *err = NULL;

    (void)state;
    den_make(&d);
    start(&d, "true");
    assert_int_equal(d.ops->processes->list(d.state, 1, 0, see, &s, &err), CSN_NOT_FOUND);
    csn_error_free(err);
    err = NULL;
    /* pid 1 is not ours: it must not even be looked at */
    assert_int_equal(d.ops->processes->signal(d.state, 1, SIGKILL, &err), CSN_NOT_FOUND);
    csn_error_free(err);
    den_clean(&d);
}

static void missing_program_cannot_be_started(void **state)
{
    den d;
    const char *argv[] = {"no-such-program", NULL};
    csn_exec_req req = den_req(argv);
    csn_error *err = NULL;
    int64_t pid = 0;
    void *tie = NULL;

    (void)state;
    den_make(&d);
    assert_int_equal(d.ops->processes->start(d.state, &req, 0, &pid, &tie, &err),
                     CSN_NOT_FOUND);
    assert_string_equal(csn_error_message(err), "no-such-program: command not found");
    csn_error_free(err);
    assert_int_equal(ask(&d, 0, 0).count, 0);
    den_clean(&d);
}

static void logs_wait_for_output_and_follow(void **state)
{
    den d;
    out o;

    (void)state;
    den_make(&d);
    int64_t pid = start(&d, "sleep 0.2; echo one; until test -e two; do sleep 0.2; done; "
                            "echo two; until test -e three; do sleep 0.2; done");
    csn_log_chunk c = logs(&d, pid, CSN_STDOUT, 0, DEN_SOON_MS, &o);
    assert_string_equal(o.text[0], "one\n");
    assert_int_equal(c.end, 0);
    den_touch(&d, "two");
    c = logs(&d, pid, CSN_STDOUT, c.offset + c.len, DEN_SOON_MS, &o);
    assert_string_equal(o.text[0], "two\n");
    assert_int_equal(c.offset, 4);
    den_touch(&d, "three");
    c = logs(&d, pid, CSN_STDOUT, c.offset + c.len, DEN_SOON_MS, &o);
    assert_string_equal(o.text[0], "");
    assert_int_equal(c.end, 1);
    c = logs(&d, pid, CSN_STDOUT, 8, 3600000, &o); /* the end is known: no wait */
    den_clean(&d);
}

static void ring_keeps_the_tail_and_counts_all(void **state)
{
    den d;
    out o;

    (void)state;
    den_make(&d);
    int64_t pid =
        start_with(&d, "i=0; while [ $i -lt 1000 ]; do printf '%07d\\n' $i; i=$((i+1)); done",
                   0, 800, NULL);
    seen s = ask(&d, pid, DEN_SOON_MS);
    assert_int_equal(s.info.out_total, 8000);
    csn_log_chunk c = logs(&d, pid, CSN_STDOUT, 0, 0, &o);
    assert_int_equal(c.total, 8000);
    assert_int_equal(c.offset, 7200);
    assert_int_equal(c.dropped, 7200);
    assert_int_equal(c.len, 800);
    assert_memory_equal(o.text[0], "0000900\n0000901\n", 16);
    assert_string_equal(o.text[0] + 792, "0000999\n");
    c = logs(&d, pid, CSN_STDOUT, 7992, 0, &o);
    assert_string_equal(o.text[0], "0000999\n");
    assert_int_equal(c.dropped, 0);
    c = logs(&d, pid, CSN_STDOUT, 99999, 0, &o);
    assert_int_equal(c.len, 0);
    assert_int_equal(c.offset, 8000);
    den_clean(&d);
}

static void logs_larger_than_a_message_come_whole(void **state)
{
    den d;
    out o;

    (void)state;
    den_make(&d);
    int64_t pid = start_with(&d, "head -c 500000 /dev/zero", 0, 1 << 20, NULL);
    ask(&d, pid, DEN_SOON_MS);
    csn_log_chunk c = logs(&d, pid, CSN_STDOUT, 0, 0, &o);
    assert_int_equal(c.len, 500000);
    assert_int_equal(c.end, 1);
    den_clean(&d);
}

static void signals_reach_the_group_and_kill_the_tree(void **state)
{
    den d;
    char text[300];

    (void)state;
    den_make(&d);
    int64_t pid =
        start(&d, "trap 'echo usr; exit 5' USR1; echo up; while :; do sleep 0.01; done");
    await_log(&d, pid, "up\n");
    assert_int_equal(d.ops->processes->signal(d.state, pid, SIGUSR1, NULL), CSN_OK);
    assert_int_equal(ask(&d, pid, DEN_SOON_MS).info.exit_code, 5);
    const char *mark = den_mark();
    snprintf(text, sizeof(text),
             "trap '' TERM; setsid sh -c 'sleep 600; : %s' & sh -c 'trap \"\" TERM; sleep 600; "
             ": %s' "
             "& echo up; wait; sleep 600",
             mark, mark);
    pid = start(&d, text);
    await_log(&d, pid, "up\n");
    assert_true(den_alive_soon(mark, 3) >= 3);
    assert_int_equal(d.ops->processes->signal(d.state, pid, SIGKILL, NULL), CSN_OK);
    seen s = ask(&d, pid, DEN_SOON_MS);
    assert_string_equal(s.state, "exited");
    assert_string_equal(s.info.signal, "SIGKILL");
    assert_int_equal(den_alive(mark), 0);
    /* somebody else's process that vanishes during the search leaves a doubt: asked again */
    csn_status st = CSN_OK;
    for (int i = 0; i < 200 && st == CSN_OK; i++)
        st = d.ops->processes->signal(d.state, pid, SIGTERM, NULL);
    assert_int_equal(st, CSN_NOT_FOUND);
    den_clean(&d);
}

static void term_reaches_those_that_left_the_group(void **state)
{
    den d;
    char text[200];

    (void)state;
    den_make(&d);
    const char *mark = den_mark();
    snprintf(text, sizeof(text),
             "setsid sleep 1000 & setsid sh -c 'kill -STOP $$; : %s' & "
             "echo up; wait",
             mark);
    int64_t pid = start(&d, text);
    await_log(&d, pid, "up\n");
    poll(NULL, 0, 100);
    assert_int_equal(d.ops->processes->signal(d.state, pid, SIGTERM, NULL), CSN_OK);
    assert_string_equal(ask(&d, pid, DEN_SOON_MS).info.signal, "SIGTERM");
    assert_int_equal(den_left_at_last(mark), 0);
    den_clean(&d);
}

/* Until it is killed: processes that come and go, which every scan of /proc loses sight of. */
static pid_t churn(void)
{
    pid_t pid = fork();

    assert_true(pid >= 0);
    if (pid > 0)
        return pid;
    for (;;) {
        pid_t child = fork();
        if (child == 0)
            _exit(0);
        (void)waitpid(child, NULL, 0);
    }
}

/* Who dies of the signal before the search has come to an end has had it all the same. */
static void signal_that_is_deadly_at_once_is_told_as_delivered(void **state)
{
    den d;
    int refused = 0;

    (void)state;
    den_make(&d);
    for (int i = 0; i < 200; i++) {
        int64_t pid = start(&d, "exec sleep 600");
        refused += d.ops->processes->signal(d.state, pid, SIGTERM, NULL) != CSN_OK;
        assert_string_equal(ask(&d, pid, DEN_SOON_MS).info.signal, "SIGTERM");
    }
    assert_int_equal(refused, 0);
    den_clean(&d);
}

static void signal_to_one_that_ended_is_refused_on_a_busy_machine(void **state)
{
    den d;
    csn_error *err = NULL;
    int taken = 0;

    (void)state;
    den_make(&d);
    int64_t pid = start(&d, "exit 3");
    assert_string_equal(ask(&d, pid, DEN_SOON_MS).state, "exited");
    pid_t busy[] = {churn(), churn()};
    for (int i = 0; i < 50; i++) {
        taken += d.ops->processes->signal(d.state, pid, SIGTERM, &err) == CSN_OK;
        csn_error_free(err);
        err = NULL;
    }
    for (size_t i = 0; i < 2; i++) {
        kill(busy[i], SIGKILL);
        assert_int_equal(waitpid(busy[i], NULL, 0), busy[i]);
    }
    assert_int_equal(taken, 0);
    den_clean(&d);
}

static void stdin_is_fed_and_closed(void **state)
{
    den d;
    out o;
    csn_error *err = NULL;
    static char big[300000];

    (void)state;
    den_make(&d);
    int64_t pid = start_with(&d, "cat; echo end", CSN_EXEC_STDIN, 1 << 20, NULL);
    assert_int_equal(d.ops->processes->feed(d.state, pid, "hello\n", 6, DEN_SOON_MS, NULL),
                     CSN_OK);
    await_log(&d, pid, "hello\n");
    memset(big, 'b', sizeof(big));
    assert_int_equal(d.ops->processes->feed(d.state, pid, big, sizeof(big), DEN_SOON_MS, NULL),
                     CSN_OK);
    assert_int_equal(d.ops->processes->feed(d.state, pid, NULL, 0, DEN_SOON_MS, NULL), CSN_OK);
    assert_int_equal(ask(&d, pid, DEN_SOON_MS).info.exit_code, 0);
    csn_log_chunk c = logs(&d, pid, CSN_STDOUT, 0, 0, &o);
    assert_int_equal(c.total, 6 + sizeof(big) + 4);
    assert_int_equal(d.ops->processes->feed(d.state, pid, "x", 1, DEN_SOON_MS, &err),
                     CSN_NOT_FOUND);
    csn_error_free(err);
    err = NULL;
    pid = start(&d, "sleep 600");
    assert_int_equal(d.ops->processes->feed(d.state, pid, "x", 1, DEN_SOON_MS, &err),
                     CSN_IO); /* it has none */
    csn_error_free(err);
    err = NULL;
    pid = start_with(&d, "sleep 600", CSN_EXEC_STDIN, 4096, NULL);
    assert_int_equal(d.ops->processes->feed(d.state, pid, big, sizeof(big), 100, &err),
                     CSN_TIMEOUT);
    csn_error_free(err);
    err = NULL;
    pid = start_with(&d, "exec <&-; echo closed; sleep 600", CSN_EXEC_STDIN, 4096, NULL);
    await_log(&d, pid, "closed");
    assert_int_equal(d.ops->processes->feed(d.state, pid, "x", 1, DEN_SOON_MS, &err), CSN_IO);
    csn_error_free(err);
    den_clean(&d);
}

static void terminal_has_a_size_and_can_be_resized(void **state)
{
    den d;
    const char *argv[] = {"/bin/sh", "-c",
                          "tty -s && echo tty; stty size; trap 'stty size' WINCH; "
                          "echo ready; while :; do sleep 0.02; done",
                          NULL};
    csn_exec_req req = den_req(argv);
    int64_t pid = 0;
    void *tie = NULL;
    csn_error *err = NULL;

    (void)state;
    den_make(&d);
    req.flags = CSN_EXEC_PTY;
    req.rows = 33;
    req.cols = 111;
    if (d.ops->processes->start(d.state, &req, 65536, &pid, &tie, &err) != CSN_OK)
        fail_msg("start: %s", csn_error_message(err));
    await_log(&d, pid, "tty\r\n33 111\r\n");
    await_log(&d, pid, "ready");
    assert_int_equal(d.ops->processes->resize(d.state, pid, 50, 200, NULL), CSN_OK);
    await_log(&d, pid, "50 200\r\n");
    assert_int_equal(ask(&d, pid, 0).info.pty, 1);
    /* ^C through the terminal: it is the controlling one */
    assert_int_equal(d.ops->processes->feed(d.state, pid, "\003", 1, DEN_SOON_MS, NULL),
                     CSN_OK);
    assert_string_equal(ask(&d, pid, DEN_SOON_MS).info.signal, "SIGINT");
    pid = start(&d, "sleep 600");
    assert_int_equal(d.ops->processes->resize(d.state, pid, 50, 200, &err), CSN_INVALID);
    csn_error_free(err);
    den_clean(&d);
}

static void closing_a_terminals_stdin_is_an_end_of_file(void **state)
{
    den d;
    out o;

    (void)state;
    den_make(&d);
    int64_t pid =
        start_with(&d, "stty -echo; echo up; cat; echo end", CSN_EXEC_PTY, 65536, NULL);
    await_log(&d, pid, "up\r\n");
    assert_int_equal(d.ops->processes->feed(d.state, pid, "line\n", 5, DEN_SOON_MS, NULL),
                     CSN_OK);
    await_log(&d, pid, "line\r\n");
    assert_int_equal(d.ops->processes->feed(d.state, pid, NULL, 0, DEN_SOON_MS, NULL), CSN_OK);
    assert_int_equal(ask(&d, pid, DEN_SOON_MS).info.exit_code, 0);
    csn_log_chunk c = logs(&d, pid, CSN_STDOUT, 0, 0, &o);
    assert_non_null(strstr(o.text[0], "end\r\n"));
    assert_int_equal(c.end, 1);
    den_clean(&d);
}

static void tied_process_ends_with_its_tie(void **state)
{
    den d;
    void *tie = NULL;
    char text[256];

    (void)state;
    den_make(&d);
    const char *mark = den_mark();
    snprintf(text, sizeof(text), "setsid sh -c 'sleep 600; : %s' & sh -c 'sleep 600; : %s'",
             mark, mark);
    start_with(&d, text, CSN_EXEC_TIED, 4096, &tie);
    assert_non_null(tie);
    assert_true(den_alive_soon(mark, 3) >= 3);
    d.ops->processes->release_tied(tie);
    assert_int_equal(den_left_at_last(mark), 0);
    /* a tie of one that has ended is nothing */
    int64_t pid = start_with(&d, "exit 4", CSN_EXEC_TIED, 4096, &tie);
    assert_int_equal(ask(&d, pid, DEN_SOON_MS).info.exit_code, 4);
    d.ops->processes->release_tied(tie);
    d.ops->processes->release_tied(NULL);
    den_clean(&d);
}

static void deadline_of_a_background_process_is_kept(void **state)
{
    den d;
    const char *argv[] = {"/bin/sh", "-c", "trap '' TERM; echo up; sleep 600", NULL};
    csn_exec_req req = den_req(argv);
    int64_t pid = 0;
    void *tie = NULL;
    seen s = {0};
    out o;

    (void)state;
    den_make(&d);
    for (uint64_t ms = 150; ms <= DEN_SOON_MS; ms *= 2) { /* until there is time to begin */
        req.deadline_ns = csn_deadline_in(ms);
        assert_int_equal(d.ops->processes->start(d.state, &req, 4096, &pid, &tie, NULL),
                         CSN_OK);
        s = ask(&d, pid, 2 * DEN_SOON_MS);
        assert_string_equal(s.state, "exited");
        logs(&d, pid, CSN_STDOUT, 0, 0, &o);
        if (o.total[0] > 0)
            break;
    }
    assert_string_equal(s.info.signal, "SIGKILL");
    den_clean(&d);
}

static int64_t text_source(void *ctx, void *buf, size_t len)
{
    const char **text = ctx;
    size_t n = strlen(*text) < len ? strlen(*text) : len;

    memcpy(buf, *text, n);
    *text += n;
    return (int64_t)n;
}

static void bytes_for_stdin_outlive_the_call(void **state)
{
    den d;
    out o;
    const char *argv[] = {"/bin/sh", "-c", "sleep 0.1; cat", NULL}, *text = "given\n";
    csn_source src = {text_source, &text};
    csn_exec_req req = den_req(argv);
    int64_t pid = 0;
    void *tie = NULL;

    (void)state;
    den_make(&d);
    req.input = &src;
    assert_int_equal(d.ops->processes->start(d.state, &req, 4096, &pid, &tie, NULL), CSN_OK);
    ask(&d, pid, DEN_SOON_MS);
    logs(&d, pid, CSN_STDOUT, 0, 0, &o);
    assert_string_equal(o.text[0], "given\n");
    den_clean(&d);
}

/* A grandchild that holds the pipe must not keep the end of the log from being told. */
static void log_ends_although_a_grandchild_holds_the_pipe(void **state)
{
    den d;
    out o;

    (void)state;
    den_make(&d);
    int64_t pid = start(&d, "echo a; sleep 600 & exit 0");
    ask(&d, pid, DEN_SOON_MS);
    csn_log_chunk c = logs(&d, pid, CSN_STDOUT, 2, DEN_SOON_MS, &o);
    assert_int_equal(c.end, 1);
    den_clean(&d);
}

static void finished_ones_are_kept_up_to_a_limit(void **state)
{
    den d;
    int64_t first = 0, last = 0;
    seen s = {0};
    csn_error *err = NULL;

    (void)state;
    den_make(&d);
    for (unsigned i = 0; i < CSN_KEEPER_ENDED_MAX + 20; i++) {
        last = start(&d, "exit 0");
        first = first ? first : last;
        if (i % 16 == 0)
            ask(&d, last, DEN_SOON_MS);
    }
    ask(&d, last, DEN_SOON_MS);
    for (int i = 0; i < DEN_SOON_MS / 10; i++) {
        s = ask(&d, 0, 0);
        if (s.count <= (int)CSN_KEEPER_ENDED_MAX)
            break;
        poll(NULL, 0, 10);
    }
    assert_int_equal(s.count, CSN_KEEPER_ENDED_MAX);
    assert_int_equal(d.ops->processes->list(d.state, first, 0, see, &s, &err), CSN_NOT_FOUND);
    csn_error_free(err);
    den_clean(&d);
}

static void keeper_leaks_no_descriptor(void **state)
{
    den d;
    void *tie;
    int64_t pid = 0;

    (void)state;
    den_make(&d);
    ask(&d, start(&d, "true"), DEN_SOON_MS);
    size_t before = den_fds(den_keeper(&d)), ours = den_fds(getpid());
    for (int i = 0; i < 10; i++) {
        pid = start_with(&d, "cat", CSN_EXEC_STDIN, 4096, NULL);
        d.ops->processes->feed(d.state, pid, "x", 1, DEN_SOON_MS, NULL);
        d.ops->processes->feed(d.state, pid, NULL, 0, DEN_SOON_MS, NULL);
        ask(&d, pid, DEN_SOON_MS);
        pid = start_with(&d, "true", CSN_EXEC_PTY, 4096, NULL);
        ask(&d, pid, DEN_SOON_MS);
        pid = start_with(&d, "sleep 600", CSN_EXEC_TIED | CSN_EXEC_STDIN, 4096, &tie);
        d.ops->processes->release_tied(tie);
        ask(&d, pid, DEN_SOON_MS);
    }
    assert_true(den_fds_settled(den_keeper(&d), before) <= before);
    assert_int_equal(den_fds(getpid()), ours);
    assert_int_equal(den_zombies_of(den_keeper(&d)), 0);
    den_clean(&d);
}

static void port_is_waited_for(void **state)
{
    den d;
    csn_error *err = NULL;
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(a);

    (void)state;
    den_make(&d);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&a, &len), 0);
    uint16_t port = ntohs(a.sin_port);
    uint64_t from = csn_now_ns();
    assert_int_equal(d.ops->processes->wait_port(d.state, port, 150, &err), CSN_TIMEOUT);
    csn_error_free(err);
    assert_true(csn_now_ns() - from >= 149000000);
    assert_int_equal(listen(fd, 5), 0);
    assert_int_equal(d.ops->processes->wait_port(d.state, port, DEN_SOON_MS, NULL), CSN_OK);
    close(fd);
    den_clean(&d);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(process_runs_is_listed_and_waited_for),
        cmocka_unit_test(wait_that_is_too_short_says_it_runs),
        cmocka_unit_test(unknown_process_is_not_found),
        cmocka_unit_test(missing_program_cannot_be_started),
        cmocka_unit_test(logs_wait_for_output_and_follow),
        cmocka_unit_test(ring_keeps_the_tail_and_counts_all),
        cmocka_unit_test(logs_larger_than_a_message_come_whole),
        cmocka_unit_test(signals_reach_the_group_and_kill_the_tree),
        cmocka_unit_test(term_reaches_those_that_left_the_group),
        cmocka_unit_test(signal_that_is_deadly_at_once_is_told_as_delivered),
        cmocka_unit_test(signal_to_one_that_ended_is_refused_on_a_busy_machine),
        cmocka_unit_test(stdin_is_fed_and_closed),
        cmocka_unit_test(terminal_has_a_size_and_can_be_resized),
        cmocka_unit_test(closing_a_terminals_stdin_is_an_end_of_file),
        cmocka_unit_test(tied_process_ends_with_its_tie),
        cmocka_unit_test(deadline_of_a_background_process_is_kept),
        cmocka_unit_test(bytes_for_stdin_outlive_the_call),
        cmocka_unit_test(log_ends_although_a_grandchild_holds_the_pipe),
        cmocka_unit_test(finished_ones_are_kept_up_to_a_limit),
        cmocka_unit_test(keeper_leaks_no_descriptor),
        cmocka_unit_test(port_is_waited_for),
    };

    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
