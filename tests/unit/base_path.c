/* Paths: joining, comparing by components, names, and showing hostile bytes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/path.h"

static void check_join(const char *workdir, const char *home, const char *path,
                       const char *want)
{
    csn_autofree char *got = NULL;

    assert_int_equal(csn_path_join(workdir, home, path, &got, NULL), CSN_OK);
    assert_string_equal(got, want);
}

static void join_only_joins(void **state)
{
    (void)state;
    check_join("/w", "/h", "a/b", "/w/a/b");
    check_join("/", "/h", "a", "/a");
    check_join("/w/", "/h", "a", "/w/a");
    check_join("/w", "/h", "/abs/x", "/abs/x");
    check_join("/w", "/h", "~", "/h");
    check_join("/w", "/h", "~/x", "/h/x");
    check_join("/w", "/h", "~//x", "/h/x");
    check_join("/w", "/", "~", "/");
    check_join("/w", "/", "~/x", "/x");
    check_join("/w", "/h", "~user", "/w/~user");
    check_join("/w", "/h", "a/~", "/w/a/~");
    check_join("/w", "/h", "link/../x", "/w/link/../x");
    check_join("/w", "/h", "..", "/w/..");
    check_join("/w", "/h", ".", "/w/.");
    check_join("/w", "/h", "a/", "/w/a/");
    check_join("/w", NULL, "a", "/w/a");
}

static void join_refuses_what_no_backend_may_get(void **state)
{
    (void)state;
    char longest[5000], *got = NULL;
    csn_error *err = NULL;

    assert_int_equal(csn_path_join("/w", "/h", "", &got, NULL), CSN_INVALID);
    assert_int_equal(csn_path_join("/w", "/h", NULL, &got, NULL), CSN_INVALID);
    assert_int_equal(csn_path_join("/w", NULL, "~/x", &got, NULL), CSN_INVALID);
    assert_int_equal(csn_path_join(NULL, "/h", "x", &got, NULL), CSN_INVALID);
    memset(longest, 'a', sizeof(longest));
    longest[4096] = '\0'; /* one more than the kernel takes */
    assert_int_equal(csn_path_join("/w", "/h", longest, &got, &err), CSN_INVALID);
    assert_null(got);
    assert_non_null(strstr(csn_error_message(err), "path 'aaaa"));
    assert_true(strlen(csn_error_message(err)) < 200);
    csn_error_free(err);
    longest[4095] = '\0';
    assert_int_equal(csn_path_join("/w", "/h", longest, &got, NULL), CSN_OK);
    assert_int_equal(strlen(got), 3 + 4095);
    free(got);
}

static void check_below(const char *path, const char *dir, const char *want)
{
    const char *got = csn_path_below(path, dir);

    if (!got != !want || (got && strcmp(got, want) != 0))
        fail_msg("'%s' below '%s' gave %s", path, dir, got ? got : "NULL");
}

static void below_goes_by_whole_components(void **state)
{
    (void)state;
    check_below("/base/a/b", "/base", "a/b");
    check_below("/base", "/base", "");
    check_below("/base/", "/base", "");
    check_below("/base", "/base/", "");
    check_below("//base//a", "/base/", "a");
    check_below("/basement", "/base", NULL);
    check_below("/bas", "/base", NULL);
    check_below("/", "/base", NULL);
    check_below("/a/b", "/", "a/b");
    check_below("/", "/", "");
    check_below("/a/b", "/a/b/c", NULL);
    check_below("/base/../etc", "/base", "../etc");
}

static void check_split(const char *path, const char *dir, const char *base)
{
    csn_autofree char *got = csn_path_dir(path);

    assert_string_equal(got, dir);
    assert_string_equal(csn_path_base(path), base);
}

static void split_gives_directory_and_last_component(void **state)
{
    (void)state;
    check_split("a", ".", "a");
    check_split("a/b", "a", "b");
    check_split("a//b", "a", "b");
    check_split("/a", "/", "a");
    check_split("//a", "/", "a");
    check_split("/a/b/c", "/a/b", "c");
    check_split("a/..", "a", "..");
    check_split("a/b/", "a", "b/");
    check_split("a/", ".", "a/");
    check_split("/", "/", "/");
    check_split("", ".", "");
}

static void names_are_plain_words(void **state)
{
    (void)state;
    char name[65];

    memset(name, 'a', sizeof(name));
    name[63] = '\0';
    assert_true(csn_name_valid(name));
    name[63] = 'a';
    name[64] = '\0';
    assert_false(csn_name_valid(name));
    assert_true(csn_name_valid("A-b_c.9"));
    static const char *const bad[] = {"",    ".",   "..",  ".a",       "-a",
                                      "a/b", "a b", "a\n", "\xc3\xa9", NULL};
    for (size_t i = 0; bad[i]; i++)
        assert_false(csn_name_valid(bad[i]));
    assert_false(csn_name_valid(NULL));
}

static void ids_have_the_form_that_we_make(void **state)
{
    static const char *const good[] = {"jail-1700000000000-0a9z8b7c", "my-backend-1-aaaaaaaa",
                                       NULL};
    static const char *const bad[] = {"etc",
                                      "jail",
                                      "jail-1-aaaaaaa",
                                      "jail-1-aaaaaaaaa",
                                      "jail-1-AAAAAAAA",
                                      "jail--aaaaaaaa",
                                      "-1-aaaaaaaa",
                                      "1-aaaaaaaa",
                                      "jail-1x-aaaaaaaa",
                                      "jail-1-aaaa/aaa",
                                      "jail-1-aaaaaaaa.lock",
                                      "",
                                      NULL};

    (void)state;
    for (size_t i = 0; good[i]; i++)
        assert_true(csn_id_valid(good[i]));
    for (size_t i = 0; bad[i]; i++)
        assert_false(csn_id_valid(bad[i]));
    assert_false(csn_id_valid(NULL));
}

static void check_printable(const char *path, const char *want)
{
    csn_autofree char *got = csn_path_printable(path);

    assert_string_equal(got, want);
}

static void printable_escapes_what_a_terminal_acts_upon(void **state)
{
    (void)state;
    check_printable("plain/caf\xc3\xa9", "'plain/caf\xc3\xa9'");
    check_printable("", "''");
    check_printable(NULL, "''");
    check_printable("a\n\x1b[31m\x7f", "'a\\x0a\\x1b[31m\\x7f'");
    check_printable("it's \\", "'it\\'s \\\\'");
    check_printable("\xff\xe2\x82", "'\\xff\\xe2\\x82'");
    check_printable("\xc2\x9b"
                    "31m \xc2\xa0",
                    "'\\xc2\\x9b31m \xc2\xa0'");
}

static bool only_with_colon(const char *path)
{
    return strcmp(path, "/a:/b") == 0;
}

static void check_workspace(const char *text, const char *host, const char *inside,
                            const char *mode)
{
    char *copy = strdup(text);
    const char *in = "unset", *how = "unset";

    csn_workspace_split(copy, only_with_colon, &in, &how);
    assert_string_equal(copy, host);
    assert_string_equal(in ? in : "-", inside);
    assert_string_equal(how ? how : "-", mode);
    free(copy);
}

static void a_workspace_has_a_host_an_inside_and_a_mode(void **state)
{
    (void)state;
    check_workspace("/w", "/w", "-", "-");
    check_workspace("/w:ro", "/w", "-", "ro");
    check_workspace("/w:/in", "/w", "/in", "-");
    check_workspace("/w:/in:cow", "/w", "/in", "cow");
    check_workspace("/w:rw", "/w", "-", "rw");
    check_workspace("/w:no", "/w:no", "-", "-");
    check_workspace("/a:/b", "/a:/b", "-", "-");
    check_workspace("/a:/b:ro", "/a:/b", "-", "ro");
    check_workspace("/a:/b:/in:ro", "/a:/b", "/in", "ro");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(join_only_joins),
        cmocka_unit_test(join_refuses_what_no_backend_may_get),
        cmocka_unit_test(below_goes_by_whole_components),
        cmocka_unit_test(split_gives_directory_and_last_component),
        cmocka_unit_test(names_are_plain_words),
        cmocka_unit_test(ids_have_the_form_that_we_make),
        cmocka_unit_test(a_workspace_has_a_host_an_inside_and_a_mode),
        cmocka_unit_test(printable_escapes_what_a_terminal_acts_upon),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
