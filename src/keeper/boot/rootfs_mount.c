/* rootfs_mount.c: mounts one entry of the list in the new root.
 *
 * Once a tree that an agent can write is mounted (`trusted` is false), paths in the new root
 * are resolved without following links (os/beneath.c): a link planted in a workspace cannot
 * redirect a mount. Before that, the new root holds only our own names, and the kernel's normal
 * lookup is used.
 *
 * The keeper and its mount helper run this code in the same memory, so it leaves errno alone
 * (os/raw_syscall.h). */
#include "keeper/boot/rootfs_mount.h"

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
#include "os/overlay.h"
#include "os/raw_syscall.h"

#define PTYS_MAX "64" /* the kernel has 3072 for all sandboxes together */

bool kp_rootfs_has_template(const csn_rootfs *m)
{
    return m->count > 0 && strcmp(m->list[0].to, "/") == 0;
}

/* ---- places in the new root ---- */

/* Opens what is at `to` with O_PATH. */
static int find(const kp_mounter *b, const char *to)
{
    if (b->trusted)
        return (int)csn_raw(SYS_openat, b->w->root, to + 1, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    return csn_beneath_open(b->w->root, to, O_PATH, CSN_BENEATH_NOFOLLOW | CSN_BENEATH_ROOTED);
}

/* The same, also for a link at the end of the path. */
static int find_link(const kp_mounter *b, const char *to)
{
    if (b->trusted)
        return find(b, to);
    return csn_beneath_open(b->w->root, to, O_PATH | O_NOFOLLOW,
                            CSN_BENEATH_NOFOLLOW | CSN_BENEATH_ROOTED);
}

/* Creates all directories above the last component of an absolute path. */
static int make_parents(const kp_mounter *b, const char *to)
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
        int rc = fd == -ENOENT ? (int)csn_raw(SYS_mkdirat, b->w->root, path + 1, 0755) : fd;
        if (rc < 0 && rc != -EEXIST) /* the other process may have created it */
            return rc;
        if (fd >= 0)
            close(fd);
        *p = '/';
    }
    return 0;
}

/* Creates a directory or an empty file; 0 also if it exists. Parents are created only after
 * ENOENT, which costs less than looking each of them up. */
static int create(const kp_mounter *b, const char *to, bool dir, mode_t mode)
{
    for (int tries = 0;; tries++) {
        long rc = dir ? csn_raw(SYS_mkdirat, b->w->root, to + 1, mode)
                      : csn_raw(SYS_mknodat, b->w->root, to + 1, S_IFREG | mode, 0);
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
    return (int)csn_raw(SYS_fchmodat, b->w->root, to + 1, mode); /* mkdir applies the umask */
}

/* Opens what is at `to`, which is created if it is missing. */
static int find_or_create(const kp_mounter *b, const char *to, bool dir, mode_t mode)
{
    int fd = find(b, to);

    if (fd != -ENOENT)
        return fd;
    int rc = make_parents(b, to);
    if (rc == 0)
        rc = create(b, to, dir, mode);
    return rc < 0 ? rc : find(b, to);
}

/* Attaches a mount at `to`, which is created if it is missing. */
static int attach(const kp_mounter *b, int mount, const char *to, bool dir)
{
    if (b->trusted) {
        /* a template contains most places */
        int rc = kp_rootfs_has_template(&b->w->m) ? csn_mount_attach(mount, b->w->root, to + 1)
                                                  : -ENOENT;
        if (rc != -ENOENT)
            return rc;
        rc = create(b, to, dir, dir ? 0755 : 0444);
        return rc < 0 ? rc : csn_mount_attach(mount, b->w->root, to + 1);
    }
    csn_autofd int at = find_or_create(b, to, dir, dir ? 0755 : 0444);
    return at < 0 ? at : csn_mount_attach(mount, at, "");
}

static int is_dir(int fd, bool *ret)
{
    struct stat st = {0}; /* on 64-bit machines libc uses the kernel's layout */
    int rc = (int)csn_raw(SYS_fstat, fd, &st);

    *ret = rc == 0 && S_ISDIR(st.st_mode);
    return rc;
}

static int attach_any(const kp_mounter *b, int mount, const char *to)
{
    bool dir;
    int rc = is_dir(mount, &dir);

    return rc < 0 ? rc : attach(b, mount, to, dir);
}

/* ---- the kinds ---- */

static int mount_text(const kp_mounter *b, const csn_mount *m)
{
    const int flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
    size_t len = strlen(m->from);
    csn_autofd int fd = openat(b->w->root, m->to + 1, flags, 0444);

    if (fd < 0 && errno == ENOENT) {
        int rc = make_parents(b, m->to);
        if (rc < 0)
            return rc;
        fd = openat(b->w->root, m->to + 1, flags, 0444);
    }
    if (fd < 0)
        return -errno;
    return len == 0 || write(fd, m->from, len) == (ssize_t)len ? 0 : -EIO;
}

static int mount_link(const kp_mounter *b, const csn_mount *m)
{
    int rc = (int)csn_raw(SYS_symlinkat, m->from, b->w->root, m->to + 1);

    if (rc != -ENOENT)
        return rc;
    rc = make_parents(b, m->to);
    return rc < 0 ? rc : (int)csn_raw(SYS_symlinkat, m->from, b->w->root, m->to + 1);
}

static int mount_bind(kp_mounter *b, const csn_mount *m, int source)
{
    if (source < 0)
        return source;
    int rc = csn_mount_set(source, m->flags, true);
    if (rc == 0)
        rc = attach_any(b, source, m->to);
    b->trusted = b->trusted && (m->flags & CSN_MOUNT_TRUSTED) != 0;
    return rc;
}

static int mount_given(kp_mounter *b, const csn_mount *m)
{
    b->trusted = b->trusted && (m->flags & CSN_MOUNT_TRUSTED) != 0;
    return attach_any(b, m->fd, m->to); /* the library has set its flags */
}

static int mount_self(const kp_mounter *b, const csn_mount *m)
{
    bool link = m->flags & CSN_MOUNT_NOFOLLOW;
    csn_autofd int at = b->trusted ? -1 : link ? find_link(b, m->to) : find(b, m->to);

    if (!b->trusted && at < 0)
        return at;
    csn_autofd int copy = b->trusted ? csn_mount_clone(b->w->root, m->to + 1, true)
                                     : csn_mount_clone(at, "", true);
    if (copy < 0)
        return copy;
    int rc = csn_mount_set(copy, m->flags, true);
    if (rc < 0)
        return rc;
    return b->trusted ? csn_mount_attach(copy, b->w->root, m->to + 1)
                      : csn_mount_attach(copy, at, "");
}

/* With a template: a directory of the hidden tmpfs, mounted at its place in the template. */
static int mount_part(const kp_mounter *b, const csn_mount *m, mode_t mode)
{
    char name[32];

    snprintf(name, sizeof(name), "part-%zu", (size_t)(m - b->w->m.list));
    int rc = (int)csn_raw(SYS_mkdirat, b->w->scratch, name, mode);
    if (rc == 0 && (mode & S_ISVTX))
        rc = (int)csn_raw(SYS_fchmodat, b->w->scratch, name, mode);
    csn_autofd int copy = rc < 0 ? rc : csn_mount_clone(b->w->scratch, name, false);
    if (copy < 0)
        return copy;
    rc = csn_mount_set(copy, m->flags & ~CSN_MOUNT_RDONLY, false);
    if (rc == 0)
        rc = attach(b, copy, m->to, true);
    if (rc < 0 || !(m->flags & CSN_MOUNT_RDONLY))
        return rc;
    if (b->w->deferred_count == KP_DEFERRED_RDONLY_MAX)
        return -E2BIG;
    b->w->deferred_rdonly[b->w->deferred_count++] = csn_steal_fd(&copy);
    return 0;
}

static int mount_scratch(const kp_mounter *b, const csn_mount *m)
{
    mode_t mode = m->flags & CSN_MOUNT_STICKY ? 01777 : 0755;

    if (kp_rootfs_has_template(&b->w->m))
        return mount_part(b, m, mode);
    if (b->trusted) {
        int rc = create(b, m->to, true, mode);
        return rc < 0 ? rc : mount_self(b, m);
    }
    csn_autofd int at = find_or_create(b, m->to, true, mode);
    return at < 0 ? at : mount_self(b, m);
}

/* A read-only mount of an empty file or directory, of mode 0 unless it may be read: its owner,
 * the sandbox, cannot change the mode. All keep their names, because the kernel appends
 * "(deleted)" to the path of a mount on something unlinked. They are created in /proc, where
 * the mount of /proc hides them. */
static int make_mask(const kp_mounter *b, const char *path)
{
    csn_autofd int copy = csn_mount_clone(b->w->root, path, false);
    int rc = copy < 0 ? copy : csn_mount_set(copy, CSN_MOUNT_RDONLY | CSN_MOUNT_NOEXEC, false);

    if (rc == 0)
        rc = csn_mount_attach(copy, b->w->root, path);
    return rc < 0 ? rc : csn_steal_fd(&copy);
}

static bool needs_empty(const csn_rootfs *m)
{
    for (size_t i = 0; i < m->count; i++)
        if (m->list[i].kind == CSN_MOUNT_MASK && (m->list[i].flags & CSN_MOUNT_RDONLY))
            return true;
    return false;
}

int kp_rootfs_make_masks(const kp_mounter *b)
{
    static const char dir[] = "proc/.mask-dir", file[] = "proc/.mask-file",
                      empty[] = "proc/.mask-empty";

    if (!kp_rootfs_has_template(&b->w->m) && mkdirat(b->w->root, "proc", 0755) < 0)
        return -errno;
    if (mkdirat(b->w->root, dir, 0) < 0 || mknodat(b->w->root, file, S_IFREG, 0) < 0)
        return -errno;
    b->w->mask_dir = make_mask(b, dir);
    b->w->mask_file = make_mask(b, file);
    b->w->mask_empty = -1;
    if (needs_empty(&b->w->m)) {
        if (mkdirat(b->w->root, empty, 0555) < 0)
            return -errno;
        b->w->mask_empty = make_mask(b, empty);
        if (b->w->mask_empty < 0)
            return b->w->mask_empty;
    }
    return b->w->mask_dir < 0 ? b->w->mask_dir : b->w->mask_file < 0 ? b->w->mask_file : 0;
}

/* A link is covered itself, not what it leads to. Looks the place up before the mask is cloned:
 * discarding an unattached mount makes the kernel wait for an RCU grace period. */
static int mount_mask(const kp_mounter *b, const csn_mount *m)
{
    csn_autofd int at = find_link(b, m->to);
    bool dir;

    if (at < 0)
        return at;
    int rc = is_dir(at, &dir);
    if (rc < 0)
        return rc;
    int what = dir ? b->w->mask_dir : b->w->mask_file;
    if (dir && (m->flags & CSN_MOUNT_RDONLY))
        what = b->w->mask_empty;
    csn_autofd int copy = csn_mount_clone(what, "", false);
    return copy < 0 ? copy : csn_mount_attach(copy, at, "");
}

/* /proc is read-only inside: its owner could otherwise change the scheduling, the OOM score and
 * the limits of the keeper and of other commands. The keeper keeps a mount of it that is not.
 * Only an attached mount can be cloned before Linux 6.15. */
static int mount_proc(kp_mounter *b, const csn_mount *m, int source)
{
    int rc = source < 0 ? source : attach(b, source, m->to, true);

    if (rc < 0 || strcmp(m->to, "/proc") != 0)
        return rc;
    b->w->proc = csn_mount_clone(source, "", false);
    return b->w->proc < 0 ? b->w->proc : csn_mount_set(source, m->flags, false);
}

/* The tree at `to` was mounted by the entry before, and base in it. The path of the tree is the
 * overlay's from now on; only the descriptor still leads to the tree. */
static int mount_overlay(const kp_mounter *b, const csn_mount *m)
{
    csn_overlay o;
    csn_autofd int tree = find(b, m->to);
    int rc = tree < 0 ? tree : csn_overlay_describe(m->from, &o);
    csn_autofd int overlay = rc < 0 ? rc : csn_overlay_new(tree, &o);

    if (overlay < 0)
        return overlay;
    rc = (int)csn_raw(SYS_fchdir, b->w->root);
    if (rc == 0)
        rc = csn_mount_attach(overlay, tree, "");
    if (rc == 0)
        b->w->layers = csn_steal_fd(&tree);
    return rc;
}

static int mount_one(kp_mounter *b, const csn_mount *m, int source)
{
    switch ((csn_mount_kind)m->kind) {
    case CSN_MOUNT_DIR: {
        if (b->trusted)
            return create(b, m->to, true, 0755);
        csn_autofd int fd = find_or_create(b, m->to, true, 0755);
        return fd < 0 ? fd : 0;
    }
    case CSN_MOUNT_LINK:
        return mount_link(b, m);
    case CSN_MOUNT_TEXT:
        return mount_text(b, m);
    case CSN_MOUNT_BIND:
        return mount_bind(b, m, source);
    case CSN_MOUNT_GIVEN:
        return mount_given(b, m);
    case CSN_MOUNT_SCRATCH:
        return mount_scratch(b, m);
    case CSN_MOUNT_PROC:
        return mount_proc(b, m, source);
    case CSN_MOUNT_PTS:
    case CSN_MOUNT_QUEUES:
        return source < 0 ? source : attach(b, source, m->to, true);
    case CSN_MOUNT_SELF:
        return mount_self(b, m);
    case CSN_MOUNT_MASK:
        return mount_mask(b, m);
    case CSN_MOUNT_OVERLAY:
        return mount_overlay(b, m);
    }
    return -EINVAL;
}

static bool may_skip(const csn_mount *m, int rc)
{
    return (m->flags & CSN_MOUNT_OPTIONAL) &&
           (rc == -ENOENT || rc == -EACCES || rc == -ENOTDIR || rc == -ELOOP || rc == -ENODEV);
}

/* In a user namespace the kernel allows a mount of proc only while a complete /proc is visible,
 * so it is made before the old root is detached. */
int kp_rootfs_open_source(const csn_mount *m)
{
    static const char *const none[] = {NULL};
    static const char *const pts[] = {"ptmxmode", "0666",   "mode", "0620",
                                      "max",      PTYS_MAX, NULL};

    if (m->kind == CSN_MOUNT_BIND)
        return csn_mount_clone(AT_FDCWD, m->from, true);
    if (m->kind == CSN_MOUNT_PROC)
        return csn_mount_new_fs("proc", none, m->flags & ~CSN_MOUNT_RDONLY);
    if (m->kind == CSN_MOUNT_PTS)
        return csn_mount_new_fs("devpts", pts, m->flags);
    return m->kind == CSN_MOUNT_QUEUES ? csn_mount_new_fs("mqueue", none, m->flags) : -1;
}

int kp_rootfs_mount(kp_mounter *b, size_t i)
{
    const csn_mount *m = &b->w->m.list[i];
    int source = b->w->source[i];
    bool template = i == 0 && kp_rootfs_has_template(&b->w->m); /* it is the root already */
    int rc = template ? 0 : mount_one(b, m, source);

    if (source >= 0)
        close(source);
    return rc < 0 && may_skip(m, rc) ? 0 : rc;
}
