/* os_helper.c: work done beside its caller, who is afterwards where it was. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>

#include "os/helper.h"

#define ROUNDS 200

static csn_helper beside;

static int answer(void *arg)
{
    return *(const int *)arg;
}

static void must_still_have(const csn_affinity *before)
{
    csn_affinity now;

    csn_affinity_get(&now);
    assert_memory_equal(now.bits, before->bits, sizeof(now.bits));
}

static void its_answer_is_told(void **state)
{
    int wanted = -EXDEV;

    (void)state;
    assert_int_equal(csn_helper_begin(&beside, answer, &wanted), 0);
    assert_int_equal(csn_helper_result(&beside), -EXDEV);
    assert_int_equal(csn_helper_join(&beside), -EXDEV);
}

/* It may have its first processor long after the caller is back, and must not send it away
 * then: the caller and all it starts would do without that processor for good. */
static void a_caller_that_is_back_keeps_its_processors(void **state)
{
    csn_affinity before;
    int good = 0;

    (void)state;
    csn_affinity_get(&before);
    for (int i = 0; i < ROUNDS; i++) {
        assert_int_equal(csn_helper_begin_here(&beside, answer, &good), 0);
        csn_helper_back(&beside);
        assert_int_equal(csn_helper_join(&beside), 0);
        must_still_have(&before);
    }
}

static void a_caller_that_has_waited_gets_them_back(void **state)
{
    csn_affinity before;
    int good = 0;

    (void)state;
    csn_affinity_get(&before);
    for (int i = 0; i < ROUNDS; i++) {
        assert_int_equal(csn_helper_begin_here(&beside, answer, &good), 0);
        assert_int_equal(csn_helper_result(&beside), 0);
        csn_helper_back(&beside);
        must_still_have(&before);
        assert_int_equal(csn_helper_join(&beside), 0);
        must_still_have(&before);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(its_answer_is_told),
        cmocka_unit_test(a_caller_that_is_back_keeps_its_processors),
        cmocka_unit_test(a_caller_that_has_waited_gets_them_back),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
