/* layers_changes.c: lists of changes of layers that are made by hand, as root and as an
 * ordinary user. Layers that the kernel made: layers_overlay.c. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>

#include <cmocka.h>

#include "base/limits.h"
#include "layer_world.h"

static layer_world lw;

static int setup(void **state)
{
    (void)state;
    world_make(&lw, 3);
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

static csn_layer_changes list(const char *const *paths)
{
    csn_layer_changes c = {0};
    csn_error *err = NULL;

    if (csn_layer_changes_list(&lw.stack, paths, &c, &err) != CSN_OK)
        fail_msg("%s", csn_error_message(err));
    return c;
}

static void expect_in(const char *const *paths, const char *rows)
{
    csn_layer_changes c = list(paths);
    csn_autobuf b;

    world_rows(&c, &b);
    csn_layer_changes_release(&c);
    assert_string_equal(b.data, rows);
}

static void expect(const char *rows)
{
    expect_in(NULL, rows);
}

static mode_t mode_at(const char *path)
{
    struct stat st;

    must(fstatat(lw.top_fd, path, &st, AT_SYMLINK_NOFOLLOW) == 0, path);
    return st.st_mode & 07777;
}

/* ---- kinds ---- */

static void no_layers_no_changes(void **state)
{
    (void)state;
    world_file(&lw, "base/f", "x");
    expect("");
    for (size_t i = 0; i < lw.stack.count; i++)
        close(lw.stack.layers[i]);
    lw.stack.count = 0;
    expect("");
}

static void each_kind_has_its_row(void **state)
{
    (void)state;
    world_file(&lw, "base/changed", "old");
    world_file(&lw, "0/changed", "new");
    world_file(&lw, "base/mode", "x");
    world_file(&lw, "0/mode", "x");
    must(fchmodat(lw.top_fd, "0/mode", 0755, 0) == 0, "chmod");
    world_file(&lw, "base/time", "x");
    world_file(&lw, "0/time", "x");
    world_time(lw.top_fd, "0/time", 2000);
    world_file(&lw, "base/removed", "x");
    world_whiteout(&lw, "0/removed");
    world_whiteout(&lw, "0/removed_nothing");
    world_file(&lw, "base/type", "x");
    put_link(lw.top_fd, "x", "0/type");
    put_link(lw.top_fd, "x", "base/link");
    put_link(lw.top_fd, "y", "0/link");
    put_link(lw.top_fd, "x", "base/same_link");
    put_link(lw.top_fd, "x", "0/same_link");
    must(mkfifoat(lw.top_fd, "0/fifo", 0600) == 0, "fifo");
    world_file(&lw, "0/new/f", "x");
    world_file(&lw, "base/same", "x");
    world_file(&lw, "0/same", "x");
    expect("M changed\nA fifo\nM link\nX mode\nA new\nA new/f\nD removed\nX time\nT type\n");
}

static void sides_have_the_facts_of_their_files(void **state)
{
    (void)state;
    world_file(&lw, "base/d/f", "old");
    world_file(&lw, "1/d/f", "newer");
    csn_layer_changes c = list(NULL);
    assert_int_equal(c.count, 1);
    assert_string_equal(c.v[0].path, "d/f");
    assert_int_equal(c.v[0].layer, 1);
    assert_int_equal(c.v[0].before.size, 3);
    assert_int_equal(c.v[0].after.size, 5);
    assert_int_equal(c.v[0].before.mode, S_IFREG | 0644);
    assert_int_equal(c.v[0].after.mtime.tv_sec, 1000);
    csn_layer_changes_release(&c);
}

static void extended_attributes_are_compared(void **state)
{
    (void)state;
    world_file(&lw, "base/f", "x");
    world_file(&lw, "0/f", "x");
    world_file(&lw, "base/g", "x");
    world_file(&lw, "0/g", "x");
    world_dir(&lw, "base/d");
    world_dir(&lw, "0/d");
    world_xattr(&lw, "0/f", "user.overlay.origin", "x");
    world_xattr(&lw, "0/d", "user.overlay.impure", "y");
    expect("");
    world_xattr(&lw, "0/f", "user.t", "x");
    world_xattr(&lw, "base/g", "user.t", "x");
    world_xattr(&lw, "0/d", "user.t", "x");
    expect("X d\nX f\nX g\n");
    world_xattr(&lw, "base/f", "user.t", "x");
    world_xattr(&lw, "0/g", "user.t", "y");
    world_xattr(&lw, "base/d", "user.t", "x");
    expect("X g\n");
}

static void directory_times_are_no_change(void **state)
{
    (void)state;
    world_dir(&lw, "base/d");
    world_dir(&lw, "0/d");
    world_time(lw.top_fd, "0/d", 77);
    expect("");
    must(fchmodat(lw.top_fd, "0/d", 0700, 0) == 0, "chmod");
    expect("X d\n");
}

/* ---- layers over layers ---- */

static void newest_layer_decides(void **state)
{
    (void)state;
    world_file(&lw, "base/back", "old");
    world_file(&lw, "1/back", "new");
    world_file(&lw, "0/back", "old");
    world_whiteout(&lw, "2/again");
    world_file(&lw, "base/again", "x");
    world_file(&lw, "0/again", "y");
    world_file(&lw, "2/gone", "x");
    world_whiteout(&lw, "1/gone");
    world_file(&lw, "2/d/two", "x");
    world_file(&lw, "1/d/one", "x");
    world_file(&lw, "0/d/zero", "x");
    world_file(&lw, "base/d/base", "x");
    expect("M again\nA d/one\nA d/two\nA d/zero\n");
}

static void opaque_directory_hides_all_below(void **state)
{
    (void)state;
    world_file(&lw, "base/d/gone", "x");
    world_file(&lw, "base/d/kept", "x");
    world_file(&lw, "base/d/sub/deep", "x");
    world_file(&lw, "2/d/middle", "x");
    world_opaque(&lw, "1/d");
    world_file(&lw, "1/d/kept", "x");
    world_file(&lw, "0/d/new", "x");
    expect("D d/gone\nA d/new\nD d/sub\nD d/sub/deep\n");
}

static void opaque_x_hides_nothing(void **state)
{
    (void)state;
    world_file(&lw, "base/d/f", "x");
    world_dir(&lw, "0/d");
    world_xattr(&lw, "0/d", "user.overlay.opaque", "x");
    expect("");
}

static void replaced_directory_lists_its_contents(void **state)
{
    (void)state;
    world_file(&lw, "base/d/e/f", "x");
    world_file(&lw, "base/d/g", "x");
    world_file(&lw, "0/d", "now a file");
    world_file(&lw, "base/f", "x");
    world_file(&lw, "0/f/in", "x");
    world_file(&lw, "base/gone/e/f", "x");
    world_whiteout(&lw, "0/gone");
    expect("T d\nD d/e\nD d/e/f\nD d/g\nT f\nA f/in\nD gone\nD gone/e\nD gone/e/f\n");
}

/* A whiteout or a file between two layers cuts what is below it, without `opaque`. */
static void whiteout_below_directory_cuts_it(void **state)
{
    (void)state;
    world_file(&lw, "base/d/base", "x");
    world_file(&lw, "2/d/two", "x");
    world_whiteout(&lw, "1/d");
    world_file(&lw, "0/d/zero", "x");
    world_file(&lw, "base/e/base", "x");
    world_file(&lw, "1/e", "x");
    world_file(&lw, "0/e/zero", "x");
    expect("D d/base\nA d/zero\nD e/base\nA e/zero\n");
}

static void directory_precedes_its_contents(void **state)
{
    (void)state;
    world_file(&lw, "0/a/b", "x");
    world_file(&lw, "0/a.b", "x");
    world_file(&lw, "0/a!", "x");
    world_file(&lw, "0/\xff\n", "x");
    expect("A a\nA a/b\nA a!\nA a.b\nA \xff\n\n");
}

/* ---- paths ---- */

static void paths_select_rows(void **state)
{
    (void)state;
    world_file(&lw, "base/d/old", "x");
    world_file(&lw, "base/plain", "x");
    world_whiteout(&lw, "0/d/old");
    world_file(&lw, "0/d/sub/new", "x");
    world_file(&lw, "0/dd", "x");
    world_file(&lw, "0/z", "x");
    expect_in((const char *const[]){"d", NULL}, "D d/old\nA d/sub\nA d/sub/new\n");
    expect_in((const char *const[]){"./d//sub/", "z", NULL}, "A d/sub\nA d/sub/new\nA z\n");
    expect_in((const char *const[]){"d/sub/new", NULL}, "A d/sub/new\n");
    expect_in((const char *const[]){"plain", NULL}, "");
    expect_in((const char *const[]){"z", ".", NULL},
              "D d/old\nA d/sub\nA d/sub/new\nA dd\nA z\n");
}

static void bad_paths_are_refused(void **state)
{
    static const struct {
        const char *path;
        csn_status status;
    } cases[] = {
        {"/d", CSN_INVALID},      {"d/../d", CSN_INVALID},    {"..", CSN_INVALID},
        {"", CSN_INVALID},        {"d/none", CSN_NOT_FOUND},  {"d/old/x", CSN_NOT_FOUND},
        {"none", CSN_NOT_FOUND},  {"link/f", CSN_NOT_FOUND},  {"dd", CSN_NOT_FOUND},
        {"wiped", CSN_NOT_FOUND}, {"link/../f", CSN_INVALID},
    };

    (void)state;
    world_file(&lw, "base/d/old", "x");
    world_file(&lw, "0/d/new", "x");
    world_whiteout(&lw, "0/wiped");
    put_link(lw.top_fd, "d", "base/link");
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        csn_layer_changes c = {0};
        csn_error *err = NULL;
        const char *const paths[] = {"d/new", cases[i].path, NULL};
        assert_int_equal(csn_layer_changes_list(&lw.stack, paths, &c, &err), cases[i].status);
        if (cases[i].path[0])
            assert_non_null(strstr(csn_error_message(err), cases[i].path));
        csn_error_free(err);
    }
}

/* ---- hostile layers ---- */

static char *slurp(const csn_layer_change *c, bool after)
{
    static char buf[64];
    int fd = csn_layer_open(&lw.stack, c, after);

    if (fd < 0)
        fail_msg("%s: %s", c->path, strerrordesc_np(-fd));
    ssize_t n = read(fd, buf, sizeof(buf) - 1);
    buf[n < 0 ? 0 : n] = '\0';
    close(fd);
    return buf;
}

static void entries_without_permissions_are_read(void **state)
{
    (void)state;
    world_file(&lw, "base/d/f", "old");
    world_file(&lw, "base/d/g", "old");
    world_file(&lw, "base/gone/f", "old");
    world_file(&lw, "0/d/f", "new");
    world_file(&lw, "0/d/g", "old");
    world_xattr(&lw, "0/d/g", "user.t", "x");
    world_file(&lw, "0/d/sub/deep", "new");
    world_opaque(&lw, "0/gone");
    must(fchmodat(lw.top_fd, "0/d/sub/deep", 0, 0) == 0, "chmod");
    must(fchmodat(lw.top_fd, "0/d/sub", 0, 0) == 0, "chmod");
    must(fchmodat(lw.top_fd, "0/d/f", 0, 0) == 0, "chmod");
    must(fchmodat(lw.top_fd, "0/d/g", 0200, 0) == 0, "chmod");
    must(fchmodat(lw.top_fd, "0/d", 0, 0) == 0, "chmod");
    must(fchmodat(lw.top_fd, "0/gone", 0, 0) == 0, "chmod");
    must(fchmodat(lw.top_fd, "0", 0, 0) == 0, "chmod");
    csn_layer_changes c = list(NULL);
    csn_autobuf b;
    world_rows(&c, &b);
    assert_string_equal(b.data, "X d\nM d/f\nX d/g\nA d/sub\nA d/sub/deep\nX gone\nD gone/f\n");
    assert_int_equal(c.v[0].after.mode & 07777, 0);
    assert_string_equal(slurp(&c.v[1], true), "new");
    assert_string_equal(slurp(&c.v[1], false), "old");
    assert_string_equal(slurp(&c.v[4], true), "new");
    csn_layer_changes_release(&c);
    assert_int_equal(mode_at("0"), 0);
    must(fchmodat(lw.top_fd, "0", 0700, 0) == 0, "chmod");
    assert_int_equal(mode_at("0/d"), 0);
    assert_int_equal(mode_at("0/gone"), 0);
    must(fchmodat(lw.top_fd, "0/d", 0700, 0) == 0, "chmod");
    assert_int_equal(mode_at("0/d/f"), 0);
    assert_int_equal(mode_at("0/d/g"), 0200);
    assert_int_equal(mode_at("0/d/sub"), 0);
    must(fchmodat(lw.top_fd, "0/d/sub", 0700, 0) == 0, "chmod");
    assert_int_equal(mode_at("0/d/sub/deep"), 0);
}

static void base_modes_are_never_changed(void **state)
{
    struct stat before, now;
    csn_layer_changes c = {0};
    csn_error *err = NULL;

    (void)state;
    world_file(&lw, "base/f", "x");
    world_file(&lw, "0/f", "x");
    must(fchmodat(lw.top_fd, "base/f", 0, 0) == 0, "chmod");
    must(fstatat(lw.top_fd, "base/f", &before, 0) == 0, "stat");
    expect(geteuid() == 0 ? "X f\n" : "M f\n");
    must(fstatat(lw.top_fd, "base/f", &now, 0) == 0, "stat");
    assert_memory_equal(&before.st_ctim, &now.st_ctim, sizeof(now.st_ctim));
    if (geteuid() == 0)
        return;
    world_file(&lw, "base/gone/f", "x");
    world_whiteout(&lw, "0/gone");
    must(fchmodat(lw.top_fd, "base/gone", 0, 0) == 0, "chmod");
    assert_int_equal(csn_layer_changes_list(&lw.stack, NULL, &c, &err), CSN_DENIED);
    assert_non_null(strstr(csn_error_message(err), "gone"));
    csn_error_free(err);
}

static void replaced_file_is_stale(void **state)
{
    (void)state;
    world_file(&lw, "base/f", "old");
    world_file(&lw, "0/f", "new");
    put_link(lw.top_fd, "target", "0/l");
    csn_layer_changes c = list(NULL);
    assert_int_equal(c.count, 2);
    assert_string_equal(slurp(&c.v[0], true), "new");
    assert_int_equal(csn_layer_open(&lw.stack, &c.v[1], true), -EINVAL);
    csn_autofree char *text = csn_layer_readlink(&lw.stack, &c.v[1], true);
    assert_string_equal(text, "target");
    assert_null(csn_layer_readlink(&lw.stack, &c.v[0], true));
    must(renameat(lw.top_fd, "0/f", lw.top_fd, "0/kept") == 0, "rename");
    assert_int_equal(csn_layer_open(&lw.stack, &c.v[0], true), -ENOENT);
    world_file(&lw, "0/f", "other");
    assert_int_equal(csn_layer_open(&lw.stack, &c.v[0], true), -ESTALE);
    must(unlinkat(lw.top_fd, "0/f", 0) == 0, "unlink");
    put_link(lw.top_fd, "kept", "0/f");
    assert_int_equal(csn_layer_open(&lw.stack, &c.v[0], true), -ESTALE);
    must(renameat(lw.top_fd, "0/l", lw.top_fd, "0/kept_link") == 0, "rename");
    put_link(lw.top_fd, "elsewhere", "0/l");
    assert_null(csn_layer_readlink(&lw.stack, &c.v[1], true));
    csn_layer_changes_release(&c);
}

/* Deeper than PATH_MAX, with a name after each directory: the walk comes back to all of them.
 */
static void deep_tree_needs_few_descriptors(void **state)
{
    enum { DEPTH = 2500 };
    struct rlimit old, few;
    int dir = openat(lw.top_fd, "0", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    (void)state;
    for (int i = 0; i < DEPTH; i++) {
        put_dir(dir, "d");
        put_file(dir, "z", "end");
        int next = openat(dir, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        must(next >= 0, "deep");
        close(dir);
        dir = next;
    }
    close(dir);
    must(getrlimit(RLIMIT_NOFILE, &old) == 0, "limit");
    few = (struct rlimit){64, old.rlim_max};
    must(setrlimit(RLIMIT_NOFILE, &few) == 0, "limit");
    csn_layer_changes c = list(NULL);
    assert_int_equal(c.count, 2 * DEPTH);
    assert_int_equal(strlen(c.v[DEPTH].path), 2 * DEPTH - 1);
    assert_string_equal(slurp(&c.v[DEPTH], true), "end");
    assert_string_equal(c.v[2 * DEPTH - 1].path, "z");
    csn_layer_changes_release(&c);
    must(setrlimit(RLIMIT_NOFILE, &old) == 0, "limit");
}

static atomic_bool racing;

static void *swap_entries(void *ctx)
{
    (void)ctx;
    while (atomic_load(&racing)) {
        (void)renameat2(lw.top_fd, "0/d", lw.top_fd, "0/l", RENAME_EXCHANGE);
        (void)renameat2(lw.top_fd, "0/f", lw.top_fd, "0/p", RENAME_EXCHANGE);
        (void)renameat2(lw.top_fd, "0/m", lw.top_fd, "moved/m", 0);
        (void)renameat2(lw.top_fd, "moved/m", lw.top_fd, "0/m", 0);
    }
    return NULL;
}

static void swapped_entries_do_not_lead_out(void **state)
{
    pthread_t thread;

    (void)state;
    world_file(&lw, "secret/secret", "x");
    world_dir(&lw, "moved");
    world_file(&lw, "moved/secret", "x");
    world_file(&lw, "0/d/e/f", "x");
    put_link(lw.top_fd, "../secret", "0/l");
    world_file(&lw, "base/f", "x");
    world_file(&lw, "0/f", "x");
    must(mkfifoat(lw.top_fd, "0/p", 0600) == 0, "fifo");
    world_file(&lw, "0/m/a/b/c/d/e/f/g/h/i/j/k", "x");
    world_file(&lw, "0/m/z", "x");
    atomic_store(&racing, true);
    must(pthread_create(&thread, NULL, swap_entries, NULL) == 0, "thread");
    for (int i = 0; i < 300; i++) {
        csn_layer_changes c = list(NULL);
        csn_autobuf b;
        world_rows(&c, &b);
        csn_layer_changes_release(&c);
        if (strstr(b.data, "secret"))
            fail_msg("%s", b.data);
    }
    atomic_store(&racing, false);
    pthread_join(thread, NULL);
}

#define BOTH(f)                                                                                \
    {#f, f, setup, teardown, NULL},                                                            \
    {                                                                                          \
#f "_as_user", f, setup_as_user, teardown, NULL                                        \
    }

int main(void)
{
    const struct CMUnitTest tests[] = {
        BOTH(no_layers_no_changes),
        BOTH(each_kind_has_its_row),
        BOTH(sides_have_the_facts_of_their_files),
        BOTH(extended_attributes_are_compared),
        BOTH(directory_times_are_no_change),
        BOTH(newest_layer_decides),
        BOTH(opaque_directory_hides_all_below),
        BOTH(opaque_x_hides_nothing),
        BOTH(replaced_directory_lists_its_contents),
        BOTH(whiteout_below_directory_cuts_it),
        BOTH(directory_precedes_its_contents),
        BOTH(paths_select_rows),
        BOTH(bad_paths_are_refused),
        BOTH(entries_without_permissions_are_read),
        BOTH(base_modes_are_never_changed),
        BOTH(replaced_file_is_stale),
        BOTH(deep_tree_needs_few_descriptors),
        BOTH(swapped_entries_do_not_lead_out),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
