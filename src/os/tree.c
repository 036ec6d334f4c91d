/* tree.c: lists, walks and removes directories with getdents.
 *
 * An attacker may change the tree at any moment: names, depth, and replaced entries.
 * Invariants: every directory is entered by a plain name with O_NOFOLLOW from an open one (or,
 * in a walk, by openat2 from the start without links), so the work cannot leave the tree; depth
 * costs memory for names only, neither stack nor descriptors. Removal goes up by `..` and stops
 * if that is not the directory it came from. */
#include "os/tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "os/beneath.h"

#define DIR_FLAGS   (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK)
#define BUFFER_SIZE 32768

typedef struct reader {
    int fd;
    size_t at, len;
    _Alignas(struct dirent64) char buf[BUFFER_SIZE];
} reader;

static void reader_start(reader *r, int fd)
{
    r->fd = fd;
    r->at = r->len = 0;
}

/* 1: *ret is the next entry, not `.` or `..`; 0: the end; or -errno. */
static int reader_next(reader *r, const struct dirent64 **ret)
{
    for (;;) {
        if (r->at == r->len) {
            long n = syscall(SYS_getdents64, r->fd, r->buf, sizeof(r->buf));
            if (n < 0)
                return errno == ENOENT ? 0 : -errno; /* the directory itself was removed */
            if (n == 0)
                return 0;
            r->at = 0;
            r->len = (size_t)n;
        }
        const struct dirent64 *d = (const struct dirent64 *)(const void *)(r->buf + r->at);
        r->at += d->d_reclen;
        if (strcmp(d->d_name, ".") != 0 && strcmp(d->d_name, "..") != 0) {
            *ret = d;
            return 1;
        }
    }
}

/* ---- list and walk ---- */

/* Directories still to be walked, as a stack of paths. */
typedef struct pending {
    char **paths;
    size_t count, room;
} pending;

static void pending_free(pending *p)
{
    for (size_t i = 0; i < p->count; i++)
        free(p->paths[i]);
    free(p->paths);
}

static int pending_push(pending *p, const char *path)
{
    if (p->count == p->room) {
        size_t room = p->room ? p->room * 2 : 16;
        char **grown = reallocarray(p->paths, room, sizeof(*grown));
        if (!grown)
            return -ENOMEM;
        p->paths = grown;
        p->room = room;
    }
    p->paths[p->count] = strdup(path);
    return p->paths[p->count] ? (p->count++, 0) : -ENOMEM;
}

/* Calls fn for one entry of `dir`. 1: fn asks to stop. */
static int visit(int dir, const char *name, const char *path, csn_tree_fn fn, void *ctx,
                 bool *ret_dir)
{
    char target[PATH_MAX];
    struct stat st;
    bool link;

    *ret_dir = false;
    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT) < 0)
        return 0; /* removed since */
    link = S_ISLNK(st.st_mode);
    if (link) {
        ssize_t n = readlinkat(dir, name, target, sizeof(target) - 1);
        link = n >= 0;
        target[link ? n : 0] = '\0';
    }
    *ret_dir = S_ISDIR(st.st_mode);
    return fn(ctx, path, &st, link ? target : NULL) != 0;
}

/* Visits the entries of the directory `fd`, whose path is `at` ("" at the start). 1: stopped.
 * Sub-directories are queued as paths and opened later from the start, so none stays open. */
static int scan(int fd, const char *at, reader *r, pending *todo, csn_tree_fn fn, void *ctx)
{
    const struct dirent64 *d;
    char path[PATH_MAX + NAME_MAX + 2];
    size_t len = strlen(at);
    int rc;

    memcpy(path, at, len);
    if (len > 0)
        path[len++] = '/';
    reader_start(r, fd);
    while ((rc = reader_next(r, &d)) > 0) {
        bool is_dir;
        memcpy(path + len, d->d_name, strlen(d->d_name) + 1);
        if (len + strlen(d->d_name) >= PATH_MAX)
            continue; /* longer than PATH_MAX: no call could name it */
        rc = visit(fd, d->d_name, path, fn, ctx, &is_dir);
        if (rc == 0 && todo && is_dir)
            rc = pending_push(todo, path);
        if (rc != 0)
            break;
    }
    return rc;
}

/* The caller may have read from the descriptor before. */
static int scan_top(int fd, reader *r, pending *todo, csn_tree_fn fn, void *ctx)
{
    if (lseek(fd, 0, SEEK_SET) < 0)
        return -errno;
    return scan(fd, "", r, todo, fn, ctx);
}

int csn_tree_list(int fd, csn_tree_fn fn, void *ctx)
{
    csn_autofree reader *r = malloc(sizeof(*r));
    int rc = r ? scan_top(fd, r, NULL, fn, ctx) : -ENOMEM;

    return rc < 0 ? rc : 0;
}

/* Depth first. A directory replaced by a link meanwhile is refused by NOFOLLOW and skipped. */
int csn_tree_walk(int fd, csn_tree_fn fn, void *ctx)
{
    csn_autofree reader *r = malloc(sizeof(*r));
    CSN_CLEANUP(pending_free) pending todo = {0};
    int rc = r ? scan_top(fd, r, &todo, fn, ctx) : -ENOMEM;

    while (rc == 0 && todo.count > 0) {
        csn_autofree char *path = todo.paths[--todo.count];
        csn_autofd int sub =
            csn_beneath_open(fd, path, O_RDONLY | O_DIRECTORY, CSN_BENEATH_NOFOLLOW);
        if (sub >= 0)
            rc = scan(sub, path, r, &todo, fn, ctx);
        if (rc < 0 && rc != -ENOMEM)
            rc = 0; /* an unreadable directory is skipped */
    }
    return rc < 0 ? rc : 0;
}

/* ---- remove ---- */

typedef struct level {
    dev_t dev; /* of the directory above */
    ino_t ino;
    char name[NAME_MAX + 1]; /* in it */
} level;

typedef struct remover {
    int cur;      /* the directory being emptied; at depth 0 the caller's */
    bool by_name; /* removes one entry of the directory at depth 0, which may be O_PATH */
    bool force;   /* chmod own directories that are not writable */
    level *levels;
    size_t depth, room;
    reader r;
} remover;

/* Closes the directory above and records its identity. */
static int go_down(remover *w, const char *name, int fd)
{
    struct stat st;
    size_t len = strlen(name);

    if (w->depth == w->room) {
        size_t room = w->room ? w->room * 2 : 16;
        level *grown = reallocarray(w->levels, room, sizeof(*grown));
        if (!grown)
            return -ENOMEM;
        w->levels = grown;
        w->room = room;
    }
    level *l = &w->levels[w->depth];
    if (len > NAME_MAX)
        return -ENAMETOOLONG;
    if (fstat(w->cur, &st) < 0)
        return -errno;
    l->dev = st.st_dev;
    l->ino = st.st_ino;
    memcpy(l->name, name, len + 1);
    w->depth++;
    close(w->cur);
    w->cur = fd;
    reader_start(&w->r, fd);
    return 0;
}

/* Goes to the directory above and removes the current one, which is empty. */
static int go_up(remover *w)
{
    const level *l = &w->levels[w->depth - 1];
    bool top = w->depth == 1 && w->by_name;
    struct stat st;
    int up = openat(w->cur, "..", top ? O_PATH | O_DIRECTORY | O_CLOEXEC : DIR_FLAGS);

    if (up < 0)
        return -errno;
    if (fstat(up, &st) < 0 || st.st_dev != l->dev || st.st_ino != l->ino) {
        close(up);
        return -EBUSY; /* the directory was moved away, so `..` is another one */
    }
    close(w->cur);
    w->cur = up;
    w->depth--;
    reader_start(&w->r, up); /* from the start: the entries read before are removed */
    if (unlinkat(up, l->name, AT_REMOVEDIR) == 0 || errno == ENOENT)
        return 0;
    return errno == ENOTDIR ? -EBUSY : -errno;
}

/* Adds the owner's permissions to a directory, through a descriptor that is never a link. */
static void make_writable(int dir, const char *name)
{
    csn_autofd int fd = openat(dir, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    char link[40];
    struct stat st;

    if (fd < 0 || fstat(fd, &st) < 0 || (st.st_mode & 0700) == 0700)
        return;
    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    (void)chmod(link, (st.st_mode & 07777) | 0700);
}

/* Removes one entry, or enters it when it is a directory that is not empty. */
static int remove_entry(remover *w, const char *name)
{
    for (int i = 0; i < 8; i++) {
        if (unlinkat(w->cur, name, 0) == 0 || errno == ENOENT)
            return 0;
        if (errno != EISDIR)
            return -errno;
        if (unlinkat(w->cur, name, AT_REMOVEDIR) == 0 || errno == ENOENT)
            return 0;
        if (errno == ENOTEMPTY || errno == EEXIST) {
            if (w->force)
                make_writable(w->cur, name);
            int fd = openat(w->cur, name, DIR_FLAGS);
            int rc = fd < 0 ? -errno : go_down(w, name, fd);
            if (rc < 0 && fd >= 0)
                close(fd);
            if (rc != -ENOTDIR && rc != -ELOOP && rc != -ENOENT)
                return rc;
        } else if (errno != ENOTDIR) {
            return -errno;
        }
        /* another process has replaced the entry: try again */
    }
    return -EBUSY;
}

/* A directory is read from its start again after each sub-directory; the entries read before
 * are removed by then. */
static int remove_all(remover *w)
{
    const struct dirent64 *d;

    while (w->depth > 0 || !w->by_name) {
        int rc = reader_next(&w->r, &d);
        if (rc == 0 && w->depth == 0)
            return 0;
        if (rc >= 0)
            rc = rc > 0 ? remove_entry(w, d->d_name) : go_up(w);
        if (rc < 0)
            return rc;
    }
    return 0;
}

/* name NULL: everything in dir. */
static int remove_from(int dir, const char *name, bool force)
{
    csn_autofree remover *w = malloc(sizeof(*w));
    int rc = 0;

    if (!w)
        return -ENOMEM;
    w->levels = NULL;
    w->depth = w->room = 0;
    w->by_name = name != NULL;
    w->force = force;
    w->cur = openat(dir, ".", name ? O_PATH | O_DIRECTORY | O_CLOEXEC : DIR_FLAGS);
    if (w->cur < 0)
        return -errno;
    reader_start(&w->r, w->cur);
    if (name)
        rc = remove_entry(w, name);
    if (rc == 0)
        rc = remove_all(w);
    close(w->cur);
    free(w->levels);
    return rc;
}

int csn_tree_remove(int dir, const char *name)
{
    return remove_from(dir, name, false);
}

int csn_tree_remove_force(int dir, const char *name)
{
    return remove_from(dir, name, true);
}

int csn_tree_empty(int fd)
{
    return remove_from(fd, NULL, true);
}
