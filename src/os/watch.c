/* watch.c: reports changes of a whole tree through one inotify descriptor.
 *
 * inotify takes paths; these are /proc/self/fd/N of directories that csn_beneath_open opened,
 * so that a watch cannot leave the tree. An attacker controls the names and the rate of
 * changes: memory is bounded (WATCHES_MAX directories, QUEUE_MAX entries of new trees), and
 * when a bound or the kernel's queue is exceeded, an overflow is reported. A directory that
 * moves loses its watches and is watched anew under its new name, so that paths stay
 * correct. */
#include "os/watch.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
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
    bool recursive, lost;
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

/* The magic link leads to the open directory itself, whatever its path is by now. */
static int add_dir(csn_notify *n, int dir, const char *path)
{
    char link[40];

    if (n->count >= WATCHES_MAX)
        return -ENOSPC;
    if (grow((void **)&n->dirs, n->count, &n->room, sizeof(*n->dirs)) < 0)
        return -ENOMEM;
    snprintf(link, sizeof(link), "/proc/self/fd/%d", dir);
    int wd = inotify_add_watch(n->fd, link, MASK);
    if (wd < 0)
        return -errno;
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

int csn_notify_new(int dir, bool recursive, csn_notify **ret)
{
    csn_notify *n = calloc(1, sizeof(*n));

    if (!n)
        return -ENOMEM;
    n->recursive = recursive;
    n->root = openat(dir, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    n->fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    int rc = n->root < 0 || n->fd < 0 ? -errno : add_tree(n, "", false);
    if (rc < 0) {
        csn_notify_free(n);
        return rc;
    }
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

/* Reads before it waits, so that many events cost few system calls. */
int csn_notify_next(csn_notify *n, uint64_t deadline_ns, csn_notify_event *ret)
{
    while (!next_ready(n, ret)) {
        ssize_t got = read(n->fd, n->buf, sizeof(n->buf));
        n->at = 0;
        n->len = got > 0 ? (size_t)got : 0;
        if (got > 0)
            continue;
        if (got < 0 && errno != EAGAIN && errno != EINTR)
            return -errno;
        struct pollfd p = {.fd = n->fd, .events = POLLIN};
        int rc = poll(&p, 1, csn_deadline_poll_ms(deadline_ns));
        if (rc == 0)
            return 0;
        if (rc < 0 && errno != EINTR)
            return -errno;
    }
    return 1;
}
