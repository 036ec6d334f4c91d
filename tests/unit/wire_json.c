/* wire_json.c: results as JSON and requests from JSON. The strict reader is the oracle. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/error.h"
#include "base/json_read.h"
#include "wire/edits_json.h"
#include "wire/result_json.h"

typedef struct built {
    csn_buf buf;
    csn_json j;
    csn_jval *v;
} built;

static csn_json *begin(built *b)
{
    csn_buf_init(&b->buf, 1 << 20);
    csn_json_begin(&b->j, &b->buf);
    return &b->j;
}

/* Parses what was written; the text must be one strict JSON value. */
static const csn_jval *end(built *b)
{
    assert_int_equal(csn_json_end(&b->j), 0);
    if (csn_json_parse(b->buf.data, b->buf.len, "answer", &b->v, NULL) < 0)
        fail_msg("not JSON: %s", b->buf.data);
    return b->v;
}

static void release(built *b)
{
    csn_jval_free(b->v);
    csn_buf_release(&b->buf);
}

static const char *str(const csn_jval *v, const char *key)
{
    return csn_jval_string(csn_jval_get(v, key));
}

static void exec_has_every_field_and_null_for_unknown(void **state)
{
    static const char *const keys[] = {"stdout",      "stderr",      "output",  "duration_ms",
                                       "timed_out",   "interrupted", "failed",  "truncated",
                                       "total_bytes", "usage",       "denials", "layers"};
    csn_exec_result r = {.size = sizeof(r), .exit_code = -1, .signal = "SIGKILL"};
    built b;

    (void)state;
    csn_wire_exec(begin(&b), &r);
    const csn_jval *v = end(&b);
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
        assert_non_null(csn_jval_get(v, keys[i]));
    assert_string_equal(str(v, "signal"), "SIGKILL");
    assert_non_null(strstr(b.buf.data, "\"exit_code\":null"));
    assert_non_null(strstr(b.buf.data, "\"truncated_by\":null"));
    assert_non_null(strstr(b.buf.data, "\"killed_by\":null"));
    assert_null(csn_jval_get(v, "gap_at"));
    release(&b);
}

static void exec_tells_where_the_middle_was_dropped(void **state)
{
    csn_exec_result r = {.size = sizeof(r),
                         .truncated = 1,
                         .truncated_by = "bytes",
                         .out = {.data = "abyz", .len = 4, .total = 26, .head = 2},
                         .merged = {.data = "abcd", .len = 4, .total = 26, .head = 4}};
    uint64_t at = 0, total = 0;
    built b;

    (void)state;
    csn_wire_exec(begin(&b), &r);
    const csn_jval *gap = csn_jval_get(end(&b), "gap_at");
    assert_non_null(gap);
    assert_int_equal(csn_jget_u64(gap, "stdout", &at, NULL), CSN_OK);
    assert_int_equal(at, 2);
    assert_null(csn_jval_get(gap, "output"));
    assert_int_equal(csn_jget_u64(csn_jval_get(b.v, "total_bytes"), "stdout", &total, NULL), 0);
    assert_int_equal(total, 26);
    release(&b);
}

static void a_name_that_is_not_utf8_also_comes_as_base64(void **state)
{
    csn_file_info f = {.path = "bad\xff", .mode = 0100644, .target = "ok"};
    built b;

    (void)state;
    csn_wire_file(begin(&b), &f);
    const csn_jval *v = end(&b);
    assert_string_equal(str(v, "path"), "bad\xef\xbf\xbd");
    assert_string_equal(str(v, "path_base64"), "YmFk/w==");
    assert_string_equal(str(v, "mode"), "0644");
    assert_string_equal(str(v, "target"), "ok");
    assert_null(csn_jval_get(v, "target_base64"));
    assert_string_equal(str(v, "modified_at"), "1970-01-01T00:00:00.000Z");
    release(&b);
}

static void images_are_base64_and_text_on_request(void **state)
{
    csn_read_result r = {.size = sizeof(r), .content = "a\xff", .content_len = 2};
    built b;

    (void)state;
    csn_wire_read(begin(&b), &r, false);
    assert_null(csn_jval_get(end(&b), "encoding"));
    release(&b);
    csn_wire_read(begin(&b), &r, true);
    assert_string_equal(str(end(&b), "content"), "Yf8=");
    assert_string_equal(str(b.v, "encoding"), "base64");
    release(&b);
    r.is_image = 1;
    r.mime_type = "image/png";
    csn_wire_read(begin(&b), &r, false);
    assert_string_equal(str(end(&b), "encoding"), "base64");
    release(&b);
}

static void an_error_carries_its_denial(void **state)
{
    csn_denial d = {.op = "read", .target = "x", .rule = "deny x", .hint = "--read x"};
    csn_error *e = NULL;
    built b;

    (void)state;
    csn_status st = csn_fail(&e, CSN_DENIED, "refused \"%s\"", "x\n");
    st = csn_error_note(st, &e, NULL, "x");
    assert_int_equal(csn_error_deny(st, &e, &d), CSN_DENIED);
    csn_wire_error(begin(&b), e, "cat");
    const csn_jval *v = end(&b);
    assert_string_equal(str(v, "code"), "denied");
    assert_string_equal(str(v, "op"), "cat");
    assert_string_equal(str(v, "path"), "x");
    assert_string_equal(str(v, "message"), "refused \"x\n\"");
    assert_string_equal(str(csn_jval_get(v, "denial"), "rule"), "deny x");
    csn_error_free(e);
    release(&b);
}

static csn_status edits(const char *json, csn_edit_item **ret, size_t *ret_count, csn_arena *a,
                        char message[256])
{
    csn_error *e = NULL;
    csn_status st = csn_wire_edits(json, strlen(json), "edits", a, ret, ret_count, &e);

    snprintf(message, 256, "%s", e ? csn_error_message(e) : "");
    csn_error_free(e);
    return st;
}

static void edits_come_as_a_list_or_in_an_object(void **state)
{
    csn_arena *a = csn_arena_new();
    csn_edit_item *items = NULL;
    size_t n = 0;
    char why[256];

    (void)state;
    assert_int_equal(edits("[{\"old_string\":\"a\",\"new_string\":\"\"},"
                           "{\"new_string\":\"c\",\"old_string\":\"b\",\"replace_all\":true}]",
                           &items, &n, a, why),
                     CSN_OK);
    assert_int_equal(n, 2);
    assert_string_equal(items[0].new_string, "");
    assert_int_equal(items[0].replace_all, 0);
    assert_int_equal(items[1].replace_all, 1);
    assert_int_equal(
        edits("{\"edits\":[{\"old_string\":\"a\",\"new_string\":\"b\"}]}", &items, &n, a, why),
        CSN_OK);
    assert_int_equal(n, 1);
    csn_arena_free(a);
}

static void wrong_edits_are_refused_by_name(void **state)
{
    static const struct {
        const char *json, *word;
    } wrong[] = {
        {"", "edits"},
        {"{}", "not a list"},
        {"[]", "not a list"},
        {"[1]", "edit 1"},
        {"[{\"old_string\":\"a\"}]", "new_string"},
        {"[{\"new_string\":\"a\"}]", "old_string"},
        {"[{\"old_string\":1,\"new_string\":\"a\"}]", "old_string"},
        {"[{\"old_string\":\"a\",\"new_string\":\"b\",\"all\":true}]", "all"},
        {"[{\"old_string\":\"a\",\"new_string\":\"b\",\"replace_all\":1}]", "replace_all"}};
    csn_arena *a = csn_arena_new();
    csn_edit_item *items = NULL;
    size_t n = 7;
    char why[256];

    (void)state;
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        assert_int_equal(edits(wrong[i].json, &items, &n, a, why), CSN_INVALID);
        if (!strstr(why, wrong[i].word))
            fail_msg("%s: '%s' does not name '%s'", wrong[i].json, why, wrong[i].word);
    }
    assert_null(items);
    assert_int_equal(n, 7);
    csn_arena_free(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exec_has_every_field_and_null_for_unknown),
        cmocka_unit_test(exec_tells_where_the_middle_was_dropped),
        cmocka_unit_test(a_name_that_is_not_utf8_also_comes_as_base64),
        cmocka_unit_test(images_are_base64_and_text_on_request),
        cmocka_unit_test(an_error_carries_its_denial),
        cmocka_unit_test(edits_come_as_a_list_or_in_an_object),
        cmocka_unit_test(wrong_edits_are_refused_by_name),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
