/* Globs: the language, its edges, and its cost. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/glob.h"

CSN_DEFINE_CLEANUP(csn_glob_set, csn_glob_free)

static csn_glob_set *compiled(const char *pattern)
{
    csn_glob_set *g = NULL;
    csn_error *err = NULL;

    if (csn_glob_compile(pattern, &g, &err) != CSN_OK)
        fail_msg("'%s': %s", pattern, csn_error_message(err));
    return g;
}

/* Paths separated by spaces: those before the bar must match, those behind must not. */
static void check(const char *pattern, const char *paths)
{
    CSN_CLEANUP(csn_glob_freep) csn_glob_set *g = compiled(pattern);
    bool want = true;
    char path[64];
    int used;

    for (; sscanf(paths, " %63s%n", path, &used) == 1; paths += used) {
        if (strcmp(path, "|") == 0)
            want = false;
        else if (csn_glob_match(g, path) != want)
            fail_msg("'%s' %s '%s'", pattern, want ? "misses" : "matches", path);
    }
}

static void stars_and_questions_stay_in_their_component(void **state)
{
    (void)state;
    check("*.c", "a.c .c .x.c | a.h a.c/b d/a.c a.cc");
    check("*", "a .hidden a.b.c | a/b");
    check("a*b*c", "abc aXbXc abbcc aXXbc | ab ac abcd aXc a/bc");
    check("?", "a | ab a/b . aa/");
    check("a?c", "abc a.c | ac abbc a/c");
    check("src/*/x", "src/a/x src/.g/x | src/x src/a/b/x");
    check("a**c", "abc ac abbc | a/c a/b/c");
}

static void double_star_matches_any_number_of_components(void **state)
{
    (void)state;
    check("**", "a a/b .git/config");
    check("**/*.c", "a.c d/a.c d/e/f/a.c | a.h d/a.h a.c/d");
    check("src/**", "src src/a src/a/b | a srcs xsrc/a a/src");
    check("src/**/*.c", "src/a.c src/x/a.c src/x/y/a.c | a.c lib/src/a.c");
    check("**/a/**/b", "a/b x/a/b a/x/b x/a/y/z/b a/b/a/b | a b b/a a/bc");
    check("**/**/a", "a x/a x/y/a | b a/b");
    check("a/**/b/**/c", "a/b/c a/b/b/c a/x/b/y/c a/b/c/x/c | a/c/b a/b/c/x");
}

static void brackets_hold_ranges_and_negation(void **state)
{
    (void)state;
    check("[abc]", "a b c | d ab");
    check("[a-c]x", "ax bx cx | dx -x");
    check("[!a-c]", "d - | a b");
    check("[^a]", "b | a");
    check("[]a]", "] a | b");
    check("[!]a]", "b | ] a");
    check("[a-]", "a - | b");
    check("[-a]", "a - | b");
    check("[a\\]]", "a ] | \\ b");
    check("[\\a-\\c]", "b | \\ d");
    check("[z-a]", "| a z m -");
    check("[*?]", "* ? | a");
    check("app/[[]id]/page.tsx", "app/[id]/page.tsx | app/i/page.tsx");
    check("[\x80-\xff]*", "\xc3\xa9t\xc3\xa9 | ete");
}

static void braces_nest_and_may_hold_slashes(void **state)
{
    (void)state;
    check("*.{c,h}", "a.c a.h | a.ch a.{c,h} a.");
    check("{a,b}{c,d}", "ac ad bc bd | ab a c");
    check("{a,{b,c}d}e", "ae bde cde | be ade");
    check("{src,test/unit}/**", "src/x test/unit/x | test/x");
    check("a{,b}", "a ab | b");
    check("{a}", "a | {a}");
    check("{[,],x}", ", x | [");
    check("\\{a,b\\}", "{a,b} | a b");
    check("{a\\,b,c}", "a,b c | a b");
    check("a}b", "a}b | ab");
    check("[{]a", "{a | a");
    check("{**/,}x", "x a/x a/b/x | y");
}

static void backslash_makes_the_next_byte_plain(void **state)
{
    (void)state;
    check("\\*", "* | a");
    check("a\\?b", "a?b | axb");
    check("\\[a]", "[a] | a");
    check("\\\\", "\\ | a");
    check("\\**", "* *a | a");
    check("a/\\**/b", "a/*/b a/*x/b | a/b a/x/b");
}

static void empty_and_dot_components_do_not_count(void **state)
{
    (void)state;
    check("./src//*.c", "src/a.c ./src/a.c src//a.c | a.c");
    check("/a/b/", "a/b /a/b a/b/ | a b");
    check("..", ".. | . a");
    check(".*", ".a .. ... | a");
}

static void walks_are_pruned_exactly(void **state)
{
    (void)state;
    static const struct {
        const char *pattern, *dir;
        bool want;
    } cases[] = {
        {"*.c", "", true},
        {"*.c", "src", false},
        {"src/*.c", "", true},
        {"src/*.c", "src", true},
        {"src/*.c", "lib", false},
        {"src/*.c", "src/x", false},
        {"src/**", "src/x/y", true},
        {"src/**", "lib", false},
        {"**/x", "a/b/c", true},
        {"a/*/c/d", "a/b", true},
        {"a/*/c/d", "a/b/c", true},
        {"a/*/c/d", "a/b/d", false},
        {"a/*/c/d", "a/b/c/d", false},
        {"{a,b/c}/d", "b", true},
        {"{a,b/c}/d", "c", false},
        {"a/b", "./a/", true},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        CSN_CLEANUP(csn_glob_freep) csn_glob_set *g = compiled(cases[i].pattern);
        if (csn_glob_may_descend(g, cases[i].dir) != cases[i].want)
            fail_msg("'%s' below '%s'", cases[i].pattern, cases[i].dir);
    }
}

static void check_refused(const char *pattern, csn_status want)
{
    csn_glob_set *g = NULL;
    csn_error *err = NULL;
    csn_status st = csn_glob_compile(pattern, &g, &err);

    if (st != want)
        fail_msg("'%.40s' gave %s", pattern ? pattern : "NULL", csn_status_name(st));
    assert_null(g);
    assert_non_null(strstr(csn_error_message(err), "glob pattern"));
    csn_error_free(err);
}

static void broken_and_oversized_patterns_are_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {"",      "[",      "[a",    "a[]",    "[!]",
                                      "[a/b]", "{",      "{a,b",  "{a,{b}", "a\\",
                                      "x/[/y", "{[a,b}", "[a\\]", NULL};
    char text[6000];

    for (size_t i = 0; bad[i]; i++)
        check_refused(bad[i], CSN_INVALID);
    check_refused(NULL, CSN_INVALID);
    memset(text, 'a', sizeof(text));
    text[4096] = '\0';
    check_refused(text, CSN_INVALID);
    check_refused("{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}", CSN_TOO_LARGE);
    check("{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}", "aaaaaaaa abababab bbbbbbbb | aaaaaaa c");
    for (size_t i = 0; i < 4000; i++) /* 2000 braces around nothing */
        text[i] = i < 2000 ? '{' : '}';
    text[4000] = '\0';
    check_refused(text, CSN_TOO_LARGE);
    memset(text, ',', 300);
    text[0] = '{';
    text[300] = '}';
    text[301] = '\0';
    check_refused(text, CSN_TOO_LARGE);
}

static void hostile_patterns_stay_cheap(void **state)
{
    (void)state;
    char pattern[4096], path[4096];

    /* *a*a*a...b against aaaa...: exponential for a naive matcher */
    for (size_t i = 0; i < 4000; i++) {
        pattern[i] = i % 2 ? 'a' : '*';
        path[i] = 'a';
    }
    memcpy(pattern + 4000, "b", 2);
    path[4000] = '\0';
    CSN_CLEANUP(csn_glob_freep) csn_glob_set *stars = compiled(pattern);
    assert_false(csn_glob_match(stars, path));
    /* the same, one floor up: ** between components */
    pattern[0] = '\0';
    for (size_t i = 0; i < 500; i++)
        memcpy(pattern + 6 * i, "**/a*/", 7);
    memcpy(pattern + 3000, "b", 2);
    for (size_t i = 0; i < 2000; i++)
        memcpy(path + 2 * i, "a/", 3);
    CSN_CLEANUP(csn_glob_freep) csn_glob_set *deep = compiled(pattern);
    assert_false(csn_glob_match(deep, path));
}

static void magic_is_known(void **state)
{
    (void)state;
    assert_true(csn_glob_has_magic("*"));
    assert_true(csn_glob_has_magic("a?b"));
    assert_true(csn_glob_has_magic("[a]"));
    assert_true(csn_glob_has_magic("{a"));
    assert_false(csn_glob_has_magic("/plain/path.c"));
    assert_false(csn_glob_has_magic(""));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stars_and_questions_stay_in_their_component),
        cmocka_unit_test(double_star_matches_any_number_of_components),
        cmocka_unit_test(brackets_hold_ranges_and_negation),
        cmocka_unit_test(braces_nest_and_may_hold_slashes),
        cmocka_unit_test(backslash_makes_the_next_byte_plain),
        cmocka_unit_test(empty_and_dot_components_do_not_count),
        cmocka_unit_test(walks_are_pruned_exactly),
        cmocka_unit_test(broken_and_oversized_patterns_are_refused),
        cmocka_unit_test(hostile_patterns_stay_cheap),
        cmocka_unit_test(magic_is_known),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
