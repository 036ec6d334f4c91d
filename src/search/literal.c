/* literal.c: finds strings by comparing two of their bytes at 16 or 32 places at once.
 *
 * The two bytes are the ones that are rarest in source text, so that few places remain, and
 * only those are compared in full. Text and strings are untrusted: a string whose bytes fill
 * the text costs one comparison per place, O(text x string) with a string of at most 255 bytes.
 * Invariant: no load reaches outside of [text, text + len). */
#include "search/literal.h"

#include <string.h>

#ifdef __x86_64__
#include <immintrin.h>
#endif

/* Bytes of source text, the most frequent first; all others are rarer. */
static const char common[] = " etinsaorl\nc_dpumhf0,EgST.A/-IbyNC\"1)(LRO*=2:P>\tv'<wxkDFMU#;"
                             "G3B864\\59H{}7[]K$VYWXjz`q~&@|+!%QJZ?";

static bool is_letter(unsigned char c)
{
    return (c | 0x20) >= 'a' && (c | 0x20) <= 'z';
}

static unsigned char lower(unsigned char c)
{
    return c >= 'A' && c <= 'Z' ? c | 0x20 : c;
}

/* Higher is rarer. */
static unsigned rarity(unsigned char c)
{
    const char *at = c ? strchr(common, c) : NULL;

    return at ? (unsigned)(at - common) : sizeof(common);
}

void csn_literal_init(csn_literal *l, const char *bytes, size_t len, bool nocase)
{
    *l = (csn_literal){.len = (unsigned char)len, .nocase = nocase};
    for (size_t i = 0; i < l->len; i++)
        l->bytes[i] = nocase ? lower((unsigned char)bytes[i]) : (unsigned char)bytes[i];
    for (unsigned char i = 1; i < l->len; i++)
        if (rarity(l->bytes[i]) > rarity(l->bytes[l->rare[0]]))
            l->rare[0] = i;
    l->rare[1] = l->rare[0] == 0 && len > 1 ? 1 : 0;
    for (unsigned char i = 0; i < l->len; i++)
        if (i != l->rare[0] && rarity(l->bytes[i]) > rarity(l->bytes[l->rare[1]]))
            l->rare[1] = i;
    for (int k = 0; k < 2; k++)
        l->folded[k] = nocase && is_letter(l->bytes[l->rare[k]]) ? 0x20 : 0;
}

static bool is_here(const csn_literal *l, const char *p)
{
    if (!l->nocase)
        return memcmp(p, l->bytes, l->len) == 0;
    for (size_t i = 0; i < l->len; i++)
        if (lower((unsigned char)p[i]) != l->bytes[i])
            return false;
    return true;
}

/* The places from `at` to `last`, one by one. */
static const char *find_slowly(const csn_literal *l, const char *at, const char *last)
{
    unsigned char want = l->bytes[l->rare[0]], folded = l->folded[0];

    for (; at <= last; at++) {
        if (!folded) {
            at = memchr(at + l->rare[0], want, (size_t)(last - at) + 1);
            if (!at)
                return NULL;
            at -= l->rare[0];
        }
        if (((unsigned char)at[l->rare[0]] | folded) == want && is_here(l, at))
            return at;
    }
    return NULL;
}

#ifdef __x86_64__

/* The first of the places in `mask`, counted from `at`, that holds the string. */
static const char *check_places(const csn_literal *l, const char *at, unsigned mask)
{
    for (; mask; mask &= mask - 1) {
        const char *p = at + __builtin_ctz(mask);
        if (is_here(l, p))
            return p;
    }
    return NULL;
}

/* A letter is compared in lower case: or-ing 0x20 maps only its upper case and itself to it. */
static const char *find_sse2(const csn_literal *l, const char *at, const char *last)
{
    const __m128i b0 = _mm_set1_epi8((char)l->bytes[l->rare[0]]);
    const __m128i b1 = _mm_set1_epi8((char)l->bytes[l->rare[1]]);
    const __m128i f0 = _mm_set1_epi8((char)l->folded[0]);
    const __m128i f1 = _mm_set1_epi8((char)l->folded[1]);

    for (; last - at >= 15; at += 16) {
        __m128i t0 = _mm_loadu_si128((const void *)(at + l->rare[0]));
        __m128i t1 = _mm_loadu_si128((const void *)(at + l->rare[1]));
        __m128i hit = _mm_and_si128(_mm_cmpeq_epi8(_mm_or_si128(t0, f0), b0),
                                    _mm_cmpeq_epi8(_mm_or_si128(t1, f1), b1));
        unsigned mask = (unsigned)_mm_movemask_epi8(hit);
        const char *p = mask ? check_places(l, at, mask) : NULL;
        if (p)
            return p;
    }
    return find_slowly(l, at, last);
}

__attribute__((target("avx2"))) static const char *find_avx2(const csn_literal *l,
                                                             const char *at, const char *last)
{
    const __m256i b0 = _mm256_set1_epi8((char)l->bytes[l->rare[0]]);
    const __m256i b1 = _mm256_set1_epi8((char)l->bytes[l->rare[1]]);
    const __m256i f0 = _mm256_set1_epi8((char)l->folded[0]);
    const __m256i f1 = _mm256_set1_epi8((char)l->folded[1]);

    for (; last - at >= 31; at += 32) {
        __m256i t0 = _mm256_loadu_si256((const void *)(at + l->rare[0]));
        __m256i t1 = _mm256_loadu_si256((const void *)(at + l->rare[1]));
        __m256i hit = _mm256_and_si256(_mm256_cmpeq_epi8(_mm256_or_si256(t0, f0), b0),
                                       _mm256_cmpeq_epi8(_mm256_or_si256(t1, f1), b1));
        unsigned mask = (unsigned)_mm256_movemask_epi8(hit);
        const char *p = mask ? check_places(l, at, mask) : NULL;
        if (p)
            return p;
    }
    return find_sse2(l, at, last);
}

static const char *find_places(const csn_literal *l, const char *at, const char *last)
{
    return __builtin_cpu_supports("avx2") ? find_avx2(l, at, last) : find_sse2(l, at, last);
}

#else
#define find_places find_slowly
#endif

const char *csn_literal_find(const csn_literal *l, const char *text, size_t len)
{
    if (len < l->len)
        return NULL;
    if (l->len == 1 && !l->folded[0])
        return memchr(text, l->bytes[0], len);
    return find_places(l, text, text + (len - l->len));
}

/* ---- counting ---- */

static uint64_t count_slowly(const char *text, size_t len)
{
    uint64_t n = 0;

    for (size_t i = 0; i < len; i++)
        n += text[i] == '\n';
    return n;
}

#ifdef __x86_64__

/* Each byte of `sum` counts at most 255 newlines before it is added up. */
__attribute__((target("avx2"))) static uint64_t count_avx2(const char *text, size_t len)
{
    const __m256i nl = _mm256_set1_epi8('\n'), zero = _mm256_setzero_si256();
    uint64_t n = 0, part[4];
    size_t i = 0;

    while (len - i >= 32) {
        __m256i sum = zero;
        for (int k = 0; k < 255 && len - i >= 32; k++, i += 32)
            sum = _mm256_sub_epi8(
                sum, _mm256_cmpeq_epi8(_mm256_loadu_si256((const void *)(text + i)), nl));
        _mm256_storeu_si256((void *)part, _mm256_sad_epu8(sum, zero));
        n += part[0] + part[1] + part[2] + part[3];
    }
    return n + count_slowly(text + i, len - i);
}

uint64_t csn_count_newlines(const char *text, size_t len)
{
    return __builtin_cpu_supports("avx2") ? count_avx2(text, len) : count_slowly(text, len);
}

#else

uint64_t csn_count_newlines(const char *text, size_t len)
{
    return count_slowly(text, len);
}

#endif

bool csn_is_ascii(const char *text, size_t len)
{
    uint64_t word[4], all = 0;
    size_t i = 0;

    for (; len - i >= sizeof(word) && !(all & 0x8080808080808080u); i += sizeof(word)) {
        memcpy(word, text + i, sizeof(word));
        all |= word[0] | word[1] | word[2] | word[3];
    }
    for (; i < len; i++)
        all |= (unsigned char)text[i];
    return !(all & 0x8080808080808080u);
}
