/* replica.c: copies one file, link or special file, and the attributes of a directory.
 *
 * The source may be replaced at any time: it is opened with O_PATH, and only a regular file or
 * directory is opened from there, so that no device or fifo ever is. */
#include "layers/replica.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/fs.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/limits.h"
#include "base/strv.h"
#include "layers/commit_internal.h"
#include "os/tree.h"

#define SET_ID     06000u
#define OPAQUE     "user.overlay.opaque"
#define CAPABILITY "security.capability"
#define NUMBER     16 /* characters of the name of an anchor */

int csn_replica_init(csn_replica *r, int root, unsigned flags)
{
    *r = (csn_replica){.root = root,
                       .layer = (flags & CSN_COPY_LAYER) != 0,
                       .is_root = geteuid() == 0,
                       .done = {.how = CSN_COPY_REFLINKED},
                       .anchors = -1};
    r->buf = malloc(CSN_ENTRY_BUFFER);
    return r->buf ? 0 : -ENOMEM;
}

int csn_replica_end_links(csn_replica *r)
{
    if (r->anchors < 0)
        return 0;
    close(r->anchors);
    r->anchors = -1;
    r->links_count = r->links_room = 0;
    return csn_tree_remove(r->root, r->anchors_name);
}

void csn_replica_release(csn_replica *r)
{
    (void)csn_replica_end_links(r);
    free(r->buf);
    free(r->links);
    *r = (csn_replica){.anchors = -1};
}

bool csn_replica_is_gone(int error)
{
    return error == -ENOENT || error == -ENOTDIR || error == -ELOOP || error == -ESTALE;
}

/* ---- attributes ---- */

static bool is_kept(const csn_replica *r, const char *name)
{
    if (csn_str_starts(name, "user."))
        return r->layer || !csn_str_starts(name, "user.overlay.");
    return csn_str_starts(name, "system.posix_acl_") ||
           (r->layer && strcmp(name, CAPABILITY) == 0);
}

/* Where the copy's file system has no attributes, a workspace loses them, but a layer would
 * change its meaning. */
static int set_xattr(const csn_replica *r, int to, const char *name, const char *value,
                     size_t len)
{
    if (fsetxattr(to, name, value, len, 0) == 0)
        return 0;
    if (strcmp(name, CAPABILITY) == 0 && errno == EPERM)
        return 0;
    return (errno == ENOTSUP || errno == ENOSYS) && !r->layer ? 0 : -errno;
}

static int copy_xattrs(const csn_replica *r, const csn_entry_tree *t, int fd, int to,
                       bool verbatim)
{
    char *value = r->buf + XATTR_LIST_MAX;
    ssize_t n = flistxattr(fd, r->buf, XATTR_LIST_MAX);

    if (n < 0)
        return errno == ENOTSUP || errno == ENOSYS ? 0 : -errno;
    for (const char *name = r->buf; name < r->buf + n; name += strlen(name) + 1) {
        if (!is_kept(r, name) || (!verbatim && strcmp(name, OPAQUE) == 0))
            continue;
        ssize_t len = csn_entry_get_xattr(t, fd, name, value, XATTR_SIZE_MAX);
        if (len == -ENODATA)
            continue;
        int rc = len < 0 ? (int)len : set_xattr(r, to, name, value, (size_t)len);
        if (rc < 0)
            return rc;
    }
    return 0;
}

static mode_t mode_of(const csn_replica *r, const struct stat *st)
{
    mode_t mode = st->st_mode & 07777;

    return r->layer || S_ISDIR(st->st_mode) ? mode : mode & ~SET_ID;
}

/* to: open for writing, or a directory. The owner comes first: a change of it takes set-id bits
 * and capabilities away. */
static int finish(const csn_replica *r, const csn_entry_tree *t, int fd, const struct stat *st,
                  int to, bool verbatim)
{
    const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, st->st_mtim};

    if (r->is_root && fchown(to, st->st_uid, st->st_gid) < 0)
        return -errno;
    int rc = fd < 0 ? 0 : copy_xattrs(r, t, fd, to, verbatim);
    if (rc == 0 && fchmod(to, mode_of(r, st)) < 0)
        rc = -errno;
    if (rc == 0 && futimens(to, times) < 0)
        rc = -errno;
    return rc;
}

int csn_replica_dir(csn_replica *r, const csn_entry_tree *t, int fd, const struct stat *st,
                    int to, bool verbatim, bool opaque)
{
    if (opaque && (!verbatim || fd < 0) && fsetxattr(to, OPAQUE, "y", 1, 0) < 0)
        return -errno;
    return finish(r, t, fd, st, to, verbatim);
}

/* ---- hard links ---- */

static csn_replica_link *slot_of(csn_replica_link *v, size_t room, const struct stat *st)
{
    uint64_t hash = ((uint64_t)st->st_ino ^ ((uint64_t)st->st_dev << 32)) * 0x9E3779B97F4A7C15u;

    for (size_t i = (size_t)(hash >> 32) & (room - 1);; i = (i + 1) & (room - 1))
        if (v[i].number == 0 || (v[i].dev == st->st_dev && v[i].ino == st->st_ino))
            return &v[i];
}

static int grow_links(csn_replica *r)
{
    size_t room = r->links_room ? 2 * r->links_room : 64;
    csn_replica_link *v = calloc(room, sizeof(*v));

    if (!v)
        return -ENOMEM;
    for (size_t i = 0; i < r->links_room; i++) {
        struct stat st = {.st_dev = r->links[i].dev, .st_ino = r->links[i].ino};
        if (r->links[i].number != 0)
            *slot_of(v, room, &st) = r->links[i];
    }
    free(r->links);
    r->links = v;
    r->links_room = room;
    return 0;
}

static int open_anchors(csn_replica *r)
{
    if (r->anchors >= 0)
        return 0;
    int rc = csn_temp_name(r->anchors_name);
    if (rc < 0)
        return rc;
    if (mkdirat(r->root, r->anchors_name, 0700) < 0)
        return -errno;
    r->anchors = openat(r->root, r->anchors_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return r->anchors < 0 ? -errno : 0;
}

static void anchor_name(uint32_t number, char ret[NUMBER])
{
    snprintf(ret, NUMBER, "%u", number);
}

/* A later name of a file that has been copied: 0; -ENODATA: it has not. */
static int link_to_copy(csn_replica *r, const struct stat *st, int to, const char *name)
{
    char anchor[NUMBER];

    if (st->st_nlink < 2 || r->links_room == 0)
        return -ENODATA;
    const csn_replica_link *l = slot_of(r->links, r->links_room, st);
    if (l->number == 0)
        return -ENODATA;
    anchor_name(l->number, anchor);
    if (linkat(r->anchors, anchor, to, name, 0) == 0)
        return 0;
    return errno == EMLINK || errno == EPERM || errno == ENOTSUP ? -ENODATA : -errno;
}

/* A file system without hard links, or with too few for one more, gets copies. */
static int remember_copy(csn_replica *r, const struct stat *st, int to, const char *name)
{
    char anchor[NUMBER];

    if (st->st_nlink < 2 || r->links_count >= UINT32_MAX - 1)
        return 0;
    int rc = open_anchors(r);
    if (rc == 0 && 2 * (r->links_count + 1) > r->links_room)
        rc = grow_links(r);
    if (rc < 0)
        return rc;
    csn_replica_link *l = slot_of(r->links, r->links_room, st);
    if (l->number != 0)
        return 0;
    anchor_name((uint32_t)r->links_count + 1, anchor);
    if (linkat(to, name, r->anchors, anchor, 0) < 0)
        return errno == EMLINK || errno == EPERM || errno == ENOTSUP ? 0 : -errno;
    *l = (csn_replica_link){st->st_dev, st->st_ino, (uint32_t)++r->links_count};
    return 0;
}

/* ---- entries ---- */

static int copy_content(csn_replica *r, int fd, const struct stat *st, int to)
{
    if (st->st_size == 0)
        return 0;
    if (!r->no_clone) {
        if (ioctl(to, FICLONE, fd) == 0)
            return 0;
        r->no_clone = errno == EOPNOTSUPP || errno == ENOTTY || errno == EXDEV ||
                      errno == ENOSYS || errno == EINVAL;
    }
    r->done.how = CSN_COPY_COPIED;
    return csn_content_copy(fd, to);
}

static int copy_file(csn_replica *r, const csn_entry_tree *t, int path_fd,
                     const struct stat *st, int to, const char *name)
{
    int rc = link_to_copy(r, st, to, name);

    if (rc != -ENODATA)
        return rc;
    csn_autofd int fd = csn_entry_reopen(t, path_fd, O_RDONLY);
    if (fd < 0)
        return fd;
    csn_autofd int out =
        openat(to, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (out < 0)
        return -errno;
    rc = copy_content(r, fd, st, out);
    if (rc == 0)
        rc = finish(r, t, fd, st, out, true);
    if (rc == 0)
        rc = remember_copy(r, st, to, name);
    return csn_replica_is_gone(rc) ? -EIO : rc; /* no half of a file is left out */
}

/* A new name of the source's own inode. -ENODATA: that is not possible. */
static int share_file(csn_replica *r, int path_fd, int to, const char *name)
{
    char path[sizeof("/proc/self/fd/-2147483648")];

    if (!r->share || r->no_share)
        return -ENODATA;
    snprintf(path, sizeof(path), "/proc/self/fd/%d", path_fd);
    if (linkat(AT_FDCWD, path, to, name, AT_SYMLINK_FOLLOW) == 0)
        return 0;
    r->no_share = errno == EXDEV;
    return errno == EXDEV || errno == EMLINK || errno == EPERM || errno == ENOTSUP ? -ENODATA
                                                                                   : -errno;
}

/* Owner, mode and time of an entry that is not opened. */
static int finish_name(const csn_replica *r, const struct stat *st, int to, const char *name)
{
    const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, st->st_mtim};

    if (r->is_root && fchownat(to, name, st->st_uid, st->st_gid, AT_SYMLINK_NOFOLLOW) < 0)
        return -errno;
    if (!S_ISLNK(st->st_mode) && fchmodat(to, name, mode_of(r, st), 0) < 0)
        return -errno;
    return utimensat(to, name, times, AT_SYMLINK_NOFOLLOW) < 0 ? -errno : 0;
}

static int copy_link(const csn_replica *r, int path_fd, const struct stat *st, int to,
                     const char *name)
{
    ssize_t n = readlinkat(path_fd, "", r->buf, PATH_MAX);

    if (n < 0)
        return -errno;
    r->buf[n] = '\0';
    if (symlinkat(r->buf, to, name) < 0)
        return -errno;
    return finish_name(r, st, to, name);
}

static int copy_special(csn_replica *r, const struct stat *st, int to, const char *name)
{
    bool made = S_ISFIFO(st->st_mode) || S_ISSOCK(st->st_mode) || csn_entry_is_whiteout(st);

    if (!r->layer || !made) {
        r->done.special++;
        return 0;
    }
    if (mknodat(to, name, (st->st_mode & S_IFMT) | 0600, makedev(0, 0)) < 0)
        return -errno;
    r->done.entries++;
    return finish_name(r, st, to, name);
}

int csn_replica_entry(csn_replica *r, const csn_entry_tree *t, int dir, const char *name,
                      int to)
{
    csn_autofd int fd = csn_entry_open(t, dir, name, O_PATH);
    struct stat st;
    int rc;

    if (fd < 0)
        return fd;
    if (fstat(fd, &st) < 0)
        return -errno;
    if (S_ISDIR(st.st_mode))
        return -ESTALE;
    if (S_ISREG(st.st_mode)) {
        rc = share_file(r, fd, to, name);
        if (rc == -ENODATA)
            rc = copy_file(r, t, fd, &st, to, name);
    } else if (S_ISLNK(st.st_mode)) {
        rc = copy_link(r, fd, &st, to, name);
    } else {
        return copy_special(r, &st, to, name);
    }
    if (rc == 0)
        r->done.entries++;
    return rc;
}
