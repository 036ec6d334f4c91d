/* Three-way merges: clean ones, conflicts, and git's answers where lines are distinct. */
#include "git_fixture.h"

#include "base/error.h"
#include "random_text.h"
#include "text/merge3.h"

#define TEXT(s) ((csn_text){(s), sizeof(s) - 1})

static const csn_merge3_opts labels = {.ours = "OURS", .theirs = "THEIRS", .base = "BASE"};
static const csn_merge3_opts labels_diff3 = {"OURS", "THEIRS", "BASE", true};

static void check(csn_text base, csn_text ours, csn_text theirs, const csn_merge3_opts *opts,
                  csn_text want, size_t conflicts)
{
    csn_autobuf out;
    csn_merge3_result r = {.conflicts = 77};
    csn_error *err = NULL;

    csn_buf_init(&out, 1 << 20);
    if (csn_merge3(base, ours, theirs, opts, &out, &r, &err) != CSN_OK)
        fail_msg("%s", csn_error_message(err));
    if (!csn_text_equal(as_text(&out), want))
        fail_msg("got:\n%s\nwanted:\n%s", out.data ? out.data : "", want.data);
    assert_int_equal(r.conflicts, conflicts);
}

#define MERGE(base, ours, theirs, opts, want, n)                                               \
    check(TEXT(base), TEXT(ours), TEXT(theirs), opts, TEXT(want), n)

static void changes_of_one_side_are_taken(void **state)
{
    (void)state;
    MERGE("a\nb\nc\n", "a\nb\nc\n", "a\nX\nc\n", NULL, "a\nX\nc\n", 0);
    MERGE("a\nb\nc\n", "a\nX\nc\n", "a\nb\nc\n", NULL, "a\nX\nc\n", 0);
    MERGE("a\nb\nc\n", "X\nb\nc\n", "a\nb\nY\n", NULL, "X\nb\nY\n", 0);
    MERGE("a\nb\nc\n", "b\nc\n", "a\nb\nc\nd\n", NULL, "b\nc\nd\n", 0);
    MERGE("", "", "x", NULL, "x", 0);
    MERGE("x", "", "x", NULL, "", 0);
    MERGE("a\nb\nc", "a\nb\nc", "a\nb\nc\n", NULL, "a\nb\nc\n", 0);
}

static void the_same_change_is_taken_once(void **state)
{
    (void)state;
    MERGE("a\nb\nc\n", "a\nX\nc\n", "a\nX\nc\n", NULL, "a\nX\nc\n", 0);
    MERGE("a\nb\nc\nd\ne\n", "a\nX\nc\nd\nE\n", "a\nX\nc\nd\ne\n", NULL, "a\nX\nc\nd\nE\n", 0);
    MERGE("", "x\n", "x\n", NULL, "x\n", 0);
}

static void overlapping_and_touching_changes_conflict(void **state)
{
    (void)state;
    MERGE("a\nb\nc\n", "a\nX\nc\n", "a\nY\nc\n", &labels,
          "a\n<<<<<<< OURS\nX\n=======\nY\n>>>>>>> THEIRS\nc\n", 1);
    MERGE("a\nb\nc\nd\n", "a\nX\nc\nd\n", "a\nb\nY\nd\n", &labels,
          "a\n<<<<<<< OURS\nX\nc\n=======\nb\nY\n>>>>>>> THEIRS\nd\n", 1);
    check(TEXT("a\n"), (csn_text){0}, TEXT("b\n"), NULL, TEXT("<<<<<<<\n=======\nb\n>>>>>>>\n"),
          1);
    MERGE("", "x\n", "y", NULL, "<<<<<<<\nx\n=======\ny\n>>>>>>>\n", 1);
}

static void diff3_shows_the_base(void **state)
{
    (void)state;
    MERGE("a\nb\nc\n", "a\nX\nc\n", "a\nY\nc\n", &labels_diff3,
          "a\n<<<<<<< OURS\nX\n||||||| BASE\nb\n=======\nY\n>>>>>>> THEIRS\nc\n", 1);
    MERGE("a\nb\nc\n", "a\n1\nX\n2\nc\n", "a\n1\nY\n2\nc\n", &labels_diff3,
          "a\n<<<<<<< OURS\n1\nX\n2\n||||||| BASE\nb\n=======\n1\nY\n2\n>>>>>>> THEIRS\nc\n",
          1);
}

static void common_lines_leave_a_conflict(void **state)
{
    (void)state;
    MERGE("a\nb\nc\n", "a\n1\n2\n3\nX\nc\n", "a\n1\n2\n3\nY\nc\n", &labels,
          "a\n1\n2\n3\n<<<<<<< OURS\nX\n=======\nY\n>>>>>>> THEIRS\nc\n", 1);
    MERGE("b\n", "X\n1\n2", "Y\n1\n2", &labels,
          "<<<<<<< OURS\nX\n=======\nY\n>>>>>>> THEIRS\n1\n2", 1);
}

static void markers_end_as_the_lines_around_them(void **state)
{
    (void)state;
    MERGE("a\r\nb\r\n", "a\r\nX\r\n", "a\r\nY", &labels,
          "a\r\n<<<<<<< OURS\r\nX\r\n=======\r\nY\r\n>>>>>>> THEIRS\r\n", 1);
    MERGE("a\r\nb", "a\r\n", "a\r\nY", NULL, "a\r\n<<<<<<<\r\n=======\r\nY\r\n>>>>>>>\r\n", 1);
    MERGE("b\r\n", "", "Y", NULL, "<<<<<<<\r\n=======\r\nY\r\n>>>>>>>\r\n", 1);
    MERGE("b", "", "Y", NULL, "<<<<<<<\n=======\nY\n>>>>>>>\n", 1);
    MERGE("a\r\nb\r\n", "a\r\nX\n", "a\r\nY\r\n", NULL,
          "a\r\n<<<<<<<\nX\n=======\nY\r\n>>>>>>>\n", 1);
}

static void binary_texts_are_taken_whole_or_conflict(void **state)
{
    csn_autobuf out;
    csn_merge3_result r = {0};

    (void)state;
    MERGE("a\0\nb\n", "a\0\nb\n", "a\0\nc\n", NULL, "a\0\nc\n", 0);
    MERGE("a\0\nb\n", "X\0\nb\n", "X\0\nb\n", NULL, "X\0\nb\n", 0);
    MERGE("a\n\n\nb\0\n", "X\n\n\nb\0\n", "a\n\n\nY\0\n", &labels, "X\n\n\nb\0\n", 1);
    csn_buf_init(&out, 100);
    assert_int_equal(csn_merge3(TEXT("a\0"), TEXT("b"), TEXT("c"), NULL, &out, &r, NULL),
                     CSN_OK);
    assert_true(r.binary);
    assert_int_equal(r.conflicts, 1);
}

static void two_conflicts_are_counted(void **state)
{
    (void)state;
    MERGE("a\n1\nb\n", "A\n1\nB\n", "C\n1\nD\n", NULL,
          "<<<<<<<\nA\n=======\nC\n>>>>>>>\n1\n<<<<<<<\nB\n=======\nD\n>>>>>>>\n", 2);
}

static void a_change_bridges_two_changes_of_the_other_side(void **state)
{
    (void)state;
    MERGE("1\n2\n3\n4\n5\n", "1\nX\n3\nY\n5\n", "1\nP\nQ\nR\n5\n", &labels_diff3,
          "1\n<<<<<<< OURS\nX\n3\nY\n||||||| BASE\n2\n3\n4\n=======\nP\nQ\nR\n"
          ">>>>>>> THEIRS\n5\n",
          1);
}

static void a_failed_merge_leaves_the_buffer(void **state)
{
    csn_autobuf out;
    csn_merge3_result r = {.conflicts = 77};
    csn_error *err = NULL;

    (void)state;
    csn_buf_init(&out, 20);
    assert_int_equal(csn_buf_puts(&out, "before"), 0);
    assert_int_equal(csn_merge3(TEXT("a\n"), TEXT("b\n"), TEXT("c\n"), &labels, &out, &r, &err),
                     CSN_TOO_LARGE);
    assert_string_equal(csn_error_message(err), "the merged text would be too large");
    assert_string_equal(out.data, "before");
    assert_int_equal(out.len, 6);
    assert_int_equal(out.err, 0);
    assert_int_equal(r.conflicts, 77);
    csn_error_free(err);
}

static void a_label_with_a_line_end_is_refused(void **state)
{
    csn_autobuf out;
    csn_merge3_result r;
    csn_merge3_opts bad = {.theirs = "x\ny"};

    (void)state;
    csn_buf_init(&out, 100);
    assert_int_equal(csn_merge3(TEXT("a"), TEXT("b"), TEXT("c"), &bad, &out, &r, NULL),
                     CSN_INVALID);
}

/* ---- compared with git ----------------------------------------------------------------- */

typedef struct triple {
    csn_buf base, ours, theirs;
} triple;

/* Every line is different from all others, so there is only one way to match lines. */
static void triple_make(triple *t, unsigned lines, unsigned percent)
{
    random_style s = {.distinct = true,
                      .crlf = random_below(4)   ? 0
                              : random_below(2) ? 100
                                                : 20,
                      .cut = 30};

    csn_buf_init(&t->base, 1 << 22);
    csn_buf_init(&t->ours, 1 << 22);
    csn_buf_init(&t->theirs, 1 << 22);
    random_text(&t->base, lines, &s);
    random_change(&t->ours, as_text(&t->base), percent, &s);
    if (random_below(3) == 0) /* what ours did, and more */
        random_change(&t->theirs, as_text(&t->ours), percent, &s);
    else
        random_change(&t->theirs, as_text(&t->base), percent, &s);
}

static void triple_release(triple *t)
{
    csn_buf_release(&t->base);
    csn_buf_release(&t->ours);
    csn_buf_release(&t->theirs);
}

/* The same verdict; the same bytes if it is clean, which is returned. */
static bool compare_with_git(const git_fixture *r, const triple *t)
{
    csn_autobuf out;
    csn_merge3_result result = {0};
    size_t len = 0;

    csn_buf_init(&out, 1 << 24);
    room_put_bytes(r, "base", t->base.data, t->base.len);
    room_put_bytes(r, "ours", t->ours.data, t->ours.len);
    room_put_bytes(r, "theirs", t->theirs.data, t->theirs.len);
    int code = git_try(r, ".", "merge-file ours base theirs");
    csn_autofree char *want = room_get(r->fd, "ours", &len);
    assert_in_range(code, 0, 127); /* conflicts */
    assert_int_equal(csn_merge3(as_text(&t->base), as_text(&t->ours), as_text(&t->theirs),
                                &labels, &out, &result, NULL),
                     CSN_OK);
    bool same = (code == 0) == (result.conflicts == 0) &&
                (code != 0 || csn_text_equal(as_text(&out), (csn_text){want, len}));
    if (!same)
        fail_msg("git: %d conflicts:\n%s\nhere: %zu conflicts:\n%s\nbase:\n%s\n", code, want,
                 result.conflicts, out.data ? out.data : "", t->base.data ? t->base.data : "");
    return code == 0;
}

static void distinct_lines_are_merged_as_by_git(void **state)
{
    static const unsigned lengths[] = {4, 30, 300};
    unsigned long rounds = random_setting("CSN_TEST_ROUNDS", 100), clean = 0;
    git_fixture r;

    (void)state;
    SKIP_WITHOUT_GIT();
    random_begin();
    git_room_make(&r);
    for (unsigned long i = 0; i < rounds; i++) {
        triple t;
        unsigned lines = random_below(lengths[random_below(3)]);
        triple_make(&t, lines, 1 + random_below(lines < 60 ? 20 : 5));
        clean += compare_with_git(&r, &t);
        triple_release(&t);
    }
    git_room_wipe(&r);
    print_message("# %lu of %lu were clean\n", clean, rounds);
    if (rounds >= 100) /* with fewer, chance decides */
        assert_in_range(clean, 1, rounds - 1);
}

/* Every 20th line has a line more in ours; ten lines further, one is missing in theirs. */
static void a_large_clean_merge_is_that_of_git(void **state)
{
    git_fixture r;
    triple t;

    (void)state;
    SKIP_WITHOUT_GIT();
    git_room_make(&r);
    csn_buf_init(&t.base, 1 << 22);
    csn_buf_init(&t.ours, 1 << 22);
    csn_buf_init(&t.theirs, 1 << 22);
    for (unsigned i = 0; i < 50000; i++) {
        csn_buf *changed = i % 20 == 5 ? &t.ours : i % 20 == 15 ? &t.theirs : NULL;
        (void)csn_buf_printf(&t.base, "line %u\n", i);
        (void)csn_buf_printf(&t.ours, "line %u%s\n", i, changed == &t.ours ? "\nmore" : "");
        if (changed != &t.theirs)
            (void)csn_buf_printf(&t.theirs, "line %u\n", i);
    }
    assert_true(compare_with_git(&r, &t));
    triple_release(&t);
    git_room_wipe(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(changes_of_one_side_are_taken),
        cmocka_unit_test(the_same_change_is_taken_once),
        cmocka_unit_test(overlapping_and_touching_changes_conflict),
        cmocka_unit_test(diff3_shows_the_base),
        cmocka_unit_test(common_lines_leave_a_conflict),
        cmocka_unit_test(markers_end_as_the_lines_around_them),
        cmocka_unit_test(two_conflicts_are_counted),
        cmocka_unit_test(a_change_bridges_two_changes_of_the_other_side),
        cmocka_unit_test(binary_texts_are_taken_whole_or_conflict),
        cmocka_unit_test(a_failed_merge_leaves_the_buffer),
        cmocka_unit_test(a_label_with_a_line_end_is_refused),
        cmocka_unit_test(distinct_lines_are_merged_as_by_git),
        cmocka_unit_test(a_large_clean_merge_is_that_of_git),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
