/* base_visible.c: which characters reach a terminal, and what is shown for the others. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/visible.h"

static const char *shown(const char *text, size_t len, csn_visible_kind kind)
{
    static char out[256];
    char form[CSN_VISIBLE_SIZE];

    out[0] = '\0';
    for (size_t i = 0, n; i < len; i += n) {
        n = csn_visible_next((const unsigned char *)text + i, len - i, kind, form);
        assert_true(n > 0 && n <= len - i);
        strncat(out, form[0] ? form : text + i, form[0] ? sizeof(form) : n);
    }
    return out;
}

static void characters_that_a_terminal_obeys_are_shown(void **state)
{
    static const struct {
        const char *text, *lines, *name;
    } rows[] = {
        {"plain \xc3\xa4 \xe2\x82\xac", "plain \xc3\xa4 \xe2\x82\xac",
         "plain \xc3\xa4 \xe2\x82\xac"},
        {"a\tb\nc", "a\tb\nc", "a\\x09b\\x0ac"},
        {"a\r\nb", "a\r\nb", "a\\x0d\\x0ab"},
        {"a\rb", "a\\x0db", "a\\x0db"},
        {"a\r", "a\\x0d", "a\\x0d"},
        {"\x1b[31mred", "\\x1b[31mred", "\\x1b[31mred"},
        {"\x1b]0;title\a", "\\x1b]0;title\\x07", "\\x1b]0;title\\x07"},
        {"\x7f\b", "\\x7f\\x08", "\\x7f\\x08"},
        {"\xc2\x9b"
         "2J",
         "\\xc2\\x9b2J", "\\xc2\\x9b2J"}, /* C1 as UTF-8 */
        {"\x9b"
         "2J",
         "\\x9b2J", "\\x9b2J"}, /* and as a byte */
        {"\xff\xc3", "\\xff\\xc3", "\\xff\\xc3"},
        {"\xc0\xaf\xed\xa0\x80", "\\xc0\\xaf\\xed\\xa0\\x80", "\\xc0\\xaf\\xed\\xa0\\x80"},
        {"\xe2\x80\xae", "<U+202E>", "<U+202E>"},
        {"\xe2\x80\xaa\xe2\x80\xa8\xe2\x80\xa9", "<U+202A><U+2028><U+2029>",
         "<U+202A><U+2028><U+2029>"},
        {"\xe2\x81\xa6\xe2\x81\xa9", "<U+2066><U+2069>", "<U+2066><U+2069>"},
        {"\xe2\x80\x8e\xe2\x80\x8f\xd8\x9c", "<U+200E><U+200F><U+061C>",
         "<U+200E><U+200F><U+061C>"},
        {"\xe2\x80\x8b\xef\xbb\xbf\xc2\xad", "<U+200B><U+FEFF><U+00AD>",
         "<U+200B><U+FEFF><U+00AD>"},
        {"\xf3\xa0\x81\x81\xf3\xa0\x84\x80", "<U+E0041><U+E0100>", "<U+E0041><U+E0100>"},
        {"\xe2\x80\x8d\xef\xb8\x8f", "\xe2\x80\x8d\xef\xb8\x8f",
         "\xe2\x80\x8d\xef\xb8\x8f"}, /* emoji need these */
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        size_t len = strlen(rows[i].text);
        assert_string_equal(shown(rows[i].text, len, CSN_VISIBLE_LINES), rows[i].lines);
        assert_string_equal(shown(rows[i].text, len, CSN_VISIBLE_NAME), rows[i].name);
    }
    assert_string_equal(shown("a\0b", 3, CSN_VISIBLE_LINES), "a\\x00b");
    assert_string_equal(shown("a\tb", 3, CSN_VISIBLE_TEXT), "a\tb");
}

static void a_json_document_stays_one(void **state)
{
    static const char text[] = "{\"a\":\"\xc2\x9b\xe2\x80\xae\xf3\xa0\x81\x81\x7f\"}\n";

    (void)state;
    assert_string_equal(shown(text, sizeof(text) - 1, CSN_VISIBLE_JSON),
                        "{\"a\":\"\\u009b\\u202e\\udb40\\udc41\\u007f\"}\n");
}

static void the_end_of_a_chunk_waits_for_the_next(void **state)
{
    (void)state;
    assert_int_equal(csn_visible_tail("", 0), 0);
    assert_int_equal(csn_visible_tail("abc", 3), 0);
    assert_int_equal(csn_visible_tail("abc\r", 4), 1);
    assert_int_equal(csn_visible_tail("abc\xe2\x80", 5), 2);
    assert_int_equal(csn_visible_tail("abc\xf3\xa0\x81", 6), 3);
    assert_int_equal(csn_visible_tail("abc\xff", 4), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(characters_that_a_terminal_obeys_are_shown),
        cmocka_unit_test(a_json_document_stays_one),
        cmocka_unit_test(the_end_of_a_chunk_waits_for_the_next),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
