/* utf8.c: validate UTF-8 (RFC 3629).
 *
 * One table of lead bytes has the length of the character and the range of its second byte; the
 * range excludes overlong forms, surrogates and everything above U+10FFFF. */
#include "base/utf8.h"

#include <stdint.h>
#include <string.h>

/* Length of the character a lead byte opens (0: none), and the range of its second byte. */
static size_t lead(unsigned char c, unsigned char *lo, unsigned char *hi)
{
    *lo = c == 0xe0 ? 0xa0 : c == 0xf0 ? 0x90 : 0x80;
    *hi = c == 0xed ? 0x9f : c == 0xf4 ? 0x8f : 0xbf;
    if (c < 0x80)
        return 1;
    if (c < 0xc2 || c > 0xf4)
        return 0;
    return c < 0xe0 ? 2 : c < 0xf0 ? 3 : 4;
}

/* How many of the first `have` bytes at s can belong to one character. */
static size_t good_bytes(const unsigned char *s, size_t have, unsigned char lo,
                         unsigned char hi)
{
    size_t i = 1;

    if (have > 1 && s[1] >= lo && s[1] <= hi)
        for (i = 2; i < have && (s[i] & 0xc0) == 0x80; i++)
            ;
    return i;
}

size_t csn_utf8_char(const unsigned char *s, size_t len)
{
    unsigned char lo, hi;
    size_t need = len > 0 ? lead(s[0], &lo, &hi) : 0;

    if (need <= 1)
        return need;
    return need <= len && good_bytes(s, need, lo, hi) == need ? need : 0;
}

bool csn_utf8_valid(const char *s, size_t len)
{
    const unsigned char *p = (const unsigned char *)s, *end = p + len;

    while (p < end) {
        uint64_t word;
        if (end - p >= 8) { /* most text is ASCII: eight bytes at a time */
            memcpy(&word, p, 8);
            if (!(word & 0x8080808080808080u)) {
                p += 8;
                continue;
            }
        }
        size_t n = csn_utf8_char(p, (size_t)(end - p));
        if (n == 0)
            return false;
        p += n;
    }
    return true;
}

size_t csn_utf8_cut_tail(const char *s, size_t len)
{
    const unsigned char *end = (const unsigned char *)s + len;

    for (size_t back = 1; back <= 3 && back <= len; back++) {
        unsigned char lo, hi;
        if ((end[-(ptrdiff_t)back] & 0xc0) == 0x80)
            continue;
        size_t need = lead(end[-(ptrdiff_t)back], &lo, &hi);
        bool cut = need > back && good_bytes(end - back, back, lo, hi) == back;
        return cut ? back : 0;
    }
    return 0;
}
