/* visible.c: a visible form for characters that must not reach a terminal.
 *
 * An attacker controls every byte. Invariants: what is kept is valid UTF-8 without control,
 * direction and invisible characters; the forms are ASCII. Joiners (U+200C, U+200D) and
 * variation selectors are kept, because scripts and emoji need them. */
#include "base/visible.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/utf8.h"

typedef struct range {
    uint32_t first, last;
} range;

/* In order. */
static const range hidden[] = {
    {0x00ad, 0x00ad},   /* soft hyphen */
    {0x061c, 0x061c},   /* Arabic letter mark */
    {0x180e, 0x180e},   /* Mongolian vowel separator */
    {0x200b, 0x200b},   /* zero width space */
    {0x200e, 0x200f},   /* direction marks */
    {0x2028, 0x202e},   /* line and paragraph separator, embeddings and overrides */
    {0x2060, 0x206f},   /* word joiner, invisible operators, isolates, deprecated formats */
    {0xfeff, 0xfeff},   /* byte order mark */
    {0xfff9, 0xfffb},   /* interlinear annotation */
    {0x1d173, 0x1d17a}, /* musical formats */
    {0xe0000, 0xe0fff}, /* tags, and the selectors behind them */
};

static uint32_t code_point(const unsigned char *s, size_t n)
{
    static const unsigned char lead[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
    uint32_t c = s[0] & lead[n];

    for (size_t i = 1; i < n; i++)
        c = c << 6 | (s[i] & 0x3fu);
    return c;
}

static bool is_hidden(uint32_t c)
{
    for (size_t i = 0; i < sizeof(hidden) / sizeof(hidden[0]) && c >= hidden[i].first; i++)
        if (c <= hidden[i].last)
            return true;
    return false;
}

static bool is_kept_control(const unsigned char *s, size_t len, csn_visible_kind kind)
{
    if (*s == '\t')
        return kind == CSN_VISIBLE_TEXT || kind == CSN_VISIBLE_LINES;
    if (*s == '\n')
        return kind == CSN_VISIBLE_LINES || kind == CSN_VISIBLE_JSON;
    return *s == '\r' && kind == CSN_VISIBLE_LINES && len > 1 && s[1] == '\n';
}

static void json_form(uint32_t c, char ret[CSN_VISIBLE_SIZE])
{
    if (c < 0x10000)
        snprintf(ret, CSN_VISIBLE_SIZE, "\\u%04x", c);
    else
        snprintf(ret, CSN_VISIBLE_SIZE, "\\u%04x\\u%04x", 0xd800 + ((c - 0x10000) >> 10),
                 0xdc00 + ((c - 0x10000) & 0x3ff));
}

size_t csn_visible_next(const unsigned char *s, size_t len, csn_visible_kind kind,
                        char ret[CSN_VISIBLE_SIZE])
{
    size_t n = csn_utf8_char(s, len);
    uint32_t c = n > 0 ? code_point(s, n) : *s;
    bool control = c < 0x20 || (c >= 0x7f && c < 0xa0);

    ret[0] = '\0';
    if (n > 0 && (control ? is_kept_control(s, len, kind) : !is_hidden(c)))
        return n;
    if (kind == CSN_VISIBLE_JSON)
        json_form(n > 0 ? c : 0xfffd, ret);
    else if (n == 2 && control)
        snprintf(ret, CSN_VISIBLE_SIZE, "\\x%02x\\x%02x", s[0], s[1]);
    else if (n == 0 || control)
        snprintf(ret, CSN_VISIBLE_SIZE, "\\x%02x", *s);
    else
        snprintf(ret, CSN_VISIBLE_SIZE, "<U+%04X>", c);
    return n > 0 ? n : 1;
}

size_t csn_visible_tail(const char *s, size_t len)
{
    return len > 0 && s[len - 1] == '\r' ? 1 : csn_utf8_cut_tail(s, len);
}
