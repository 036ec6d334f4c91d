/* search_match.c: patterns, plain and regular, on friendly and on hostile text. */
/* cmocka wants these before it */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "search/match.h"

#define REGEX  CSN_GREP_REGEX
#define NOCASE CSN_GREP_IGNORE_CASE

static csn_matcher *matcher(const char *pattern, uint32_t flags)
{
    csn_matcher *m = NULL;
    csn_error *err = NULL;

    if (csn_matcher_new(pattern, flags, &m, &err) != CSN_OK)
        fail_msg("%s", csn_error_message(err));
    return m;
}

/* Where the first match is, as from * 1000 + to; -1 none; else a status. */
static int at(const char *pattern, uint32_t flags, const char *text, size_t len, size_t start)
{
    CSN_CLEANUP(csn_matcher_freep) csn_matcher *m = matcher(pattern, flags);
    size_t from = 777, to = 777;

    int rc = csn_matcher_find(m, text, len, start, &from, &to);
    if (rc == 0)
        return -1;
    return rc < 0 ? rc : (int)(from * 1000 + to);
}

#define AT(pattern, flags, text) at(pattern, flags, text, sizeof(text) - 1, 0)

static void plain_patterns_are_found_as_they_are(void **state)
{
    (void)state;
    assert_int_equal(AT("a.b", 0, "xaxb a.b"), 5008);
    assert_int_equal(AT("a.b", 0, "A.B"), -1);
    assert_int_equal(AT("\xff\xfe", 0, "a\xff\xff\xfe"), 2004);
    assert_int_equal(AT("b", 0, "a\0b"), 2003);
    assert_int_equal(at("a", 0, "aaa", 3, 1), 1002);
    assert_int_equal(at("a", 0, "aaa", 3, 3), -1);
    assert_int_equal(at("a", 0, "aaa", 3, 4), -1);
}

static void plain_patterns_can_ignore_case(void **state)
{
    (void)state;
    assert_int_equal(AT("A.b", NOCASE, "xaxb a.B"), 5008);
    assert_int_equal(AT("(", NOCASE, "x("), 1002); /* not an expression */
    assert_int_equal(AT("\xc3\xa9t\xc3\xa9", NOCASE, "\xc3\x89T\xc3\x89"), 5);
    assert_int_equal(AT("x\xffY", NOCASE, "..X\xffy"), 2005); /* bytes */
    assert_int_equal(AT("k", NOCASE, "\xff\xc3K"), 2003);
}

static void expressions_go_by_lines(void **state)
{
    (void)state;
    assert_int_equal(AT("^b.*$", REGEX, "a\nbcd\ne"), 2005);
    assert_int_equal(AT("a.b", REGEX, "a\nb"), -1);
    assert_int_equal(AT("c$", REGEX, "abc\r\nc\n"), 5006); /* \r is a byte of the line */
    assert_int_equal(AT("^$", REGEX, "a\n\nb"), 2002);
    assert_int_equal(AT("B", REGEX | NOCASE, "abc"), 1002);
    assert_int_equal(AT("(?<=a)b", REGEX, "ab"), 1002);
    /* what lies before the start is still seen: no line begins in the middle of one */
    assert_int_equal(at("^b", REGEX, "ab", 2, 1), -1);
    assert_int_equal(at("^b", REGEX, "a\nb", 3, 1), 2003);
    /* may run beyond a line, as the header says */
    assert_int_equal(AT("a[^x]b", REGEX, "a\nb"), 3);
    assert_int_equal(at("a[^x]b", REGEX, "a\nb", 1, 0), -1);
}

static void expressions_bear_invalid_text(void **state)
{
    (void)state;
    assert_int_equal(AT("b+", REGEX,
                        "\xff\xfe"
                        "bb\xc3"),
                     2004);
    assert_int_equal(AT(".", REGEX, "\xff\xc3\xa9"), 1003); /* a character, not a byte */
    assert_int_equal(at("a", REGEX,
                        "\xc3\xa9"
                        "a",
                        3, 1),
                     2003); /* from inside one */
    assert_int_equal(AT("^.$", REGEX, "\xe2\x82\xac"), 3);
    assert_int_equal(AT("a\\x00b", REGEX, "xa\0b"), 1004);
    assert_int_equal(AT("x\xff+", REGEX, "ax\xff\xff."), 1004); /* a pattern of bytes */
}

static void bad_expressions_say_where(void **state)
{
    (void)state;
    static const char *const bad[] = {"(",      "a[",   "*",         "(?<n>a)(?<n>b)", "\\C",
                                      "a{2,1}", "(?P<", "\\p{Nope}", "(*NOSUCHVERB)"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        csn_matcher *m = NULL;
        csn_error *err = NULL;
        assert_int_equal(csn_matcher_new(bad[i], REGEX, &m, &err), CSN_INVALID);
        assert_null(m);
        assert_non_null(strstr(csn_error_message(err), "at byte"));
        csn_error_free(err);
    }
    csn_error *err = NULL;
    csn_matcher *m = NULL;
    char *big = malloc(70001);
    assert_non_null(big);
    memset(big, 'a', 70000);
    big[70000] = '\0';
    assert_int_equal(csn_matcher_new(big, 0, &m, &err), CSN_TOO_LARGE);
    csn_error_free(err);
    assert_int_equal(csn_matcher_new(NULL, 0, &m, NULL), CSN_INVALID);
    free(big);
}

static double seconds(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static void hostile_expressions_end(void **state)
{
    (void)state;
    static const char *const hostile[] = {
        "^(a+)+$",
        "(a|aa)+$",
        "(a*)*b",
        "(?:a?){40}a{40}b",
        "((a+)*)*c",
        "(x+x+)+y",
        "(?R)?a(?R)?b",
        "^(([a-z])+.)+[A-Z]([a-z])+$",
        "(*LIMIT_MATCH=4000000000)(a+)+$",
    };
    char text[40000];

    memset(text, 'a', sizeof(text));
    memset(text + 20000, 'x', 10000);
    text[sizeof(text) - 1] = '!';
    for (size_t i = 0; i < sizeof(hostile) / sizeof(hostile[0]); i++) {
        double began = seconds();
        int rc = at(hostile[i], REGEX, text, sizeof(text), 0);
        assert_true(rc >= -1 || rc == CSN_TOO_LARGE);
        if (seconds() - began > 5)
            fail_msg("%s took %.1f s", hostile[i], seconds() - began);
    }
    assert_int_equal(at("^(a+)+$", REGEX, text, sizeof(text), 0), CSN_TOO_LARGE);
}

static void keep_out_moves_the_start_only(void **state)
{
    (void)state;
    assert_int_equal(AT("a\\Kb", REGEX, "xab"), 2003);
    assert_int_equal(AT("ab\\K", REGEX, "xab"), 3003);
    assert_int_equal(at("(?<=(a))b", REGEX, "ab", 2, 1), 1002);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_patterns_are_found_as_they_are),
        cmocka_unit_test(plain_patterns_can_ignore_case),
        cmocka_unit_test(expressions_go_by_lines),
        cmocka_unit_test(expressions_bear_invalid_text),
        cmocka_unit_test(bad_expressions_say_where),
        cmocka_unit_test(hostile_expressions_end),
        cmocka_unit_test(keep_out_moves_the_start_only),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
