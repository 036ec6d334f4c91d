/* Output ceilings: exact at the byte, whatever the chunks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "caisson/backend.h"
#include "text/capture.h"

/* Feeds `text` in chunks of `step` and compares what is kept. */
static void check(csn_keep keep, size_t max, const char *text, size_t step, const char *want,
                  size_t want_head)
{
    csn_capture c;
    char out[64] = {0};
    size_t len = strlen(text);

    csn_capture_init(&c, max, keep);
    for (size_t i = 0; i < len; i += step)
        csn_capture_write(&c, text + i, len - i < step ? len - i : step);
    assert_int_equal(csn_capture_size(&c), strlen(want));
    assert_int_equal(csn_capture_copy(&c, out), want_head);
    assert_string_equal(out, want);
    assert_int_equal(c.total, len);
    assert_int_equal(csn_capture_truncated(&c), len > strlen(want));
    csn_capture_release(&c);
}

static void keeps_the_start_exactly_to_the_byte_in_any_chunks(void **state)
{
    (void)state;
    for (size_t step = 1; step <= 12; step++) {
        check(CSN_KEEP_HEAD, 5, "0123456789", step, "01234", 5);
        check(CSN_KEEP_HEAD, 10, "0123456789", step, "0123456789", 10);
        check(CSN_KEEP_HEAD, 9, "0123456789", step, "012345678", 9);
        check(CSN_KEEP_HEAD, 11, "0123456789", step, "0123456789", 10);
        check(CSN_KEEP_HEAD, 0, "0123456789", step, "", 0);
    }
}

static void keeps_the_end_exactly_to_the_byte_in_any_chunks(void **state)
{
    (void)state;
    for (size_t step = 1; step <= 12; step++) {
        check(CSN_KEEP_TAIL, 3, "0123456789", step, "789", 0);
        check(CSN_KEEP_TAIL, 10, "0123456789", step, "0123456789", 10);
        check(CSN_KEEP_TAIL, 9, "0123456789", step, "123456789", 0);
        check(CSN_KEEP_TAIL, 0, "0123456789", step, "", 0);
        check(CSN_KEEP_TAIL, 1, "0123456789", step, "9", 0);
    }
}

static void keeps_both_ends_and_says_where_the_gap_is(void **state)
{
    (void)state;
    for (size_t step = 1; step <= 12; step++) {
        check(CSN_KEEP_BOTH, 4, "0123456789", step, "0189", 2);
        check(CSN_KEEP_BOTH, 5, "0123456789", step, "01289", 3);
        check(CSN_KEEP_BOTH, 9, "0123456789", step, "012346789", 5);
        check(CSN_KEEP_BOTH, 10, "0123456789", step, "0123456789", 10);
        check(CSN_KEEP_BOTH, 64, "0123456789", step, "0123456789", 10);
        check(CSN_KEEP_BOTH, 1, "0123456789", step, "0", 1);
    }
}

static void asks_for_counting_only_once_the_head_is_full(void **state)
{
    csn_capture c;

    (void)state;
    csn_capture_init(&c, 4, CSN_KEEP_HEAD);
    assert_int_equal(csn_capture_write(&c, "abc", 3), CSN_SINK_MORE);
    assert_int_equal(csn_capture_write(&c, "d", 1), CSN_SINK_COUNT);
    assert_false(csn_capture_truncated(&c));
    assert_int_equal(csn_capture_write(&c, NULL, 1000), CSN_SINK_COUNT);
    assert_true(csn_capture_truncated(&c));
    assert_int_equal(c.total, 1004);
    assert_int_equal(csn_capture_size(&c), 4);
    csn_capture_release(&c);

    csn_capture_init(&c, 4, CSN_KEEP_TAIL);
    assert_int_equal(csn_capture_write(&c, "abcdefgh", 8), CSN_SINK_MORE);
    csn_capture_release(&c);
}

static void bytes_that_nobody_kept_break_neither_end(void **state)
{
    csn_capture c;
    char out[16] = {0};

    (void)state;
    csn_capture_init(&c, 8, CSN_KEEP_BOTH);
    csn_capture_write(&c, "ab", 2);
    csn_capture_write(&c, NULL, 100);
    csn_capture_write(&c, "yz", 2);
    assert_int_equal(csn_capture_copy(&c, out), 2);
    assert_string_equal(out, "abyz");
    assert_int_equal(c.total, 104);
    csn_capture_release(&c);
}

static void the_count_saturates(void **state)
{
    csn_capture c;

    (void)state;
    csn_capture_init(&c, 1, CSN_KEEP_HEAD);
    c.total = UINT64_MAX - 1;
    csn_capture_write(&c, NULL, 5);
    assert_true(c.total == UINT64_MAX);
    csn_capture_release(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keeps_the_start_exactly_to_the_byte_in_any_chunks),
        cmocka_unit_test(keeps_the_end_exactly_to_the_byte_in_any_chunks),
        cmocka_unit_test(keeps_both_ends_and_says_where_the_gap_is),
        cmocka_unit_test(asks_for_counting_only_once_the_head_is_full),
        cmocka_unit_test(bytes_that_nobody_kept_break_neither_end),
        cmocka_unit_test(the_count_saturates),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
