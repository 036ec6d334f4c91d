/* sniff.c: recognise the image and document formats that a model can view.
 *
 * An attacker controls the bytes, and a false match would hide text from the model, so the
 * signatures are strict: for BMP the header is checked too, and SVG must open with <svg>. */
#include "base/sniff.h"

#include <stdint.h>
#include <string.h>
#include <strings.h>

/* A position in the first bytes of the file. */
typedef struct cursor {
    const char *p, *end;
} cursor;

static bool starts(const void *head, size_t len, const char *magic, size_t magic_len)
{
    return len >= magic_len && memcmp(head, magic, magic_len) == 0;
}

#define STARTS(head, len, magic) starts(head, len, magic, sizeof(magic) - 1)

static bool is_bmp(const unsigned char *p, size_t len)
{
    /* "BM", size, four reserved zero bytes, offset of the pixels, size of the next header */
    if (len < 18 || !STARTS(p, len, "BM") || memcmp(p + 6, "\0\0\0\0", 4) != 0)
        return false;
    uint32_t header =
        p[14] | (uint32_t)p[15] << 8 | (uint32_t)p[16] << 16 | (uint32_t)p[17] << 24;
    return header == 12 || header == 40 || header == 52 || header == 56 || header == 64 ||
           header == 108 || header == 124;
}

/* Declaration, comments and white space may precede the first XML element. */
static void skip_space(cursor *c)
{
    while (c->p < c->end && memchr(" \t\r\n", *c->p, 4))
        c->p++;
}

/* Skips `open ... close`; false if it is not here or not closed. */
static bool skip_between(cursor *c, const char *open, const char *close)
{
    size_t len = (size_t)(c->end - c->p);

    if (!starts(c->p, len, open, strlen(open)))
        return false;
    const char *found = memmem(c->p, len, close, strlen(close));
    if (!found)
        return false;
    c->p = found + strlen(close);
    return true;
}

static bool is_svg(const void *head, size_t len)
{
    cursor c = {head, (const char *)head + len};

    if (STARTS(head, len, "\xef\xbb\xbf")) /* byte order mark */
        c.p += 3;
    do
        skip_space(&c);
    while (skip_between(&c, "<?", "?>") || skip_between(&c, "<!--", "-->"));
    len = (size_t)(c.end - c.p);
    if (len > 13 && strncasecmp(c.p, "<!DOCTYPE svg", 13) == 0)
        return memchr(" \t\r\n>", c.p[13], 5);
    return len > 4 && STARTS(c.p, len, "<svg") && memchr(" \t\r\n/>:", c.p[4], 7);
}

const char *csn_sniff_image(const void *head, size_t len)
{
    if (STARTS(head, len, "\x89PNG\r\n\x1a\n"))
        return "image/png";
    if (STARTS(head, len, "\xff\xd8\xff"))
        return "image/jpeg";
    if (STARTS(head, len, "GIF87a") || STARTS(head, len, "GIF89a"))
        return "image/gif";
    if (len >= 12 && STARTS(head, len, "RIFF") &&
        memcmp((const char *)head + 8, "WEBP", 4) == 0)
        return "image/webp";
    if (STARTS(head, len, "%PDF-"))
        return "application/pdf";
    if (is_bmp(head, len))
        return "image/bmp";
    return is_svg(head, len) ? "image/svg+xml" : NULL;
}

bool csn_sniff_binary(const void *head, size_t len)
{
    return len > 0 && memchr(head, '\0', len);
}
