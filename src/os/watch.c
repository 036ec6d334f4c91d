/* watch.c: inotify, one descriptor for a whole tree.
 *
 * Called by the watch operation of backends. inotify takes paths; ours are /proc/self/fd/N of
 * directories that csn_beneath_open gave us, so that a watch can not be led out of the tree. An
 * attacker controls the names and the rate of changes: everything kept is bounded (WATCHES_MAX
 * directories, QUEUE_MAX reports of new trees), and when a bound or the kernel's queue is hit,
 * the caller is told that events are lost. A directory that moves is forgotten under its old
 * name and watched anew under its new one, which keeps the map from watch to path true. */
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

typedef struct spot {
    int wd;
    char *path; /* "" for the start */
} spot;

typedef struct early {
    bool is_dir;
    char *path;
} early;

struct csn_notify {
    int fd, root;
    bool recursive, lost;
    spot *spots;
    size_t count, room;
    early *queue; /* found in a new directory before it was watched */
    size_t queued, queue_at, queue_room;
    size_t at, len;
    _Alignas(struct inotify_event) char buf[16384];
};

/* A plain search: thousands of watches cost less here than one system call per event. */
static spot *find_wd(csn_notify *n, int wd)
{
    for (size_t i = 0; i < n->count; i++)
        if (n->spots[i].wd == wd)
            return &n->spots[i];
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

/* The magic link leads to the very directory that is held, whatever its path is by now. */
static int add_spot(csn_notify *n, int dir, const char *path)
{
    char link[40];

    if (n->count >= WATCHES_MAX)
        return -ENOSPC;
    if (grow((void **)&n->spots, n->count, &n->room, sizeof(*n->spots)) < 0)
        return -ENOMEM;
    snprintf(link, sizeof(link), "/proc/self/fd/%d", dir);
    int wd = inotify_add_watch(n->fd, link, MASK);
    if (wd < 0)
        return -errno;
    char *copy = strdup(path);
    if (!copy)
        return -ENOMEM;
    spot *old = find_wd(n, wd); /* the same directory again: it has a new name */
    if (old) {
        free(old->path);
        old->path = copy;
        return 0;
    }
    n->spots[n->count++] = (spot){wd, copy};
    return 0;
}

static bool is_below(const char *path, const char *dir)
{
    size_t len = strlen(dir);

    return strncmp(path, dir, len) == 0 && (path[len] == '\0' || path[len] == '/');
}

/* A directory that left: its watches would report paths that are not true any more. */
static void forget(csn_notify *n, const char *dir)
{
    for (size_t i = n->count; i-- > 0;) {
        if (!is_below(n->spots[i].path, dir))
            continue;
        inotify_rm_watch(n->fd, n->spots[i].wd);
        free(n->spots[i].path);
        n->spots[i] = n->spots[--n->count];
    }
}

/* The kernel has dropped the watch itself: the directory is gone. */
static void forget_wd(csn_notify *n, int wd)
{
    spot *s = find_wd(n, wd);

    if (!s)
        return;
    free(s->path);
    *s = n->spots[--n->count];
}

/* Bounded: what does not fit is told as an overflow. */
static void enqueue(csn_notify *n, const char *path, bool is_dir)
{
    char *copy = n->queued < QUEUE_MAX ? strdup(path) : NULL;

    if (!copy || grow((void **)&n->queue, n->queued, &n->queue_room, sizeof(early)) < 0) {
        free(copy);
        n->lost = true;
        return;
    }
    n->queue[n->queued++] = (early){is_dir, copy};
}

typedef struct visit {
    csn_notify *n;
    const char *prefix; /* path of the directory that is walked */
    bool report;
} visit;

/* Runs for each entry below a directory that is newly watched. The watch comes before the look
 * inside, so what appears in between is seen by one of the two (or both: a second CREATE does
 * no harm, a missing one would). */
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
        if (fd >= 0 && add_spot(v->n, fd, full) < 0)
            v->n->lost = true;
    }
    if (v->report)
        enqueue(v->n, full, is_dir);
    return v->n->count >= WATCHES_MAX; /* no use in looking further */
}

/* Watches the directory `path` and, in a recursive watch, all below it. */
/* NOFOLLOW: an event names a directory, and by now a link may have its place. */
static int add_tree(csn_notify *n, const char *path, bool report)
{
    const char *name = *path ? path : ".";
    csn_autofd int fd =
        csn_beneath_open(n->root, name, O_RDONLY | O_DIRECTORY, CSN_BENEATH_NOFOLLOW);
    visit v = {n, path, report};

    if (fd < 0)
        return fd;
    int rc = add_spot(n, fd, path);
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
        free(n->spots[i].path);
    for (size_t i = n->queue_at; i < n->queued; i++)
        free(n->queue[i].path);
    free(n->spots);
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

/* One event out of the buffer. true: *ret is filled. */
/* Also keeps the map: new directories are watched, those that left are forgotten, and a watch
 * the kernel has dropped (IN_IGNORED) is taken out. */
static bool take(csn_notify *n, csn_notice *ret)
{
    const struct inotify_event *e = peek(n);

    n->at += sizeof(*e) + e->len;
    if (e->mask & IN_Q_OVERFLOW) {
        n->lost = true;
        return false;
    }
    if (e->mask & IN_IGNORED) {
        forget_wd(n, e->wd);
        return false;
    }
    const spot *s = find_wd(n, e->wd);
    ret->kind = kind_of(e->mask);
    if (!s || ret->kind == 0 || e->len == 0 || is_temp(e))
        return false;
    /* A batch of writes exchanges names: the old file goes to a temporary name at once. */
    const struct inotify_event *next = peek(n);
    if ((e->mask & IN_MOVED_FROM) && next && next->cookie == e->cookie && is_temp(next))
        return false;
    int len =
        snprintf(ret->path, sizeof(ret->path), "%s%s%s", s->path, *s->path ? "/" : "", e->name);
    if (len < 0 || (size_t)len >= sizeof(ret->path))
        return false;
    ret->is_dir = (e->mask & IN_ISDIR) != 0;
    if (n->recursive && ret->is_dir && (e->mask & (IN_MOVED_FROM | IN_DELETE)))
        forget(n, ret->path);
    if (n->recursive && ret->is_dir && (e->mask & (IN_CREATE | IN_MOVED_TO))) {
        int rc = add_tree(n, ret->path, (e->mask & IN_CREATE) != 0);
        if (rc == -ENOSPC || rc == -ENOMEM || rc == -EMFILE)
            n->lost = true;
    }
    return true;
}

/* What needs no waiting: overflow first, then early reports, then the buffer. */
static bool next_ready(csn_notify *n, csn_notice *ret)
{
    for (;;) {
        if (n->lost) {
            n->lost = false;
            *ret = (csn_notice){.kind = CSN_NOTIFY_OVERFLOW};
            return true;
        }
        if (n->queue_at < n->queued) {
            early *q = &n->queue[n->queue_at++];
            ret->kind = CSN_NOTIFY_CREATE;
            ret->is_dir = q->is_dir;
            snprintf(ret->path, sizeof(ret->path), "%s", q->path);
            free(q->path);
            return true;
        }
        n->queue_at = n->queued = 0;
        if (!peek(n))
            return false;
        if (take(n, ret))
            return true;
    }
}

/* Reads before it waits, so that a flood is worked off in large pieces. */
int csn_notify_next(csn_notify *n, uint64_t deadline_ns, csn_notice *ret)
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
