/* grep.c: literal and regular searches over files and trees. */
#include "conformance/conformance.h"

#define GREP(...) CSN_OPTS(csn_grep_opts, __VA_ARGS__)

static void tree(csn_fx *f)
{
    csn_fx_put(f, "a.txt", "hello world\nsecond line\nHello again\n");
    csn_fx_put(f, "b.c", "int hello(void);\r\n/* a.b */\nend without newline hello");
    csn_fx_put(f, "sub/deep/c.txt", "nothing\nhello\n");
    csn_fx_put(f, ".hidden", "hello hidden\n");
    csn_fx_putn(f, "bin", "hello\0binary\n", 13);
    csn_fx_put(f, "empty", "");
}

/* Compares the matches as "path:line:text" (context with -), joined by |. */
static void greps(csn_fx *f, const char *pattern, const csn_grep_opts *o, const char *want)
{
    AUTO(csn_grep_result, r);
    char have[2048] = "";
    size_t at = 0;

    ok(csn_grep(f->sb, pattern, o, &r, E));
    for (size_t i = 0; i < r->count; i++) {
        const csn_grep_match *m = &r->items[i];
        char sep = m->is_context ? '-' : ':';

        assert_int_equal(strlen(m->text), m->text_len);
        at += (size_t)snprintf(have + at, sizeof(have) - at, "%s%s%c%u%c%s", i ? "|" : "",
                               m->path, sep, (unsigned)m->line, sep, m->text);
    }
    assert_string_equal(have, want);
}

/* S0: grepRaw: literal substring, dotfiles included, sorted */
static void literal_is_the_default(csn_fx *f)
{
    tree(f);
    greps(f, "hello", NULL,
          ".hidden:1:hello hidden|a.txt:1:hello world|b.c:1:int hello(void);\r|"
          "b.c:3:end without newline hello|sub/deep/c.txt:2:hello");
    greps(f, "a.b", NULL, "b.c:2:/* a.b */");
    greps(f, "(void)", NULL, "b.c:1:int hello(void);\r");
    greps(f, "no such text", NULL, "");
    greps(f, "\xff", NULL, "");
}

static void ignore_case(csn_fx *f)
{
    tree(f);
    greps(f, "HELLO", GREP(.flags = CSN_GREP_IGNORE_CASE, .path = "a.txt"),
          "a.txt:1:hello world|a.txt:3:Hello again");
    greps(f, "HELLO", GREP(.path = "a.txt"), "");
}

static void regular_expressions(csn_fx *f)
{
    csn_grep_result *r = NULL;

    tree(f);
    greps(f, "^(hello|second)", GREP(.flags = CSN_GREP_REGEX, .path = "a.txt"),
          "a.txt:1:hello world|a.txt:2:second line");
    greps(f, "line$", GREP(.flags = CSN_GREP_REGEX), "a.txt:2:second line");
    greps(f, "\\bAGAIN\\b", GREP(.flags = CSN_GREP_REGEX | CSN_GREP_IGNORE_CASE),
          "a.txt:3:Hello again");
    greps(f, "world\\nsecond", GREP(.flags = CSN_GREP_REGEX),
          ""); /* a match is within a line */
    fails(CSN_INVALID, csn_grep(f->sb, "(unclosed", GREP(.flags = CSN_GREP_REGEX), &r, E));
    fails(CSN_INVALID, csn_grep(f->sb, "", NULL, &r, E));
    fails(CSN_INVALID, csn_grep(f->sb, NULL, NULL, &r, E));
    fails(CSN_INVALID, csn_grep(f->sb, "x", GREP(.flags = 1u << 30), &r, E));
}

/* A pattern that would take for ever is stopped, not waited for. */
static void hostile_regular_expression_ends(csn_fx *f)
{
    csn_grep_result *r = NULL;

    csn_fx_put(f, "f",
               "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab\n");
    fails(CSN_TOO_LARGE, csn_grep(f->sb, "^(a+)+$", GREP(.flags = CSN_GREP_REGEX), &r, E));
}

static void path_may_be_a_file_or_a_directory(csn_fx *f)
{
    csn_grep_result *r = NULL;

    tree(f);
    greps(f, "hello", GREP(.path = "sub"), "deep/c.txt:2:hello");
    greps(f, "hello", GREP(.path = "sub/deep/c.txt"), "sub/deep/c.txt:2:hello");
    fails(CSN_NOT_FOUND, csn_grep(f->sb, "x", GREP(.path = "missing"), &r, E));
}

static void glob_filters_the_files(csn_fx *f)
{
    tree(f);
    greps(f, "hello", GREP(.glob = "*.txt"), "a.txt:1:hello world|sub/deep/c.txt:2:hello");
    greps(f, "hello", GREP(.glob = "**/*.c"),
          "b.c:1:int hello(void);\r|b.c:3:end without newline hello");
    greps(f, "hello", GREP(.glob = "sub/**"), "sub/deep/c.txt:2:hello");
    greps(f, "hello", GREP(.glob = "*.{c,none}"),
          "b.c:1:int hello(void);\r|b.c:3:end without newline hello");
    greps(f, "hello", GREP(.glob = "*.none"), "");
}

static void context_lines_surround_matches(csn_fx *f)
{
    csn_fx_put(f, "n", "1\n2\nX3\n4\n5\nX6\n7\n8\n9\n10\nX11\n");
    greps(f, "X", GREP(.path = "n", .context = 1),
          "n-2-2|n:3:X3|n-4-4|n-5-5|n:6:X6|n-7-7|n-10-10|n:11:X11");
    greps(f, "X", GREP(.path = "n", .context = 2), /* each line once */
          "n-1-1|n-2-2|n:3:X3|n-4-4|n-5-5|n:6:X6|n-7-7|n-8-8|n-9-9|n-10-10|n:11:X11");
    greps(f, "X3", GREP(.path = "n", .context = 100),
          "n-1-1|n-2-2|n:3:X3|n-4-4|n-5-5|n-6-X6|n-7-7|n-8-8|n-9-9|n-10-10|n-11-X11");
}

static void max_bounds_the_matches(csn_fx *f)
{
    AUTO(csn_grep_result, r);
    AUTO(csn_grep_result, all);

    csn_fx_put(f, "n", "x\nx\nx\nx\nx\n");
    ok(csn_grep(f->sb, "x", GREP(.max = 3), &r, E));
    assert_int_equal(r->count, 3);
    assert_int_equal(r->truncated, 1);
    ok(csn_grep(f->sb, "x", GREP(.max = 6), &all, E));
    assert_int_equal(all->count, 5);
    assert_int_equal(all->truncated, 0);
}

static void ten_thousand_matches_by_default(csn_fx *f)
{
    AUTO(csn_grep_result, r);

    csn_fx_run(f, "yes | head -n 10005 > many");
    ok(csn_grep(f->sb, "y", NULL, &r, E));
    assert_int_equal(r->count, 10000);
    assert_int_equal(r->truncated, 1);
    assert_int_equal(r->items[9999].line, 10000);
}

static void binary_files_are_skipped(csn_fx *f)
{
    csn_fx_putn(f, "bin", "hello\0x\nhello\n", 14);
    csn_fx_put(f, "latin1", "hello \xe9\xff\n"); /* text, if not UTF-8 */
    AUTO(csn_grep_result, r);
    ok(csn_grep(f->sb, "hello", NULL, &r, E));
    assert_int_equal(r->count, 1);
    assert_string_equal(r->items[0].path, "latin1");
    assert_string_equal(r->items[0].text, "hello \xe9\xff");
}

static void links_and_odd_files_are_passed_over(csn_fx *f)
{
    csn_fx_run(f,
               "echo hello > real; ln -s real link; ln -s . loop; mkfifo pipe; ln -s pipe lp; "
               "mkdir d; ln -s / d/root; echo hello > 'new\nline'");
    AUTO(csn_grep_result, r);
    ok(csn_grep(f->sb, "hello", NULL, &r, E));
    assert_int_equal(r->count, 2);
    assert_string_equal(r->items[0].path, "new\nline");
    assert_string_equal(r->items[1].path, "real");
}

/* .gitignore counts only when asked for. */
static void gitignore_does_not_count(csn_fx *f)
{
    AUTO(csn_grep_result, all);

    csn_fx_put(f, ".gitignore", "*.log\nbuild/\n");
    csn_fx_put(f, "x.log", "needle\n");
    csn_fx_put(f, "build/out.c", "needle\n");
    csn_fx_put(f, "src.c", "needle\n");
    ok(csn_grep(f->sb, "needle", NULL, &all, E));
    assert_int_equal(all->count, 3);
}

static void gitignore_counts_when_asked_for(csn_fx *f)
{
    AUTO(csn_file_list, l);
    AUTO(csn_file_list, below);

    csn_fx_run(f, "mkdir -p .git/info build sub/keep");
    csn_fx_put(f, ".git/info/exclude", "excluded\n");
    csn_fx_put(f, ".git/x.c", "needle\n");
    csn_fx_put(f, ".gitignore", "*.log\nbuild/\n/sub/gen.c\n");
    csn_fx_put(f, "sub/.gitignore", "!keep.log\n");
    csn_fx_put(f, "build/out.c", "needle\n");
    csn_fx_put(f, "excluded", "needle\n");
    csn_fx_put(f, "x.log", "needle\n");
    csn_fx_put(f, "src.c", "needle\n");
    csn_fx_put(f, "sub/gen.c", "needle\n");
    csn_fx_put(f, "sub/keep.log", "needle\n");
    csn_fx_put(f, "sub/other.log", "needle\n");
    greps(f, "needle", GREP(.flags = CSN_GREP_GITIGNORE),
          "src.c:1:needle|sub/keep.log:1:needle");
    /* a search below the top obeys what stands above; a file that is named is searched */
    greps(f, "needle", GREP(.flags = CSN_GREP_GITIGNORE, .path = "sub"), "keep.log:1:needle");
    greps(f, "needle", GREP(.flags = CSN_GREP_GITIGNORE, .path = "x.log"), "x.log:1:needle");
    ok(csn_glob(f->sb, "**/*.{c,log}", NULL, CSN_FILE_GITIGNORE, &l, E));
    assert_int_equal(l->count, 2);
    assert_string_equal(l->items[0].path, "src.c");
    assert_string_equal(l->items[1].path, "sub/keep.log");
    ok(csn_glob(f->sb, "*.c", "sub", CSN_FILE_GITIGNORE, &below, E));
    assert_int_equal(below->count, 0);
}

static void long_lines_are_found_and_bounded(csn_fx *f)
{
    AUTO(csn_grep_result, r);

    csn_fx_run(f, "yes aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa | tr -d '\\n' | head -c 3000000 > long; "
                  "printf 'needle\\nsecond needle\\n' >> long");
    ok(csn_grep(f->sb, "needle", NULL, &r, E));
    assert_int_equal(r->count, 2);
    assert_int_equal(r->items[0].line, 1);
    assert_true(r->items[0].text_len <= 1048576);
    assert_int_equal(r->items[1].line, 2);
    assert_string_equal(r->items[1].text, "second needle");
}

static void many_files(csn_fx *f)
{
    AUTO(csn_grep_result, r);
    int files = csn_fx_can(f->sb, CAP_LIVE) ? 300 : 30; /* else each is a state of its own */

    csn_fx_run(f, csn_fx_keep(f, csn_test_format("mkdir d; i=100; while [ $i -lt %d ]; do "
                                                 "echo line $i > d/f$i; i=$((i+1)); done",
                                                 100 + files)));
    ok(csn_grep(f->sb, "line 11", NULL, &r, E));
    assert_int_equal(r->count, 10);
    assert_string_equal(r->items[0].path, "d/f110");
    assert_string_equal(r->items[9].path, "d/f119");
}

/* Whatever thread reads a file: grep finds in it what read may read, and nothing else. */
static void files_that_cannot_be_read_are_left_out(csn_fx *f)
{
    AUTO(csn_grep_result, r);
    AUTO(csn_read_result, locked);
    size_t files = csn_fx_can(f->sb, CAP_LIVE) ? 400 : 40;

    csn_fx_run(f, csn_fx_keep(f, csn_test_format("mkdir d; i=100; while [ $i -lt %zu ]; do "
                                                 "echo line > d/f$i; i=$((i+1)); done; "
                                                 "chmod 000 d/f*[02468]",
                                                 100 + files)));
    bool readable = csn_read(f->sb, "d/f100", NULL, &locked, NULL) == CSN_OK;
    ok(csn_grep(f->sb, "line", NULL, &r, E));
    assert_int_equal(r->count, readable ? files : files / 2);
    csn_fx_run(f, "chmod 644 d/f*");
}

const csn_conf_test csn_conf_grep[] = {
    T(literal_is_the_default),
    T(ignore_case),
    T(regular_expressions),
    T(hostile_regular_expression_ends),
    T(path_may_be_a_file_or_a_directory),
    T(glob_filters_the_files),
    T(context_lines_surround_matches),
    T(max_bounds_the_matches),
    T(ten_thousand_matches_by_default),
    T(binary_files_are_skipped),
    T(links_and_odd_files_are_passed_over),
    T(gitignore_does_not_count),
    T(gitignore_counts_when_asked_for),
    T(long_lines_are_found_and_bounded),
    T(many_files),
    T(files_that_cannot_be_read_are_left_out),
    T_END,
};
