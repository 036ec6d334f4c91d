/* rootfs_mount.c: one entry of the list becomes part of the new root.
 *
 * What lies at the paths is the host's, and below a workspace the agent's: once such a tree is
 * in, places are looked up in the new root without following any link (os/beneath.c), so a link
 * planted in a workspace cannot turn a mount elsewhere. Before that there is nothing in it that
 * is not ours, and the kernel's own lookup does. By two processes in the same memory: what they
 * both run leaves errno alone (os/raw_syscall.h). */
#include "os/rootfs_mount.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "os/beneath.h"
#include "os/mount.h"
#include "os/raw_syscall.h"

bool csn_rootfs_has_template(const csn_rootfs *m)
{
    return m->count > 0 && strcmp(m->list[0].to, "/") == 0;
}

/* ---- places in the new root ---- */

/* O_PATH of what is there; never through a link of somebody else's. */
static int find(const csn_rootfs_builder *b, const char *to)
{
    if (b->ours)
        return (int)csn_raw(SYS_openat, b->root, to + 1, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    return csn_beneath_open(b->root, to, O_PATH, CSN_BENEATH_NOFOLLOW | CSN_BENEATH_ROOTED);
}

/* Makes all directories above the last name of an absolute path. */
static int make_parents(const csn_rootfs_builder *b, const char *to)
{
    char *path = b->path;
    size_t len = strlen(to);

    if (len >= sizeof(b->w->path[0]))
        return -ENAMETOOLONG;
    memcpy(path, to, len + 1);
    for (char *p = path + 1; *p; p++) {
        if (*p != '/')
            continue;
        *p = '\0';
        int fd = find(b, path);
        int rc = fd == -ENOENT ? (int)csn_raw(SYS_mkdirat, b->root, path + 1, 0755) : fd;
        if (rc < 0 && rc != -EEXIST) /* the other may have been quicker */
            return rc;
        if (fd >= 0)
            close(fd);
        *p = '/';
    }
    return 0;
}

/* Makes one directory entry: 0, also when there is one. Its parents are made when they turn out
 * to be missing, which costs less than asking for each. */
static int make(const csn_rootfs_builder *b, const char *to, bool dir, mode_t mode)
{
    for (int tries = 0;; tries++) {
        long rc = dir ? csn_raw(SYS_mkdirat, b->root, to + 1, mode)
                      : csn_raw(SYS_mknodat, b->root, to + 1, S_IFREG | mode, 0);
        if (rc == 0 || rc == -EEXIST)
            break;
        if (rc != -ENOENT || tries > 0)
            return (int)rc;
        rc = make_parents(b, to);
        if (rc < 0)
            return (int)rc;
    }
    if (!dir || !(mode & S_ISVTX))
        return 0;
    return (int)csn_raw(SYS_fchmodat, b->root, to + 1,
                        mode); /* mkdir's is subject to the umask */
}

/* What is there, or a new directory or empty file to mount on. */
static int place(const csn_rootfs_builder *b, const char *to, bool dir, mode_t mode)
{
    int fd = find(b, to);

    if (fd != -ENOENT)
        return fd;
    int rc = make_parents(b, to);
    if (rc == 0)
        rc = make(b, to, dir, mode);
    return rc < 0 ? rc : find(b, to);
}

/* Mounts it at `to`, where there is something of its kind or will be. */
static int put(const csn_rootfs_builder *b, int mount, const char *to, bool dir)
{
    if (b->ours) {
        bool framed = csn_rootfs_has_template(&b->w->m); /* then it is mostly there */
        int rc = framed ? csn_mount_attach(mount, b->root, to + 1) : -ENOENT;
        if (rc != -ENOENT)
            return rc;
        rc = make(b, to, dir, dir ? 0755 : 0444);
        return rc < 0 ? rc : csn_mount_attach(mount, b->root, to + 1);
    }
    csn_autofd int at = place(b, to, dir, dir ? 0755 : 0444);
    return at < 0 ? at : csn_mount_attach(mount, at, "");
}

static int is_dir(int fd, bool *ret)
{
    struct stat st = {0}; /* on all machines with 64 bits the kernel's is also libc's */
    int rc = (int)csn_raw(SYS_fstat, fd, &st);

    *ret = rc == 0 && S_ISDIR(st.st_mode);
    return rc;
}

static int put_any(const csn_rootfs_builder *b, int mount, const char *to)
{
    bool dir;
    int rc = is_dir(mount, &dir);

    return rc < 0 ? rc : put(b, mount, to, dir);
}

/* ---- the kinds ---- */

static int put_text(const csn_rootfs_builder *b, const csn_mount *m)
{
    const int flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
    size_t len = strlen(m->from);
    csn_autofd int fd = openat(b->root, m->to + 1, flags, 0444);

    if (fd < 0 && errno == ENOENT) {
        int rc = make_parents(b, m->to);
        if (rc < 0)
            return rc;
        fd = openat(b->root, m->to + 1, flags, 0444);
    }
    if (fd < 0)
        return -errno;
    return len == 0 || write(fd, m->from, len) == (ssize_t)len ? 0 : -EIO;
}

static int put_link(const csn_rootfs_builder *b, const csn_mount *m)
{
    int rc = (int)csn_raw(SYS_symlinkat, m->from, b->root, m->to + 1);

    if (rc != -ENOENT)
        return rc;
    rc = make_parents(b, m->to);
    return rc < 0 ? rc : (int)csn_raw(SYS_symlinkat, m->from, b->root, m->to + 1);
}

static int put_bind(csn_rootfs_builder *b, const csn_mount *m, int source)
{
    if (source < 0)
        return source;
    int rc = csn_mount_set(source, m->flags, true);
    if (rc == 0)
        rc = put_any(b, source, m->to);
    b->ours = b->ours && (m->flags & CSN_MOUNT_TRUSTED) != 0;
    return rc;
}

static int put_given(csn_rootfs_builder *b, const csn_mount *m)
{
    b->ours = b->ours && (m->flags & CSN_MOUNT_TRUSTED) != 0;
    return put_any(b, m->fd, m->to); /* its flags were set by who made it */
}

static int put_again(const csn_rootfs_builder *b, const csn_mount *m)
{
    csn_autofd int at = b->ours ? -1 : find(b, m->to);

    if (!b->ours && at < 0)
        return at;
    csn_autofd int copy =
        b->ours ? csn_mount_clone(b->root, m->to + 1, true) : csn_mount_clone(at, "", true);
    if (copy < 0)
        return copy;
    int rc = csn_mount_set(copy, m->flags, true);
    if (rc < 0)
        return rc;
    return b->ours ? csn_mount_attach(copy, b->root, m->to + 1)
                   : csn_mount_attach(copy, at, "");
}

/* A part of the tmpfs that the frame has a place for. */
static int put_part(const csn_rootfs_builder *b, const csn_mount *m, mode_t mode)
{
    csn_rootfs_work *w = b->w;
    char name[32];

    snprintf(name, sizeof(name), "part-%zu", (size_t)(m - w->m.list));
    int rc = (int)csn_raw(SYS_mkdirat, w->scratch, name, mode);
    if (rc == 0 && (mode & S_ISVTX))
        rc = (int)csn_raw(SYS_fchmodat, w->scratch, name, mode);
    csn_autofd int copy = rc < 0 ? rc : csn_mount_clone(w->scratch, name, false);
    if (copy < 0)
        return copy;
    rc = csn_mount_set(copy, m->flags & ~CSN_MOUNT_RDONLY, false);
    if (rc == 0)
        rc = put(b, copy, m->to, true);
    if (rc < 0 || !(m->flags & CSN_MOUNT_RDONLY))
        return rc;
    if (w->loft_count == CSN_DEFERRED_RDONLY_MAX)
        return -E2BIG;
    w->lofts[w->loft_count++] = csn_steal_fd(&copy);
    return 0;
}

static int put_scratch(const csn_rootfs_builder *b, const csn_mount *m)
{
    mode_t mode = m->flags & CSN_MOUNT_STICKY ? 01777 : 0755;

    if (csn_rootfs_has_template(&b->w->m))
        return put_part(b, m, mode);
    if (b->ours) {
        int rc = make(b, m->to, true, mode);
        return rc < 0 ? rc : put_again(b, m);
    }
    csn_autofd int at = place(b, m->to, true, mode);
    return at < 0 ? at : put_again(b, m);
}

/* An empty file and an empty directory without any right, and mounts of them that are
 * read-only: their owner, who is the sandbox, cannot give itself rights. They keep their names:
 * the kernel calls what lies on something unlinked "deleted", and paths are asked for later.
 * Made first of all, where /proc will lie over them: nobody stumbles over two names that refuse
 * everything. */
static int make_mask(const csn_rootfs_builder *b, const char *path)
{
    csn_autofd int copy = csn_mount_clone(b->root, path, false);
    int rc = copy < 0 ? copy : csn_mount_set(copy, CSN_MOUNT_RDONLY | CSN_MOUNT_NOEXEC, false);

    if (rc == 0)
        rc = csn_mount_attach(copy, b->root, path);
    return rc < 0 ? rc : csn_steal_fd(&copy);
}

int csn_rootfs_mount_masks(const csn_rootfs_builder *b)
{
    static const char dir[] = "proc/.mask-dir", file[] = "proc/.mask-file";

    csn_rootfs_work *w = b->w;
    if (!csn_rootfs_has_template(&w->m) && mkdirat(b->root, "proc", 0755) < 0)
        return -errno;
    if (mkdirat(b->root, dir, 0) < 0 || mknodat(b->root, file, S_IFREG, 0) < 0)
        return -errno;
    w->mask_dir = make_mask(b, dir);
    w->mask_file = make_mask(b, file);
    return w->mask_dir < 0 ? w->mask_dir : w->mask_file < 0 ? w->mask_file : 0;
}

/* A copy that finds no place makes the kernel wait for all processors: so ask first. */
static int put_mask(const csn_rootfs_builder *b, const csn_mount *m)
{
    csn_autofd int at = find(b, m->to);
    bool dir;

    if (at < 0)
        return at;
    int rc = is_dir(at, &dir);
    if (rc < 0)
        return rc;
    csn_autofd int copy = csn_mount_clone(dir ? b->w->mask_dir : b->w->mask_file, "", false);
    return copy < 0 ? copy : csn_mount_attach(copy, at, "");
}

static int put_one(csn_rootfs_builder *b, const csn_mount *m, int source)
{
    switch ((csn_mount_kind)m->kind) {
    case CSN_MOUNT_DIR: {
        if (b->ours)
            return make(b, m->to, true, 0755);
        csn_autofd int fd = place(b, m->to, true, 0755);
        return fd < 0 ? fd : 0;
    }
    case CSN_MOUNT_LINK:
        return put_link(b, m);
    case CSN_MOUNT_TEXT:
        return put_text(b, m);
    case CSN_MOUNT_BIND:
        return put_bind(b, m, source);
    case CSN_MOUNT_GIVEN:
        return put_given(b, m);
    case CSN_MOUNT_SCRATCH:
        return put_scratch(b, m);
    case CSN_MOUNT_PROC:
    case CSN_MOUNT_PTS:
    case CSN_MOUNT_QUEUES:
        return source < 0 ? source : put(b, source, m->to, true);
    case CSN_MOUNT_SELF:
        return put_again(b, m);
    case CSN_MOUNT_MASK:
        return put_mask(b, m);
    }
    return -EINVAL;
}

static bool left_out(const csn_mount *m, int rc)
{
    return (m->flags & CSN_MOUNT_OPTIONAL) &&
           (rc == -ENOENT || rc == -EACCES || rc == -ENOTDIR || rc == -ELOOP || rc == -ENODEV);
}

/* The kernel wants to see a whole /proc before it lets anybody mount one: not after the old
 * root has gone. */
int csn_rootfs_open_sources(const csn_mount *m)
{
    static const char *const none[] = {NULL};
    static const char *const pts[] = {"ptmxmode", "0666", "mode", "0620", NULL};

    if (m->kind == CSN_MOUNT_BIND)
        return csn_mount_clone(AT_FDCWD, m->from, true);
    if (m->kind == CSN_MOUNT_PROC)
        return csn_mount_new_fs("proc", none, m->flags);
    if (m->kind == CSN_MOUNT_PTS) /* every instance is new these days */
        return csn_mount_new_fs("devpts", pts, m->flags);
    return m->kind == CSN_MOUNT_QUEUES ? csn_mount_new_fs("mqueue", none, m->flags) : -1;
}

int csn_rootfs_mount(csn_rootfs_builder *b, size_t i)
{
    const csn_mount *m = &b->w->m.list[i];
    int source = b->w->source[i];
    bool frame = i == 0 && csn_rootfs_has_template(&b->w->m); /* where all others are put */
    int rc = frame ? 0 : put_one(b, m, source);

    if (source >= 0)
        close(source);
    return rc < 0 && left_out(m, rc) ? 0 : rc;
}
