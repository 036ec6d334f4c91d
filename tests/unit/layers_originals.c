/* layers_originals.c: the base's version of changed files is kept, or known to be unknown. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include <cmocka.h>

#include "base/hash.h"
#include "base/limits.h"
#include "layer_world.h"
#include "layers/originals.h"

static layer_world lw;
static int dir = -1, layer = -1;

static int setup(void **state)
{
    (void)state;
    world_make(&lw, 1);
    world_dir(&lw, "originals");
    dir = openat(lw.top_fd, "originals", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    layer = lw.stack.layers[0];
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
    close(dir);
    world_wipe(&lw);
    if (getuid() == 0)
        must(seteuid(0) == 0 && setegid(0) == 0, "seteuid");
    return 0;
}

/* ---- time ---- */

static struct timespec coarse_now(void)
{
    struct timespec t;

    must(clock_gettime(CLOCK_REALTIME_COARSE, &t) == 0, "clock");
    return t;
}

/* Returns a time that all changes before it precede: the clock of inodes has moved on. */
static struct timespec next_tick(void)
{
    struct stat before, now;

    put_file(lw.top_fd, "tick", "");
    must(fstatat(lw.top_fd, "tick", &before, 0) == 0, "tick");
    for (;;) {
        struct timespec t = coarse_now();
        put_file(lw.top_fd, "tick", "x");
        must(fstatat(lw.top_fd, "tick", &now, 0) == 0, "tick");
        if (t.tv_sec > before.st_ctim.tv_sec ||
            (t.tv_sec == before.st_ctim.tv_sec && t.tv_nsec > before.st_ctim.tv_nsec))
            return t;
    }
}

/* ---- what is known ---- */

static csn_original find(const char *path)
{
    csn_original o;

    assert_int_equal(csn_original_find(dir, path, &o), 0);
    return o;
}

static bool has_record(const char *path)
{
    char name[CSN_HASH_HEX];

    csn_hash_bytes(path, strlen(path), name);
    return faccessat(dir, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static void assert_unknown(const char *path)
{
    csn_original o = find(path);

    assert_false(o.known);
    assert_int_equal(o.content, -1);
}

static void assert_original(const char *path, const char *text)
{
    char buf[64] = "";
    csn_original o = find(path);
    struct stat st;

    assert_true(o.known);
    assert_true(o.content >= 0);
    assert_int_equal(fstat(o.content, &st), 0);
    assert_int_equal(st.st_size, strlen(text));
    assert_true(read(o.content, buf, sizeof(buf) - 1) >= 0);
    close(o.content);
    assert_string_equal(buf, text);
    assert_int_equal(o.side.size, strlen(text));
    assert_true(S_ISREG(o.side.mode));
}

static void collect(struct timespec began, size_t expected)
{
    size_t made = 99;

    assert_int_equal(csn_originals_collect(dir, layer, lw.stack.base, began, 1000, &made), 0);
    assert_int_equal(made, expected);
}

/* ---- tests; each as root and as user ---- */

static void collect_keeps_the_version_that_the_command_saw(void **state)
{
    struct stat st;

    (void)state;
    world_file(&lw, "base/d/f", "host");
    world_file(&lw, "base/untouched", "host");
    struct timespec began = next_tick();
    world_file(&lw, "0/d/f", "sandbox");
    world_file(&lw, "0/new", "sandbox");
    collect(began, 1);
    assert_original("d/f", "host");
    assert_unknown("new");
    assert_unknown("untouched");
    csn_original o = find("d/f");
    close(o.content);
    must(fstatat(lw.top_fd, "base/d/f", &st, 0) == 0, "stat");
    assert_int_equal(o.side.ino, st.st_ino);
    assert_int_equal(o.side.mode, st.st_mode);
    assert_int_equal(o.side.ctime.tv_sec, st.st_ctim.tv_sec);
    assert_int_equal(o.side.ctime.tv_nsec, st.st_ctim.tv_nsec);
    assert_int_equal(o.side.mtime.tv_sec, 1000);
}

static void a_record_is_not_replaced_by_later_commands(void **state)
{
    (void)state;
    world_file(&lw, "base/f", "first");
    struct timespec began = next_tick();
    world_file(&lw, "0/f", "sandbox");
    collect(began, 1);
    world_file(&lw, "base/f", "second");
    began = next_tick();
    world_file(&lw, "0/f", "sandbox again");
    world_file(&lw, "0/other", "");
    collect(began, 0);
    assert_int_equal(csn_original_take(dir, lw.stack.base, "f"), 0);
    assert_original("f", "first");
}

static void a_file_that_the_host_changed_meanwhile_stays_unknown(void **state)
{
    (void)state;
    world_file(&lw, "base/f", "host");
    struct timespec began = next_tick();
    world_file(&lw, "0/f", "sandbox");
    world_file(&lw, "base/f", "host, changed");
    collect(began, 1);
    assert_true(has_record("f"));
    assert_unknown("f");
    began = next_tick();
    world_file(&lw, "0/other", "");
    collect(began, 0);
    assert_unknown("f");
}

static void a_host_change_after_the_copy_is_seen_by_a_late_collection(void **state)
{
    struct statx x;

    (void)state;
    world_file(&lw, "base/f", "host");
    next_tick();
    world_file(&lw, "0/f", "sandbox");
    must(statx(layer, "f", 0, STATX_BTIME, &x) == 0, "statx");
    if (!(x.stx_mask & STATX_BTIME))
        SKIP("the file system does not keep the birth of files");
    next_tick();
    world_file(&lw, "base/f", "host, changed");
    collect(next_tick(), 1);
    assert_unknown("f");
}

static void an_incomplete_collection_goes_on_with_the_first_command(void **state)
{
    size_t made;

    (void)state;
    world_file(&lw, "base/a", "1");
    world_file(&lw, "base/b", "2");
    world_file(&lw, "base/c", "3");
    struct timespec began = next_tick();
    world_file(&lw, "0/a", "x");
    world_file(&lw, "0/b", "x");
    world_file(&lw, "0/c", "x");
    assert_int_equal(csn_originals_collect(dir, layer, lw.stack.base, began, 2, &made), 1);
    assert_int_equal(made, 2);
    static const char *const names[] = {"a", "b", "c"};
    size_t left = 0;
    for (size_t i = 0; i < 3; i++)
        left = has_record(names[i]) ? left : i;
    char path[16];
    snprintf(path, sizeof(path), "base/%s", names[left]);
    world_file(&lw, path, "changed");
    assert_int_equal(csn_originals_collect(dir, layer, lw.stack.base, next_tick(), 2, &made),
                     0);
    assert_int_equal(made, 1);
    assert_unknown(names[left]);
    assert_true(find(names[(left + 1) % 3]).known);
}

static void directories_without_new_files_are_skipped(void **state)
{
    char name[CSN_HASH_HEX];

    (void)state;
    world_file(&lw, "base/d/f", "host");
    world_file(&lw, "base/d/e/g", "host");
    struct timespec began = next_tick();
    world_file(&lw, "0/d/f", "x");
    world_dir(&lw, "0/d/e");
    next_tick();
    collect(began, 1);
    csn_hash_bytes("d/f", 3, name);
    must(unlinkat(dir, name, 0) == 0, "record");
    world_file(&lw, "0/d/e/g", "x");
    collect(began, 1);
    assert_false(has_record("d/f"));
    assert_original("d/e/g", "host");
}

static void another_layer_is_walked_from_the_start(void **state)
{
    (void)state;
    world_file(&lw, "base/f", "host");
    struct timespec began = next_tick();
    world_dir(&lw, "1");
    world_file(&lw, "1/f", "x");
    next_tick();
    collect(began, 0);
    layer = openat(lw.top_fd, "1", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    collect(began, 1);
    close(layer);
    assert_original("f", "host");
}

static void collect_follows_no_link_and_opens_no_special_file(void **state)
{
    (void)state;
    world_file(&lw, "outside/f", "secret");
    put_link(lw.top_fd, "../outside", "base/link");
    put_link(lw.top_fd, "../outside/f", "base/file-link");
    world_dir(&lw, "base/d");
    world_file(&lw, "base/d/f", "host");
    world_file(&lw, "base/fifo", "host");
    world_file(&lw, "base/gone", "host");
    must(mkfifoat(lw.stack.base, "host-fifo", 0600) == 0, "fifo");
    struct timespec began = next_tick();
    world_file(&lw, "0/link/f", "x");
    world_file(&lw, "0/file-link", "x");
    world_file(&lw, "0/host-fifo", "x");
    put_link(lw.top_fd, "../outside", "0/d");
    must(mkfifoat(layer, "fifo", 0600) == 0, "fifo");
    world_whiteout(&lw, "0/gone");
    collect(began, 0);
    assert_int_equal(csn_original_take(dir, lw.stack.base, "link/f"), 0);
    assert_int_equal(csn_original_take(dir, lw.stack.base, "file-link"), 0);
    assert_int_equal(csn_original_take(dir, lw.stack.base, "host-fifo"), 0);
    assert_false(has_record("link/f") || has_record("file-link") || has_record("host-fifo") ||
                 has_record("d/f") || has_record("fifo") || has_record("gone"));
}

static void collect_enters_directories_that_deny_their_owner(void **state)
{
    struct stat st;

    (void)state;
    world_file(&lw, "base/d/e/f", "host");
    struct timespec began = next_tick();
    world_file(&lw, "0/d/e/f", "x");
    must(fchmodat(layer, "d/e/f", 0, 0) == 0 && fchmodat(layer, "d/e", 0, 0) == 0 &&
             fchmodat(layer, "d", 0, 0) == 0,
         "chmod");
    collect(began, 1);
    assert_original("d/e/f", "host");
    must(fstatat(layer, "d", &st, 0) == 0, "stat");
    assert_int_equal(st.st_mode & 07777, 0);
}

static void take_keeps_the_present_version_once(void **state)
{
    (void)state;
    world_file(&lw, "base/d/f", "first");
    assert_int_equal(csn_original_take(dir, lw.stack.base, "d/f"), 0);
    world_file(&lw, "base/d/f", "second");
    assert_int_equal(csn_original_take(dir, lw.stack.base, "d/f"), 0);
    assert_original("d/f", "first");
    assert_int_equal(csn_original_take(dir, lw.stack.base, "none/at/all"), 0);
    assert_int_equal(csn_original_take(dir, lw.stack.base, "d"), 0);
    assert_false(has_record("none/at/all") || has_record("d"));
}

static void a_file_that_was_just_written_has_no_times(void **state)
{
    (void)state;
    for (int i = 0; i < 100; i++) {
        struct stat st;
        csn_originals_clear(dir);
        world_file(&lw, "base/f", "x");
        must(fstatat(lw.stack.base, "f", &st, 0) == 0, "stat");
        assert_int_equal(csn_original_take(dir, lw.stack.base, "f"), 0);
        struct timespec now = coarse_now();
        csn_original o = find("f");
        close(o.content);
        /* the clock moved on: the record may have its times */
        if (now.tv_sec != st.st_ctim.tv_sec || now.tv_nsec > st.st_ctim.tv_nsec)
            continue;
        assert_int_equal(o.side.ctime.tv_sec, 0);
        assert_int_equal(o.side.mtime.tv_sec, 0);
        return;
    }
}

static void replace_makes_the_present_version_the_original(void **state)
{
    (void)state;
    world_file(&lw, "base/f", "first");
    assert_int_equal(csn_original_take(dir, lw.stack.base, "f"), 0);
    world_file(&lw, "base/f", "second");
    assert_int_equal(csn_original_replace(dir, lw.stack.base, "f"), 0);
    assert_original("f", "second");
    must(unlinkat(lw.stack.base, "f", 0) == 0, "unlink");
    assert_int_equal(csn_original_replace(dir, lw.stack.base, "f"), 0);
    csn_original o = find("f");
    assert_true(o.known);
    assert_int_equal(o.side.mode, 0);
    assert_int_equal(o.content, -1);
    assert_int_equal(csn_original_replace(dir, lw.stack.base, "no/such/dir"), 0);
    assert_true(find("no/such/dir").known);
}

static void a_large_file_is_known_without_content(void **state)
{
    (void)state;
    world_file(&lw, "base/f", "");
    world_file(&lw, "base/max", "");
    int fd = openat(lw.top_fd, "base/f", O_WRONLY | O_CLOEXEC);
    must(ftruncate(fd, CSN_ORIGINAL_MAX + 1) == 0, "truncate");
    close(fd);
    fd = openat(lw.top_fd, "base/max", O_WRONLY | O_CLOEXEC);
    must(ftruncate(fd, CSN_ORIGINAL_MAX) == 0, "truncate");
    close(fd);
    assert_int_equal(csn_original_take(dir, lw.stack.base, "f"), 0);
    assert_int_equal(csn_original_take(dir, lw.stack.base, "max"), 0);
    csn_original o = find("f");
    assert_true(o.known);
    assert_int_equal(o.content, -1);
    assert_int_equal(o.side.size, CSN_ORIGINAL_MAX + 1);
    o = find("max");
    assert_true(o.known);
    assert_true(o.content >= 0);
    close(o.content);
}

static void a_damaged_record_is_not_known(void **state)
{
    char name[CSN_HASH_HEX];

    (void)state;
    world_file(&lw, "base/f", "text");
    csn_hash_bytes("f", 1, name);
    static const off_t cut[] = {0, 10, 96, 99};
    for (size_t i = 0; i < 4; i++) {
        csn_originals_clear(dir);
        assert_int_equal(csn_original_take(dir, lw.stack.base, "f"), 0);
        assert_true(find("f").known);
        int fd = openat(dir, name, O_WRONLY | O_CLOEXEC);
        must(ftruncate(fd, cut[i]) == 0, "cut");
        close(fd);
        assert_unknown("f");
    }
    csn_originals_clear(dir);
    assert_int_equal(csn_original_take(dir, lw.stack.base, "f"), 0);
    int fd = openat(dir, name, O_WRONLY | O_CLOEXEC);
    must(pwrite(fd, "X", 1, 0) == 1, "damage");
    close(fd);
    assert_unknown("f");
}

static void clear_removes_all_records(void **state)
{
    (void)state;
    world_file(&lw, "base/f", "host");
    struct timespec began = next_tick();
    world_file(&lw, "0/f", "x");
    next_tick();
    collect(began, 1);
    assert_int_equal(csn_originals_clear(dir), 0);
    assert_false(has_record("f"));
    collect(began, 1);
    assert_original("f", "host");
}

#define BOTH(t)                                                                                \
    {#t, t, setup, teardown, NULL},                                                            \
    {                                                                                          \
#t "_as_user", t, setup_as_user, teardown, NULL                                        \
    }

int main(void)
{
    const struct CMUnitTest tests[] = {
        BOTH(collect_keeps_the_version_that_the_command_saw),
        BOTH(a_record_is_not_replaced_by_later_commands),
        BOTH(a_file_that_the_host_changed_meanwhile_stays_unknown),
        BOTH(a_host_change_after_the_copy_is_seen_by_a_late_collection),
        BOTH(an_incomplete_collection_goes_on_with_the_first_command),
        BOTH(directories_without_new_files_are_skipped),
        BOTH(another_layer_is_walked_from_the_start),
        BOTH(collect_follows_no_link_and_opens_no_special_file),
        BOTH(collect_enters_directories_that_deny_their_owner),
        BOTH(take_keeps_the_present_version_once),
        BOTH(a_file_that_was_just_written_has_no_times),
        BOTH(replace_makes_the_present_version_the_original),
        BOTH(a_large_file_is_known_without_content),
        BOTH(a_damaged_record_is_not_known),
        BOTH(clear_removes_all_records),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
