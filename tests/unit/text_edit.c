/* Exact edits: all or nothing, literal, counted, and helpful when they miss. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "text/edit.h"

static void check_ok(const char *text, const csn_edit_item *edits, size_t count,
                     const char *want, uint64_t occurrences)
{
    csn_buf out;
    csn_error *err = NULL;
    uint64_t n = 0;

    csn_buf_init(&out, 1 << 20);
    if (csn_edit_apply("f", text, strlen(text), edits, count, &out, &n, &err) != CSN_OK)
        fail_msg("%s", csn_error_message(err));
    assert_int_equal(out.len, strlen(want));
    if (out.len > 0)
        assert_memory_equal(out.data, want, out.len);
    assert_int_equal(n, occurrences);
    csn_buf_release(&out);
}

#define EDIT(text, want, n, ...)                                                               \
    check_ok(text, (const csn_edit_item[]){__VA_ARGS__},                                       \
             sizeof((const csn_edit_item[]){__VA_ARGS__}) / sizeof(csn_edit_item), want, n)

/* The message, and (if given) a part of the hint. */
static void check_fail(const char *text, const csn_edit_item *edits, size_t count,
                       csn_status status, const char *message, const char *hint)
{
    csn_buf out;
    csn_error *err = NULL;
    uint64_t n = 77;

    csn_buf_init(&out, 1 << 20);
    csn_buf_puts(&out, "before");
    assert_int_equal(csn_edit_apply("f", text, strlen(text), edits, count, &out, &n, &err),
                     status);
    assert_string_equal(csn_error_message(err), message);
    if (hint && (!csn_error_hint(err) || !strstr(csn_error_hint(err), hint)))
        fail_msg("hint '%s' lacks '%s'", csn_error_hint(err), hint);
    assert_int_equal(n, 77);
    assert_string_equal(out.data, "before");
    csn_error_free(err);
    csn_buf_release(&out);
}

static void replaces_one_or_all(void **state)
{
    (void)state;
    EDIT("a b c", "a X c", 1, {"b", 0, "X", 0, 0});
    EDIT("a a a", "X X X", 3, {"a", 0, "X", 0, 1});
    EDIT("b", "", 1, {"b", 0, "", 0, 0});
    EDIT("b", "", 1, {"b", 0, NULL, 0, 0});
    EDIT("abc", "xc", 1, {"abZZ", 2, "xYY", 1, 0});
    EDIT("line1\r\nline2\r\n", "line1\r\nX\r\n", 1, {"line2", 0, "X", 0, 0});
}

static void overlapping_matches_count_once_from_the_left(void **state)
{
    (void)state;
    EDIT("aaa", "Xa", 1, {"aa", 0, "X", 0, 1});
    EDIT("aaaa", "XX", 2, {"aa", 0, "X", 0, 1});
    /* and so this one is unique */
    EDIT("aaa", "Xa", 1, {"aa", 0, "X", 0, 0});
    check_fail("aaaa", (const csn_edit_item[]){{"aa", 0, "X", 0, 0}}, 1, CSN_AMBIGUOUS,
               "String 'aa' appears multiple times. Use replaceAll=true to replace all "
               "occurrences.",
               "line 1, 1 (2 in all)");
}

static void new_text_is_literal(void **state)
{
    (void)state;
    EDIT("a.b", "$& \\1 $1 & % {}", 1, {"a.b", 0, "$& \\1 $1 & % {}", 0, 0});
    EDIT("aXb", "aXb.", 1, {"b", 0, "b.", 0, 0});
    EDIT("x", "xx", 1, {"x", 0, "xx", 0, 1});
}

static void several_edits_happen_in_order(void **state)
{
    (void)state;
    EDIT("one two", "three two", 2, {"one", 0, "two", 0, 0}, {"two two", 0, "three two", 0, 0});
    EDIT("a b", "c c", 3, {"a", 0, "b", 0, 0}, {"b", 0, "c", 0, 1});
    check_fail("a b", (const csn_edit_item[]){{"a", 0, "x", 0, 0}, {"zz", 0, "y", 0, 0}}, 2,
               CSN_NO_MATCH, "String not found in file: 'zz'", "edit 2 of 2");
}

/* Nothing changes, and the answer says that the text is there. */
static void equal_strings_count(void **state)
{
    (void)state;
    EDIT("a b a", "a b a", 1, {"b", 0, "b", 0, 0});
    EDIT("a b a", "a b a", 2, {"a", 0, "a", 0, 1});
    check_fail("a b a", (const csn_edit_item[]){{"a", 0, "a", 0, 0}}, 1, CSN_AMBIGUOUS,
               "String 'a' appears multiple times. Use replaceAll=true to replace all "
               "occurrences.",
               NULL);
    check_fail("a b", (const csn_edit_item[]){{"zz", 0, "zz", 0, 0}}, 1, CSN_NO_MATCH,
               "String not found in file: 'zz'", NULL);
}

static void wrong_requests_are_invalid(void **state)
{
    (void)state;
    check_fail("a", NULL, 0, CSN_INVALID, "no edits given", NULL);
    check_fail("a", (const csn_edit_item[]){{"", 0, "x", 0, 0}}, 1, CSN_INVALID,
               "edit 1: old_string is empty", NULL);
    check_fail("a", (const csn_edit_item[]){{NULL, 0, "x", 0, 0}}, 1, CSN_INVALID,
               "edit 1: old_string is missing", NULL);
}

static void a_miss_names_the_nearest_line(void **state)
{
    const char *text = "int main(void)\n{\n    return compute_total(items);\n}\n";

    (void)state;
    check_fail(text, (const csn_edit_item[]){{"return compute_totals(item);", 0, "x", 0, 0}}, 1,
               CSN_NO_MATCH, "String not found in file: 'return compute_totals(item);'",
               "the nearest line is 3: '    return compute_total(items);'");
    check_fail(text, (const csn_edit_item[]){{"zzzzqqqq", 0, "x", 0, 0}}, 1, CSN_NO_MATCH,
               "String not found in file: 'zzzzqqqq'", "no line comes near");
    check_fail("", (const csn_edit_item[]){{"a", 0, "x", 0, 0}}, 1, CSN_NO_MATCH,
               "String not found in file: 'a'", "the file is empty");
}

static void a_miss_says_when_only_line_endings_or_blanks_differ(void **state)
{
    (void)state;
    check_fail("x\r\na\r\nb\r\n", (const csn_edit_item[]){{"a\nb", 0, "x", 0, 0}}, 1,
               CSN_NO_MATCH, "String not found in file: 'a\\nb'", "CRLF (\\r\\n) at line 2");
    check_fail("x\na\nb\n", (const csn_edit_item[]){{"a\r\nb", 0, "x", 0, 0}}, 1, CSN_NO_MATCH,
               "String not found in file: 'a\\r\\nb'", "the file has LF (\\n) at line 2");
    check_fail("if (x) {\n\treturn 1;\n}\n",
               (const csn_edit_item[]){{"    return  1;", 0, "x", 0, 0}}, 1, CSN_NO_MATCH,
               "String not found in file: '    return  1;'",
               "only white space differs at line 2: '\\treturn 1;'");
}

static void an_ambiguous_match_lists_its_lines(void **state)
{
    (void)state;
    check_fail("a\nx\na\na\na\na\na\n", (const csn_edit_item[]){{"a", 0, "b", 0, 0}}, 1,
               CSN_AMBIGUOUS,
               "String 'a' appears multiple times. Use replaceAll=true to replace all "
               "occurrences.",
               "at line 1, 3, 4, 5, 6 ... (6 in all)");
}

static void messages_are_short_and_clean(void **state)
{
    csn_buf out;
    csn_error *err = NULL;
    uint64_t n;
    char old[5000];

    (void)state;
    memset(old, 'q', sizeof(old));
    memcpy(old, "\x1b[31m\xff", 6);
    csn_buf_init(&out, 1 << 20);
    assert_int_equal(csn_edit_apply("f", "abc", 3,
                                    &(csn_edit_item){old, sizeof(old), "x", 0, 0}, 1, &out, &n,
                                    &err),
                     CSN_NO_MATCH);
    assert_true(strlen(csn_error_message(err)) < 300);
    assert_null(strchr(csn_error_message(err), '\x1b'));
    assert_non_null(strstr(csn_error_message(err), "\\x1b[31m\\xff"));
    csn_error_free(err);
    csn_buf_release(&out);
}

static void nul_bytes_and_bad_utf8_survive(void **state)
{
    csn_buf out;
    uint64_t n = 0;

    (void)state;
    csn_buf_init(&out, 100);
    assert_int_equal(csn_edit_apply("f", "a\0\xff z\0", 6,
                                    &(csn_edit_item){"\0\xff", 2, "\0\0", 2, 0}, 1, &out, &n,
                                    NULL),
                     CSN_OK);
    assert_int_equal(out.len, 6);
    assert_memory_equal(out.data, "a\0\0 z\0", 6);
    csn_buf_release(&out);
}

static void a_result_over_the_ceiling_is_too_large(void **state)
{
    csn_buf out;
    csn_error *err = NULL;
    uint64_t n = 0;

    (void)state;
    csn_buf_init(&out, 8);
    assert_int_equal(csn_edit_apply("f", "aaaa", 4, &(csn_edit_item){"a", 0, "bbb", 0, 1}, 1,
                                    &out, &n, &err),
                     CSN_TOO_LARGE);
    csn_error_free(err);
    csn_buf_release(&out);
}

static void a_miss_in_a_big_hostile_file_is_quick(void **state)
{
    size_t len = 16 << 20;
    char *text = malloc(len);
    csn_buf out;
    csn_error *err = NULL;
    uint64_t n = 0, start = csn_now_ns();

    (void)state;
    memset(text, 'a', len);
    for (size_t i = 0; i < len / 2; i += 7)
        text[i] = '\n';
    csn_buf_init(&out, len * 2);
    csn_edit_item e = {"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab\naaaab", 0, "x", 0, 0};
    assert_int_equal(csn_edit_apply("f", text, len, &e, 1, &out, &n, &err), CSN_NO_MATCH);
    assert_true(csn_now_ns() - start < 20000000000ull);
    csn_error_free(err);
    csn_buf_release(&out);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(replaces_one_or_all),
        cmocka_unit_test(overlapping_matches_count_once_from_the_left),
        cmocka_unit_test(new_text_is_literal),
        cmocka_unit_test(several_edits_happen_in_order),
        cmocka_unit_test(equal_strings_count),
        cmocka_unit_test(wrong_requests_are_invalid),
        cmocka_unit_test(a_miss_names_the_nearest_line),
        cmocka_unit_test(a_miss_says_when_only_line_endings_or_blanks_differ),
        cmocka_unit_test(an_ambiguous_match_lists_its_lines),
        cmocka_unit_test(messages_are_short_and_clean),
        cmocka_unit_test(nul_bytes_and_bad_utf8_survive),
        cmocka_unit_test(a_result_over_the_ceiling_is_too_large),
        cmocka_unit_test(a_miss_in_a_big_hostile_file_is_quick),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
