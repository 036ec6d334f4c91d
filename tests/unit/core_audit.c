/* The audit log: what is written, what is hidden, what verify finds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "audit_bed.h"
#include "base/buf.h"
#include "base/hash.h"
#include "base/json_read.h"
#include "core/audit.h"
#include "core/redact.h"

#define LINES 6

static void an_unused_log_makes_no_file(void **state)
{
    bed *b = *state;
    csn_audit *a = NULL;

    assert_int_equal(csn_audit_open(ID, NULL, &a, NULL), CSN_OK);
    csn_audit_close(a);
    assert_int_not_equal(access(b->log, F_OK), 0);
    assert_int_not_equal(access(b->head, F_OK), 0);
    csn_audit_close(NULL);
    a = (csn_audit *)b;
    assert_int_equal(csn_audit_open(ID, "none", &a, NULL), CSN_OK);
    assert_null(a);
    assert_int_equal(csn_audit_append(NULL, &(csn_audit_event){.op = "x"}, NULL), CSN_OK);
}

static void lines_hold_every_field_in_order(void **state)
{
    bed *b = *state;
    csn_audit *a = NULL;
    CSN_CLEANUP(csn_jval_freep) csn_jval *v = NULL;
    const char *s = NULL;
    int64_t n = 0;

    assert_int_equal(csn_audit_open(ID, NULL, &a, NULL), CSN_OK);
    csn_audit_event e = {.op = "exec",
                         .argv = (const char *const[]){"make", "test", NULL},
                         .env = (const char *const[]){"CI=1", "HOME", NULL},
                         .rule = "deny exec make",
                         .status = CSN_DENIED,
                         .has_exit_code = 1,
                         .exit_code = 126,
                         .killed_by = "policy",
                         .bytes = 12,
                         .hash = "abc",
                         .duration_ns = 2500000};
    assert_int_equal(csn_audit_append(a, &e, NULL), CSN_OK);
    csn_audit_close(a);
    char *text = slurp(b->log);
    assert_int_equal(csn_json_parse(text, strlen(text), "line", &v, NULL), CSN_OK);
    csn_jget_i64(v, "seq", &n, NULL);
    assert_int_equal(n, 1);
    csn_jget_i64(v, "code", &n, NULL);
    assert_int_equal(n, 126);
    csn_jget_i64(v, "bytes", &n, NULL);
    assert_int_equal(n, 12);
    static const char *const want[][2] = {{"sandbox", ID},         {"op", "exec"},
                                          {"verdict", "deny"},     {"rule", "deny exec make"},
                                          {"result", "denied"},    {"hash", "abc"},
                                          {"killed_by", "policy"}, {"prev", ""}};
    for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
        assert_int_equal(csn_jget_str(v, want[i][0], &s, NULL), CSN_OK);
        assert_string_equal(s, want[i][1]);
    }
    const csn_jval *args = csn_jval_get(v, "args");
    assert_string_equal(csn_jval_string(csn_jval_at(csn_jval_get(args, "argv"), 1)), "test");
    assert_string_equal(csn_jval_string(csn_jval_at(csn_jval_get(args, "env"), 0)), "CI");
    assert_non_null(strstr(text, "\"duration_ms\":2.5"));
    assert_non_null(strstr(text, "Z\""));
    free(text);
    struct stat st;
    assert_int_equal(stat(b->log, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    verify(1, 0);
}

static int count_lines(void *ctx, const char *line, size_t len)
{
    assert_int_equal(line[0], '{');
    assert_int_equal(line[len - 1], '}');
    return ++*(int *)ctx == 4;
}

static void an_intact_log_passes_and_can_be_read(void **state)
{
    int n = 0;

    (void)state;
    append_some(3);
    append_some(3);
    verify(6, 0);
    assert_int_equal(csn_audit_read(ID, count_lines, &n, NULL), CSN_OK);
    assert_int_equal(n, 4); /* the callback stopped it */
}

/* ---- damage ----------------------------------------------------------------------------- */

/* The lines of the log, each with its newline. */
typedef struct torn {
    char *line[LINES + 4];
    size_t count;
} torn;

static torn tear(const bed *b)
{
    torn t = {.count = 0};
    char *text = slurp(b->log), *p = text;

    while (*p) {
        char *end = strchr(p, '\n') + 1;
        t.line[t.count++] = strndup(p, (size_t)(end - p));
        p = end;
    }
    free(text);
    assert_int_equal(t.count, LINES);
    return t;
}

/* Writes the lines named by `order` (digits, 0-based) back. */
static void put_back(const bed *b, const torn *t, const char *order)
{
    FILE *f = fopen(b->log, "we");

    assert_non_null(f);
    for (; *order; order++)
        fputs(t->line[*order - '0'], f);
    fclose(f);
}

static void torn_free(torn *t)
{
    for (size_t i = 0; i < t->count; i++)
        free(t->line[i]);
}

static void cuts_doubles_and_swaps_are_found(void **state)
{
    bed *b = *state;

    append_some(LINES);
    torn t = tear(b);
    static const struct {
        const char *order;
        uint64_t bad;
    } cases[] = {{"12345", 1},  {"01245", 4},  {"01234", 6},    {"0123", 5},
                 {"0", 2},      {"", 1},       {"0012345", 2},  {"0123455", 7},
                 {"102345", 1}, {"012354", 5}, {"01234510", 7}, {"0223456", 2}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char order[16];
        snprintf(order, sizeof(order), "%s", cases[i].order);
        order[strcspn(order, "6")] = '\0';
        put_back(b, &t, order);
        verify(0, cases[i].bad);
    }
    put_back(b, &t, "012345");
    verify(LINES, 0);
    torn_free(&t);
}

static void every_changed_byte_is_found(void **state)
{
    bed *b = *state;

    append_some(3);
    char *text = slurp(b->log);
    size_t len = strlen(text);
    for (size_t i = 0; i < len; i += 3) {
        char kept = text[i];
        text[i] = kept == 'x' ? 'y' : 'x';
        spew(b->log, text);
        verify(0, UINT64_MAX);
        text[i] = kept;
    }
    spew(b->log, text);
    verify(3, 0);
    /* white space that JSON does not mind */
    char *more = malloc(len + 16);
    memcpy(more, "{ ", 3);
    memcpy(more + 2, text + 1, len);
    spew(b->log, more);
    verify(0, 1);
    snprintf(more, len + 16, "\n%s", text);
    spew(b->log, more);
    verify(0, 1);
    snprintf(more, len + 16, "%s\n", text);
    spew(b->log, more);
    verify(0, 4);
    snprintf(more, len + 16, "%s{\"seq\":", text);
    spew(b->log, more);
    verify(0, 4);
    text[len - 1] = '\0';
    spew(b->log, text);
    verify(0, 3);
    free(more);
    free(text);
}

/* Gives a line a new hash (and prev), as somebody who knows the format would. */
static char *reseal(const char *line, const char *prev, char hash[CSN_HASH_HEX])
{
    char *body = strdup(line), *p = strstr(body, "\"prev\":\"");
    csn_buf out;

    assert_non_null(p);
    *p = '\0';
    csn_buf_init(&out, 1 << 16);
    csn_buf_printf(&out, "%s\"prev\":\"%s\"}", body, prev);
    csn_hash_bytes(out.data, out.len, hash);
    out.len--;
    csn_buf_printf(&out, ",\"sha256\":\"%s\"}\n", hash);
    free(body);
    return csn_buf_take(&out);
}

static void a_rewritten_chain_is_found_by_the_head(void **state)
{
    bed *b = *state;
    char hash[CSN_HASH_HEX] = "";
    csn_buf all;

    append_some(LINES);
    torn t = tear(b);
    /* the format is understood: resealing unchanged lines changes nothing */
    csn_buf_init(&all, 1 << 20);
    for (size_t i = 0; i < LINES; i++) {
        char *line = reseal(t.line[i], hash, hash);
        assert_string_equal(line, t.line[i]);
        free(line);
    }
    /* one line edited, its hash recomputed, the next ones not */
    char *at = strstr(t.line[2], "/file-2");
    memcpy(at, "/file-x", 7);
    char prev[CSN_HASH_HEX];
    memcpy(prev, strstr(t.line[2], "\"prev\":\"") + 8, 64);
    prev[64] = '\0';
    char *line = reseal(t.line[2], prev, hash);
    free(t.line[2]);
    t.line[2] = line;
    put_back(b, &t, "012345");
    verify(0, 4);
    /* and then all after it too: only the head knows */
    hash[0] = '\0';
    for (size_t i = 0; i < LINES; i++) {
        line = reseal(t.line[i], hash, hash);
        csn_buf_puts(&all, line);
        free(line);
    }
    spew(b->log, all.data);
    verify(0, 6);
    csn_buf_release(&all);
    torn_free(&t);
}

static void a_missing_or_edited_head_is_found(void **state)
{
    bed *b = *state;

    append_some(3);
    char *head = slurp(b->head);
    unlink(b->head);
    verify(0, UINT64_MAX);
    spew(b->head, "");
    verify(0, UINT64_MAX);
    spew(b->head, "{}");
    verify(0, UINT64_MAX);
    spew(b->head, "{\"lines\":0,\"bytes\":0,\"sha256\":\"\"}\n");
    verify(0, 1);
    char *copy = strdup(head);
    strstr(copy, "\"lines\":")[8] = '4';
    spew(b->head, copy);
    verify(0, 4);
    memcpy(copy, head, strlen(head));
    char *digit = strstr(copy, "\"sha256\":\"") + 10;
    *digit = *digit == 'a' ? 'b' : 'a';
    spew(b->head, copy);
    verify(0, 3);
    free(copy);
    spew(b->head, head);
    verify(3, 0);
    free(head);
    unlink(b->log);
    verify(0, 1);
}

static void an_interrupted_writer_passes_and_is_continued(void **state)
{
    bed *b = *state;

    append_some(2);
    char *head = slurp(b->head);
    append_some(1);
    spew(b->head, head);
    verify(3, 0); /* exactly one behind */
    append_some(1);
    verify(4, 0);
    spew(b->head, head);
    verify(0, 3); /* two behind: somebody's work */
    free(head);
}

static void the_first_line_interrupted_passes_too(void **state)
{
    bed *b = *state;

    append_some(1);
    spew(b->head, "{\"lines\":0,\"bytes\":0,\"sha256\":\"\"}\n");
    verify(1, 0);
    append_some(1);
    verify(2, 0);
}

static void appending_does_not_hide_damage(void **state)
{
    bed *b = *state;

    append_some(LINES);
    torn t = tear(b);
    put_back(b, &t, "0123");
    append_some(2);
    verify(0, 5);
    torn_free(&t);

    unlink(b->log);
    unlink(b->head);
    append_some(LINES);
    t = tear(b);
    put_back(b, &t, "012");
    unlink(b->head);
    append_some(2);
    verify(0, UINT64_MAX);
    torn_free(&t);

    unlink(b->log);
    append_some(2);
    unlink(b->log);
    append_some(1); /* the log removed, the head not */
    verify(0, 1);
}

static void a_log_removed_under_its_writer_shows_the_gap(void **state)
{
    bed *b = *state;
    csn_audit *a = NULL;
    csn_audit_event e = {.op = "read"};

    assert_int_equal(csn_audit_open(ID, NULL, &a, NULL), CSN_OK);
    assert_int_equal(csn_audit_append(a, &e, NULL), CSN_OK);
    assert_int_equal(csn_audit_append(a, &e, NULL), CSN_OK);
    unlink(b->log);
    unlink(b->head);
    assert_int_equal(csn_audit_append(a, &e, NULL), CSN_OK);
    csn_audit_close(a);
    verify(0, 1);
}

static void a_torn_line_does_not_swallow_the_next(void **state)
{
    bed *b = *state;
    int n = 0;

    append_some(1);
    FILE *f = fopen(b->log, "ae");
    fputs("{\"seq\":2", f);
    fclose(f);
    append_some(1);
    verify(0, 2);
    char *text = slurp(b->log);
    for (char *p = text; (p = strchr(p, '\n')) != NULL; p++)
        n++;
    assert_int_equal(n, 3);
    free(text);
}

/* The same, done under a writer that has the files open and remembers what it wrote. */
static void damage_under_a_writer_is_found_too(void **state)
{
    bed *b = *state;
    csn_audit_event e = {.op = "read"};

    for (int what = 0; what < 3; what++) {
        csn_audit *a = NULL;
        assert_int_equal(csn_audit_open(ID, NULL, &a, NULL), CSN_OK);
        assert_int_equal(csn_audit_append(a, &e, NULL), CSN_OK);
        assert_int_equal(csn_audit_append(a, &e, NULL), CSN_OK);
        if (what == 0) {
            spew(b->head, "{}"); /* not mended by the next line */
        } else if (what == 1) {  /* as long as before */
            FILE *f = fopen(b->log, "r+e");
            assert_non_null(f);
            fputs("{\"seq\":7", f);
            fclose(f);
        } else {
            FILE *f = fopen(b->log, "ae");
            assert_non_null(f);
            fputs("{\"seq\":3", f);
            fclose(f);
        }
        assert_int_equal(csn_audit_append(a, &e, NULL), CSN_OK);
        csn_audit_close(a);
        verify(0, what == 0 ? UINT64_MAX : what == 1 ? 1 : 3);
        unlink(b->log);
        unlink(b->head);
    }
}

/* ---- many writers, other places --------------------------------------------------------- */

static void processes_and_handles_share_one_chain(void **state)
{
    csn_audit *a = NULL, *b = NULL;
    csn_audit_event e = {.op = "read"};

    (void)state;
    for (int i = 0; i < 4; i++) {
        pid_t pid = fork();
        if (pid == 0) {
            append_some(50);
            _exit(0);
        }
        assert_true(pid > 0);
    }
    for (int i = 0, status; i < 4; i++) {
        assert_true(wait(&status) > 0);
        assert_int_equal(status, 0);
    }
    verify(200, 0);
    assert_int_equal(csn_audit_open(ID, NULL, &a, NULL), CSN_OK);
    assert_int_equal(csn_audit_open(ID, NULL, &b, NULL), CSN_OK);
    for (int i = 0; i < 10; i++)
        assert_int_equal(csn_audit_append(i % 2 ? a : b, &e, NULL), CSN_OK);
    csn_audit_close(a);
    csn_audit_close(b);
    verify(210, 0);
}

static void a_place_of_ones_own_is_used(void **state)
{
    bed *b = *state;
    csn_audit *a = NULL;
    char path[160];
    csn_audit_event e = {.op = "read"};

    snprintf(path, sizeof(path), "%s/own.jsonl", b->top);
    assert_int_equal(csn_audit_open(ID, path, &a, NULL), CSN_OK);
    assert_int_equal(csn_audit_append(a, &e, NULL), CSN_OK);
    csn_audit_close(a);
    assert_int_equal(access(path, F_OK), 0);
    snprintf(path, sizeof(path), "%s/own.head", b->top);
    assert_int_equal(access(path, F_OK), 0);
    assert_int_not_equal(access(b->log, F_OK), 0);
    snprintf(path, sizeof(path), "%s/none/own.jsonl", b->top);
    assert_int_equal(csn_audit_open(ID, path, &a, NULL), CSN_NOT_FOUND);
}

static void a_link_or_fifo_in_the_place_of_the_log_is_refused(void **state)
{
    bed *b = *state;
    csn_audit *a = NULL;
    csn_error *err = NULL;
    csn_audit_event e = {.op = "read"};

    append_some(1);
    unlink(b->log);
    assert_int_equal(symlink("/dev/null", b->log), 0);
    assert_int_equal(csn_audit_open(ID, NULL, &a, NULL), CSN_OK);
    assert_int_equal(csn_audit_append(a, &e, &err), CSN_IO);
    csn_error_free(err);
    unlink(b->log);
    assert_int_equal(mkfifo(b->log, 0600), 0);
    assert_int_equal(csn_audit_append(a, &e, NULL), CSN_IO);
    csn_audit_close(a);
}

static int ignore_line(void *ctx, const char *line, size_t len)
{
    (void)ctx;
    (void)line;
    (void)len;
    return 0;
}

static void ids_are_checked_before_they_become_names(void **state)
{
    static const char *const bad[] = {"", "..", "../x", "a/b", ".hidden", "-x", "a b", "a\n"};
    csn_audit_report *r = NULL;
    csn_audit *a = NULL;

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_int_equal(csn_audit_read(bad[i], ignore_line, NULL, NULL), CSN_INVALID);
        assert_int_equal(csn_audit_verify(bad[i], &r, NULL), CSN_INVALID);
        assert_int_equal(csn_audit_open(bad[i], NULL, &a, NULL), CSN_INVALID);
    }
    assert_int_equal(csn_audit_verify(NULL, &r, NULL), CSN_INVALID);
    assert_int_equal(csn_audit_verify("no-such", &r, NULL), CSN_NOT_FOUND);
    assert_int_equal(csn_audit_read("no-such", ignore_line, NULL, NULL), CSN_NOT_FOUND);
}

/* ---- what must not be in a log ------------------------------------------------------------
 */

static void redacts(const char *line, const char *want)
{
    char *got = csn_redact_line(line);

    if (strcmp(got, want) != 0)
        fail_msg("%s\n  became %s\n  not    %s", line, got, want);
    free(got);
}

static void secrets_are_hidden_in_command_lines(void **state)
{
    (void)state;
    redacts("curl -H 'Authorization: Bearer s3cr3t' x", "curl -H 'Authorization: ***' x");
    redacts("curl -H \"authorization: Basic s3cr3t==\" x", "curl -H \"authorization: ***\" x");
    redacts("curl -H 'X-Api-Key: s3cr3t'", "curl -H 'X-Api-Key: ***'");
    redacts("x --token s3cr3t y", "x --token *** y");
    redacts("x --token=s3cr3t y", "x --token=*** y");
    redacts("x --token='s3 cr3t' y", "x --token=*** y");
    redacts("x --db-password \"s3 cr3t\" y", "x --db-password *** y");
    redacts("PASSWORD=s3cr3t cmd", "PASSWORD=*** cmd");
    redacts("password=s3cr3t; b", "password=***; b");
    redacts("FOO=bar BAZ='a b' cmd --x=1", "FOO=*** BAZ=*** cmd --x=1");
    redacts("export AWS_SECRET_ACCESS_KEY=s3cr3t", "export AWS_SECRET_ACCESS_KEY=***");
    redacts("A=s3\"cr3t x\"'y z' cmd", "A=*** cmd");
    redacts("A='s3'cr3t cmd", "A=*** cmd");
    redacts("git clone https://user:s3cr3t@host/x", "git clone https://***@host/x");
    redacts("git clone https://s3cr3t@host/x", "git clone https://***@host/x");
    redacts("psql postgres://u:p@ss@h:5432/d", "psql postgres://***@h:5432/d");
    redacts("curl 'http://h/x?a=1&access_token=s3cr3t&b=2'",
            "curl 'http://h/x?a=1&access_token=***&b=2'");
    redacts("echo '{\"password\": \"s3cr3t\", \"a\": 1}'",
            "echo '{\"password\": ***, \"a\": 1}'");
    redacts("curl -u me:s3cr3t x; curl --user me:s3cr3t", "curl -u *** x; curl --user ***");
    redacts("echo ghp_0123456789abcdefghij", "echo ***");
    redacts("x eyJhbGciOi.JIUzI1NiJ9.abc y", "x *** y");
    redacts("echo Bearer s3cr3t", "echo Bearer ***");
}

static void ordinary_lines_stay(void **state)
{
    static const char *const lines[] = {"ls -la /tmp",
                                        "git commit --author=me -m 'fix: a, b'",
                                        "make -j4 all",
                                        "echo a=b c:d",
                                        "curl https://host:8080/a@b?x=1",
                                        "cat token.txt",
                                        "python tokenizer.py",
                                        "sort -u f",
                                        "",
                                        "x --max 5 -u user",
                                        "a://b c://d/e@f"};

    (void)state;
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
        redacts(lines[i], lines[i]);
}

static void no_secret_reaches_the_file(void **state)
{
    bed *b = *state;
    csn_audit *a = NULL;

    assert_int_equal(csn_audit_open(ID, NULL, &a, NULL), CSN_OK);
    csn_audit_event e = {
        .op = "exec",
        .target = "PASSWORD=s3cr3t curl -H 'Authorization: Bearer s3cr3t' "
                  "https://u:s3cr3t@h --token s3cr3t --token=s3cr3t",
        .argv = (const char *const[]){"curl", "--token", "s3cr3t", "--password=s3cr3t", "-H",
                                      "Authorization: Bearer s3cr3t", "-u", "me:s3cr3t",
                                      "https://u:s3cr3t@h", "API_KEY=s3cr3t", NULL},
        .env = (const char *const[]){"SECRET=s3cr3t", "X=s3cr3t=s3cr3t", NULL}};
    assert_int_equal(csn_audit_append(a, &e, NULL), CSN_OK);
    csn_audit_close(a);
    char *text = slurp(b->log);
    if (strstr(text, "s3cr3t"))
        fail_msg("%s", text);
    assert_non_null(strstr(text, "\"env\":[\"SECRET\",\"X\"]"));
    free(text);
}

static void hostile_texts_stay_one_bounded_line(void **state)
{
    bed *b = *state;
    csn_audit *a = NULL;
    size_t len = 100000;
    char *big = malloc(len + 1);
    const char *argv[600], *env[600];

    assert_int_equal(csn_audit_open(ID, NULL, &a, NULL), CSN_OK);
    for (int round = 0; round < 3; round++) {
        static const char fill[] = {'\x01', '\xff', 'a'};
        memset(big, fill[round], len);
        big[len] = '\0';
        memcpy(big, "\n\"}\r\x1b", 5);
        for (size_t i = 0; i < 599; i++)
            argv[i] = env[i] = i % 2 ? big : "x\n{";
        argv[599] = env[599] = NULL;
        csn_audit_event e = {.op = big,
                             .target = big,
                             .argv = argv,
                             .env = env,
                             .rule = big,
                             .killed_by = big,
                             .hash = big,
                             .status = CSN_OUTSIDE};
        assert_int_equal(csn_audit_append(a, &e, NULL), CSN_OK);
    }
    csn_audit_close(a);
    free(big);
    verify(3, 0);
    struct stat st;
    assert_int_equal(stat(b->log, &st), 0);
    assert_true(st.st_size < 3 * 16384);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, bed_setup, bed_teardown)
    const struct CMUnitTest tests[] = {
        T(an_unused_log_makes_no_file),
        T(lines_hold_every_field_in_order),
        T(an_intact_log_passes_and_can_be_read),
        T(cuts_doubles_and_swaps_are_found),
        T(every_changed_byte_is_found),
        T(a_rewritten_chain_is_found_by_the_head),
        T(a_missing_or_edited_head_is_found),
        T(an_interrupted_writer_passes_and_is_continued),
        T(the_first_line_interrupted_passes_too),
        T(appending_does_not_hide_damage),
        T(a_log_removed_under_its_writer_shows_the_gap),
        T(a_torn_line_does_not_swallow_the_next),
        T(damage_under_a_writer_is_found_too),
        T(processes_and_handles_share_one_chain),
        T(a_place_of_ones_own_is_used),
        T(a_link_or_fifo_in_the_place_of_the_log_is_refused),
        T(ids_are_checked_before_they_become_names),
        cmocka_unit_test(secrets_are_hidden_in_command_lines),
        cmocka_unit_test(ordinary_lines_stay),
        T(no_secret_reaches_the_file),
        T(hostile_texts_stay_one_bounded_line),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
