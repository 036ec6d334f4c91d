/* text.c: the nth allocation of a diff, a patch or a merge fails.
 *
 * n from 1 until the call meets no failure. Each call must say CSN_NOMEM and leave its results
 * as they were. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "fault/alloc.h"
#include "text/merge3.h"
#include "text/patch.h"

#define TEXT(s) ((csn_text){(s), sizeof(s) - 1})
#define NTH_MAX 1000

/* A conflict, a change of each side, and a part of ours in which no line is unique. */
static const csn_text base = TEXT("a\nb\nc\nd\ne\n1\n2\n1\n2\n3\nf\ng\nh\n");
static const csn_text ours = TEXT("A\nb\nc\nX\nd\ne\n2\n1\n1\n2\n2\nf\ng\nh\n");
static const csn_text theirs = TEXT("a\nb\nc\nY\nd\ne\n1\n2\n1\n2\n3\nf\ng\nH\n");

static csn_status diff(csn_buf *out, csn_error **err)
{
    csn_linediff d = {.count = 77};
    csn_status st = csn_linediff_make(base, ours, NULL, &d, err);

    (void)out;
    if (st != CSN_OK)
        assert_int_equal(d.count, 77);
    else
        csn_linediff_release(&d);
    return st;
}

static csn_status patch(csn_buf *out, csn_error **err)
{
    csn_patch_file before = {"x", S_IFREG | 0644, base}, after = {"x", S_IFLNK, ours};
    csn_patch_stat stat = {.added = 77};
    csn_status st = csn_patch_write(&before, &after, 3, out, &stat, err);

    if (st != CSN_OK)
        assert_int_equal(stat.added, 77);
    return st;
}

static csn_status merge(csn_buf *out, csn_error **err)
{
    csn_merge3_result r = {.conflicts = 77};
    csn_status st = csn_merge3(base, ours, theirs, NULL, out, &r, err);

    assert_int_equal(r.conflicts, st == CSN_OK ? 1 : 77);
    return st;
}

/* True if an allocation failed. */
static bool try_nth(csn_status (*call)(csn_buf *, csn_error **), unsigned long n, bool all)
{
    csn_autobuf out;
    csn_error *err = NULL;

    csn_buf_init(&out, 1 << 20);
    assert_int_equal(csn_buf_puts(&out, "before"), 0);
    csn_alloc_arm(n, all);
    csn_status st = call(&out, &err);
    bool hit = csn_alloc_disarm();
    assert_int_equal(st, hit ? CSN_NOMEM : CSN_OK);
    assert_int_equal(csn_error_code(err), st);
    if (hit)
        assert_string_equal(out.data, "before");
    assert_int_equal(out.err, 0);
    csn_error_free(err);
    return hit;
}

static void try_all(csn_status (*call)(csn_buf *, csn_error **))
{
    for (int all = 0; all < 2; all++) {
        unsigned long n = 1;
        while (n < NTH_MAX && try_nth(call, n, all))
            n++;
        assert_in_range(n, 5, NTH_MAX - 1);
    }
}

static void a_diff_without_memory_says_so(void **state)
{
    (void)state;
    try_all(diff);
}

static void a_patch_without_memory_leaves_the_buffer(void **state)
{
    (void)state;
    try_all(patch);
}

static void a_merge_without_memory_leaves_the_buffer(void **state)
{
    (void)state;
    try_all(merge);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_diff_without_memory_says_so),
        cmocka_unit_test(a_patch_without_memory_leaves_the_buffer),
        cmocka_unit_test(a_merge_without_memory_leaves_the_buffer),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
