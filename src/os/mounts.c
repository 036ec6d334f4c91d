/* mounts.c: building the root of a jail, and entering it.
 *
 * Runs in a keeper that is pid 1 of fresh namespaces, before any code of the sandbox does. The
 * list comes from the library; what lies at the paths is the host's, and below a workspace the
 * agent's: once such a tree is in, places are looked up in the new root without following any
 * link (os/beneath.c), so a link planted in a workspace cannot turn a mount elsewhere. Before
 * that there is nothing in it that is not ours, and the kernel's own lookup does.
 *
 * Everything from the old root is opened first, while it is still the root. The new root is
 * either a directory that was prepared for it, the frame; then a tmpfs lies below /proc, where
 * nobody sees it, and the writable places are parts of it, mounted elsewhere. Or it is that
 * tmpfs: directories, links and small files are made in it, writable places are mounted over
 * themselves, and then the tmpfs itself becomes read-only. Either way there is one limit on
 * what a sandbox can write beside its workspace. With the old root gone, the mounts are a wall:
 * what is not in the list has no name.
 *
 * Two do it: taking off the old root makes the kernel wait for all processors, so a second
 * process does that, and then has time for all that nothing else depends on. It shares our
 * memory, so what it runs leaves errno alone (os/raw.h). */
#include "os/mounts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "os/beneath.h"
#include "os/raw.h"

/* Own copies: the headers of a static libc know neither the calls nor their structs. */
#ifndef SYS_open_tree
#define SYS_open_tree  428
#define SYS_move_mount 429
#define SYS_fsopen     430
#define SYS_fsconfig   431
#define SYS_fsmount    432
#endif
#ifndef SYS_mount_setattr
#define SYS_mount_setattr 442
#endif
#define TREE_CLONE      1u
#define TREE_CLOEXEC    ((unsigned)O_CLOEXEC)
#define TREE_RECURSIVE  0x8000u /* AT_RECURSIVE */
#define MOVE_FROM_EMPTY 0x00000004u
#define MOVE_TO_EMPTY   0x00000040u
#define FS_CLOEXEC      1u
#define FS_SET_STRING   1u
#define FS_CREATE       6u
#define ATTR_RDONLY     0x00000001ull
#define ATTR_NOSUID     0x00000002ull
#define ATTR_NODEV      0x00000004ull
#define ATTR_NOEXEC     0x00000008ull
#define ATTR_IDMAP      0x00100000ull

struct attr_v0 {
    uint64_t set, clear, propagation, userns_fd;
};

static bool has_frame(const csn_mounts *m)
{
    return m->count > 0 && strcmp(m->list[0].to, "/") == 0;
}

typedef struct builder {
    csn_mounts_work *w;
    int root;   /* the new one */
    char *path; /* room for one, of w; nobody's stack is to grow for it */
    bool ours;  /* nothing in it is of anybody else's making */
} builder;

static uint64_t attrs(uint32_t flags)
{
    return ATTR_NOSUID | (flags & CSN_MOUNT_DEVICES ? 0 : ATTR_NODEV) |
           (flags & CSN_MOUNT_RDONLY ? ATTR_RDONLY : 0) |
           (flags & CSN_MOUNT_NOEXEC ? ATTR_NOEXEC : 0);
}

/* Private: what the host mounts or unmounts later changes nothing in here. */
static int set_attrs(int mount, uint32_t flags, bool recursive)
{
    struct attr_v0 a = {.set = attrs(flags), .propagation = MS_PRIVATE};
    unsigned at = AT_EMPTY_PATH | (recursive ? TREE_RECURSIVE : 0);

    return (int)csn_raw(SYS_mount_setattr, mount, "", at, &a, sizeof(a));
}

static int clone_tree(int at, const char *path, bool recursive)
{
    unsigned flags = TREE_CLONE | TREE_CLOEXEC | (recursive ? TREE_RECURSIVE : 0) |
                     (*path ? 0 : AT_EMPTY_PATH);

    return (int)csn_raw(SYS_open_tree, at, path, flags);
}

static int attach(int mount, int at, const char *path)
{
    unsigned flags = MOVE_FROM_EMPTY | (*path ? 0 : MOVE_TO_EMPTY);

    return (int)csn_raw(SYS_move_mount, mount, "", at, path, flags);
}

/* A new file system, not attached anywhere. options: name, value, name, value, NULL. */
static int new_fs(const char *type, const char *const *options, uint64_t flags)
{
    csn_autofd int fs = (int)syscall(SYS_fsopen, type, FS_CLOEXEC);

    if (fs < 0)
        return -errno;
    for (; *options; options += 2)
        if (syscall(SYS_fsconfig, fs, FS_SET_STRING, options[0], options[1], 0) < 0)
            return -errno;
    if (syscall(SYS_fsconfig, fs, FS_CREATE, NULL, NULL, 0) < 0)
        return -errno;
    long fd = syscall(SYS_fsmount, fs, FS_CLOEXEC, flags);
    return fd < 0 ? -errno : (int)fd;
}

/* ---- places in the new root ---- */

/* O_PATH of what is there; never through a link of somebody else's. */
static int find(const builder *b, const char *to)
{
    if (b->ours)
        return (int)csn_raw(SYS_openat, b->root, to + 1, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    return csn_beneath_open(b->root, to, O_PATH, CSN_BENEATH_NOFOLLOW | CSN_BENEATH_ROOTED);
}

/* Makes all directories above the last name of an absolute path. */
static int make_parents(const builder *b, const char *to)
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
        if (rc < 0)
            return rc;
        if (fd >= 0)
            close(fd);
        *p = '/';
    }
    return 0;
}

/* Makes one directory entry: 0, also when there is one. Its parents are made when they turn out
 * to be missing, which costs less than asking for each. */
static int make(const builder *b, const char *to, bool dir, mode_t mode)
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
static int place(const builder *b, const char *to, bool dir, mode_t mode)
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
static int put(const builder *b, int mount, const char *to, bool dir)
{
    if (b->ours) {
        bool framed = has_frame(&b->w->m); /* then it is mostly there */
        int rc = framed ? attach(mount, b->root, to + 1) : -ENOENT;
        if (rc != -ENOENT)
            return rc;
        rc = make(b, to, dir, dir ? 0755 : 0444);
        return rc < 0 ? rc : attach(mount, b->root, to + 1);
    }
    csn_autofd int at = place(b, to, dir, dir ? 0755 : 0444);
    return at < 0 ? at : attach(mount, at, "");
}

static int is_dir(int fd, bool *ret)
{
    struct stat st = {0}; /* on all machines with 64 bits the kernel's is also libc's */
    int rc = (int)csn_raw(SYS_fstat, fd, &st);

    *ret = rc == 0 && S_ISDIR(st.st_mode);
    return rc;
}

static int put_any(const builder *b, int mount, const char *to)
{
    bool dir;
    int rc = is_dir(mount, &dir);

    return rc < 0 ? rc : put(b, mount, to, dir);
}

/* ---- the kinds ---- */

static int put_text(const builder *b, const csn_mount *m)
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

static int put_link(const builder *b, const csn_mount *m)
{
    int rc = (int)csn_raw(SYS_symlinkat, m->from, b->root, m->to + 1);

    if (rc != -ENOENT)
        return rc;
    rc = make_parents(b, m->to);
    return rc < 0 ? rc : (int)csn_raw(SYS_symlinkat, m->from, b->root, m->to + 1);
}

static int put_bind(builder *b, const csn_mount *m, int source)
{
    if (source < 0)
        return source;
    int rc = set_attrs(source, m->flags, true);
    if (rc == 0)
        rc = put_any(b, source, m->to);
    b->ours = b->ours && (m->flags & CSN_MOUNT_OURS) != 0;
    return rc;
}

static int put_given(builder *b, const csn_mount *m)
{
    b->ours = b->ours && (m->flags & CSN_MOUNT_OURS) != 0;
    return put_any(b, m->fd, m->to); /* its flags were set by who made it */
}

static int put_again(const builder *b, const csn_mount *m)
{
    csn_autofd int at = b->ours ? -1 : find(b, m->to);

    if (!b->ours && at < 0)
        return at;
    csn_autofd int copy =
        b->ours ? clone_tree(b->root, m->to + 1, true) : clone_tree(at, "", true);
    if (copy < 0)
        return copy;
    int rc = set_attrs(copy, m->flags, true);
    if (rc < 0)
        return rc;
    return b->ours ? attach(copy, b->root, m->to + 1) : attach(copy, at, "");
}

/* A part of the tmpfs that the frame has a place for. */
static int put_part(const builder *b, const csn_mount *m, mode_t mode)
{
    csn_mounts_work *w = b->w;
    char name[32];

    snprintf(name, sizeof(name), "part-%zu", (size_t)(m - w->m.list));
    int rc = (int)csn_raw(SYS_mkdirat, w->scratch, name, mode);
    if (rc == 0 && (mode & S_ISVTX))
        rc = (int)csn_raw(SYS_fchmodat, w->scratch, name, mode);
    csn_autofd int copy = rc < 0 ? rc : clone_tree(w->scratch, name, false);
    if (copy < 0)
        return copy;
    rc = set_attrs(copy, m->flags & ~CSN_MOUNT_RDONLY, false);
    if (rc == 0)
        rc = put(b, copy, m->to, true);
    if (rc < 0 || !(m->flags & CSN_MOUNT_RDONLY))
        return rc;
    if (w->loft_count == CSN_LOFTS_MAX)
        return -E2BIG;
    w->lofts[w->loft_count++] = csn_steal_fd(&copy);
    return 0;
}

static int put_scratch(const builder *b, const csn_mount *m)
{
    mode_t mode = m->flags & CSN_MOUNT_STICKY ? 01777 : 0755;

    if (has_frame(&b->w->m))
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
static int make_mask(const builder *b, const char *path)
{
    csn_autofd int copy = clone_tree(b->root, path, false);
    int rc = copy < 0 ? copy : set_attrs(copy, CSN_MOUNT_RDONLY | CSN_MOUNT_NOEXEC, false);

    if (rc == 0)
        rc = attach(copy, b->root, path);
    return rc < 0 ? rc : csn_steal_fd(&copy);
}

static int make_masks(const builder *b)
{
    static const char dir[] = "proc/.mask-dir", file[] = "proc/.mask-file";

    csn_mounts_work *w = b->w;
    if (!has_frame(&w->m) && mkdirat(b->root, "proc", 0755) < 0)
        return -errno;
    if (mkdirat(b->root, dir, 0) < 0 || mknodat(b->root, file, S_IFREG, 0) < 0)
        return -errno;
    w->mask_dir = make_mask(b, dir);
    w->mask_file = make_mask(b, file);
    return w->mask_dir < 0 ? w->mask_dir : w->mask_file < 0 ? w->mask_file : 0;
}

/* A copy that finds no place makes the kernel wait for all processors: so ask first. */
static int put_mask(const builder *b, const csn_mount *m)
{
    csn_autofd int at = find(b, m->to);
    bool dir;

    if (at < 0)
        return at;
    int rc = is_dir(at, &dir);
    if (rc < 0)
        return rc;
    csn_autofd int copy = clone_tree(dir ? b->w->mask_dir : b->w->mask_file, "", false);
    return copy < 0 ? copy : attach(copy, at, "");
}

static int put_one(builder *b, const csn_mount *m, int source)
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
    case CSN_MOUNT_AGAIN:
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

/* ---- the root ---- */

static int new_tmpfs(const csn_mounts *m)
{
    char size[32], inodes[32];
    const char *options[] = {"mode", "0755", NULL, NULL, NULL, NULL, NULL};
    size_t n = 2;

    if (m->size != 0) {
        snprintf(size, sizeof(size), "%llu", (unsigned long long)m->size);
        options[n++] = "size";
        options[n++] = size;
    }
    if (m->inodes != 0) {
        snprintf(inodes, sizeof(inodes), "%llu", (unsigned long long)m->inodes);
        options[n++] = "nr_inodes";
        options[n++] = inodes;
    }
    return new_fs("tmpfs", options, ATTR_NOSUID | ATTR_NODEV);
}

/* The descriptor is the caller's, or of the list. */
static int open_frame(const csn_mounts_work *w)
{
    const csn_mount *m = &w->m.list[0];

    if (m->kind == CSN_MOUNT_GIVEN)
        return m->fd;
    int rc = w->source[0] < 0 ? w->source[0] : set_attrs(w->source[0], m->flags, true);
    return rc < 0 ? rc : w->source[0];
}

/* The kernel wants to see a whole /proc before it lets anybody mount one: not after the old
 * root has gone. */
static int open_source(const csn_mount *m)
{
    static const char *const none[] = {NULL};
    static const char *const pts[] = {"ptmxmode", "0666", "mode", "0620", NULL};

    if (m->kind == CSN_MOUNT_BIND)
        return clone_tree(AT_FDCWD, m->from, true);
    if (m->kind == CSN_MOUNT_PROC)
        return new_fs("proc", none, attrs(m->flags));
    if (m->kind == CSN_MOUNT_PTS) /* every instance is new these days */
        return new_fs("devpts", pts, attrs(m->flags));
    return m->kind == CSN_MOUNT_QUEUES ? new_fs("mqueue", none, attrs(m->flags)) : -1;
}

static int put_listed(builder *b, size_t i)
{
    const csn_mount *m = &b->w->m.list[i];
    int source = b->w->source[i];
    bool frame = i == 0 && has_frame(&b->w->m); /* where all others are put */
    int rc = frame ? 0 : put_one(b, m, source);

    if (source >= 0)
        close(source);
    return rc < 0 && left_out(m, rc) ? 0 : rc;
}

/* ---- by the second process ---- */

static bool is_beside(const csn_mounts_work *w, size_t i)
{
    return (w->m.list[i].flags & CSN_MOUNT_BESIDE) != 0;
}

/* By its descriptor: it lies on top of the new one. */
static int take_off(csn_mounts_work *w)
{
    int rc = (int)csn_raw(SYS_fchdir, w->old);

    if (rc == 0)
        rc = (int)csn_raw(SYS_umount2, ".", MNT_DETACH);
    w->off_rc = rc;
    csn_step_tell(&w->off);
    return rc;
}

static bool take(csn_mounts_work *w, size_t i)
{
    return is_beside(w, i) && !__atomic_exchange_n(&w->taken[i], true, __ATOMIC_RELAXED);
}

static int put_beside(csn_mounts_work *w)
{
    builder b = {.w = w, .root = w->root, .path = w->path[1], .ours = true};
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < w->m.count; i++)
        if (take(w, i)) {
            rc = put_listed(&b, i);
            w->at = rc < 0 ? i : w->at;
        }
    return rc;
}

/* All is in it: nobody makes anything there from now on. */
static int close_up(csn_mounts_work *w)
{
    int rc = set_attrs(w->scratch, CSN_MOUNT_RDONLY, false);

    for (size_t i = 0; rc == 0 && i < w->loft_count; i++)
        rc = set_attrs(w->lofts[i], CSN_MOUNT_RDONLY, false);
    return rc;
}

static int do_beside(void *arg)
{
    csn_mounts_work *w = arg;

    w->at = w->m.count;
    int rc = take_off(w);
    csn_step_await(&w->ready); /* what is done now looks into /proc */
    if (rc == 0 && w->then)
        rc = w->then(w->arg);
    csn_step_tell(&w->then_done);
    if (rc == 0)
        rc = put_beside(w);
    if (rc < 0)
        return rc;
    csn_step_await(&w->filled);
    return close_up(w);
}

/* ---- by ourselves ---- */

/* It must hang somewhere before things can hang in it. Nothing is opened by its old name from
 * now on, so where does not matter; /proc is always there. */
static int enter(csn_mounts_work *w, int new_root)
{
    w->old = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (w->old < 0)
        return -errno;
    if (syscall(SYS_move_mount, new_root, "", AT_FDCWD, "/proc", MOVE_FROM_EMPTY) < 0 ||
        fchdir(new_root) < 0 || syscall(SYS_pivot_root, ".", ".") < 0)
        return -errno;
    w->root = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    return w->root < 0 ? -errno : 0;
}

static int enter_new(csn_mounts_work *w)
{
    w->scratch = new_tmpfs(&w->m);
    if (w->scratch < 0 || !has_frame(&w->m))
        return w->scratch < 0 ? w->scratch : enter(w, w->scratch);
    int frame = open_frame(w);
    int rc = frame < 0 ? frame : enter(w, frame);
    return rc < 0 ? rc : attach(w->scratch, w->root, "proc");
}

/* The other may have to look into it before something of it is covered. */
static bool is_in_proc(const csn_mount *m)
{
    static const char proc[] = "/proc";

    return m->kind != CSN_MOUNT_PROC && strncmp(m->to, proc, sizeof(proc) - 1) == 0;
}

static int put_in_turn(builder *b, size_t i)
{
    csn_mounts_work *w = b->w;
    int rc = 0;

    if (is_in_proc(&w->m.list[i])) {
        csn_step_tell(&w->ready);
        rc = csn_beside_await(&w->beside, &w->then_done);
    }
    return rc < 0 ? rc : put_listed(b, i);
}

/* The other may not even have begun: it waits for a processor, and then for the kernel to let
 * go of the old root. From the end, where it will come last. */
static int help(csn_mounts_work *w, size_t *ret_at)
{
    builder b = {.w = w, .root = w->root, .ours = true};
    int rc = 0;

    for (size_t i = w->m.count; rc == 0 && i-- > 0;) {
        if (is_in_proc(&w->m.list[i]) && !csn_step_told(&w->then_done))
            continue;
        *ret_at = i;
        rc = take(w, i) ? put_listed(&b, i) : 0;
    }
    return rc;
}

static int fill(csn_mounts_work *w, size_t *ret_at)
{
    builder b = {.w = w, .root = w->root, .path = w->path[0], .ours = true};
    int rc = make_masks(&b);

    for (size_t i = 0; rc == 0 && i < w->m.count; i++) {
        *ret_at = i;
        if (!is_beside(w, i))
            rc = put_in_turn(&b, i);
        else if (w->ready == 0)
            csn_step_tell(&w->ready);
    }
    if (rc < 0)
        return rc;
    csn_step_tell(&w->ready);
    rc = help(w, ret_at);
    if (rc < 0)
        return rc;
    *ret_at = w->m.count;
    csn_step_tell(&w->filled);
    return 0;
}

int csn_mounts_enter(const csn_mounts *m, size_t *ret_at, csn_mounts_work *w)
{
    *ret_at = m->count;
    if (m->count > CSN_MOUNTS_MAX)
        return -E2BIG;
    w->m = *m;
    w->off = w->ready = w->filled = w->then_done = 0;
    w->loft_count = 0;
    memset(w->taken, 0, sizeof(w->taken));
    for (size_t i = 0; i < m->count; i++)
        w->source[i] = open_source(&m->list[i]);
    int rc = enter_new(w);
    if (rc == 0)
        rc = csn_beside_begin(&w->beside, do_beside, w);
    return rc < 0 ? rc : fill(w, ret_at);
}

int csn_mounts_await_off(csn_mounts_work *w)
{
    int rc = csn_beside_await(&w->beside, &w->off);

    return rc < 0 ? rc : w->off_rc;
}

int csn_mounts_join(csn_mounts_work *w, size_t *ret_at)
{
    int rc = csn_beside_join(&w->beside);

    *ret_at = w->at;
    close(w->mask_dir);
    close(w->mask_file);
    close(w->root);
    close(w->scratch);
    close(w->old);
    while (w->loft_count > 0)
        close(w->lofts[--w->loft_count]);
    return rc == 0 && chdir("/") < 0 ? -errno : rc;
}

int csn_mount_detached(const char *path, int userns, uint32_t flags)
{
    struct attr_v0 a = {.set = attrs(flags), .propagation = MS_PRIVATE};

    csn_autofd int copy = clone_tree(AT_FDCWD, path, true);

    if (copy < 0)
        return copy;
    if (userns >= 0) {
        a.set |= ATTR_IDMAP;
        a.userns_fd = (uint64_t)(unsigned)userns;
    }
    if (syscall(SYS_mount_setattr, copy, "", AT_EMPTY_PATH | TREE_RECURSIVE, &a, sizeof(a)) < 0)
        return -errno;
    return csn_steal_fd(&copy);
}
