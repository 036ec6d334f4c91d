/* layers_record.c: records of layers are replaced whole, settled in place, and removed with
 * their sandbox. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "layers/store.h"
#include "os/atomic.h"
#include "os/tree.h"

static char top[] = "/tmp/caisson-record-XXXXXX", path[sizeof(top) + 8];
static int top_fd = -1, tree = -1;

static int setup(void **state)
{
    (void)state;
    memcpy(strrchr(top, '-') + 1, "XXXXXX", 6);
    if (!mkdtemp(top))
        return -1;
    snprintf(path, sizeof(path), "%s/tree", top);
    top_fd = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (mkdir(path, 0700) < 0)
        return -1;
    tree = openat(top_fd, "tree", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return csn_layer_tree_init(tree);
}

static int teardown(void **state)
{
    (void)state;
    close(tree);
    (void)csn_tree_empty(top_fd);
    close(top_fd);
    return rmdir(top);
}

static size_t count_records(void)
{
    int fd = openat(tree, "stacks", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fdopendir(fd);
    size_t n = 0;

    assert_non_null(d);
    for (struct dirent *e; (e = readdir(d));)
        n += strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
    closedir(d);
    return n;
}

static csn_layer_record example(bool switching)
{
    static csn_layer_snapshot s = {
        .name = "first", .names = "bbbb", .created_ms = 1234567890123, .automatic = true};
    return (csn_layer_record){.names = "aaaa bbbb",
                              .since = {.tv_sec = 17, .tv_nsec = 4},
                              .switching = switching,
                              .snapshots = &s,
                              .snapshot_count = 1};
}

static void assert_example(bool switching)
{
    csn_layer_record r;

    assert_int_equal(csn_layer_record_read(tree, "one", &r), 0);
    assert_string_equal(r.names, "aaaa bbbb");
    assert_int_equal(r.since.tv_sec, 17);
    assert_int_equal(r.since.tv_nsec, 4);
    assert_int_equal(r.switching, switching);
    assert_false(r.copy);
    assert_int_equal(r.snapshot_count, 1);
    assert_string_equal(r.snapshots[0].name, "first");
    assert_string_equal(r.snapshots[0].names, "bbbb");
    assert_true(r.snapshots[0].created_ms == 1234567890123);
    assert_true(r.snapshots[0].automatic);
    csn_layer_record_release(&r);
}

static void record_is_read_as_it_was_written(void **state)
{
    csn_layer_record r = example(true);

    (void)state;
    assert_int_equal(csn_layer_record_write(tree, "one", &r), 0);
    assert_example(true);
}

static void second_write_replaces_the_record_and_leaves_no_other_file(void **state)
{
    csn_layer_record first = {.names = "cccc", .copy = true}, r = example(false);

    (void)state;
    assert_int_equal(csn_layer_record_write(tree, "one", &first), 0);
    assert_int_equal(csn_layer_record_write(tree, "one", &r), 0);
    assert_example(false);
    assert_int_equal(count_records(), 1);
}

/* A reader that has opened the old record reads that one to its end. */
static void old_record_stays_whole_for_its_reader(void **state)
{
    csn_layer_record first = {.names = "cccc"}, r = example(true);
    char before[256] = "", after[256] = "";

    (void)state;
    assert_int_equal(csn_layer_record_write(tree, "one", &first), 0);
    int fd = openat(tree, "stacks/one", O_RDONLY | O_CLOEXEC);
    assert_true(pread(fd, before, sizeof(before) - 1, 0) > 0);
    assert_int_equal(csn_layer_record_write(tree, "one", &r), 0);
    assert_true(pread(fd, after, sizeof(after) - 1, 0) > 0);
    assert_string_equal(before, after);
    close(fd);
}

static void settle_changes_only_switching(void **state)
{
    csn_layer_record r = example(true);

    (void)state;
    assert_int_equal(csn_layer_record_write(tree, "one", &r), 0);
    assert_int_equal(csn_layer_record_settle(tree, "one"), 0);
    assert_example(false);
    assert_int_equal(csn_layer_record_settle(tree, "one"), 0);
    assert_example(false);
}

static void settle_without_a_record_makes_none(void **state)
{
    (void)state;
    assert_int_equal(csn_layer_record_settle(tree, "none"), -ENOENT);
    assert_int_equal(count_records(), 0);
}

static void leave_temporary_record(void)
{
    int fd = openat(tree, "stacks/" CSN_TEMP_PREFIX "abcdefghijklm",
                    O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

    assert_true(fd >= 0);
    close(fd);
}

/* As an open does it: the lock, a layer, the record. */
static void make_sandbox(const char *id, char layer[CSN_OVERLAY_NAME + 1])
{
    const struct stat like = {.st_mode = S_IFDIR | 0755, .st_uid = geteuid()};
    csn_layer_record r = example(false);
    int lock = csn_layer_lock(tree, id);

    assert_true(lock >= 0);
    assert_int_equal(csn_layer_create(tree, id, &like, layer), 0);
    assert_int_equal(csn_layer_record_write(tree, id, &r), 0);
    close(lock);
}

static bool exists(const char *name)
{
    return faccessat(tree, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static void tree_is_removed_although_a_record_was_being_replaced(void **state)
{
    char layer[CSN_OVERLAY_NAME + 1];

    (void)state;
    make_sandbox("one", layer);
    leave_temporary_record();
    csn_layer_tree_release(path, "one");
    assert_int_equal(access(path, F_OK), -1);
}

static void tree_without_a_sandbox_is_removed(void **state)
{
    (void)state;
    csn_layer_tree_release(path, "one");
    assert_int_equal(access(path, F_OK), -1);
}

static void release_leaves_what_other_sandboxes_use(void **state)
{
    char one[CSN_OVERLAY_NAME + 1], two[CSN_OVERLAY_NAME + 1], shared[CSN_OVERLAY_NAME + 1];
    const struct stat like = {.st_mode = S_IFDIR | 0755, .st_uid = geteuid()};

    (void)state;
    make_sandbox("one", one);
    make_sandbox("two", two);
    assert_int_equal(csn_layer_create(tree, "two", &like, shared), 0);
    assert_int_equal(csn_layer_share(tree, shared), 0);
    csn_layer_tree_release(path, "two");
    assert_true(exists(one));
    assert_true(exists("lock-one"));
    assert_true(exists(shared));
    assert_false(exists(two));
    assert_false(exists("lock-two"));
    assert_example(false);
    assert_int_equal(count_records(), 1);
}

/* The lock is removed last, so a release that was killed is repeated. */
static void release_continues_one_that_was_killed(void **state)
{
    char one[CSN_OVERLAY_NAME + 1], two[CSN_OVERLAY_NAME + 1];

    (void)state;
    make_sandbox("one", one);
    make_sandbox("two", two);
    assert_int_equal(unlinkat(tree, "stacks/two", 0), 0);
    csn_layer_tree_release(path, "two");
    assert_false(exists(two));
    assert_false(exists("lock-two"));
    csn_layer_tree_release(path, "two");
    assert_true(exists(one));
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(record_is_read_as_it_was_written),
        TEST(second_write_replaces_the_record_and_leaves_no_other_file),
        TEST(old_record_stays_whole_for_its_reader),
        TEST(settle_changes_only_switching),
        TEST(settle_without_a_record_makes_none),
        TEST(tree_is_removed_although_a_record_was_being_replaced),
        TEST(tree_without_a_sandbox_is_removed),
        TEST(release_leaves_what_other_sandboxes_use),
        TEST(release_continues_one_that_was_killed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
