/* layers_overlay.c: random operations on an overlay that the kernel mounts, against a plain
 * copy.
 *
 * The same operations are made in the mount and in a copy of the base. Then the list of changes
 * must have exactly the differences between base and copy, which a full comparison of the two
 * finds. After some operations the upper directory becomes a layer, and a new one is mounted
 * above it. Runs in a user namespace of its own, with root and with an ordinary user outside.
 * CSN_TEST_SEED repeats a run. */
#include <dirent.h>
#include <inttypes.h>
#include <linux/capability.h>
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

#define LAYERS        12 /* their paths fit into one option */
#define ROUNDS        3
#define OPS_PER_LAYER 60
#define NO_OVERLAY    77
#define FILE_MAX      5000

static layer_world lw;
static int mnt = -1, copy = -1; /* roots of the two trees */
static uint64_t rng;
static time_t clock_s = 5000; /* the time that the next written file gets */

static uint32_t pick(uint32_t n)
{
    rng = rng * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(rng >> 33) % n;
}

/* ---- trees ---- */

static int open_dir(int at, const char *path)
{
    return openat(at, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

static ssize_t read_file(int at, const char *path, char *buf)
{
    int fd = openat(at, path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, buf, FILE_MAX);

    if (fd >= 0)
        close(fd);
    return n;
}

static int write_file(int at, const char *path, const char *data, size_t len, int flags)
{
    int fd = openat(at, path, O_WRONLY | O_NOFOLLOW | O_CLOEXEC | flags, 0644);

    if (fd < 0)
        return -1;
    int r = write(fd, data, len) == (ssize_t)len ? 0 : -1;
    close(fd);
    if (r == 0)
        world_time(at, path, clock_s);
    return r;
}

static ssize_t get_xattr(int at, const char *path, char value[8])
{
    int fd = openat(at, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : fgetxattr(fd, "user.t", value, 8);

    if (fd >= 0)
        close(fd);
    return n;
}

static bool same_entry(int a, int b, const char *path, const struct stat *x,
                       const struct stat *y, char *kind)
{
    static char p[FILE_MAX], q[FILE_MAX];
    char v[8] = "", u[8] = "";
    ssize_t n = 0, m = 0;
    mode_t type = x->st_mode & S_IFMT;

    *kind = 'T';
    if (type != (y->st_mode & S_IFMT))
        return false;
    *kind = 'M';
    if (type == S_IFREG) {
        n = read_file(a, path, p);
        m = read_file(b, path, q);
    } else if (type == S_IFLNK) {
        n = readlinkat(a, path, p, sizeof(p));
        m = readlinkat(b, path, q, sizeof(q));
    }
    if (n != m || (n > 0 && memcmp(p, q, (size_t)n) != 0))
        return false;
    *kind = 'X';
    if (type == S_IFLNK)
        return true;
    if (x->st_mode != y->st_mode)
        return false;
    if (type == S_IFREG &&
        (x->st_mtim.tv_sec != y->st_mtim.tv_sec || x->st_mtim.tv_nsec != y->st_mtim.tv_nsec))
        return false;
    if (type != S_IFREG && type != S_IFDIR)
        return true;
    n = get_xattr(a, path, v);
    m = get_xattr(b, path, u);
    return n == m && memcmp(v, u, sizeof(v)) == 0;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* All names of two directories (or -1), sorted, each once. */
static size_t names_of(int a, int b, char **ret, size_t max)
{
    size_t n = 0, kept = 0;

    for (int side = 0; side < 2; side++) {
        int fd = open_dir(side ? b : a, ".");
        DIR *d = fd < 0 ? NULL : fdopendir(fd);
        if (!d)
            continue;
        for (const struct dirent *e; (e = readdir(d)) != NULL;)
            if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0 && n < max)
                ret[n++] = strdup(e->d_name);
        closedir(d);
    }
    if (n > 1)
        qsort(ret, n, sizeof(*ret), by_name);
    for (size_t i = 0; i < n; i++)
        if (kept > 0 && strcmp(ret[kept - 1], ret[i]) == 0)
            free(ret[i]);
        else
            ret[kept++] = ret[i];
    return kept;
}

/* The slow way: everything in both directories, a before and b after; -1: it has none. */
static void full_compare(int a, int b, const char *dir, csn_buf *ret)
{
    char *names[64];
    size_t n = names_of(a, b, names, 64);

    for (size_t i = 0; i < n; i++) {
        struct stat x, y;
        char path[512], kind;
        snprintf(path, sizeof(path), "%s%s%s", dir, dir[0] ? "/" : "", names[i]);
        bool had = fstatat(a, names[i], &x, AT_SYMLINK_NOFOLLOW) == 0;
        bool has = fstatat(b, names[i], &y, AT_SYMLINK_NOFOLLOW) == 0;
        if (!had || !has)
            csn_buf_printf(ret, "%c %s\n", has ? 'A' : 'D', path);
        else if (!same_entry(a, b, names[i], &x, &y, &kind))
            csn_buf_printf(ret, "%c %s\n", kind, path);
        int below_a = open_dir(a, names[i]), below_b = open_dir(b, names[i]);
        if (below_a >= 0 || below_b >= 0)
            full_compare(below_a, below_b, path, ret);
        if (below_a >= 0)
            close(below_a);
        if (below_b >= 0)
            close(below_b);
        free(names[i]);
    }
}

static int copy_tree(int at, const char *from, const char *to)
{
    char data[FILE_MAX], p[512], q[512], *names[64];
    char value[8];
    struct stat st;

    if (fstatat(at, from, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return -1;
    if (S_ISLNK(st.st_mode)) {
        ssize_t n = readlinkat(at, from, data, sizeof(data) - 1);
        data[n < 0 ? 0 : n] = '\0';
        return symlinkat(data, at, to);
    }
    if (S_ISFIFO(st.st_mode))
        return mkfifoat(at, to, st.st_mode & 07777) < 0 ||
                       fchmodat(at, to, st.st_mode & 07777, 0) < 0
                   ? -1
                   : 0;
    if (S_ISDIR(st.st_mode)) {
        if (mkdirat(at, to, 0755) < 0)
            return -1;
        int r = 0, dir = open_dir(at, from);
        size_t n = names_of(dir, -1, names, 64);
        close(dir);
        for (size_t i = 0; i < n; i++) {
            snprintf(p, sizeof(p), "%s/%s", from, names[i]);
            snprintf(q, sizeof(q), "%s/%s", to, names[i]);
            r = r < 0 ? r : copy_tree(at, p, q);
            free(names[i]);
        }
        if (r < 0)
            return r;
    } else {
        ssize_t n = read_file(at, from, data);
        if (n < 0 || write_file(at, to, data, (size_t)n, O_CREAT | O_EXCL) < 0)
            return -1;
    }
    ssize_t n = get_xattr(at, from, value);
    int fd = openat(at, to, O_RDONLY | O_CLOEXEC);
    if (n >= 0)
        must(fsetxattr(fd, "user.t", value, (size_t)n, 0) == 0, to);
    fchmod(fd, st.st_mode & 07777);
    close(fd);
    world_time(at, to, st.st_mtim.tv_sec);
    return 0;
}

/* ---- operations ---- */

enum op {
    CREATE,
    WRITE,
    APPEND,
    CHMOD,
    XATTR,
    UNLINK,
    RMDIR,
    RMTREE,
    MKDIR,
    RENAME,
    MOVE_TREE,
    SYMLINK,
    LINK,
    FIFO,
    TOUCH,
    OPS
};

typedef struct step {
    enum op op;
    char a[64], b[64];
    char data[FILE_MAX];
    size_t len;
    mode_t mode;
} step;

/* A path of the copy: an entry that exists, or a directory that does and a random name in it.
 */
static void random_path(char *ret, size_t room, bool exists)
{
    size_t n = 0;
    int dir = open_dir(copy, ".");

    ret[0] = '\0';
    while (dir >= 0 && n + 4 < room && (n == 0 || pick(4) != 0)) {
        char *names[64], name[8] = "";
        size_t count = names_of(dir, -1, names, 64);
        if (count > 0)
            snprintf(name, sizeof(name), "%s", names[pick((uint32_t)count)]);
        for (size_t i = 0; i < count; i++)
            free(names[i]);
        int next = name[0] ? open_dir(dir, name) : -1;
        if (name[0] && (exists || next >= 0))
            n += (size_t)snprintf(ret + n, room - n, "%s%s", n ? "/" : "", name);
        close(dir);
        dir = next;
    }
    if (dir >= 0)
        close(dir);
    if (!exists || n == 0)
        snprintf(ret + n, room - n, "%s%c", n ? "/" : "", 'a' + (char)pick(6));
}

static void random_step(step *s)
{
    static const mode_t modes[] = {0644, 0600, 0755, 0444, 0000, 0200, 0700};

    s->op = pick(OPS);
    /* Else there is soon nothing left. */
    if (s->op == RMTREE && pick(3) != 0)
        s->op = MKDIR;
    bool makes = s->op == CREATE || s->op == MKDIR || s->op == SYMLINK || s->op == FIFO;
    random_path(s->a, sizeof(s->a), !makes);
    random_path(s->b, sizeof(s->b), s->op == RENAME && pick(2) == 0);
    s->len = pick(8) == 0 ? pick(FILE_MAX / 4) : pick(6);
    memset(s->data, 'a' + (char)pick(3), s->len);
    s->mode = modes[pick(sizeof(modes) / sizeof(modes[0]))];
    clock_s++;
}

static int set_xattr(int at, const step *s)
{
    int fd = openat(at, s->a, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

    if (fd < 0)
        return -1;
    int r =
        s->len > 3 ? fremovexattr(fd, "user.t") : fsetxattr(fd, "user.t", s->data, s->len, 0);
    close(fd);
    return r;
}

static int set_mode(int at, const step *s)
{
    struct stat st;

    if (fstatat(at, s->a, &st, AT_SYMLINK_NOFOLLOW) < 0 || S_ISLNK(st.st_mode))
        return -1;
    return fchmodat(at, s->a, s->mode, 0);
}

/* Linked files are not changed in place: a copy-up breaks the link, as documented. */
static bool is_linked(const char *path)
{
    struct stat st;

    return fstatat(copy, path, &st, AT_SYMLINK_NOFOLLOW) == 0 && !S_ISDIR(st.st_mode) &&
           st.st_nlink > 1;
}

static int move_tree(int at, const step *s)
{
    if (strncmp(s->a, s->b, strlen(s->a)) == 0 || copy_tree(at, s->a, s->b) < 0)
        return -1;
    return csn_tree_remove_force(at, s->a) < 0 ? -1 : 0;
}

static int apply(int at, const step *s)
{
    switch (s->op) {
    case CREATE:
        return write_file(at, s->a, s->data, s->len, O_CREAT | O_EXCL);
    case WRITE:
        return write_file(at, s->a, s->data, s->len, O_TRUNC | O_NONBLOCK);
    case APPEND:
        return write_file(at, s->a, s->data, s->len, O_APPEND | O_NONBLOCK);
    case CHMOD:
        return set_mode(at, s);
    case XATTR:
        return set_xattr(at, s);
    case UNLINK:
        return unlinkat(at, s->a, 0);
    case RMDIR:
        return unlinkat(at, s->a, AT_REMOVEDIR);
    case RMTREE:
        return csn_tree_remove_force(at, s->a) < 0 ? -1 : 0;
    case MKDIR:
        return mkdirat(at, s->a, 0755);
    case RENAME:
        return renameat(at, s->a, at, s->b);
    case MOVE_TREE:
        return move_tree(at, s);
    case SYMLINK:
        return symlinkat(s->b, at, s->a);
    case LINK:
        return linkat(at, s->a, at, s->b, 0);
    case FIFO:
        return mkfifoat(at, s->a, 0644);
    case TOUCH:
        return faccessat(at, s->a, F_OK, AT_SYMLINK_NOFOLLOW) < 0
                   ? -1
                   : (world_time(at, s->a, clock_s), 0);
    case OPS:
        break;
    }
    abort();
}

/* Trees stay below FILE_MAX: a file that many appends made long is not appended to. */
static bool is_full(const step *s)
{
    struct stat st;

    return s->op == APPEND && fstatat(copy, s->a, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
           st.st_size > FILE_MAX / 2;
}

/* The same in both trees. A directory that the base has, too, cannot be renamed in an overlay
 * (EXDEV): programs copy it then. */
static bool step_both(step *s)
{
    bool in_place =
        s->op == WRITE || s->op == APPEND || s->op == CHMOD || s->op == XATTR || s->op == TOUCH;

    if ((in_place && is_linked(s->a)) || is_full(s))
        return true;
    /* rename does nothing if both names are one file, which they may not be in the mount. */
    if (s->op == RENAME && is_linked(s->a) && is_linked(s->b))
        return true;
    int r = apply(mnt, s), e = errno;
    if (r < 0 && s->op == RENAME && e == EXDEV) {
        s->op = MOVE_TREE;
        r = apply(mnt, s);
        e = errno;
    }
    bool same = (r < 0) == (apply(copy, s) < 0);
    if (!same)
        fprintf(stderr, "# op %d %s %s: %s in the mount\n", (int)s->op, s->a, s->b,
                r < 0 ? strerrordesc_np(e) : "done");
    return same;
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

static bool set_fd(int fs, const char *key, int dir)
{
    char path[32];

    snprintf(path, sizeof(path), "/proc/self/fd/%d", dir);
    return syscall(SYS_fsconfig, fs, FSCONFIG_SET_STRING, key, path, 0) == 0;
}

/* The newest layer of the stack is the upper directory. */
static bool mount_overlay(void)
{
    char lower[256] = "";
    size_t n = 0;
    int fs = (int)syscall(SYS_fsopen, "overlay", FSOPEN_CLOEXEC);

    for (size_t i = 1; i <= lw.stack.count; i++)
        n += (size_t)snprintf(lower + n, sizeof(lower) - n, "%s/proc/self/fd/%d", n ? ":" : "",
                              i < lw.stack.count ? lw.stack.layers[i] : lw.stack.base);
    (void)csn_tree_remove_force(lw.top_fd, "work");
    must(mkdirat(lw.top_fd, "work", 0755) == 0, "work");
    int work = open_dir(lw.top_fd, "work");
    bool ok = fs >= 0 &&
              syscall(SYS_fsconfig, fs, FSCONFIG_SET_STRING, "lowerdir", lower, 0) == 0 &&
              set_fd(fs, "upperdir", lw.stack.layers[0]) && set_fd(fs, "workdir", work) &&
              syscall(SYS_fsconfig, fs, FSCONFIG_SET_FLAG, "userxattr", NULL, 0) == 0 &&
              syscall(SYS_fsconfig, fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) == 0;
    mnt = ok ? (int)syscall(SYS_fsmount, fs, FSMOUNT_CLOEXEC, 0) : -1;
    close(work);
    if (fs >= 0)
        close(fs);
    return mnt >= 0;
}

/* The upper directory becomes a layer, a new one comes above it. */
static bool freeze(size_t number)
{
    char name[16];

    if (mnt >= 0)
        close(mnt); /* never attached: unmounted with its last descriptor */
    snprintf(name, sizeof(name), "%zu", number);
    must(mkdirat(lw.top_fd, name, 0755) == 0, name);
    memmove(lw.stack.layers + 1, lw.stack.layers, lw.stack.count * sizeof(int));
    lw.stack.layers[0] = open_dir(lw.top_fd, name);
    lw.stack.count++;
    return mount_overlay();
}

/* ---- checking ---- */

/* Without capabilities, modes apply to us as to any owner of files. */
static void set_capabilities(bool on)
{
    struct __user_cap_header_struct head = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct data[2];

    must(syscall(SYS_capget, &head, data) == 0, "capget");
    for (int i = 0; i < 2; i++)
        data[i].effective = on ? data[i].permitted : 0;
    must(syscall(SYS_capset, &head, data) == 0, "capset");
}

static bool content_is_right(const csn_layer_change *c)
{
    static char p[FILE_MAX], q[FILE_MAX];
    ssize_t n = -1, m = -1;

    if (S_ISREG(c->after.mode)) {
        set_capabilities(false);
        int fd = csn_layer_open(&lw.stack, c, true);
        set_capabilities(true);
        n = fd < 0 ? -2 : read(fd, p, sizeof(p));
        m = read_file(copy, c->path, q);
        if (fd >= 0)
            close(fd);
    } else if (S_ISLNK(c->after.mode)) {
        csn_autofree char *text = csn_layer_readlink(&lw.stack, c, true);
        m = readlinkat(copy, c->path, q, sizeof(q));
        n = text ? (ssize_t)strlen(text) : -2;
        if (text)
            memcpy(p, text, strlen(text));
    }
    return n == m && (n <= 0 || memcmp(p, q, (size_t)n) == 0);
}

static bool check_equal(const char *what, const char *got, const char *expected)
{
    if (strcmp(got, expected) == 0)
        return true;
    fprintf(stderr, "# %s: got\n%s# expected\n%s", what, got, expected);
    return false;
}

static bool check(void)
{
    csn_layer_changes c = {0};
    csn_error *err = NULL;
    csn_autobuf listed, expected, drift;
    int base = open_dir(lw.top_fd, "base");

    csn_buf_init(&expected, SIZE_MAX);
    csn_buf_init(&drift, SIZE_MAX);
    csn_buf_puts(&expected, "");
    csn_buf_puts(&drift, "");
    set_capabilities(false);
    csn_status st = csn_layer_changes_list(&lw.stack, NULL, &c, &err);
    set_capabilities(true);
    world_rows(&c, &listed);
    full_compare(base, copy, "", &expected);
    full_compare(mnt, copy, "", &drift);
    close(base);
    if (st != CSN_OK)
        fprintf(stderr, "# %s\n", csn_error_message(err));
    bool ok = st == CSN_OK && check_equal("mount and copy differ", drift.data, "") &&
              check_equal("rows", listed.data, expected.data);
    for (size_t i = 0; ok && i < c.count; i++)
        if (!(ok = content_is_right(&c.v[i])))
            fprintf(stderr, "# content of %s\n", c.v[i].path);
    csn_layer_changes_release(&c);
    return ok;
}

/* ---- runs ---- */

/* The same entries in base and copy. */
static void fill(void)
{
    static step s;
    int base = open_dir(lw.top_fd, "base");

    for (int i = 0; i < 120; i++) {
        random_step(&s);
        random_path(s.a, sizeof(s.a), false);
        s.op = i < 20 || pick(3) == 0 ? MKDIR : pick(4) == 0 ? SYMLINK : CREATE;
        must((apply(base, &s) < 0) == (apply(copy, &s) < 0), "fill");
    }
    close(base);
}

static int random_layers(void)
{
    static step s;

    for (size_t layer = 0; layer < LAYERS; layer++) {
        if (!freeze(layer)) {
            fprintf(stderr, "# overlay: %s\n", strerrordesc_np(errno));
            return NO_OVERLAY;
        }
        for (int i = 0; i < OPS_PER_LAYER; i++) {
            random_step(&s);
            if (!step_both(&s) || (i % 10 == 0 && !check()))
                return 1;
        }
        if (!check())
            return 1;
    }
    return 0;
}

static int one_round(void)
{
    world_make(&lw, 0);
    put_dir(lw.top_fd, "copy");
    copy = open_dir(lw.top_fd, "copy");
    fill();
    int r = random_layers();
    if (mnt >= 0)
        close(mnt);
    close(copy);
    mnt = copy = -1;
    world_wipe(&lw);
    return r;
}

static int all_rounds(void *ctx)
{
    const char *seed = getenv("CSN_TEST_SEED");
    struct timespec now;
    int r = 0;

    if (ctx && geteuid() == 0)
        must(setresgid(WORLD_USER, WORLD_USER, WORLD_USER) == 0 &&
                 setresuid(WORLD_USER, WORLD_USER, WORLD_USER) == 0 &&
                 prctl(PR_SET_DUMPABLE, 1L, 0L, 0L, 0L) == 0,
             "setresuid");
    clock_gettime(CLOCK_REALTIME, &now);
    rng = seed ? strtoull(seed, NULL, 10) : (uint64_t)now.tv_nsec;
    printf("# CSN_TEST_SEED=%" PRIu64 "\n", rng);
    if (!enter_namespace())
        return NO_OVERLAY;
    umask(022);
    for (int i = 0; i < ROUNDS && r == 0; i++)
        r = one_round();
    return r;
}

static void run(void *as_user)
{
    csn_child_end end = csn_child_run(all_rounds, as_user, -1, 600000);

    if (end.exit_code == NO_OVERLAY)
        SKIP("no overlay mounts in a user namespace here");
    assert_int_equal(end.signal, 0);
    assert_int_equal(end.exit_code, 0);
}

static void rows_are_the_differences_to_a_plain_copy(void **state)
{
    (void)state;
    run(NULL);
}

static void rows_are_the_differences_to_a_plain_copy_as_user(void **state)
{
    (void)state;
    run(&lw);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_the_differences_to_a_plain_copy),
        cmocka_unit_test(rows_are_the_differences_to_a_plain_copy_as_user),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
