/* cow_guest.c: changes the tree in its working directory at random, the same way for the same
 * seed. cow_property runs it in a copy-on-write workspace and in a plain directory.
 *
 *   cow_guest run SEED COUNT      prints the error number of each operation, a line "tree", and
 *                                 the tree as `show` does
 *   cow_guest replay SEED COUNT   reads the error numbers of `run` and checks them; operations
 *                                 that an overlay cannot do (EXDEV) are left out
 *   cow_guest show                prints one line for each path: type and mode, size, content,
 *                                 attributes; then the time, or "now", the exact time, and
 *                                 "sparse" or "-"
 *   cow_guest names               prints each path of a file with several, and the first of
 * them cow_guest split               gives each name of a file with several an inode of its own
 *
 * Paths come from a small set, so that operations meet. Times that are set lie long before the
 * present; all others are "now". The kernel fills holes when it copies a file to the upper
 * layer, so that column is for files that are not changed any more. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#define PATHS_MAX  4096
#define BYTES_MAX  3000
#define SPARSE_MIN (192 * 1024) /* a file of this size with a hole in most of it is sparse */
#define OLD_TIMES  1000000000   /* what is set is smaller */

/* ---- random numbers and paths ---- */

static uint64_t seed;

static uint64_t next(void)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return seed * 0x2545f4914f6cdd1dull >> 16;
}

static unsigned below(unsigned n)
{
    return (unsigned)(next() % n);
}

static void random_path(char ret[16])
{
    static const char names[] = "abcd";
    unsigned r = below(12), depth = r < 1   ? 1
                                    : r < 5 ? 2
                                            : 3; /* the top shall not change much */
    char *p = ret;

    for (unsigned i = 0; i < depth; i++) {
        if (i > 0)
            *p++ = '/';
        *p++ = names[below(4)];
    }
    *p = '\0';
}

static size_t random_bytes(char ret[BYTES_MAX])
{
    size_t len = 1 + below(below(4) == 0 ? BYTES_MAX : 60);
    uint64_t state = next() | 1;

    for (size_t i = 0; i < len; i++) {
        state = state * 6364136223846793005ull + 1442695040888963407ull;
        ret[i] = (char)('a' + (state >> 59));
    }
    return len;
}

/* ---- operations: 0 or the error number ---- */

static int close_after(int fd, bool good)
{
    int e = good ? 0 : errno;

    if (fd >= 0)
        close(fd);
    return e;
}

static int write_file(const char *path, int flags, unsigned mode, off_t offset)
{
    char bytes[BYTES_MAX];
    size_t len = random_bytes(bytes);
    int fd = open(path, flags | O_WRONLY | O_NOFOLLOW | O_CLOEXEC, mode);

    return close_after(fd, fd >= 0 && (flags & O_APPEND
                                           ? write(fd, bytes, len)
                                           : pwrite(fd, bytes, len, offset)) == (ssize_t)len);
}

static int op_write(const char *path)
{
    return write_file(path, O_CREAT | O_TRUNC, below(2) ? 0644 : 0755, 0);
}

static int op_create(const char *path)
{
    return write_file(path, O_CREAT | O_EXCL, 0600, 0);
}

static int op_write_at(const char *path)
{
    return write_file(path, 0, 0, below(6000));
}

static int op_append(const char *path)
{
    return write_file(path, O_APPEND, 0, 0);
}

static int op_truncate(const char *path)
{
    off_t size = below(4) == 0 ? 0 : below(5000);
    int fd = open(path, O_WRONLY | O_NOFOLLOW | O_CLOEXEC);

    return close_after(fd, fd >= 0 && ftruncate(fd, size) == 0);
}

static int op_map(const char *path)
{
    char bytes[BYTES_MAX];
    size_t len = random_bytes(bytes), at = below(9000);
    struct stat st;
    int fd = open(path, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
    bool good = fd >= 0 && fstat(fd, &st) == 0 &&
                (st.st_size >= (off_t)(at + len) || ftruncate(fd, (off_t)(at + len)) == 0);
    char *map =
        good ? mmap(NULL, at + len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) : MAP_FAILED;
    const struct timespec now[] = {{.tv_nsec = UTIME_NOW}, {.tv_nsec = UTIME_NOW}};

    if (map != MAP_FAILED) {
        memcpy(map + at, bytes, len);
        /* The kernel sets the time of a mapped write at the first fault or later. */
        good = msync(map, at + len, MS_SYNC) == 0 && futimens(fd, now) == 0;
        munmap(map, at + len);
    }
    return close_after(fd, good && map != MAP_FAILED);
}

static int op_sparse(const char *path)
{
    off_t size = SPARSE_MIN + below(100000), at = below(100) * 1000;
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0644);

    return close_after(fd, fd >= 0 && ftruncate(fd, size) == 0 && pwrite(fd, "x", 1, at) == 1);
}

static int op_mkdir(const char *path)
{
    return mkdir(path, below(2) ? 0755 : 0700) < 0 ? errno : 0;
}

static int op_rmdir(const char *path)
{
    return rmdir(path) < 0 ? errno : 0;
}

static int op_unlink(const char *path)
{
    return unlink(path) < 0 ? errno : 0;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *f)
{
    (void)st;
    (void)type;
    (void)f;
    return remove(path) < 0 ? errno : 0;
}

static int op_remove_tree(const char *path)
{
    int rc = nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);

    return rc < 0 ? errno : rc;
}

static int op_rename(const char *path)
{
    static const unsigned flags[] = {0, 0, 0, RENAME_NOREPLACE, RENAME_EXCHANGE};
    char to[16];

    random_path(to);
    return renameat2(AT_FDCWD, path, AT_FDCWD, to, flags[below(5)]) < 0 ? errno : 0;
}

/* Of a new file. In a user namespace an overlay shows two names of a file of a lower layer as
 * two inodes, each with a mode of its own, and renames none to the other (ESTALE). */
static int op_link(const char *path)
{
    char to[16];

    random_path(to);
    int e = op_create(path);
    if (e != 0)
        return e;
    return link(path, to) < 0 ? errno : 0;
}

static int op_symlink(const char *path)
{
    char to[16];

    random_path(to);
    return symlink(to, path) < 0 ? errno : 0;
}

static int op_chmod(const char *path)
{
    static const mode_t files[] = {0644, 0600, 0755, 0444, 0400};
    static const mode_t dirs[] = {0755, 0700, 0777, 01777};
    unsigned which = below(12);
    struct stat st;

    if (stat(path, &st) < 0)
        return errno;
    return chmod(path, S_ISDIR(st.st_mode) ? dirs[which % 4] : files[which % 5]) < 0 ? errno
                                                                                     : 0;
}

static int op_times(const char *path)
{
    const struct timespec t[] = {
        {.tv_nsec = UTIME_OMIT},
        {.tv_sec = below(OLD_TIMES), .tv_nsec = below(2) ? 0 : below(1000000000)}};

    return utimensat(AT_FDCWD, path, t, AT_SYMLINK_NOFOLLOW) < 0 ? errno : 0;
}

static int op_attribute(const char *path)
{
    static const char *const attrs[] = {"user.one", "user.two"};
    char bytes[BYTES_MAX];
    size_t len = random_bytes(bytes) % 200;
    const char *name = attrs[below(2)];

    if (below(3) == 0)
        return lremovexattr(path, name) < 0 ? errno : 0;
    return lsetxattr(path, name, bytes, len, 0) < 0 ? errno : 0;
}

static int op_file_to_dir(const char *path)
{
    char in[32];

    snprintf(in, sizeof(in), "%s/a", path);
    if (unlink(path) < 0 || mkdir(path, 0755) < 0)
        return errno;
    return op_write(in);
}

static int op_dir_to_file(const char *path)
{
    struct stat st;

    if (lstat(path, &st) < 0)
        return errno;
    if (!S_ISDIR(st.st_mode))
        return ENOTDIR;
    int e = op_remove_tree(path);
    return e != 0 ? e : op_write(path);
}

static const struct {
    const char *name;
    int (*fn)(const char *path);
    unsigned weight;
} operations[] = {{"write", op_write, 3},
                  {"create", op_create, 1},
                  {"write at an offset", op_write_at, 1},
                  {"append", op_append, 1},
                  {"map", op_map, 2},
                  {"truncate", op_truncate, 1},
                  {"sparse", op_sparse, 1},
                  {"mkdir", op_mkdir, 3},
                  {"rmdir", op_rmdir, 1},
                  {"unlink", op_unlink, 1},
                  {"rename", op_rename, 3},
                  {"link", op_link, 2},
                  {"symlink", op_symlink, 1},
                  {"chmod", op_chmod, 2},
                  {"times", op_times, 3},
                  {"attribute", op_attribute, 2},
                  {"file to directory", op_file_to_dir, 1},
                  {"directory to file", op_dir_to_file, 1},
                  {"remove tree", op_remove_tree, 1}};
#define WEIGHTS 31

static size_t choose(void)
{
    unsigned r = below(WEIGHTS);
    size_t i = 0;

    for (; r >= operations[i].weight; i++)
        r -= operations[i].weight;
    return i;
}

/* What is in the way becomes a directory, or else most operations would end with ENOTDIR. */
static void make_parents(char *path)
{
    struct stat st;

    for (char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        if (lstat(path, &st) == 0 && !S_ISDIR(st.st_mode))
            (void)unlink(path);
        (void)mkdir(path, 0755);
        *slash = '/';
    }
}

static const char *last_name;
static char last_path[16];

/* Each operation has its own part of the sequence, so that one that is left out, or ends early,
 * changes nothing for the next. */
static int operate(uint64_t first, unsigned n, bool skip)
{
    char path[16];

    seed = (first + n) * 0x9e3779b97f4a7c15ull | 1;
    for (int i = 0; i < 4; i++)
        (void)next();
    size_t which = choose();
    random_path(path);
    bool parents = below(4) == 0;
    if (parents)
        make_parents(path);
    last_name = operations[which].name;
    snprintf(last_path, sizeof(last_path), "%s", path);
    return skip ? EXDEV : operations[which].fn(path);
}

/* ---- the tree ---- */

typedef struct entry {
    char *path;
    struct stat st;
} entry;

static entry entries[PATHS_MAX];
static size_t entry_count;

static int add_entry(const char *path, const struct stat *st, int type, struct FTW *f)
{
    (void)type;
    (void)f;
    if (entry_count == PATHS_MAX)
        return E2BIG;
    entries[entry_count++] = (entry){.path = strdup(path), .st = *st};
    return 0;
}

static int by_path(const void *a, const void *b)
{
    return strcmp(((const entry *)a)->path, ((const entry *)b)->path);
}

static int read_tree(void)
{
    entry_count = 0;
    int rc = nftw(".", add_entry, 16, FTW_PHYS);
    qsort(entries, entry_count, sizeof(entries[0]), by_path);
    return rc;
}

static uint64_t mix(uint64_t h, const char *bytes, size_t len)
{
    for (size_t i = 0; i < len; i++)
        h = (h ^ (unsigned char)bytes[i]) * 0x100000001b3ull;
    return h;
}

/* A file that its owner may not read is not read by any caller. */
static void show_content(const entry *e)
{
    static char buf[65536];
    uint64_t h = 0xcbf29ce484222325ull;
    ssize_t n;
    int fd = e->st.st_mode & S_IRUSR ? open(e->path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC) : -1;

    while (fd >= 0 && (n = read(fd, buf, sizeof(buf))) > 0)
        h = mix(h, buf, (size_t)n);
    if (fd >= 0)
        close(fd);
    printf(" %lld %016llx", (long long)e->st.st_size, fd < 0 ? 0ull : (unsigned long long)h);
}

static void show_link(const entry *e)
{
    char to[PATH_MAX];
    ssize_t n = readlink(e->path, to, sizeof(to) - 1);

    printf(" -> %.*s", (int)(n < 0 ? 0 : n), to);
}

static void show_attributes(const entry *e)
{
    static const char *const attrs[] = {"user.one", "user.two"};
    char value[512];

    for (size_t i = 0; i < 2 && !S_ISLNK(e->st.st_mode); i++) {
        ssize_t n =
            e->st.st_mode & S_IRUSR ? lgetxattr(e->path, attrs[i], value, sizeof(value)) : -1;
        if (n >= 0)
            printf(" %s=%016llx", attrs[i], (unsigned long long)mix(1, value, (size_t)n));
    }
}

static bool is_sparse(const struct stat *st)
{
    return S_ISREG(st->st_mode) && st->st_size >= SPARSE_MIN &&
           st->st_blocks * 512 < st->st_size / 2;
}

static int show(void)
{
    int rc = read_tree();

    for (size_t i = 0; i < entry_count; i++) {
        const entry *e = &entries[i];
        printf("%s %o", e->path, (unsigned)e->st.st_mode);
        if (S_ISREG(e->st.st_mode))
            show_content(e);
        if (S_ISLNK(e->st.st_mode))
            show_link(e);
        show_attributes(e);
        if (e->st.st_mtim.tv_sec < OLD_TIMES)
            printf(" %lld.%09ld", (long long)e->st.st_mtim.tv_sec, e->st.st_mtim.tv_nsec);
        else
            printf(" now");
        printf(" %lld.%09ld %s\n", (long long)e->st.st_mtim.tv_sec, e->st.st_mtim.tv_nsec,
               is_sparse(&e->st) ? "sparse" : "-");
    }
    return rc;
}

/* ---- hard links ---- */

static const char *first_name(const entry *e)
{
    size_t i = 0;

    while (entries[i].st.st_ino != e->st.st_ino)
        i++;
    return entries[i].path;
}

static int names(void)
{
    int rc = read_tree();

    for (size_t i = 0; i < entry_count; i++)
        if (S_ISREG(entries[i].st.st_mode) && entries[i].st.st_nlink > 1)
            printf("%s %s\n", entries[i].path, first_name(&entries[i]));
    return rc;
}

static int split_one(const entry *e)
{
    static const char *const attrs[] = {"user.one", "user.two"};
    static char buf[SPARSE_MIN + 200000];
    const struct timespec t[] = {{.tv_nsec = UTIME_OMIT}, e->st.st_mtim};
    char value[512];
    ssize_t n;

    (void)chmod(e->path, 0600);
    int from = open(e->path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    int to = open(".split", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    ssize_t len = from < 0 ? -1 : read(from, buf, sizeof(buf));
    bool good = to >= 0 && len == e->st.st_size && ftruncate(to, len) == 0;
    for (ssize_t at = 0; good && at < len; at += 4096) {
        size_t part = len - at < 4096 ? (size_t)(len - at) : 4096;
        bool zero = buf[at] == 0 && memcmp(buf + at, buf + at + 1, part - 1) == 0;
        good = zero || pwrite(to, buf + at, part, at) == (ssize_t)part;
    }
    for (size_t i = 0; good && i < 2; i++)
        if ((n = fgetxattr(from, attrs[i], value, sizeof(value))) >= 0)
            good = fsetxattr(to, attrs[i], value, (size_t)n, 0) == 0;
    good = good && fchmod(to, e->st.st_mode & 07777) == 0 && futimens(to, t) == 0 &&
           rename(".split", e->path) == 0;
    int err = good ? 0 : errno;
    if (from >= 0)
        close(from);
    if (to >= 0)
        close(to);
    return err;
}

/* The directory keeps its time: layers that were merged share inodes, so that in a workspace
 * more files seem to have several names. */
static int split_in_place(const entry *e)
{
    char dir[PATH_MAX];
    struct stat st;

    snprintf(dir, sizeof(dir), "%.*s", (int)(strrchr(e->path, '/') - e->path), e->path);
    int err = stat(dir, &st) < 0 ? errno : split_one(e);
    const struct timespec t[] = {{.tv_nsec = UTIME_OMIT}, st.st_mtim};
    return err != 0 ? err : utimensat(AT_FDCWD, dir, t, 0) < 0 ? errno : 0;
}

static int split(void)
{
    int rc = read_tree();

    for (size_t i = 0; rc == 0 && i < entry_count; i++) {
        struct stat st;
        if (S_ISREG(entries[i].st.st_mode) && lstat(entries[i].path, &st) == 0 &&
            entries[i].st.st_nlink > 1)
            rc = split_in_place(&entries[i]);
    }
    return rc;
}

/* ---- the program ---- */

static int run(uint64_t first, unsigned count)
{
    for (unsigned n = 0; n < count; n++)
        printf("%d\n", operate(first, n, false));
    printf("tree\n");
    return show();
}

static int replay(uint64_t first, unsigned count)
{
    int bad = 0, there = 0;

    for (unsigned n = 0; n < count; n++) {
        if (scanf("%d", &there) != 1)
            return 3;
        int here = operate(first, n, there == EXDEV);
        if (here != there) {
            fprintf(stderr,
                    "# operation %u of seed %llu, %s %s: %s in the workspace, %s outside\n", n,
                    (unsigned long long)first, last_name, last_path, strerrorname_np(there),
                    strerrorname_np(here));
            bad = 1;
        }
    }
    return bad;
}

int main(int argc, char **argv)
{
    uint64_t first = argc == 4 ? strtoull(argv[2], NULL, 10) : 0;
    unsigned count = argc == 4 ? (unsigned)strtoul(argv[3], NULL, 10) : 0;

    umask(022);
    if (argc == 4 && strcmp(argv[1], "run") == 0)
        return run(first, count);
    if (argc == 4 && strcmp(argv[1], "replay") == 0)
        return replay(first, count);
    if (argc == 2 && strcmp(argv[1], "show") == 0)
        return show();
    if (argc == 2 && strcmp(argv[1], "names") == 0)
        return names();
    if (argc == 2 && strcmp(argv[1], "split") == 0)
        return split();
    return 2;
}
