/* find_names.c: walks a tree and reports entries by name, with a cache of directories.
 *
 * The tree is hostile and may change during the walk. Directories are opened by their path
 * below the root without following links (os/beneath.h), so the walk stays inside. A directory
 * that changed during the walk, or in the same tick of the clock in which it was read, is not
 * taken from the cache the next time: the times of files have the resolution of that tick.
 *
 * A record: u32 length of the path, u32 length of the names, dev, ino, sec, nsec (u64 each),
 * the path, the names. A name: one byte (bit 0: a directory to enter, bit 1: wanted), the text,
 * NUL. */
#include "search/find_names.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "os/beneath.h"

#define BYTES_MAX  (64u << 20) /* of a cache, and of the paths not yet visited */
#define BUFFER     32768u
#define IS_DIR     1u
#define IS_WANTED  2u
#define FIRST_ROOM 64u

typedef struct record {
    uint32_t path_len, names_len;
    uint64_t dev, ino, sec, nsec;
} record;

typedef struct walk {
    csn_find *f;
    csn_find_cache next; /* the cache of this walk */
    csn_buf todo;        /* paths, each with its NUL and then its length (u32) */
    struct timespec start;
    char path[PATH_MAX];
    _Alignas(struct dirent64) char dents[BUFFER];
} walk;

/* ---- the cache ---- */

void csn_find_cache_init(csn_find_cache *c)
{
    *c = (csn_find_cache){0};
    csn_buf_init(&c->bytes, BYTES_MAX);
}

void csn_find_cache_release(csn_find_cache *c)
{
    csn_buf_release(&c->bytes);
    free(c->index);
    *c = (csn_find_cache){0};
}

static uint32_t hash(const char *path, size_t len)
{
    uint32_t h = 2166136261u;

    for (size_t i = 0; i < len; i++)
        h = (h ^ (unsigned char)path[i]) * 16777619u;
    return h;
}

static void put_index(csn_find_cache *c, size_t at)
{
    record r;

    memcpy(&r, c->bytes.data + at, sizeof(r));
    size_t i = hash(c->bytes.data + at + sizeof(r), r.path_len) & (c->room - 1);
    while (c->index[i] != 0)
        i = (i + 1) & (c->room - 1);
    c->index[i] = (uint32_t)at + 1;
    c->count++;
}

static size_t record_size(const csn_find_cache *c, size_t at)
{
    record r;

    memcpy(&r, c->bytes.data + at, sizeof(r));
    return sizeof(r) + r.path_len + r.names_len;
}

static int grow_index(csn_find_cache *c)
{
    size_t room = c->room ? c->room * 2 : FIRST_ROOM;
    uint32_t *grown = calloc(room, sizeof(*grown));

    if (!grown)
        return -ENOMEM;
    free(c->index);
    c->index = grown;
    c->room = room;
    c->count = 0;
    return 0;
}

/* Indexes the record at `at`, which is the last one. */
static int add_index(csn_find_cache *c, size_t at)
{
    if (c->count * 2 >= c->room) {
        if (grow_index(c) < 0)
            return -ENOMEM;
        for (size_t old = 0; old < at; old += record_size(c, old))
            put_index(c, old);
    }
    put_index(c, at);
    return 0;
}

/* The record of a path, and its names; false: none. */
static bool look_up(const csn_find_cache *c, const char *path, size_t len, record *ret,
                    const char **ret_names)
{
    for (size_t i = c->room ? hash(path, len) & (c->room - 1) : 0; c->room && c->index[i];
         i = (i + 1) & (c->room - 1)) {
        const char *at = c->bytes.data + c->index[i] - 1;
        memcpy(ret, at, sizeof(*ret));
        if (ret->path_len != len || memcmp(at + sizeof(*ret), path, len) != 0)
            continue;
        *ret_names = at + sizeof(*ret) + len;
        return true;
    }
    return false;
}

/* Every name needs its byte, a text and a NUL. */
static bool names_are_valid(const char *names, size_t len)
{
    if (len > 0 && names[len - 1] != '\0')
        return false;
    for (size_t at = 0; at < len; at += strlen(names + at) + 1)
        if (names[at] == '\0' || names[at + 1] == '\0' || strchr(names + at + 1, '/'))
            return false;
    return true;
}

bool csn_find_cache_load(csn_find_cache *c, const void *data, size_t len)
{
    csn_find_cache got;
    bool ok = true;
    record r;

    csn_find_cache_init(&got);
    ok = csn_buf_append(&got.bytes, data, len) == 0;
    for (size_t at = 0; ok && at < len; at += sizeof(r) + r.path_len + r.names_len) {
        size_t left = len - at;
        ok = left >= sizeof(r);
        if (ok)
            memcpy(&r, got.bytes.data + at, sizeof(r));
        ok = ok && r.path_len < PATH_MAX && r.names_len <= left &&
             r.path_len + (size_t)r.names_len <= left - sizeof(r) &&
             names_are_valid(got.bytes.data + at + sizeof(r) + r.path_len, r.names_len) &&
             add_index(&got, at) == 0;
    }
    if (!ok) {
        csn_find_cache_release(&got);
        return false;
    }
    csn_find_cache_release(c);
    *c = got;
    return true;
}

/* ---- one directory ---- */

static int queue(walk *w, const char *path, size_t len)
{
    uint32_t n = (uint32_t)len;
    int e = csn_buf_append(&w->todo, path, len);

    if (e == 0)
        e = csn_buf_append(&w->todo, &n, sizeof(n));
    return e == ENOSPC ? -E2BIG : -e;
}

/* True if it is not a directory, or vanished. */
static bool is_no_dir(int error)
{
    return error == -ENOENT || error == -ENOTDIR || error == -ELOOP || error == -ESTALE;
}

/* Appends a name to the directory in w->path; false: the path is too long. */
static bool join(walk *w, size_t dir_len, const char *name)
{
    size_t at = dir_len + (dir_len > 0), len = strlen(name);

    if (at + len >= sizeof(w->path))
        return false;
    if (dir_len > 0)
        w->path[dir_len] = '/';
    memcpy(w->path + at, name, len + 1);
    return true;
}

/* Reports and queues the names of a record. */
static int use_names(walk *w, size_t dir_len, const char *names, size_t len)
{
    int rc = 0;

    for (size_t at = 0; rc >= 0 && at < len; at += strlen(names + at) + 1) {
        unsigned kind = (unsigned char)names[at];
        w->path[dir_len] = '\0';
        if (!join(w, dir_len, names + at + 1))
            return w->f->unreadable(w->f->ctx, w->path, -ENAMETOOLONG);
        rc = kind & IS_WANTED ? w->f->found(w->f->ctx, w->path) : 0;
        if (rc == 0 && (kind & IS_DIR))
            rc = queue(w, w->path, strlen(w->path));
    }
    w->path[dir_len] = '\0';
    return rc < 0 ? rc : 0;
}

static bool is_dir(int dir, const struct dirent64 *d)
{
    struct stat st;

    if (d->d_type != DT_UNKNOWN)
        return d->d_type == DT_DIR;
    return fstatat(dir, d->d_name, &st, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT) == 0 &&
           S_ISDIR(st.st_mode);
}

/* Appends the names of the directory that matter to *names. */
static int read_names(walk *w, int fd, size_t dir_len, csn_buf *names)
{
    for (;;) {
        long n = syscall(SYS_getdents64, fd, w->dents, sizeof(w->dents));
        if (n <= 0)
            return n == 0 || errno == ENOENT ? 0 : -errno;
        for (long at = 0; at < n;) {
            const struct dirent64 *d = (const void *)(w->dents + at);
            const char *name = d->d_name;
            at += d->d_reclen;
            if (name[0] == '.' && (!name[1] || (name[1] == '.' && !name[2])))
                continue;
            if (!join(w, dir_len, name)) {
                w->path[dir_len] = '\0';
                return w->f->unreadable(w->f->ctx, w->path, -ENAMETOOLONG);
            }
            unsigned kind = w->f->wanted(w->f->ctx, w->path) ? IS_WANTED : 0;
            if (is_dir(fd, d) && (kind || w->f->enters(w->f->ctx, w->path)))
                kind |= IS_DIR;
            int e = kind ? csn_buf_putc(names, (char)kind) : 0;
            if (kind && e == 0)
                e = csn_buf_append(names, name, strlen(name) + 1);
            if (e != 0)
                return e == ENOSPC ? -E2BIG : -e;
        }
    }
}

static int keep(walk *w, const char *path, const record *r, const char *names)
{
    size_t at = w->next.bytes.len;
    int e = csn_buf_append(&w->next.bytes, r, sizeof(*r));

    if (e == 0)
        e = csn_buf_append(&w->next.bytes, path, r->path_len);
    if (e == 0)
        e = csn_buf_append(&w->next.bytes, names, r->names_len);
    if (e == 0)
        return add_index(&w->next, at);
    w->next.bytes.len = at;
    return e == ENOSPC ? 0 : -e; /* beyond the ceiling a directory is read each time */
}

static int identify(int dir, const char *path, record *ret)
{
    struct statx st;

    if (statx(dir, path, AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT,
              STATX_TYPE | STATX_INO | STATX_CTIME, &st) < 0)
        return -errno;
    if (!S_ISDIR(st.stx_mode))
        return -ENOTDIR;
    ret->dev = (uint64_t)st.stx_dev_major << 32 | st.stx_dev_minor;
    ret->ino = st.stx_ino;
    ret->sec = (uint64_t)st.stx_ctime.tv_sec;
    ret->nsec = st.stx_ctime.tv_nsec;
    return 0;
}

static bool same(const record *a, const record *b)
{
    return a->dev == b->dev && a->ino == b->ino && a->sec == b->sec && a->nsec == b->nsec;
}

/* Reads the directory in w->path. */
static int read_dir(walk *w, size_t len)
{
    record r = {.path_len = (uint32_t)len};
    csn_autobuf names;
    csn_autofd int fd = csn_beneath_open(w->f->root, len ? w->path : ".",
                                         O_RDONLY | O_DIRECTORY, CSN_BENEATH_NOFOLLOW);

    csn_buf_init(&names, BYTES_MAX);
    if (fd < 0)
        return is_no_dir(fd) ? 0 : w->f->unreadable(w->f->ctx, w->path, fd);
    w->f->dirs_read++;
    int rc = identify(fd, "", &r);
    if (rc == 0)
        rc = read_names(w, fd, len, &names);
    if (rc < 0)
        return rc;
    w->path[len] = '\0';
    r.names_len = (uint32_t)names.len;
    bool stable = (int64_t)r.sec < w->start.tv_sec ||
                  ((int64_t)r.sec == w->start.tv_sec && (long)r.nsec < w->start.tv_nsec);
    if (w->f->cache && stable)
        rc = keep(w, w->path, &r, names.data ? names.data : "");
    return rc < 0 ? rc : use_names(w, len, names.data ? names.data : "", names.len);
}

/* A path of several components is looked up without RESOLVE_NO_SYMLINKS here: if a link was put
 * on it, the directory above has another ctime and was read again, and no longer queues it. */
static int visit(walk *w, size_t len)
{
    record now = {0}, known;
    const char *names = NULL;

    if (!w->f->cache || !look_up(w->f->cache, w->path, len, &known, &names))
        return read_dir(w, len);
    int rc = identify(w->f->root, w->path, &now);
    if (rc < 0)
        return is_no_dir(rc) ? 0 : w->f->unreadable(w->f->ctx, w->path, rc);
    if (!same(&now, &known))
        return read_dir(w, len);
    w->f->dirs_known++;
    rc = keep(w, w->path, &known, names);
    return rc < 0 ? rc : use_names(w, len, names, known.names_len);
}

int csn_find_names(csn_find *f)
{
    csn_autofree walk *w = malloc(sizeof(*w));
    int rc;

    if (!w)
        return -ENOMEM;
    memset(w, 0, offsetof(walk, dents));
    w->f = f;
    f->dirs_read = f->dirs_known = 0;
    csn_find_cache_init(&w->next);
    csn_buf_init(&w->todo, BYTES_MAX);
    clock_gettime(CLOCK_REALTIME_COARSE, &w->start);
    rc = visit(w, 0);
    while (rc == 0 && w->todo.len > 0) {
        uint32_t len;
        w->todo.len -= sizeof(len);
        memcpy(&len, w->todo.data + w->todo.len, sizeof(len));
        w->todo.len -= len;
        memcpy(w->path, w->todo.data + w->todo.len, len);
        w->path[len] = '\0';
        rc = visit(w, len);
    }
    if (rc == 0 && f->cache) {
        csn_find_cache_release(f->cache);
        *f->cache = w->next;
        csn_find_cache_init(&w->next);
    }
    csn_find_cache_release(&w->next);
    csn_buf_release(&w->todo);
    return rc;
}
