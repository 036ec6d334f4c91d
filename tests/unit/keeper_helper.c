/* keeper_helper.c: work done by a second process while its caller goes on. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "keeper/boot/helper.h"
#include "os/affinity.h"

#define ROUNDS 200

static kp_helper helper;

static int answer(void *arg)
{
    return *(const int *)arg;
}

static void its_result_is_returned(void **state)
{
    int wanted = -EXDEV;

    (void)state;
    assert_int_equal(kp_helper_begin(&helper, answer, &wanted), 0);
    assert_int_equal(kp_helper_result(&helper), -EXDEV);
    assert_int_equal(kp_helper_join(&helper), -EXDEV);
}

static void the_caller_keeps_its_cpus(void **state)
{
    csn_affinity before, now;
    int good = 0;

    (void)state;
    csn_affinity_get(&before);
    for (int i = 0; i < ROUNDS; i++) {
        assert_int_equal(kp_helper_begin(&helper, answer, &good), 0);
        assert_int_equal(kp_helper_join(&helper), 0);
        csn_affinity_get(&now);
        assert_memory_equal(now.bits, before.bits, sizeof(now.bits));
    }
}

static int never;

static int wait_for_ever(void *arg)
{
    (void)arg;
    kp_step_await(&never);
    return 0;
}

static void a_helper_that_is_killed_is_noticed(void **state)
{
    int step = 0;

    (void)state;
    assert_int_equal(kp_helper_begin(&helper, wait_for_ever, NULL), 0);
    assert_int_equal(kill(helper.pid, SIGKILL), 0);
    assert_int_equal(kp_helper_await(&helper, &step), -EINTR);
    assert_int_equal(kp_helper_join(&helper), -EINTR);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(its_result_is_returned),
        cmocka_unit_test(the_caller_keeps_its_cpus),
        cmocka_unit_test(a_helper_that_is_killed_is_noticed),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
