/* base64.c: base64 for bytes in JSON (RFC 4648, section 4).
 *
 * Decoding is strict, so that each byte string has one encoding: padding is required and last,
 * and unused bits must be zero. White space between symbols is skipped, because base64(1) wraps
 * lines. */
#include "base/base64.h"

#include <stdint.h>

static const char symbols[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/* Cannot wrap for a len that fits in memory. */
size_t csn_base64_size(size_t len)
{
    return len / 3 * 4 + (len % 3 ? 4 : 0);
}

void csn_base64_encode(const void *data, size_t len, char *out)
{
    const unsigned char *p = data;

    /* three bytes are four symbols */
    for (; len >= 3; len -= 3, p += 3) {
        uint32_t v = (uint32_t)p[0] << 16 | (uint32_t)p[1] << 8 | p[2];
        *out++ = symbols[v >> 18];
        *out++ = symbols[v >> 12 & 63];
        *out++ = symbols[v >> 6 & 63];
        *out++ = symbols[v & 63];
    }
    if (len > 0) {
        uint32_t v = (uint32_t)p[0] << 16 | (len > 1 ? (uint32_t)p[1] << 8 : 0);
        *out++ = symbols[v >> 18];
        *out++ = symbols[v >> 12 & 63];
        *out++ = len > 1 ? symbols[v >> 6 & 63] : '=';
        *out++ = '=';
    }
    *out = '\0';
}

static int value_of(char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

long csn_base64_decode(const char *s, size_t len, void *out)
{
    unsigned char *start = out, *p = out;
    uint32_t bits = 0;
    unsigned have = 0, pad = 0; /* symbols and '=' of the current four */

    for (size_t i = 0; i < len; i++) {
        char c = s[i];
        if (c == '\n' || c == '\r' || c == ' ' || c == '\t')
            continue;
        if (c == '=') {
            if (have < 2 || have + ++pad > 4)
                return -1;
            continue;
        }
        int v = value_of(c);
        if (v < 0 || pad > 0)
            return -1;
        bits = bits << 6 | (uint32_t)v;
        if (++have == 4) {
            *p++ = (unsigned char)(bits >> 16);
            *p++ = (unsigned char)(bits >> 8);
            *p++ = (unsigned char)bits;
            bits = have = 0;
        }
    }
    /* One or two bytes are left over: 2 symbols and '==', or 3 and '='. The bits of the last
     * symbol that belong to no byte must be zero. */
    if (have == 0)
        return p - start;
    if (have + pad != 4 || (bits & (have == 2 ? 0xfu : 0x3u)))
        return -1;
    *p++ = (unsigned char)(bits >> (have == 2 ? 4 : 10));
    if (have == 3)
        *p++ = (unsigned char)(bits >> 2);
    return p - start;
}
