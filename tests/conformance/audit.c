/* audit.c: one hash-chained JSON line per operation, outside the sandbox, without secrets, also
 * after the sandbox has ended. */
#include "conformance/conformance.h"

#include <sys/stat.h>
#include <unistd.h>

typedef struct log_lines {
    char *text;
    size_t len, lines;
    size_t stop_after;
} log_lines;

static int take(void *ctx, const char *line, size_t len)
{
    log_lines *l = ctx;

    l->text = realloc(l->text, l->len + len + 2);
    memcpy(l->text + l->len, line, len);
    l->len += len;
    l->text[l->len++] = '\n';
    l->text[l->len] = '\0';
    l->lines++;
    return l->stop_after && l->lines >= l->stop_after;
}

static log_lines read_log(csn_fx *f, const char *id)
{
    log_lines l = {0};

    ok(csn_audit_read(id, take, &l, E));
    l.text = csn_fx_keep(f, l.text ? l.text : strdup(""));
    return l;
}

static char *log_file(csn_fx *f, const char *id, const char *suffix)
{
    return csn_fx_keep(
        f, csn_test_format("%s/caisson/audit/%s%s", getenv("XDG_STATE_HOME"), id, suffix));
}

static void every_operation_is_a_line(csn_fx *f)
{
    AUTO(csn_exec_result, r);
    AUTO(csn_exec_result, t);
    AUTO(csn_file_list, l);
    csn_edit_item e = {.old_string = "a", .new_string = "b"};

    csn_fx_put(f, "file.txt", "abc");
    csn_fx_holds(f, "file.txt", "abc");
    ok(csn_edit(f->sb, "file.txt", &e, 1, 0, NULL, E));
    ok(csn_list(f->sb, ".", 0, &l, E));
    ok(csn_sh(f->sb, "echo hi; exit 3", NULL, &r, E));
    ok(csn_exec(f->sb, ARGV("touch", "t"), NULL, &t, E));
    ok(csn_delete(f->sb, "file.txt", 0, E));
    log_lines log = read_log(f, csn_id(f->sb));
    static const char *const ops[] = {"\"op\":\"write\"", "\"op\":\"edit\"", "\"op\":\"list\"",
                                      "\"op\":\"delete\"", "\"op\":\"open\""};
    for (size_t i = 0; i < 5; i++)
        has(log.text, ops[i]);
    has(log.text, "file.txt");
    has(log.text, "echo hi; exit 3");
    has(log.text, csn_id(f->sb));
    has(log.text, "\"touch\"");
    /* the hash of the written content: SHA-256 of "abc" */
    has(log.text, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    assert_true(log.lines >= 7);
}

static void failures_and_refusals_are_lines_too(csn_fx *f)
{
    csn_exec_result *r = NULL;

    csn_fx_open(f, CFG(.commands = ARGV("echo")));
    fails(CSN_NOT_FOUND, csn_delete(f->sb, "missing.txt", 0, E));
    fails(CSN_DENIED, csn_sh(f->sb, "rm -rf everything", NULL, &r, E));
    log_lines log = read_log(f, csn_id(f->sb));
    has(log.text, "missing.txt");
    has(log.text, "not_found");
    has(log.text, "rm -rf everything");
    has(log.text, "denied");
}

/* secrets redacted */
static void secrets_are_not_logged(csn_fx *f)
{
    csn_exec_result *r = NULL;

    ok(csn_sh(f->sb, "true --password=hunter2 token=s3cr3tvalue; true",
              EXEC(.env = ARGV("API_KEY=env-hunter3", "PLAIN=env-hunter4")), &r, E));
    csn_exec_result_free(r);
    ok(csn_exec(f->sb,
                ARGV("true", "--password=hunter5", "-H", "Authorization: Bearer hunter6"), NULL,
                &r, E));
    csn_exec_result_free(r);
    csn_fx_put(f, "f", "content-hunter7");
    log_lines log = read_log(f, csn_id(f->sb));
    hasnt(log.text, "hunter");
    hasnt(log.text, "s3cr3tvalue");
    has(log.text, "API_KEY"); /* that it was set is no secret */
}

static void log_outlives_the_sandbox(csn_fx *f)
{
    char *id = csn_fx_keep(f, strdup(csn_id(f->sb)));
    AUTO(csn_audit_report, rep);

    csn_fx_run(f, "true");
    ok(csn_destroy(f->sb, E));
    csn_fx_close(f);
    log_lines log = read_log(f, id);
    has(log.text, "\"op\":\"destroy\"");
    ok(csn_audit_verify(id, &rep, E));
    assert_int_equal(rep->ok, 1);
    assert_int_equal(rep->lines, log.lines);
    assert_int_equal(rep->bad_line, 0);
    assert_null(rep->reason);
}

static void log_is_outside_and_private(csn_fx *f)
{
    csn_fx_run(f, "true");
    char *path = log_file(f, csn_id(f->sb), ".jsonl");
    assert_true(csn_test_exists(path));
    assert_int_equal(csn_test_mode(path) & 077, 0);
    assert_int_equal(csn_fx_strays(f, NULL), 0);
}

static void verify_fails(csn_fx *f, const char *id, uint64_t bad_line)
{
    AUTO(csn_audit_report, rep);

    (void)f;
    ok(csn_audit_verify(id, &rep, E));
    assert_int_equal(rep->ok, 0);
    assert_non_null(rep->reason);
    if (bad_line)
        assert_int_equal(rep->bad_line, bad_line);
    else
        assert_true(rep->bad_line > 0);
}

/* finds any edit, cut or reordering */
static void tampering_is_found(csn_fx *f)
{
    char *id = csn_fx_keep(f, strdup(csn_id(f->sb)));
    char *path = log_file(f, id, ".jsonl");
    size_t len = 0;

    csn_fx_put(f, "one", "1");
    csn_fx_put(f, "two", "2");
    csn_fx_put(f, "three", "3");
    csn_fx_close(f);
    char *good = csn_fx_keep(f, csn_test_get(path, &len));
    AUTO(csn_audit_report, rep);
    ok(csn_audit_verify(id, &rep, E));
    assert_int_equal(rep->ok, 1);

    char *bad = csn_fx_keep(f, strdup(good)); /* one byte of a line */
    char *at = strstr(bad, "two");
    assert_non_null(at);
    at[1] = 'o';
    csn_test_put(path, bad, len);
    verify_fails(f, id, 0);

    size_t cut = 0; /* the last line cut off */
    for (size_t i = 0; i + 1 < len; i++) {
        if (good[i] == '\n')
            cut = i + 1;
    }
    csn_test_put(path, good, cut);
    verify_fails(f, id, 0);

    csn_test_put(path, good, len - 5); /* the middle of a line cut off */
    verify_fails(f, id, 0);

    size_t first = (size_t)(strchr(good, '\n') - good) + 1; /* the first line taken out */
    csn_test_put(path, good + first, len - first);
    verify_fails(f, id, 0);

    csn_test_put(path, good, len); /* and restored it is fine again */
    csn_audit_report_free(rep);
    rep = NULL;
    ok(csn_audit_verify(id, &rep, E));
    assert_int_equal(rep->ok, 1);
}

static void swapped_lines_are_found(csn_fx *f)
{
    char *id = csn_fx_keep(f, strdup(csn_id(f->sb)));
    char *path = log_file(f, id, ".jsonl");
    size_t len = 0;

    csn_fx_put(f, "one", "1");
    csn_fx_put(f, "two", "2");
    csn_fx_close(f);
    char *good = csn_fx_keep(f, csn_test_get(path, &len));
    char *l2 = strchr(good, '\n') + 1, *l3 = strchr(l2, '\n') + 1, *end = good + len;
    char *bad = csn_fx_keep(f, malloc(len));
    memcpy(bad, good, (size_t)(l2 - good));
    memcpy(bad + (l2 - good), l3, (size_t)(end - l3));
    memcpy(bad + (l2 - good) + (end - l3), l2, (size_t)(l3 - l2));
    csn_test_put(path, bad, len);
    verify_fails(f, id, 2);
}

static void log_can_be_switched_off_or_moved(csn_fx *f)
{
    char *file = csn_fx_keep(f, csn_test_join(f->dir, "my-audit.jsonl"));
    log_lines l = {0};

    csn_fx_open(f, CFG(.audit = "none"));
    csn_fx_run(f, "true");
    assert_false(csn_test_exists(log_file(f, csn_id(f->sb), ".jsonl")));
    fails(CSN_NOT_FOUND, csn_audit_read(csn_id(f->sb), take, &l, E));
    csn_fx_open(f, CFG(.audit = file));
    csn_fx_put(f, "here.txt", "x");
    char *text = csn_fx_keep(f, csn_test_get(file, NULL));
    has(text, "here.txt");
}

static void log_that_cannot_be_written_fails_the_operation(csn_fx *f)
{
    char *file = csn_fx_keep(f, csn_test_join(f->dir, "no-such-dir/audit.jsonl"));
    csn_sandbox *sb = NULL;

    csn_conf_reset();
    csn_status st = csn_fx_try_open(f, CFG(.audit = file), &sb, E);
    if (st == CSN_OK) { /* the file is made at the first event: then that must fail */
        csn_close(f->sb);
        f->sb = sb;
        csn_conf_reset();
        assert_int_not_equal(csn_write(f->sb, "x", "x", 1, NULL, NULL, E), CSN_OK);
    }
}

static void reader_can_stop(csn_fx *f)
{
    log_lines l = {.stop_after = 2};

    for (int i = 0; i < 5; i++)
        csn_fx_put(f, "f", "x");
    csn_conf_reset();
    (void)csn_audit_read(csn_id(f->sb), take, &l, E);
    csn_fx_keep(f, l.text);
    assert_int_equal(l.lines, 2);
    log_lines none = {0};
    fails(CSN_NOT_FOUND, csn_audit_read("local-1-nothere", take, &none, E));
    fails(CSN_INVALID, csn_audit_read("../../x", take, &none, E));
    csn_audit_report *rep = NULL;
    fails(CSN_NOT_FOUND, csn_audit_verify("local-1-nothere", &rep, E));
}

/* The target of an operation is data of an attacker: it must not forge lines. */
static void hostile_names_do_not_forge_lines(csn_fx *f)
{
    AUTO(csn_audit_report, rep);

    csn_fx_put(f, "a\n{\"op\":\"forged\"}\nb", "x");
    csn_fx_put(f, "quote\"},{\"op\":\"forged2\"", "x");
    csn_fx_put(f, "bytes\xff\xfe\x01", "x");
    log_lines log = read_log(f, csn_id(f->sb));
    hasnt(log.text, "\n{\"op\":\"forged");
    hasnt(log.text, "{\"op\":\"forged2\"");
    ok(csn_audit_verify(csn_id(f->sb), &rep, E));
    assert_int_equal(rep->ok, 1);
    assert_int_equal(rep->lines, log.lines);
}

const csn_conf_test csn_conf_audit[] = {
    T(every_operation_is_a_line),
    T_CLOSED(failures_and_refusals_are_lines_too),
    T(secrets_are_not_logged),
    T(log_outlives_the_sandbox),
    T(log_is_outside_and_private),
    T(tampering_is_found),
    T(swapped_lines_are_found),
    T_CLOSED(log_can_be_switched_off_or_moved),
    T(log_that_cannot_be_written_fails_the_operation),
    T(reader_can_stop),
    T(hostile_names_do_not_forge_lines),
    T_END,
};
