/* SHA-256 against the published vectors (FIPS 180-4 examples). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/hash.h"

static void check(const char *text, const char *want)
{
    char hex[CSN_HASH_HEX];

    csn_hash_bytes(text, strlen(text), hex);
    assert_string_equal(hex, want);
}

static void published_vectors_hold(void **state)
{
    (void)state;
    check("", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    check("abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    check("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
          "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
}

static void pieces_hash_as_the_whole(void **state)
{
    (void)state;
    char hex[CSN_HASH_HEX];
    csn_hash h;
    char piece[1000];

    memset(piece, 'a', sizeof(piece));
    csn_hash_init(&h);
    csn_hash_add(&h, NULL, 0);
    for (size_t done = 0, n = 1; done < 1000000; done += n, n = n * 7 % 997 + 1) {
        if (n > 1000000 - done)
            n = 1000000 - done;
        csn_hash_add(&h, piece, n);
    }
    csn_hash_hex(&h, hex);
    assert_string_equal(hex,
                        "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(published_vectors_hold),
        cmocka_unit_test(pieces_hash_as_the_whole),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
