/* remote_base64_stream.c: output and ends through a provider that carries text: the script as
 * shells run it, and the decoder against whatever a sandbox may send.
 *
 * What is shown: every byte arrives in any pieces; an exit is told from a signal; a child that
 * holds the pipes delays nothing; lines that nobody of ours wrote do no harm. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base64.h"
#include "remote/base64_stream.h"

#define EXEC_ID "0123456789abcdefghij"

typedef struct heard {
    csn_buf of[2];
} heard;

static int hear(void *ctx, int stream, const void *data, size_t len)
{
    heard *h = ctx;

    return csn_buf_append(&h->of[stream - 1], data, len) == 0 ? 0 : CSN_REMOTE_STOP;
}

static void heard_init(heard *h)
{
    csn_buf_init(&h->of[0], 4u << 20);
    csn_buf_init(&h->of[1], 4u << 20);
}

static void heard_release(heard *h)
{
    csn_buf_release(&h->of[0]);
    csn_buf_release(&h->of[1]);
}

/* ---- the script ------------------------------------------------------------------------- */

typedef struct ran {
    heard h;
    csn_remote_exit x;
    bool done; /* the decoder said so, before the script ended */
} ran;

static pid_t start(const char *program, const char *const *args, int out[2], int err[2])
{
    const char *argv[32] = {"/bin/sh", "-c", csn_base64_stream_script, "sh", EXEC_ID, program};

    for (size_t i = 0; args[i]; i++)
        argv[6 + i] = args[i];
    assert_true(pipe(out) == 0 && pipe(err) == 0);
    pid_t pid = fork();
    if (pid == 0) {
        setpgid(0, 0);
        dup2(out[1], 1);
        dup2(err[1], 2);
        for (int fd = 3; fd < 64; fd++)
            close(fd);
        execv("/bin/sh", (char *const *)argv);
        _exit(127);
    }
    close(out[1]);
    close(err[1]);
    return pid;
}

/* Runs it until it ends, or the decoder has the end. */
static void run(ran *r, const char *program, const char *const *args)
{
    csn_base64_stream c;
    int out[2] = {-1, -1}, err[2] = {-1, -1}, status = 0;
    char buf[1000];

    memset(r, 0, sizeof(*r));
    r->x.exit_code = -1;
    heard_init(&r->h);
    csn_base64_stream_init(&c, EXEC_ID, hear, &r->h);
    pid_t pid = start(program, args, out, err);
    struct pollfd p[] = {{.fd = out[0], .events = POLLIN}, {.fd = err[0], .events = POLLIN}};
    while (!r->done && (p[0].fd >= 0 || p[1].fd >= 0)) {
        assert_true(poll(p, 2, 60000) > 0);
        for (int i = 0; i < 2 && !r->done; i++) {
            ssize_t n = p[i].revents ? read(p[i].fd, buf, sizeof(buf)) : -1;
            if (n > 0)
                r->done = csn_base64_stream_feed(&c, i + 1, buf, (size_t)n) == CSN_REMOTE_DONE;
            else if (n == 0)
                p[i].fd = -1;
        }
    }
    csn_base64_stream_finish(&c, &r->x);
    csn_base64_stream_release(&c);
    kill(-pid, SIGKILL);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    close(out[0]);
    close(err[0]);
}

#define ARGS(...) ((const char *const[]){__VA_ARGS__ __VA_OPT__(, ) NULL})

static void bytes_and_arguments_arrive(void **state)
{
    ran r;

    (void)state;
    run(&r, "printf '%s|' \"$@\"; printf '\\000\\377\\n' >&2; exit 7",
        ARGS("a b", "", "it's", "\"$x\" `y`", "line\nline\n"));
    assert_true(r.done);
    assert_string_equal(r.h.of[0].data, "a b||it's|\"$x\" `y`|line\nline\n|");
    assert_int_equal(r.h.of[1].len, 3);
    assert_memory_equal(r.h.of[1].data, "\0\377\n", 3);
    assert_true(r.x.ended && r.x.started);
    assert_int_equal(r.x.exit_code, 7);
    assert_int_equal(r.x.signal, 0);
    heard_release(&r.h);
}

static void exits_are_told_from_signals(void **state)
{
    static const struct {
        const char *program;
        int code, signal;
    } cases[] = {
        {"exit 0", 0, 0},
        {"exit 137", 137, 0},
        {"exit 255", 255, 0},
        {"kill -9 $$", -1, SIGKILL},
        {"kill -15 $$", -1, SIGTERM},
        {"kill -2 $$", -1, SIGINT},
        {"ulimit -c 0; kill -11 $$", -1, SIGSEGV},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        ran r;
        run(&r, cases[i].program, ARGS());
        assert_true(r.x.ended);
        assert_int_equal(r.x.exit_code, cases[i].code);
        assert_int_equal(r.x.signal, cases[i].signal);
        heard_release(&r.h);
    }
}

static void child_that_holds_the_pipes_delays_nothing(void **state)
{
    ran r;

    (void)state;
    run(&r, "sleep 1000 & echo hi", ARGS());
    assert_true(r.done);
    assert_string_equal(r.h.of[0].data, "hi\n");
    assert_int_equal(r.x.exit_code, 0);
    heard_release(&r.h);
}

static void nothing_of_ours_is_in_the_environment(void **state)
{
    ran r;

    (void)state;
    run(&r, "env | grep -E '^(CSN_([MNPR]|[0-9]+)|csn_[a-z])='; true", ARGS("one", "two"));
    assert_int_equal(r.h.of[0].len, 0);
    heard_release(&r.h);
}

static void much_output_is_all_there(void **state)
{
    ran r;

    (void)state;
    run(&r, "head -c 1000000 /dev/zero | tr '\\000' x", ARGS());
    assert_int_equal(r.h.of[0].len, 1000000);
    assert_int_equal(strspn(r.h.of[0].data, "x"), 1000000);
    heard_release(&r.h);
}

/* ---- the decoder ------------------------------------------------------------------------ */

static char *base64(const char *text, size_t len)
{
    char *line = malloc(csn_base64_size(len) + 2);

    assert_non_null(line);
    csn_base64_encode(text, len, line);
    size_t n = strlen(line);
    line[n] = '\n';
    line[n + 1] = '\0';
    return line;
}

static void any_pieces_are_the_same(void **state)
{
    static const char text[] = "some\036\0360output\036" EXEC_ID "\n\036" EXEC_ID " 3\nlate";
    char *first = base64(text, 20), *second = base64(text + 20, sizeof(text) - 1 - 20);
    char all[256];

    (void)state;
    snprintf(all, sizeof(all), "%s\n%s", first, second);
    for (size_t piece = 1; piece < 80; piece++) {
        csn_remote_exit x = {.exit_code = -1};
        csn_base64_stream c;
        heard h;
        int next = 0;

        heard_init(&h);
        csn_base64_stream_init(&c, EXEC_ID, hear, &h);
        char *end = base64("\036" EXEC_ID " 3\n", 24);
        assert_int_equal(csn_base64_stream_feed(&c, CSN_STDERR, end, strlen(end)), 0);
        free(end);
        for (size_t at = 0; all[at]; at += strnlen(all + at, piece))
            next = csn_base64_stream_feed(&c, CSN_STDOUT, all + at, strnlen(all + at, piece));
        assert_int_equal(next, CSN_REMOTE_DONE);
        csn_base64_stream_finish(&c, &x);
        assert_int_equal(x.exit_code, 3);
        assert_string_equal(h.of[0].data, "some\036\0360output\036" EXEC_ID "\n");
        csn_base64_stream_release(&c);
        heard_release(&h);
    }
    free(first);
    free(second);
}

static void what_is_not_ours_is_passed_on(void **state)
{
    csn_remote_exit x = {.ended = true, .exit_code = 137};
    csn_base64_stream c;
    heard h;
    char *big = malloc(300000);

    (void)state;
    assert_non_null(big);
    memset(big, '-', 300000);
    heard_init(&h);
    csn_base64_stream_init(&c, EXEC_ID, hear, &h);
    assert_int_equal(csn_base64_stream_feed(&c, CSN_STDERR, "sh: not found\nno end", 20), 0);
    char *start_of_end = base64("\036" EXEC_ID, 21);
    assert_int_equal(csn_base64_stream_feed(&c, CSN_STDOUT, start_of_end, strlen(start_of_end)),
                     0);
    free(start_of_end);
    assert_int_equal(csn_base64_stream_feed(&c, CSN_STDOUT, big, 300000), 0);
    csn_base64_stream_finish(&c, &x);
    assert_string_equal(h.of[1].data, "sh: not found\nno end\n");
    assert_true(h.of[0].len >= 300000);
    assert_int_equal(x.signal, SIGKILL); /* by a shell's way to say it */
    csn_base64_stream_release(&c);
    heard_release(&h);
    free(big);
}

static void nobody_to_tell_the_end_is_no_success(void **state)
{
    static const char *const ends[] = {"",
                                       "HjAxMjM0NTY3ODlhYmNkZWZnaGlqIAo=\n"}; /* no number */

    (void)state;
    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
        csn_remote_exit x = {.started = true, .ended = true, .exit_code = 0};
        csn_base64_stream c;
        heard h;

        heard_init(&h);
        csn_base64_stream_init(&c, EXEC_ID, hear, &h);
        (void)csn_base64_stream_feed(&c, CSN_STDOUT, ends[i], strlen(ends[i]));
        (void)csn_base64_stream_feed(&c, CSN_STDERR, ends[i], strlen(ends[i]));
        csn_base64_stream_finish(&c, &x);
        assert_true(!x.ended || x.exit_code == -1);
        csn_base64_stream_release(&c);
        heard_release(&h);
    }
}

static void awk_that_is_killed_is_no_success(void **state)
{
    ran r;

    (void)state;
    run(&r, "kill -9 $PPID; sleep 0.1; exit 3", ARGS());
    assert_true(!r.x.ended || r.x.exit_code != 0);
    heard_release(&r.h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_and_arguments_arrive),
        cmocka_unit_test(exits_are_told_from_signals),
        cmocka_unit_test(child_that_holds_the_pipes_delays_nothing),
        cmocka_unit_test(nothing_of_ours_is_in_the_environment),
        cmocka_unit_test(much_output_is_all_there),
        cmocka_unit_test(any_pieces_are_the_same),
        cmocka_unit_test(what_is_not_ours_is_passed_on),
        cmocka_unit_test(nobody_to_tell_the_end_is_no_success),
        cmocka_unit_test(awk_that_is_killed_is_no_success),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
