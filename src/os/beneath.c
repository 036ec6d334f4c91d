/* beneath.c: opens paths that agents chose, without ever leaving a root directory.
 *
 * An attacker controls the whole path, the tree it leads through and the moment at which that
 * tree changes. Invariant: the returned descriptor was reached from the root without stepping
 * above it at any moment; paths are never compared as text. openat2 gives that in one call.
 * Without it (old kernel, or an outer seccomp filter that answers ENOSYS or EPERM) the path is
 * walked: each component is opened with O_PATH | O_NOFOLLOW, so a link is seen before it is
 * followed, and its target is walked in turn. `..` is accepted only if it leads to the
 * directory that the walk came from (device and inode), so a directory that is moved away
 * meanwhile cannot lead out. There is no fallback to open(). */
#include "os/beneath.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"

#define RETRIES      32 /* after -EAGAIN: a race with rename */
#define LOOP_RETRIES 3  /* after -ELOOP: the kernel may have counted links twice */
#define LINKS_MAX    40 /* as the kernel's MAXSYMLINKS */

/* Own copies: musl's headers have neither the call nor its struct. */
#ifndef SYS_openat2
#define SYS_openat2 437
#endif
#define RESOLVE_NO_MAGICLINKS 0x02
#define RESOLVE_NO_SYMLINKS   0x04
#define RESOLVE_BENEATH       0x08
#define RESOLVE_IN_ROOT       0x10

struct open_how_v0 {
    uint64_t flags, mode, resolve;
};

enum { UNKNOWN = 1, NATIVE, WALK }; /* not 0: .bss would cost the keeper a page */
static _Atomic int mode = UNKNOWN;
static _Atomic bool force_walk;

typedef struct dir_id {
    dev_t dev;
    ino_t ino;
} dir_id;

typedef struct walker {
    int root;
    int cur;       /* O_PATH of the current directory; -1: the root */
    dir_id *trail; /* every directory between the root and cur, cur last */
    size_t depth, room;
    unsigned links; /* followed so far */
    unsigned how;
    char *todo; /* malloc'd: the rest of the path */
    int result; /* the descriptor; -1: not reached yet */
} walker;

static int openat2_once(int root, const char *path, int flags, unsigned how)
{
    struct open_how_v0 h = {
        .flags = (uint64_t)(unsigned)flags,
        .resolve = RESOLVE_NO_MAGICLINKS |
                   (how & CSN_BENEATH_ROOTED ? RESOLVE_IN_ROOT : RESOLVE_BENEATH) |
                   (how & CSN_BENEATH_NOFOLLOW ? RESOLVE_NO_SYMLINKS : 0),
    };
    long fd = syscall(SYS_openat2, root, path, &h, sizeof(h));

    return fd < 0 ? -errno : (int)fd;
}

static int cur_fd(const walker *w)
{
    return w->cur >= 0 ? w->cur : w->root;
}

static void set_cur(walker *w, int fd, size_t depth)
{
    if (w->cur >= 0)
        close(w->cur);
    w->cur = fd;
    w->depth = depth;
}

/* Records the identity of the directory for step_up. */
static int step_down(walker *w, int fd, const struct stat *st)
{
    if (w->depth == w->room) {
        size_t room = w->room ? w->room * 2 : 32;
        dir_id *p = realloc(w->trail, room * sizeof(*p));
        if (!p)
            return -ENOMEM;
        w->trail = p;
        w->room = room;
    }
    w->trail[w->depth] = (dir_id){st->st_dev, st->st_ino};
    set_cur(w, fd, w->depth + 1);
    return 0;
}

/* `..` must lead to the directory that the walk came from. Directly below the root the root
 * descriptor is used, so nothing above it is ever opened. */
static int step_up(walker *w)
{
    struct stat st;

    if (w->depth == 0)
        return w->how & CSN_BENEATH_ROOTED ? 0 : -EXDEV;
    if (w->depth == 1) {
        set_cur(w, -1, 0);
        return 0;
    }
    csn_autofd int fd = openat(w->cur, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    const dir_id *p = &w->trail[w->depth - 2];
    if (fstat(fd, &st) < 0 || st.st_dev != p->dev || st.st_ino != p->ino)
        return -EAGAIN;
    set_cur(w, csn_steal_fd(&fd), w->depth - 1);
    return 0;
}

/* Puts the target of the symlink `fd` before the rest of the path. */
static int follow_link(walker *w, int fd, const char *rest)
{
    char text[PATH_MAX];

    if (w->how & CSN_BENEATH_NOFOLLOW || w->links++ >= LINKS_MAX)
        return -ELOOP;
    ssize_t n = readlinkat(fd, "", text, sizeof(text));
    if (n < 0)
        return -errno;
    if (n == 0 || (size_t)n == sizeof(text))
        return n == 0 ? -ENOENT : -ENAMETOOLONG;
    if (text[0] == '/') {
        if (!(w->how & CSN_BENEATH_ROOTED))
            return -EXDEV;
        set_cur(w, -1, 0);
    }
    size_t len = strlen(rest);
    char *todo = malloc((size_t)n + len + 1);
    if (!todo)
        return -ENOMEM;
    memcpy(todo, text, (size_t)n);
    memcpy(todo + n, rest, len + 1); /* rest is empty or starts with a slash */
    free(w->todo);
    w->todo = todo;
    return 0;
}

static int open_result(walker *w, const char *name, int flags)
{
    w->result = openat(cur_fd(w), name, flags);
    return w->result < 0 ? -errno : 0;
}

static int open_path(const walker *w, const char *name, struct stat *ret)
{
    csn_autofd int fd = openat(cur_fd(w), name, O_PATH | O_NOFOLLOW | O_CLOEXEC);

    return fd < 0 || fstat(fd, ret) < 0 ? -errno : csn_steal_fd(&fd);
}

/* Opens the last component, or follows it if it is a link. */
static int open_last(walker *w, const char *name, int flags)
{
    struct stat st;

    if (flags & O_NOFOLLOW)
        return open_result(w, name, flags);
    csn_autofd int fd = open_path(w, name, &st);
    if (fd < 0)
        return fd;
    if (S_ISLNK(st.st_mode))
        return follow_link(w, fd, "");
    if ((flags & O_DIRECTORY) && !S_ISDIR(st.st_mode))
        return -ENOTDIR;
    if (flags & O_PATH) {
        w->result = csn_steal_fd(&fd);
        return 0;
    }
    int rc = open_result(w, name, flags | O_NOFOLLOW);
    return rc == -ELOOP ? -EAGAIN : rc; /* replaced by a link since */
}

/* A component before the last: enters a directory or follows a link. */
static int open_component(walker *w, const char *name, const char *rest)
{
    struct stat st;
    csn_autofd int fd = open_path(w, name, &st);

    if (fd < 0)
        return fd;
    if (S_ISLNK(st.st_mode))
        return follow_link(w, fd, rest);
    if (!S_ISDIR(st.st_mode))
        return -ENOTDIR;
    int rc = step_down(w, fd, &st);
    if (rc < 0)
        return rc;
    (void)csn_steal_fd(&fd);
    memmove(w->todo, rest, strlen(rest) + 1);
    return 0;
}

/* Walks one component of w->todo. */
static int walk_step(walker *w, int flags)
{
    char name[NAME_MAX + 2];
    const char *p = w->todo + strspn(w->todo, "/");
    size_t len = strcspn(p, "/");
    const char *rest = p + len;

    if (len > NAME_MAX)
        return -ENAMETOOLONG;
    memcpy(name, p, len);
    name[len] = '\0';
    bool dots = len == 0 || strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
    if (strcmp(name, "..") == 0) {
        int rc = step_up(w);
        if (rc < 0)
            return rc;
    }
    if (dots && *rest == '\0')
        return open_result(w, ".", flags | O_NOFOLLOW);
    if (dots) {
        memmove(w->todo, rest, strlen(rest) + 1);
        return 0;
    }
    return *rest ? open_component(w, name, rest) : open_last(w, name, flags);
}

/* openat2's checks of the whole path come first, with the same errors. */
static int walk_once(int root, const char *path, int flags, unsigned how)
{
    walker w = {.root = root, .cur = -1, .how = how, .result = -1};
    int rc = 0;

    if (*path == '\0')
        return -ENOENT;
    if (strlen(path) >= PATH_MAX)
        return -ENAMETOOLONG;
    if (*path == '/' && !(how & CSN_BENEATH_ROOTED))
        return -EXDEV;
    w.todo = strdup(path);
    if (!w.todo)
        return -ENOMEM;
    while (rc == 0 && w.result < 0)
        rc = walk_step(&w, flags);
    set_cur(&w, -1, 0);
    free(w.trail);
    free(w.todo);
    return rc < 0 ? rc : w.result;
}

/* An openat2 of ".", which is always allowed, distinguishes a filtered call from an EPERM of
 * the file. */
static bool openat2_is_missing(int root, int rc)
{
    int m = atomic_load_explicit(&mode, memory_order_relaxed);

    if (m == UNKNOWN && (rc == -ENOSYS || rc == -EPERM)) {
        int fd = openat2_once(root, ".", O_PATH | O_CLOEXEC, 0);
        m = fd == -ENOSYS || fd == -EPERM ? WALK : NATIVE;
        if (fd >= 0)
            close(fd);
        atomic_store_explicit(&mode, m, memory_order_relaxed);
    }
    return m == WALK;
}

int csn_beneath_open(int root, const char *path, int flags, unsigned how)
{
    int rc = -EAGAIN;

    if (flags & (O_CREAT | O_EXCL | O_TRUNC))
        return -EINVAL; /* files are created in an open parent: parent.c */
    flags |= flags & O_PATH ? O_CLOEXEC : O_CLOEXEC | O_NOCTTY | O_NONBLOCK;
    /* EAGAIN: a rename or mount raced with a lookup of `..`; the lookup is repeated and never
     * weakened. ELOOP: the kernel counts links twice when it restarts a lookup, because a
     * directory on the way was moved or evicted. */
    int loops = LOOP_RETRIES;
    bool walk = atomic_load_explicit(&force_walk, memory_order_relaxed) ||
                atomic_load_explicit(&mode, memory_order_relaxed) == WALK;
    for (int i = 0; i < RETRIES && rc == -EAGAIN; i++) {
        if (!walk) {
            do
                rc = openat2_once(root, path, flags, how);
            while (rc == -ELOOP && loops-- > 0);
            if ((rc == -ENOSYS || rc == -EPERM) && openat2_is_missing(root, rc))
                walk = true;
        }
        if (walk)
            rc = walk_once(root, path, flags, how);
    }
    return rc == -EAGAIN ? -EBUSY : rc;
}

void csn_beneath_force_walk(bool on)
{
    atomic_store_explicit(&force_walk, on, memory_order_relaxed);
}
