/* Lists of strings and the words people type. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/strv.h"

static void lists_grow_and_are_searched(void **state)
{
    (void)state;
    char **v = NULL, text[16];

    for (int i = 0; i < 100; i++) {
        snprintf(text, sizeof(text), "s%d", i);
        assert_int_equal(csn_strv_push(&v, text), 0);
    }
    const char *const *c = (const char *const *)v;
    assert_int_equal(csn_strv_len(c), 100);
    assert_true(csn_strv_has(c, "s99"));
    assert_false(csn_strv_has(c, "s100"));
    assert_string_equal(v[42], "s42");
    assert_null(v[100]);
    csn_strv_free(v);
}

static void no_list_is_an_empty_list(void **state)
{
    (void)state;
    assert_int_equal(csn_strv_len(NULL), 0);
    assert_false(csn_strv_has(NULL, "x"));
    csn_strv_free(NULL);
}

static void prefix_is_the_whole_prefix(void **state)
{
    (void)state;
    assert_true(csn_str_starts("abc", "ab"));
    assert_true(csn_str_starts("abc", ""));
    assert_true(csn_str_starts("abc", "abc"));
    assert_false(csn_str_starts("ab", "abc"));
}

/* want NULL: must be refused and leave the result alone. */
static void check(bool (*parse)(const char *, uint64_t *), const char *s, const uint64_t *want)
{
    uint64_t got = 4711;
    bool ok = parse(s, &got);

    if (ok != (want != NULL) || got != (want ? *want : 4711))
        fail_msg("'%s' gave %d, %llu", s ? s : "NULL", ok, (unsigned long long)got);
}

#define OK(parse, s, n) check(parse, s, &(uint64_t){n})
#define NO(parse, s)    check(parse, s, NULL)

static void durations_have_units_and_limits(void **state)
{
    (void)state;
    OK(csn_parse_duration_ms, "500ms", 500);
    OK(csn_parse_duration_ms, "30s", 30000);
    OK(csn_parse_duration_ms, "30", 30000);
    OK(csn_parse_duration_ms, "0", 0);
    OK(csn_parse_duration_ms, "10m", 600000);
    OK(csn_parse_duration_ms, "1h", 3600000);
    OK(csn_parse_duration_ms, "2d", 172800000);
    OK(csn_parse_duration_ms, "18446744073709551615ms", UINT64_MAX);
    static const char *const bad[] = {"",
                                      "s",
                                      "-1s",
                                      "+1",
                                      " 1s",
                                      "1 s",
                                      "1S",
                                      "1.5s",
                                      "1sx",
                                      "1min",
                                      "18446744073709551615s",
                                      "99999999999999999999ms",
                                      NULL};
    for (size_t i = 0; bad[i]; i++)
        NO(csn_parse_duration_ms, bad[i]);
    NO(csn_parse_duration_ms, NULL);
}

static void sizes_have_units_and_limits(void **state)
{
    (void)state;
    OK(csn_parse_size, "512", 512);
    OK(csn_parse_size, "512B", 512);
    OK(csn_parse_size, "512K", 512 << 10);
    OK(csn_parse_size, "512k", 512 << 10);
    OK(csn_parse_size, "64M", 64 << 20);
    OK(csn_parse_size, "64MB", 64 << 20);
    OK(csn_parse_size, "64MiB", 64 << 20);
    OK(csn_parse_size, "2G", 2ull << 30);
    OK(csn_parse_size, "1T", 1ull << 40);
    static const char *const bad[] = {"",     "K",    "-1",  "1iB", "1KiBx",
                                      "1Ki",  "1KB1", "1 K", "1E",  "18446744073709551615K",
                                      "0x10", NULL};
    for (size_t i = 0; bad[i]; i++)
        NO(csn_parse_size, bad[i]);
    NO(csn_parse_size, NULL);
}

static void thousandths(void **state)
{
    (void)state;
    OK(csn_parse_milli, "2", 2000);
    OK(csn_parse_milli, "0.25", 250);
    OK(csn_parse_milli, "0.10000000000000001", 100);
    OK(csn_parse_milli, "1.9996", 2000);
    static const char *const bad[] = {"", ".5", "1.", "1.x", "-1", "1e3", "4294967296", NULL};
    for (size_t i = 0; bad[i]; i++)
        NO(csn_parse_milli, bad[i]);
}

static void sizes_are_told_to_people(void **state)
{
    char buf[CSN_SIZE_TEXT];

    (void)state;
    assert_string_equal(csn_size_text(0, buf), "0 bytes");
    assert_string_equal(csn_size_text(1023, buf), "1023 bytes");
    assert_string_equal(csn_size_text(1536, buf), "1.5 KiB");
    assert_string_equal(csn_size_text(64u << 20, buf), "64 MiB");
    assert_string_equal(csn_size_text((64u << 20) - 4096, buf), "63.9 MiB");
    assert_string_equal(csn_size_text(UINT64_MAX, buf), "15.9 EiB");
}

static void numbers_are_digits_in_range(void **state)
{
    (void)state;
    OK(csn_parse_u64, "0", 0);
    OK(csn_parse_u64, "007", 7);
    OK(csn_parse_u64, "18446744073709551615", UINT64_MAX);
    static const char *const bad[] = {"",
                                      "-1",
                                      "+1",
                                      " 1",
                                      "1 ",
                                      "0x1",
                                      "1e3",
                                      "18446744073709551616",
                                      "99999999999999999999",
                                      NULL};
    for (size_t i = 0; bad[i]; i++)
        NO(csn_parse_u64, bad[i]);
    NO(csn_parse_u64, NULL);
}

static void signals_have_names_both_ways(void **state)
{
    (void)state;
    for (int i = 1; i <= 64; i++) {
        const char *name = csn_signal_name(i);
        if (i == 32 || i == 33) {
            assert_null(name);
            continue;
        }
        assert_non_null(name);
        assert_int_equal(csn_signal_number(name), i);
        assert_int_equal(csn_signal_number(name + 3), i);
    }
#ifdef __GLIBC__
    for (int i = 1; i < 32; i++)
        if (sigabbrev_np(i) && i != SIGIO)
            assert_string_equal(csn_signal_name(i) + 3, sigabbrev_np(i));
#endif
    assert_int_equal(csn_signal_number("15"), SIGTERM);
    assert_int_equal(csn_signal_number("term"), SIGTERM);
    assert_string_equal(csn_signal_name(64), "SIGRTMAX");
    assert_string_equal(csn_signal_name(63), "SIGRTMIN+29");
    static const char *const bad[] = {"",    "0",      "65",          "-9",
                                      "SIG", "SIGFOO", "99999999999", NULL};
    for (size_t i = 0; bad[i]; i++)
        assert_int_equal(csn_signal_number(bad[i]), 0);
    assert_int_equal(csn_signal_number(NULL), 0);
    assert_null(csn_signal_name(0));
    assert_null(csn_signal_name(-1));
    assert_null(csn_signal_name(65));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists_grow_and_are_searched),
        cmocka_unit_test(no_list_is_an_empty_list),
        cmocka_unit_test(prefix_is_the_whole_prefix),
        cmocka_unit_test(durations_have_units_and_limits),
        cmocka_unit_test(sizes_have_units_and_limits),
        cmocka_unit_test(thousandths),
        cmocka_unit_test(sizes_are_told_to_people),
        cmocka_unit_test(numbers_are_digits_in_range),
        cmocka_unit_test(signals_have_names_both_ways),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
