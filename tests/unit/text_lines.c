/* Line windows: the same in every chunking, exact at every edge. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "text/lines.h"

typedef struct want {
    uint64_t offset, limit;
    size_t byte_max;
    bool numbers;
    const char *out;
    uint64_t total, lines;
    bool by_bytes, by_lines;
} want;

static void check_len(const char *text, size_t len, const want *x)
{
    for (size_t step = 1; step <= len + 1; step++) {
        csn_lines w;
        csn_lines_init(&w, x->offset, x->limit, x->byte_max, x->numbers);
        for (size_t i = 0; i < len; i += step)
            assert_int_equal(csn_lines_feed(&w, text + i, len - i < step ? len - i : step), 0);
        if (w.out.len != strlen(x->out) ||
            (w.out.len > 0 && memcmp(w.out.data, x->out, w.out.len) != 0))
            fail_msg("step %zu: got '%.*s', want '%s'", step, (int)w.out.len,
                     w.out.len ? w.out.data : "", x->out);
        assert_int_equal(csn_lines_total(&w), x->total);
        assert_int_equal(w.output_lines, x->lines);
        assert_int_equal(w.cut_by_bytes, x->by_bytes);
        assert_int_equal(w.cut_by_lines, x->by_lines);
        assert_int_equal(w.fed, len);
        csn_lines_release(&w);
    }
}

static void check(const char *text, want x)
{
    check_len(text, strlen(text), &x);
}

static void counts_lines_as_people_do(void **state)
{
    (void)state;
    check("", (want){0, 9, 99, false, "", 0, 0, false, false});
    check("a\nb", (want){0, 9, 99, false, "a\nb", 2, 2, false, false});
    check("a\n", (want){0, 9, 99, false, "a\n", 1, 1, false, false});
    check("\n", (want){0, 9, 99, false, "\n", 1, 1, false, false});
    check("\n\n", (want){0, 9, 99, false, "\n\n", 2, 2, false, false});
    check("a\r\nb\r\n", (want){0, 9, 99, false, "a\r\nb\r\n", 2, 2, false, false});
}

static void gives_the_window_and_says_if_lines_follow(void **state)
{
    (void)state;
    check("a\nb\nc\n", (want){1, 1, 99, false, "b\n", 3, 1, false, true});
    check("a\nb\nc\n", (want){1, 2, 99, false, "b\nc\n", 3, 2, false, false});
    check("a\nb\nc\n", (want){0, 2, 99, false, "a\nb\n", 3, 2, false, true});
    check("a\nb\nc", (want){2, 5, 99, false, "c", 3, 1, false, false});
    check("a\nb\n", (want){2, 5, 99, false, "", 2, 0, false, false});
    check("a\nb\n", (want){99, 5, 99, false, "", 2, 0, false, false});
    check("a\nb\n", (want){0, UINT64_MAX, 99, false, "a\nb\n", 2, 2, false, false});
    check("a\nb\n", (want){UINT64_MAX, UINT64_MAX, 99, false, "", 2, 0, false, false});
    check("a\nb\n", (want){1, UINT64_MAX, 99, false, "b\n", 2, 1, false, false});
}

static void cuts_at_the_byte_and_says_so(void **state)
{
    (void)state;
    check("abcdef", (want){0, 9, 6, false, "abcdef", 1, 1, false, false});
    check("abcdef", (want){0, 9, 5, false, "abcde", 1, 1, true, false});
    check("ab\ncd\n", (want){0, 9, 3, false, "ab\n", 2, 1, true, false});
    check("ab\ncd\n", (want){0, 9, 4, false, "ab\nc", 2, 2, true, false});
    check("ab\ncd\n", (want){1, 9, 2, false, "cd", 2, 1, true, false});
    check("ab\ncd\n", (want){0, 1, 3, false, "ab\n", 2, 1, false, true});
    check("ab\ncd\n", (want){0, 9, 0, false, "", 2, 0, true, false});
}

static void does_not_cut_inside_a_character(void **state)
{
    (void)state;
    check("a\xc3\xa9z", (want){0, 9, 2, false, "a", 1, 1, true, false});
    check("a\xc3\xa9z", (want){0, 9, 3, false, "a\xc3\xa9", 1, 1, true, false});
    check("a\xe2\x82\xacz", (want){0, 9, 2, false, "a", 1, 1, true, false});
    check("a\xe2\x82\xacz", (want){0, 9, 3, false, "a", 1, 1, true, false});
    check("\xf0\x9f\x98\x80!", (want){0, 9, 3, false, "", 1, 0, true, false});
    check("a\n\xc3\xa9", (want){0, 9, 3, true, "     1\ta\n", 2, 1, true, false});
    /* not UTF-8: cut at the byte */
    check("a\xc3zzz", (want){0, 9, 2, false, "a\xc3", 1, 1, true, false});
    check("a\xe9"
          "bcd",
          (want){0, 9, 2, false, "a\xe9", 1, 1, true, false});
    check("a\xff\xff\xff", (want){0, 9, 2, false, "a\xff", 1, 1, true, false});
}

static void numbers_lines_from_one_and_does_not_count_the_numbers(void **state)
{
    (void)state;
    check("a\nb\n", (want){0, 9, 4, true, "     1\ta\n     2\tb\n", 2, 2, false, false});
    check("a\nb\n", (want){1, 9, 4, true, "     2\tb\n", 2, 1, false, false});
    check("a\n\nb",
          (want){0, 9, 99, true, "     1\ta\n     2\t\n     3\tb", 3, 3, false, false});
    check("ab\ncd\n", (want){0, 9, 3, true, "     1\tab\n", 2, 1, true, false});
}

static void keeps_nul_bytes(void **state)
{
    csn_lines w;

    (void)state;
    csn_lines_init(&w, 0, 10, 100, false);
    assert_int_equal(csn_lines_feed(&w, "a\0b\n\0", 5), 0);
    assert_int_equal(w.out.len, 5);
    assert_memory_equal(w.out.data, "a\0b\n\0", 5);
    assert_int_equal(csn_lines_total(&w), 2);
    csn_lines_release(&w);
}

static void is_complete_when_nothing_more_can_be_kept(void **state)
{
    csn_lines w;

    (void)state;
    csn_lines_init(&w, 0, 1, 100, false);
    csn_lines_feed(&w, "a", 1);
    assert_false(csn_lines_complete(&w));
    csn_lines_feed(&w, "\n", 1);
    assert_true(csn_lines_complete(&w));
    assert_false(w.cut_by_lines);
    csn_lines_feed(&w, "b\nc\nd", 5);
    assert_true(w.cut_by_lines);
    assert_int_equal(csn_lines_total(&w), 4);
    csn_lines_release(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_lines_as_people_do),
        cmocka_unit_test(gives_the_window_and_says_if_lines_follow),
        cmocka_unit_test(cuts_at_the_byte_and_says_so),
        cmocka_unit_test(does_not_cut_inside_a_character),
        cmocka_unit_test(numbers_lines_from_one_and_does_not_count_the_numbers),
        cmocka_unit_test(keeps_nul_bytes),
        cmocka_unit_test(is_complete_when_nothing_more_can_be_kept),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
