/* The frame of a root that jails share: complete or not there, and never more readable than
 * what it was made of. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "backend/jail/rootfs_template.h"
#include "child.h"
#include "fault.h"
#include "os/tree.h"
#include "skip.h"

#define KEY   "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define OTHER "9999ffff"

#define NO_FILTERS 77

#define ONE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

static char top[64]; /* of one test */

/* One of the last sixteen. */
static char *room_path(const char *name)
{
    static char paths[16][256];
    static size_t next;
    char *path = paths[next++ % 16];

    snprintf(path, sizeof(paths[0]), "%s/%s", top, name);
    return path;
}

static void room_put(const char *name, const char *text)
{
    int fd = open(room_path(name), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    close(fd);
}

static const char *room_text(const char *name)
{
    static char text[256];
    int fd = open(room_path(name), O_RDONLY | O_CLOEXEC);

    assert_true(fd >= 0);
    ssize_t n = read(fd, text, sizeof(text) - 1);
    assert_true(n >= 0);
    text[n] = '\0';
    close(fd);
    return text;
}

static size_t room_count(const char *name)
{
    size_t n = 0;
    DIR *d = opendir(room_path(name));

    assert_non_null(d);
    for (const struct dirent *e; (e = readdir(d));)
        n += strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
    closedir(d);
    return n;
}

static int set_up(void **state)
{
    (void)state;
    snprintf(top, sizeof(top), "/tmp/caisson-t-XXXXXX");
    return mkdtemp(top) ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    int tmp = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int rc = csn_tree_remove_force(tmp, top + strlen("/tmp/"));
    close(tmp);
    return rc;
}

/* A directory of the host's with all that may lie in one. */
static const char *host_dir(void)
{
    static char dir[256];

    snprintf(dir, sizeof(dir), "%s", room_path("host"));
    assert_int_equal(mkdir(dir, 0755), 0);
    room_put("host/open", "open\n");
    room_put("host/closed", "closed\n");
    assert_int_equal(chmod(room_path("host/closed"), 0640), 0);
    assert_int_equal(mkfifo(room_path("host/fifo"), 0644), 0);
    return dir;
}

static int store_open(void)
{
    char *path = room_path("store");

    (void)mkdir(path, 0700);
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(fd >= 0);
    return fd;
}

static size_t make_list(csn_mount *list, const char *dir)
{
    static const char *const names[] = {"open", "closed", "fifo", "big"};
    static char file[256], from[4][256], to[4][64];
    size_t n = 0;

    snprintf(file, sizeof(file), "%s/open", dir);
    list[n++] = (csn_mount){.kind = CSN_MOUNT_TEXT, .from = "text\n", .to = "/etc/text"};
    list[n++] = (csn_mount){.kind = CSN_MOUNT_LINK, .from = "text", .to = "/etc/link"};
    list[n++] = (csn_mount){.kind = CSN_MOUNT_TEXT, .from = "", .to = "/etc/ssl/empty"};
    list[n++] = (csn_mount){.kind = CSN_MOUNT_DIR, .to = "/etc/a/b/dir"};
    list[n++] = (csn_mount){.kind = CSN_MOUNT_DIR, .to = "/etc/ssl"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        snprintf(from[i], sizeof(from[i]), "%s/%s", dir, names[i]);
        snprintf(to[i], sizeof(to[i]), "/etc/dir/%s", names[i]);
        list[n++] = (csn_mount){.kind = CSN_MOUNT_BIND, .from = from[i], .to = to[i]};
    }
    list[n++] = (csn_mount){.kind = CSN_MOUNT_BIND, .from = file, .to = "/etc/ssl/file"};
    list[n++] =
        (csn_mount){.kind = CSN_MOUNT_BIND, .from = "/nowhere/at/all", .to = "/etc/none"};
    return n;
}

static mode_t mode_of(int store, const char *path)
{
    struct stat st;

    if (fstatat(store, path, &st, AT_SYMLINK_NOFOLLOW) < 0)
        fail_msg("%s: errno %d", path, errno);
    return st.st_mode & 07777;
}

static bool is_there(int store, const char *path)
{
    return faccessat(store, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static void holds_what_it_was_made_of(void **state)
{
    csn_mount list[16];
    int store = store_open(), lock = -1;
    size_t n = make_list(list, host_dir());
    mode_t old = umask(077);

    (void)state;
    assert_int_equal(csn_rootfs_template_hold(store, KEY, &lock), -ENOENT);
    assert_int_equal(csn_rootfs_template_make(store, KEY, list, n), 0);
    umask(old);
    assert_int_equal(csn_rootfs_template_hold(store, KEY, &lock), 0);
    assert_string_equal(room_text("store/" KEY "/etc/text"), "text\n");
    assert_string_equal(room_text("store/" KEY "/etc/link"), "text\n");
    assert_string_equal(room_text("store/" KEY "/etc/ssl/file"), "open\n");
    assert_string_equal(room_text("store/" KEY "/etc/dir/closed"), "closed\n");
    assert_int_equal(mode_of(store, KEY "/etc/a/b/dir"), 0755);
    /* for a user who is not its owner, whatever the umask was */
    assert_int_equal(mode_of(store, KEY), 0755);
    assert_int_equal(mode_of(store, KEY "/etc/ssl"), 0755);
    assert_int_equal(mode_of(store, KEY "/etc/text"), 0444);
    assert_int_equal(mode_of(store, KEY "/etc/dir/open") & 0444, 0444);
    assert_int_equal(mode_of(store, KEY "/etc/dir/closed") & 0007, 0);
    assert_false(is_there(store, KEY "/etc/dir/fifo"));
    assert_false(is_there(store, KEY "/etc/none"));
    close(lock);
    close(store);
}

static void appears_complete_or_not_at_all(void **state)
{
    csn_mount list[16];
    int store = store_open(), lock = -1;
    size_t n = make_list(list, host_dir());
    int big = open(room_path("host/big"), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

    (void)state;
    assert_int_equal(ftruncate(big, 64l << 20), 0);
    close(big);
    assert_int_equal(csn_rootfs_template_make(store, KEY, list, n), -EFBIG);
    assert_int_equal(csn_rootfs_template_hold(store, KEY, &lock), -ENOENT);
    assert_int_equal(room_count("store"), 0);
    close(store);
}

/* What cannot be looked at just now is not left out for good. */
static int make_while_it_cannot_be_read(void *ctx)
{
    const fault cannot = {.nr = SYS_newfstatat, .arg = 3, .mask = AT_EMPTY_PATH, .error = EIO};
    int store = store_open();
    csn_mount list[16];
    size_t n = make_list(list, ctx);

    if (fault_inject(&cannot) < 0)
        return NO_FILTERS;
    return csn_rootfs_template_make(store, KEY, list, n) == -EIO ? 0 : 1;
}

static void is_not_kept_without_a_part(void **state)
{
    csn_child_end end =
        csn_child_run(make_while_it_cannot_be_read, (void *)(uintptr_t)host_dir(), -1, 60000);
    int store = store_open(), lock = -1;

    (void)state;
    if (end.exit_code == NO_FILTERS)
        SKIP("no seccomp filters here");
    assert_int_equal(end.exit_code, 0);
    assert_int_equal(csn_rootfs_template_hold(store, KEY, &lock), -ENOENT);
    close(store);
}

static void many_make_the_same_one(void **state)
{
    csn_mount list[16];
    int store = store_open(), status, lock = -1;
    size_t n = make_list(list, host_dir());

    (void)state;
    for (int i = 0; i < 8; i++)
        if (fork() == 0)
            _exit(csn_rootfs_template_make(store, KEY, list, n) == 0 ? 0 : 1);
    for (int i = 0; i < 8; i++) {
        assert_true(wait(&status) > 0);
        assert_int_equal(status, 0);
    }
    assert_int_equal(csn_rootfs_template_hold(store, KEY, &lock), 0);
    assert_string_equal(room_text("store/" KEY "/etc/dir/open"), "open\n");
    assert_int_equal(room_count("store"), 2); /* it, and its lock */
    close(lock);
    close(store);
}

static void age(int store, const char *name)
{
    struct timespec t[2] = {{.tv_sec = time(NULL) - 31 * 86400}, {.tv_sec = time(NULL)}};

    t[1] = t[0];
    assert_int_equal(utimensat(store, name, t, 0), 0);
}

/* A crash of the machine may have left empty files in it. */
static void one_of_an_earlier_boot_is_made_again(void **state)
{
    csn_mount list[16];
    int store = store_open(), lock = -1;
    size_t n = make_list(list, host_dir());
    struct timespec up, now, before[2];

    (void)state;
    clock_gettime(CLOCK_BOOTTIME, &up);
    clock_gettime(CLOCK_REALTIME, &now);
    before[0] = before[1] = (struct timespec){.tv_sec = now.tv_sec - up.tv_sec - 60};
    assert_int_equal(csn_rootfs_template_make(store, KEY, list, n), 0);
    assert_int_equal(unlinkat(store, KEY "/etc/text", 0), 0);
    assert_int_equal(utimensat(store, KEY, before, 0), 0);
    assert_int_equal(csn_rootfs_template_hold(store, KEY, &lock), -ENOENT);
    assert_int_equal(csn_rootfs_template_make(store, KEY, list, n), 0);
    assert_int_equal(csn_rootfs_template_hold(store, KEY, &lock), 0);
    assert_string_equal(room_text("store/" KEY "/etc/text"), "text\n");
    close(lock);
    close(store);
}

static void of_many_only_the_young_stay(void **state)
{
    csn_mount list[16];
    int store = store_open();
    size_t n = make_list(list, host_dir());
    struct timespec t[2] = {{.tv_sec = time(NULL) - 2 * 3600},
                            {.tv_sec = time(NULL) - 2 * 3600}};

    (void)state;
    for (int i = 0; i < 64; i++) {
        char key[65];
        snprintf(key, sizeof(key), "%064x", (unsigned)i);
        assert_int_equal(csn_rootfs_template_make(store, key, list, n), 0);
        assert_int_equal(utimensat(store, key, t, 0), 0);
    }
    assert_int_equal(csn_rootfs_template_make(store, KEY, list, n), 0);
    assert_true(is_there(store, KEY "/etc/text"));
    assert_false(
        is_there(store, "0000000000000000000000000000000000000000000000000000000000000000"));
    assert_false(
        is_there(store, "000000000000000000000000000000000000000000000000000000000000003f"));
    assert_int_equal(room_count("store"), 2);
    close(store);
}

static void an_old_one_goes_when_nobody_holds_it(void **state)
{
    csn_mount list[16];
    int store = store_open(), lock = -1;
    size_t n = make_list(list, host_dir());

    (void)state;
    assert_int_equal(csn_rootfs_template_make(store, KEY, list, n), 0);
    assert_int_equal(csn_rootfs_template_hold(store, KEY, &lock), 0);
    age(store, KEY);
    assert_int_equal(csn_rootfs_template_make(store, OTHER, list, n), 0);
    assert_true(is_there(store, KEY "/etc/text"));
    close(lock);
    assert_int_equal(csn_rootfs_template_make(store, "third", list, n), 0);
    assert_false(is_there(store, KEY));
    assert_true(is_there(store, OTHER "/etc/text")); /* young */
    assert_int_equal(csn_rootfs_template_hold(store, KEY, &lock), -ENOENT);
    close(store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ONE(holds_what_it_was_made_of),
        ONE(appears_complete_or_not_at_all),
        ONE(is_not_kept_without_a_part),
        ONE(many_make_the_same_one),
        ONE(one_of_an_earlier_boot_is_made_again),
        ONE(of_many_only_the_young_stay),
        ONE(an_old_one_goes_when_nobody_holds_it),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
