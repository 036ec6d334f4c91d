/* commit.c: the nth allocation of a commit fails.
 *
 * n from 1 until the commit meets no failure. Afterwards, and after a recovery with memory, the
 * base is as it was or as the sandbox has it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "fault/alloc.h"
#include "unit/commit_world.h"

#define NTH_MAX 5000

static commit_world cw;

static void prepare(void)
{
    commit_make(&cw);
    PUT(&cw, "base/f=1\n2\n3\n4\nfive\n", "base/del=x", "base/tree/a=x", "base/f2d=x",
        "base/d2f/x=y", "base/closed/in=x");
    PUT(&cw, "0/f=one\n2\n3\n4\n5\n", "0/del!", "0/tree!", "0/f2d/in=side", "0/d2f=file",
        "0/new/f=z", "0/n1=hard", "0/n2&n1", "0/closed/in=new");
    PUT(&cw, "base/closed@555", "0/closed@555");
    world_xattr(&cw.lw, "0/n1", "user.color", "red");
    commit_list(&cw);
}

/* Knows the original of one file, which both sides changed. */
static csn_status original(void *ctx, const csn_layer_change *c, csn_original *ret,
                           csn_error **err)
{
    if (strcmp(c->path, "f") != 0)
        return CSN_OK;
    cw.original = "1\n2\n3\n4\n5\n";
    return commit_original(ctx, c, ret, err);
}

static csn_status plan_and_apply(csn_error **err)
{
    cw.request.original = original;
    csn_status st = csn_commit_plan_make(&cw.request, &cw.plan, err);

    return st == CSN_OK ? csn_commit_apply(&cw.request, &cw.plan, cw.store, err) : st;
}

static void a_commit_without_memory_is_all_or_nothing(void **state)
{
    csn_autofree char *after = NULL;
    bool hit = true, applied = false;
    unsigned long n;

    (void)state;
    prepare();
    csn_autofree char *before = commit_tree(&cw, "base", 0);
    assert_int_equal(plan_and_apply(NULL), CSN_OK);
    after = commit_tree(&cw, "base", 0);
    commit_wipe(&cw);
    for (n = 1; hit && n < NTH_MAX; n++) {
        csn_commit_recovery r = {0};
        csn_error *err = NULL;
        prepare();
        csn_alloc_arm(n, false);
        csn_status st = plan_and_apply(&err);
        hit = csn_alloc_disarm();
        assert_true(st != CSN_OK || !err);
        csn_error_free(err);
        assert_int_equal(csn_commit_recover(cw.store, cw.lw.stack.base, &r, NULL), CSN_OK);
        assert_int_equal(r.left, 0);
        csn_autofree char *is = commit_tree(&cw, "base", 0);
        if (strcmp(is, before) != 0 && strcmp(is, after) != 0)
            fail_msg("allocation %lu failed: the base is\n%s", n, is);
        if (st == CSN_OK || r.outcome == CSN_COMMIT_DONE)
            assert_string_equal(is, after);
        else
            assert_string_equal(is, before);
        applied = applied || r.outcome == CSN_COMMIT_DONE;
        commit_left_nothing(&cw);
        commit_wipe(&cw);
    }
    /* Some failed before the commit point, some after it. */
    assert_in_range(n, 50, NTH_MAX - 1);
    assert_true(applied);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_commit_without_memory_is_all_or_nothing),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
