/* os_atomic.c: temporary files with and without O_TMPFILE, and what a kill leaves. */
#include "os/atomic.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "child.h"
#include "corpus.h"
#include "fault.h"

#define CHECK(cond)                                                                            \
    do {                                                                                       \
        if (!(cond)) {                                                                         \
            dprintf(2, "# line %d: %s\n", __LINE__, #cond);                                    \
            return 1;                                                                          \
        }                                                                                      \
    } while (0)

/* How a temporary file comes to its name, forced by what the kernel refuses. */
typedef struct way {
    const char *what;
    fault refused; /* nr 0: nothing */
    bool named;    /* from the start */
} way;

static const way ways[] = {
    {"linked by descriptor", {0}, false},
    {"linked by /proc", {SYS_linkat, 4, AT_EMPTY_PATH, ENOENT}, false},
    {"copied: no link", {SYS_linkat, -1, 0, EPERM}, false},
    {"named: no O_TMPFILE", {SYS_openat, 2, FAULT_TMPFILE, EOPNOTSUPP}, true},
    {"named: an old kernel", {SYS_openat, 2, FAULT_TMPFILE, EISDIR}, true},
};

#define WAYS (sizeof(ways) / sizeof(ways[0]))

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

static bool has_unnamed(void)
{
    int fd = openat(fx.fd, ".", O_RDWR | O_TMPFILE | O_CLOEXEC, 0600);

    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

static int count_temp(void *ctx, const char *name, const struct stat *st, const char *target)
{
    (void)st;
    (void)target;
    *(int *)ctx += strncmp(name, CSN_TEMP_PREFIX, strlen(CSN_TEMP_PREFIX)) == 0;
    return 0;
}

static int temps(void)
{
    int n = 0, fd = openat(fx.fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    must(csn_tree_list(fd, count_temp, &n) == 0, "list");
    close(fd);
    return n;
}

static bool holds(const char *name, const char *text)
{
    char buf[256];
    struct stat st;
    int fd = openat(fx.fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    ssize_t n = fd < 0 ? -1 : read(fd, buf, sizeof(buf));
    bool one = fd >= 0 && fstat(fd, &st) == 0 && st.st_nlink == 1;

    if (fd >= 0)
        close(fd);
    return one && n == (ssize_t)strlen(text) && memcmp(buf, text, (size_t)n) == 0;
}

/* A complete temporary file. */
static int filled(csn_temp *t, const char *text)
{
    int rc = csn_temp_create(t, fx.fd, 0644);

    if (rc == 0)
        rc = csn_write_full(t->fd, text, strlen(text), NULL);
    if (rc == 0)
        csn_temp_complete(t);
    return rc;
}

static int put(const char *text, const char *name, unsigned how)
{
    csn_temp t;
    int rc = filled(&t, text);

    if (rc == 0)
        rc = csn_temp_publish(&t, fx.fd, name, how);
    csn_temp_drop(&t, fx.fd);
    return rc;
}

/* Each body runs once for each way, in a tree of its own. */
static void every_way(int (*body)(void *))
{
    if (!has_unnamed())
        print_message("# no O_TMPFILE here: every file has a name\n");
    for (size_t i = 0; i < WAYS; i++) {
        csn_child_end end = csn_child_run(body, (void *)(uintptr_t)&ways[i], -1, 60000);
        if (end.exit_code == 77)
            SKIP("no seccomp filters here");
        if (end.exit_code != 0)
            print_message("# %s\n", ways[i].what);
        assert_int_equal(end.exit_code, 0);
        teardown(NULL);
        setup(NULL);
    }
}

static int take_way(const way *w)
{
    return w->refused.nr ? fault_inject(&w->refused) : 0;
}

/* ---- one file ---- */

static int publishes(void *ctx)
{
    const way *w = ctx;
    bool named = w->named || !has_unnamed();
    csn_temp t;

    if (take_way(w) < 0)
        return 77;
    CHECK(filled(&t, "first") == 0);
    CHECK((t.name[0] != '\0') == named && (t.fd < 0) == named && temps() == named);
    CHECK(csn_temp_publish(&t, fx.fd, "brand new", CSN_TEMP_EXCL) == 0);
    csn_temp_drop(&t, fx.fd);
    CHECK(holds("brand new", "first") && temps() == 0);
    CHECK(put("second", "brand new", CSN_TEMP_EXCL) == -EEXIST);
    CHECK(put("second", "dir", CSN_TEMP_EXCL) == -EEXIST);
    CHECK(holds("brand new", "first") && temps() == 0);
    CHECK(put("second", "brand new", 0) == 0 && holds("brand new", "second"));
    CHECK(put("third", "brand new", CSN_TEMP_REPLACE) == 0 && holds("brand new", "third"));
    CHECK(put("fourth", "gone by now", CSN_TEMP_REPLACE) == 0 &&
          holds("gone by now", "fourth"));
    CHECK(put("fifth", "newer", 0) == 0 && holds("newer", "fifth"));
    CHECK(temps() == 0);
    return 0;
}

static void publish_creates_or_replaces(void **state)
{
    (void)state;
    every_way(publishes);
}

static int refuses(void *ctx)
{
    char text[64];

    if (take_way(ctx) < 0)
        return 77;
    CHECK(put("x", "dir", 0) == -EISDIR && put("x", "dir", CSN_TEMP_REPLACE) == -EISDIR);
    CHECK(put("x", "no/such", 0) == -ENOENT && temps() == 0);
    CHECK(symlinkat("../outside", fx.fd, "trap") == 0);
    CHECK(put("x", "trap", CSN_TEMP_EXCL) == -EEXIST);
    CHECK(readlinkat(fx.fd, "trap", text, sizeof(text)) > 0);
    CHECK(put("x", "trap", 0) == 0 && holds("trap", "x"));
    CHECK(put("y", "fifo", CSN_TEMP_REPLACE) == 0 && holds("fifo", "y"));
    CHECK(corpus_outside_intact(&fx) && temps() == 0);
    return 0;
}

static void links_are_replaced_and_directories_refused(void **state)
{
    (void)state;
    every_way(refuses);
}

static int is_as_it_was_made(void *ctx)
{
    const struct timespec times[2] = {{1000, 0}, {2000, 0}};
    const gid_t gid = geteuid() == 0 ? 4343 : getegid();
    struct stat st;
    csn_temp t;

    umask(0027);
    if (take_way(ctx) < 0)
        return 77;
    CHECK(put("", "born", 0) == 0 && fstatat(fx.fd, "born", &st, 0) == 0);
    CHECK((st.st_mode & 07777) == 0640);
    for (unsigned over = 0; over < 2; over++) {
        CHECK(filled(&t, "") == 0);
        /* a named one is closed by now: the caller sets these before */
        int fd = t.fd >= 0 ? t.fd : openat(fx.fd, t.name, O_WRONLY | O_CLOEXEC);
        CHECK(fchown(fd, (uid_t)-1, gid) == 0 && fchmod(fd, 0751) == 0);
        CHECK(futimens(fd, times) == 0);
        if (fd != t.fd)
            close(fd);
        CHECK(csn_temp_publish(&t, fx.fd, "born", over ? CSN_TEMP_REPLACE : 0) == 0);
        csn_temp_drop(&t, fx.fd);
        CHECK(fstatat(fx.fd, "born", &st, 0) == 0 && (st.st_mode & 07777) == 0751);
        CHECK(st.st_gid == gid && st.st_uid == geteuid() && st.st_mtim.tv_sec == 2000);
    }
    return 0;
}

static void publish_keeps_mode_owner_and_times(void **state)
{
    (void)state;
    every_way(is_as_it_was_made);
}

static int copies_only_once(void *ctx)
{
    const fault no_link = {SYS_linkat, -1, 0, EPERM};
    csn_temp t;

    (void)ctx;
    if (fault_inject(&no_link) < 0)
        return 77;
    CHECK(filled(&t, "x") == 0 && t.name[0] == '\0');
    CHECK(csn_temp_publish(&t, fx.fd, "copied", 0) == 0 && holds("copied", "x"));
    csn_temp_drop(&t, fx.fd);
    CHECK(filled(&t, "x") == 0 && t.name[0] != '\0');
    csn_temp_drop(&t, fx.fd);
    CHECK(temps() == 0);
    return 0;
}

static void refused_link_is_remembered(void **state)
{
    (void)state;
    if (!has_unnamed())
        SKIP("no O_TMPFILE here");
    csn_child_end end = csn_child_run(copies_only_once, NULL, -1, 60000);
    if (end.exit_code == 77)
        SKIP("no seccomp filters here");
    assert_int_equal(end.exit_code, 0);
}

/* ---- exchanges ---- */

static int swaps(void *ctx)
{
    bool swapped = false;
    csn_temp t;

    if (take_way(ctx) < 0)
        return 77;
    CHECK(filled(&t, "new") == 0);
    CHECK(csn_temp_swap(&t, fx.fd, "target", true, &swapped) == -EEXIST);
    CHECK(csn_temp_swap(&t, fx.fd, "dir", false, &swapped) == -EISDIR);
    CHECK(csn_temp_swap(&t, fx.fd, "fifo", false, &swapped) == -EMEDIUMTYPE);
    CHECK(csn_temp_swap(&t, fx.fd, "target", false, &swapped) == 0);
    CHECK(swapped && holds("target", "new") && temps() == 1);
    csn_temp_unswap(&t, fx.fd, "target", swapped);
    CHECK(holds("target", "inside\n"));
    CHECK(csn_temp_swap(&t, fx.fd, "brand new", false, &swapped) == 0);
    CHECK(!swapped && holds("brand new", "new"));
    csn_temp_unswap(&t, fx.fd, "brand new", swapped);
    CHECK(faccessat(fx.fd, "brand new", F_OK, 0) < 0);
    csn_temp_drop(&t, fx.fd);
    CHECK(filled(&t, "kept") == 0);
    CHECK(csn_temp_swap(&t, fx.fd, "straight", true, &swapped) == 0 && !swapped);
    csn_temp_drop(&t, fx.fd);
    CHECK(holds("straight", "kept") && holds("target", "inside\n") && temps() == 0);
    return 0;
}

static void unswap_restores_the_old_file(void **state)
{
    (void)state;
    every_way(swaps);
}

/* ---- kills ---- */

typedef struct death {
    fault at; /* nr 0: after the content is written */
    unsigned how;
} death;

static int dies(void *ctx)
{
    const death *d = ctx;
    csn_temp t;

    if (d->at.nr && fault_inject(&d->at) < 0)
        return 77;
    CHECK(filled(&t, "never seen") == 0);
    if (d->at.nr == 0)
        (void)raise(SIGKILL);
    (void)csn_temp_publish(&t, fx.fd, "target", d->how);
    return 1;
}

/* How many names a process leaves that dies there; -1: cannot be tried. */
static int left_by(const death *d)
{
    csn_child_end end = csn_child_run(dies, (void *)(uintptr_t)d, -1, 60000);

    if (end.exit_code == 77)
        return -1;
    assert_int_equal(end.exit_code, -1);
    assert_false(end.hung);
    assert_true(holds("target", "inside\n"));
    return temps();
}

/* The one window: a complete file, between the link and the rename that follows. */
static void kill_leaves_nothing_but_between_link_and_rename(void **state)
{
    const death written = {{0}, 0};
    const death straight = {{SYS_linkat, -1, 0, FAULT_KILL}, 0};
    const death over = {{SYS_linkat, -1, 0, FAULT_KILL}, CSN_TEMP_REPLACE};
    const death window = {{SYS_renameat, -1, 0, FAULT_KILL}, CSN_TEMP_REPLACE};

    (void)state;
    if (!has_unnamed())
        SKIP("no O_TMPFILE here");
    assert_int_equal(left_by(&written), 0);
    if (left_by(&straight) < 0)
        SKIP("no seccomp filters here");
    assert_int_equal(left_by(&straight), 0);
    assert_int_equal(left_by(&over), 0);
    assert_int_equal(left_by(&window), 1);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(publish_creates_or_replaces),
        T(links_are_replaced_and_directories_refused),
        T(publish_keeps_mode_owner_and_times),
        T(refused_link_is_remembered),
        T(unswap_restores_the_old_file),
        T(kill_leaves_nothing_but_between_link_and_rename),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
