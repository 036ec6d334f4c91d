/* layers_usage.c: how much a tree takes, as root and as an ordinary user. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "layer_world.h"
#include "layers/usage.h"

static layer_world lw;

static int setup(void **state)
{
    (void)state;
    world_make(&lw, 0);
    return 0;
}

static int setup_as_user(void **state)
{
    if (geteuid() == 0)
        must(setegid(WORLD_USER) == 0 && seteuid(WORLD_USER) == 0, "seteuid");
    return setup(state);
}

static int teardown(void **state)
{
    (void)state;
    world_wipe(&lw);
    if (getuid() == 0)
        must(seteuid(0) == 0 && setegid(0) == 0, "seteuid");
    return 0;
}

/* A file that takes `kib`. */
static void fill(const char *path, size_t kib)
{
    static const char block[1024] = "x";
    int fd = openat(lw.top_fd, path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

    must(fd >= 0, path);
    for (size_t i = 0; i < kib; i++)
        must(write(fd, block, sizeof(block)) == (ssize_t)sizeof(block), path);
    close(fd);
}

static csn_usage measure(const char *path)
{
    csn_usage u = {0};
    int fd = openat(lw.top_fd, path, O_PATH | O_DIRECTORY | O_CLOEXEC);

    must(fd >= 0, path);
    assert_int_equal(csn_usage_measure(fd, &u), 0);
    close(fd);
    return u;
}

static void names_of_one_file_share_its_size(void **state)
{
    (void)state;
    uint64_t before = measure("base").bytes;
    fill("base/a", 1024);
    must(linkat(lw.top_fd, "base/a", lw.top_fd, "base/b", 0) == 0, "link");
    csn_usage u = measure("base");
    assert_int_equal(u.files, 2);
    assert_in_range(u.bytes - before, 1024 * 1024, 1024 * 1024 + 65536);
}

static void a_hole_takes_nothing(void **state)
{
    (void)state;
    fill("base/sparse", 0);
    int fd = openat(lw.top_fd, "base/sparse", O_WRONLY | O_CLOEXEC);
    must(ftruncate(fd, 1 << 30) == 0, "truncate");
    close(fd);
    assert_in_range(measure("base").bytes, 0, 65536);
}

static void a_directory_without_permissions_is_measured(void **state)
{
    struct stat st;

    (void)state;
    must(mkdirat(lw.top_fd, "base/d", 0700) == 0, "mkdir");
    fill("base/d/f", 1024);
    must(fchmodat(lw.top_fd, "base/d", 0, 0) == 0, "chmod");
    csn_usage u = measure("base");
    must(fstatat(lw.top_fd, "base/d", &st, 0) == 0, "stat");
    must(fchmodat(lw.top_fd, "base/d", 0700, 0) == 0, "chmod");
    assert_int_equal(st.st_mode & 07777, 0);
    assert_int_equal(u.files, 2);
    assert_in_range(u.bytes, 1024 * 1024, 1024 * 1024 + 65536);
}

static void links_are_not_followed(void **state)
{
    (void)state;
    must(mkdirat(lw.top_fd, "away", 0700) == 0, "mkdir");
    fill("away/f", 1024);
    must(symlinkat("../away", lw.top_fd, "base/link") == 0, "symlink");
    csn_usage u = measure("base");
    assert_int_equal(u.files, 1);
    assert_in_range(u.bytes, 0, 65536);
}

/* Every directory has files before and after the ones that are entered. */
static void small_steps_see_everything_once(void **state)
{
    char path[64];
    csn_usage_walk w;
    size_t steps = 0;

    (void)state;
    for (int d = 0; d < 30; d++) {
        snprintf(path, sizeof(path), "base/d%d", d);
        must(mkdirat(lw.top_fd, path, 0700) == 0, path);
        for (int f = 0; f < 20; f++) {
            snprintf(path, sizeof(path), "base/d%d/f%d", d, f);
            fill(path, 0);
        }
    }
    assert_int_equal(csn_usage_begin(&w, lw.stack.base, NULL), 0);
    for (; csn_usage_step(&w, 1) > 0; steps++)
        ;
    assert_int_equal(w.sum.files, 30 * 21);
    assert_true(steps >= 60);
    assert_int_equal(measure("base").files, 30 * 21);
}

static void only_marked_layers_count(void **state)
{
    static const char *const dirs[] = {"base/aaaa", "base/aaaa/fs", "base/aaaa/work",
                                       "base/bbbb", "base/bbbb/fs", "base/originals-x"};
    csn_usage_walk w;

    (void)state;
    for (size_t i = 0; i < sizeof(dirs) / sizeof(dirs[0]); i++)
        must(mkdirat(lw.top_fd, dirs[i], 0700) == 0, dirs[i]);
    fill("base/aaaa/by-x", 0);
    fill("base/aaaa/fs/one", 0);
    fill("base/aaaa/fs/two", 0);
    fill("base/aaaa/work/three", 0);
    fill("base/bbbb/by-y", 0);
    fill("base/bbbb/fs/four", 0);
    fill("base/originals-x/five", 0);
    assert_int_equal(csn_usage_begin(&w, lw.stack.base, "by-x"), 0);
    assert_int_equal(csn_usage_step(&w, 1000), 0);
    assert_int_equal(w.sum.files, 2);
}

static void what_is_too_deep_is_told(void **state)
{
    int fd = fcntl(lw.stack.base, F_DUPFD_CLOEXEC, 0);

    (void)state;
    for (unsigned i = 0; i < CSN_USAGE_DEPTH; i++) {
        if (i == CSN_USAGE_DEPTH - 1)
            assert_false(measure("base").too_deep);
        must(mkdirat(fd, "d", 0700) == 0, "mkdir");
        int next = openat(fd, "d", O_PATH | O_DIRECTORY | O_CLOEXEC);
        close(fd);
        fd = next;
    }
    close(fd);
    assert_true(measure("base").too_deep);
}

static void a_walk_can_end_early(void **state)
{
    csn_usage_walk w;

    (void)state;
    must(mkdirat(lw.top_fd, "base/d", 0700) == 0, "mkdir");
    fill("base/d/f", 0);
    assert_int_equal(csn_usage_begin(&w, lw.stack.base, NULL), 0);
    assert_int_equal(csn_usage_step(&w, 1), 1);
    int held = w.fds[0];
    csn_usage_end(&w);
    assert_int_equal(w.depth, 0);
    assert_int_equal(fcntl(held, F_GETFD), -1);
}

#define TEST(name)                                                                             \
    cmocka_unit_test_setup_teardown(name, setup, teardown),                                    \
    {                                                                                          \
#name " as a user", name, setup_as_user, teardown, NULL                                \
    }

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(names_of_one_file_share_its_size),
        TEST(a_hole_takes_nothing),
        TEST(a_directory_without_permissions_is_measured),
        TEST(links_are_not_followed),
        TEST(small_steps_see_everything_once),
        TEST(only_marked_layers_count),
        TEST(what_is_too_deep_is_told),
        TEST(a_walk_can_end_early),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
