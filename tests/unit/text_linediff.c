/* Line diffs: the hunks, what they guarantee, and the bounds on hostile input. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/limits.h"
#include "random_text.h"
#include "text/linediff.h"

#define TEXT(s) ((csn_text){(s), sizeof(s) - 1})

static void check(csn_text a, csn_text b, const csn_hunk *want, size_t count)
{
    csn_linediff d = {0};

    assert_int_equal(csn_linediff_make(a, b, NULL, &d, NULL), CSN_OK);
    assert_int_equal(d.count, count);
    for (size_t i = 0; i < count; i++)
        if (memcmp(&d.hunks[i], &want[i], sizeof(*want)) != 0)
            fail_msg("hunk %zu of '%s' and '%s': %zu,%zu %zu,%zu", i, a.data, b.data,
                     d.hunks[i].a_start, d.hunks[i].a_count, d.hunks[i].b_start,
                     d.hunks[i].b_count);
    assert_false(d.coarse);
    csn_linediff_release(&d);
}

#define DIFF(a, b, ...)                                                                        \
    check(TEXT(a), TEXT(b), (const csn_hunk[]){__VA_ARGS__},                                   \
          sizeof((const csn_hunk[]){__VA_ARGS__}) / sizeof(csn_hunk))

static void equal_texts_have_no_hunks(void **state)
{
    (void)state;
    check(TEXT(""), TEXT(""), NULL, 0);
    check((csn_text){0}, TEXT(""), NULL, 0);
    check(TEXT("a\nb"), TEXT("a\nb"), NULL, 0);
    check(TEXT("a\0\n"), TEXT("a\0\n"), NULL, 0);
}

static void hunks_name_the_lines_that_differ(void **state)
{
    (void)state;
    DIFF("", "a\n", {0, 0, 0, 1});
    DIFF("a\nb", "", {0, 2, 0, 0});
    DIFF("a\nb\nc\n", "a\nX\nc\n", {1, 1, 1, 1});
    DIFF("a\nb\nc\n", "a\nc\n", {1, 1, 1, 0});
    DIFF("a\nc\n", "a\nb\nc\n", {1, 0, 1, 1});
    DIFF("a\nb\nc\nd\ne\n", "X\nb\nc\nY\nZ\ne\n", {0, 1, 0, 1}, {3, 1, 3, 2});
}

static void a_missing_line_end_and_a_carriage_return_are_differences(void **state)
{
    (void)state;
    DIFF("a\nb", "a\nb\n", {1, 1, 1, 1});
    DIFF("a\r\nb\n", "a\nb\n", {0, 1, 0, 1});
    DIFF("a\rb\n", "a\rc\n", {0, 1, 0, 1});
    DIFF("a\n\n", "a\n", {1, 1, 1, 0});
}

static void bytes_after_a_nul_are_compared(void **state)
{
    (void)state;
    DIFF("x\na\0b\n", "x\na\0c\n", {1, 1, 1, 1});
    DIFF("\0\n\0\0\n", "\0\0\n", {0, 1, 0, 0});
}

static void a_line_added_to_equal_lines_comes_after_them(void **state)
{
    (void)state;
    DIFF("a\nx\nx\nb\n", "a\nx\nx\nx\nb\n", {3, 0, 3, 1});
    DIFF("f\n}\n\ng\n}\n", "f\n}\n\nh\n}\n\ng\n}\n", {3, 0, 3, 3});
}

static void unique_lines_stay_matched_among_repeated_ones(void **state)
{
    (void)state;
    /* To move f would be shorter; but f is the line that cannot be mistaken for another. */
    DIFF("f\n}\n}\n}\n", "}\n}\n}\nf\n", {0, 0, 0, 3}, {1, 3, 4, 0});
    /* The longest chain of unique lines: b c d, without a. */
    DIFF("a\nb\nc\nd\n", "b\nc\nd\na\n", {0, 1, 0, 0}, {4, 0, 3, 1});
}

/* ---- properties ------------------------------------------------------------------------ */

static size_t offset_of(csn_text t, size_t line)
{
    size_t at = 0;

    while (line-- > 0 && at < t.len)
        at += csn_text_line_len(t, at);
    return at;
}

/* Cuts the first lines off *t. */
static csn_text take(csn_text *t, size_t lines)
{
    csn_text taken = {t->data, offset_of(*t, lines)};

    *t = (csn_text){t->data + taken.len, t->len - taken.len};
    return taken;
}

/* Order, gaps, and that replacing every hunk of a gives b. */
static void check_rebuilds(csn_text a, csn_text b, const csn_linediff *d)
{
    size_t line = 0, b_line = 0;

    for (size_t i = 0; i < d->count; i++) {
        const csn_hunk *h = &d->hunks[i];
        assert_true(h->a_count + h->b_count > 0);
        assert_true(i == 0 ? h->a_start >= line : h->a_start > line);
        assert_int_equal(h->b_start - b_line, h->a_start - line);
        assert_true(csn_text_equal(take(&a, h->a_start - line), take(&b, h->b_start - b_line)));
        (void)take(&a, h->a_count);
        (void)take(&b, h->b_count);
        line = h->a_start + h->a_count;
        b_line = h->b_start + h->b_count;
    }
    assert_true(csn_text_equal(a, b));
}

static void hunks_turn_a_into_b(void **state)
{
    static const unsigned alphabets[] = {1, 2, 5, 50, 5000};
    unsigned long rounds = random_setting("CSN_TEST_ROUNDS", 2000);

    (void)state;
    random_begin();
    for (unsigned long i = 0; i < rounds; i++) {
        random_style s = {.alphabet = alphabets[random_below(5)], .crlf = 10, .cut = 30};
        uint64_t steps = random_below(4) ? CSN_DIFF_STEPS_MAX : random_below(300);
        csn_autobuf a, b;
        csn_linediff d = {0};
        csn_buf_init(&a, 1 << 20);
        csn_buf_init(&b, 1 << 20);
        random_text(&a, random_below(60), &s);
        if (random_below(2))
            random_change(&b, as_text(&a), random_below(60), &s);
        else
            random_text(&b, random_below(60), &s);
        assert_int_equal(csn_linediff_make(as_text(&a), as_text(&b), &steps, &d, NULL), CSN_OK);
        check_rebuilds(as_text(&a), as_text(&b), &d);
        csn_linediff_release(&d);
    }
}

/* The fewest lines to remove and to add, by dynamic programming. Lines have two bytes. */
static size_t fewest_edits(csn_text a, csn_text b)
{
    size_t rows[2][64] = {{0}}, columns = b.len / 2;

    assert_true(columns < 64);
    for (size_t j = 0; j <= columns; j++)
        rows[0][j] = j;
    for (size_t i = 1; i <= a.len / 2; i++) {
        size_t *row = rows[i % 2], *above = rows[(i + 1) % 2];
        row[0] = i;
        for (size_t j = 1; j <= columns; j++) {
            row[j] = 1 + (row[j - 1] < above[j] ? row[j - 1] : above[j]);
            if (a.data[2 * i - 2] == b.data[2 * j - 2])
                row[j] = above[j - 1];
        }
    }
    return rows[a.len / 2 % 2][columns];
}

/* x and y several times, between ends that the other text does not have. */
static void put_repeated_lines(csn_buf *out, char end)
{
    csn_buf_init(out, 1000);
    (void)csn_buf_printf(out, "%c\nx\ny\n", end);
    for (unsigned n = random_below(40); n > 0; n--)
        (void)csn_buf_puts(out, random_below(3) ? "x\n" : "y\n");
    (void)csn_buf_printf(out, "y\nx\n%c\n", end);
}

static void repeated_lines_are_matched_with_the_fewest_edits(void **state)
{
    (void)state;
    random_begin();
    for (unsigned i = 0; i < 500; i++) {
        csn_autobuf a, b;
        csn_linediff d = {0};
        size_t edits = 0;
        put_repeated_lines(&a, 'a');
        put_repeated_lines(&b, 'b');
        assert_int_equal(csn_linediff_make(as_text(&a), as_text(&b), NULL, &d, NULL), CSN_OK);
        for (size_t n = 0; n < d.count; n++)
            edits += d.hunks[n].a_count + d.hunks[n].b_count;
        assert_int_equal(edits, fewest_edits(as_text(&a), as_text(&b)));
        assert_false(d.coarse);
        check_rebuilds(as_text(&a), as_text(&b), &d);
        csn_linediff_release(&d);
    }
}

/* ---- bounds ---------------------------------------------------------------------------- */

/* Lines "<prefix><number below alphabet>", in a row if alphabet is 0. */
static void many_lines(csn_buf *out, char prefix, unsigned lines, unsigned alphabet)
{
    csn_buf_init(out, 1 << 26);
    for (unsigned i = 0; i < lines; i++)
        assert_int_equal(
            csn_buf_printf(out, "%c%u\n", prefix, alphabet ? random_below(alphabet) : i), 0);
}

/* Compares, reports the time of this process and leaves the result in *ret. */
static void time_diff(const char *what, const csn_buf *a, const csn_buf *b, csn_linediff *ret)
{
    uint64_t steps = CSN_DIFF_STEPS_MAX;
    clock_t start = clock();

    assert_int_equal(csn_linediff_make(as_text(a), as_text(b), &steps, ret, NULL), CSN_OK);
    print_message("# %s: %ld ms of CPU, %llu million steps, %zu hunks%s\n", what,
                  (long)(clock() - start) / (CLOCKS_PER_SEC / 1000),
                  (unsigned long long)(CSN_DIFF_STEPS_MAX - steps) / 1000000, ret->count,
                  ret->coarse ? ", coarse" : "");
}

static void different_lines_are_one_hunk(void **state)
{
    csn_autobuf a, b;
    csn_linediff d = {0};

    (void)state;
    many_lines(&a, 'a', 200000, 0);
    many_lines(&b, 'b', 200000, 0);
    time_diff("200,000 different lines", &a, &b, &d);
    assert_int_equal(d.count, 1);
    assert_int_equal(d.hunks[0].a_count, 200000);
    assert_int_equal(d.hunks[0].b_count, 200000);
    assert_false(d.coarse); /* there is nothing to match */
    csn_linediff_release(&d);
}

/* Every 10th line is replaced, lines are unique. */
static void many_changes_between_unique_lines_are_found(void **state)
{
    csn_autobuf a, b;
    csn_linediff d = {0};

    (void)state;
    many_lines(&a, 'x', 200000, 0);
    csn_buf_init(&b, 1 << 26);
    for (unsigned i = 0; i < 200000; i++)
        assert_int_equal(csn_buf_printf(&b, "%c%u\n", i % 10 == 5 ? 'y' : 'x', i), 0);
    time_diff("200,000 unique lines, 20,000 replaced", &a, &b, &d);
    assert_int_equal(d.count, 20000);
    assert_memory_equal(&d.hunks[1], &((csn_hunk){15, 1, 15, 1}), sizeof(csn_hunk));
    assert_false(d.coarse);
    csn_linediff_release(&d);
}

/* The worst for a search: every line has partners, no alignment is good. */
static void garbage_is_compared_within_the_steps(void **state)
{
    static const unsigned alphabets[] = {2, 1000};

    (void)state;
    random_begin();
    for (unsigned i = 0; i < 2; i++) {
        csn_autobuf a, b;
        csn_linediff d = {0};
        char what[64];
        many_lines(&a, 'x', 100000, alphabets[i]);
        many_lines(&b, 'x', 100000, alphabets[i]);
        snprintf(what, sizeof(what), "100,000 of %u lines", alphabets[i]);
        time_diff(what, &a, &b, &d);
        assert_true(d.coarse);
        check_rebuilds(as_text(&a), as_text(&b), &d);
        csn_linediff_release(&d);
    }
}

/* Blocks of repeated lines that need more edits than one search makes, between unique lines. */
static void put_hard_blocks(csn_buf *out, unsigned blocks)
{
    csn_buf_init(out, 1 << 26);
    for (unsigned i = 0; i < blocks; i++) {
        (void)csn_buf_printf(out, "%u\n", i);
        for (unsigned n = 0; n < 1300; n++)
            (void)csn_buf_puts(out, random_below(2) ? "x\n" : "y\n");
    }
}

static void hard_blocks_use_up_the_steps(void **state)
{
    csn_autobuf a, b;
    csn_linediff d = {0};
    uint64_t steps = 10000000;

    (void)state;
    random_begin();
    put_hard_blocks(&a, (unsigned)random_setting("CSN_TEST_BLOCKS", 100));
    put_hard_blocks(&b, (unsigned)random_setting("CSN_TEST_BLOCKS", 100));
    time_diff("blocks of 1,300 repeated lines", &a, &b, &d);
    check_rebuilds(as_text(&a), as_text(&b), &d);
    csn_linediff_release(&d);
    assert_int_equal(csn_linediff_make(as_text(&a), as_text(&b), &steps, &d, NULL), CSN_OK);
    assert_true(d.coarse);
    assert_int_equal(steps, 0);
    csn_linediff_release(&d);
}

/* Long equal stretches on many diagonals at once. */
static void nearly_equal_lines_are_compared_within_the_steps(void **state)
{
    csn_autobuf a, b;
    csn_linediff d = {0};

    (void)state;
    random_begin();
    csn_buf_init(&a, 1 << 24);
    csn_buf_init(&b, 1 << 24);
    for (unsigned i = 0; i < 200000; i++) {
        (void)csn_buf_puts(&a, random_below(1000) ? "x\n" : "y\n");
        (void)csn_buf_puts(&b, random_below(1000) ? "x\n" : "y\n");
    }
    time_diff("200,000 nearly equal lines", &a, &b, &d);
    check_rebuilds(as_text(&a), as_text(&b), &d);
    csn_linediff_release(&d);
}

/* Lines of 16 bytes and a line end for which hash_line() gives the same hash: the second word
 * makes up for the first. The result is coarse only if they do collide. */
static void put_colliding_line(csn_buf *out, uint64_t first)
{
    const uint64_t odd = 0x9e3779b97f4a7c15u;
    uint64_t hash = (17 * odd ^ first) * odd, words[2] = {first, 0};

    words[1] = hash ^ hash >> 32 ^ 0x1234567812345678u;
    if (!memchr(words, '\n', sizeof(words))) {
        (void)csn_buf_append(out, words, sizeof(words));
        (void)csn_buf_putc(out, '\n');
    }
}

static void colliding_lines_are_one_hunk(void **state)
{
    csn_autobuf a, b;
    csn_linediff d = {0};

    (void)state;
    csn_buf_init(&a, 1 << 20);
    csn_buf_init(&b, 1 << 20);
    (void)csn_buf_puts(&b, "other\n");
    for (uint64_t i = 0; i < 200; i++) {
        put_colliding_line(&a, i << 32);
        put_colliding_line(&b, i << 32);
    }
    (void)csn_buf_puts(&a, "other\n");
    time_diff("colliding lines", &a, &b, &d);
    assert_true(d.coarse);
    assert_int_equal(d.count, 1);
    check_rebuilds(as_text(&a), as_text(&b), &d);
    csn_linediff_release(&d);
}

static void without_steps_only_the_ends_are_common(void **state)
{
    uint64_t steps = 0;
    csn_linediff d = {0};

    (void)state;
    assert_int_equal(csn_linediff_make(TEXT("a\nb\nx\nc\ny\nd\n"), TEXT("a\nc\nx\nb\ny\nd\n"),
                                       &steps, &d, NULL),
                     CSN_OK);
    assert_true(d.coarse);
    assert_int_equal(d.count, 1);
    assert_memory_equal(&d.hunks[0], &((csn_hunk){1, 3, 1, 3}), sizeof(csn_hunk));
    csn_linediff_release(&d);
}

static void too_many_lines_are_one_hunk_between_common_ends(void **state)
{
    csn_autobuf a, b;
    csn_linediff d = {0};
    size_t lines = CSN_DIFF_LINES_MAX;

    (void)state;
    csn_buf_init(&a, 1 << 24);
    csn_buf_init(&b, 1 << 24);
    (void)csn_buf_puts(&a, "first\nab\n");
    (void)csn_buf_puts(&b, "first\nb\n");
    for (size_t i = 0; i < lines; i++)
        (void)csn_buf_puts(&a, "\n");
    (void)csn_buf_puts(&a, "xlast\nend");
    (void)csn_buf_puts(&b, "last\nend");
    time_diff("too many lines", &a, &b, &d);
    assert_true(d.coarse);
    assert_int_equal(d.count, 1);
    assert_memory_equal(&d.hunks[0], &((csn_hunk){1, lines + 2, 1, 2}), sizeof(csn_hunk));
    csn_linediff_release(&d);
    time_diff("the other way round", &b, &a, &d);
    assert_int_equal(d.count, 1);
    assert_memory_equal(&d.hunks[0], &((csn_hunk){1, 2, 1, lines + 2}), sizeof(csn_hunk));
    csn_linediff_release(&d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_texts_have_no_hunks),
        cmocka_unit_test(hunks_name_the_lines_that_differ),
        cmocka_unit_test(a_missing_line_end_and_a_carriage_return_are_differences),
        cmocka_unit_test(bytes_after_a_nul_are_compared),
        cmocka_unit_test(a_line_added_to_equal_lines_comes_after_them),
        cmocka_unit_test(unique_lines_stay_matched_among_repeated_ones),
        cmocka_unit_test(hunks_turn_a_into_b),
        cmocka_unit_test(repeated_lines_are_matched_with_the_fewest_edits),
        cmocka_unit_test(different_lines_are_one_hunk),
        cmocka_unit_test(many_changes_between_unique_lines_are_found),
        cmocka_unit_test(garbage_is_compared_within_the_steps),
        cmocka_unit_test(hard_blocks_use_up_the_steps),
        cmocka_unit_test(nearly_equal_lines_are_compared_within_the_steps),
        cmocka_unit_test(colliding_lines_are_one_hunk),
        cmocka_unit_test(without_steps_only_the_ends_are_common),
        cmocka_unit_test(too_many_lines_are_one_hunk_between_common_ends),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
