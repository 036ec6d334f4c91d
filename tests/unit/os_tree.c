/* os_tree.c: walks and removals on odd trees, and the watch. */
#include "os/tree.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <sys/resource.h>

#include <cmocka.h>

#include "base/clock.h"
#include "corpus.h"
#include "os/atomic.h"
#include "os/watch.h"

static corpus fx;

static int setup(void **state)
{
    (void)state;
    corpus_build(&fx, false);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    corpus_wipe(&fx);
    return 0;
}

static int count_all(int fd)
{
    int n = 0;

    assert_int_equal(csn_tree_walk(fd, corpus_count_entry, &n), 0);
    return n;
}

static void walk_is_repeatable(void **state)
{
    int n = count_all(fx.fd);

    (void)state;
    assert_true(n > 100);
    assert_int_equal(count_all(fx.fd), n);
}

static void remove_leaves_other_entries(void **state)
{
    int n = count_all(fx.fd);

    (void)state;
    assert_int_equal(csn_tree_remove(fx.fd, "a"), 0); /* a, b, c, target, c4 */
    assert_int_equal(count_all(fx.fd), n - 5);
    assert_int_equal(csn_tree_remove(fx.fd, "target"), 0);
    assert_int_equal(csn_tree_remove(fx.fd, "link_up"), 0);
    assert_int_equal(csn_tree_remove(fx.fd, "no such"), 0);
    assert_int_equal(count_all(fx.fd), n - 7);
    assert_true(corpus_outside_intact(&fx));
}

static void empty_leaves_the_directory(void **state)
{
    (void)state;
    assert_int_equal(csn_tree_empty(fx.fd), 0);
    assert_int_equal(count_all(fx.fd), 0);
    assert_true(corpus_outside_intact(&fx));
}

/* A tree wider and deeper than the descriptors there are. */
static void wide_and_deep_tree_is_removed_with_ten_descriptors(void **state)
{
    struct rlimit old, few;
    char path[1000];
    size_t n = 0;

    (void)state;
    put_dir(fx.fd, "w");
    for (int i = 0; i < 40; i++) {
        snprintf(path, sizeof(path), "w/%d", i);
        put_dir(fx.fd, path);
        snprintf(path, sizeof(path), "w/%d/f", i);
        put_file(fx.fd, path, "x");
    }
    for (int i = 0; i < 100; i++) {
        n += (size_t)snprintf(path + n, sizeof(path) - n, i ? "/deep" : "w/deep");
        put_dir(fx.fd, path);
    }
    getrlimit(RLIMIT_NOFILE, &old);
    int next = dup(fx.fd);
    close(next);
    few = (struct rlimit){(rlim_t)next + 4, old.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    int rc = csn_tree_walk(fx.fd, corpus_count_entry, &(int){0});
    int rc2 = csn_tree_remove(fx.fd, "w");
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
    assert_int_equal(rc, 0);
    assert_int_equal(rc2, 0);
    assert_int_equal(faccessat(fx.fd, "w", F_OK, 0), -1);
}

static void walk_skips_unreadable_directories(void **state)
{
    int n;

    (void)state;
    if (geteuid() == 0)
        return; /* root reads everything: the run as a user tests this */
    n = count_all(fx.fd);
    assert_int_equal(fchmodat(fx.fd, "dir", 0, 0), 0);
    int fewer = count_all(fx.fd);
    assert_int_equal(fchmodat(fx.fd, "dir", 0755, 0), 0);
    assert_int_equal(fewer, n - 4); /* file, link_up2, link_up_ok, chain3 */
}

/* ---- watch ---- */

static csn_notify *watch_new(bool recursive)
{
    csn_notify *w = NULL;

    assert_int_equal(csn_notify_new(fx.fd, recursive, &w), 0);
    return w;
}

static int next_within(csn_notify *w, uint64_t ms, csn_notify_event *ret)
{
    const csn_notify_wait wait = {
        .deadline_ns = csn_deadline_in(ms), .end_fd = -1, .stop_fd = -1};

    return csn_notify_next(w, &wait, ret);
}

static void expect(csn_notify *w, uint32_t kind, const char *path)
{
    csn_notify_event n;

    assert_int_equal(next_within(w, 60000, &n), 1);
    if (strcmp(n.path, path) != 0)
        print_message("# %u %s, not %s\n", n.kind, n.path, path);
    assert_string_equal(n.path, path);
    assert_int_equal(n.kind, kind);
}

static void expect_nothing(csn_notify *w)
{
    csn_notify_event n;

    assert_int_equal(next_within(w, 20, &n), 0);
}

static void watch_reports_changes_of_files(void **state)
{
    csn_notify *w = watch_new(false);

    (void)state;
    put_file(fx.fd, "seen", "x");
    expect(w, CSN_NOTIFY_CREATE, "seen");
    expect(w, CSN_NOTIFY_MODIFY, "seen");
    assert_int_equal(renameat(fx.fd, "seen", fx.fd, "seen2"), 0);
    expect(w, CSN_NOTIFY_DELETE, "seen");
    expect(w, CSN_NOTIFY_RENAME, "seen2");
    assert_int_equal(unlinkat(fx.fd, "seen2", 0), 0);
    expect(w, CSN_NOTIFY_DELETE, "seen2");
    put_file(fx.fd, "dir/below", "x");
    expect_nothing(w);
    csn_notify_free(w);
}

static void publish(const char *name, unsigned how)
{
    csn_temp t;

    assert_int_equal(csn_temp_create(&t, fx.fd, 0600), 0);
    assert_int_equal(csn_write_full(t.fd, "x", 1, NULL), 0);
    csn_temp_complete(&t);
    assert_int_equal(csn_temp_publish(&t, fx.fd, name, how), 0);
    csn_temp_drop(&t, fx.fd);
}

static void watch_hides_temporary_files(void **state)
{
    csn_notify *w = watch_new(false);
    csn_notify_event n;
    csn_temp t;
    bool swapped;

    (void)state;
    publish("target", CSN_TEMP_REPLACE);
    expect(w, CSN_NOTIFY_RENAME, "target");
    assert_int_equal(csn_temp_create(&t, fx.fd, 0600), 0);
    assert_int_equal(csn_write_full(t.fd, "x", 1, NULL), 0);
    assert_int_equal(csn_temp_swap(&t, fx.fd, "target", false, &swapped), 0);
    csn_temp_drop(&t, fx.fd);
    expect(w, CSN_NOTIFY_RENAME, "target");
    expect_nothing(w);
    /* a new file comes by a link or, with a name before, by a rename */
    publish("fresh", CSN_TEMP_EXCL);
    assert_int_equal(next_within(w, 60000, &n), 1);
    assert_string_equal(n.path, "fresh");
    assert_true(n.kind == CSN_NOTIFY_CREATE || n.kind == CSN_NOTIFY_RENAME);
    expect_nothing(w);
    csn_notify_free(w);
}

static void recursive_watch_follows_new_and_moved_directories(void **state)
{
    csn_notify *w = watch_new(true);

    (void)state;
    put_file(fx.fd, "a/b/c/new", "");
    expect(w, CSN_NOTIFY_CREATE, "a/b/c/new");
    put_dir(fx.fd, "fresh");
    put_dir(fx.fd, "fresh/inner");
    put_file(fx.fd, "fresh/inner/early", "");
    expect(w, CSN_NOTIFY_CREATE, "fresh");
    expect(w, CSN_NOTIFY_CREATE, "fresh/inner");
    expect(w, CSN_NOTIFY_CREATE, "fresh/inner/early");
    put_file(fx.fd, "fresh/inner/late", "");
    expect(w, CSN_NOTIFY_CREATE, "fresh/inner/late");
    assert_int_equal(renameat(fx.fd, "fresh", fx.fd, "moved"), 0);
    expect(w, CSN_NOTIFY_DELETE, "fresh");
    expect(w, CSN_NOTIFY_RENAME, "moved");
    put_file(fx.fd, "moved/inner/last", "");
    expect(w, CSN_NOTIFY_CREATE, "moved/inner/last");
    /* links are not entered */
    put_file(fx.top_fd, "outdir/other", "");
    expect_nothing(w);
    assert_int_equal(unlinkat(fx.top_fd, "outdir/other", 0), 0);
    csn_notify_free(w);
}

/* D48 */
static void flood_is_reported_as_overflow(void **state)
{
    csn_notify *w = watch_new(false);
    csn_notify_event n = {0};
    int events = 0;
    char name[32];

    (void)state;
    for (int i = 0; i < 20000; i++) {
        snprintf(name, sizeof(name), "f%d", i % 2);
        must(mkdirat(fx.fd, name, 0700) == 0, name);
        must(unlinkat(fx.fd, name, AT_REMOVEDIR) == 0, name);
    }
    while (next_within(w, 20, &n) == 1 && n.kind != CSN_NOTIFY_OVERFLOW)
        events++;
    assert_int_equal(n.kind, CSN_NOTIFY_OVERFLOW);
    assert_true(events < 40000);
    put_file(fx.fd, "after", "");
    while (next_within(w, 60000, &n) == 1 && strcmp(n.path, "after") != 0)
        events++;
    assert_string_equal(n.path, "after");
    csn_notify_free(w);
}

/* ---- the end of a watch ---- */

/* A descriptor that is readable: the end of the sandbox, or the wish to stop. */
static int readable_fd(void)
{
    int fd = eventfd(1, EFD_CLOEXEC);

    must(fd >= 0, "eventfd");
    return fd;
}

static void watch_returns_earlier_events_and_then_the_end(void **state)
{
    csn_notify *w = watch_new(false);
    csn_notify_wait wait = {.end_fd = readable_fd(), .stop_fd = -1};
    csn_notify_event n;

    (void)state;
    put_file(fx.fd, "before", "");
    assert_int_equal(csn_notify_next(w, &wait, &n), 1);
    assert_string_equal(n.path, "before");
    put_file(fx.fd, "after", "");
    assert_int_equal(csn_notify_next(w, &wait, &n), -ESHUTDOWN);
    assert_int_equal(csn_notify_next(w, &wait, &n), -ESHUTDOWN);
    close(wait.end_fd);
    csn_notify_free(w);
}

static void watch_stops_at_once(void **state)
{
    csn_notify *w = watch_new(false);
    csn_notify_wait wait = {.end_fd = -1, .stop_fd = readable_fd()};
    csn_notify_event n;

    (void)state;
    assert_int_equal(csn_notify_next(w, &wait, &n), -ECANCELED);
    close(wait.stop_fd);
    csn_notify_free(w);
}

/* Watches the directory `name`, which it makes. */
static csn_notify *watch_sub(const char *name, bool recursive)
{
    csn_notify *w = NULL;

    must(mkdirat(fx.fd, name, 0700) == 0, name);
    int fd = openat(fx.fd, name, O_PATH | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(csn_notify_new(fd, recursive, &w), 0);
    close(fd);
    return w;
}

static void watch_ends_when_its_directory_is_removed(void **state)
{
    const csn_notify_wait wait = {.end_fd = -1, .stop_fd = -1};
    csn_notify_event n;

    (void)state;
    for (int recursive = 0; recursive < 2; recursive++) {
        csn_notify *w = watch_sub("d (deleted)", recursive);
        must(mkdirat(fx.fd, "d (deleted)/x", 0700) == 0, "x");
        must(unlinkat(fx.fd, "d (deleted)/x", AT_REMOVEDIR) == 0, "x");
        expect(w, CSN_NOTIFY_CREATE, "x");
        expect(w, CSN_NOTIFY_DELETE, "x");
        must(mkdirat(fx.fd, "other", 0700) == 0, "other");
        must(unlinkat(fx.fd, "other", AT_REMOVEDIR) == 0, "other");
        expect_nothing(w);
        must(unlinkat(fx.fd, "d (deleted)", AT_REMOVEDIR) == 0, "d");
        assert_int_equal(csn_notify_next(w, &wait, &n), -ENOENT);
        csn_notify_free(w);
    }
}

static void watch_follows_its_directory_and_notices_its_removal_there(void **state)
{
    csn_notify *w = watch_sub("d", false);
    const csn_notify_wait wait = {.end_fd = -1, .stop_fd = -1};
    csn_notify_event n;

    (void)state;
    must(mkdirat(fx.fd, "to", 0700) == 0, "to");
    must(renameat(fx.fd, "d", fx.fd, "to/e") == 0, "rename");
    put_file(fx.fd, "to/e/f", "");
    expect(w, CSN_NOTIFY_CREATE, "f");
    must(unlinkat(fx.fd, "to/e/f", 0) == 0, "f");
    expect(w, CSN_NOTIFY_DELETE, "f");
    must(mkdirat(fx.fd, "hollow", 0700) == 0, "hollow");
    must(renameat(fx.fd, "hollow", fx.fd, "to/e") == 0, "rename onto it");
    assert_int_equal(csn_notify_next(w, &wait, &n), -ENOENT);
    csn_notify_free(w);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    /* Thousands of small changes: no need to wear out a disk. */
    if (access("/dev/shm", W_OK) == 0)
        setenv("TMPDIR", "/dev/shm", 0);
    const struct CMUnitTest tests[] = {
        T(walk_is_repeatable),
        T(remove_leaves_other_entries),
        T(empty_leaves_the_directory),
        T(wide_and_deep_tree_is_removed_with_ten_descriptors),
        T(walk_skips_unreadable_directories),
        T(watch_reports_changes_of_files),
        T(watch_hides_temporary_files),
        T(recursive_watch_follows_new_and_moved_directories),
        T(watch_returns_earlier_events_and_then_the_end),
        T(watch_stops_at_once),
        T(watch_ends_when_its_directory_is_removed),
        T(watch_follows_its_directory_and_notices_its_removal_there),
        T(flood_is_reported_as_overflow),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
