/* runtime_exec.c: foreground commands of the local backend, with a real keeper. */
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "keeper_fixture.h"

static void exec_reports_output_and_exit_code(void **state)
{
    den d;
    out o;

    (void)state;
    den_make(&d);
    den_sh(&d, "echo out; echo err >&2; exit 7", 0, &o);
    assert_string_equal(o.text[0], "out\n");
    assert_string_equal(o.text[1], "err\n");
    assert_int_equal(o.end.how, CSN_END_EXITED);
    assert_int_equal(o.end.exit_code, 7);
    assert_int_equal(o.end.signal, 0);
    assert_true(o.end.peak_memory > 100 * 1024);
    den_clean(&d);
}

static void exec_reports_the_signal_that_ended_it(void **state)
{
    den d;
    out o;

    (void)state;
    den_make(&d);
    den_sh(&d, "kill -SEGV $$", 0, &o);
    assert_int_equal(o.end.exit_code, -1);
    assert_int_equal(o.end.signal, SIGSEGV);
    den_clean(&d);
}

static void exec_counts_cpu_time(void **state)
{
    den d;
    out o;

    (void)state;
    den_make(&d);
    den_sh(&d, "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done", 0, &o);
    assert_true(o.end.cpu_ns > 5000000);
    den_clean(&d);
}

static void exec_merge_keeps_arrival_order(void **state)
{
    den d;
    out o = {0};
    const char *argv[] = {"/bin/sh", "-c", "for i in 1 2 3; do echo o$i; echo e$i >&2; done",
                          NULL};
    csn_exec_req req = den_req(argv);

    (void)state;
    den_make(&d);
    req.flags = CSN_EXEC_MERGE;
    den_run(&d, &req, &o);
    assert_string_equal(o.text[0], "o1\ne1\no2\ne2\no3\ne3\n");
    assert_int_equal(o.total[1], 0);
    den_clean(&d);
}

typedef struct source {
    const char *data;
    size_t left, asked;
} source;

static int64_t source_read(void *ctx, void *buf, size_t len)
{
    source *s = ctx;
    size_t n = len < s->left ? len : s->left;

    s->asked++;
    memcpy(buf, s->data, n);
    s->data += n;
    s->left -= n;
    return (int64_t)n;
}

static void exec_feeds_stdin_larger_than_a_pipe(void **state)
{
    den d;
    out o = {0};
    const char *argv[] = {"/usr/bin/wc", "-c", NULL};
    size_t len = 3 * 1024 * 1024 + 17;
    char *data = malloc(len);
    source s = {data, len, 0};
    csn_source input = {source_read, &s};
    csn_exec_req req = den_req(argv);

    (void)state;
    memset(data, 'x', len);
    den_make(&d);
    req.input = &input;
    den_run(&d, &req, &o);
    assert_string_equal(o.text[0], "3145745\n");
    assert_int_equal(s.left, 0);
    den_clean(&d);
    free(data);
}

/* A command that does not read must not stop us, and SIGPIPE must not reach the host. */
static void exec_survives_a_command_that_ignores_stdin(void **state)
{
    den d;
    out o = {0};
    const char *argv[] = {"/bin/true", NULL};
    static char data[1024 * 1024];
    source s = {data, sizeof(data), 0};
    csn_source input = {source_read, &s};
    csn_exec_req req = den_req(argv);
    sigset_t pending;

    (void)state;
    assert_true(signal(SIGPIPE, SIG_DFL) != SIG_ERR);
    den_make(&d);
    req.input = &input;
    den_run(&d, &req, &o);
    assert_int_equal(o.end.exit_code, 0);
    sigpending(&pending);
    assert_int_equal(sigismember(&pending, SIGPIPE), 0);
    den_clean(&d);
}

/* The end of the input is typed on the terminal; stderr is no part of it without MERGE. */
static void exec_gives_a_terminal(void **state)
{
    den d;
    out o = {0};
    const char *argv[] = {"/bin/sh", "-c",
                          "test -t 0 && test -t 1 && stty size && cat; test -t 2 || echo e >&2",
                          NULL};
    const char text[] = "typed\n";
    source s = {text, strlen(text), 0};
    csn_source input = {source_read, &s};
    csn_exec_req req = den_req(argv);

    (void)state;
    den_make(&d);
    req.flags = CSN_EXEC_PTY;
    req.rows = 12;
    req.cols = 34;
    req.input = &input;
    den_run(&d, &req, &o);
    assert_int_equal(o.end.how, CSN_END_EXITED);
    assert_int_equal(o.end.exit_code, 0);
    assert_non_null(strstr(o.text[0], "12 34\r\n"));
    assert_non_null(strstr(o.text[0], "typed\r\n"));
    assert_string_equal(o.text[1], "e\n");
    req.flags |= CSN_EXEC_MERGE;
    req.input = NULL;
    o = (out){0};
    den_run(&d, &req, &o);
    assert_string_equal(o.text[0], "12 34\r\n");
    assert_string_equal(o.text[1], "");
    den_clean(&d);
}

static void exec_takes_a_descriptor_as_stdin(void **state)
{
    den d;
    out o = {0};
    const char *argv[] = {"/bin/cat", NULL};
    csn_exec_req req = den_req(argv);
    int p[2];

    (void)state;
    den_make(&d);
    assert_int_equal(pipe2(p, O_CLOEXEC), 0);
    assert_int_equal(write(p[1], "hello", 5), 5);
    close(p[1]);
    req.input_fd = p[0];
    den_run(&d, &req, &o);
    assert_string_equal(o.text[0], "hello");
    close(p[0]);
    den_clean(&d);
}

static void exec_gives_an_empty_stdin_by_default(void **state)
{
    den d;
    out o;

    (void)state;
    den_make(&d);
    den_sh(&d, "cat; readlink /proc/self/fd/0", 2000, &o);
    assert_string_equal(o.text[0], "/dev/null\n");
    den_clean(&d);
}

static void exec_runs_in_the_given_directory(void **state)
{
    den d;
    out o = {0};
    char sub[128];
    const char *argv[] = {"/bin/sh", "-c", "pwd; echo $PWD", NULL};
    csn_exec_req req = den_req(argv);

    (void)state;
    den_make(&d);
    snprintf(sub, sizeof(sub), "%s/sub", d.base);
    assert_int_equal(mkdir(sub, 0700), 0);
    req.cwd = "/sub";
    den_run(&d, &req, &o);
    char want[300];
    snprintf(want, sizeof(want), "%s\n%s\n", sub, sub);
    assert_string_equal(o.text[0], want);
    den_clean(&d);
}

static void exec_in_a_missing_directory_is_an_error(void **state)
{
    den d;
    const char *argv[] = {"/bin/true", NULL};
    csn_exec_req req = den_req(argv);
    csn_error *err = NULL;
    csn_exec_end end;
    out o = {0};
    csn_sink sink = {den_sink, &o};

    (void)state;
    den_make(&d);
    req.cwd = "/nowhere";
    assert_int_equal(d.ops->exec(d.state, &req, &sink, &end, &err), CSN_NOT_FOUND);
    csn_error_free(err);
    den_clean(&d);
}

static void missing_program_is_127_with_the_shells_message(void **state)
{
    den d;
    out o = {0};
    const char *argv[] = {"no-such-program-here", NULL};
    csn_exec_req req = den_req(argv);

    (void)state;
    den_make(&d);
    den_run(&d, &req, &o);
    assert_int_equal(o.end.how, CSN_END_SPAWN);
    assert_int_equal(o.end.exit_code, 127);
    assert_string_equal(o.end.message, "no-such-program-here: command not found\n");
    argv[0] = "/no/such/path";
    den_run(&d, &req, &o);
    assert_int_equal(o.end.exit_code, 127);
    den_clean(&d);
}

static void program_that_may_not_be_run_is_126(void **state)
{
    den d;
    out o = {0};
    char path[128];
    const char *argv[] = {path, NULL};
    csn_exec_req req = den_req(argv);

    (void)state;
    den_make(&d);
    snprintf(path, sizeof(path), "%s/plain", d.base);
    int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
    close(fd);
    den_run(&d, &req, &o);
    assert_int_equal(o.end.how, CSN_END_SPAWN);
    assert_int_equal(o.end.exit_code, 126);
    assert_non_null(strstr(o.end.message, ": Permission denied\n"));
    den_clean(&d);
}

static void script(const char *path, const char *text)
{
    int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0755);

    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
}

static void script_without_an_interpreter_line_is_run_by_sh(void **state)
{
    den d;
    out o = {0};
    char path[128];
    const char *argv[] = {path, "a b", "c", NULL};
    csn_exec_req req = den_req(argv);

    (void)state;
    den_make(&d);
    snprintf(path, sizeof(path), "%s/run", d.base);
    script(path, "echo \"$# $1\"\n");
    den_run(&d, &req, &o);
    assert_string_equal(o.text[0], "2 a b\n");
    snprintf(path, sizeof(path), "%s/bad", d.base);
    script(path, "#!/no/such/interpreter\n");
    den_run(&d, &req, &o);
    assert_int_equal(o.end.exit_code, 126);
    assert_non_null(strstr(o.end.message, "bad interpreter"));
    den_clean(&d);
}

static void other_spawn_failures_are_exit_1(void **state)
{
    den d;
    out o = {0};
    size_t len = 200 * 1024; /* one argument over the kernel's MAX_ARG_STRLEN */
    char *big = malloc(len + 1);
    const char *argv[] = {"/bin/echo", big, NULL};
    csn_exec_req req = den_req(argv);

    (void)state;
    memset(big, 'a', len);
    big[len] = '\0';
    den_make(&d);
    den_run(&d, &req, &o);
    assert_int_equal(o.end.how, CSN_END_SPAWN);
    assert_int_equal(o.end.exit_code, 1);
    assert_string_equal(o.end.message, "Error: Argument list too long");
    den_clean(&d);
    free(big);
}

/* Over 64 KiB the request travels in a sealed memfd. */
static void long_argument_lists_arrive_whole(void **state)
{
    den d;
    out o = {0};
    static char word[3][100 * 1024];
    const char *argv[] = {"/bin/sh", "-c", "echo ${#1} ${#2} ${#3}", "sh", word[0], word[1],
                          word[2],   NULL};
    csn_exec_req req = den_req(argv);

    (void)state;
    for (int i = 0; i < 3; i++)
        memset(word[i], 'a' + i, sizeof(word[i]) - 1);
    den_make(&d);
    den_run(&d, &req, &o);
    assert_string_equal(o.text[0], "102399 102399 102399\n");
    den_clean(&d);
}

static void commands_inherit_no_descriptor(void **state)
{
    den d;
    out o;

    (void)state;
    int leaky = dup(0); /* not close-on-exec, on purpose */
    int far = fcntl(0, F_DUPFD, 200);
    den_make(&d);
    den_sh(&d, "cd /proc/self/fd; echo *", 0, &o);
    /* dash itself holds nothing; the glob opens one directory */
    assert_true(strcmp(o.text[0], "0 1 2 3\n") == 0 || strcmp(o.text[0], "0 1 2\n") == 0);
    close(leaky);
    close(far);
    den_clean(&d);
}

static void environment_is_an_allow_list(void **state)
{
    den d;
    out o;
    static const char *const env[] = {"GIVEN=1", "TAKEN", "HOME=/evil", NULL};
    const char *extra[] = {"CALL=2", "HOME=/evil", "PWD=/evil", NULL};
    const char *argv[] = {"/usr/bin/env", NULL};
    csn_exec_req req = den_req(argv);

    (void)state;
    setenv("AWS_SECRET_ACCESS_KEY", "hunter2", 1);
    setenv("LD_PRELOAD", "", 1);
    setenv("TAKEN", "yes", 1);
    setenv("LC_ALL", "C", 1);
    setenv("LC_TIME", "de_DE.UTF-8@euro", 1);
    setenv("LC_PAPER", "POSIX", 1);
    setenv("LC_NAME", "hunter2", 1);          /* no locale */
    setenv("LC_CTYPE", "en_US.UTF-8:key", 1); /* more than one */
    setenv("LC_TOKEN", "C", 1);               /* no category */
    den_dirs(&d);
    d.config.env = env;
    den_open(&d);
    memset(&o, 0, sizeof(o));
    req.env = extra;
    den_run(&d, &req, &o);
    char home[128], pwd[128];
    snprintf(home, sizeof(home), "HOME=%s\n", d.home);
    snprintf(pwd, sizeof(pwd), "PWD=%s\n", d.base);
    assert_non_null(strstr(o.text[0], home));
    assert_non_null(strstr(o.text[0], pwd));
    assert_non_null(strstr(o.text[0], "GIVEN=1\n"));
    assert_non_null(strstr(o.text[0], "TAKEN=yes\n"));
    assert_non_null(strstr(o.text[0], "CALL=2\n"));
    assert_non_null(strstr(o.text[0], "LC_ALL=C\n"));
    assert_non_null(strstr(o.text[0], "LC_TIME=de_DE.UTF-8@euro\n"));
    assert_non_null(strstr(o.text[0], "LC_PAPER=POSIX\n"));
    assert_null(strstr(o.text[0], "LC_NAME"));
    assert_null(strstr(o.text[0], "LC_CTYPE"));
    assert_null(strstr(o.text[0], "LC_TOKEN"));
    assert_null(strstr(o.text[0], "AWS_"));
    assert_null(strstr(o.text[0], "evil"));
    assert_null(strstr(o.text[0], "LD_PRELOAD"));
    assert_null(strstr(o.text[0], "CSN_TEST_KEEPER"));
    den_clean(&d);
}

static void timeout_ends_the_command_and_keeps_its_output(void **state)
{
    den d;
    out o;

    (void)state;
    den_make(&d);
    den_sh_until(&d, "echo before; sleep 600; echo after", 100, "before", &o);
    assert_int_equal(o.end.how, CSN_END_TIMEOUT);
    assert_string_equal(o.text[0], "before\n");
    assert_true(o.ms >= 99);
    den_clean(&d);
}

static void timeout_lets_the_command_clean_up_in_its_grace(void **state)
{
    den d;
    out o;

    (void)state;
    den_make(&d);
    o.end.exit_code = -1;
    /* the grace is short: on a busy machine not every try gets that far */
    for (uint64_t ms = 150; o.end.exit_code != 3 && ms <= DEN_SOON_MS; ms *= 2)
        den_sh(&d, "trap 'echo bye; exit 3' TERM; echo up; while :; do sleep 0.01; done", ms,
               &o);
    assert_int_equal(o.end.how, CSN_END_TIMEOUT);
    assert_string_equal(o.text[0], "up\nbye\n");
    assert_int_equal(o.end.exit_code, 3);
    den_clean(&d);
}

/* Each would outlive a kill of the process group, or of the shell alone. */
static void timeout_kills_every_kind_of_tree(void **state)
{
    static const char *const trees[] = {
        "sleep 1000.%s & sleep 1000.%s & wait",
        "setsid sleep 1000.%s & sleep 600",
        "(setsid sh -c 'sleep 1000.%s & sleep 1000.%s & wait' &) ; sleep 600",
        "trap '' TERM; setsid sh -c 'trap \"\" TERM; sleep 1000.%s; sleep 1000.%s' & sleep 600",
        "sh -c 'kill -STOP $$; : %s' & setsid sh -c 'kill -STOP $$; : %s' & sleep 600",
        "nohup sh -c 'sleep 1000.%s' >/dev/null 2>&1 & sleep 600",
    };
    den d;
    out o;

    (void)state;
    den_make(&d);
    for (size_t i = 0; i < sizeof(trees) / sizeof(trees[0]); i++) {
        char text[512], mark[64];
        snprintf(mark, sizeof(mark), "77%d%zu", (int)getpid(), i); /* digits: for sleep */
        snprintf(text, sizeof(text), trees[i], mark, mark);
        den_sh(&d, text, 120, &o);
        assert_int_equal(o.end.how, CSN_END_TIMEOUT);
        if (den_alive(mark) != 0) /* when exec returns nothing is left */
            fail_msg("tree %zu: %d left", i, den_alive(mark));
    }
    assert_int_equal(den_zombies_of(den_keeper(&d)), 0);
    den_clean(&d);
}

/* Processes that fork and exit for ever, so that no pid lives long. */
static void timeout_catches_a_tree_that_keeps_forking(void **state)
{
    den d;
    out o;
    char text[512], path[160];

    (void)state;
    den_make(&d);
    const char *mark = den_mark();
    snprintf(path, sizeof(path), "%s/hop", d.base);
    snprintf(text, sizeof(text), "#!/bin/sh\n# hops\n(%s %s &)\n", path, mark);
    script(path, text);
    snprintf(text, sizeof(text), "./hop %s; ./hop %s; ./hop %s; ./hop %s; sleep 600", mark,
             mark, mark, mark);
    den_sh(&d, text, 300, &o);
    assert_int_equal(o.end.how, CSN_END_TIMEOUT);
    print_message("# ended after %.0f ms\n", o.ms);
    assert_int_equal(den_alive(mark), 0);
    poll(NULL, 0, 30);
    assert_int_equal(den_alive(mark), 0);
    den_clean(&d);
}

static void cancel_ends_the_command(void **state)
{
    den d;
    out o = {0};
    const char *argv[] = {"/bin/sh", "-c", "sleep 600", NULL};
    csn_exec_req req = den_req(argv);

    (void)state;
    den_make(&d);
    req.cancel_fds[1] = eventfd(1, EFD_CLOEXEC);
    den_run(&d, &req, &o);
    assert_int_equal(o.end.how, CSN_END_CANCEL);
    close(req.cancel_fds[1]);
    den_clean(&d);
}

static void sink_that_stops_cancels_the_command(void **state)
{
    den d;
    out o = {.stop = 1000};
    const char *argv[] = {"/usr/bin/yes", NULL};
    csn_exec_req req = den_req(argv);

    (void)state;
    den_make(&d);
    den_run(&d, &req, &o);
    assert_int_equal(o.end.how, CSN_END_CANCEL);
    den_clean(&d);
}

static void file_limit_is_reported_as_disk(void **state)
{
    den d;
    out o;

    (void)state;
    den_dirs(&d);
    d.config.file_max = 4096;
    d.config.memory_max = 1ull << 30;
    den_open(&d);
    den_sh(&d, "ulimit -v; exec head -c 10000 /dev/zero > big", 0, &o);
    assert_string_equal(o.text[0], "1048576\n");
    assert_int_equal(o.end.how, CSN_END_DISK);
    assert_int_equal(o.end.signal, SIGXFSZ);
    den_clean(&d);
}

typedef struct worker {
    den *d;
    int bad;
} worker;

static void *work(void *arg)
{
    worker *w = arg;
    char text[64], want[64];

    for (int i = 0; i < 5; i++) {
        out *o = calloc(1, sizeof(*o));
        csn_sink sink = {den_sink, o};
        snprintf(text, sizeof(text), "echo %p %d; exit %d", arg, i, i + 1);
        snprintf(want, sizeof(want), "%p %d\n", arg, i);
        const char *argv[] = {"/bin/sh", "-c", text, NULL};
        csn_exec_req req = den_req(argv);
        csn_status st = w->d->ops->exec(w->d->state, &req, &sink, &o->end, NULL);
        if (st != CSN_OK || strcmp(o->text[0], want) != 0 || o->end.exit_code != i + 1)
            w->bad++;
        free(o);
    }
    return NULL;
}

static void sixty_four_threads_share_one_sandbox(void **state)
{
    den d;
    pthread_t t[64];
    worker w[64];
    out o;

    (void)state;
    den_make(&d);
    den_sh(&d, "true", 0, &o);
    size_t before = den_fds(getpid()), keeper_before = den_fds(den_keeper(&d));
    for (int i = 0; i < 64; i++) {
        w[i] = (worker){.d = &d};
        assert_int_equal(pthread_create(&t[i], NULL, work, &w[i]), 0);
    }
    for (int i = 0; i < 64; i++) {
        pthread_join(t[i], NULL);
        assert_int_equal(w[i].bad, 0);
    }
    assert_int_equal(den_fds(getpid()), before);
    assert_true(den_fds_settled(den_keeper(&d), keeper_before) <= keeper_before);
    assert_int_equal(den_zombies_of(den_keeper(&d)), 0);
    den_clean(&d);
}

/* ---- the channel that one command leaves to the next ---- */

/* -1: none waits. */
static int resting(den *d)
{
    int64_t v = ((csn_runtime *)d->state)->idle_channel;

    return v < 0 ? -1 : (int)(v & INT32_MAX);
}

static void must_work(den *d)
{
    out o;

    den_sh(d, "echo fine; exit 3", 0, &o);
    assert_string_equal(o.text[0], "fine\n");
    assert_int_equal(o.end.exit_code, 3);
}

static void commands_follow_one_another_on_one_channel(void **state)
{
    struct stat first, st;
    den d;

    (void)state;
    den_make(&d);
    must_work(&d);
    assert_true(resting(&d) >= 0);
    assert_int_equal(fstat(resting(&d), &first), 0);
    for (int i = 0; i < 20; i++) {
        must_work(&d);
        assert_int_equal(fstat(resting(&d), &st), 0);
        assert_true(st.st_ino == first.st_ino);
    }
    den_clean(&d);
}

static void a_killed_command_takes_its_channel_along(void **state)
{
    den d;
    out o;

    (void)state;
    den_make(&d);
    must_work(&d);
    den_sh(&d, "sleep 600", 50, &o);
    assert_int_equal(o.end.how, CSN_END_TIMEOUT);
    assert_int_equal(resting(&d), -1);
    must_work(&d);
    assert_true(resting(&d) >= 0);
    den_clean(&d);
}

/* One whose other end is gone, one that a fork of the host was left with, one on which the
 * keeper was sent nonsense: the next command has a channel all the same. */
static void a_channel_of_no_use_is_replaced(void **state)
{
    den d;
    int pair[2];

    (void)state;
    den_make(&d);
    must_work(&d);
    csn_runtime *l = d.state;
    size_t before = den_fds(getpid());
    size_t keeper_before = den_fds(den_keeper(&d));

    close(resting(&d));
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
    close(pair[1]);
    l->idle_channel = (int64_t)getpid() << 32 | pair[0];
    must_work(&d);

    l->idle_channel = (l->idle_channel & INT32_MAX) | (int64_t)getppid() << 32;
    must_work(&d);

    assert_int_equal(csn_msg_send(resting(&d), CSN_MSG_KILL, "x", 1, NULL, 0, 1), 0);
    struct pollfd pf = {.fd = resting(&d)};
    assert_int_equal(poll(&pf, 1, DEN_SOON_MS), 1); /* it hung up */
    must_work(&d);

    int fd = resting(&d);
    assert_int_equal(csn_msg_send(fd, CSN_MSG_SPAWN, "nonsense", 8, &fd, 1, 1), 0);
    pf.fd = fd;
    assert_int_equal(poll(&pf, 1, DEN_SOON_MS), 1);
    must_work(&d);

    assert_int_equal(den_fds(getpid()), before);
    assert_true(den_fds_settled(den_keeper(&d), keeper_before) <= keeper_before);
    den_clean(&d);
}

/* /dev/null takes no listener: the command fails at its own step, and the keeper stays. */
static void sockets_that_cannot_be_diverted_fail_the_command_alone(void **state)
{
    const char *argv[] = {"true", NULL};
    csn_exec_req req = den_req(argv);
    csn_error *err = NULL;
    den d;
    out o = {0};
    csn_sink sink = {den_sink, &o};

    (void)state;
    den_make(&d);
    den_sh(&d, "true", 0, &o);
    pid_t keeper = den_keeper(&d);
    int fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    req.size = sizeof(req);
    const csn_exec_extra extra = {.sockets = fd, .notice_fd = -1};
    assert_int_equal(csn_runtime_exec_with(d.state, &req, &extra, &sink, &o.end, &err), CSN_OK);
    assert_int_equal(o.end.how, CSN_END_SPAWN);
    assert_int_equal(o.end.exit_code, 1);
    den_sh(&d, "echo alive", 0, &o);
    assert_string_equal(o.text[0], "alive\n");
    assert_int_equal(den_keeper(&d), keeper);
    close(fd);
    den_clean(&d);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exec_reports_output_and_exit_code),
        cmocka_unit_test(exec_reports_the_signal_that_ended_it),
        cmocka_unit_test(exec_counts_cpu_time),
        cmocka_unit_test(exec_merge_keeps_arrival_order),
        cmocka_unit_test(exec_feeds_stdin_larger_than_a_pipe),
        cmocka_unit_test(exec_survives_a_command_that_ignores_stdin),
        cmocka_unit_test(exec_takes_a_descriptor_as_stdin),
        cmocka_unit_test(exec_gives_an_empty_stdin_by_default),
        cmocka_unit_test(exec_gives_a_terminal),
        cmocka_unit_test(exec_runs_in_the_given_directory),
        cmocka_unit_test(exec_in_a_missing_directory_is_an_error),
        cmocka_unit_test(missing_program_is_127_with_the_shells_message),
        cmocka_unit_test(program_that_may_not_be_run_is_126),
        cmocka_unit_test(script_without_an_interpreter_line_is_run_by_sh),
        cmocka_unit_test(other_spawn_failures_are_exit_1),
        cmocka_unit_test(long_argument_lists_arrive_whole),
        cmocka_unit_test(commands_inherit_no_descriptor),
        cmocka_unit_test(environment_is_an_allow_list),
        cmocka_unit_test(timeout_ends_the_command_and_keeps_its_output),
        cmocka_unit_test(timeout_lets_the_command_clean_up_in_its_grace),
        cmocka_unit_test(timeout_kills_every_kind_of_tree),
        cmocka_unit_test(timeout_catches_a_tree_that_keeps_forking),
        cmocka_unit_test(cancel_ends_the_command),
        cmocka_unit_test(sink_that_stops_cancels_the_command),
        cmocka_unit_test(file_limit_is_reported_as_disk),
        cmocka_unit_test(sixty_four_threads_share_one_sandbox),
        cmocka_unit_test(commands_follow_one_another_on_one_channel),
        cmocka_unit_test(a_killed_command_takes_its_channel_along),
        cmocka_unit_test(a_channel_of_no_use_is_replaced),
        cmocka_unit_test(sockets_that_cannot_be_diverted_fail_the_command_alone),
    };

    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
