/* gateway_tls_follow.c: the handshake behind a ClientHello: which further one is found, and
 * what is refused.
 *
 * Each row is a conversation, told whole and byte by byte. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "gateway/tls.h"

#define BYTES(text) (text), sizeof(text) - 1
#define R4          "rrrr"
#define RANDOM      R4 R4 R4 R4 R4 R4 R4 R4
#define RETRY_RANDOM                                                                           \
    "\xcf\x21\xad\x74\xe5\x9a\x61\x11\xbe\x1d\x8c\x02\x1e\x65\xb8\x91"                         \
    "\xc2\xa2\x11\x16\x7a\xbb\x8c\x5e\x07\x9e\x09\xe2\xc8\xa8\x33\x9c"
#define REPLY(random) "\2\0\0\x28\3\3" random "\0\x13\1\0\0\0" /* 44 bytes */
#define SERVER_HELLO  "\x16\3\3\0\x2c" REPLY(RANDOM)
#define RETRY         "\x16\3\3\0\x2c" REPLY(RETRY_RANDOM)
#define CHANGE        "\x14\3\3\0\1\1"
#define ALERT         "\x15\3\3\0\2\2\x28"
#define EARLY         "\x17\3\3\0\5early"
/* The ClientHello with a name of two letters: 45 + 11 bytes. */
#define BODY(name)  "\1\0\0\x36\3\3" RANDOM "\0\0\2\x13\1\1\0\0\x0b\0\0\0\7\0\5\0\0\2" name
#define HELLO(name) "\x16\3\1\0\x3a" BODY(name)
#define CUT_HELLO(name)                                                                        \
    "\x16\3\1\0\1\1\x16\3\1\0\x39\0\0\x36\3\3" RANDOM                                          \
    "\0\0\2\x13\1\1\0\0\x0b\0\0\0\7\0\5\0\0\2" name

typedef struct step {
    char who; /* 'c', 's'; 0: the end */
    const char *bytes;
    size_t len;
} step;

/* What became of the client's bytes. */
typedef struct course {
    char names[16]; /* of the ClientHellos after the first */
    size_t passed;
    enum gw_tls_follow_result last;
    const char *why;
} course;

static void client_says(gw_tls_follow *f, const uint8_t *held, size_t len, size_t *used,
                        course *c)
{
    while (*used < len && c->last == GW_TLS_FOLLOW_PASS) {
        size_t pass = 0;
        enum gw_tls_follow_result r = gw_tls_follow_client(f, held + *used, len - *used, &pass);

        assert_true(pass <= len - *used);
        *used += pass;
        c->passed += pass;
        if (r == GW_TLS_FOLLOW_HELLO) {
            assert_true(strlen(c->names) + f->hello.hello.sni_len < sizeof(c->names));
            memcpy(c->names + strlen(c->names), f->hello.hello.sni, f->hello.hello.sni_len);
        } else if (r != GW_TLS_FOLLOW_PASS) {
            c->last = r;
        } else if (pass == 0) {
            break;
        }
    }
}

static course converse(const step *steps, bool bytewise)
{
    gw_tls_follow f = {0};
    course c = {.last = GW_TLS_FOLLOW_PASS};
    uint8_t held[1024];
    size_t have = 0, used = 0;

    assert_int_equal(gw_tls_parse(&f.hello, BYTES(HELLO("ok"))), GW_TLS_HELLO);
    assert_int_equal(f.hello.seen, sizeof(HELLO("ok")) - 1);
    gw_tls_follow_begin(&f);
    for (; steps->who && c.last == GW_TLS_FOLLOW_PASS; steps++)
        for (size_t at = 0, n; at < steps->len; at += n) {
            n = bytewise ? 1 : steps->len;
            if (steps->who == 's') {
                if (gw_tls_follow_wants_server(&f))
                    gw_tls_follow_server(&f, steps->bytes + at, n);
                continue;
            }
            memcpy(held + have, steps->bytes + at, n);
            have += n;
            client_says(&f, held, have, &used, &c);
        }
    c.why = f.why;
    return c;
}

#define C(text)                                                                                \
    {                                                                                          \
        'c', BYTES(text)                                                                       \
    }
#define S(text)                                                                                \
    {                                                                                          \
        's', BYTES(text)                                                                       \
    }

static void what_follows_a_hello_is_followed(void **state)
{
    static const struct {
        step steps[8];
        const char *names;
        enum gw_tls_follow_result last;
    } rows[] = {
        /* TLS 1.3, with and without middlebox compatibility, and with early data */
        {{S(SERVER_HELLO), C(EARLY)}, "", GW_TLS_FOLLOW_OPAQUE},
        {{S(SERVER_HELLO CHANGE), C(CHANGE EARLY)}, "", GW_TLS_FOLLOW_OPAQUE},
        {{C(CHANGE EARLY), S(SERVER_HELLO), C(EARLY)}, "", GW_TLS_FOLLOW_OPAQUE},
        {{C(CHANGE EARLY), C("\x17\3\3\0\5e"), S(SERVER_HELLO), C("arly" EARLY)},
         "",
         GW_TLS_FOLLOW_OPAQUE},
        /* TLS 1.2: a certificate and a key, then change_cipher_spec */
        {{S(SERVER_HELLO), C("\x16\3\3\0\5\x0b\0\0\2\1\x16\3\3\0\6\1\x10\0\0\1\1" CHANGE)},
         "",
         GW_TLS_FOLLOW_OPAQUE},
        {{S("\x15\3\1\0\2\1\x70" SERVER_HELLO), C(CHANGE)}, "", GW_TLS_FOLLOW_OPAQUE},
        /* HelloRetryRequest */
        {{S(RETRY), C(HELLO("ev"))}, "ev", GW_TLS_FOLLOW_PASS},
        {{S(RETRY CHANGE), C(CHANGE HELLO("ok")), S(SERVER_HELLO), C(EARLY)},
         "ok",
         GW_TLS_FOLLOW_OPAQUE},
        {{S(RETRY), C(CHANGE CUT_HELLO("ev"))}, "ev", GW_TLS_FOLLOW_PASS},
        {{C(CHANGE EARLY), S(RETRY), C(EARLY CHANGE HELLO("ev"))}, "ev", GW_TLS_FOLLOW_PASS},
        {{S("\x16\3\3\0\1\2\x16\3\3\0\x2b\0\0\x28\3\3" RETRY_RANDOM "\0\x13\1\0\0\0"),
          C(HELLO("ev"))},
         "ev",
         GW_TLS_FOLLOW_PASS},
        {{S(RETRY), C(HELLO("ok")), S(RETRY), C(HELLO("ev"))}, "okev", GW_TLS_FOLLOW_PASS},
        {{S(SERVER_HELLO), C(ALERT)}, "", GW_TLS_FOLLOW_PASS},
        {{S("HTTP/1.1 400 Bad Request\r\n"), C(ALERT)}, "", GW_TLS_FOLLOW_PASS},
        /* what is refused */
        {{C(HELLO("ev"))}, "", GW_TLS_FOLLOW_BAD},
        {{C(CHANGE EARLY HELLO("ev"))}, "", GW_TLS_FOLLOW_BAD},
        {{S(SERVER_HELLO), C(HELLO("ev"))}, "", GW_TLS_FOLLOW_BAD},
        {{S(SERVER_HELLO), C("\x16\3\3\0\5\x0b\0\0\1\1" HELLO("ev"))}, "", GW_TLS_FOLLOW_BAD},
        {{S(SERVER_HELLO), C("\x16\3\3\0\6\x0b\0\0\1\1\1")}, "", GW_TLS_FOLLOW_BAD},
        {{S(RETRY), C(HELLO("ok") HELLO("ev"))}, "ok", GW_TLS_FOLLOW_BAD},
        {{S(RETRY), C(HELLO("ok")), S(SERVER_HELLO), C(HELLO("ev"))}, "ok", GW_TLS_FOLLOW_BAD},
        {{S(RETRY), C("\x16\3\1\0\1\1" CHANGE)}, "", GW_TLS_FOLLOW_BAD}, /* interleaved */
        {{S(RETRY), C("\x16\3\1\0\1\2")}, "", GW_TLS_FOLLOW_BAD},        /* another message */
        {{S(RETRY), C("\x16\3\1\0\x3b" BODY("ok") "\1")}, "", GW_TLS_FOLLOW_BAD},
        {{C("GET / HTTP/1.1\r\n")}, "", GW_TLS_FOLLOW_BAD},
        {{C("\x15\3\1\0\x50")}, "", GW_TLS_FOLLOW_BAD}, /* an alert that could hold text */
        {{C("\x14\3\1\0\2")}, "", GW_TLS_FOLLOW_BAD},
        {{C("\x17\2\1\0\2")}, "", GW_TLS_FOLLOW_BAD},
        {{C("\x17\3\3\xff\xff")}, "", GW_TLS_FOLLOW_BAD},
        {{C("\x80\x2e\1\3\1")}, "", GW_TLS_FOLLOW_BAD},
        {{S("220 mail\r\n"), C("\x17\3\1\0\5early")}, "", GW_TLS_FOLLOW_BAD},
        {{S("220 mail\r\n"), C(HELLO("ev"))}, "", GW_TLS_FOLLOW_BAD},
        {{S("\x16\3\3\0\4\0\0\0\0"), C(HELLO("ev"))}, "", GW_TLS_FOLLOW_BAD}, /* HelloRequest */
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        for (int bytewise = 0; bytewise < 2; bytewise++) {
            course c = converse(rows[i].steps, bytewise);
            if (strcmp(c.names, rows[i].names) != 0 || c.last != rows[i].last)
                fail_msg("row %zu, %s: found '%s', ended as %d: %s", i,
                         bytewise ? "bytes" : "whole", c.names, (int)c.last,
                         c.why ? c.why : "");
            assert_int_equal(c.last == GW_TLS_FOLLOW_BAD, c.why != NULL);
        }
}

/* Nothing of a ClientHello goes on before all of it was seen. */
static void a_second_hello_is_held_until_it_is_whole(void **state)
{
    gw_tls_follow f = {0};
    size_t pass = 99;

    (void)state;
    assert_int_equal(gw_tls_parse(&f.hello, BYTES(HELLO("ok"))), GW_TLS_HELLO);
    gw_tls_follow_begin(&f);
    gw_tls_follow_server(&f, BYTES(RETRY));
    static const char flight[] = CHANGE HELLO("ev");
    assert_int_equal(gw_tls_follow_client(&f, flight, sizeof(flight) - 2, &pass),
                     GW_TLS_FOLLOW_PASS);
    assert_int_equal(pass, sizeof(CHANGE) - 1);
    assert_int_equal(gw_tls_follow_client(&f, BYTES(HELLO("ev")), &pass), GW_TLS_FOLLOW_HELLO);
    assert_string_equal(f.hello.hello.sni, "ev");
    assert_int_equal(pass, sizeof(HELLO("ev")) - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_follows_a_hello_is_followed),
        cmocka_unit_test(a_second_hello_is_held_until_it_is_whole),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
