/* errors.c: one status per failure, the same word everywhere; the rules every call keeps about
 * its results and its error; the configuration file. */
#include "conformance/conformance.h"

#include <fcntl.h>
#include <unistd.h>

static void statuses_have_one_word_each(csn_fx *f)
{
    static const struct {
        csn_status st;
        const char *word;
        int http;
    } want[] = {
        {CSN_OK, "ok", 200},
        {CSN_INVALID, "invalid", 400},
        {CSN_AUTH, "auth", 401},
        {CSN_DENIED, "denied", 403},
        {CSN_OUTSIDE, "outside", 403},
        {CSN_NOT_FOUND, "not_found", 404},
        {CSN_EXISTS, "exists", 409},
        {CSN_CONFLICT, "conflict", 409},
        {CSN_WRONG_TYPE, "wrong_type", 409},
        {CSN_GONE, "gone", 410},
        {CSN_TOO_LARGE, "too_large", 413},
        {CSN_NO_MATCH, "no_match", 422},
        {CSN_AMBIGUOUS, "ambiguous", 422},
        {CSN_TIMEOUT, "timeout", 408},
        {CSN_CANCELLED, "cancelled", 499},
        {CSN_UNSUPPORTED, "unsupported", 501},
        {CSN_UNAVAILABLE, "unavailable", 503},
        {CSN_IO, "io", 500},
        {CSN_NOMEM, "nomem", 500},
        {CSN_INTERNAL, "internal", 500},
    };

    (void)f;
    for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
        assert_string_equal(csn_status_name(want[i].st), want[i].word);
        assert_int_equal(csn_status_http(want[i].st), want[i].http);
        assert_true(strlen(csn_status_text(want[i].st)) > 2);
        assert_int_equal((int)want[i].st, -(int)i);
    }
    assert_non_null(csn_status_name((csn_status)-1000));
    assert_non_null(csn_status_text((csn_status)12345));
    assert_int_equal(csn_status_http((csn_status)-1000), 500);
}

static void no_error_is_fine_to_ask(csn_fx *f)
{
    (void)f;
    assert_int_equal(csn_error_code(NULL), CSN_OK);
    (void)csn_error_message(NULL);
    assert_null(csn_error_op(NULL));
    assert_null(csn_error_path(NULL));
    assert_null(csn_error_hint(NULL));
    assert_null(csn_error_denial(NULL));
    assert_int_equal(csn_error_errno(NULL), 0);
    assert_true(strlen(csn_version()) > 0);
}

static void error_place_is_optional(csn_fx *f)
{
    csn_read_result *r = NULL;
    csn_exec_result *x = NULL;
    csn_sandbox *sb = NULL;

    assert_int_equal(csn_read(f->sb, "missing", NULL, &r, NULL), CSN_NOT_FOUND);
    assert_int_equal(csn_delete(f->sb, "missing", 0, NULL), CSN_NOT_FOUND);
    assert_int_equal(csn_exec(f->sb, NULL, NULL, &x, NULL), CSN_INVALID);
    assert_int_equal(csn_open(&CFG(.backend = "spaceship"), &sb, NULL), CSN_INVALID);
    assert_int_equal(csn_write(f->sb, "ok", "x", 1, NULL, NULL, NULL), CSN_OK);
}

/* On success *err is untouched; on failure no ret_ argument is. */
static void results_and_errors_exclude_each_other(csn_fx *f)
{
    csn_error *mark = (csn_error *)f, *err = mark;
    csn_read_result *r = (csn_read_result *)f;
    csn_file_list *l = (csn_file_list *)f;
    csn_exec_result *x = (csn_exec_result *)f;

    assert_int_equal(csn_write(f->sb, "ok", "x", 1, NULL, NULL, &err), CSN_OK);
    assert_ptr_equal(err, mark);
    assert_int_equal(csn_mkdir(f->sb, "d", 0, &err), CSN_OK);
    assert_ptr_equal(err, mark);
    fails(CSN_NOT_FOUND, csn_read(f->sb, "missing", NULL, &r, E));
    fails(CSN_NOT_FOUND, csn_stat(f->sb, "missing", 0, &l, E));
    fails(CSN_NOT_FOUND, csn_sh(f->sb, "true", EXEC(.cwd = "missing"), &x, E));
    assert_ptr_equal(r, f);
    assert_ptr_equal(l, f);
    assert_ptr_equal(x, f);
}

static void errors_name_operation_and_path(csn_fx *f)
{
    csn_file_list *l = NULL;
    csn_read_result *r = NULL;

    fails(CSN_NOT_FOUND, csn_list(f->sb, "no/dir", 0, &l, E));
    assert_string_equal(csn_error_op(csn_conf_err), "list");
    assert_string_equal(csn_error_path(csn_conf_err), "no/dir");
    fails(CSN_NOT_FOUND, csn_delete(f->sb, "no/file", 0, E));
    assert_string_equal(csn_error_op(csn_conf_err), "delete");
    fails(CSN_NOT_FOUND, csn_read(f->sb, "no/file", NULL, &r, E));
    assert_string_equal(csn_error_op(csn_conf_err), "read");
    fails(CSN_NOT_FOUND, csn_rename(f->sb, "no/a", "b", 0, E));
    assert_string_equal(csn_error_op(csn_conf_err), "rename");
    assert_null(csn_error_denial(csn_conf_err)); /* not a refusal */
}

/* A command, a pattern, the id of a sandbox: none of them is a path. */
static void path_of_an_error_is_a_path(csn_fx *f)
{
    csn_exec_result *x = NULL;
    csn_grep_result *g = NULL;
    csn_process *p = NULL;
    csn_sandbox *sb = NULL;

    fails(CSN_NOT_FOUND, csn_sh(f->sb, "true", EXEC(.cwd = "missing"), &x, E));
    assert_string_equal(csn_error_path(csn_conf_err), "missing");
    fails(CSN_NOT_FOUND, csn_exec(f->sb, ARGV("true"), EXEC(.cwd = "missing"), &x, E));
    assert_string_equal(csn_error_path(csn_conf_err), "missing");
    fails(CSN_INVALID, csn_sh(f->sb, "true", EXEC(.flags = CSN_EXEC_RESTART), &x, E));
    assert_null(csn_error_path(csn_conf_err));
    csn_conf_reset(); /* invalid, or unsupported without background processes */
    assert_int_not_equal(csn_start_sh(f->sb, "true", EXEC(.session = "s"), &p, E), CSN_OK);
    assert_null(csn_error_path(csn_conf_err));
    fails(CSN_INVALID,
          csn_grep(f->sb, "(", CSN_OPTS(csn_grep_opts, .flags = CSN_GREP_REGEX), &g, E));
    assert_null(csn_error_path(csn_conf_err));
    fails(CSN_NOT_FOUND, csn_grep(f->sb, "x", CSN_OPTS(csn_grep_opts, .path = "no"), &g, E));
    assert_string_equal(csn_error_path(csn_conf_err), "no");
    fails(CSN_NOT_FOUND, csn_connect("no-such-name", &sb, E));
    assert_null(csn_error_path(csn_conf_err));
}

/* Untrusted text in a message stays one printable line. */
static void messages_escape_what_they_quote(csn_fx *f)
{
    csn_read_result *r = NULL;

    fails(CSN_NOT_FOUND, csn_read(f->sb, "a\nb\x1b[31m", NULL, &r, E));
    const char *m = csn_error_message(csn_conf_err);
    for (; *m; m++)
        assert_true((unsigned char)*m >= ' ' && *m != 0x7f);
}

static void long_paths_fail_cleanly(csn_fx *f)
{
    char *name = csn_fx_fill(f, 256), *path = csn_fx_fill(f, 5000);
    csn_read_result *r = NULL;

    for (size_t i = 100; i < 5000; i += 100)
        path[i] = '/';
    fails(CSN_INVALID, csn_read(f->sb, name, NULL, &r, E));
    fails(CSN_INVALID, csn_write(f->sb, path, "x", 1, NULL, NULL, E));
    assert_int_equal(csn_fx_strays(f, NULL), 0);
}

/* The library never prints. */
static void library_is_silent(csn_fx *f)
{
    char *path = csn_fx_keep(f, csn_test_join(f->dir, "printed"));
    csn_read_result *r = NULL;
    csn_exec_result *x = NULL;

    fflush(NULL);
    int out = dup(1), err = dup(2), fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    assert_true(dup2(fd, 1) == 1 && dup2(fd, 2) == 2);
    csn_set_log(NULL, NULL);
    (void)csn_read(f->sb, "missing", NULL, &r, NULL);
    (void)csn_sh(f->sb, "echo out; echo err >&2; no-such-command", NULL, &x, NULL);
    (void)csn_write(f->sb, ".", "x", 1, NULL, NULL, NULL);
    (void)csn_destroy(f->sb, NULL);
    fflush(NULL);
    dup2(out, 1);
    dup2(err, 2);
    close(out);
    close(err);
    close(fd);
    csn_exec_result_free(x);
    assert_string_equal(csn_fx_keep(f, csn_test_get(path, NULL)), "");
}

/* ---- the configuration file ---- */

static csn_status parse(const char *json, csn_config **ret, csn_error **err)
{
    return csn_config_parse(json, strlen(json), "policy.json", ret, err);
}

static void config_file_has_the_names_of_the_config(csn_fx *f)
{
    AUTO(csn_config, c);

    (void)f;
    ok(parse("{\"backend\":\"local\",\"workspace\":\"/w\",\"read\":[\"/a\",\"/b\"],"
             "\"write\":[\"/c\"],\"deny\":[\"/a/x\"],\"home\":\"/h\",\"name\":\"n\","
             "\"timeout\":\"10s\",\"output_max\":\"512K\",\"lifetime\":\"5m\","
             "\"commands\":[\"echo\"],\"env\":[\"A\",\"B=1\"],"
             "\"limits\":{\"memory\":\"64M\",\"pids\":10},"
             "\"network\":{\"mode\":\"none\",\"allow\":[\"a.test:443\"]},"
             "\"rules\":[{\"op\":[\"read\",\"write\"],\"effect\":\"deny\",\"path\":\"/x\"}]}",
             &c, E));
    assert_int_equal(c->size, sizeof(*c));
    assert_string_equal(c->backend, "local");
    assert_string_equal(c->workspace, "/w");
    assert_string_equal(c->read[1], "/b");
    assert_null(c->read[2]);
    assert_string_equal(c->write[0], "/c");
    assert_string_equal(c->deny[0], "/a/x");
    assert_int_equal(c->timeout_ms, 10000);
    assert_int_equal(c->output_max, 512 * 1024);
    assert_int_equal(c->lifetime_ms, 300000);
    assert_string_equal(c->commands[0], "echo");
    assert_string_equal(c->env[1], "B=1");
    assert_int_equal(c->memory_max, 64 << 20);
    assert_int_equal(c->pids_max, 10);
    assert_string_equal(c->network, "none");
    assert_string_equal(c->net_allow[0], "a.test:443");
    assert_int_equal(c->rule_count, 1);
    assert_int_equal(c->rules[0].ops, CSN_OP_READ | CSN_OP_WRITE);
    assert_int_equal(c->rules[0].allow, 0);
}

static void config_file_of_nothing_is_all_defaults(csn_fx *f)
{
    AUTO(csn_config, c);
    AUTO(csn_config, none);

    (void)f;
    ok(parse("{}", &c, E));
    assert_int_equal(c->timeout_ms, 0); /* the default, which csn_open fills in */
    assert_int_equal(c->output_max, 0);
    assert_null(c->read);
    ok(parse("{\"timeout\":0}", &none, E)); /* 0 in the file means none */
    assert_true(none->timeout_ms == CSN_NO_LIMIT);
}

static void config_file_errors_name_key_and_source(csn_fx *f)
{
    static const char *const bad[] = {
        "",
        "{",
        "[]",
        "null",
        "{\"read\":{}}",
        "{} x",
        "{\"timeout\":-1}",
        "{\"timeout\":\"soon\"}",
        "{\"limits\":{\"memory\":\"many\"}}",
        "{\"network\":5}",
        "{\"read\":[\"\"]}",
        "{\"rules\":[{\"op\":\"fly\"}]}",
        "{\"read\":[\"a\\u0000b\"]}",
        "{\"backend\":\"a\",\"backend\":\"b\"}",
        "{\"name\":\"../x\"}",
        "{\"read\":[1]}",
    };
    csn_config *c = NULL;

    (void)f;
    fails(CSN_INVALID, parse("{\"raed\":[\"/a\"]}", &c, E)); /* unknown keys refused by name */
    says("raed");
    says("policy.json");
    fails(CSN_INVALID, parse("{\"limits\":{\"memry\":1}}", &c, E));
    says("memry");
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        csn_conf_reset();
        csn_status st = parse(bad[i], &c, E);
        if (st != CSN_INVALID)
            print_message("taken: %s\n", bad[i]);
        assert_int_equal(st, CSN_INVALID);
    }
    assert_null(c);
}

static void config_from_a_file_opens_a_sandbox(csn_fx *f)
{
    AUTO(csn_config, c);
    AUTO(csn_sandbox, sb);
    AUTO(csn_exec_result, r);
    char *json = csn_fx_keep(
        f, csn_test_format("{\"backend\":\"%s\",\"timeout\":\"700ms\"%s%s%s}", f->be->name,
                           f->be->traits & CONF_HOSTDIR ? ",\"workspace\":\"" : "",
                           f->be->traits & CONF_HOSTDIR ? f->ws : "",
                           f->be->traits & CONF_HOSTDIR ? "\"" : ""));

    ok(parse(json, &c, E));
    ok(csn_open(c, &sb, E));
    ok(csn_sh(sb, "sleep 1000", NULL, &r, E));
    assert_int_equal(r->timed_out, 1);
}

const csn_conf_test csn_conf_errors[] = {
    T_CLOSED(statuses_have_one_word_each),
    T_CLOSED(no_error_is_fine_to_ask),
    T(error_place_is_optional),
    T(results_and_errors_exclude_each_other),
    T(errors_name_operation_and_path),
    T(path_of_an_error_is_a_path),
    T(messages_escape_what_they_quote),
    T(long_paths_fail_cleanly),
    T(library_is_silent),
    T_CLOSED(config_file_has_the_names_of_the_config),
    T_CLOSED(config_file_of_nothing_is_all_defaults),
    T_CLOSED(config_file_errors_name_key_and_source),
    T_CLOSED(config_from_a_file_opens_a_sandbox),
    T_END,
};
