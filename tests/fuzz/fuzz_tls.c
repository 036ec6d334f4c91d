/* fuzz_tls.c: the first bytes of a connection that may be TLS.
 *
 * Beside not crashing: however they are cut, the answer is the same, and it comes no earlier
 * than its last byte; a name has only the characters of names; a verdict stays. */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "gateway/tls.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool ok)
{
    if (!ok)
        __builtin_trap();
}

static bool is_name_byte(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           c == '-' || c == '_' || c == '.';
}

static void check(const gw_tls *t, enum gw_tls_result r)
{
    must(r == t->result);
    must((r == GW_TLS_BAD) == (t->why != NULL));
    if (r != GW_TLS_HELLO)
        return;
    must(t->hello.sni_len <= GW_TLS_NAME_MAX && t->hello.sni[t->hello.sni_len] == '\0');
    must(t->hello.has_sni == (t->hello.sni_len > 0));
    for (size_t i = 0; i < t->hello.sni_len; i++)
        must(is_name_byte(t->hello.sni[i]));
}

static void same(const gw_tls *a, const gw_tls *b)
{
    must(a->result == b->result);
    must((a->why == NULL) == (b->why == NULL) && (!a->why || strcmp(a->why, b->why) == 0));
    if (a->result == GW_TLS_HELLO)
        must(a->hello.ech == b->hello.ech && strcmp(a->hello.sni, b->hello.sni) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    gw_tls whole = {0}, pieces = {0}, two = {0};
    size_t cut = size > 0 ? data[size - 1] * size / 256 : 0;

    check(&whole, gw_tls_parse(&whole, data, size));
    enum gw_tls_result r = GW_TLS_NEED_MORE;
    for (size_t i = 1; i <= size; i++) {
        enum gw_tls_result next = gw_tls_parse(&pieces, data, i);
        must(r == GW_TLS_NEED_MORE || next == r);
        r = next;
        check(&pieces, r);
    }
    (void)gw_tls_parse(&two, data, cut);
    (void)gw_tls_parse(&two, data, size);
    if (size > 0) {
        same(&whole, &pieces);
        same(&whole, &two);
    }
    return 0;
}
