/* os_caps.c: csn_caps_drop leaves no capability, or fails. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "child.h"
#include "os/caps.h"
#include "skip.h"

#define CAP_SYS_ADMIN 21
#define NO_SUCH_CAPS  77

/* From now on PR_CAPBSET_DROP of that capability fails. */
static int refuse_drop(uint32_t cap, unsigned error)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_prctl, 0, 5),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0])),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, PR_CAPBSET_DROP, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[1])),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, cap, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog prog = {.len = sizeof(code) / sizeof(code[0]), .filter = code};

    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return -1;
    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog);
}

static bool is_bounded(void)
{
    for (long cap = 0; cap < 64; cap++)
        if (prctl(PR_CAPBSET_READ, cap, 0L, 0L, 0L) == 1)
            return false;
    return true;
}

/* error 0: nothing is refused. */
static int drop_under(void *ctx)
{
    unsigned error = *(unsigned *)ctx;

    if (geteuid() != 0 && unshare(CLONE_NEWUSER) < 0)
        return NO_SUCH_CAPS;
    if (error != 0 && refuse_drop(CAP_SYS_ADMIN, error) < 0)
        return NO_SUCH_CAPS;
    int rc = csn_caps_drop();
    if (error == 0)
        return rc == 0 && is_bounded() ? 0 : 1;
    return rc == -(int)error ? 0 : 2;
}

static void must_hold_under(unsigned error)
{
    csn_child_end end = csn_child_run(drop_under, &error, -1, 60000);

    if (end.exit_code == NO_SUCH_CAPS)
        SKIP("no user namespaces or no seccomp filters here");
    assert_int_equal(end.exit_code, 0);
}

static void drop_leaves_no_capability(void **state)
{
    (void)state;
    must_hold_under(0);
}

/* EINVAL is also what ends the set: in the middle of it that is a lie. */
static void failed_drop_is_an_error(void **state)
{
    (void)state;
    must_hold_under(EPERM);
    must_hold_under(EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(drop_leaves_no_capability),
        cmocka_unit_test(failed_drop_is_an_error),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
