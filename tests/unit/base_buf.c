/* Buffers: growth, the ceiling, and what a failed append leaves behind. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"

static void appends_add_up_and_stay_terminated(void **state)
{
    (void)state;
    csn_autobuf b;
    csn_buf_init(&b, 1 << 20);

    for (int i = 0; i < 1000; i++) {
        assert_int_equal(csn_buf_puts(&b, "abc"), 0);
        assert_int_equal(csn_buf_putc(&b, 'd'), 0);
        assert_int_equal(csn_buf_printf(&b, "%03d", i), 0);
        assert_int_equal(b.data[b.len], 0);
    }
    assert_int_equal(b.len, 7000);
    assert_memory_equal(b.data + 7 * 999, "abcd999", 8);
}

static void ceiling_is_exact_and_failure_changes_nothing(void **state)
{
    (void)state;
    csn_autobuf b;
    csn_buf_init(&b, 10);

    assert_int_equal(csn_buf_puts(&b, "12345678"), 0);
    assert_int_equal(csn_buf_puts(&b, "abc"), ENOSPC);
    assert_int_equal(csn_buf_printf(&b, "%d", 100), ENOSPC);
    assert_string_equal(b.data, "12345678");
    assert_int_equal(b.len, 8);
    assert_int_equal(csn_buf_printf(&b, "%d", 90), 0);
    assert_int_equal(csn_buf_putc(&b, 'x'), ENOSPC);
    assert_int_equal(csn_buf_append(&b, NULL, 0), 0);
    assert_string_equal(b.data, "1234567890");
}

static void huge_reservations_do_not_wrap(void **state)
{
    (void)state;
    csn_autobuf b;
    csn_buf_init(&b, SIZE_MAX);

    assert_int_equal(csn_buf_puts(&b, "x"), 0);
    assert_int_equal(csn_buf_reserve(&b, SIZE_MAX), ENOSPC);
    assert_int_equal(csn_buf_reserve(&b, SIZE_MAX - 1), ENOSPC);
    assert_string_equal(b.data, "x");
}

static void take_moves_the_bytes_out(void **state)
{
    (void)state;
    csn_autobuf b;
    csn_buf_init(&b, 5);
    csn_autofree char *empty = csn_buf_take(&b);
    assert_string_equal(empty, "");

    assert_int_equal(csn_buf_puts(&b, "hello"), 0);
    csn_autofree char *full = csn_buf_take(&b);
    assert_string_equal(full, "hello");
    assert_null(b.data);
    assert_int_equal(b.len, 0);
    assert_int_equal(csn_buf_puts(&b, "again"), 0);
    assert_int_equal(csn_buf_puts(&b, "!"), ENOSPC);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(appends_add_up_and_stay_terminated),
        cmocka_unit_test(ceiling_is_exact_and_failure_changes_nothing),
        cmocka_unit_test(huge_reservations_do_not_wrap),
        cmocka_unit_test(take_moves_the_bytes_out),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
