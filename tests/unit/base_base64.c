/* base64: RFC 4648's vectors, round trips, and what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/base64.h"
#include "base/cleanup.h"

static void published_vectors_hold(void **state)
{
    (void)state;
    static const char *const vectors[][2] = {
        {"", ""},
        {"f", "Zg=="},
        {"fo", "Zm8="},
        {"foo", "Zm9v"},
        {"foob", "Zm9vYg=="},
        {"fooba", "Zm9vYmE="},
        {"foobar", "Zm9vYmFy"},
    };

    for (size_t i = 0; i < sizeof(vectors) / sizeof(vectors[0]); i++) {
        const char *plain = vectors[i][0], *coded = vectors[i][1];
        char out[16];
        assert_int_equal(csn_base64_size(strlen(plain)), strlen(coded));
        csn_base64_encode(plain, strlen(plain), out);
        assert_string_equal(out, coded);
        assert_int_equal(csn_base64_decode(coded, strlen(coded), out), strlen(plain));
        assert_memory_equal(out, plain, strlen(plain));
    }
}

static void all_bytes_round_trip_in_exact_room(void **state)
{
    (void)state;
    for (size_t len = 0; len < 300; len++) {
        csn_autofree unsigned char *data = malloc(len + 1);
        for (size_t i = 0; i < len; i++)
            data[i] = (unsigned char)(i * 151 + len);
        size_t size = csn_base64_size(len);
        csn_autofree char *text = malloc(size + 1);
        csn_base64_encode(data, len, text);
        assert_int_equal(strlen(text), size);
        csn_autofree unsigned char *back = malloc(3 * (size / 4) + 3);
        assert_int_equal(csn_base64_decode(text, size, back), len);
        assert_int_equal(memcmp(back, data, len), 0);
    }
}

static void white_space_is_skipped(void **state)
{
    (void)state;
    char out[16];

    assert_int_equal(csn_base64_decode(" Zm9v\r\nYm\tFy \n", 14, out), 6);
    assert_memory_equal(out, "foobar", 6);
    assert_int_equal(csn_base64_decode("Z g = =\n", 8, out), 1);
    assert_int_equal(csn_base64_decode(" \n", 2, out), 0);
}

static void what_is_not_base64_is_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {"Z",        "Zg",       "Zg=",        "Zm9",   "=",
                                      "====",     "Z===",     "Zg===",      "Zm8==", "Zh==",
                                      "Zm9=",     "Zg==Zg==", "Zg=a",       "Zm9v=", "Zm9v!mFy",
                                      "Zm9v-mFy", "Zm9v_mFy", "Zm\xc3\xa9", NULL};
    char out[32];

    for (size_t i = 0; bad[i]; i++)
        if (csn_base64_decode(bad[i], strlen(bad[i]), out) != -1)
            fail_msg("accepted '%s'", bad[i]);
    assert_int_equal(csn_base64_decode("Zm\0v", 4, out), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(published_vectors_hold),
        cmocka_unit_test(all_bytes_round_trip_in_exact_room),
        cmocka_unit_test(white_space_is_skipped),
        cmocka_unit_test(what_is_not_base64_is_refused),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
