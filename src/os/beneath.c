/* beneath.c: the one door through which paths of agents become descriptors.
 *
 * Called by everything that touches files for an agent. An attacker controls the whole path,
 * the tree it leads through and the moment at which that tree changes. What must hold: the
 * descriptor handed out was reached from the root without ever stepping above it, at no moment,
 * and nothing is compared by text. openat2 gives that in one call. Without it (old kernel, or
 * an outer seccomp filter that says ENOSYS or EPERM) we walk: each component is opened with
 * O_PATH | O_NOFOLLOW, so a link is seen before it is followed, and its text is walked in turn.
 * `..` is only taken when the directory it arrives at is the very one we came from (device and
 * inode), so a directory that is moved away during the walk cannot carry us out. There is no
 * third way, least of all open(). */
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

#define RETRIES      32 /* of a lookup that lost a race with rename */
#define LOOP_RETRIES 3  /* of one that met too many links, perhaps the same ones twice */
#define LINKS_MAX    40 /* as the kernel's MAXSYMLINKS */

/* Own copies: the headers of a static libc know neither the call nor its struct. */
#ifndef SYS_openat2
#define SYS_openat2 437
#endif
#define RESOLVE_MAGIC   0x02 /* RESOLVE_NO_MAGICLINKS */
#define RESOLVE_LINKS   0x04 /* RESOLVE_NO_SYMLINKS */
#define RESOLVE_BELOW   0x08 /* RESOLVE_BENEATH */
#define RESOLVE_IN_TREE 0x10 /* RESOLVE_IN_ROOT */

struct open_how_v0 {
    uint64_t flags, mode, resolve;
};

enum { UNKNOWN = 1, NATIVE, WALK }; /* not 0: in a keeper that would be a page of its own */
static _Atomic int mode = UNKNOWN;
static _Atomic bool forced;

typedef struct place {
    dev_t dev;
    ino_t ino;
} place;

typedef struct walker {
    int root;
    int cur;      /* O_PATH of the directory we are in; -1: the root */
    place *trail; /* every directory between the root and cur, cur last */
    size_t depth, room;
    unsigned links; /* followed so far */
    unsigned how;
    char *todo; /* malloc'd: what is still to be walked */
    int found;  /* the descriptor asked for; -1: not there yet */
} walker;

static int openat2_once(int root, const char *path, int flags, unsigned how)
{
    struct open_how_v0 h = {
        .flags = (uint64_t)(unsigned)flags,
        .resolve = RESOLVE_MAGIC |
                   (how & CSN_BENEATH_ROOTED ? RESOLVE_IN_TREE : RESOLVE_BELOW) |
                   (how & CSN_BENEATH_NOFOLLOW ? RESOLVE_LINKS : 0),
    };
    long fd = syscall(SYS_openat2, root, path, &h, sizeof(h));

    return fd < 0 ? -errno : (int)fd;
}

/* The root is the caller's descriptor and must not be closed: it stands for cur -1. */
static int here(const walker *w)
{
    return w->cur >= 0 ? w->cur : w->root;
}

static void go_to(walker *w, int fd, size_t depth)
{
    if (w->cur >= 0)
        close(w->cur);
    w->cur = fd;
    w->depth = depth;
}

/* Enters a directory and remembers which one it is, for the way back. */
static int step_down(walker *w, int fd, const struct stat *st)
{
    if (w->depth == w->room) {
        size_t room = w->room ? w->room * 2 : 32;
        place *p = realloc(w->trail, room * sizeof(*p));
        if (!p)
            return -ENOMEM;
        w->trail = p;
        w->room = room;
    }
    w->trail[w->depth] = (place){st->st_dev, st->st_ino};
    go_to(w, fd, w->depth + 1);
    return 0;
}

/* `..`: only to where we came from. Directly below the root the root itself is at hand, so not
 * even its parent is looked at. */
static int step_up(walker *w)
{
    struct stat st;

    if (w->depth == 0)
        return w->how & CSN_BENEATH_ROOTED ? 0 : -EXDEV;
    if (w->depth == 1) {
        go_to(w, -1, 0);
        return 0;
    }
    int fd = openat(w->cur, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    const place *p = &w->trail[w->depth - 2];
    if (fstat(fd, &st) < 0 || st.st_dev != p->dev || st.st_ino != p->ino) {
        close(fd);
        return -EAGAIN;
    }
    go_to(w, fd, w->depth - 1);
    return 0;
}

/* Puts the text of the link `fd` before what is still to be walked. */
static int follow(walker *w, int fd, const char *rest)
{
    char text[PATH_MAX];

    if (w->how & CSN_BENEATH_NOFOLLOW)
        return -ELOOP;
    if (w->links++ >= LINKS_MAX)
        return -ELOOP;
    ssize_t n = readlinkat(fd, "", text, sizeof(text));
    if (n < 0)
        return -errno;
    if (n == 0 || (size_t)n == sizeof(text))
        return n == 0 ? -ENOENT : -ENAMETOOLONG;
    if (text[0] == '/') {
        if (!(w->how & CSN_BENEATH_ROOTED))
            return -EXDEV;
        go_to(w, -1, 0);
    }
    size_t len = strlen(rest);
    char *todo = malloc((size_t)n + len + 1);
    if (!todo)
        return -ENOMEM;
    memcpy(todo, text, (size_t)n);
    memcpy(todo + n, rest, len + 1); /* rest is empty or starts with its slash */
    free(w->todo);
    w->todo = todo;
    return 0;
}

static int found(walker *w, const char *name, int flags)
{
    w->found = openat(here(w), name, flags);
    return w->found < 0 ? -errno : 0;
}

/* The last component, `name`: found, or a link and there is more to walk. */
static int finish(walker *w, const char *name, int flags)
{
    struct stat st;

    if (flags & O_NOFOLLOW)
        return found(w, name, flags);
    int fd = openat(here(w), name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    int rc = fstat(fd, &st) < 0 ? -errno : 0;
    if (rc == 0 && S_ISLNK(st.st_mode))
        rc = follow(w, fd, "");
    else if (rc == 0 && (flags & O_DIRECTORY) && !S_ISDIR(st.st_mode))
        rc = -ENOTDIR;
    else if (rc == 0 && (flags & O_PATH)) {
        w->found = fd;
        return 0;
    } else if (rc == 0) {
        rc = found(w, name, flags | O_NOFOLLOW);
        rc = rc == -ELOOP ? -EAGAIN : rc; /* a link was put there just now */
    }
    close(fd);
    return rc;
}

/* A component with a slash after it: a directory to enter, or a link to follow. */
static int enter(walker *w, const char *name, const char *rest)
{
    struct stat st;

    int fd = openat(here(w), name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    int rc = fstat(fd, &st) < 0 ? -errno : 0;
    if (rc == 0 && S_ISDIR(st.st_mode)) {
        char *todo = strdup(rest);
        rc = todo ? step_down(w, fd, &st) : -ENOMEM;
        if (rc < 0) {
            free(todo);
            close(fd);
            return rc;
        }
        free(w->todo);
        w->todo = todo;
        return 0;
    }
    if (rc == 0)
        rc = S_ISLNK(st.st_mode) ? follow(w, fd, rest) : -ENOTDIR;
    close(fd);
    return rc;
}

/* Takes one component off w->todo. */
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
        return found(w, ".", flags | O_NOFOLLOW);
    if (dots) {
        memmove(w->todo, rest, strlen(rest) + 1);
        return 0;
    }
    return *rest ? enter(w, name, rest) : finish(w, name, flags);
}

/* The checks that openat2 makes on the whole path come first, with the same answers. */
static int walk_once(int root, const char *path, int flags, unsigned how)
{
    walker w = {.root = root, .cur = -1, .how = how, .found = -1};
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
    while (rc == 0 && w.found < 0)
        rc = walk_step(&w, flags);
    go_to(&w, -1, 0);
    free(w.trail);
    free(w.todo);
    return rc < 0 ? rc : w.found;
}

/* ENOSYS is plain; EPERM may also be the file's own, so "." decides, which is never refused. */
static bool must_walk(int root, int rc)
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
        return -EINVAL; /* creation happens on a held parent, see parent.c */
    flags |= flags & O_PATH ? O_CLOEXEC : O_CLOEXEC | O_NOCTTY | O_NONBLOCK;
    /* EAGAIN: a rename or mount happened during a lookup with `..`, so the kernel cannot vouch
     * for the result. Trying again is the remedy; giving up is an error, never a weaker way.
     * ELOOP: a lookup that the kernel had to begin anew, because something on the way was moved
     * or forgotten, counts its links twice, and then even allowed ones are too many. */
    int loops = LOOP_RETRIES;
    bool walk = atomic_load_explicit(&forced, memory_order_relaxed) ||
                atomic_load_explicit(&mode, memory_order_relaxed) == WALK;
    for (int i = 0; i < RETRIES && rc == -EAGAIN; i++) {
        if (!walk) {
            do
                rc = openat2_once(root, path, flags, how);
            while (rc == -ELOOP && loops-- > 0);
            if ((rc == -ENOSYS || rc == -EPERM) && must_walk(root, rc))
                walk = true;
        }
        if (walk)
            rc = walk_once(root, path, flags, how);
    }
    return rc == -EAGAIN ? -EBUSY : rc;
}

void csn_beneath_force_walk(bool on)
{
    atomic_store_explicit(&forced, on, memory_order_relaxed);
}
