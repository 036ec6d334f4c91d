/* etc_copy.c: making and keeping the copies of /etc that jails mount.
 *
 * In <state>/etc: a directory per copy, and beside it an empty file that those who mount the
 * copy hold a lock on. What lies in the host's /etc is root's or a package's; still nothing in
 * it is followed, and it is bounded. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "backend/jail/etc.h"
#include "base/cleanup.h"
#include "os/atomic.h"
#include "os/tree.h"

#define LOCK_SUFFIX ".lock"
#define NAME_SIZE   96u
#define BYTES_MAX   (16u << 20)
#define FILES_MAX   20000u
#define TEMP_AGE_S  3600        /* one that is older was left by somebody who was killed */
#define COPY_AGE_S  (2 * 86400) /* its name has the day in it: nobody asks for it again */

typedef struct copier {
    int from, to; /* directories */
    const char *prefix;
    size_t bytes, files;
} copier;

int csn_etc_hold(int store, const char *key, int *ret_lock)
{
    char name[NAME_SIZE];
    struct stat st;

    snprintf(name, sizeof(name), "%s" LOCK_SUFFIX, key);
    csn_autofd int lock = openat(store, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (lock < 0)
        return -errno;
    if (flock(lock, LOCK_SH | LOCK_NB) < 0)
        return -errno;
    /* The copy goes before its lock: with both in place nobody is removing it any more. */
    if (fstatat(store, key, &st, AT_SYMLINK_NOFOLLOW) < 0 || fstat(lock, &st) < 0)
        return -errno;
    if (st.st_nlink == 0)
        return -ENOENT;
    *ret_lock = csn_steal_fd(&lock);
    return 0;
}

/* ---- copying ---- */

/* Whatever the umask is: root's jails are another user. */
static int make_dir(int at, const char *name)
{
    return mkdirat(at, name, 0755) < 0 || fchmodat(at, name, 0755, 0) < 0 ? -errno : 0;
}

static int copy_bytes(copier *c, int in, const char *to, const struct stat *st)
{
    char buf[16384];
    csn_autofd int out =
        openat(c->to, to, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);

    if (out < 0)
        return -errno;
    for (ssize_t n; (n = read(in, buf, sizeof(buf))) != 0;) {
        if (n < 0)
            return -errno;
        c->bytes += (size_t)n;
        if (c->bytes > BYTES_MAX)
            return -EFBIG;
        int rc = csn_write_full(out, buf, (size_t)n, NULL);
        if (rc < 0)
            return rc;
    }
    /* Never more readable than the original; what belongs to a group there is ours alone. */
    return fchmod(out, st->st_mode & 0555) < 0 ? -errno : 0;
}

static int copy_file(copier *c, const char *path, const char *to, int flags)
{
    struct stat st;
    csn_autofd int in = openat(c->from, path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | flags);

    if (in < 0 && (errno == EACCES || errno == ENOENT || errno == ELOOP || errno == ENXIO))
        return 0;
    if (in < 0 || fstat(in, &st) < 0)
        return -errno;
    return S_ISREG(st.st_mode) ? copy_bytes(c, in, to, &st) : 0;
}

static int copy_entry(void *ctx, const char *path, const struct stat *st, const char *target)
{
    copier *c = ctx;
    char to[4096];

    if (++c->files > FILES_MAX)
        return -EFBIG;
    if ((size_t)snprintf(to, sizeof(to), "%s/%s", c->prefix, path) >= sizeof(to))
        return -ENAMETOOLONG;
    if (S_ISDIR(st->st_mode))
        return make_dir(c->to, to);
    if (S_ISLNK(st->st_mode))
        return symlinkat(target, c->to, to) < 0 ? -errno : 0;
    return S_ISREG(st->st_mode) ? copy_file(c, path, to, O_NOFOLLOW) : 0;
}

static int copy_tree(copier *c, const char *path, const char *to)
{
    csn_autofd int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (dir < 0)
        return errno == EACCES ? 0 : -errno;
    int rc = make_dir(c->to, to);
    c->from = dir;
    c->prefix = to;
    return rc < 0 ? rc : csn_tree_walk(dir, copy_entry, c);
}

static int put(copier *c, const csn_mount *m)
{
    const char *to = m->to + strlen("/etc/"), *slash = strchr(to, '/');
    struct stat st;

    if (slash) { /* none is deeper */
        char dir[NAME_SIZE];
        snprintf(dir, sizeof(dir), "%.*s", (int)(slash - to), to);
        int rc = make_dir(c->to, dir);
        if (rc < 0 && rc != -EEXIST)
            return rc;
    }
    if (m->kind == CSN_MOUNT_LINK)
        return symlinkat(m->from, c->to, to) < 0 ? -errno : 0;
    if (m->kind == CSN_MOUNT_TEXT) {
        csn_autofd int fd = openat(c->to, to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        int rc = fd < 0 ? -errno : csn_write_full(fd, m->from, strlen(m->from), NULL);
        return rc == 0 && fchmod(fd, 0444) < 0 ? -errno : rc;
    }
    if (stat(m->from, &st) < 0)
        return 0;
    c->from = AT_FDCWD;
    return S_ISDIR(st.st_mode) ? copy_tree(c, m->from, to) : copy_file(c, m->from, to, 0);
}

/* ---- the store ---- */

/* In use or just being made: it stays. */
static int remove_unused(void *ctx, const char *name, const struct stat *st, const char *target)
{
    int store = *(const int *)ctx;
    char lock_name[NAME_SIZE];
    size_t len = strlen(name);

    (void)target;
    if (strncmp(name, CSN_TEMP_PREFIX, strlen(CSN_TEMP_PREFIX)) == 0) {
        if (time(NULL) - st->st_mtim.tv_sec > TEMP_AGE_S)
            (void)csn_tree_destroy(store, name);
        return 0;
    }
    if (!S_ISDIR(st->st_mode) || len + sizeof(LOCK_SUFFIX) > sizeof(lock_name) ||
        time(NULL) - st->st_mtim.tv_sec < COPY_AGE_S)
        return 0;
    snprintf(lock_name, sizeof(lock_name), "%s" LOCK_SUFFIX, name);
    csn_autofd int lock = openat(store, lock_name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (lock < 0 ? errno == ENOENT : flock(lock, LOCK_EX | LOCK_NB) == 0) {
        (void)csn_tree_destroy(store, name);
        unlinkat(store, lock_name, 0);
    }
    return 0;
}

/* Both under temporary names first, the lock gets its name before the copy has its own. */
static int publish(int store, const char *temp, const char *key)
{
    char lock_name[NAME_SIZE];

    snprintf(lock_name, sizeof(lock_name), "%s" LOCK_SUFFIX, key);
    csn_autofd int lock = openat(store, lock_name, O_RDONLY | O_CREAT | O_CLOEXEC, 0600);
    if (lock < 0)
        return -errno;
    if (flock(lock, LOCK_SH | LOCK_NB) < 0)
        return -errno;
    if (renameat(store, temp, store, key) == 0)
        return 0;
    return errno == EEXIST || errno == ENOTEMPTY ? 0 : -errno;
}

int csn_etc_make(int store, const char *key, const csn_mount *list, size_t count)
{
    char temp[CSN_TEMP_SIZE];
    int rc = csn_temp_name(temp);

    if (rc < 0)
        return rc;
    (void)csn_tree_list(store, remove_unused, &store);
    rc = make_dir(store, temp);
    if (rc < 0)
        return rc;
    csn_autofd int to = openat(store, temp, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    copier c = {.from = AT_FDCWD, .to = to};
    if (to < 0)
        rc = -errno;
    for (size_t i = 0; rc == 0 && i < count; i++)
        rc = put(&c, &list[i]);
    if (rc == 0)
        rc = publish(store, temp, key);
    (void)csn_tree_destroy(store, temp); /* its name is gone when it was published */
    return rc;
}
