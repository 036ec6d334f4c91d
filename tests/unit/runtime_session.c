/* runtime_session.c: persistent shells of the local backend, with a real keeper. */
#include <pthread.h>
#include <sys/eventfd.h>

#include "keeper_fixture.h"

static csn_exec_req session_req(const char *name, const char *command)
{
    static const char *const argv[] = {"bash", "-c", "unused", NULL};
    csn_exec_req req = den_req(argv);

    req.session = name;
    req.command = command;
    return req;
}

/* One command in session "s"; o is emptied first. */
static void say(den *d, const char *command, out *o)
{
    csn_exec_req req = session_req("s", command);

    memset(o, 0, sizeof(*o));
    req.deadline_ns = csn_deadline_in(DEN_SOON_MS);
    den_run(d, &req, o);
}

static void state_persists_between_commands(void **state)
{
    den d;
    out o;

    (void)state;
    den_make(&d);
    say(&d, "mkdir sub; cd sub; X=5; export Y=6; f() { echo f:$1; }", &o);
    assert_int_equal(o.end.exit_code, 0);
    say(&d, "pwd; echo $X; sh -c 'echo $Y'; f 7", &o);
    char want[200];
    snprintf(want, sizeof(want), "%s/sub\n5\n6\nf:7\n", d.base);
    assert_string_equal(o.text[0], want);
    say(&d, "no-such-command", &o);
    assert_non_null(strstr(o.text[1], "sh: ")); /* bash: line 7: ..., or sh: 7: ... */
    say(&d, "echo err >&2; false", &o);
    assert_string_equal(o.text[1], "err\n");
    assert_int_equal(o.end.exit_code, 1);
    say(&d, "(exit 42)", &o);
    assert_int_equal(o.end.exit_code, 42);
    den_clean(&d);
}

static void sessions_do_not_share_state(void **state)
{
    den d;
    out o;

    (void)state;
    den_make(&d);
    say(&d, "X=1", &o);
    csn_exec_req req = session_req("other", "echo [$X]");
    memset(&o, 0, sizeof(o));
    den_run(&d, &req, &o);
    assert_string_equal(o.text[0], "[]\n");
    den_clean(&d);
}

/* None of these may swallow what is fed after it. */
static void no_command_poisons_the_session(void **state)
{
    static const struct {
        const char *command, *out; /* NULL: shells differ */
        int code;                  /* -1: not zero */
    } rows[] = {
        {"cat <<EOF\nhello $((1+1))\nEOF", "hello 2\n", 0},
        {"cat <<EOF\nno end", NULL, 0},
        {"echo \"unfinished", "", -1},
        {"echo 'unfinished", "", -1},
        {"if true; then", "", -1},
        {"}", "", -1},
        {")", "", -1},
        {"echo a; echo 'b c'\\''d'; echo \"e'f\"", "a\nb c'd\ne'f\n", 0},
        {"# only a comment", "", 0},
        {"", "", 0},
        {"echo one\necho two\n\n", "one\ntwo\n", 0},
        {"cat", "", 0}, /* stdin is empty */
        {"read x; echo $?", "1\n", 0},
        {"exec 0<&-; echo in", "in\n", 0},
        {"exec </dev/zero; head -c 3 | wc -c", "3\n", 0},
        {"echo 0 >&9", "", -1}, /* the status pipe is not there */
        {"exec 9>&-; echo ok", "ok\n", 0},
        {"echo a\\", NULL, 0},
        {"printf() { :; }; command() { :; }; unset -f printf command; echo x", "x\n", 0},
        {"no-such-command-here", "", 127},
    };
    den d;
    out o;

    (void)state;
    den_make(&d);
    say(&d, "KEPT=yes", &o);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        say(&d, rows[i].command, &o);
        if ((rows[i].out && strcmp(o.text[0], rows[i].out) != 0) ||
            o.end.how != CSN_END_EXITED ||
            (rows[i].code >= 0 ? o.end.exit_code != rows[i].code : o.end.exit_code == 0))
            fail_msg("'%s': how %u, exit %d, out '%s', err '%s'", rows[i].command, o.end.how,
                     o.end.exit_code, o.text[0], o.text[1]);
        say(&d, "echo $KEPT", &o);
        if (strcmp(o.text[0], "yes\n") != 0)
            fail_msg("after '%s': '%s' '%s'", rows[i].command, o.text[0], o.text[1]);
    }
    den_clean(&d);
}

static void output_larger_than_a_pipe_comes_whole(void **state)
{
    den d;
    out o;

    (void)state;
    den_make(&d);
    say(&d, "head -c 3000000 /dev/zero; head -c 200000 /dev/zero >&2", &o);
    assert_int_equal(o.total[0], 3000000);
    assert_int_equal(o.total[1], 200000);
    den_clean(&d);
}

static void long_commands_are_fed_whole(void **state)
{
    den d;
    out o;
    size_t len = 200000;
    char *text = malloc(len + 16);

    (void)state;
    memcpy(text, "printf %s ", 10);
    memset(text + 10, 'x', len);
    text[len + 10] = '\0';
    den_make(&d);
    say(&d, text, &o);
    assert_int_equal(o.total[0], len);
    den_clean(&d);
    free(text);
}

static void exit_ends_the_session_with_its_code(void **state)
{
    den d;
    out o;

    (void)state;
    den_make(&d);
    say(&d, "X=1; echo bye; exit 9", &o);
    assert_string_equal(o.text[0], "bye\n");
    assert_int_equal(o.end.how, CSN_END_EXITED);
    assert_int_equal(o.end.exit_code, 9);
    say(&d, "echo [$X]", &o);
    assert_string_equal(o.text[0], "[]\n");
    say(&d, "kill -9 $$", &o);
    assert_int_equal(o.end.signal, SIGKILL);
    /* what it left behind can go on writing */
    say(&d, "(sleep 0.3; head -c 300000 /dev/zero; echo done > flag) & echo out; exit 0", &o);
    assert_string_equal(o.text[0], "out\n");
    assert_string_equal(den_file_soon(&d, "flag"), "done\n");
    say(&d, "echo again", &o);
    assert_string_equal(o.text[0], "again\n");
    den_clean(&d);
}

static void timeout_ends_the_session_and_the_rest_of_the_line(void **state)
{
    den d;
    out o;
    char text[200];

    (void)state;
    den_make(&d);
    const char *mark = den_mark();
    say(&d, "X=1", &o);
    snprintf(
        text, sizeof(text),
        "echo start; setsid sh -c 'sleep 600; : %s' & trap '' TERM; sleep 600; echo no > ran",
        mark);
    csn_exec_req req = session_req("s", text);
    for (uint64_t ms = 200; ms <= DEN_SOON_MS; ms *= 2) { /* until there is time to begin */
        memset(&o, 0, sizeof(o));
        req.deadline_ns = csn_deadline_in(ms);
        den_run(&d, &req, &o);
        assert_int_equal(o.end.how, CSN_END_TIMEOUT);
        if (o.total[0] > 0)
            break;
    }
    assert_string_equal(o.text[0], "start\n");
    assert_int_equal(den_alive(mark), 0);
    say(&d, "echo [$X]; cat ran", &o);
    assert_string_equal(o.text[0], "[]\n");
    den_clean(&d);
}

static void cancel_ends_the_session(void **state)
{
    den d;
    out o = {0};
    csn_exec_req req = session_req("s", "sleep 600");

    (void)state;
    den_make(&d);
    req.cancel_fds[0] = eventfd(1, EFD_CLOEXEC);
    den_run(&d, &req, &o);
    assert_int_equal(o.end.how, CSN_END_CANCEL);
    close(req.cancel_fds[0]);
    say(&d, "echo ok", &o);
    assert_string_equal(o.text[0], "ok\n");
    den_clean(&d);
}

static void restart_gives_a_fresh_shell(void **state)
{
    den d;
    out o;
    char text[100];

    (void)state;
    den_make(&d);
    const char *mark = den_mark();
    snprintf(text, sizeof(text), "X=1; sh -c 'sleep 600; : %s' &", mark);
    say(&d, text, &o);
    csn_exec_req req = session_req("s", "echo [$X]");
    req.flags = CSN_EXEC_RESTART;
    memset(&o, 0, sizeof(o));
    den_run(&d, &req, &o);
    assert_string_equal(o.text[0], "[]\n");
    assert_int_equal(den_left_at_last(mark), 0);
    den_clean(&d);
}

static void environment_and_directory_of_a_call(void **state)
{
    den d;
    out o = {0};
    const char *env[] = {"A=it's $HOME", "HOME=/evil", NULL};
    csn_exec_req req = session_req("s", "echo \"$A\"; basename \"$PWD\"; echo $HOME");
    char want[200], sub[128];
    csn_error *err = NULL;
    csn_sink sink = {den_sink, &o};

    (void)state;
    den_make(&d);
    snprintf(sub, sizeof(sub), "%s/a b'c", d.base);
    assert_int_equal(mkdir(sub, 0700), 0);
    say(&d, "true", &o);
    memset(&o, 0, sizeof(o));
    req.env = env;
    req.cwd = "/a b'c";
    den_run(&d, &req, &o);
    snprintf(want, sizeof(want), "it's $HOME\na b'c\n%s\n", d.home);
    assert_string_equal(o.text[0], want);
    say(&d, "basename \"$PWD\"", &o); /* it stays there */
    assert_string_equal(o.text[0], "a b'c\n");
    req = session_req("s", "basename \"$PWD\"");
    req.cwd = d.base;
    req.flags = CSN_EXEC_STAY; /* only meant for a new shell */
    memset(&o, 0, sizeof(o));
    den_run(&d, &req, &o);
    assert_string_equal(o.text[0], "a b'c\n");
    env[0] = "not a name=1";
    req.env = env;
    assert_int_equal(d.ops->exec(d.state, &req, &sink, &o.end, &err), CSN_INVALID);
    csn_error_free(err);
    den_clean(&d);
}

static void merge_is_fixed_at_first_use(void **state)
{
    den d;
    out o = {0};
    csn_exec_req req = session_req("m", "echo a; echo b >&2; echo c");
    csn_error *err = NULL;
    csn_sink sink = {den_sink, &o};

    (void)state;
    den_make(&d);
    req.flags = CSN_EXEC_MERGE;
    den_run(&d, &req, &o);
    assert_string_equal(o.text[0], "a\nb\nc\n");
    req.flags = 0;
    assert_int_equal(d.ops->exec(d.state, &req, &sink, &o.end, &err), CSN_INVALID);
    csn_error_free(err);
    den_clean(&d);
}

static int64_t no_source(void *ctx, void *buf, size_t len)
{
    (void)ctx;
    (void)buf;
    (void)len;
    return 0;
}

static void stdin_is_unsupported(void **state)
{
    den d;
    out o = {0};
    csn_exec_req req = session_req("s", "cat");
    csn_source src = {no_source, NULL};
    csn_error *err = NULL;
    csn_sink sink = {den_sink, &o};

    (void)state;
    den_make(&d);
    req.input = &src;
    assert_int_equal(d.ops->exec(d.state, &req, &sink, &o.end, &err), CSN_UNSUPPORTED);
    csn_error_free(err);
    den_clean(&d);
}

typedef struct other {
    den *d;
    out o;
    csn_exec_req req;
} other;

static void *run_other(void *arg)
{
    other *t = arg;
    csn_sink sink = {den_sink, &t->o};
    uint64_t from = csn_now_ns();

    t->o.st = t->d->ops->exec(t->d->state, &t->req, &sink, &t->o.end, NULL);
    t->o.ms = (double)(csn_now_ns() - from) / 1e6;
    return NULL;
}

static void second_caller_waits_for_its_turn(void **state)
{
    den d;
    other a = {.d = &d}, b = {.d = &d}, c = {.d = &d};
    pthread_t ta, tb, tc;

    (void)state;
    den_make(&d);
    a.req = session_req("s", "X=5; echo 1 > up; until test -e go; do sleep 0.02; done; "
                             "echo first");
    b.req = session_req("s", "echo second $X");
    c.req = session_req("s", "echo never");
    pthread_create(&ta, NULL, run_other, &a);
    assert_string_equal(den_file_soon(&d, "up"), "1\n");
    c.req.deadline_ns = csn_deadline_in(100);
    pthread_create(&tb, NULL, run_other, &b);
    pthread_create(&tc, NULL, run_other, &c);
    pthread_join(tc, NULL);
    den_touch(&d, "go");
    pthread_join(ta, NULL);
    pthread_join(tb, NULL);
    assert_string_equal(a.o.text[0], "first\n");
    assert_string_equal(b.o.text[0], "second 5\n");
    assert_int_equal(c.o.end.how, CSN_END_TIMEOUT);
    assert_string_equal(c.o.text[0], "");
    den_clean(&d);
}

static void *run_many(void *arg)
{
    other *t = arg;

    for (int i = 0; i < 10 && t->o.st == CSN_OK; i++)
        run_other(t);
    return NULL;
}

static void many_threads_share_one_session(void **state)
{
    den d;
    pthread_t th[16];
    other *t = calloc(16, sizeof(*t));
    out o;

    (void)state;
    den_make(&d);
    say(&d, "N=0", &o);
    for (int i = 0; i < 16; i++) {
        t[i].d = &d;
        t[i].req = session_req("s", "N=$((N+1)); echo x");
        pthread_create(&th[i], NULL, run_many, &t[i]);
    }
    for (int i = 0; i < 16; i++) {
        pthread_join(th[i], NULL);
        assert_int_equal(t[i].o.st, CSN_OK);
        assert_int_equal(t[i].o.total[0], 20);
    }
    say(&d, "echo $N", &o);
    assert_string_equal(o.text[0], "160\n");
    assert_int_equal(den_zombies_of(den_keeper(&d)), 0);
    den_clean(&d);
    free(t);
}

/* While nobody uses the session the keeper reads what its background children write. */
static void background_child_of_a_session_is_not_blocked(void **state)
{
    den d;
    out o;

    (void)state;
    den_make(&d);
    say(&d,
        "(until test -e go; do sleep 0.02; done; head -c 400000 /dev/zero; echo done > flag) & "
        "echo started",
        &o);
    assert_string_equal(o.text[0], "started\n");
    say(&d, ": > go", &o);
    assert_string_equal(den_file_soon(&d, "flag"), "done\n");
    say(&d, "echo next", &o);
    assert_string_equal(o.text[0], "next\n");
    den_clean(&d);
}

static void caller_that_dies_takes_its_session_along(void **state)
{
    den d;
    out *o = calloc(1, sizeof(*o));
    char text[100];

    (void)state;
    const char *mark = den_mark();
    den_dirs(&d);
    d.config.flags = CSN_OPEN_DETACHED;
    d.config.lifetime_ms = 600000; /* should the test fail */
    den_open(&d);
    assert_int_equal(d.ops->commit(d.state, NULL), CSN_OK);
    char *id = strdup(((csn_runtime *)d.state)->id);
    snprintf(text, sizeof(text), "sh -c 'sleep 600; : %s'; echo no > ran", mark);
    pid_t pid = fork();
    if (pid == 0) {
        void *again = NULL;
        if (d.ops->connect(&d.config, id, NULL, &again, NULL) != CSN_OK)
            _exit(1);
        d.state = again;
        say(&d, text, o);
        _exit(0);
    }
    assert_true(den_alive_soon(mark, 1) >= 1);
    kill(pid, SIGKILL);
    assert_int_equal(den_left_at_last(mark), 0);
    waitpid(pid, NULL, 0);
    say(&d, "cat ran; echo fresh", o);
    assert_string_equal(o->text[0], "fresh\n");
    d.ops->destroy(d.state, NULL);
    den_clean(&d);
    free(id);
    free(o);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(state_persists_between_commands),
        cmocka_unit_test(sessions_do_not_share_state),
        cmocka_unit_test(no_command_poisons_the_session),
        cmocka_unit_test(output_larger_than_a_pipe_comes_whole),
        cmocka_unit_test(long_commands_are_fed_whole),
        cmocka_unit_test(exit_ends_the_session_with_its_code),
        cmocka_unit_test(timeout_ends_the_session_and_the_rest_of_the_line),
        cmocka_unit_test(cancel_ends_the_session),
        cmocka_unit_test(restart_gives_a_fresh_shell),
        cmocka_unit_test(environment_and_directory_of_a_call),
        cmocka_unit_test(merge_is_fixed_at_first_use),
        cmocka_unit_test(stdin_is_unsupported),
        cmocka_unit_test(second_caller_waits_for_its_turn),
        cmocka_unit_test(many_threads_share_one_session),
        cmocka_unit_test(background_child_of_a_session_is_not_blocked),
        cmocka_unit_test(caller_that_dies_takes_its_session_along),
    };

    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
