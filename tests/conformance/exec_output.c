/* exec_output.c: how much output is kept, which part of it, and that every byte is counted;
 * live output; what happens to pipes that a grandchild holds. */
#include "conformance/conformance.h"

#include <pthread.h>

#define MIB 1048576

/* Prints exactly n bytes without /dev/zero, which a bare root does not have. */
static char *print_bytes(csn_fx *f, size_t n, const char *to)
{
    return csn_fx_keep(f, csn_test_format("yes 0123456789abcde | head -c %zu%s", n, to));
}

/* S0: 1 MiB, which it tested before the append; here it is exact. */
static void one_mebibyte_is_not_truncated(csn_fx *f)
{
    AUTO(csn_exec_result, r);

    ok(csn_sh(f->sb, print_bytes(f, MIB, ""), NULL, &r, E));
    assert_int_equal(r->out.len, MIB);
    assert_int_equal(r->out.total, MIB);
    assert_int_equal(r->out.head, MIB);
    assert_int_equal(r->truncated, 0);
    assert_null(r->truncated_by);
    assert_int_equal(r->exit_code, 0);
}

static void one_byte_more_is_truncated(csn_fx *f)
{
    AUTO(csn_exec_result, r);

    ok(csn_sh(f->sb, print_bytes(f, MIB + 1, ""), NULL, &r, E));
    assert_int_equal(r->out.len, MIB);
    assert_int_equal(r->out.total, MIB + 1);
    assert_int_equal(r->truncated, 1);
    assert_string_equal(r->truncated_by, "bytes");
    assert_int_equal(r->exit_code, 0); /* the command was not disturbed */
    assert_int_equal(r->failed, 0);
}

static void each_stream_has_its_own_ceiling(csn_fx *f)
{
    AUTO(csn_exec_result, r);
    char *cmd = csn_fx_keep(f, csn_test_format("yes | head -c 3000; yes | head -c 50 >&2"));

    ok(csn_sh(f->sb, cmd, EXEC(.output_max = 100), &r, E));
    assert_int_equal(r->out.len, 100);
    assert_int_equal(r->out.total, 3000);
    assert_int_equal(r->err.len, 50);
    assert_int_equal(r->err.total, 50);
    assert_int_equal(r->merged.total, 3050);
    assert_int_equal(r->truncated, 1);
}

static void stderr_over_the_ceiling_is_truncated_too(csn_fx *f)
{
    AUTO(csn_exec_result, r);

    ok(csn_sh(f->sb, print_bytes(f, MIB + 7, " >&2"), NULL, &r, E));
    assert_int_equal(r->err.len, MIB);
    assert_int_equal(r->err.total, MIB + 7);
    assert_int_equal(r->out.len, 0);
    assert_int_equal(r->truncated, 1);
}

static void keep_head_tail_and_both(csn_fx *f)
{
    static const struct {
        uint32_t flags;
        uint64_t max;
        const char *want;
        uint64_t head;
    } cases[] = {
        {0, 10, "0123456789", 10},
        {CSN_EXEC_KEEP_TAIL, 10, "abcdefghij", 0},
        {CSN_EXEC_KEEP_BOTH, 10, "01234fghij", 5},
        {CSN_EXEC_KEEP_TAIL, 1, "j", 0},
        {0, 1, "0", 1},
        {CSN_EXEC_KEEP_BOTH, 20, "0123456789abcdefghij", 20},
        {CSN_EXEC_KEEP_TAIL, 20, "0123456789abcdefghij", 20},
        {0, 20, "0123456789abcdefghij", 20},
        {CSN_EXEC_KEEP_BOTH, 19, NULL, 0},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        AUTO(csn_exec_result, r);

        ok(csn_sh(f->sb, "printf 0123456789; printf abcdefghij",
                  EXEC(.flags = cases[i].flags, .output_max = cases[i].max), &r, E));
        assert_int_equal(r->out.total, 20);
        assert_int_equal(r->out.len, cases[i].max);
        assert_int_equal(r->truncated, cases[i].max < 20);
        if (cases[i].want) {
            same_bytes(r->out.data, r->out.len, cases[i].want, strlen(cases[i].want));
            if (cases[i].max < 20)
                assert_int_equal(r->out.head, cases[i].head);
        } else { /* an odd half may go to either side */
            assert_true(r->out.head == 9 || r->out.head == 10);
            assert_memory_equal(r->out.data, "0123456789", r->out.head);
            const char *tail = &"0123456789abcdefghij"[1 + r->out.head];
            assert_memory_equal(r->out.data + r->out.head, tail, 19 - r->out.head);
        }
    }
}

static void keep_tail_of_a_long_stream(csn_fx *f)
{
    AUTO(csn_exec_result, r);

    ok(csn_sh(f->sb, "i=0; while [ $i -lt 20000 ]; do echo line$i; i=$((i+1)); done",
              EXEC(.flags = CSN_EXEC_KEEP_TAIL, .output_max = 30), &r, E));
    assert_string_equal(r->out.data + r->out.len - 20, "line19998\nline19999\n");
    assert_int_equal(r->out.len, 30);
}

static void config_sets_the_ceiling(csn_fx *f)
{
    AUTO(csn_exec_result, r);
    AUTO(csn_exec_result, more);

    csn_fx_open(f, CFG(.output_max = 16));
    ok(csn_sh(f->sb, "printf 0123456789abcdefX", NULL, &r, E));
    assert_string_equal(r->out.data, "0123456789abcdef");
    assert_int_equal(r->out.total, 17);
    ok(csn_sh(f->sb, "printf 0123456789abcdefX", EXEC(.output_max = 17), &more, E));
    assert_int_equal(more->truncated, 0);
}

static void a_flood_is_counted_exactly(csn_fx *f)
{
    AUTO(csn_exec_result, r);

    ok(csn_sh(f->sb, print_bytes(f, 67108869, ""), EXEC(.timeout_ms = 120000), &r, E));
    assert_int_equal(r->out.total, 67108869);
    assert_int_equal(r->out.len, MIB);
    assert_memory_equal(r->out.data, "0123456789abcde\n0123", 20);
    assert_int_equal(r->exit_code, 0);
}

/* Creates the file for which the command waits before it prints more. */
static int answer(void *ctx, int stream, const void *data, size_t len)
{
    csn_fx *f = ctx;
    char name[8] = {'g', 'o'};

    (void)stream;
    (void)len;
    name[2] = *(const char *)data;
    csn_test_put(csn_fx_host(f, name), "", 0);
    return 0;
}

/* What was printed before the next line was there is before it, and the streams stay split. */
static void merged_output_has_arrival_order(csn_fx *f)
{
    AUTO(csn_exec_result, r);

    ok(csn_sh(f->sb,
              "await() { while ! test -e go$1; do sleep 0.01; done; }; "
              "echo 1; await 1; echo 2 >&2; await 2; echo 3; await 3; echo 4 >&2; await 4; "
              "echo 5 >&2",
              EXEC(.on_output = answer, .on_output_ctx = f), &r, E));
    same_bytes(r->merged.data, r->merged.len, "1\n2\n3\n4\n5\n", 10);
    same_bytes(r->out.data, r->out.len, "1\n3\n", 4);
    same_bytes(r->err.data, r->err.len, "2\n4\n5\n", 6);
}

static void merged_output_has_the_ceiling_too(csn_fx *f)
{
    AUTO(csn_exec_result, r);

    ok(csn_sh(f->sb, "printf 01234; printf 56789 >&2; printf abcdefghij",
              EXEC(.flags = CSN_EXEC_MERGE, .output_max = 12), &r, E));
    same_bytes(r->merged.data, r->merged.len, "0123456789ab", 12);
    assert_int_equal(r->merged.total, 20);
    assert_int_equal(r->truncated, 1);
}

static void every_byte_value_survives(csn_fx *f)
{
    AUTO(csn_exec_result, r);
    char all[256];

    for (int i = 0; i < 256; i++)
        all[i] = (char)i;
    csn_fx_putn(f, "all", all, sizeof(all));
    ok(csn_sh(f->sb, "cat all; cat all >&2", NULL, &r, E));
    same_bytes(r->out.data, r->out.len, all, 256);
    same_bytes(r->err.data, r->err.len, all, 256);
}

/* ---- live output ---- */

typedef struct live {
    csn_fx *f;
    pthread_t thread;
    uint64_t bytes[3];
    uint64_t sum;
    unsigned calls;
    int stop_at; /* calls; 0: never */
    bool wrong_thread, wrong_stream, went;
} live;

static int on_live(void *ctx, int stream, const void *data, size_t len)
{
    live *l = ctx;

    l->wrong_thread |= !pthread_equal(l->thread, pthread_self());
    if (stream != CSN_STDOUT && stream != CSN_STDERR) {
        l->wrong_stream = true;
        return 0;
    }
    for (size_t i = 0; i < len; i++)
        l->sum = l->sum * 31 + ((const unsigned char *)data)[i];
    l->bytes[stream] += len;
    l->calls++;
    return l->stop_at && l->calls >= (unsigned)l->stop_at;
}

static void live_output_is_complete_although_the_result_is_cut(csn_fx *f)
{
    live l = {.f = f, .thread = pthread_self()};
    AUTO(csn_exec_result, r);
    uint64_t sum = 0;

    ok(csn_sh(f->sb, print_bytes(f, 300001, "; printf err >&2"),
              EXEC(.output_max = 10, .on_output = on_live, .on_output_ctx = &l), &r, E));
    for (uint64_t i = 0; i < 300001; i++)
        sum = sum * 31 + (unsigned char)"0123456789abcde\n"[i % 16];
    assert_int_equal(l.bytes[CSN_STDOUT], 300001);
    assert_int_equal(l.bytes[CSN_STDERR], 3);
    assert_false(l.wrong_thread);
    assert_false(l.wrong_stream);
    assert_int_equal(r->out.len, 10);
    /* and in order, which only one stream alone can show */
    live one = {.f = f, .thread = pthread_self()};
    AUTO(csn_exec_result, r2);
    ok(csn_sh(f->sb, print_bytes(f, 300001, ""),
              EXEC(.output_max = 10, .on_output = on_live, .on_output_ctx = &one), &r2, E));
    assert_true(one.sum == sum);
}

static int release_the_command(void *ctx, int stream, const void *data, size_t len)
{
    live *l = ctx;

    (void)stream;
    if (!l->went && len && memchr(data, 'y', len)) {
        char *path = csn_test_join(l->f->ws, "go");
        csn_test_put(path, "", 0);
        free(path);
        l->went = true;
    }
    return 0;
}

/* Causal, not timed: the command ends only because its first line has been seen. */
static void output_is_live(csn_fx *f)
{
    live l = {.f = f};
    AUTO(csn_exec_result, r);

    ok(csn_sh(f->sb, "echo ready; while ! test -e go; do sleep 0.05; done; echo went",
              EXEC(.on_output = release_the_command, .on_output_ctx = &l, .timeout_ms = 60000),
              &r, E));
    assert_int_equal(r->timed_out, 0);
    assert_string_equal(r->out.data, "ready\nwent\n");
}

static int read_inside(void *ctx, int stream, const void *data, size_t len)
{
    live *l = ctx;
    csn_read_result *r = NULL;

    (void)stream;
    (void)data;
    (void)len;
    l->went = csn_read(l->f->sb, "note", NULL, &r, NULL) == CSN_OK &&
              strcmp(r->content, "inside") == 0;
    csn_read_result_free(r);
    return 0;
}

static void callback_can_use_the_sandbox(csn_fx *f)
{
    live l = {.f = f};
    AUTO(csn_exec_result, r);

    csn_fx_put(f, "note", "inside");
    ok(csn_sh(f->sb, "echo x", EXEC(.on_output = read_inside, .on_output_ctx = &l), &r, E));
    assert_true(l.went);
}

static void callback_cancels_by_its_answer(csn_fx *f)
{
    live l = {.f = f, .thread = pthread_self(), .stop_at = 1};
    AUTO(csn_exec_result, r);

    ok(csn_sh(f->sb, "echo $$ > pid; echo first; exec sleep 1000",
              EXEC(.on_output = on_live, .on_output_ctx = &l, .timeout_ms = 120000), &r, E));
    assert_int_equal(r->interrupted, 1);
    assert_int_equal(r->timed_out, 0);
    assert_int_equal(r->failed, 1);
    assert_string_equal(r->killed_by, "cancel");
    assert_string_equal(r->out.data, "first\n");
    assert_true(csn_test_wait_dead(csn_fx_pid(f, "pid")));
}

static void callback_cancels_a_flood(csn_fx *f)
{
    live l = {.f = f, .thread = pthread_self(), .stop_at = 5};
    AUTO(csn_exec_result, r);

    ok(csn_exec(f->sb, ARGV("yes"),
                EXEC(.on_output = on_live, .on_output_ctx = &l, .timeout_ms = 120000), &r, E));
    assert_string_equal(r->killed_by, "cancel");
    assert_true(l.calls >= 5);
}

/* ---- grandchildren ---- */

static void grandchild_that_holds_the_pipe_does_not_delay(csn_fx *f)
{
    AUTO(csn_exec_result, r);

    ok(csn_sh(f->sb, "sleep 1000 & echo $! > pid; echo hi", NULL, &r, E));
    assert_int_equal(r->timed_out, 0); /* it did not wait for the sleep, nor for the default */
    assert_int_equal(r->exit_code, 0);
    assert_string_equal(r->out.data, "hi\n");
}

static void grandchild_that_keeps_writing_does_not_delay(csn_fx *f)
{
    AUTO(csn_exec_result, r);

    ok(csn_sh(f->sb, "(while :; do echo noise; sleep 0.01; done) & echo mine", NULL, &r, E));
    assert_int_equal(r->timed_out, 0);
    assert_int_equal(r->exit_code, 0);
    has(r->out.data, "mine\n");
}

static void output_of_a_child_that_ended_is_drained(csn_fx *f)
{
    for (int i = 0; i < 20; i++) {
        AUTO(csn_exec_result, r);

        ok(csn_sh(f->sb, print_bytes(f, 60000, " | cat"), NULL, &r, E));
        assert_int_equal(r->out.len, 60000);
    }
}

static void command_without_output_is_fine(csn_fx *f)
{
    AUTO(csn_exec_result, r);

    ok(csn_sh(f->sb, "exec >&- 2>&-; true", NULL, &r, E));
    assert_int_equal(r->exit_code, 0);
    assert_int_equal(r->out.len, 0);
    assert_string_equal(r->out.data, "");
    assert_string_equal(r->err.data, "");
    assert_string_equal(r->merged.data, "");
}

const csn_conf_test csn_conf_exec_output[] = {
    T(one_mebibyte_is_not_truncated),
    T(one_byte_more_is_truncated),
    T(each_stream_has_its_own_ceiling),
    T(stderr_over_the_ceiling_is_truncated_too),
    T(keep_head_tail_and_both),
    T(keep_tail_of_a_long_stream),
    T_CLOSED(config_sets_the_ceiling),
    T(a_flood_is_counted_exactly),
    T_TRAIT(merged_output_has_arrival_order, CONF_HERE),
    T(merged_output_has_the_ceiling_too),
    T(every_byte_value_survives),
    T(live_output_is_complete_although_the_result_is_cut),
    T_NEED(output_is_live, CAP_LIVE),
    T(callback_can_use_the_sandbox),
    T_NEED(callback_cancels_by_its_answer, CAP_LIVE),
    T_NEED(callback_cancels_a_flood, CAP_LIVE),
    T(grandchild_that_holds_the_pipe_does_not_delay),
    T(grandchild_that_keeps_writing_does_not_delay),
    T(output_of_a_child_that_ended_is_drained),
    T(command_without_output_is_fine),
    T_END,
};
