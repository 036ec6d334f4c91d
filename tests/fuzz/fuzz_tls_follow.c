/* fuzz_tls_follow.c: both directions of a TLS handshake behind its first ClientHello.
 *
 * The input is a list of pieces: one byte for the side (even: the client) and one for the
 * length, then so many bytes. Beside not crashing: cutting the pieces into bytes makes no
 * difference to which ClientHellos are found and how it ends; nothing is passed on that was not
 * given, and nothing of a ClientHello before its end. */
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "gateway/tls.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define HELD_MAX 65536u

static void must(bool ok)
{
    if (!ok)
        __builtin_trap();
}

typedef struct course {
    gw_tls_follow f;
    enum gw_tls_follow_result last;
    size_t hellos, passed, used, have;
    uint8_t held[HELD_MAX];
} course;

static void client_says(course *c)
{
    while (c->used < c->have && c->last == GW_TLS_FOLLOW_PASS) {
        size_t pass = 0;
        enum gw_tls_follow_result r =
            gw_tls_follow_client(&c->f, c->held + c->used, c->have - c->used, &pass);
        must(pass <= c->have - c->used);
        must((r == GW_TLS_FOLLOW_BAD) == (c->f.why != NULL));
        c->used += pass;
        c->passed += pass;
        c->hellos += r == GW_TLS_FOLLOW_HELLO;
        if (r == GW_TLS_FOLLOW_HELLO)
            must(c->f.hello.result == GW_TLS_HELLO);
        else if (r != GW_TLS_FOLLOW_PASS)
            c->last = r;
        else if (pass == 0)
            break;
    }
}

static void converse(course *c, const uint8_t *data, size_t size, bool bytewise)
{
    memset(c, 0, sizeof(*c));
    c->last = GW_TLS_FOLLOW_PASS;
    gw_tls_follow_begin(&c->f);
    while (size > 2 && c->last == GW_TLS_FOLLOW_PASS) {
        size_t len = data[1] < size - 2 ? data[1] : size - 2;
        bool client = data[0] % 2 == 0;
        data += 2;
        size -= 2 + len;
        for (size_t n; len > 0; data += n, len -= n) {
            n = bytewise ? 1 : len;
            if (!client) {
                if (gw_tls_follow_wants_server(&c->f))
                    gw_tls_follow_server(&c->f, data, n);
            } else if (n <= HELD_MAX - c->have) {
                memcpy(c->held + c->have, data, n);
                c->have += n;
                client_says(c);
            }
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static course whole, bytes;

    if (size > HELD_MAX)
        return 0;
    converse(&whole, data, size, false);
    converse(&bytes, data, size, true);
    must(whole.last == bytes.last && whole.hellos == bytes.hellos);
    if (whole.last == GW_TLS_FOLLOW_PASS)
        must(whole.passed == bytes.passed);
    else if (whole.last == GW_TLS_FOLLOW_BAD)
        must(strcmp(whole.f.why, bytes.f.why) == 0);
    return 0;
}
