/* UTF-8: every code point and every sequence of up to three bytes, against an encoder. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/utf8.h"

static size_t encode(uint32_t c, unsigned char *out)
{
    if (c < 0x80) {
        out[0] = (unsigned char)c;
        return 1;
    }
    size_t n = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    for (size_t i = n - 1; i > 0; i--, c >>= 6)
        out[i] = (unsigned char)(0x80 | (c & 0x3f));
    out[0] = (unsigned char)((0xf00 >> n) | c);
    return n;
}

static void every_code_point_is_accepted_whole_and_known_when_cut(void **state)
{
    (void)state;
    unsigned char s[5] = {'x'};

    for (uint32_t c = 0; c <= 0x10ffff; c++) {
        if (c >= 0xd800 && c < 0xe000)
            continue;
        size_t n = encode(c, s + 1);
        if (csn_utf8_char(s + 1, n) != n || csn_utf8_cut_tail((char *)s, n + 1) != 0)
            fail_msg("U+%04X", c);
        for (size_t cut = 1; cut < n; cut++)
            if (csn_utf8_char(s + 1, cut) != 0 || csn_utf8_cut_tail((char *)s, cut + 1) != cut)
                fail_msg("U+%04X cut to %zu", c, cut);
    }
}

static void nothing_else_of_up_to_three_bytes_is_accepted(void **state)
{
    (void)state;
    csn_autofree unsigned char *known = calloc(1, 1u << 24); /* length of what starts there */
    unsigned char s[4];

    for (uint32_t c = 0; c < 0x10000; c++) {
        if (c >= 0xd800 && c < 0xe000)
            continue;
        size_t n = encode(c, s);
        uint32_t at =
            (uint32_t)s[0] << 16 | (n > 1 ? (uint32_t)s[1] << 8 : 0) | (n > 2 ? s[2] : 0);
        uint32_t span = n == 1 ? 1u << 16 : n == 2 ? 1u << 8 : 1;
        memset(known + at, (int)n, span);
    }
    for (uint32_t v = 0; v < 1u << 24; v++) {
        s[0] = (unsigned char)(v >> 16);
        s[1] = (unsigned char)(v >> 8);
        s[2] = (unsigned char)v;
        if (csn_utf8_char(s, 3) != known[v])
            fail_msg("%06x gave %zu, not %u", v, csn_utf8_char(s, 3), known[v]);
    }
}

static void four_byte_edges_are_exact(void **state)
{
    (void)state;
    assert_int_equal(csn_utf8_char((const unsigned char *)"\xf0\x8f\xbf\xbf", 4), 0);
    assert_int_equal(csn_utf8_char((const unsigned char *)"\xf0\x90\x80\x80", 4), 4);
    assert_int_equal(csn_utf8_char((const unsigned char *)"\xf4\x8f\xbf\xbf", 4), 4);
    assert_int_equal(csn_utf8_char((const unsigned char *)"\xf4\x90\x80\x80", 4), 0);
    assert_int_equal(csn_utf8_char((const unsigned char *)"\xf5\x80\x80\x80", 4), 0);
    assert_int_equal(csn_utf8_char((const unsigned char *)"\xf1\x80\x80\x41", 4), 0);
    assert_int_equal(csn_utf8_char((const unsigned char *)"", 0), 0);
}

static void bad_bytes_are_found_wherever_they_are(void **state)
{
    (void)state;
    char s[41];

    for (size_t at = 0; at < 40; at++) {
        memset(s, 'a', 40);
        memcpy(s + 20, "\xe2\x82\xac", 3);
        assert_true(csn_utf8_valid(s, 40));
        s[at] = (char)0xff;
        assert_false(csn_utf8_valid(s, 40));
    }
    assert_true(csn_utf8_valid("", 0));
    assert_false(csn_utf8_valid("abc\xe2\x82", 5));
}

static void bytes_that_can_never_become_a_character_are_not_a_cut_tail(void **state)
{
    (void)state;
    assert_int_equal(csn_utf8_cut_tail("a\xe0\x80", 3), 0);
    assert_int_equal(csn_utf8_cut_tail("a\xed\xa0", 3), 0);
    assert_int_equal(csn_utf8_cut_tail("a\xf4\x90\x80", 4), 0);
    assert_int_equal(csn_utf8_cut_tail("a\xff", 2), 0);
    assert_int_equal(csn_utf8_cut_tail("a\x80\x80\x80\x80", 5), 0);
    assert_int_equal(csn_utf8_cut_tail("\x80", 1), 0);
    assert_int_equal(csn_utf8_cut_tail("", 0), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_code_point_is_accepted_whole_and_known_when_cut),
        cmocka_unit_test(nothing_else_of_up_to_three_bytes_is_accepted),
        cmocka_unit_test(four_byte_edges_are_exact),
        cmocka_unit_test(bad_bytes_are_found_wherever_they_are),
        cmocka_unit_test(bytes_that_can_never_become_a_character_are_not_a_cut_tail),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
