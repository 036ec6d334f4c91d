/* watch.c: reports changes of a whole tree through one inotify descriptor.
 *
 * inotify takes paths; these are /proc/self/fd/N of directories that csn_beneath_open opened,
 * so that a watch cannot leave the tree. An attacker controls the names and the rate of
 * changes: memory is bounded (WATCHES_MAX directories, QUEUE_MAX entries of new trees), and
 * when a bound or the kernel's queue is exceeded, an overflow is reported. A directory that
 * moves loses its watches and is watched anew under its new name, so that paths stay
 * correct.
 *
 * The kernel reports the removal of a directory when its last descriptor is closed, and this
 * file holds one of the start directory. Its removal is therefore noticed through its parent,
 * whose own changes are not reported. */
#include "os/watch.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "os/atomic.h"
#include "os/beneath.h"
#include "os/tree.h"

#define WATCHES_MAX 16384
#define QUEUE_MAX   4096
#define MASK                                                                                   \
    (IN_CREATE | IN_MODIFY | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_ONLYDIR |            \
     IN_EXCL_UNLINK)
/* A rename onto an empty directory removes that one and is no IN_DELETE. */
#define PARENT_MASK (IN_DELETE | IN_MOVED_TO | IN_ONLYDIR | IN_MASK_ADD)

typedef struct watched_dir {
    int wd;
    char *path; /* "" for the start */
} watched_dir;

typedef struct found_entry {
    bool is_dir;
    char *path;
} found_entry;

struct csn_notify {
    int fd, root;
    int parent_wd; /* watch of the parent of `root`, or -1 */
    bool recursive, lost;
    bool removed; /* `root` was removed */
    bool ending;  /* the wait's end_fd was readable */
    int left;     /* when ending: bytes of the kernel's queue still to be read */
    watched_dir *dirs;
    size_t count, room;
    found_entry *queue; /* entries of a new directory, created before it was watched */
    size_t queued, queue_at, queue_room;
    size_t at, len;
    _Alignas(struct inotify_event) char buf[16384];
};

/* A linear search: even with thousands of watches cheaper than one system call. */
static watched_dir *find_wd(csn_notify *n, int wd)
{
    for (size_t i = 0; i < n->count; i++)
        if (n->dirs[i].wd == wd)
            return &n->dirs[i];
    return NULL;
}

static int grow(void **items, size_t count, size_t *room, size_t size)
{
    if (count < *room)
        return 0;
    size_t more = *room ? *room * 2 : 16;
    void *p = reallocarray(*items, more, size);
    if (!p)
        return -ENOMEM;
    *items = p;
    *room = more;
    return 0;
}

/* The magic link leads to the open directory itself, whatever its path is by now. Returns a
 * watch descriptor or -errno. */
static int add_watch(const csn_notify *n, int dir, uint32_t mask)
{
    char link[40];

    snprintf(link, sizeof(link), "/proc/self/fd/%d", dir);
    int wd = inotify_add_watch(n->fd, link, mask);
    return wd < 0 ? -errno : wd;
}

static int add_dir(csn_notify *n, int dir, const char *path)
{
    if (n->count >= WATCHES_MAX)
        return -ENOSPC;
    if (grow((void **)&n->dirs, n->count, &n->room, sizeof(*n->dirs)) < 0)
        return -ENOMEM;
    int wd = add_watch(n, dir, *path ? MASK : MASK | IN_MOVE_SELF);
    if (wd < 0)
        return wd;
    char *copy = strdup(path);
    if (!copy)
        return -ENOMEM;
    watched_dir *old = find_wd(n, wd); /* the same directory under a new name */
    if (old) {
        free(old->path);
        old->path = copy;
        return 0;
    }
    n->dirs[n->count++] = (watched_dir){wd, copy};
    return 0;
}

static bool is_below(const char *path, const char *dir)
{
    size_t len = strlen(dir);

    return strncmp(path, dir, len) == 0 && (path[len] == '\0' || path[len] == '/');
}

/* A directory was moved or deleted: its watches would report wrong paths. */
static void remove_tree(csn_notify *n, const char *dir)
{
    for (size_t i = n->count; i-- > 0;) {
        if (!is_below(n->dirs[i].path, dir))
            continue;
        inotify_rm_watch(n->fd, n->dirs[i].wd);
        free(n->dirs[i].path);
        n->dirs[i] = n->dirs[--n->count];
    }
}

/* The kernel has removed the watch because the directory is gone. */
static void remove_wd(csn_notify *n, int wd)
{
    watched_dir *s = find_wd(n, wd);

    if (!s)
        return;
    free(s->path);
    *s = n->dirs[--n->count];
}

/* Entries beyond the bound are reported as an overflow. */
static void enqueue(csn_notify *n, const char *path, bool is_dir)
{
    char *copy = n->queued < QUEUE_MAX ? strdup(path) : NULL;

    if (!copy || grow((void **)&n->queue, n->queued, &n->queue_room, sizeof(found_entry)) < 0) {
        free(copy);
        n->lost = true;
        return;
    }
    n->queue[n->queued++] = (found_entry){is_dir, copy};
}

typedef struct visit {
    csn_notify *n;
    const char *prefix; /* path of the directory that is walked */
    bool report;
} visit;

/* Visits each entry below a new directory. The watch is added before the directory is read, so
 * that an entry created in between is seen by one of the two, or by both: a second CREATE is
 * harmless. */
static int visit_entry(void *ctx, const char *path, const struct stat *st, const char *target)
{
    visit *v = ctx;
    char full[PATH_MAX];
    bool is_dir = S_ISDIR(st->st_mode);

    (void)target;
    int len = snprintf(full, sizeof(full), "%s%s%s", v->prefix, *v->prefix ? "/" : "", path);
    if (len < 0 || (size_t)len >= sizeof(full))
        return 0;
    if (is_dir) {
        csn_autofd int fd =
            csn_beneath_open(v->n->root, full, O_PATH | O_DIRECTORY, CSN_BENEATH_NOFOLLOW);
        if (fd >= 0 && add_dir(v->n, fd, full) < 0)
            v->n->lost = true;
    }
    if (v->report)
        enqueue(v->n, full, is_dir);
    return v->n->count >= WATCHES_MAX; /* no more can be watched */
}

/* Watches the directory `path` and, in a recursive watch, all below it. NOFOLLOW: a link may
 * have replaced the directory since the event. */
static int add_tree(csn_notify *n, const char *path, bool report)
{
    const char *name = *path ? path : ".";
    csn_autofd int fd =
        csn_beneath_open(n->root, name, O_RDONLY | O_DIRECTORY, CSN_BENEATH_NOFOLLOW);
    visit v = {n, path, report};

    if (fd < 0)
        return fd;
    int rc = add_dir(n, fd, path);
    if (rc < 0 || !n->recursive)
        return rc;
    return csn_tree_walk(fd, visit_entry, &v);
}

/* True if the directory has no name any more. The kernel appends " (deleted)" to its path then,
 * but a directory may also have such a name. st_nlink says nothing on some file systems. */
static bool is_removed(int dir)
{
    static const char mark[] = " (deleted)";
    char link[40], path[PATH_MAX];
    struct stat own, named;

    snprintf(link, sizeof(link), "/proc/self/fd/%d", dir);
    ssize_t len = readlink(link, path, sizeof(path) - 1);
    if (len < (ssize_t)sizeof(mark))
        return false;
    path[len] = '\0';
    const char *name = strrchr(path, '/');
    if (!name || strcmp(path + len - (sizeof(mark) - 1), mark) != 0)
        return false;
    csn_autofd int parent = openat(dir, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (parent < 0 || fstat(dir, &own) < 0)
        return false;
    return fstatat(parent, name + 1, &named, AT_SYMLINK_NOFOLLOW) < 0 ||
           named.st_ino != own.st_ino || named.st_dev != own.st_dev;
}

/* Watches the directory that `root` is in now. Without permission to read that directory, a
 * removal of `root` is not noticed. */
static void watch_parent(csn_notify *n)
{
    csn_autofd int parent = openat(n->root, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
    int wd = parent < 0 ? -1 : add_watch(n, parent, PARENT_MASK);

    if (n->parent_wd >= 0 && n->parent_wd != wd && !find_wd(n, n->parent_wd))
        inotify_rm_watch(n->fd, n->parent_wd);
    n->parent_wd = wd;
    n->removed = is_removed(n->root); /* before its parent was watched */
}

/* inotify_init1 fails with EMFILE for two limits: that of descriptors, and that of inotify
 * instances of the user. */
static bool has_free_fd(int fd)
{
    csn_autofd int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);

    return copy >= 0;
}

int csn_notify_new(int dir, bool recursive, csn_notify **ret)
{
    csn_notify *n = calloc(1, sizeof(*n));

    if (!n)
        return -ENOMEM;
    n->recursive = recursive;
    n->parent_wd = -1;
    n->root = openat(dir, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    n->fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    int rc = n->root < 0 || n->fd < 0 ? -errno : add_tree(n, "", false);
    if (rc == -EMFILE && n->root >= 0 && n->fd < 0 && has_free_fd(n->root))
        rc = -EUSERS;
    if (rc < 0) {
        csn_notify_free(n);
        return rc;
    }
    watch_parent(n);
    *ret = n;
    return 0;
}

void csn_notify_free(csn_notify *n)
{
    if (!n)
        return;
    if (n->fd >= 0)
        close(n->fd);
    if (n->root >= 0)
        close(n->root);
    for (size_t i = 0; i < n->count; i++)
        free(n->dirs[i].path);
    for (size_t i = n->queue_at; i < n->queued; i++)
        free(n->queue[i].path);
    free(n->dirs);
    free(n->queue);
    free(n);
}

/* The event at n->at, or NULL. */
static const struct inotify_event *peek(const csn_notify *n)
{
    if (n->at + sizeof(struct inotify_event) > n->len)
        return NULL;
    return (const struct inotify_event *)(const void *)(n->buf + n->at);
}

static bool is_temp(const struct inotify_event *e)
{
    return e->len > 0 && strncmp(e->name, CSN_TEMP_PREFIX, sizeof(CSN_TEMP_PREFIX) - 1) == 0;
}

static uint32_t kind_of(uint32_t mask)
{
    if (mask & IN_CREATE)
        return CSN_NOTIFY_CREATE;
    if (mask & IN_MODIFY)
        return CSN_NOTIFY_MODIFY;
    if (mask & (IN_DELETE | IN_MOVED_FROM))
        return CSN_NOTIFY_DELETE;
    return mask & IN_MOVED_TO ? CSN_NOTIFY_RENAME : 0;
}

/* Handles one event of the buffer: updates the watches, and returns true if *ret is filled. */
static bool handle_event(csn_notify *n, csn_notify_event *ret)
{
    const struct inotify_event *e = peek(n);

    n->at += sizeof(*e) + e->len;
    if (e->mask & IN_MOVE_SELF)
        watch_parent(n);
    if (e->wd == n->parent_wd || (e->mask & IN_Q_OVERFLOW))
        n->removed = is_removed(n->root);
    if (e->mask & IN_Q_OVERFLOW) {
        n->lost = true;
        return false;
    }
    if (e->mask & IN_IGNORED) {
        remove_wd(n, e->wd);
        return false;
    }
    const watched_dir *s = find_wd(n, e->wd);
    ret->kind = kind_of(e->mask);
    if (!s || ret->kind == 0 || e->len == 0 || is_temp(e))
        return false;
    /* A batch of writes exchanges names (os/atomic.h): the move of the old file to its
     * temporary name is not reported. */
    const struct inotify_event *next = peek(n);
    if ((e->mask & IN_MOVED_FROM) && next && next->cookie == e->cookie && is_temp(next))
        return false;
    int len =
        snprintf(ret->path, sizeof(ret->path), "%s%s%s", s->path, *s->path ? "/" : "", e->name);
    if (len < 0 || (size_t)len >= sizeof(ret->path))
        return false;
    ret->is_dir = (e->mask & IN_ISDIR) != 0;
    if (n->recursive && ret->is_dir && (e->mask & (IN_MOVED_FROM | IN_DELETE)))
        remove_tree(n, ret->path);
    if (n->recursive && ret->is_dir && (e->mask & (IN_CREATE | IN_MOVED_TO))) {
        int rc = add_tree(n, ret->path, (e->mask & IN_CREATE) != 0);
        if (rc == -ENOSPC || rc == -ENOMEM || rc == -EMFILE)
            n->lost = true;
    }
    return true;
}

/* Returns an event without waiting: an overflow first, then the queue, then the buffer. */
static bool next_ready(csn_notify *n, csn_notify_event *ret)
{
    for (;;) {
        if (n->lost) {
            n->lost = false;
            *ret = (csn_notify_event){.kind = CSN_NOTIFY_OVERFLOW};
            return true;
        }
        if (n->queue_at < n->queued) {
            found_entry *q = &n->queue[n->queue_at++];
            ret->kind = CSN_NOTIFY_CREATE;
            ret->is_dir = q->is_dir;
            snprintf(ret->path, sizeof(ret->path), "%s", q->path);
            free(q->path);
            return true;
        }
        n->queue_at = n->queued = 0;
        if (!peek(n))
            return false;
        if (handle_event(n, ret))
            return true;
    }
}

/* Returns 1 if the kernel's queue should be read, else as csn_notify_next. */
static int wait_for_events(csn_notify *n, const csn_notify_wait *wait)
{
    struct pollfd p[] = {{.fd = n->fd, .events = POLLIN},
                         {.fd = wait->end_fd, .events = POLLIN},
                         {.fd = wait->stop_fd, .events = POLLIN}};
    int rc = poll(p, 3, csn_deadline_poll_ms(wait->deadline_ns));

    if (rc < 0)
        return errno == EINTR ? 1 : -errno;
    if (rc == 0)
        return 0;
    if (p[2].revents)
        return -ECANCELED;
    if (p[1].revents && !n->ending) {
        n->ending = true;
        if (ioctl(n->fd, FIONREAD, &n->left) < 0)
            n->left = 0;
    }
    return 1;
}

static int read_events(csn_notify *n)
{
    ssize_t got = read(n->fd, n->buf, sizeof(n->buf));

    n->at = 0;
    n->len = got > 0 ? (size_t)got : 0;
    n->left = got > 0 ? n->left - (int)got : 0;
    return got < 0 && errno != EAGAIN && errno != EINTR ? -errno : 0;
}

/* After end_fd became readable, it reads only what was in the queue at that moment: other
 * processes may change the directory for ever. */
int csn_notify_next(csn_notify *n, const csn_notify_wait *wait, csn_notify_event *ret)
{
    while (!next_ready(n, ret)) {
        if (n->removed)
            return -ENOENT;
        if (n->ending && n->left <= 0)
            return -ESHUTDOWN;
        int rc = wait_for_events(n, wait);
        if (rc <= 0)
            return rc;
        rc = read_events(n);
        if (rc < 0)
            return rc;
    }
    return 1;
}
