/* layers_copy.c: copies of workspaces and of upper layers, as root and as an ordinary user. */
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mount.h>
#include <sys/resource.h>

#include <cmocka.h>

#include "child.h"
#include "layer_world.h"
#include "layers/copy_tree.h"

#define DEEP 1000

static layer_world lw;
static int from = -1, to = -1;

static int setup(void **state)
{
    (void)state;
    world_make(&lw, 0);
    world_dir(&lw, "to");
    from = openat(lw.top_fd, "base", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    to = openat(lw.top_fd, "to", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
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
    close(from);
    close(to);
    world_wipe(&lw);
    if (getuid() == 0)
        must(seteuid(0) == 0 && setegid(0) == 0, "seteuid");
    return 0;
}

static csn_tree_copied copy(unsigned flags)
{
    csn_tree_copied done = {0};

    assert_int_equal(csn_tree_copy(from, to, flags, &done), 0);
    return done;
}

static struct stat stat_of(int dir, const char *path)
{
    struct stat st = {0};

    must(fstatat(dir, path, &st, AT_SYMLINK_NOFOLLOW) == 0, path);
    return st;
}

static bool exists(const char *path)
{
    struct stat st;

    return fstatat(to, path, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

static void assert_content(const char *path, const char *text)
{
    char buf[128] = "";
    int fd = openat(to, path, O_RDONLY | O_CLOEXEC);

    assert_true(fd >= 0);
    assert_true(read(fd, buf, sizeof(buf) - 1) >= 0);
    close(fd);
    assert_string_equal(buf, text);
}

static void assert_xattr(const char *path, const char *name, const char *value)
{
    char buf[32] = "";
    int fd = openat(to, path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fgetxattr(fd, name, buf, sizeof(buf) - 1);

    close(fd);
    if (!value) {
        assert_int_equal(n, -1);
        return;
    }
    assert_int_equal(n, strlen(value));
    assert_string_equal(buf, value);
}

static void assert_same_time(const char *path)
{
    struct stat a = stat_of(from, path), b = stat_of(to, path);

    assert_int_equal(a.st_mtim.tv_sec, b.st_mtim.tv_sec);
    assert_int_equal(a.st_mtim.tv_nsec, b.st_mtim.tv_nsec);
}

/* ---- tests; each as root and as user ---- */

static void copy_keeps_files_links_modes_times_and_attributes(void **state)
{
    (void)state;
    world_file(&lw, "base/d/e/f", "text\n");
    world_xattr(&lw, "base/d/e/f", "user.t", "v");
    world_xattr(&lw, "base/d", "user.d", "w");
    put_link(lw.top_fd, "../nowhere", "base/d/link");
    world_time(lw.top_fd, "base/d/link", 1234);
    must(fchmodat(from, "d/e/f", 0640, 0) == 0 && fchmodat(from, "d", 0750, 0) == 0, "chmod");
    world_time(from, "d/e", 77);
    world_time(from, "d", 78);
    world_time(from, ".", 79);
    csn_tree_copied done = copy(0);
    assert_int_equal(done.entries, 4);
    assert_true(done.how == CSN_COPY_COPIED || done.how == CSN_COPY_REFLINKED);
    assert_content("d/e/f", "text\n");
    assert_int_equal(stat_of(to, "d/e/f").st_mode & 07777, 0640);
    assert_int_equal(stat_of(to, "d").st_mode & 07777, 0750);
    assert_xattr("d/e/f", "user.t", "v");
    assert_xattr("d", "user.d", "w");
    static const char *const paths[] = {"d/e/f", "d/link", "d/e", "d", "."};
    for (size_t i = 0; i < 5; i++)
        assert_same_time(paths[i]);
    char text[32] = "";
    assert_int_equal(readlinkat(to, "d/link", text, sizeof(text)), 10);
    assert_string_equal(text, "../nowhere");
    assert_int_equal(stat_of(to, "d/e/f").st_uid, geteuid());
}

static void copy_keeps_hard_links_and_leaves_no_trace_of_the_work(void **state)
{
    (void)state;
    world_file(&lw, "base/a", "one");
    world_dir(&lw, "base/d");
    must(linkat(from, "a", from, "d/b", 0) == 0 && linkat(from, "a", from, "d/c", 0) == 0,
         "link");
    world_file(&lw, "base/outside", "two");
    must(linkat(from, "outside", lw.top_fd, "other", 0) == 0, "link");
    csn_tree_copied done = copy(0);
    assert_int_equal(done.entries, 5);
    struct stat a = stat_of(to, "a");
    assert_int_equal(a.st_nlink, 3);
    assert_int_equal(stat_of(to, "d/b").st_ino, a.st_ino);
    assert_int_equal(stat_of(to, "d/c").st_ino, a.st_ino);
    assert_int_not_equal(stat_of(from, "a").st_ino, a.st_ino);
    assert_int_equal(stat_of(to, "outside").st_nlink, 1);
    assert_int_equal(stat_of(to, ".").st_nlink, stat_of(from, ".").st_nlink);
}

static void copy_keeps_holes(void **state)
{
    (void)state;
    world_file(&lw, "base/f", "");
    int fd = openat(from, "f", O_WRONLY | O_CLOEXEC);
    must(pwrite(fd, "x", 1, 8 << 20) == 1 && ftruncate(fd, 16 << 20) == 0, "sparse");
    close(fd);
    copy(0);
    struct stat st = stat_of(to, "f");
    assert_int_equal(st.st_size, 16 << 20);
    assert_true(st.st_blocks * 512 < 1 << 20);
    char x = 0;
    fd = openat(to, "f", O_RDONLY | O_CLOEXEC);
    assert_int_equal(pread(fd, &x, 1, 8 << 20), 1);
    close(fd);
    assert_int_equal(x, 'x');
}

static void copy_reads_what_its_owner_may_not(void **state)
{
    (void)state;
    world_file(&lw, "base/d/e/f", "text");
    world_xattr(&lw, "base/d/e/f", "user.t", "v");
    must(fchmodat(from, "d/e/f", 0, 0) == 0 && fchmodat(from, "d/e", 0, 0) == 0 &&
             fchmodat(from, "d", 0, 0) == 0,
         "chmod");
    copy(0);
    assert_int_equal(stat_of(from, "d").st_mode & 07777, 0);
    assert_int_equal(stat_of(to, "d").st_mode & 07777, 0);
    must(fchmodat(to, "d", 0700, 0) == 0 && fchmodat(from, "d", 0700, 0) == 0, "chmod");
    assert_int_equal(stat_of(from, "d/e").st_mode & 07777, 0);
    assert_int_equal(stat_of(to, "d/e").st_mode & 07777, 0);
    must(fchmodat(to, "d/e", 0700, 0) == 0 && fchmodat(from, "d/e", 0700, 0) == 0, "chmod");
    assert_int_equal(stat_of(from, "d/e/f").st_mode & 07777, 0);
    assert_int_equal(stat_of(to, "d/e/f").st_mode & 07777, 0);
    must(fchmodat(to, "d/e/f", 0600, 0) == 0, "chmod");
    assert_content("d/e/f", "text");
    assert_xattr("d/e/f", "user.t", "v");
}

static void make_special_entries(void)
{
    world_whiteout(&lw, "base/gone");
    world_opaque(&lw, "base/d");
    world_whiteout(&lw, "base/d/inner");
    world_file(&lw, "base/set", "x");
    must(mkfifoat(from, "fifo", 0640) == 0 && mknodat(from, "sock", S_IFSOCK | 0600, 0) == 0 &&
             fchmodat(from, "set", 06755, 0) == 0,
         "special");
}

static void copy_of_a_workspace_leaves_special_entries_out(void **state)
{
    (void)state;
    make_special_entries();
    csn_tree_copied done = copy(0);
    assert_int_equal(done.special, 4);
    assert_int_equal(done.entries, 2);
    assert_false(exists("gone") || exists("fifo") || exists("sock") || exists("d/inner"));
    assert_xattr("d", "user.overlay.opaque", NULL);
    assert_int_equal(stat_of(to, "set").st_mode & 07777, 0755);
}

static void copy_of_a_layer_keeps_special_entries(void **state)
{
    (void)state;
    make_special_entries();
    csn_tree_copied done = copy(CSN_COPY_LAYER);
    assert_int_equal(done.special, 0);
    assert_int_equal(done.entries, 6);
    struct stat st = stat_of(to, "d/inner");
    assert_true(S_ISCHR(st.st_mode) && st.st_rdev == makedev(0, 0));
    st = stat_of(to, "gone");
    assert_true(S_ISCHR(st.st_mode) && st.st_rdev == makedev(0, 0));
    assert_int_equal(stat_of(to, "fifo").st_mode, S_IFIFO | 0640);
    assert_true(S_ISSOCK(stat_of(to, "sock").st_mode));
    assert_xattr("d", "user.overlay.opaque", "y");
    assert_int_equal(stat_of(to, "set").st_mode & 07777, 06755);
}

static int copy_with_few_descriptors(void *ctx)
{
    const struct rlimit few = {40, 40};

    (void)ctx;
    must(setrlimit(RLIMIT_NOFILE, &few) == 0, "setrlimit");
    /* at once: the leak checker cannot look into a process that changed its user */
    _exit(csn_tree_copy(from, to, CSN_COPY_LAYER, NULL) == 0 ? 0 : 1);
}

static void copy_of_any_depth_needs_few_descriptors(void **state)
{
    int dir = dup(from);

    (void)state;
    for (int i = 0; i < DEEP; i++) {
        must(mkdirat(dir, "abcdefghijklmnopqrstuvwxyz", 0755) == 0, "deep");
        int next = openat(dir, "abcdefghijklmnopqrstuvwxyz", O_PATH | O_CLOEXEC);
        /* after the directory, in the order of names */
        put_file(dir, "b", "x");
        close(dir);
        dir = next;
    }
    close(dir);
    csn_child_end end = csn_child_run(copy_with_few_descriptors, NULL, -1, 600000);
    assert_int_equal(end.exit_code, 0);
    dir = dup(to);
    for (int i = 0; i < DEEP; i++) {
        assert_int_equal(stat_of(dir, "b").st_size, 1);
        int next = openat(dir, "abcdefghijklmnopqrstuvwxyz", O_PATH | O_CLOEXEC);
        close(dir);
        dir = next;
        assert_true(dir >= 0);
    }
    close(dir);
}

/* Swaps a directory and a link to a place outside, a file and a fifo, until it is killed. */
static _Noreturn void swap_entries(void)
{
    for (;;) {
        (void)renameat2(from, "d", from, "link", RENAME_EXCHANGE);
        (void)renameat2(from, "f", from, "fifo", RENAME_EXCHANGE);
        (void)renameat2(from, "deep/1/2/3/4/5", from, "away", RENAME_EXCHANGE);
    }
}

static bool has_secret(const char *dir)
{
    int fd = openat(to, dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    bool has = fd >= 0 && faccessat(fd, "secret", F_OK, 0) == 0;

    if (fd >= 0)
        close(fd);
    return has;
}

static void swapped_entries_do_not_lead_out(void **state)
{
    (void)state;
    world_file(&lw, "outside/secret", "secret");
    world_file(&lw, "base/d/plain", "x");
    world_file(&lw, "base/f", "x");
    world_file(&lw, "base/deep/1/2/3/4/5/6/7/8/f", "x");
    world_file(&lw, "base/deep/z", "x");
    world_dir(&lw, "base/away");
    must(mkfifoat(from, "fifo", 0600) == 0, "fifo");
    put_link(lw.top_fd, "../outside", "base/link");
    pid_t pid = fork();
    if (pid == 0)
        swap_entries();
    for (int i = 0; i < 300; i++) {
        int rc = csn_tree_copy(from, to, 0, NULL);
        /* the link itself may be copied under either name */
        bool leaked = has_secret("d") || has_secret("link");
        bool z = exists("deep/z");
        must(csn_tree_empty(to) == 0, "empty");
        if (rc < 0 || leaked || !z) {
            kill(pid, SIGKILL);
            waitpid(pid, NULL, 0);
            fail_msg("round %d: %s%s%s", i, strerrordesc_np(-rc), leaked ? ", leaked" : "",
                     z ? "" : ", deep/z is missing");
        }
    }
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

static void files_of_others_that_cannot_be_read_are_an_error(void **state)
{
    (void)state;
    if (getuid() != 0)
        SKIP("needs root to make such a file");
    world_file(&lw, "base/f", "x");
    must(fchmodat(from, "f", 0600, 0) == 0 && seteuid(0) == 0 &&
             fchownat(from, "f", 0, 0, 0) == 0 && seteuid(WORLD_USER) == 0,
         "chown");
    assert_int_equal(csn_tree_copy(from, to, 0, NULL), -EACCES);
    must(seteuid(0) == 0, "seteuid");
}

static void root_copies_owners(void **state)
{
    (void)state;
    if (geteuid() != 0)
        SKIP("needs root");
    world_file(&lw, "base/d/f", "x");
    put_link(lw.top_fd, "x", "base/l");
    must(fchownat(from, "d/f", 5, 6, 0) == 0 && fchownat(from, "d", 7, 8, 0) == 0 &&
             fchownat(from, "l", 9, 10, AT_SYMLINK_NOFOLLOW) == 0,
         "chown");
    copy(0);
    assert_int_equal(stat_of(to, "d/f").st_uid, 5);
    assert_int_equal(stat_of(to, "d").st_gid, 8);
    assert_int_equal(stat_of(to, "l").st_uid, 9);
}

static int copy_with_mounts(void *ctx)
{
    csn_tree_copied done;
    char path[128];

    (void)ctx;
    if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
        return 77;
    snprintf(path, sizeof(path), "%s/base", lw.top);
    from = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC); /* in this namespace */
    snprintf(path, sizeof(path), "%s/base/m", lw.top);
    must(mount("none", path, "tmpfs", 0, NULL) == 0, "mount");
    put_file(from, "m/inside", "x");
    snprintf(path, sizeof(path), "%s/base/f", lw.top);
    must(mount(path, path, NULL, MS_BIND, NULL) == 0, "bind");
    if (csn_tree_copy(from, to, 0, &done) != 0)
        return 1;
    return done.other_fs == 2 && done.entries == 1 && !exists("m") && !exists("f") ? 0 : 2;
}

static void mounts_in_the_workspace_are_left_out_and_counted(void **state)
{
    (void)state;
    if (geteuid() != 0)
        SKIP("needs root");
    world_dir(&lw, "base/m");
    world_file(&lw, "base/f", "x");
    world_file(&lw, "base/g", "x");
    csn_child_end end = csn_child_run(copy_with_mounts, NULL, -1, 600000);
    if (end.exit_code == 77)
        SKIP("no mount namespace here");
    assert_int_equal(end.exit_code, 0);
}

#define BOTH(t)                                                                                \
    {#t, t, setup, teardown, NULL},                                                            \
    {                                                                                          \
#t "_as_user", t, setup_as_user, teardown, NULL                                        \
    }

int main(void)
{
    const struct CMUnitTest tests[] = {
        BOTH(copy_keeps_files_links_modes_times_and_attributes),
        BOTH(copy_keeps_hard_links_and_leaves_no_trace_of_the_work),
        BOTH(copy_keeps_holes),
        BOTH(copy_reads_what_its_owner_may_not),
        BOTH(copy_of_a_workspace_leaves_special_entries_out),
        BOTH(copy_of_a_layer_keeps_special_entries),
        BOTH(copy_of_any_depth_needs_few_descriptors),
        BOTH(swapped_entries_do_not_lead_out),
        cmocka_unit_test_setup_teardown(files_of_others_that_cannot_be_read_are_an_error,
                                        setup_as_user, teardown),
        cmocka_unit_test_setup_teardown(root_copies_owners, setup, teardown),
        cmocka_unit_test_setup_teardown(mounts_in_the_workspace_are_left_out_and_counted, setup,
                                        teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
