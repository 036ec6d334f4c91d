/* runtime_output.c: the pipes of foreground commands, with a real keeper: who reads them, how
 * fast, how much, and who else holds them. */
#include <sys/eventfd.h>
#include <sys/resource.h>

#include "keeper_fixture.h"

#include "child.h"

static int slow_sink(void *ctx, int stream, const void *data, size_t len)
{
    (void)stream;
    (void)data;
    (void)poll(NULL, 0, 40);
    *(uint64_t *)ctx += len;
    return CSN_SINK_MORE;
}

/* The command is long gone when its output is taken; none of it is lost. */
static void exec_waits_for_a_slow_sink(void **state)
{
    den d;
    uint64_t total = 0;
    csn_sink sink = {slow_sink, &total};
    csn_exec_end end = {.size = sizeof(end)};
    const char *argv[] = {"/usr/bin/head", "-c", "1500005", "/dev/zero", NULL};
    csn_exec_req req = den_req(argv);

    (void)state;
    den_make(&d);
    req.size = sizeof(req);
    assert_int_equal(d.ops->exec(d.state, &req, &sink, &end, NULL), CSN_OK);
    assert_int_equal(end.exit_code, 0);
    assert_int_equal(total, 1500005);
    den_clean(&d);
}

/* Reads the command's output beside us, as the command itself could. */
typedef struct thief {
    den d;
    int fds[2], cancel;
    unsigned calls;
} thief;

static void thief_opens(thief *t, const char *pid)
{
    char path[64];

    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof(path), "/proc/%ld/fd/%d", strtol(pid, NULL, 10), i + 1);
        t->fds[i] = open(path, O_RDONLY | O_CLOEXEC);
    }
    den_touch(&t->d, "on");
    for (int i = 0; i < 2; i++) {
        struct pollfd there = {.fd = t->fds[i], .events = POLLIN};
        (void)poll(&there, 1, DEN_SOON_MS);
    }
}

/* When the first call returns there are bytes in both pipes. At the second the pump has seen
 * that; those of stderr go, and the command is cancelled. */
static int thief_sink(void *ctx, int stream, const void *data, size_t len)
{
    thief *t = ctx;
    char pid[16] = "", byte;

    if (stream != CSN_STDOUT)
        return CSN_SINK_MORE;
    if (t->calls++ == 0) {
        memcpy(pid, data, len < sizeof(pid) ? len : sizeof(pid) - 1);
        thief_opens(t, pid);
    } else if (read(t->fds[1], &byte, 1) == 1) {
        (void)eventfd_write(t->cancel, 1);
    }
    return CSN_SINK_MORE;
}

static int rob(void *ctx)
{
    thief t = {.fds = {-1, -1}, .cancel = eventfd(0, EFD_CLOEXEC)};
    csn_sink sink = {thief_sink, &t};
    csn_exec_end end = {.size = sizeof(end)};
    const char *argv[] = {"/bin/sh", "-c",
                          "echo $$; until [ -e on ]; do sleep 0.01; done; printf y >&2; printf "
                          "x; exec sleep 1000",
                          NULL};
    csn_exec_req req = den_req(argv);

    (void)ctx;
    den_make(&t.d);
    req.size = sizeof(req);
    req.cancel_fds[0] = t.cancel;
    csn_status st = t.d.ops->exec(t.d.state, &req, &sink, &end, NULL);
    den_clean(&t.d);
    for (int i = 0; i < 2; i++)
        close(t.fds[i]);
    close(t.cancel);
    return st == CSN_OK && end.how == CSN_END_CANCEL ? 0 : 1;
}

static void a_command_that_reads_its_own_output_can_be_ended(void **state)
{
    (void)state;
    csn_child_end end = csn_child_run(rob, NULL, -1, DEN_SOON_MS);
    assert_false(end.hung);
    assert_int_equal(end.exit_code, 0);
}

static void grandchild_that_holds_the_pipe_does_not_delay(void **state)
{
    den d;
    out o;
    char text[128];

    (void)state;
    den_make(&d);
    const char *mark = den_mark();
    snprintf(text, sizeof(text), "echo hi; sh -c 'sleep 600; : %s' & exit 0", mark);
    den_sh(&d, text, 0, &o);
    assert_string_equal(o.text[0], "hi\n");
    assert_int_equal(o.end.exit_code, 0);
    assert_true(den_alive_soon(mark, 1) >= 1); /* it lives on */
    den_clean(&d);
    assert_int_equal(den_left_at_last(mark), 0); /* until the sandbox ends */
}

/* The keeper empties the pipes of background children, or they would die of SIGPIPE. */
static void background_child_can_go_on_writing(void **state)
{
    den d;
    out o;

    (void)state;
    den_make(&d);
    den_sh(&d,
           "(sleep 0.3; i=0; while [ $i -lt 20000 ]; do echo 0123456789; i=$((i+1)); done; "
           "echo done > flag) & exit 0",
           0, &o);
    assert_int_equal(o.end.exit_code, 0);
    assert_string_equal(den_file_soon(&d, "flag"), "done\n");
    den_clean(&d);
}

static void flood_is_counted_exactly_in_little_memory(void **state)
{
    den d;
    out o = {.keep = 1000};
    const char *argv[] = {"/bin/sh", "-c", "head -c 1073741824 /dev/zero", NULL};
    csn_exec_req req = den_req(argv);
    struct rusage before, after;

    (void)state;
    den_make(&d);
    getrusage(RUSAGE_SELF, &before);
    den_run(&d, &req, &o);
    getrusage(RUSAGE_SELF, &after);
    assert_int_equal(o.total[0], 1073741824);
    assert_int_equal(o.end.exit_code, 0);
    assert_true(after.ru_maxrss - before.ru_maxrss < 4096); /* KiB */
    print_message("# 1 GiB in %.0f ms\n", o.ms);
    den_clean(&d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exec_waits_for_a_slow_sink),
        cmocka_unit_test(a_command_that_reads_its_own_output_can_be_ended),
        cmocka_unit_test(grandchild_that_holds_the_pipe_does_not_delay),
        cmocka_unit_test(background_child_can_go_on_writing),
        cmocka_unit_test(flood_is_counted_exactly_in_little_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
