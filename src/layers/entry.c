/* entry.c: opens entries of layers, whatever mode a command has given them.
 *
 * A command may take all permissions from its files. Root reads them anyway; an ordinary user
 * owns them, but must add the permission first. The mode is changed through an O_PATH
 * descriptor, so no name is resolved twice, and restored at once.
 *
 * Two processes may do this to one entry at the same time. The bits to add depend on the type
 * alone, and an entry that has them is left as it is: thus a mode that is restored never has
 * bits that another process added. One that lost the bits before it used them tries again. */
#include "layers/entry.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "os/beneath.h"

#define SAFE     (O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)
#define TRIES    16 /* while another process restores the mode */
#define FD_PATH  sizeof("/proc/self/fd/-2147483648")
#define RESERVED "user.overlay."

_Static_assert(CSN_ENTRY_BUFFER >= 2 * (XATTR_LIST_MAX + XATTR_SIZE_MAX), "two of each");

typedef struct unlocked {
    int fd; /* -1: the mode was not changed */
    mode_t before, during;
} unlocked;

static void fd_path(int fd, char ret[FD_PATH])
{
    snprintf(ret, FD_PATH, "/proc/self/fd/%d", fd);
}

static int unlock(int fd, unlocked *ret)
{
    char path[FD_PATH];
    struct stat st;

    *ret = (unlocked){.fd = -1};
    if (fstat(fd, &st) < 0)
        return -errno;
    if (st.st_uid != geteuid() || (!S_ISDIR(st.st_mode) && !S_ISREG(st.st_mode)))
        return -EACCES;
    mode_t need = S_ISDIR(st.st_mode) ? 0500 : 0400;
    if ((st.st_mode & need) == need)
        return 0;
    ret->before = st.st_mode & 07777;
    ret->during = ret->before | need;
    fd_path(fd, path);
    if (chmod(path, ret->during) < 0)
        return -errno;
    ret->fd = fd;
    return 0;
}

/* A command may have changed the mode meanwhile: then that one stays. */
static void lock_again(const unlocked *u)
{
    char path[FD_PATH];
    struct stat st;

    if (u->fd < 0 || fstat(u->fd, &st) < 0 || (st.st_mode & 07777) != u->during)
        return;
    fd_path(u->fd, path);
    (void)chmod(path, u->before);
}

static int stat_at(int dir, const char *name, struct stat *ret)
{
    return fstatat(dir, name, ret, AT_SYMLINK_NOFOLLOW) < 0 ? -errno : 0;
}

int csn_entry_stat(const csn_entry_tree *t, int dir, const char *name, struct stat *ret)
{
    int r = stat_at(dir, name, ret);

    for (int i = 0; r == -EACCES && t->unlock && i < TRIES; i++) {
        unlocked u;
        if (unlock(dir, &u) < 0)
            break;
        r = stat_at(dir, name, ret);
        lock_again(&u);
    }
    return r;
}

static int open_at(int dir, const char *name, int flags)
{
    int fd = openat(dir, name, flags | SAFE); /* lint: fd: SAFE has O_CLOEXEC */

    return fd < 0 ? -errno : fd;
}

/* What the O_PATH descriptor names, with a mode changed for this moment. */
static int open_unlocked(int fd, int flags)
{
    char path[FD_PATH];
    unlocked u;
    int r = unlock(fd, &u);

    if (r < 0)
        return r;
    fd_path(fd, path);
    r = open(path, (flags | SAFE) & ~O_NOFOLLOW); /* lint: fd: SAFE has O_CLOEXEC */
    if (r < 0)
        r = -errno;
    lock_again(&u);
    return r;
}

/* The directory is unlocked. */
static int open_locked(int dir, const char *name, int flags)
{
    csn_autofd int fd = open_at(dir, name, O_PATH | (flags & O_DIRECTORY));

    if (fd < 0 || (flags & O_PATH))
        return csn_steal_fd(&fd);
    return open_unlocked(fd, flags);
}

int csn_entry_reopen(const csn_entry_tree *t, int fd, int flags)
{
    char path[FD_PATH];
    struct stat st;

    if (fstat(fd, &st) < 0)
        return -errno;
    if (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))
        return -EACCES;
    fd_path(fd, path);
    int r = open(path, (flags | SAFE) & ~O_NOFOLLOW); /* lint: fd: SAFE has O_CLOEXEC */
    if (r < 0)
        r = -errno;
    for (int i = 0; r == -EACCES && t->unlock && i < TRIES; i++) {
        r = open_unlocked(fd, flags);
        if (r == -EACCES && st.st_uid != geteuid())
            break;
    }
    return r;
}

int csn_entry_open(const csn_entry_tree *t, int dir, const char *name, int flags)
{
    int r = open_at(dir, name, flags);

    for (int i = 0; r == -EACCES && t->unlock && i < TRIES; i++) {
        unlocked u;
        if (unlock(dir, &u) < 0)
            break;
        r = open_locked(dir, name, flags);
        lock_again(&u);
    }
    return r;
}

static int open_by_steps(const csn_entry_tree *t, const char *path, int flags)
{
    csn_autofd int dir = -1;
    int at = t->root;

    for (;;) {
        char name[NAME_MAX + 1];
        size_t len = strcspn(path, "/");
        bool last = path[len] == '\0';
        if (len > NAME_MAX)
            return -ENAMETOOLONG;
        memcpy(name, path, len);
        name[len] = '\0';
        int fd = csn_entry_open(t, at, name, last ? flags : O_PATH | O_DIRECTORY);
        if (fd < 0 || last)
            return fd;
        if (dir >= 0)
            close(dir);
        at = dir = fd;
        path += len + 1;
    }
}

int csn_entry_open_path(const csn_entry_tree *t, const char *path, int flags)
{
    int fd = -ENAMETOOLONG;

    if (strlen(path) < PATH_MAX)
        fd = csn_beneath_open(t->root, path, flags | O_NOFOLLOW, CSN_BENEATH_NOFOLLOW);
    if (fd == -ENAMETOOLONG || (fd == -EACCES && t->unlock))
        return open_by_steps(t, path, flags);
    return fd;
}

bool csn_entry_is_whiteout(const struct stat *st)
{
    return S_ISCHR(st->st_mode) && st->st_rdev == makedev(0, 0);
}

/* ---- extended attributes ---- */

/* A value of user.* needs read permission now; the descriptor's own does not count. */
ssize_t csn_entry_get_xattr(const csn_entry_tree *t, int fd, const char *name, char *buf,
                            size_t len)
{
    ssize_t n = fgetxattr(fd, name, buf, len);
    int e = errno;

    for (int i = 0; n < 0 && e == EACCES && t->unlock && i < TRIES; i++) {
        unlocked u;
        if (unlock(fd, &u) < 0)
            break;
        n = fgetxattr(fd, name, buf, len);
        e = errno;
        lock_again(&u);
    }
    return n < 0 ? -e : n;
}

int csn_entry_is_opaque(const csn_entry_tree *t, int fd)
{
    char value[2];
    ssize_t n = csn_entry_get_xattr(t, fd, RESERVED "opaque", value, sizeof(value));

    if (n >= 0)
        return n == 1 && value[0] == 'y';
    return n == -ENODATA || n == -ENOTSUP || n == -ERANGE ? 0 : (int)n;
}

static bool counts(const char *name)
{
    if (strncmp(name, "user.", 5) == 0)
        return strncmp(name, RESERVED, sizeof(RESERVED) - 1) != 0;
    return strcmp(name, "security.capability") == 0 ||
           strcmp(name, "system.posix_acl_access") == 0 ||
           strcmp(name, "system.posix_acl_default") == 0;
}

static ssize_t list_xattrs(int fd, char *buf)
{
    ssize_t n = flistxattr(fd, buf, XATTR_LIST_MAX);

    if (n < 0)
        return errno == ENOTSUP || errno == EACCES ? 0 : -errno;
    return n;
}

/* Does b have the attributes of a, with the same values? */
static int has_xattrs(const csn_entry_tree *ta, int a, const csn_entry_tree *tb, int b,
                      const char *names, ssize_t len, char *values)
{
    for (const char *name = names; name < names + len; name += strlen(name) + 1) {
        if (!counts(name))
            continue;
        char *value_b = values + XATTR_SIZE_MAX;
        ssize_t x = csn_entry_get_xattr(ta, a, name, values, XATTR_SIZE_MAX);
        ssize_t y = csn_entry_get_xattr(tb, b, name, value_b, XATTR_SIZE_MAX);
        if (x == -EACCES || y == -EACCES || x == -ENODATA)
            continue;
        if (x < 0)
            return (int)x;
        if (y < 0 && y != -ENODATA && y != -ENOTSUP)
            return (int)y;
        if (x != y || memcmp(values, value_b, (size_t)x) != 0)
            return 0;
    }
    return 1;
}

int csn_entry_same_xattrs(const csn_entry_tree *ta, int a, const csn_entry_tree *tb, int b,
                          char buf[CSN_ENTRY_BUFFER])
{
    char *names_b = buf + XATTR_LIST_MAX, *values = names_b + XATTR_LIST_MAX;
    ssize_t x = list_xattrs(a, buf);
    ssize_t y = list_xattrs(b, names_b);

    if (x < 0 || y < 0)
        return (int)(x < 0 ? x : y);
    int r = has_xattrs(ta, a, tb, b, buf, x, values);
    return r == 1 ? has_xattrs(tb, b, ta, a, names_b, y, values) : r;
}

/* ---- content ---- */

static ssize_t read_full(int fd, char *buf, size_t len)
{
    size_t done = 0;

    while (done < len) {
        ssize_t n = read(fd, buf + done, len - done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        if (n == 0)
            break;
        done += (size_t)n;
    }
    return (ssize_t)done;
}

int csn_entry_same_content(int a, int b, char buf[CSN_ENTRY_BUFFER])
{
    const size_t half = CSN_ENTRY_BUFFER / 2;

    for (;;) {
        ssize_t x = read_full(a, buf, half);
        ssize_t y = read_full(b, buf + half, half);
        if (x < 0 || y < 0)
            return (int)(x < 0 ? x : y);
        if (x != y || memcmp(buf, buf + half, (size_t)x) != 0)
            return 0;
        if ((size_t)x < half)
            return 1;
    }
}
