/* quarantine.c: moves a file out of a workspace to where no program runs it.
 *
 * Runs after a command, as the caller, possibly root. The agent controls the file and its
 * directory, and its other processes may change them at the same time.
 *
 * Invariants: no link is followed; only a plain name in an open directory is changed;
 * afterwards the name is free, even if the contents could not be kept, because the file is
 * renamed before it is copied. Space, number and time are bounded: a hole of a file stays a
 * hole, and what exceeds a limit stays in its directory under a hidden name with mode 000.
 *
 *   <state>/aside/ID/N/item   the file
 *   <state>/aside/ID/N/from   its former path and the reason */
#include "backend/jail/quarantine.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/limits.h"
#include "os/atomic.h"
#include "os/statedir.h"
#include "os/tree.h"

#define BLOCK     512u /* unit of st_blocks */
#define CHUNK     65536u
#define NAME_SIZE 32u

/* ---- limits ---- */

static bool is_full(const csn_quarantine *q)
{
    return q->own.files >= CSN_ASIDE_FILES_MAX || q->own.bytes >= CSN_ASIDE_BYTES_MAX ||
           q->all.files >= CSN_ASIDE_ALL_FILES_MAX || q->all.bytes >= CSN_ASIDE_ALL_BYTES_MAX;
}

static bool fits(const csn_quarantine *q, const csn_quarantine_use *more)
{
    return q->own.files + more->files <= CSN_ASIDE_FILES_MAX &&
           q->own.bytes + more->bytes <= CSN_ASIDE_BYTES_MAX &&
           q->all.files + more->files <= CSN_ASIDE_ALL_FILES_MAX &&
           q->all.bytes + more->bytes <= CSN_ASIDE_ALL_BYTES_MAX;
}

static void add_use(csn_quarantine *q, const csn_quarantine_use *more)
{
    q->own.files += more->files;
    q->own.bytes += more->bytes;
    q->all.files += more->files;
    q->all.bytes += more->bytes;
}

static uint64_t allocated(const struct stat *st)
{
    return (uint64_t)st->st_blocks * BLOCK;
}

typedef struct count {
    csn_quarantine *q;
    const char *id;
} count;

/* One entry of the store: ID, ID/N, ID/N/item or what is in it. */
static int count_stored(void *ctx, const char *path, const struct stat *st, const char *target)
{
    const count *c = ctx;
    const char *slash = strchr(path, '/');
    bool own = strncmp(path, c->id, strlen(c->id)) == 0 && path[strlen(c->id)] == '/';
    csn_quarantine_use use = {.files = slash && !strchr(slash + 1, '/'),
                              .bytes = S_ISREG(st->st_mode) ? allocated(st) : 0};

    (void)target;
    if (own) {
        add_use(c->q, &use);
    } else {
        c->q->all.files += use.files;
        c->q->all.bytes += use.bytes;
    }
    return is_full(c->q);
}

static int count_tree(void *ctx, const char *path, const struct stat *st, const char *target)
{
    csn_quarantine_use *use = ctx;

    (void)path;
    (void)target;
    use->files++;
    use->bytes += allocated(st);
    return use->files > CSN_ASIDE_FILES_MAX;
}

static int measure(int dir, const char *name, csn_quarantine_use *ret)
{
    struct stat st;

    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return -errno;
    *ret = (csn_quarantine_use){.files = 1, .bytes = allocated(&st)};
    if (!S_ISDIR(st.st_mode))
        return 0;
    csn_autofd int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || csn_tree_walk(fd, count_tree, ret) < 0)
        ret->files = CSN_ASIDE_FILES_MAX + 1; /* unknown: not kept */
    return 0;
}

/* ---- destination ---- */

static int open_store(csn_quarantine *q, const char *id)
{
    char sub[96];
    count c = {.q = q, .id = id};

    if (q->fd >= 0)
        return 0;
    snprintf(sub, sizeof(sub), "aside/%s", id);
    int fd = csn_statedir_open(CSN_DIR_STATE, sub, &q->path);
    if (fd < 0)
        return fd;
    q->fd = fd;
    q->own = q->all = (csn_quarantine_use){0};
    csn_autofd int all = csn_statedir_find(CSN_DIR_STATE, "aside", NULL);
    return all < 0 ? all : csn_tree_walk(all, count_stored, &c);
}

/* A new directory per file, so that a rename cannot collide. */
static int new_slot(csn_quarantine *q, char name[NAME_SIZE])
{
    for (; q->next < CSN_ASIDE_ALL_FILES_MAX; q->next++) {
        snprintf(name, NAME_SIZE, "%u", q->next + 1);
        if (mkdirat(q->fd, name, 0700) == 0) {
            q->next++;
            int fd = openat(q->fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
            return fd < 0 ? -errno : fd;
        }
        if (errno != EEXIST)
            return -errno;
    }
    return -ENOSPC;
}

static void note_origin(int slot, const char *from)
{
    csn_autofd int fd = openat(slot, "from", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

    if (fd >= 0)
        (void)csn_write_full(fd, from, strlen(from), NULL);
}

/* ---- moving ---- */

/* The agent may have removed write permission of the directory. */
static int move_out(int dir, const char *name, int to, const char *as)
{
    struct stat st;

    if (renameat(dir, name, to, as) == 0)
        return 0;
    int e = errno;
    if (e != EACCES || fstat(dir, &st) < 0 || st.st_uid != geteuid() ||
        fchmod(dir, (st.st_mode & 07777) | S_IRWXU) < 0)
        return -e;
    return renameat(dir, name, to, as) < 0 ? -errno : 0;
}

/* Copies the bytes from `at` to `end`. */
static int copy_range(csn_quarantine *q, int from, int to, off_t at, off_t end, char *buf,
                      uint64_t deadline_ns)
{
    const csn_quarantine_use more = {.bytes = CHUNK};

    if (lseek(from, at, SEEK_SET) < 0 || lseek(to, at, SEEK_SET) < 0)
        return -errno;
    while (at < end) {
        if (!fits(q, &more) || csn_now_ns() > deadline_ns)
            return -EFBIG;
        ssize_t n = read(from, buf, end - at < CHUNK ? (size_t)(end - at) : CHUNK);
        if (n <= 0)
            return n < 0 ? -errno : 0;
        int rc = csn_write_full(to, buf, (size_t)n, NULL);
        if (rc < 0)
            return rc;
        add_use(q, &(csn_quarantine_use){.bytes = (uint64_t)n});
        at += n;
    }
    return 0;
}

/* A hole stays a hole; only the last byte is written, for the length. */
static int copy_data(csn_quarantine *q, int from, int to, off_t size, uint64_t deadline_ns)
{
    csn_autofree char *buf = malloc(CHUNK);
    off_t at = 0;
    int rc = buf ? 0 : -ENOMEM;

    while (rc == 0 && at < size) {
        off_t data = lseek(from, at, SEEK_DATA);
        if (data < 0 && errno != ENXIO)
            data = at; /* the file system cannot tell */
        if (data < 0 || data >= size)
            break;
        off_t hole = lseek(from, data, SEEK_HOLE);
        at = hole > data && hole < size ? hole : size;
        rc = copy_range(q, from, to, data, at, buf, deadline_ns);
    }
    if (rc == 0 && at < size)
        rc = lseek(to, size - 1, SEEK_SET) < 0 ? -errno : csn_write_full(to, "", 1, NULL);
    return rc;
}

static int copy_file(csn_quarantine *q, int dir, const char *name, int slot)
{
    struct stat st;
    csn_autofd int from =
        openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);

    if (from < 0)
        return -errno;
    if (fstat(from, &st) < 0 || !S_ISREG(st.st_mode))
        return -EMEDIUMTYPE;
    csn_autofd int to = openat(slot, "item", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (to < 0)
        return -errno;
    const uint64_t began = csn_now_ns(), most = CSN_ASIDE_COPY_MS * 1000000ull;
    if (q->copy_ns >= most)
        return -ETIMEDOUT;
    int rc = copy_data(q, from, to, st.st_size, began + most - q->copy_ns);
    q->copy_ns += csn_now_ns() - began;
    return rc;
}

/* Contents are kept of regular files and links only. */
static int copy(csn_quarantine *q, int dir, const char *name, int slot)
{
    char target[PATH_MAX];
    struct stat st;

    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return -errno;
    if (!S_ISLNK(st.st_mode))
        return S_ISREG(st.st_mode) ? copy_file(q, dir, name, slot) : -EMEDIUMTYPE;
    ssize_t n = readlinkat(dir, name, target, sizeof(target) - 1);
    if (n < 0)
        return -errno;
    target[n] = '\0';
    return symlinkat(target, slot, "item") < 0 ? -errno : 0;
}

static void random_name(char out[NAME_SIZE])
{
    uint64_t r = 0;

    (void)!getrandom(&r, sizeof(r), 0);
    snprintf(out, NAME_SIZE, CSN_TEMP_PREFIX "aside-%08llx",
             (unsigned long long)(r & 0xffffffffu));
}

/* Takes all permissions, through a descriptor that is never a link. A file with another name is
 * left as it is, because it may be a file of the user. */
static void disarm(int dir, const char *name)
{
    csn_autofd int fd = openat(dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    char link[40];
    struct stat st;

    if (fd < 0 || fstat(fd, &st) < 0 || S_ISLNK(st.st_mode) ||
        (!S_ISDIR(st.st_mode) && st.st_nlink > 1))
        return;
    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    (void)chmod(link, 0);
}

static char *path_in(int dir, const char *name)
{
    char link[40], path[PATH_MAX];
    char *full = NULL;

    snprintf(link, sizeof(link), "/proc/self/fd/%d", dir);
    ssize_t n = readlink(link, path, sizeof(path) - 1);
    path[n > 0 ? n : 0] = '\0';
    return asprintf(&full, "%s%s%s", path, n > 0 ? "/" : "", name) < 0 ? NULL : full;
}

/* Renames the file in place to a random name, then copies it to the slot, if there is one.
 * *ret_in_place: it could not be copied and stays under that name. */
static int take_by_copy(csn_quarantine *q, int dir, const char *name, int slot,
                        char temp[NAME_SIZE], bool *ret_in_place)
{
    random_name(temp);
    int rc = move_out(dir, name, dir, temp);
    if (rc < 0)
        return rc;
    *ret_in_place = slot < 0 || copy(q, dir, temp, slot) < 0 || unlinkat(dir, temp, 0) < 0;
    if (*ret_in_place)
        disarm(dir, temp);
    return 0;
}

static void drop_slot(const csn_quarantine *q, int slot, const char *name)
{
    (void)unlinkat(slot, "item", 0);
    (void)unlinkat(q->fd, name, AT_REMOVEDIR);
}

int csn_quarantine_file(csn_quarantine *q, const char *id, int dir, const char *name,
                        const char *from, char **ret_path)
{
    char slot_name[NAME_SIZE] = "", temp[NAME_SIZE];
    csn_quarantine_use use = {0};
    bool in_place = false;

    *ret_path = NULL;
    int rc = measure(dir, name, &use);
    if (rc == -ENOENT)
        return rc;
    bool keep = rc == 0 && open_store(q, id) == 0 && fits(q, &use);
    csn_autofd int slot = keep ? new_slot(q, slot_name) : -1;
    rc = slot < 0 ? -EXDEV : move_out(dir, name, slot, "item");
    if (rc == 0)
        add_use(q, &use);
    if (rc == -EXDEV) {
        rc = take_by_copy(q, dir, name, slot, temp, &in_place);
        q->own.files += rc == 0 && !in_place;
        q->all.files += rc == 0 && !in_place;
    }
    if (rc == 0 && !in_place) {
        note_origin(slot, from);
        if (asprintf(ret_path, "%s/%s/item", q->path, slot_name) < 0)
            *ret_path = NULL;
    } else if (slot >= 0) {
        drop_slot(q, slot, slot_name);
    }
    if (rc == 0 && in_place)
        *ret_path = path_in(dir, temp);
    return rc;
}

void csn_quarantine_release(csn_quarantine *q)
{
    if (q->fd >= 0)
        close(q->fd);
    free(q->path);
    *q = (csn_quarantine){.fd = -1};
}
