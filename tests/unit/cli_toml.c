/* cli_toml.c: the TOML reader, with documents that are meant to break it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/error.h"
#include "base/json_read.h"
#include "cli/toml.h"

static const char sample[] = "# comment\r\n"
                             "top = \"a\\u00e9\\\"\\n\" # end\n"
                             "'quoted key' = 'C:\\x'\n"
                             "dotted.a.b = true\n"
                             "dotted.a.c = -12\n"
                             "list = [ \"a\", # one\n  'b',\n]\n"
                             "empty = []\n"
                             "[table.\"x.y\"]\n"
                             "inline = { a = \"1\", b.c = false, d = {} }\n"
                             "[table]\n"
                             "z = \"\"";

static void becomes(const char *toml, const char *json)
{
    csn_error *err = NULL;
    csn_autobuf out;

    csn_buf_init(&out, 1 << 20);
    if (csn_toml_to_json(toml, strlen(toml), "t", &out, &err) < 0)
        fail_msg("%s: %s", toml, csn_error_message(err));
    assert_string_equal(out.data, json);
}

/* `where` is part of the message. */
static void refused(const char *toml, const char *where)
{
    csn_error *err = NULL;
    csn_autobuf out;

    csn_buf_init(&out, 1 << 20);
    if (csn_toml_to_json(toml, strlen(toml), "t", &out, &err) == CSN_OK)
        fail_msg("%s was accepted: %s", toml, out.data);
    if (!strstr(csn_error_message(err), where))
        fail_msg("%s: '%s' is not in '%s'", toml, where, csn_error_message(err));
    csn_error_free(err);
}

static void tables_strings_booleans_numbers_and_lists_are_read(void **state)
{
    (void)state;
    becomes("", "{}");
    becomes("\n\n# only a comment", "{}");
    becomes(sample, "{\"top\":\"a\xc3\xa9\\\"\\n\",\"quoted key\":\"C:\\\\x\","
                    "\"dotted\":{\"a\":{\"b\":true,\"c\":-12}},\"list\":[\"a\",\"b\"],"
                    "\"empty\":[],\"table\":{\"x.y\":{\"inline\":{\"a\":\"1\",\"b\":{\"c\":"
                    "false},\"d\":{}}},\"z\":\"\"}}");
    becomes("a=\"\\U0001F600\\u0041\"", "{\"a\":\"\xf0\x9f\x98\x80"
                                        "A\"}");
    becomes("[a]\n[b]\n[a.c]\nx=1", "{\"a\":{\"c\":{\"x\":1}},\"b\":{}}");
}

static void what_is_not_supported_is_refused_with_its_place(void **state)
{
    static const struct {
        const char *toml, *where;
    } rows[] = {
        {"a", "line 1, column 2"},
        {"a = ", "line 1"},
        {"\n\na = 1.5", "line 3, column 5"},
        {"a = 1979-05-27", "only strings"},
        {"a = 0x10", "only strings"},
        {"a = 01", "only strings"},
        {"a = +1", "only strings"},
        {"a = 1_000", "only strings"},
        {"a = 99999999999999999999", "only strings"},
        {"a = inf", "only strings"},
        {"a = True", "only strings"},
        {"a = \"\"\"x\"\"\"", "several lines"},
        {"a = '''x'''", "several lines"},
        {"a = \"x", "does not end"},
        {"a = \"x\ny\"", "does not end"},
        {"a = \"\\q\"", "escape"},
        {"a = \"\\", "escape"},
        {"a = \"\\u12\"", "hexadecimal"},
        {"a = \"\\u0000\"", "character"},
        {"a = \"\\ud800\"", "character"},
        {"a = \"\\U00110000\"", "character"},
        {"a = \"\x01\"", "control"},
        {"a = [1]", "arrays of strings"},
        {"a = [[\"x\"]]", "arrays of strings"},
        {"a = [\"x\" \"y\"]", "','"},
        {"a = [\"x\",", "arrays of strings"},
        {"a = {x = 1", "'}'"},
        {"a = {x}", "'='"},
        {"[[a]]", "arrays of tables"},
        {"[a", "']'"},
        {"[]", "key"},
        {"= 1", "key"},
        {"a. = 1", "key"},
        {"a = 1 b = 2", "end of the line"},
        {"[a] x", "end of the line"},
        {"a = 1\na = 2", "line 2, column 1: the key is there"},
        {"a = 1\n[a]", "table is there"},
        {"[a]\n[a]", "table is there"},
        {"a = 1\na.b = 2", "not a table"},
        {"a = {}\n[a.b]", "not a table"},
        {"a = {}\n[a]", "table is there"},
        {"a.b.c.d.e.f.g.h.i.j.k.l.m.n = 1", "deep"},
        {"a = {a={a={a={a={a={a={a={a={a={a={a={a={a=1}}}}}}}}}}}}}", "deep"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        refused(rows[i].toml, rows[i].where);
}

static void bytes_that_are_no_text_are_refused(void **state)
{
    csn_autobuf out;

    (void)state;
    csn_buf_init(&out, 1 << 20);
    assert_int_equal(csn_toml_to_json("a\0b", 3, "t", &out, NULL), CSN_INVALID);
    assert_int_equal(csn_toml_to_json("a='\xff'", 5, "t", &out, NULL), CSN_INVALID);
}

static void many_keys_are_refused(void **state)
{
    csn_autobuf text, out;

    (void)state;
    csn_buf_init(&text, 1 << 20);
    csn_buf_init(&out, 1 << 20);
    for (int i = 0; i < 10001; i++)
        csn_buf_printf(&text, "k%d=1\n", i);
    assert_int_equal(csn_toml_to_json(text.data, text.len, "t", &out, NULL), CSN_INVALID);
}

/* Every prefix, and changed bytes: the answer is an error or valid JSON. */
static void broken_documents_are_refused_or_become_json(void **state)
{
    static const char bytes[] = "\"'[]{}=.,#\\\n ux0";
    char text[sizeof(sample)];
    uint32_t seed = 1;

    (void)state;
    for (int i = 0; i < 20000; i++) {
        csn_jval *root = NULL;
        csn_autobuf out;
        csn_buf_init(&out, 1 << 20);
        memcpy(text, sample, sizeof(text));
        size_t len = sizeof(text) - 1;
        if (i < (int)len)
            len = (size_t)i;
        for (int k = 0; i >= (int)sizeof(sample) && k < 3; k++) {
            seed = seed * 1103515245u + 12345u;
            text[(seed >> 8) % len] = bytes[(seed >> 20) % (sizeof(bytes) - 1)];
        }
        char *copy = malloc(len + 1); /* a byte after the end would be seen by valgrind */
        memcpy(copy, text, len);
        if (csn_toml_to_json(copy, len, "t", &out, NULL) == CSN_OK)
            assert_int_equal(csn_json_parse(out.data, out.len, "t", &root, NULL), CSN_OK);
        csn_jval_free(root);
        free(copy);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tables_strings_booleans_numbers_and_lists_are_read),
        cmocka_unit_test(what_is_not_supported_is_refused_with_its_place),
        cmocka_unit_test(bytes_that_are_no_text_are_refused),
        cmocka_unit_test(many_keys_are_refused),
        cmocka_unit_test(broken_documents_are_refused_or_become_json),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
