/* Sniffing: each format, each cut short, and texts that look alike. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/sniff.h"

#define BMP "BM\x46\0\0\0\0\0\0\0\x36\0\0\0\x28\0\0\0"

/* From a copy of exactly len bytes, so that a sanitizer sees a read beyond it. */
static const char *sniffed(const char *head, size_t len)
{
    csn_autofree char *copy = malloc(len + 1);

    memcpy(copy + 1, head, len);
    return csn_sniff_image(copy + 1, len);
}

static void check(const char *head, size_t len, const char *want)
{
    const char *got = sniffed(head, len);

    if (!got != !want || (got && strcmp(got, want) != 0))
        fail_msg("'%.20s' is %s", head, got ? got : "nothing");
}

#define IS(head, want) check(head, sizeof(head) - 1, want)

static void formats_are_known_by_content(void **state)
{
    (void)state;
    IS("\x89PNG\r\n\x1a\n....", "image/png");
    IS("\xff\xd8\xff\xe0....", "image/jpeg");
    IS("GIF87a..", "image/gif");
    IS("GIF89a..", "image/gif");
    IS("RIFF\x10\0\0\0WEBPVP8 ", "image/webp");
    IS(BMP, "image/bmp");
    IS("%PDF-1.7\n", "application/pdf");
    IS("<svg>", "image/svg+xml");
    IS("<svg xmlns='x'>", "image/svg+xml");
    IS("\xef\xbb\xbf \n<?xml version='1.0'?>\n<!-- a > b -->\n<svg:svg>", "image/svg+xml");
    IS("<?xml version='1.0'?><!DOCTYPE svg PUBLIC '...'>", "image/svg+xml");
}

static void lookalikes_are_not_images(void **state)
{
    (void)state;
    IS("", NULL);
    IS("BMW builds cars and more", NULL);
    IS("GIF88a..", NULL);
    IS("RIFF\x10\0\0\0WAVEfmt ", NULL);
    IS("<svgfoo>", NULL);
    IS("<html><svg>", NULL);
    IS("text <svg>", NULL);
    IS("<?xml version='1.0'?><html>", NULL);
    IS("<!DOCTYPE html><svg>", NULL);
    IS("<!DOCTYPE svgx >", NULL);
    IS("<!-- never closed <svg>", NULL);
    IS(" %PDF-1.7", NULL);
    IS("\x7f"
       "ELF\2\1\1",
       NULL);
}

static void every_cut_is_survived(void **state)
{
    (void)state;
    static const char svg[] = "\xef\xbb\xbf<?xml?><!-- c --><!DOCTYPE svg>";

    for (size_t n = 0; n < sizeof(svg) - 1; n++)
        assert_null(sniffed(svg, n));
    check(svg, sizeof(svg) - 1, "image/svg+xml");
    for (size_t n = 0; n < sizeof(BMP) - 1; n++)
        assert_null(sniffed(BMP, n));
    for (size_t n = 0; n < 5; n++)
        assert_null(sniffed("<svg>", n));
}

static void nul_makes_binary(void **state)
{
    (void)state;
    assert_true(csn_sniff_binary("a\0b", 3));
    assert_false(csn_sniff_binary("ab\xff", 3));
    assert_false(csn_sniff_binary("a\0", 1));
    assert_false(csn_sniff_binary(NULL, 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(formats_are_known_by_content),
        cmocka_unit_test(lookalikes_are_not_images),
        cmocka_unit_test(every_cut_is_survived),
        cmocka_unit_test(nul_makes_binary),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
