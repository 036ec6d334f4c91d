/* search_scan.c: strings, required strings and lines, on text that comes in pieces; compared
 * with the simple way to do the same. */
/* cmocka wants these before it */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "search/line_scan.h"
#include "search/literal.h"
#include "search/required.h"

#define REGEX  CSN_GREP_REGEX
#define NOCASE CSN_GREP_IGNORE_CASE

static unsigned seed = 1;

static unsigned pick(unsigned n)
{
    seed = seed * 1103515245u + 12345u;
    return (seed >> 16) % n;
}

/* ---- strings ---- */

static const char *find_simply(const char *text, size_t len, const char *s, size_t n,
                               bool nocase)
{
    for (size_t i = 0; i + n <= len; i++)
        if (nocase ? strncasecmp(text + i, s, n) == 0 : memcmp(text + i, s, n) == 0)
            return text + i;
    return NULL;
}

/* Each text ends where its memory ends, so that a load beyond it is found by the sanitizer. */
static void a_string_is_found_at_every_place(void **state)
{
    (void)state;
    for (unsigned round = 0; round < 60000; round++) {
        size_t len = pick(150), n = 1 + pick(round % 3 ? 4 : 40);
        char *text = malloc(len + 1), *end = text + 1 + len, s[40];
        for (size_t i = 0; i < len; i++)
            text[1 + i] = "abAB@`[{"[pick(8)];
        for (size_t i = 0; i < n; i++)
            s[i] = "abAB@`[{"[pick(8)];
        if (n < len && pick(2))
            memcpy(s, end - n, n);
        csn_literal l;
        csn_literal_init(&l, s, n, round % 2);
        assert_ptr_equal(csn_literal_find(&l, text + 1, len),
                         find_simply(text + 1, len, s, n, round % 2));
        free(text);
    }
}

static void lines_are_counted_and_ascii_is_seen(void **state)
{
    (void)state;
    for (unsigned round = 0; round < 400; round++) {
        size_t len = round < 200 ? pick(200) : 8000 + pick(9000), want = 0;
        char *text = malloc(len + 1);
        for (size_t i = 0; i < len; i++) {
            text[i] = pick(3) ? '\n' : 'x';
            want += text[i] == '\n';
        }
        assert_int_equal(csn_count_newlines(text, len), want);
        assert_true(csn_is_ascii(text, len));
        if (len > 0) {
            text[pick((unsigned)len)] = (char)0x80;
            assert_false(csn_is_ascii(text, len));
        }
        free(text);
    }
}

/* ---- required strings ---- */

/* The strings, joined by blanks; a star after them: a match may have a newline. */
static void requires(const char *pattern, bool nocase, const char *want)
{
    csn_required r;
    char got[1024] = "";
    size_t n = 0;

    csn_required_find(pattern, strlen(pattern), nocase, &r);
    for (size_t i = 0; i < r.count; i++)
        n += (size_t)snprintf(got + n, sizeof(got) - n, "%s%.*s", i ? " " : "",
                              (int)r.items[i].len, (const char *)r.items[i].bytes);
    snprintf(got + n, sizeof(got) - n, "%s", r.count && !r.one_line ? "*" : "");
    if (strcmp(got, want) != 0)
        fail_msg("%s: %s, not %s", pattern, got, want);
}

static void required_strings_are_read_from_expressions(void **state)
{
    (void)state;
    requires("\\w+Error\\(", false, "Error(");
    requires("foo|bar|quux", false, "foo bar quux");
    requires("^static .*\\(void\\)$", false, "static ");
    requires("(?:ab|cd)ef", false, "abef cdef");
    requires("a(bc)+d", false, "abc");
    requires("abc?d", false, "ab");
    requires("xyz{0,3}abcd", false, "abcd");
    requires("xyz{2,3}ab", false, "xyz");
    requires("ab{", false, "ab{");
    requires("import\\s+os", false, "import*");
    requires("foo[^x]bar", false, "foo*");
    requires("foo[a-z]ba", false, "foo");
    requires("\\bword\\b", false, "word");
    requires("Permission", true, "permi");
    requires("(a|bc)def", false, "adef bcdef");
}

static void expressions_that_are_not_understood_require_nothing(void **state)
{
    static const char *const patterns[] = {
        "foo|",        "(foo)?",     "[a-z]+",    "foo(?=bar)",     "(?i)foo",
        "(?<!a)foo",   "foo\\K",     "\\Qfoo",    "a|foo",          "(foo)\\1",
        "foo\\x{100}", "(*UCP)foo",  "foo{2}{3}", "[[:alpha:]]foo", "f\xc3\xa9o",
        "foo\\nbar",   "foo{,3}",    "(foo",      "foo{ 2 }",       "kskskskK",
        "foo\nbar",    "foo|\\Abar", "[",         "foo(",           "foo\\"};

    (void)state;
    for (size_t i = 0; i < sizeof(patterns) / sizeof(patterns[0]); i++)
    requires(patterns[i], i == 19, "");
}

/* ---- lines ---- */

typedef struct run {
    csn_arena *arena;
    csn_hits hits;
    csn_line_scan scan;
} run;

static void run_start(run *r, const char *pattern, uint32_t flags, uint32_t context,
                      uint64_t max, bool simple)
{
    csn_error *err = NULL;

    *r = (run){.arena = csn_arena_new(), .hits = {.context = context, .max = max}};
    r->hits.arena = r->arena;
    if (csn_matcher_new(pattern, flags, &r->hits.matcher, &err) < 0)
        fail_msg("%s", csn_error_message(err));
    if (simple)
        csn_matcher_force_simple(r->hits.matcher);
    csn_line_scan_init(&r->scan, &r->hits);
    csn_line_scan_start(&r->scan, "f");
}

static void run_end(run *r)
{
    csn_line_scan_release(&r->scan);
    csn_matcher_free(r->hits.matcher);
    csn_arena_free(r->arena);
    free(r->hits.items);
}

/* piece 0: all at once, as the last piece. */
static void run_text(run *r, const char *text, size_t len, size_t piece)
{
    bool more = true;

    if (piece == 0) {
        char *room = csn_line_scan_room(&r->scan, len + 1);
        memcpy(room, text, len);
        csn_line_scan_took(&r->scan, len, true);
        return;
    }
    for (size_t at = 0; more && at < len; at += piece)
        more = csn_line_scan_feed(&r->scan, text + at, len - at < piece ? len - at : piece);
    csn_line_scan_end(&r->scan);
}

static void assert_same(const run *a, const run *b, const char *pattern, const char *text,
                        size_t len)
{
    bool same = a->hits.st == b->hits.st && a->hits.count == b->hits.count &&
                a->hits.truncated == b->hits.truncated;

    for (size_t i = 0; same && i < a->hits.count; i++) {
        const csn_grep_match *x = &a->hits.items[i], *y = &b->hits.items[i];
        same = x->line == y->line && x->text_len == y->text_len &&
               memcmp(x->text, y->text, x->text_len) == 0 && x->is_context == y->is_context;
    }
    if (!same)
        fail_msg("'%s' in '%.*s': %zu and %zu lines, status %d and %d", pattern, (int)len, text,
                 a->hits.count, b->hits.count, a->hits.st, b->hits.st);
}

static void random_text(char *text, size_t len)
{
    static const char *const words[] = {
        "foo", "Foo", "bar",  "ab", "kS",           "\xc3\xa9", "\xff",  " ",
        "\n",  "\n",  "\r\n", "(",  "\xe2\x84\xaa", "x",        "Error", "\xc5\xbf"};

    for (size_t i = 0; i < len;) {
        const char *w = words[pick(16)];
        for (; *w && i < len; w++)
            text[i++] = *w;
    }
}

static const char *const patterns[] = {
    "foo",           "foo|bar",  "\\w+Error",   "foo.*bar",  "^foo",        "bar$",
    "foo\\s",        "foo\\s+x", "foo[^x]bar",  "(ab)+",     "ab{2}",       "fo?o",
    "[a-z]+\\(",     "foo.bar",  "\\bfoo\\b",   "foo\\W*ab", "(?:foo|ab)x", "^$",
    "foo\\n",        "x|\\n",    "ks",          "error",     "ab\\D",       "(foo|bar)(x|ab)",
    "foo(?=\\nbar)", ".",        "(?<=foo)bar", "foo\\r$",   "\\S+ab\\S*",  "[^\\n]*foo"};

/* The fast way finds what the simple one finds, however the text is cut. */
static void every_way_finds_the_same_lines(void **state)
{
    (void)state;
    for (unsigned round = 0; round < 30000; round++) {
        const char *pattern = patterns[pick(30)];
        uint32_t flags = (pick(4) ? REGEX : 0) | (pick(3) ? 0 : NOCASE);
        uint32_t context = pick(3) ? 0 : pick(4);
        uint64_t max = pick(4) ? 1000 : 1 + pick(4);
        char text[400];
        size_t len = pick(sizeof(text));
        run fast, simple;
        random_text(text, len);
        run_start(&fast, pattern, flags, context, max, false);
        run_start(&simple, pattern, flags, context, max, true);
        /* look-around sees other lines, so the pieces must be the same */
        size_t piece =
            strstr(pattern, "(?") || strstr(pattern, "\\s+") ? 0 : pick(2) * (1 + pick(60));
        run_text(&fast, text, len, piece);
        run_text(&simple, text, len, piece == 0 ? 0 : piece);
        assert_same(&fast, &simple, pattern, text, len);
        run_end(&fast);
        run_end(&simple);
    }
}

static void pieces_do_not_matter(void **state)
{
    (void)state;
    for (unsigned round = 0; round < 3000; round++) {
        const char *pattern = (const char *const[]){"foo", "foo|bar", "^ab", "x$"}[pick(4)];
        uint32_t context = pick(3);
        char text[600];
        size_t len = pick(sizeof(text));
        run whole, cut;
        random_text(text, len);
        run_start(&whole, pattern, REGEX, context, 1000, false);
        run_start(&cut, pattern, REGEX, context, 1000, false);
        run_text(&whole, text, len, 0);
        run_text(&cut, text, len, 1 + pick(20));
        assert_same(&whole, &cut, pattern, text, len);
        run_end(&whole);
        run_end(&cut);
    }
}

static void a_nul_byte_matters_only_in_the_first_8_kib(void **state)
{
    char *text = malloc(20000);

    (void)state;
    memset(text, 'x', 20000);
    memcpy(text + 19000, "\nneedle\n", 8);
    for (size_t nul = 8191; nul <= 8192; nul++) {
        run r;
        run_start(&r, "needle", 0, 0, 10, false);
        text[nul] = '\0';
        run_text(&r, text, 20000, 0);
        assert_int_equal(r.hits.count, nul == 8192);
        text[nul] = 'x';
        run_end(&r);
    }
    free(text);
}

static void a_line_of_many_pieces_is_one_line(void **state)
{
    size_t len = 3u << 20;
    char *text = malloc(len);
    run r;

    (void)state;
    memset(text, 'a', len);
    memcpy(text, "first\n", 6);
    memcpy(text + len / 2, "needle", 6);
    memcpy(text + len - 8, "\nneedle\n", 8);
    run_start(&r, "need.e", REGEX, 0, 10, false);
    run_text(&r, text, len, 131072);
    assert_int_equal(r.hits.count, 2);
    assert_int_equal(r.hits.items[0].line, 2);
    assert_int_equal(r.hits.items[0].text_len, 65536);
    assert_int_equal(r.hits.items[1].line, 3);
    run_end(&r);
    free(text);
}

static void max_ends_a_file_in_the_middle(void **state)
{
    run r;

    (void)state;
    run_start(&r, "x", 0, 1, 2, false);
    run_text(&r, "a\nx\nb\nc\nx\nd\nx\n", 14, 0);
    assert_int_equal(r.hits.count, 5); /* a x b c x: nothing after the last match */
    assert_true(r.hits.truncated);
    assert_string_equal(r.hits.items[4].text, "x");
    run_end(&r);
}

/* A copy has its own room: both find, in turn. */
static void copies_of_a_matcher_find_the_same(void **state)
{
    csn_matcher *m = NULL;
    size_t from = 0, to = 0;

    (void)state;
    assert_int_equal(csn_matcher_new("b+", REGEX, &m, NULL), CSN_OK);
    csn_matcher *copy = csn_matcher_copy(m), *second = csn_matcher_copy(copy);
    assert_int_equal(csn_matcher_find(second, "abbc", 4, 0, &from, &to), 1);
    assert_int_equal(to, 3);
    csn_matcher_free(second);
    assert_int_equal(csn_matcher_find(copy, "abbc", 4, 0, &from, &to), 1);
    csn_matcher_free(copy);
    assert_int_equal(csn_matcher_find(m, "abbc", 4, 0, &from, &to), 1);
    csn_matcher_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_string_is_found_at_every_place),
        cmocka_unit_test(lines_are_counted_and_ascii_is_seen),
        cmocka_unit_test(required_strings_are_read_from_expressions),
        cmocka_unit_test(expressions_that_are_not_understood_require_nothing),
        cmocka_unit_test(every_way_finds_the_same_lines),
        cmocka_unit_test(pieces_do_not_matter),
        cmocka_unit_test(a_nul_byte_matters_only_in_the_first_8_kib),
        cmocka_unit_test(a_line_of_many_pieces_is_one_line),
        cmocka_unit_test(max_ends_a_file_in_the_middle),
        cmocka_unit_test(copies_of_a_matcher_find_the_same),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
