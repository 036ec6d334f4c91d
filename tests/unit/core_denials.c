/* What a command was refused: collected from its backend, merged, explained only when it
 * failed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "caisson/backend.h"
#include "core/denials.h"

/* ---- the list ---- */

static void copies_are_kept_once_and_in_order(void **state)
{
    char target[] = "/x";
    csn_denials ds = {.arena = csn_arena_new()};
    csn_denial d = {.op = "read", .target = target, .rule = "not granted", .hint = "--read /x"};

    (void)state;
    csn_denials_add(&ds, &d);
    csn_denials_add(&ds, &d);
    target[1] = 'y';
    csn_denials_add(&ds, &d);
    csn_denials_add(&ds, &(csn_denial){.op = "net"});
    assert_int_equal(ds.count, 3);
    assert_string_equal(ds.items[0].target, "/x");
    assert_string_equal(ds.items[0].hint, "--read /x");
    assert_null(ds.items[0].resolved);
    assert_string_equal(ds.items[1].target, "/y");
    assert_string_equal(ds.items[2].op, "net");
    assert_null(ds.items[2].target);
    csn_arena_free(ds.arena);
}

static void one_denial_of_the_network_is_enough_for_a_host(void **state)
{
    csn_denials ds = {.arena = csn_arena_new()};

    (void)state;
    csn_denials_add(&ds, &(csn_denial){.op = "net", .target = "a.test"});
    csn_denials_add(&ds, &(csn_denial){.op = "net", .target = "a.test:443", .rule = "x"});
    csn_denials_add(&ds, &(csn_denial){.op = "net"});
    csn_denials_add_unrouted(&ds, &(csn_exec_end){.unrouted = 1});
    assert_int_equal(ds.count, 1);
    csn_denials_add(&ds, &(csn_denial){.op = "net", .target = "a.test.org:443"});
    csn_denials_add(&ds, &(csn_denial){.op = "net", .target = "b.test:443"});
    csn_denials_add(&ds, &(csn_denial){.op = "net", .target = "b.test"});
    csn_denials_add(&ds, &(csn_denial){.op = "read"});
    assert_int_equal(ds.count, 5);
    csn_arena_free(ds.arena);
}

static void a_connection_to_an_unknown_address_is_a_denial(void **state)
{
    csn_denials ds = {.arena = csn_arena_new()};

    (void)state;
    csn_denials_add_unrouted(&ds, &(csn_exec_end){.unrouted = 0});
    assert_int_equal(ds.count, 0);
    csn_denials_add_unrouted(&ds, &(csn_exec_end){.unrouted = 1});
    assert_int_equal(ds.count, 1);
    assert_string_equal(ds.items[0].op, "net");
    assert_null(ds.items[0].target);
    csn_arena_free(ds.arena);
}

static void count_denial(void *ctx, const csn_denial *d)
{
    assert_string_equal(d->op, "net");
    ++*(int *)ctx;
}

static void a_live_denial_is_passed_on_once(void **state)
{
    csn_denials ds = {.arena = csn_arena_new()};
    int told = 0;
    csn_live_denials live = {&ds, count_denial, &told};

    (void)state;
    csn_denials_add_live(&live, &(csn_denial){.op = "net", .target = "a.test"});
    csn_denials_add_live(&live, &(csn_denial){.op = "net", .target = "a.test"});
    csn_denials_add_live(&live, &(csn_denial){.op = "net", .target = "b.test"});
    assert_int_equal(told, 2);
    assert_int_equal(ds.count, 2);
    live.fn = NULL;
    csn_denials_add_live(&live, &(csn_denial){.op = "net", .target = "c.test"});
    assert_int_equal(ds.count, 3);
    csn_arena_free(ds.arena);
}

static void there_is_a_ceiling(void **state)
{
    csn_denials ds = {.arena = csn_arena_new()};
    char target[16];

    (void)state;
    for (unsigned i = 0; i < CSN_DENIALS_MAX + 10; i++) {
        snprintf(target, sizeof(target), "/%u", i);
        csn_denials_add(&ds, &(csn_denial){.op = "write", .target = target});
    }
    assert_int_equal(ds.count, CSN_DENIALS_MAX);
    assert_string_equal(ds.items[CSN_DENIALS_MAX - 1].target, "/63");
    assert_false(ds.failed);
    csn_arena_free(ds.arena);
}

/* ---- a backend that tells ---- */

static struct {
    int exit_code, signal;
    uint32_t how;
    unsigned explained;
    char argv0[32], cwd[32], out[32], text[32];
} seen;

static csn_status tell_exec(void *state, const csn_exec_req *req, const csn_sink *sink,
                            csn_exec_end *ret, csn_error **err)
{
    const csn_denial aside = {.op = "write", .target = ".git/hooks/x", .rule = "set aside"};

    (void)state;
    (void)err;
    assert_non_null(req->denials);
    req->denials->tell(req->denials->ctx, &aside);
    sink->write(sink->ctx, CSN_STDOUT, "words", 5);
    sink->write(sink->ctx, CSN_STDERR, "why", 3);
    ret->exit_code = seen.exit_code;
    ret->signal = seen.signal;
    ret->how = seen.how;
    return CSN_OK;
}

static csn_status tell_explain(void *state, const csn_exec_req *req, const csn_exec_end *end,
                               const csn_output *out, const csn_output *text, csn_error **err)
{
    const csn_denial lacked = {.op = "read", .target = "/f", .hint = "--read /f"};

    (void)state;
    assert_int_equal(end->exit_code, seen.exit_code);
    seen.explained++;
    snprintf(seen.argv0, sizeof(seen.argv0), "%s", req->argv[0]);
    snprintf(seen.cwd, sizeof(seen.cwd), "%s", req->cwd);
    snprintf(seen.out, sizeof(seen.out), "%s", out->data);
    snprintf(seen.text, sizeof(seen.text), "%s", text->data);
    req->denials->tell(req->denials->ctx, &lacked);
    return csn_error_set(err, CSN_IO, "and then it broke"); /* costs nobody the result */
}

static csn_status tell_info(void *state, csn_info_result *ret, csn_error **err)
{
    (void)state;
    (void)err;
    ret->workspace = ret->workdir = "/w";
    return CSN_OK;
}

static const csn_backend_ops teller = {
    .size = sizeof(teller),
    .caps = CSN_CAP_SPAWN | CSN_CAP_ENV | CSN_CAP_SESSION,
    .name = "teller",
    .options = CSN_OPTION_WORKSPACE,
    .exec = tell_exec,
    .info = tell_info,
    .explain = tell_explain,
};

/* As csn_sh(line) would end; a line and no session: argv. */
static csn_exec_result *run(csn_sandbox *sb, const csn_exec_opts *o)
{
    static const char *const argv[] = {"tool", NULL};
    csn_exec_result *r = NULL;
    csn_error *err = NULL;
    csn_status st =
        o && o->session ? csn_sh(sb, "tool", o, &r, &err) : csn_exec(sb, argv, o, &r, &err);

    if (st != CSN_OK)
        fail_msg("%s", csn_error_message(err));
    return r;
}

static csn_sandbox *sandbox(void)
{
    const csn_config c = {.size = sizeof(c), .backend = "teller", .workspace = "/w"};
    csn_sandbox *sb = NULL;
    csn_error *err = NULL;

    if (csn_open(&c, &sb, &err) != CSN_OK)
        fail_msg("%s", csn_error_message(err));
    memset(&seen, 0, sizeof(seen));
    return sb;
}

static void a_failure_is_explained_with_what_was_printed(void **state)
{
    csn_sandbox *sb = sandbox();
    const csn_exec_opts o = {
        .size = sizeof(o), .cwd = "/w/sub", .env = (const char *const[]){"HOME=/x", NULL}};

    (void)state;
    seen.exit_code = 1;
    csn_exec_result *r = run(sb, &o);
    assert_int_equal(seen.explained, 1);
    assert_string_equal(seen.argv0, "tool");
    assert_string_equal(seen.cwd, "/w/sub");
    assert_string_equal(seen.out, "words");
    assert_string_equal(seen.text, "why");
    assert_int_equal(r->denial_count, 3);
    assert_string_equal(r->denials[0].rule, "set aside");
    assert_string_equal(r->denials[1].op, "env");
    assert_string_equal(r->denials[2].hint, "--read /f");
    csn_exec_result_free(r);
    csn_close(sb);
}

static void a_failure_in_a_session_is_too(void **state)
{
    csn_sandbox *sb = sandbox();
    const csn_exec_opts o = {.size = sizeof(o), .session = "s"};

    (void)state;
    seen.exit_code = 127;
    csn_exec_result *r = run(sb, &o);
    assert_int_equal(seen.explained, 1);
    assert_string_equal(seen.argv0, "bash");
    assert_int_equal(r->denial_count, 2);
    csn_exec_result_free(r);
    csn_close(sb);
}

static void what_is_not_a_failure_of_its_own_is_not_explained(void **state)
{
    static const struct {
        int exit_code, signal;
        uint32_t how;
        unsigned want;
    } rows[] = {
        {0, 0, CSN_END_EXITED, 0},   {1, 0, CSN_END_EXITED, 1},
        {127, 0, CSN_END_SPAWN, 1},  {-1, 31 /* SIGSYS */, CSN_END_EXITED, 1},
        {-1, 11, CSN_END_EXITED, 0}, {-1, 15, CSN_END_TIMEOUT, 1},
        {-1, 9, CSN_END_CANCEL, 0},  {1, 0, CSN_END_MEMORY, 0},
    };
    csn_sandbox *sb = sandbox();

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        memset(&seen, 0, sizeof(seen));
        seen.exit_code = rows[i].exit_code;
        seen.signal = rows[i].signal;
        seen.how = rows[i].how;
        csn_exec_result *r = run(sb, NULL);
        if (seen.explained != rows[i].want)
            fail_msg("row %zu: explained %u times", i, seen.explained);
        assert_int_equal(r->denial_count, 1 + rows[i].want);
        csn_exec_result_free(r);
    }
    csn_close(sb);
}

static int register_teller(void **state)
{
    (void)state;
    return csn_register_backend(&teller, NULL, NULL) == CSN_OK ? 0 : -1;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(copies_are_kept_once_and_in_order),
        cmocka_unit_test(one_denial_of_the_network_is_enough_for_a_host),
        cmocka_unit_test(a_connection_to_an_unknown_address_is_a_denial),
        cmocka_unit_test(a_live_denial_is_passed_on_once),
        cmocka_unit_test(there_is_a_ceiling),
        cmocka_unit_test(a_failure_is_explained_with_what_was_printed),
        cmocka_unit_test(a_failure_in_a_session_is_too),
        cmocka_unit_test(what_is_not_a_failure_of_its_own_is_not_explained),
    };

    return cmocka_run_group_tests(tests, register_teller, NULL);
}
