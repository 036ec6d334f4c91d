/* Clocks: deadlines that saturate, dates of any age. */
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "base/clock.h"
#include "caisson/caisson.h"

static void monotonic_time_moves_forward(void **state)
{
    (void)state;
    uint64_t a = csn_now_ns(), b = csn_now_ns();

    assert_true(a > 0 && b >= a);
    assert_true(csn_wall_ms() / 1000 - (int64_t)time(NULL) <= 1);
    assert_true((int64_t)time(NULL) - csn_wall_ms() / 1000 <= 1);
}

static void deadlines_saturate_and_none_stays_none(void **state)
{
    (void)state;
    assert_int_equal(csn_deadline_in(CSN_NO_LIMIT), 0);
    assert_int_equal(csn_deadline_in(CSN_NO_LIMIT - 1), UINT64_MAX);
    assert_int_equal(csn_deadline_in(UINT64_MAX / 1000000), UINT64_MAX);
    assert_true(csn_deadline_in(0) > 0);
    assert_int_equal(csn_deadline_poll_ms(0), -1);
    assert_int_equal(csn_deadline_poll_ms(1), 0);
    assert_int_equal(csn_deadline_poll_ms(csn_deadline_in(0)), 0);
    assert_int_equal(csn_deadline_poll_ms(UINT64_MAX), INT_MAX);
}

static void remaining_time_rounds_up(void **state)
{
    (void)state;
    uint64_t from = csn_now_ns();
    int left = csn_deadline_poll_ms(csn_deadline_in(5000));
    int passed = (int)((csn_now_ns() - from) / 1000000) + 1;
    assert_in_range(left, passed < 5000 ? 5000 - passed : 0, 5000);
    /* what is left of a second, however little, is never 0: poll would spin */
    uint64_t deadline = csn_now_ns() + 3000000;
    while (csn_now_ns() < deadline) {
        left = csn_deadline_poll_ms(deadline);
        assert_in_range(left, 0, 3);
        if (left == 0)
            assert_true(csn_now_ns() >= deadline);
    }
}

static void check_iso(int64_t ns, const char *want)
{
    char text[CSN_ISO_SIZE];

    csn_iso8601(ns, text);
    assert_string_equal(text, want);
}

static void dates_are_iso_8601_in_utc(void **state)
{
    (void)state;
    check_iso(0, "1970-01-01T00:00:00.000Z");
    /* every day of some centuries, against the C library */
    for (int64_t day = -100000; day < 100000; day++) {
        time_t t = (time_t)day * 86400 + 86399;
        char want[CSN_ISO_SIZE];
        struct tm tm;
        gmtime_r(&t, &tm);
        strftime(want, sizeof(want), "%Y-%m-%dT%H:%M:%S.000Z", &tm);
        check_iso(t * 1000000000, want);
    }
    check_iso(1794728580000000000, "2026-11-15T07:43:00.000Z");
    check_iso(951782400123456789, "2000-02-29T00:00:00.123Z");
    check_iso(-1, "1969-12-31T23:59:59.999Z");
    check_iso(-1000000000, "1969-12-31T23:59:59.000Z");
    check_iso(INT64_MAX, "2262-04-11T23:47:16.854Z");
    check_iso(INT64_MIN, "1677-09-21T00:12:43.145Z");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(monotonic_time_moves_forward),
        cmocka_unit_test(deadlines_saturate_and_none_stays_none),
        cmocka_unit_test(remaining_time_rounds_up),
        cmocka_unit_test(dates_are_iso_8601_in_utc),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
