/* Reading JSON: strictness, limits, and getters that never guess. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "base/cleanup.h"
#include "base/json_read.h"
#include "base/limits.h"

static csn_jval *parsed(const char *text)
{
    csn_jval *v = NULL;

    assert_int_equal(csn_json_parse(text, strlen(text), "test", &v, NULL), CSN_OK);
    return v;
}

static void check_refused(const char *text, size_t len)
{
    csn_jval *v = NULL;
    csn_error *err = NULL;
    csn_status st = csn_json_parse(text, len, "request", &v, &err);

    if (st != CSN_INVALID)
        fail_msg("accepted: %.*s", (int)(len < 80 ? len : 80), text);
    assert_null(v);
    assert_memory_equal(csn_error_message(err), "request: line ", 14);
    for (const char *p = csn_error_message(err); *p; p++)
        assert_in_range(*p, ' ', '~');
    csn_error_free(err);
}

static void what_is_not_strict_json_is_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {"",
                                      " ",
                                      "{",
                                      "{} x",
                                      "{}{}",
                                      "[1,]",
                                      "{\"a\":1,\"a\":2}",
                                      "{'a':1}",
                                      "[01]",
                                      "[+1]",
                                      "[.5]",
                                      "[\"\xff\"]",
                                      "[\"\xc0\x80\"]",
                                      "[\"\xed\xa0\x80\"]",
                                      "[\"\\ud800\"]",
                                      "[\"\\u0000\"]",
                                      "{\"a\\u0000b\":1}",
                                      "[\"\x01\"]",
                                      "[NaN]",
                                      "[Infinity]",
                                      "[1e999]",
                                      "nul",
                                      "[9223372036854775808]",
                                      "[18446744073709551615]",
                                      "// c\n{}",
                                      "[\x1b[31m]",
                                      NULL};

    for (size_t i = 0; bad[i]; i++)
        check_refused(bad[i], strlen(bad[i]));
    check_refused("{}\0", 3);
    check_refused("[1\0]", 4);
    check_refused("[\"a\0b\"]", 7);
    check_refused(NULL, 0);
}

static void depth_of_100000_is_refused_without_harm(void **state)
{
    (void)state;
    size_t n = 100000;
    csn_autofree char *text = malloc(6 * n);

    memset(text, '[', n);
    check_refused(text, n);
    for (size_t i = 0; i < n; i++)
        memcpy(text + 6 * i, "{\"a\":[", 6);
    check_refused(text, 6 * n);
}

static void more_than_64_mib_is_refused_by_size(void **state)
{
    (void)state;
    size_t len = 100u << 20;
    csn_autofree char *text = calloc(1, len); /* never looked at */
    csn_jval *v = NULL;
    csn_error *err = NULL;

    assert_int_equal(csn_json_parse(text, len, "big", &v, &err), CSN_TOO_LARGE);
    assert_non_null(strstr(csn_error_message(err), "big: 104857600 bytes"));
    csn_error_free(err);
}

static void long_strings_are_read_whole(void **state)
{
    (void)state;
    size_t len = 4u << 20;
    csn_autofree char *text = malloc(len);

    memset(text, 'a', len);
    text[0] = text[len - 1] = '"';
    CSN_CLEANUP(csn_jval_freep) csn_jval *v = NULL;
    assert_int_equal(csn_json_parse(text, len, "t", &v, NULL), CSN_OK);
    assert_int_equal(strlen(csn_jval_string(v)), len - 2);
}

static uint32_t seed = 1;

static uint32_t rnd(uint32_t below)
{
    seed = seed * 1664525u + 1013904223u;
    return (seed >> 8) % below;
}

/* Both accept or both refuse, and what we dump means the same to jansson. */
static void check_as_jansson(const char *text, size_t len)
{
    json_t *want = json_loadb(text, len, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, NULL);
    CSN_CLEANUP(csn_jval_freep) csn_jval *v = NULL;
    csn_status st = csn_json_parse(text, len, "test", &v, NULL);

    if ((st == CSN_OK) != (want != NULL))
        fail_msg("%s by us alone: %.*s", st == CSN_OK ? "accepted" : "refused", (int)len, text);
    if (want) {
        csn_autofree char *dump = csn_jval_dump(v);
        json_t *again = json_loads(dump, JSON_DECODE_ANY, NULL);
        assert_true(again && json_equal(want, again));
        json_decref(again);
    }
    json_decref(want);
}

static void jansson_accepts_the_same_documents(void **state)
{
    (void)state;
    static const char *const pieces[] = {
        "{",       "}",       "[",        "]",
        ",",       ":",       "\"",       "\"a\"",
        "\"b\":",  "0",       "-",        "12",
        ".5",      "e3",      "E+",       "1e308",
        "true",    "false",   "null",     " ",
        "\n",      "\\",      "\\n",      "\\u00e9",
        "\\ud83d", "\\ude00", "\xc3\xa9", "\xf0\x9f\x98\x80",
        "\xff",    "\x7f",    "\x01",     "9223372036854775807"};
    char text[512];

    for (int round = 0; round < 200000; round++) {
        size_t len = 0;
        for (uint32_t n = rnd(12); n > 0; n--) {
            const char *piece = pieces[rnd(sizeof(pieces) / sizeof(pieces[0]))];
            memcpy(text + len, piece, strlen(piece));
            len += strlen(piece);
        }
        check_as_jansson(text, len);
    }
}

static void jansson_agrees_on_documents_with_one_byte_changed(void **state)
{
    (void)state;
    static const char good[] =
        "{\"a\": [1, -2.5e-3, \"x\\u00e9\\ud83d\\ude00\\n\xc3\xa9\", true, null, {}],"
        " \"b\": {\"c\": \"\", \"d\": [[], [false]]}, \"e\": 9223372036854775807}";
    char text[sizeof(good)];

    check_as_jansson(good, strlen(good));
    for (size_t at = 0; at < strlen(good); at++)
        for (int byte = 1; byte < 256; byte++) { /* jansson skips NUL after a number */
            memcpy(text, good, sizeof(good));
            text[at] = (char)byte;
            check_as_jansson(text, strlen(good));
        }
    for (size_t len = 0; len < strlen(good); len++)
        check_as_jansson(good, len);
}

/* A hundred keys are searched another way than three. */
static void large_objects_find_every_key_and_refuse_twins(void **state)
{
    (void)state;
    char text[4096] = "{", key[16];
    size_t len = 1;
    int64_t n = -1;

    for (int i = 0; i < 100; i++)
        len += (size_t)snprintf(text + len, sizeof(text) - len, "\"k%d\":%d,", i * 37 % 100,
                                i * 37 % 100);
    snprintf(text + len, sizeof(text) - len, "\"last\":100}");
    CSN_CLEANUP(csn_jval_freep) csn_jval *v = parsed(text);
    for (int i = 0; i < 100; i++) {
        snprintf(key, sizeof(key), "k%d", i);
        assert_int_equal(csn_jget_i64(v, key, &n, NULL), CSN_OK);
        assert_int_equal(n, i);
    }
    assert_false(csn_jval_has(v, "k100"));
    snprintf(text + len, sizeof(text) - len, "\"k42\":100}");
    check_refused(text, strlen(text));
}

static void depth_ends_at_its_limit(void **state)
{
    (void)state;
    char text[2 * CSN_JSON_DEPTH_MAX + 2];
    CSN_CLEANUP(csn_jval_freep) csn_jval *v = NULL;

    memset(text, '[', CSN_JSON_DEPTH_MAX + 1);
    memset(text + CSN_JSON_DEPTH_MAX + 1, ']', CSN_JSON_DEPTH_MAX + 1);
    check_refused(text, sizeof(text));
    assert_int_equal(csn_json_parse(text + 1, sizeof(text) - 2, "t", &v, NULL), CSN_OK);
}

static void errors_name_line_and_column(void **state)
{
    (void)state;
    csn_jval *v = NULL;
    csn_error *err = NULL;

    assert_int_equal(csn_json_parse("{\n \"a\": tru}", 12, "f", &v, &err), CSN_INVALID);
    assert_string_equal(csn_error_message(err), "f: line 2, column 7: expected a value");
    csn_error_free(err);
}

static void absent_and_null_leave_the_default(void **state)
{
    (void)state;
    CSN_CLEANUP(csn_jval_freep) csn_jval *v = parsed("{\"n\":null}");
    CSN_CLEANUP(csn_arena_freep) csn_arena *a = csn_arena_new();
    const char *s = "default", *const *list = NULL;
    uint64_t u = 7;
    int64_t i = -7;
    bool b = true;

    for (int round = 0; round < 3; round++) {
        const char *key = round == 0 ? "n" : "absent";
        const csn_jval *obj = round == 2 ? NULL : v;
        assert_int_equal(csn_jget_str(obj, key, &s, NULL), CSN_OK);
        assert_int_equal(csn_jget_u64(obj, key, &u, NULL), CSN_OK);
        assert_int_equal(csn_jget_i64(obj, key, &i, NULL), CSN_OK);
        assert_int_equal(csn_jget_bool(obj, key, &b, NULL), CSN_OK);
        assert_int_equal(csn_jget_strv(obj, key, a, &list, NULL), CSN_OK);
        assert_null(csn_jval_get(obj, key));
    }
    assert_string_equal(s, "default");
    assert_int_equal(u, 7);
    assert_int_equal(i, -7);
    assert_true(b);
    assert_null(list);
}

static void check_u64(const char *text, csn_status want)
{
    CSN_CLEANUP(csn_jval_freep) csn_jval *v = parsed(text);
    csn_error *err = NULL;
    uint64_t u = 7;

    assert_int_equal(csn_jget_u64(v, "limit", &u, &err), want);
    if (want < 0) {
        assert_int_equal(u, 7);
        assert_non_null(strstr(csn_error_message(err), "'limit'"));
    }
    csn_error_free(err);
}

static void u64_refuses_reals_negatives_and_other_types(void **state)
{
    (void)state;
    check_u64("{\"limit\":0}", CSN_OK);
    check_u64("{\"limit\":9223372036854775807}", CSN_OK);
    check_u64("{\"limit\":-1}", CSN_INVALID);
    check_u64("{\"limit\":-9223372036854775808}", CSN_INVALID);
    check_u64("{\"limit\":1.0}", CSN_INVALID);
    check_u64("{\"limit\":1e3}", CSN_INVALID);
    check_u64("{\"limit\":\"1\"}", CSN_INVALID);
    check_u64("{\"limit\":true}", CSN_INVALID);
    check_u64("{\"limit\":[1]}", CSN_INVALID);
    check_u64("[1]", CSN_INVALID);
}

static void wrong_types_name_the_key(void **state)
{
    (void)state;
    CSN_CLEANUP(csn_jval_freep)
    csn_jval *v = parsed("{\"s\":1,\"b\":0,\"l\":[\"a\",2],\"m\":{},\"i\":\"x\"}");
    CSN_CLEANUP(csn_arena_freep) csn_arena *a = csn_arena_new();
    const char *s = NULL, *const *list = NULL;
    bool b = false;
    int64_t i = 0;
    csn_error *err[5];

    assert_int_equal(csn_jget_str(v, "s", &s, &err[0]), CSN_INVALID);
    assert_int_equal(csn_jget_bool(v, "b", &b, &err[1]), CSN_INVALID);
    assert_int_equal(csn_jget_strv(v, "l", a, &list, &err[2]), CSN_INVALID);
    assert_int_equal(csn_jget_strv(v, "m", a, &list, &err[3]), CSN_INVALID);
    assert_int_equal(csn_jget_i64(v, "i", &i, &err[4]), CSN_INVALID);
    static const char *const want[] = {
        "'s': expected a string", "'b': expected true or false", "'l[1]': expected a string",
        "'m': expected a list of strings", "'i': expected a whole number"};
    for (int k = 0; k < 5; k++) {
        assert_string_equal(csn_error_message(err[k]), want[k]);
        csn_error_free(err[k]);
    }
    assert_null(list);
}

static void right_types_are_given(void **state)
{
    (void)state;
    csn_jval *v =
        parsed("{\"s\":\"\xc3\xa9\\n\",\"b\":true,\"i\":-5,\"l\":[\"a\",\"\"],\"one\":\"x\","
               "\"e\":[]}");
    CSN_CLEANUP(csn_arena_freep) csn_arena *a = csn_arena_new();
    const char *s = NULL, *const *list = NULL, *const *one = NULL, *const *none = NULL;
    bool b = false;
    int64_t i = 0;

    assert_int_equal(csn_jget_str(v, "s", &s, NULL), CSN_OK);
    assert_string_equal(s, "\xc3\xa9\n");
    assert_int_equal(csn_jget_bool(v, "b", &b, NULL), CSN_OK);
    assert_true(b);
    assert_int_equal(csn_jget_i64(v, "i", &i, NULL), CSN_OK);
    assert_int_equal(i, -5);
    assert_int_equal(csn_jget_strv(v, "l", a, &list, NULL), CSN_OK);
    assert_int_equal(csn_jget_strv(v, "one", a, &one, NULL), CSN_OK);
    assert_int_equal(csn_jget_strv(v, "e", a, &none, NULL), CSN_OK);
    assert_int_equal(csn_jval_count(csn_jval_get(v, "l")), 2);
    assert_true(csn_jval_is_array(csn_jval_get(v, "l")));
    assert_true(csn_jval_is_string(csn_jval_at(csn_jval_get(v, "l"), 1)));
    assert_null(csn_jval_at(csn_jval_get(v, "l"), 2));
    assert_null(csn_jval_string(csn_jval_get(v, "l")));
    assert_true(csn_jval_is_object(v));
    csn_jval_free(v); /* lists are copies */
    assert_string_equal(list[0], "a");
    assert_string_equal(list[1], "");
    assert_null(list[2]);
    assert_string_equal(one[0], "x");
    assert_null(one[1]);
    assert_null(none[0]);
}

static void dump_is_the_value_as_compact_text(void **state)
{
    (void)state;
    CSN_CLEANUP(csn_jval_freep)
    csn_jval *v = parsed(" { \"z\" : [ 1, true ], \"a\" : \"\\n\" } ");
    csn_autofree char *whole = csn_jval_dump(v);
    csn_autofree char *part = csn_jval_dump(csn_jval_get(v, "a"));

    assert_string_equal(whole, "{\"z\":[1,true],\"a\":\"\\n\"}");
    assert_string_equal(part, "\"\\n\"");
    assert_null(csn_jval_dump(NULL));
}

static void unknown_keys_are_refused_by_name(void **state)
{
    (void)state;
    static const char *const known[] = {"a", "b", NULL};
    CSN_CLEANUP(csn_jval_freep) csn_jval *good = parsed("{\"b\":1}");
    CSN_CLEANUP(csn_jval_freep) csn_jval *bad = parsed("{\"a\":1,\"evil\\u001b[31m\":2}");
    CSN_CLEANUP(csn_jval_freep) csn_jval *list = parsed("[]");
    csn_error *err = NULL;

    assert_int_equal(csn_jval_only(good, known, "policy", &err), CSN_OK);
    assert_null(err);
    assert_int_equal(csn_jval_only(bad, known, "policy", &err), CSN_INVALID);
    assert_string_equal(csn_error_message(err), "policy: unknown key 'evil\\x1b[31m'");
    csn_error_free(err);
    assert_int_equal(csn_jval_only(list, known, "policy", NULL), CSN_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_not_strict_json_is_refused),
        cmocka_unit_test(depth_of_100000_is_refused_without_harm),
        cmocka_unit_test(more_than_64_mib_is_refused_by_size),
        cmocka_unit_test(long_strings_are_read_whole),
        cmocka_unit_test(jansson_accepts_the_same_documents),
        cmocka_unit_test(jansson_agrees_on_documents_with_one_byte_changed),
        cmocka_unit_test(large_objects_find_every_key_and_refuse_twins),
        cmocka_unit_test(depth_ends_at_its_limit),
        cmocka_unit_test(errors_name_line_and_column),
        cmocka_unit_test(absent_and_null_leave_the_default),
        cmocka_unit_test(u64_refuses_reals_negatives_and_other_types),
        cmocka_unit_test(wrong_types_name_the_key),
        cmocka_unit_test(right_types_are_given),
        cmocka_unit_test(dump_is_the_value_as_compact_text),
        cmocka_unit_test(unknown_keys_are_refused_by_name),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
