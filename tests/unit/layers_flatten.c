/* layers_flatten.c: merged layers mean the same as the layers they were made of.
 *
 * Random layers are compared with their merge twice: by the list of changes, and by the whole
 * tree that an overlay of the kernel shows, in a user namespace of its own. CSN_TEST_SEED
 * repeats a run. */
#include <dirent.h>
#include <inttypes.h>
#include <linux/mount.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <time.h>

#include <cmocka.h>

#include "child.h"
#include "layer_world.h"
#include "layers/flatten.h"

#define LAYERS     5
#define ROUNDS     60
#define NO_OVERLAY 77

static layer_world lw;
static int to = -1;
static uint64_t rng;

static uint32_t pick(uint32_t n)
{
    rng = rng * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(rng >> 33) % n;
}

static void make(size_t layers)
{
    world_make(&lw, layers);
    world_dir(&lw, "to");
    to = openat(lw.top_fd, "to", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static int setup(void **state)
{
    (void)state;
    make(3);
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
    close(to);
    world_wipe(&lw);
    if (getuid() == 0)
        must(seteuid(0) == 0 && setegid(0) == 0, "seteuid");
    return 0;
}

/* ---- trees as text ---- */

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* An overlay lists whiteouts in a directory that only one layer has. Layers that the kernel
 * made have none there, random ones do. */
static int phantoms;

static void render_dir(int dir, const char *path, csn_buf *ret);

static void render_entry(int dir, const char *name, const char *path, csn_buf *ret)
{
    char data[64] = "", value[16] = "";
    struct stat st;

    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0) {
        phantoms++;
        return;
    }
    int fd = S_ISLNK(st.st_mode) || S_ISCHR(st.st_mode)
                 ? -1
                 : openat(dir, name, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (S_ISLNK(st.st_mode))
        must(readlinkat(dir, name, data, sizeof(data) - 1) >= 0, path);
    else if (S_ISREG(st.st_mode))
        must(read(fd, data, sizeof(data) - 1) >= 0, path);
    (void)fgetxattr(fd, "user.t", value, sizeof(value) - 1);
    csn_buf_printf(ret, "%s %o %lld %s %s\n", path, st.st_mode, (long long)st.st_mtim.tv_sec,
                   data, value);
    if (S_ISDIR(st.st_mode))
        render_dir(fd, path, ret);
    if (fd >= 0)
        close(fd);
}

static void render_dir(int dir, const char *path, csn_buf *ret)
{
    char *names[32], below[256];
    size_t n = 0;
    int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fdopendir(fd);

    must(d != NULL, path);
    for (const struct dirent *e; (e = readdir(d)) != NULL;)
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0 && n < 32)
            names[n++] = strdup(e->d_name);
    closedir(d);
    if (n > 1)
        qsort(names, n, sizeof(*names), by_name);
    for (size_t i = 0; i < n; i++) {
        snprintf(below, sizeof(below), "%s/%s", path, names[i]);
        render_entry(dir, names[i], below, ret);
        free(names[i]);
    }
}

/* What the list of changes says, with the sides that a commit would apply. */
static void render_changes(const csn_layer_stack *s, csn_buf *ret)
{
    csn_layer_changes c = {0};
    csn_error *err = NULL;

    csn_buf_init(ret, SIZE_MAX);
    csn_buf_puts(ret, "");
    must(csn_layer_changes_list(s, NULL, &c, &err) == CSN_OK, "list");
    for (size_t i = 0; i < c.count; i++) {
        csn_layer_change *r = &c.v[i];
        char data[64] = "";
        int fd = S_ISREG(r->after.mode) ? csn_layer_open(s, r, true) : -1;
        must(fd < 0 || read(fd, data, sizeof(data) - 1) >= 0, r->path);
        if (fd >= 0)
            close(fd);
        csn_buf_printf(ret, "%d %s %o %lld %s\n", (int)r->kind, r->path, r->after.mode,
                       (long long)r->after.mtime.tv_sec, data);
    }
    csn_layer_changes_release(&c);
}

/* The stack after the merge of the layers from `from` on. */
static csn_layer_stack merged(size_t from)
{
    csn_layer_stack s = lw.stack;

    s.layers[from] = to;
    s.count = from + 1;
    return s;
}

/* ---- random layers ---- */

static void random_dir(int dir, bool layer, int depth)
{
    for (int i = 0; i < 5; i++) {
        char name[2] = {(char)('a' + pick(5)), '\0'}, text[16];
        uint32_t kind = pick(layer ? 10 : 6);
        if (faccessat(dir, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
            continue;
        snprintf(text, sizeof(text), "%u", pick(1000));
        if (kind >= 8) {
            must(mknodat(dir, name, S_IFCHR, makedev(0, 0)) == 0, "whiteout");
        } else if (kind == 0) {
            put_link(dir, text, name);
        } else if (kind < 3 || depth == 3) {
            put_file(dir, name, text);
            must(fchmodat(dir, name, pick(2) ? 0644 : 0600, 0) == 0, "chmod");
        } else {
            must(mkdirat(dir, name, pick(2) ? 0755 : 0700) == 0, "mkdir");
            int sub = openat(dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
            if (layer && pick(4) == 0)
                must(fsetxattr(sub, "user.overlay.opaque", "y", 1, 0) == 0, "opaque");
            if (pick(2) == 0)
                must(fsetxattr(sub, "user.t", text, strlen(text), 0) == 0, "xattr");
            random_dir(sub, layer, depth + 1);
            close(sub);
        }
        world_time(dir, name, 1000 + (time_t)pick(1000));
    }
}

static void fill(void)
{
    int base = openat(lw.top_fd, "base", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    random_dir(base, false, 0);
    close(base);
    for (size_t i = 0; i < lw.stack.count; i++)
        random_dir(lw.stack.layers[i], true, 0);
}

static void seed(void)
{
    const char *given = getenv("CSN_TEST_SEED");
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    rng = given ? strtoull(given, NULL, 10) : (uint64_t)now.tv_nsec;
    printf("# CSN_TEST_SEED=%" PRIu64 "\n", rng);
}

static bool is_equal(const csn_buf *a, const csn_buf *b)
{
    if (strcmp(a->data, b->data) == 0)
        return true;
    fprintf(stderr, "# layers:\n%s# merged:\n%s", a->data, b->data);
    return false;
}

/* ---- mounts ---- */

static bool write_text(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    bool ok = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);

    if (fd >= 0)
        close(fd);
    return ok;
}

static bool enter_namespace(void)
{
    char uid[64], gid[64];

    snprintf(uid, sizeof(uid), "%u %u 1", geteuid(), geteuid());
    snprintf(gid, sizeof(gid), "%u %u 1", getegid(), getegid());
    return unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0 &&
           write_text("/proc/self/setgroups", "deny") &&
           write_text("/proc/self/uid_map", uid) && write_text("/proc/self/gid_map", gid);
}

/* Read-only: all directories are lower ones. -1: it cannot be mounted. */
static int mount_stack(const csn_layer_stack *s)
{
    char lower[256] = "";
    size_t n = 0;
    int fs = (int)syscall(SYS_fsopen, "overlay", FSOPEN_CLOEXEC);

    for (size_t i = 0; i <= s->count; i++)
        n += (size_t)snprintf(lower + n, sizeof(lower) - n, "%s/proc/self/fd/%d", n ? ":" : "",
                              i < s->count ? s->layers[i] : s->base);
    bool ok = fs >= 0 &&
              syscall(SYS_fsconfig, fs, FSCONFIG_SET_STRING, "lowerdir", lower, 0) == 0 &&
              syscall(SYS_fsconfig, fs, FSCONFIG_SET_FLAG, "userxattr", NULL, 0) == 0 &&
              syscall(SYS_fsconfig, fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) == 0;
    int mnt = ok ? (int)syscall(SYS_fsmount, fs, FSMOUNT_CLOEXEC, 0) : -1;
    if (fs >= 0)
        close(fs);
    return mnt;
}

static bool mounts_are_equal(const csn_layer_stack *a, const csn_layer_stack *b)
{
    csn_autobuf x, y;
    csn_autofd int p = mount_stack(a);
    csn_autofd int q = mount_stack(b);

    if (p < 0 || q < 0)
        exit(NO_OVERLAY);
    csn_buf_init(&x, SIZE_MAX);
    csn_buf_init(&y, SIZE_MAX);
    csn_buf_puts(&x, "");
    csn_buf_puts(&y, "");
    render_dir(p, "", &x);
    phantoms = 0;
    render_dir(q, "", &y);
    if (b->count == 1 && phantoms > 0)
        fprintf(stderr, "# %d names without a file\n", phantoms);
    return is_equal(&x, &y) && (b->count > 1 || phantoms == 0);
}

/* ---- the property ---- */

/* `to` moves to a file system of its own, where files must be copied. Where user.* attributes
 * do not work there, it stays. */
static bool move_target(void)
{
    char path[80];

    snprintf(path, sizeof(path), "%s/to", lw.top);
    if (mount("none", path, "tmpfs", 0, NULL) < 0)
        return false;
    if (setxattr(path, "user.t", "x", 1, 0) < 0 || removexattr(path, "user.t") < 0) {
        umount2(path, MNT_DETACH);
        return false;
    }
    close(to);
    to = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return true;
}

static bool one_round(void)
{
    csn_autobuf x, y;
    char path[80];
    size_t from = pick(LAYERS);

    make(LAYERS);
    bool moved = pick(3) == 0 && move_target();
    fill();
    int rc = csn_layer_flatten(&lw.stack, from, to);
    csn_layer_stack m = merged(from);
    render_changes(&lw.stack, &x);
    render_changes(&m, &y);
    bool ok = rc == 0 && is_equal(&x, &y) && mounts_are_equal(&lw.stack, &m);
    close(to);
    snprintf(path, sizeof(path), "%s/to", lw.top);
    if (moved)
        must(umount2(path, MNT_DETACH) == 0, "umount");
    world_wipe(&lw);
    return ok;
}

static int all_rounds(void *as_user)
{
    if (as_user && geteuid() == 0)
        must(setresgid(WORLD_USER, WORLD_USER, WORLD_USER) == 0 &&
                 setresuid(WORLD_USER, WORLD_USER, WORLD_USER) == 0 &&
                 prctl(PR_SET_DUMPABLE, 1L, 0L, 0L, 0L) == 0,
             "setresuid");
    seed();
    umask(022);
    if (!enter_namespace())
        return NO_OVERLAY;
    for (int i = 0; i < ROUNDS; i++)
        if (!one_round())
            return 1;
    return 0;
}

static void run(void *as_user)
{
    csn_child_end end = csn_child_run(all_rounds, as_user, -1, 600000);

    if (end.exit_code == NO_OVERLAY)
        SKIP("no overlay mounts in a user namespace here");
    assert_int_equal(end.signal, 0);
    assert_int_equal(end.exit_code, 0);
}

static void merged_layers_show_the_same_tree(void **state)
{
    (void)state;
    run(NULL);
}

static void merged_layers_show_the_same_tree_as_user(void **state)
{
    (void)state;
    run(&lw);
}

/* ---- single rules ---- */

static bool has(const char *path)
{
    struct stat st;

    return fstatat(to, path, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

static ino_t inode(const char *path)
{
    struct stat st;

    must(fstatat(lw.top_fd, path, &st, AT_SYMLINK_NOFOLLOW) == 0, path);
    return st.st_ino;
}

static bool is_opaque(const char *path)
{
    char value[2] = "";
    int fd = openat(to, path, O_RDONLY | O_CLOEXEC);
    bool yes = fgetxattr(fd, "user.overlay.opaque", value, 2) == 1 && value[0] == 'y';

    close(fd);
    return yes;
}

static void files_are_shared_and_newer_ones_hide_older_ones(void **state)
{
    (void)state;
    world_file(&lw, "0/only-in-the-first", "x");
    world_file(&lw, "1/f", "new");
    world_file(&lw, "2/f", "old");
    world_file(&lw, "2/d/g", "x");
    must(linkat(lw.top_fd, "2/d/g", lw.top_fd, "2/d/h", 0) == 0, "link");
    assert_int_equal(csn_layer_flatten(&lw.stack, 1, to), 0);
    assert_int_equal(inode("to/f"), inode("1/f"));
    assert_int_equal(inode("to/d/g"), inode("2/d/g"));
    assert_int_equal(inode("to/d/h"), inode("2/d/g"));
    assert_false(has("only-in-the-first"));
}

static void whiteouts_stay_only_where_the_base_can_show_through(void **state)
{
    (void)state;
    world_whiteout(&lw, "0/f");
    world_file(&lw, "1/f", "x");
    world_opaque(&lw, "0/o");
    world_whiteout(&lw, "0/o/gone");
    world_dir(&lw, "base/both");
    world_whiteout(&lw, "0/both/gone");
    world_whiteout(&lw, "0/new/gone");
    world_file(&lw, "1/new/gone", "x");
    assert_int_equal(csn_layer_flatten(&lw.stack, 0, to), 0);
    assert_true(has("f") && has("o") && has("both/gone") && has("new"));
    assert_false(has("o/gone") || has("new/gone"));
}

static void directory_above_a_whiteout_becomes_opaque(void **state)
{
    (void)state;
    world_file(&lw, "0/d/new", "x");
    world_whiteout(&lw, "1/d");
    world_file(&lw, "2/d/old", "x");
    world_file(&lw, "0/e/new", "x");
    world_file(&lw, "1/e", "a file");
    world_file(&lw, "0/plain/new", "x");
    assert_int_equal(csn_layer_flatten(&lw.stack, 0, to), 0);
    assert_true(has("d/new") && has("e/new"));
    assert_false(has("d/old"));
    assert_true(is_opaque("d") && is_opaque("e"));
    assert_false(is_opaque("plain"));
}

static void directory_gets_the_attributes_of_the_newest_layer(void **state)
{
    struct stat st;

    (void)state;
    world_dir(&lw, "0/d");
    world_dir(&lw, "1/d");
    world_file(&lw, "1/d/f", "x");
    world_xattr(&lw, "0/d", "user.t", "new");
    world_xattr(&lw, "1/d", "user.t", "old");
    must(fchmodat(lw.top_fd, "0/d", 0, 0) == 0, "chmod");
    world_time(lw.top_fd, "0/d", 4711);
    assert_int_equal(csn_layer_flatten(&lw.stack, 0, to), 0);
    must(fstatat(to, "d", &st, 0) == 0, "stat");
    assert_int_equal(st.st_mode & 07777, 0);
    assert_int_equal(st.st_mtim.tv_sec, 4711);
    must(fchmodat(to, "d", 0700, 0) == 0, "chmod");
    char value[8] = "";
    int fd = openat(to, "d", O_RDONLY | O_CLOEXEC);
    assert_int_equal(fgetxattr(fd, "user.t", value, sizeof(value)), 3);
    close(fd);
    assert_string_equal(value, "new");
    assert_true(has("d/f"));
}

static void merge_of_no_layer_is_refused(void **state)
{
    (void)state;
    assert_int_equal(csn_layer_flatten(&lw.stack, 3, to), -EINVAL);
}

#define BOTH(t)                                                                                \
    {#t, t, setup, teardown, NULL},                                                            \
    {                                                                                          \
#t "_as_user", t, setup_as_user, teardown, NULL                                        \
    }

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(merged_layers_show_the_same_tree),
        cmocka_unit_test(merged_layers_show_the_same_tree_as_user),
        BOTH(files_are_shared_and_newer_ones_hide_older_ones),
        BOTH(whiteouts_stay_only_where_the_base_can_show_through),
        BOTH(directory_above_a_whiteout_becomes_opaque),
        BOTH(directory_gets_the_attributes_of_the_newest_layer),
        BOTH(merge_of_no_layer_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
