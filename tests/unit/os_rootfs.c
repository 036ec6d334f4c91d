/* os_rootfs.c: a root made by two processes, whoever of them comes to an entry. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "child.h"
#include "os/rootfs.h"
#include "skip.h"

#define NO_NAMESPACES 77

static csn_rootfs_work work; /* too large for a stack */

/* The second process comes late: all that is marked is left to the first. */
static int wait_until_all_is_done(void *arg)
{
    const csn_rootfs_work *w = arg;

    csn_step_await(&w->filled);
    return 0;
}

/* Both make what the entries lie in, at the same time. */
static int wait_for_nothing(void *arg)
{
    (void)arg;
    return 0;
}

static bool put(const char *path, const char *text)
{
    csn_autofd int fd = open(path, O_WRONLY | O_CLOEXEC);

    return fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
}

/* A mount namespace that we own, with one user in it. */
static bool go_apart(void)
{
    char map[2][64];

    snprintf(map[0], sizeof(map[0]), "0 %u 1", geteuid());
    snprintf(map[1], sizeof(map[1]), "0 %u 1", getegid());
    return unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0 && put("/proc/self/setgroups", "deny") &&
           put("/proc/self/uid_map", map[0]) && put("/proc/self/gid_map", map[1]);
}

static int build_and_look(void *ctx)
{
    static csn_mount list[64];
    static char places[64][64];
    const size_t count = sizeof(list) / sizeof(list[0]);
    size_t at = 0;

    (void)signal(SIGSEGV, SIG_DFL); /* cmocka's would go on with the tests, here */
    if (!go_apart())
        return NO_NAMESPACES;
    for (size_t i = 0; i < count; i++) {
        snprintf(places[i], sizeof(places[i]), "/lies/in/%zu/%zu", i / 2, i % 2);
        list[i] =
            (csn_mount){.kind = CSN_MOUNT_BIND,
                        .flags = CSN_MOUNT_RDONLY | CSN_MOUNT_TRUSTED | CSN_MOUNT_BY_HELPER,
                        .fd = -1,
                        .from = "/usr",
                        .to = places[i]};
    }
    const csn_rootfs m = {.list = list, .count = count};
    work.then = ctx ? wait_until_all_is_done : wait_for_nothing;
    work.arg = &work;
    if (csn_rootfs_enter(&m, &at, &work) < 0 || csn_rootfs_join(&work, &at) < 0)
        return 2;
    for (size_t i = 0; i < count; i++) {
        csn_autofd int dir = open(places[i], O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (dir < 0 || faccessat(dir, "bin", F_OK, 0) < 0)
            return 3;
    }
    return 0;
}

/* Without an end as usual: a leak checker would look for a /proc that is not in that root. */
static int build_and_leave(void *ctx)
{
    _exit(build_and_look(ctx));
}

static void must_be_built(void *ctx)
{
    csn_child_end end = csn_child_run(build_and_leave, ctx, -1, 60000);

    if (end.exit_code == NO_NAMESPACES)
        SKIP("no user namespaces here");
    assert_int_equal(end.signal, 0);
    assert_int_equal(end.exit_code, 0);
}

static void marked_entries_need_nothing_to_lie_in(void **state)
{
    int late;

    (void)state;
    must_be_built(&late);
}

static void two_make_the_same_directories(void **state)
{
    (void)state;
    for (int i = 0; i < 20; i++)
        must_be_built(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(marked_entries_need_nothing_to_lie_in),
        cmocka_unit_test(two_make_the_same_directories),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
