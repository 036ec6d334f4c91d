/* glob.c: every form of pattern: ** * ? [..] {a,b}, dotfiles, sorted, relative to PATH. */
#include "conformance/conformance.h"

static void tree(csn_fx *f)
{
    csn_fx_run(f,
               "mkdir -p src/lib/deep .git docs 'odd [x]' && "
               "touch a.c b.c b.h c.txt .hidden src/m.c src/m.h src/lib/x.c src/lib/deep/y.c "
               "docs/r.md .git/config 'odd [x]/f*.c' 'src/{a}.c'");
}

/* Runs a pattern and compares the result, joined by spaces. */
static void globs(csn_fx *f, const char *pattern, const char *path, const char *want)
{
    AUTO(csn_file_list, l);
    char have[1024] = "";
    size_t at = 0;

    ok(csn_glob(f->sb, pattern, path, 0, &l, E));
    for (size_t i = 0; i < l->count; i++)
        at += (size_t)snprintf(have + at, sizeof(have) - at, "%s%s", i ? " " : "",
                               l->items[i].path);
    if (strcmp(have, want) != 0)
        print_message("glob %s\n", pattern);
    assert_string_equal(have, want);
    assert_int_equal(l->truncated, 0);
}

/* S0: globInfo(pattern, path), dot: true, sorted */
static void star_matches_within_one_name(csn_fx *f)
{
    tree(f);
    globs(f, "*.c", NULL, "a.c b.c");
    globs(f, "*", NULL, ".git .hidden a.c b.c b.h c.txt docs odd [x] src");
    globs(f, "src/*.c", NULL, "src/m.c src/{a}.c");
    globs(f, "*/*.md", NULL, "docs/r.md");
    globs(f, "b.*", NULL, "b.c b.h");
    globs(f, "*.none", NULL, "");
    globs(f, "a.c", NULL, "a.c");
    globs(f, ".*", NULL, ".git .hidden");
}

static void double_star_matches_any_depth(csn_fx *f)
{
    tree(f);
    globs(f, "**/*.h", NULL, "b.h src/m.h");
    globs(f, "src/**/*.c", NULL, "src/lib/deep/y.c src/lib/x.c src/m.c src/{a}.c");
    globs(f, "**/y.c", NULL, "src/lib/deep/y.c");
    globs(f, "**/config", NULL, ".git/config");
    globs(f, "src/**", "src/lib", "");
    globs(f, "**/deep/*", NULL, "src/lib/deep/y.c");
}

static void question_mark_and_classes(csn_fx *f)
{
    tree(f);
    globs(f, "?.c", NULL, "a.c b.c");
    globs(f, "b.?", NULL, "b.c b.h");
    globs(f, "[ab].c", NULL, "a.c b.c");
    globs(f, "[!a].c", NULL, "b.c");
    globs(f, "[^a].c", NULL, "b.c");
    globs(f, "[a-c].*", NULL, "a.c b.c b.h c.txt");
    globs(f, "?", NULL, "");
}

static void braces(csn_fx *f)
{
    tree(f);
    globs(f, "*.{c,h}", NULL, "a.c b.c b.h");
    globs(f, "{a,c}.{c,txt}", NULL, "a.c c.txt");
    globs(f, "{src,docs}/*.{md,h}", NULL, "docs/r.md src/m.h");
    globs(f, "{b.h,docs/*,nope}", NULL, "b.h docs/r.md");
    globs(f, "**/{x,y}.c", NULL, "src/lib/deep/y.c src/lib/x.c");
}

static void escapes_are_literal(csn_fx *f)
{
    tree(f);
    globs(f, "odd \\[x\\]/f\\*.c", NULL, "odd [x]/f*.c");
    globs(f, "src/\\{a\\}.c", NULL, "src/{a}.c");
    globs(f, "odd [[]x]/*", NULL, "odd [x]/f*.c");
}

static void path_is_where_it_starts(csn_fx *f)
{
    csn_file_list *none = NULL;

    tree(f);
    globs(f, "*.c", "src", "m.c {a}.c");
    globs(f, "**/*.c", "src/lib", "deep/y.c x.c");
    globs(f, "*.c", "./src//", "m.c {a}.c");
    fails(CSN_NOT_FOUND, csn_glob(f->sb, "*", "missing", 0, &none, E));
    fails(CSN_WRONG_TYPE, csn_glob(f->sb, "*", "a.c", 0, &none, E));
    fails(CSN_INVALID, csn_glob(f->sb, "", NULL, 0, &none, E));
    fails(CSN_INVALID, csn_glob(f->sb, NULL, NULL, 0, &none, E));
}

static void infos_are_filled(csn_fx *f)
{
    AUTO(csn_file_list, l);

    csn_fx_run(f, "mkdir d && printf 123 > d/f && ln -s f d/l");
    ok(csn_glob(f->sb, "**", NULL, 0, &l, E));
    assert_int_equal(l->count, 3);
    assert_string_equal(l->items[0].path, "d");
    assert_int_equal(l->items[0].is_dir, 1);
    assert_string_equal(l->items[1].path, "d/f");
    assert_int_equal(l->items[1].file_size, 3);
    assert_true(l->items[1].modified_ns > 0);
    assert_int_equal(l->items[2].is_symlink, 1);
}

/* Links are shown, not followed: no loop, no way out. */
static void links_are_not_followed(csn_fx *f)
{
    csn_fx_run(f,
               "mkdir -p d && ln -s . d/loop && ln -s .. d/up && ln -s / d/root && touch d/f");
    globs(f, "**", NULL, "d d/f d/loop d/root d/up");
    globs(f, "**/passwd", NULL, "");
    globs(f, "d/root/*", NULL, "");
}

static void hostile_patterns_end(csn_fx *f)
{
    csn_file_list *l = NULL;
    char *stars = csn_fx_fill(f, 400), *braces_ = csn_fx_fill(f, 200);

    csn_fx_put(f, csn_fx_fill(f, 200), "x");
    for (size_t i = 0; i < 400; i++)
        stars[i] = i % 2 ? 'a' : '*';
    csn_conf_reset();
    (void)csn_glob(f->sb, stars, NULL, 0, &l, E); /* any answer, but one */
    csn_file_list_free(l);
    l = NULL;
    for (size_t i = 0; i < 200; i++)
        braces_[i] = "{a,b}"[i % 5];
    csn_conf_reset();
    (void)csn_glob(f->sb, braces_, NULL, 0, &l, E);
    csn_file_list_free(l);
    static const char *const broken[] = {"[", "[a", "{", "{a", "\\", "a{b,{c}", "[]"};
    for (size_t i = 0; i < sizeof(broken) / sizeof(broken[0]); i++)
        fails(CSN_INVALID, csn_glob(f->sb, broken[i], NULL, 0, &l, E));
    globs(f, "[z-a]", NULL, ""); /* an empty range matches nothing */
}

const csn_conf_test csn_conf_glob[] = {
    T(star_matches_within_one_name),
    T(double_star_matches_any_depth),
    T(question_mark_and_classes),
    T(braces),
    T(escapes_are_literal),
    T(path_is_where_it_starts),
    T(infos_are_filled),
    T(links_are_not_followed),
    T(hostile_patterns_end),
    T_END,
};
