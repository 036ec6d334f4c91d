/* The JSON writer, with jansson as its oracle. */
#include <errno.h>
#include <jansson.h>
#include <locale.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/base64.h"
#include "base/json_write.h"
#include "base/utf8.h"

#define ROOM (1u << 20)

static uint64_t seed = 0x9e3779b97f4a7c15u;

static uint32_t rnd(uint32_t below)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(seed >> 33) % below;
}

/* What the text must become: each bad byte one U+FFFD. */
static void repair(const char *s, size_t len, csn_buf *out)
{
    while (len > 0) {
        size_t n = csn_utf8_char((const unsigned char *)s, len);
        assert_int_equal(csn_buf_append(out, n ? s : "\xef\xbf\xbd", n ? n : 3), 0);
        n = n ? n : 1;
        s += n;
        len -= n;
    }
}

static void check_string(const char *s, size_t len)
{
    csn_autobuf out, want;
    csn_buf_init(&out, ROOM);
    csn_buf_init(&want, ROOM);
    csn_json j;

    repair(s, len, &want);
    csn_json_begin(&j, &out);
    csn_json_strn(&j, s, len);
    assert_int_equal(csn_json_end(&j), 0);
    for (size_t i = 0; i < out.len; i++)
        assert_true((unsigned char)out.data[i] >= ' ');
    json_t *v = json_loadb(out.data, out.len, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
    if (!v || json_string_length(v) != want.len ||
        (want.len > 0 && memcmp(json_string_value(v), want.data, want.len) != 0))
        fail_msg("%zu bytes came back wrong: %.200s", len, out.data);
    json_decref(v);
}

static void random_strings_come_back_from_jansson(void **state)
{
    (void)state;
    static const char *const pieces[] = {"\x1b[32m",
                                         "ok",
                                         "\"",
                                         "\\",
                                         "\n",
                                         "\t",
                                         "\r",
                                         "\b",
                                         "\f",
                                         "\x7f",
                                         "/",
                                         "\xc3\xa9",
                                         "\xe2\x9c\x93",
                                         "\xf0\x9f\x98\x80",
                                         "plain text of a log line",
                                         "\xff",
                                         "\xe2\x82",
                                         "\xed\xa0\x80",
                                         "\xc0\x80",
                                         "\xf4\x90\x80\x80",
                                         "\x01",
                                         " "};
    char s[6000];

    for (int round = 0; round < 20000; round++) {
        size_t len = 0, want = round % 100 == 0 ? 5900 : rnd(64);
        int kind = round % 3; /* all bytes, pieces, mostly clean */
        while (len < want) {
            const char *piece = pieces[rnd(sizeof(pieces) / sizeof(pieces[0]))];
            if (kind == 1) {
                memcpy(s + len, piece, strlen(piece));
                len += strlen(piece);
            } else {
                s[len++] = (char)(kind == 0 || rnd(50) == 0 ? rnd(256) : 'a' + rnd(26));
            }
        }
        check_string(s, len);
    }
}

static void every_byte_at_every_offset_of_a_word_is_right(void **state)
{
    (void)state;
    char s[20];

    for (int c = 0; c < 256; c++)
        for (size_t at = 0; at < sizeof(s); at++) {
            memset(s, 'a', sizeof(s));
            s[at] = (char)c;
            check_string(s, sizeof(s));
        }
}

static void block_edges_are_right(void **state)
{
    (void)state;
    char s[2100];

    for (size_t at = 2030; at < 2060; at++) {
        memset(s, 'a', sizeof(s));
        memcpy(s + at, "\x1b\"\xe2\x9c\x93\x01\x02\xf0\x9f\x98\x80\xff\x03", 14);
        check_string(s, sizeof(s));
        check_string(s, at + 4);
    }
}

/* Runs the body and compares all that was written. */
#define WRITES(expected, body)                                                                 \
    do {                                                                                       \
        csn_autobuf out_;                                                                      \
        csn_buf_init(&out_, ROOM);                                                             \
        csn_json w_, *j = &w_;                                                                 \
        csn_json_begin(j, &out_);                                                              \
        body;                                                                                  \
        assert_int_equal(csn_json_end(j), 0);                                                  \
        assert_string_equal(out_.data, expected);                                              \
    } while (0)

static void nesting_and_commas_are_kept(void **state)
{
    (void)state;
    WRITES("{}", csn_json_object(j); csn_json_object_end(j));
    WRITES("[[],[{}],null]", csn_json_array(j); csn_json_array(j); csn_json_array_end(j);
           csn_json_array(j); csn_json_object(j); csn_json_object_end(j); csn_json_array_end(j);
           csn_json_null(j); csn_json_array_end(j));
    WRITES("{\"a\":\"x\",\"b\":-1,\"c\":[1,true,{\"d\":null}],\"e\":false,\"f\":"
           "18446744073709551615}",
           csn_json_object(j);
           csn_json_kstr(j, "a", "x"); csn_json_kint(j, "b", -1); csn_json_key(j, "c");
           csn_json_array(j); csn_json_uint(j, 1); csn_json_bool(j, true); csn_json_object(j);
           csn_json_kstr(j, "d", NULL); csn_json_object_end(j); csn_json_array_end(j);
           csn_json_kbool(j, "e", false); csn_json_kuint(j, "f", UINT64_MAX);
           csn_json_object_end(j));
    WRITES("{\"k\\n\":{\"raw\":1},\"l\":2}", csn_json_object(j); csn_json_key(j, "k\n");
           csn_json_raw(j, "{\"raw\":1}", 9); csn_json_kint(j, "l", 2); csn_json_object_end(j));
}

static void numbers_are_exact_and_plain(void **state)
{
    (void)state;
    WRITES("-9223372036854775808", csn_json_int(j, INT64_MIN));
    WRITES("9223372036854775807", csn_json_int(j, INT64_MAX));
    WRITES("0", csn_json_uint(j, 0));
    WRITES("[0,0,1.5,-1.5,0.001,0.05,12.345,0,1,100]", csn_json_array(j); csn_json_double(j, 0);
           csn_json_double(j, -0.0); csn_json_double(j, 1.5); csn_json_double(j, -1.5);
           csn_json_double(j, 0.001); csn_json_double(j, 0.05); csn_json_double(j, 12.3451);
           csn_json_double(j, -0.0001); csn_json_double(j, 0.9996); csn_json_double(j, 100);
           csn_json_array_end(j));
    WRITES("[null,null,null]", csn_json_array(j); csn_json_double(j, NAN);
           csn_json_double(j, INFINITY); csn_json_double(j, -INFINITY); csn_json_array_end(j));
    WRITES("-9000000000000", csn_json_double(j, -9e12));
    WRITES("[0,-1,1]", csn_json_array(j); csn_json_int(j, 0); csn_json_int(j, -1);
           csn_json_int(j, 1); csn_json_array_end(j));
    csn_autobuf out;
    csn_buf_init(&out, ROOM);
    csn_json j;
    csn_json_begin(&j, &out);
    csn_json_double(&j, 1.7976931348623157e308);
    assert_int_equal(csn_json_end(&j), 0);
    assert_int_equal(out.len, 309);
}

static void thousandths_are_rounded_to_the_nearest(void **state)
{
    (void)state;
    WRITES("0", csn_json_double(j, 0.00045));
    WRITES("0.001", csn_json_double(j, 0.00055));
    WRITES("-0.001", csn_json_double(j, -0.001));
    WRITES("0.999", csn_json_double(j, 0.999));
    WRITES("1999.999", csn_json_double(j, 1999.999));
    WRITES("-7000.07", csn_json_double(j, -7000.07));
}

static void base64_fits_between_its_quotes(void **state)
{
    (void)state;
    WRITES("[\"\",\"Zg==\",\"Zm9vYmFy\"]", csn_json_array(j); csn_json_base64(j, "", 0);
           csn_json_base64(j, "f", 1); csn_json_base64(j, "foobar", 6); csn_json_array_end(j));
}

static void base64_obeys_the_ceiling(void **state)
{
    static const char bytes[300000];

    (void)state;
    for (size_t spare = 0; spare < 2; spare++) {
        csn_autobuf out;
        csn_json j;
        csn_buf_init(&out, 400002 - spare);
        csn_json_begin(&j, &out);
        csn_json_base64(&j, bytes, sizeof(bytes));
        assert_int_equal(csn_json_end(&j), spare ? ENOSPC : 0);
        assert_true(out.len <= out.max);
        if (!spare)
            assert_int_equal(strlen(out.data), 400002);
    }
}

static void errors_stick_and_misuse_is_one(void **state)
{
    (void)state;
    csn_autobuf out;
    csn_buf_init(&out, 12);
    csn_json j;

    csn_json_begin(&j, &out);
    csn_json_array(&j);
    csn_json_str(&j, "0123456789");
    csn_json_array_end(&j);
    assert_int_equal(csn_json_end(&j), ENOSPC);
    assert_true(out.len <= 12);

    csn_json_begin(&j, &out);
    csn_json_array(&j);
    assert_int_equal(csn_json_end(&j), EINVAL);
    csn_json_begin(&j, &out);
    csn_json_object_end(&j);
    assert_int_equal(csn_json_end(&j), EINVAL);
    csn_json_begin(&j, &out);
    csn_json_key(&j, "k");
    assert_int_equal(csn_json_end(&j), EINVAL);
}

static void ceiling_is_exact_for_escaped_text(void **state)
{
    (void)state;
    char s[5000];
    memset(s, 0x1b, sizeof(s));
    csn_autobuf exact, tight;
    csn_buf_init(&exact, 6 * sizeof(s) + 2);
    csn_buf_init(&tight, 6 * sizeof(s) + 1);
    csn_json j;

    csn_json_begin(&j, &exact);
    csn_json_strn(&j, s, sizeof(s));
    assert_int_equal(csn_json_end(&j), 0);
    assert_int_equal(exact.len, exact.max);
    csn_json_begin(&j, &tight);
    csn_json_strn(&j, s, sizeof(s));
    assert_int_equal(csn_json_end(&j), ENOSPC);
}

static void depth_is_limited_to_32(void **state)
{
    (void)state;
    for (int depth = 32; depth <= 33; depth++) {
        csn_autobuf out;
        csn_buf_init(&out, ROOM);
        csn_json j;
        csn_json_begin(&j, &out);
        for (int i = 0; i < depth; i++)
            csn_json_array(&j);
        csn_json_int(&j, 1);
        csn_json_int(&j, 2);
        for (int i = 0; i < depth; i++)
            csn_json_array_end(&j);
        assert_int_equal(csn_json_end(&j), depth == 32 ? 0 : EOVERFLOW);
        if (depth == 32)
            assert_memory_equal(out.data + 31, "[1,2]", 5);
    }
}

static void null_members_can_be_left_out(void **state)
{
    csn_autobuf out;
    csn_json j;

    (void)state;
    csn_buf_init(&out, 1024);
    csn_json_begin(&j, &out);
    j.omit_null = true;
    csn_json_object(&j);
    csn_json_kstr(&j, "a", NULL);
    csn_json_kstr(&j, "b", "x");
    csn_json_kstr(&j, "c", NULL);
    csn_json_key(&j, "list");
    csn_json_array(&j);
    csn_json_null(&j); /* an item is no member: it stays */
    csn_json_object(&j);
    csn_json_kstr(&j, "d", NULL);
    csn_json_object_end(&j);
    csn_json_array_end(&j);
    csn_json_kint(&j, "e", 1);
    csn_json_object_end(&j);
    assert_int_equal(csn_json_end(&j), 0);
    assert_string_equal(out.data, "{\"b\":\"x\",\"list\":[null,{}],\"e\":1}");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_strings_come_back_from_jansson),
        cmocka_unit_test(every_byte_at_every_offset_of_a_word_is_right),
        cmocka_unit_test(block_edges_are_right),
        cmocka_unit_test(nesting_and_commas_are_kept),
        cmocka_unit_test(numbers_are_exact_and_plain),
        cmocka_unit_test(thousandths_are_rounded_to_the_nearest),
        cmocka_unit_test(base64_fits_between_its_quotes),
        cmocka_unit_test(base64_obeys_the_ceiling),
        cmocka_unit_test(errors_stick_and_misuse_is_one),
        cmocka_unit_test(ceiling_is_exact_for_escaped_text),
        cmocka_unit_test(depth_is_limited_to_32),
        cmocka_unit_test(null_members_can_be_left_out),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
