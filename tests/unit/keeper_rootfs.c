/* keeper_rootfs.c: a root is built from a list, and nothing else is left in it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "child.h"
#include "keeper/boot/rootfs.h"
#include "skip.h"

#define NO_NAMESPACES 77

static kp_rootfs work; /* too large for a stack */

static bool put(const char *path, const char *text)
{
    csn_autofd int fd = open(path, O_WRONLY | O_CLOEXEC);

    return fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
}

static bool exists(const char *path)
{
    return faccessat(AT_FDCWD, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

/* A mount namespace that we own, with one user in it. */
static bool enter_namespaces(void)
{
    char map[2][64];

    (void)signal(SIGSEGV, SIG_DFL); /* cmocka's handler would continue with the tests */
    snprintf(map[0], sizeof(map[0]), "0 %u 1", geteuid());
    snprintf(map[1], sizeof(map[1]), "0 %u 1", getegid());
    return unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0 && put("/proc/self/setgroups", "deny") &&
           put("/proc/self/uid_map", map[0]) && put("/proc/self/gid_map", map[1]);
}

/* ctx: flags of the entries. Exits directly: a leak checker would look for a /proc that is not
 * in that root. */
static int bind_many(void *ctx)
{
    static csn_mount list[64];
    static char places[64][64];
    const size_t count = sizeof(list) / sizeof(list[0]);
    size_t at = 0;

    if (!enter_namespaces())
        _exit(NO_NAMESPACES);
    for (size_t i = 0; i < count; i++) {
        snprintf(places[i], sizeof(places[i]), "/lies/in/%zu/%zu", i / 2, i % 2);
        list[i] = (csn_mount){.kind = CSN_MOUNT_BIND,
                              .flags = CSN_MOUNT_RDONLY | CSN_MOUNT_TRUSTED | *(uint32_t *)ctx,
                              .fd = -1,
                              .from = "/usr",
                              .to = places[i]};
    }
    const csn_rootfs m = {.list = list, .count = count};
    if (kp_rootfs_enter(&m, &work, &at) < 0 || kp_rootfs_join(&work, &at) < 0)
        _exit(2);
    for (size_t i = 0; i < count; i++) {
        csn_autofd int dir = open(places[i], O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (dir < 0 || faccessat(dir, "bin", F_OK, 0) < 0)
            _exit(3);
    }
    if (exists("/usr") || exists("/etc") || exists("/../usr"))
        _exit(4);
    _exit(mkdirat(AT_FDCWD, "/new", 0755) == 0 ? 5 : 0); /* the root is read-only */
}

static int proc_calls;

static int check_proc(void *arg)
{
    proc_calls++;
    return exists("/first") && !exists("/proc/second") && !exists("/third") ? *(int *)arg : -1;
}

/* ctx: what on_proc returns. */
static int call_on_proc(void *ctx)
{
    static const csn_mount list[] = {{.kind = CSN_MOUNT_DIR, .fd = -1, .to = "/first"},
                                     {.kind = CSN_MOUNT_DIR, .fd = -1, .to = "/proc/second"},
                                     {.kind = CSN_MOUNT_DIR, .fd = -1, .to = "/proc/again"},
                                     {.kind = CSN_MOUNT_DIR, .fd = -1, .to = "/third"}};
    const csn_rootfs m = {.list = list, .count = 4};
    size_t at = 0;

    if (!enter_namespaces())
        _exit(NO_NAMESPACES);
    work.on_proc = check_proc;
    work.arg = ctx;
    int rc = kp_rootfs_enter(&m, &work, &at);
    int joined = kp_rootfs_join(&work, &at);
    if ((rc < 0 ? rc : joined) != *(int *)ctx || proc_calls != 1)
        _exit(2);
    if (joined < 0)
        _exit(0);
    _exit(exists("/proc/second") && exists("/third") ? 0 : 4);
}

static void must_pass(int (*build)(void *), void *ctx)
{
    csn_child_end end = csn_child_run(build, ctx, -1, 60000);

    if (end.exit_code == NO_NAMESPACES)
        SKIP("no user namespaces here");
    assert_int_equal(end.signal, 0);
    assert_int_equal(end.exit_code, 0);
}

static void parents_are_created_and_nothing_else_is_left(void **state)
{
    (void)state;
    must_pass(bind_many, &(uint32_t){0});
}

static void so_they_are_by_the_helper(void **state)
{
    (void)state;
    for (int i = 0; i < 20; i++)
        must_pass(bind_many, &(uint32_t){CSN_MOUNT_BY_HELPER});
}

static void on_proc_is_called_once_before_proc_is_covered(void **state)
{
    int ok = 0;

    (void)state;
    must_pass(call_on_proc, &ok);
}

static void a_failure_of_on_proc_is_passed_on(void **state)
{
    int refused = -13;

    (void)state;
    must_pass(call_on_proc, &refused);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parents_are_created_and_nothing_else_is_left),
        cmocka_unit_test(so_they_are_by_the_helper),
        cmocka_unit_test(on_proc_is_called_once_before_proc_is_covered),
        cmocka_unit_test(a_failure_of_on_proc_is_passed_on),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
