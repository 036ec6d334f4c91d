/* search_changed_fault.c: a scan that cannot see everything says so. */
#include "search/changed.h"

#include "child.h"
#include "fault.h"
#include "git_fixture.h"
#include "policy/protected_names.h"
#include "skip.h"

#define NO_FILTERS 77

static git_fixture r;

static int count(void *ctx, const csn_changed *hit)
{
    (void)hit;
    ++*(int *)ctx;
    return 0;
}

static int look_while_nothing_can_be_looked_at(void *ctx)
{
    const fault cannot = {
        .nr = SYS_newfstatat, .arg = 3, .mask = AT_NO_AUTOMOUNT, .error = EIO};
    static const struct timespec ever = {0};
    int told = 0;

    (void)ctx;
    if (fault_inject(&cannot) < 0)
        return NO_FILTERS;
    int rc = csn_changed_scan(r.fd, &csn_protected_name_rules, &ever, count, &told, NULL, NULL);
    return rc == -EIO && told == 0 ? 0 : 1;
}

/* It may be there: that is not the same as gone. */
static void a_name_that_cannot_be_looked_at_is_an_error(void **state)
{
    (void)state;
    git_room_make(&r);
    room_put(&r, ".bashrc", "x");
    csn_child_end end = csn_child_run(look_while_nothing_can_be_looked_at, NULL, -1, 60000);
    git_room_wipe(&r);
    if (end.exit_code == NO_FILTERS)
        SKIP("no seccomp filters here");
    assert_int_equal(end.exit_code, 0);
}

static int look_while_no_directory_can_be_opened(void *ctx)
{
    const fault cannot = {.nr = SYS_openat, .arg = 2, .mask = O_NOFOLLOW, .error = EIO};
    static const struct timespec ever = {0};
    int told = 0;

    (void)ctx;
    if (fault_inject(&cannot) < 0)
        return NO_FILTERS;
    int rc = csn_changed_scan(r.fd, &csn_protected_name_rules, &ever, count, &told, NULL, NULL);
    return rc == -EIO && told == 0 ? 0 : 1;
}

/* Only a lack of permission is told and passed by. */
static void a_directory_that_cannot_be_read_is_an_error(void **state)
{
    (void)state;
    git_room_make(&r);
    room_mkdir(&r, "a/b");
    csn_child_end end = csn_child_run(look_while_no_directory_can_be_opened, NULL, -1, 60000);
    git_room_wipe(&r);
    if (end.exit_code == NO_FILTERS)
        SKIP("no seccomp filters here");
    assert_int_equal(end.exit_code, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_name_that_cannot_be_looked_at_is_an_error),
        cmocka_unit_test(a_directory_that_cannot_be_read_is_an_error),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
