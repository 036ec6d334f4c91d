/* descriptors.c: a jail in a program that has hardly a descriptor left.
 *
 * A detached jail is made, runs a command and is destroyed while the program has one free
 * descriptor, then two, and so on until all of it goes through: so each call that needs one
 * fails once. What must hold each time: it comes to an end, a failure has a message, and
 * nothing is left of what was begun: no sandbox, no runtime directory, no record, no
 * descriptor. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dirent.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "caisson/caisson.h"
#include "child.h"
#include "runtime/link.h"
#include "support/support.h"

#define TABLE    300 /* descriptors of the program; a keeper needs some of its own */
#define LEFT_MAX 100 /* by then it has gone through */
#define HANG_MS  60000
#define WENT     10 /* exit codes of one try; 0: it failed as it should */

static char *top;

/* The lowest ones stay free, as in a program that has opened many and closed a few. */
static void fill_table(unsigned left)
{
    const struct rlimit most = {TABLE, TABLE};
    int first = dup(0), fd = first;

    if (first < 0 || setrlimit(RLIMIT_NOFILE, &most) < 0)
        exit(2);
    while (fd >= 0)
        fd = dup(0);
    for (unsigned i = 0; i < left; i++)
        close(first + (int)i);
}

/* The end is cleaning up, not the test. */
static void empty_table(void)
{
    for (int fd = LEFT_MAX + 20; fd < TABLE; fd++)
        close(fd);
}

static size_t names_in(const char *dir)
{
    csn_autofree char *path = csn_test_join(top, dir);
    DIR *d = opendir(path);
    size_t n = 0;

    while (d && readdir(d))
        n++;
    if (d)
        closedir(d);
    return n > 2 ? n - 2 : 0;
}

/* Whoever removes it does so without being waited for; what nobody could remove for want of
 * descriptors goes when somebody looks which sandboxes there are. */
static bool is_clean(void)
{
    for (int i = 0; i < 3000; i++) {
        csn_sandbox_list *l = NULL;
        if (csn_sandboxes(&l, NULL) != CSN_OK || l->count != 0)
            return false;
        csn_sandbox_list_free(l);
        if (names_in("run/caisson") + names_in("state/caisson/sandboxes") == 0)
            return true;
        csn_test_nap(10);
    }
    printf("# left: %zu in the runtime directory, %zu records\n", names_in("run/caisson"),
           names_in("state/caisson/sandboxes"));
    return false;
}

static bool is_told(csn_status st, csn_error *err)
{
    const char *message = err ? csn_error_message(err) : NULL;
    bool told = csn_error_code(err) == st && message && *message;

    if (!told)
        printf("# status %d: %s\n", (int)st, message ? message : "no message");
    csn_error_free(err);
    return told;
}

static int try_with(void *ctx)
{
    csn_autofree char *ws = csn_test_join(top, "ws");
    csn_config c = {.size = sizeof(c), .backend = "jail", .workspace = ws};
    const char *const argv[] = {"true", NULL};
    unsigned left = *(const unsigned *)ctx;
    csn_exec_result *x = NULL;
    csn_sandbox *sb = NULL;
    csn_error *err = NULL;

    c.flags = CSN_OPEN_DETACHED;
    fill_table(left);
    csn_status st = csn_open(&c, &sb, &err);
    bool opened = st == CSN_OK;
    if (opened)
        st = csn_exec(sb, argv, NULL, &x, &err);
    bool told = st == CSN_OK || is_told(st, err);
    csn_exec_result_free(x);
    empty_table();
    if (opened && csn_destroy(sb, NULL) != CSN_OK)
        return 3;
    csn_close(sb);
    if (!told)
        return 4;
    if (!is_clean())
        return 5;
    return st == CSN_OK ? WENT : 0;
}

static void every_descriptor_may_be_the_last(void **state)
{
    unsigned left = LEFT_MAX;

    (void)state;
    if (csn_child_run(try_with, &left, -1, HANG_MS).exit_code != WENT) {
        print_message("# SKIP: no jail here\n");
        if (getenv("CSN_MUST_WORK"))
            fail();
        return;
    }
    for (left = 0; left < LEFT_MAX; left++) {
        csn_child_end end = csn_child_run(try_with, &left, -1, HANG_MS);
        if (end.hung || (end.exit_code != 0 && end.exit_code != WENT))
            fail_msg("%u left: exit code %d, signal %d%s", left, end.exit_code, end.signal,
                     end.hung ? ", it hung" : "");
        if (end.exit_code == WENT)
            break;
    }
    print_message("# it takes %u\n", left);
    assert_in_range(left, 5, LEFT_MAX - 1);
}

static int set_up(void **state)
{
    static const char *const dirs[][2] = {{"HOME", "home"},
                                          {"XDG_STATE_HOME", "state"},
                                          {"XDG_RUNTIME_DIR", "run"},
                                          {"TMPDIR", "tmp"},
                                          {"WORKSPACE", "ws"}};

    (void)state;
    csn_keeper_path_set(getenv("CSN_TEST_KEEPER"));
    top = csn_test_tmpdir();
    for (size_t i = 0; i < sizeof(dirs) / sizeof(dirs[0]); i++) {
        csn_autofree char *path = csn_test_join(top, dirs[i][1]);
        csn_test_mkdir(path);
        if (chmod(path, 0700) < 0 || setenv(dirs[i][0], path, 1) < 0)
            return -1;
    }
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    csn_test_remove(top);
    free(top);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_descriptor_may_be_the_last),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
