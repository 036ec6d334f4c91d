/* jail_quarantine.c: what is taken out of a workspace, on the same file system and on another.
 */
#include "backend/jail/quarantine.h"

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
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/limits.h"
#include "os/tree.h"

#define ID "jail-1-aaaaaaaa"

typedef struct room {
    char ws[64], state[64];
    int dir;
    csn_quarantine q;
} room;

/* far: the store is on another file system. */
static bool enter(room *r, bool far)
{
    struct stat a, b;

    *r = (room){.q = {.fd = -1}};
    snprintf(r->ws, sizeof(r->ws), "/tmp/csn-quarantine.XXXXXX");
    snprintf(r->state, sizeof(r->state), "%s/csn-quarantine.XXXXXX", far ? "/dev/shm" : "/tmp");
    assert_non_null(mkdtemp(r->ws));
    if (!mkdtemp(r->state) || stat(r->ws, &a) < 0 || stat(r->state, &b) < 0)
        fail();
    assert_int_equal(setenv("XDG_STATE_HOME", r->state, 1), 0);
    r->dir = open(r->ws, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return far == (a.st_dev != b.st_dev);
}

static void leave(room *r)
{
    const char *const both[] = {r->ws, r->state};

    csn_quarantine_release(&r->q);
    close(r->dir);
    for (int i = 0; i < 2; i++) {
        char parent[64];
        snprintf(parent, sizeof(parent), "%.*s", (int)(strrchr(both[i], '/') - both[i]),
                 both[i]);
        int fd = open(parent, O_PATH | O_DIRECTORY | O_CLOEXEC);
        assert_int_equal(csn_tree_remove_force(fd, strrchr(both[i], '/') + 1), 0);
        close(fd);
    }
}

/* A file of `length` bytes, of which the first `data` are not a hole. */
static void put(const room *r, const char *name, off_t length, size_t data)
{
    static char bytes[65536];
    int fd = openat(r->dir, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0755);

    memset(bytes, 'x', sizeof(bytes));
    for (size_t n = 0; n < data; n += sizeof(bytes))
        assert_true(write(fd, bytes, data - n < sizeof(bytes) ? data - n : sizeof(bytes)) > 0);
    assert_int_equal(ftruncate(fd, length), 0);
    close(fd);
}

/* Returns the new path, which is valid until the next call. */
static const char *take(room *r, const char *name)
{
    static char where[512];
    struct stat st;
    char *path = NULL;

    assert_int_equal(csn_quarantine_file(&r->q, ID, r->dir, name, "from\n", &path), 0);
    assert_non_null(path);
    snprintf(where, sizeof(where), "%s", path);
    free(path);
    assert_int_equal(fstatat(r->dir, name, &st, AT_SYMLINK_NOFOLLOW), -1);
    return where;
}

static bool is_stored(const room *r, const char *path)
{
    return strncmp(path, r->state, strlen(r->state)) == 0;
}

static struct stat status_of(const char *path)
{
    struct stat st;

    assert_int_equal(lstat(path, &st), 0);
    return st;
}

static void holes_stay_holes(void **state)
{
    room r;

    (void)state;
    for (int far = 0; far < 2; far++) {
        bool apart = enter(&r, far);
        if (!apart) {
            leave(&r);
            print_message("one file system: not tried\n");
            continue;
        }
        for (int i = 0; i < 30; i++) {
            put(&r, "hook", (off_t)4 << 30, 10);
            const char *now = take(&r, "hook");
            assert_true(is_stored(&r, now));
            struct stat st = status_of(now);
            assert_int_equal(st.st_size, (off_t)4 << 30);
            assert_true(st.st_blocks <= 256);
        }
        put(&r, "empty", 0, 0);
        assert_int_equal(status_of(take(&r, "empty")).st_size, 0);
        put(&r, "all", 200000, 200000);
        struct stat st = status_of(take(&r, "all"));
        assert_int_equal(st.st_size, 200000);
        leave(&r);
    }
}

/* What does not fit stays in its directory, hidden and without permissions. */
static void bytes_are_bounded(void **state)
{
    room r;
    const size_t big = 100u << 20;
    int stored = 0, hidden = 0;

    (void)state;
    (void)enter(&r, true);
    for (int i = 0; i < 4; i++) {
        put(&r, "hook", (off_t)big, big);
        const char *now = take(&r, "hook");
        struct stat st = status_of(now);
        if (is_stored(&r, now)) {
            stored++;
            assert_int_equal(st.st_size, big);
        } else {
            hidden++;
            assert_int_equal(st.st_mode & 07777, 0);
            assert_non_null(strstr(now, "/.csn-aside-"));
            assert_int_equal(unlink(now), 0);
        }
    }
    assert_true(hidden >= 2); /* at most 256 MiB; fewer on a slow disk */
    assert_int_equal(stored + hidden, 4);
    leave(&r);
}

static void entries_are_bounded_over_all_handles(void **state)
{
    room r;

    (void)state;
    (void)enter(&r, false);
    for (unsigned i = 0; i < CSN_ASIDE_FILES_MAX; i++) {
        if (i == CSN_ASIDE_FILES_MAX / 2) { /* another handle of the same sandbox */
            csn_quarantine_release(&r.q);
        }
        put(&r, "hook", 1, 1);
        assert_true(is_stored(&r, take(&r, "hook")));
    }
    put(&r, "hook", 1, 1);
    assert_false(is_stored(&r, take(&r, "hook")));
    csn_quarantine_release(&r.q);
    put(&r, "hook", 1, 1);
    assert_false(is_stored(&r, take(&r, "hook")));
    leave(&r);
}

static void other_types_are_taken_too(void **state)
{
    room r;

    (void)state;
    for (int far = 0; far < 2; far++) {
        (void)enter(&r, far);
        assert_int_equal(mkfifoat(r.dir, "fifo", 0777), 0);
        assert_true(S_ISFIFO(status_of(take(&r, "fifo")).st_mode));
        assert_int_equal(symlinkat("/etc/passwd", r.dir, "link"), 0);
        assert_true(S_ISLNK(status_of(take(&r, "link")).st_mode));
        assert_int_equal(mkdirat(r.dir, "dir", 0755), 0);
        put(&r, "dir/in", 5, 5);
        (void)take(&r, "dir");
        put(&r, "unreadable", 5, 5);
        assert_int_equal(fchmodat(r.dir, "unreadable", 0, 0), 0);
        (void)take(&r, "unreadable");
        leave(&r);
    }
}

/* The other name may be a file of the user, which a command has linked. */
static void a_hard_link_keeps_its_mode(void **state)
{
    room r;
    struct stat st;

    (void)state;
    for (int far = 0; far < 2; far++) {
        (void)enter(&r, far);
        r.q.copy_ns = UINT64_MAX / 2; /* no time is left */
        put(&r, "mine", 5, 5);
        assert_int_equal(linkat(r.dir, "mine", r.dir, "hook", 0), 0);
        (void)take(&r, "hook");
        assert_int_equal(fstatat(r.dir, "mine", &st, 0), 0);
        assert_int_equal(st.st_mode & 0777, 0755);
        leave(&r);
    }
}

static void what_is_missing_is_told(void **state)
{
    room r;
    char *path = NULL;

    (void)state;
    (void)enter(&r, false);
    assert_int_equal(csn_quarantine_file(&r.q, ID, r.dir, "none", "", &path), -ENOENT);
    assert_null(path);
    leave(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(holes_stay_holes),
        cmocka_unit_test(bytes_are_bounded),
        cmocka_unit_test(entries_are_bounded_over_all_handles),
        cmocka_unit_test(other_types_are_taken_too),
        cmocka_unit_test(a_hard_link_keeps_its_mode),
        cmocka_unit_test(what_is_missing_is_told),
    };

    umask(022);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
