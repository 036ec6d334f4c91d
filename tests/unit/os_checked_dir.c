/* os_checked_dir.c: paths that lead through links, directories of others and writable ones. */
#include "os/checked_dir.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "os/tree.h"

static char top[64];

static const char *at(const char *rest)
{
    static char path[2][256];
    static int turn;

    turn = !turn;
    snprintf(path[turn], sizeof(path[turn]), "%s/%s", top, rest);
    return path[turn];
}

static int setup(void **state)
{
    (void)state;
    snprintf(top, sizeof(top), "/tmp/csn-checked.XXXXXX");
    return mkdtemp(top) ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    int tmp = open("/tmp", O_PATH | O_DIRECTORY | O_CLOEXEC);
    int rc = csn_tree_remove_force(tmp, strrchr(top, '/') + 1);
    close(tmp);
    return rc;
}

static int try(const char *path, unsigned flags, csn_dir_fault *f)
{
    int fd = csn_checked_dir_open(path, flags, f);

    if (fd >= 0) {
        assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
        close(fd);
        return 0;
    }
    return fd;
}

static void makes_private_directories_only_on_request(void **state)
{
    struct stat st;

    (void)state;
    assert_int_equal(try(at("a/b/c"), 0, NULL), -ENOENT);
    assert_int_equal(try(at("a/b/c"), CSN_CHECKED_MAKE, NULL), 0);
    assert_int_equal(stat(at("a/b"), &st), 0);
    assert_int_equal(st.st_mode & 07777, 0700);
    assert_int_equal(try(at("a//b/./c/../c/"), 0, NULL), 0);
    assert_int_equal(try("relative", CSN_CHECKED_MAKE, NULL), -EINVAL);
}

static void refuses_links_at_every_depth(void **state)
{
    static const char *const paths[] = {"link", "link/c", "link/c/d", NULL};
    csn_dir_fault f;

    (void)state;
    assert_int_equal(try(at("real/c"), CSN_CHECKED_MAKE, NULL), 0);
    assert_int_equal(symlink("real", at("link")), 0);
    for (size_t i = 0; paths[i]; i++) {
        assert_int_equal(try(at(paths[i]), CSN_CHECKED_MAKE, &f), -ELOOP);
        assert_int_equal(f.kind, CSN_DIR_FAULT_LINK);
        assert_string_equal(f.path, at("link"));
    }
    assert_int_equal(access(at("real/c/d"), F_OK), -1);
    assert_int_equal(symlink("/", at("root")), 0);
    assert_int_equal(try(at("root/tmp"), CSN_CHECKED_PARENT, &f), -ELOOP);
    assert_int_equal(symlink("gone", at("dangling")), 0);
    assert_int_equal(try(at("dangling/x"), CSN_CHECKED_MAKE, &f), -ELOOP);
    assert_int_equal(access(at("gone"), F_OK), -1);
}

static void refuses_what_others_can_write(void **state)
{
    csn_dir_fault f;

    (void)state;
    assert_int_equal(try(at("a/b"), CSN_CHECKED_MAKE, NULL), 0);
    assert_int_equal(chmod(at("a"), 0707), 0);
    assert_int_equal(try(at("a/b"), 0, &f), -EPERM);
    assert_int_equal(f.kind, CSN_DIR_FAULT_WRITABLE);
    assert_string_equal(f.path, at("a"));
    assert_int_equal(chmod(at("a"), 0700), 0);
    assert_int_equal(chmod(at("a/b"), 0720), 0); /* the last one: not even its own group */
    assert_int_equal(try(at("a/b"), 0, &f), -EPERM);
    assert_string_equal(f.path, at("a/b"));
    assert_int_equal(try("/tmp", 0, &f), -EPERM);
    assert_int_equal(try("/tmp", CSN_CHECKED_PARENT, &f), 0); /* sticky, and root's */
}

static void refuses_directories_of_other_users(void **state)
{
    csn_dir_fault f;

    (void)state;
    if (geteuid() != 0) {
        assert_int_equal(try("/usr", 0, &f), -EPERM); /* root's is not ours */
        assert_int_equal(f.kind, CSN_DIR_FAULT_OWNER);
        assert_int_equal(try("/usr", CSN_CHECKED_PARENT, &f), 0);
        return;
    }
    assert_int_equal(try(at("a/b/c"), CSN_CHECKED_MAKE, NULL), 0);
    assert_int_equal(chown(at("a/b"), 4242, 4242), 0);
    assert_int_equal(try(at("a/b/c"), 0, &f), -EPERM);
    assert_int_equal(f.kind, CSN_DIR_FAULT_OWNER);
    assert_int_equal(f.owner, 4242);
    assert_string_equal(f.path, at("a/b"));
    assert_int_equal(try(at("a/b/new/d"), CSN_CHECKED_MAKE, &f), -EPERM);
    assert_int_equal(access(at("a/b/new"), F_OK), -1); /* refused before anything is made */
}

static void refuses_files(void **state)
{
    (void)state;
    int fd = open(at("file"), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    close(fd);
    assert_int_equal(try(at("file"), CSN_CHECKED_MAKE, NULL), -ENOTDIR);
    assert_int_equal(try(at("file/x"), CSN_CHECKED_MAKE, NULL), -ENOTDIR);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(makes_private_directories_only_on_request, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(refuses_links_at_every_depth, setup, teardown),
        cmocka_unit_test_setup_teardown(refuses_what_others_can_write, setup, teardown),
        cmocka_unit_test_setup_teardown(refuses_directories_of_other_users, setup, teardown),
        cmocka_unit_test_setup_teardown(refuses_files, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
