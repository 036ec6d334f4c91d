/* os_spawn_fault.c: starts of programs that come to nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <unistd.h>

#include "child.h"
#include "fault.h"
#include "os/spawn.h"
#include "skip.h"

#define NO_FILTERS 77

/* A start that comes to nothing keeps the next one waiting for nobody, though nobody has looked
 * yet how it went. Twice, so that what the first one left is seen too. */
static int begin_two_that_fail(void *ctx)
{
    const char *argv[] = {"x", NULL};
    const fault *cannot = ctx;
    csn_spawn_namespaces w = {
        .become = cannot->nr == SYS_setgroups, .uid = 54321, .gid = 54321};
    csn_spawn_opts o = {
        .path = "/bin/true", .argv = argv, .namespaces = &w, .fds = {-1, 0, -1}, .nfds = 3};
    csn_spawn_pending *births[2] = {NULL, NULL};
    int pidfd, before = open("/dev/null", O_RDONLY | O_CLOEXEC), bad = 0;
    pid_t pid;

    close(before);
    if (fault_inject(cannot) < 0)
        return NO_FILTERS;
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 2; i++)
            bad += csn_spawn_begin(&o, &births[i]) != 0;
        for (int i = 0; i < 2 && bad == 0; i++)
            bad += csn_spawn_finish(births[i], &pid, &pidfd, NULL) != -(int)cannot->error;
    }
    int after = open("/dev/null", O_RDONLY | O_CLOEXEC);
    return bad == 0 && after == before ? 0 : 1;
}

/* Without an end as usual: a leak checker would need the calls that fail. */
static int begin_and_leave(void *ctx)
{
    _exit(begin_two_that_fail(ctx));
}

static void orphans_that_are_not_born_hold_up_nobody(void **state)
{
    fault cannot[] = {
        {.nr = SYS_clone, .arg = -1, .error = EAGAIN},
        {.nr = SYS_setgroups, .arg = -1, .error = EPERM},
        {.nr = SYS_recvmsg, .arg = -1, .error = ENOMEM},
        {.nr = SYS_close_range, .arg = -1, .error = ENOMEM},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cannot) / sizeof(cannot[0]); i++) {
        csn_child_end end = csn_child_run(begin_and_leave, &cannot[i], -1, 60000);
        if (end.exit_code == NO_FILTERS)
            SKIP("no seccomp filters here");
        assert_false(end.hung);
        assert_int_equal(end.exit_code, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(orphans_that_are_not_born_hold_up_nobody),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
