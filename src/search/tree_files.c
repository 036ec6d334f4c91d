/* tree_files.c: walks a tree in the order of its paths.
 *
 * The tree is hostile and may change during the walk: any depth, names and count, entries that
 * vanish or become links. Invariants: every directory is opened by one plain name with
 * O_NOFOLLOW below an open one, or from the start by openat2 without links, so the walk stays
 * inside; at most HELD_DEPTH directories and those of the batches in use are open; memory grows
 * with the depth and with the largest directory. A path longer than PATH_MAX is left out, since
 * no call could name it.
 *
 * Sorting each directory by its names, those of sub-directories with a slash at the end, gives
 * the order of the whole paths. */
#include "search/tree_files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "os/beneath.h"

#define DIR_FLAGS  (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK)
#define DENTS_SIZE 32768u
#define HELD_DEPTH 32u /* a deeper directory is closed while the walk is below it */
#define NAMES_MAX  ((size_t)1 << 31)

typedef struct entry {
    uint64_t key;  /* the first bytes of the name, for a fast comparison */
    uint32_t name; /* offset in level.names */
    bool is_dir;
} entry;

/* A directory on the path from the start to the current one. */
typedef struct level {
    csn_held_dir *dir; /* NULL: closed */
    size_t path_len;   /* with a trailing slash, except for the start */
    csn_buf names;
    entry *entries;
    size_t count, room, at;
    size_t mark;     /* of the ignore rules before this directory */
    bool has_ignore; /* an ignore file */
    bool has_git;    /* a directory .git */
} level;

struct csn_tree_files {
    int start;
    csn_tree_filter filter;
    level *levels; /* those beyond `depth` keep their memory */
    size_t depth, room;
    char path[PATH_MAX + NAME_MAX + 2];
    size_t batch_dirs; /* directories that the current batch uses */
    const csn_held_dir *batch_dir;
    _Alignas(struct dirent64) char dents[DENTS_SIZE];
};

/* ---- directories in use ---- */

static csn_held_dir *hold(int fd)
{
    csn_held_dir *d = malloc(sizeof(*d));

    if (d) {
        d->fd = fd;
        atomic_init(&d->users, 1);
    }
    return d;
}

static void let_go(csn_held_dir *d)
{
    if (!d || atomic_fetch_sub_explicit(&d->users, 1, memory_order_acq_rel) > 1)
        return;
    close(d->fd);
    free(d);
}

void csn_batch_init(csn_batch *b)
{
    b->count = 0;
    csn_buf_init(&b->names, NAMES_MAX);
}

void csn_batch_clear(csn_batch *b)
{
    for (size_t i = 0; i < b->count; i++)
        let_go(b->files[i].dir);
    b->count = 0;
    b->names.len = 0;
}

void csn_batch_release(csn_batch *b)
{
    csn_batch_clear(b);
    csn_buf_release(&b->names);
}

/* ---- one directory ---- */

static uint64_t key_of(const char *name)
{
    uint64_t key = 0;

    for (int i = 0; i < 8; i++) {
        key = key << 8 | (unsigned char)*name;
        name += *name != '\0';
    }
    return key;
}

static int by_name(const void *a, const void *b, void *names)
{
    const entry *x = a, *y = b;

    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    return strcmp((const char *)names + x->name, (const char *)names + y->name);
}

/* DT_DIR, DT_REG, or DT_UNKNOWN for everything else. */
static unsigned char type_of(int dir, const struct dirent64 *d)
{
    struct stat st;

    if (d->d_type == DT_DIR || d->d_type == DT_REG)
        return d->d_type;
    if (d->d_type != DT_UNKNOWN ||
        fstatat(dir, d->d_name, &st, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT) < 0)
        return DT_UNKNOWN;
    return S_ISDIR(st.st_mode) ? DT_DIR : S_ISREG(st.st_mode) ? DT_REG : DT_UNKNOWN;
}

static int add_entry(level *l, int dir, const struct dirent64 *d)
{
    const char *name = d->d_name;
    size_t len = strlen(name), at = l->names.len;
    bool dots = name[0] == '.' && (!name[1] || (name[1] == '.' && !name[2]));
    unsigned char type = dots ? DT_UNKNOWN : type_of(dir, d);

    if (type == DT_UNKNOWN || l->path_len + len >= PATH_MAX)
        return 0;
    l->has_ignore |= type == DT_REG && strcmp(name, CSN_IGNORE_FILE) == 0;
    l->has_git |= type == DT_DIR && strcmp(name, ".git") == 0;
    if (l->count == l->room) {
        size_t room = l->room ? 2 * l->room : 64;
        entry *more = reallocarray(l->entries, room, sizeof(*more));
        if (!more)
            return -ENOMEM;
        l->entries = more;
        l->room = room;
    }
    csn_buf_append(&l->names, name, len);
    csn_buf_append(&l->names, "/", type == DT_DIR);
    if (csn_buf_append(&l->names, "", 1) != 0 || l->names.err)
        return -ENOMEM;
    l->entries[l->count++] = (entry){
        .key = key_of(l->names.data + at), .name = (uint32_t)at, .is_dir = type == DT_DIR};
    return 0;
}

/* Reads and sorts the entries of the innermost directory. */
static int read_entries(csn_tree_files *t, level *l)
{
    int rc = 0;

    for (;;) {
        long n = syscall(SYS_getdents64, l->dir->fd, t->dents, DENTS_SIZE);
        if (n <= 0 || rc < 0)
            break; /* what a failing directory has given so far is kept */
        for (long at = 0; at < n && rc == 0;) {
            const struct dirent64 *d = (const void *)(t->dents + at);
            at += d->d_reclen;
            rc = add_entry(l, l->dir->fd, d);
        }
    }
    if (l->count > 1)
        qsort_r(l->entries, l->count, sizeof(*l->entries), by_name, l->names.data);
    return rc;
}

/* ---- ignore files ---- */

/* Adds one ignore file of the directory. One that cannot be read counts as absent. */
static int add_ignore(csn_tree_files *t, const level *l, const char *name)
{
    csn_autofree char *text = NULL;
    struct stat st;
    char path[PATH_MAX + NAME_MAX + 2];

    memcpy(path, t->path, l->path_len);
    snprintf(path + l->path_len, sizeof(path) - l->path_len, "%s", name);
    if (t->filter.may_read && !t->filter.may_read(t->filter.ctx, path))
        return 0;
    csn_autofd int fd = csn_beneath_open(l->dir->fd, name, O_RDONLY, CSN_BENEATH_NOFOLLOW);
    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
        return fd == -EMFILE || fd == -ENFILE ? fd : 0;
    size_t len = st.st_size > CSN_IGNORE_FILE_MAX ? CSN_IGNORE_FILE_MAX : (size_t)st.st_size;
    text = malloc(len + 1);
    if (!text)
        return -ENOMEM;
    ssize_t n = read(fd, text, len);
    path[l->path_len] = '\0';
    return n <= 0 ? 0 : csn_ignore_add(t->filter.ignore, path, false, text, (size_t)n);
}

static int add_ignores(csn_tree_files *t, level *l)
{
    int rc = 0;

    if (!t->filter.ignore)
        return 0;
    l->mark = csn_ignore_mark(t->filter.ignore);
    if (l->has_git)
        rc = add_ignore(t, l, ".git/info/exclude");
    if (rc == 0 && l->has_ignore)
        rc = add_ignore(t, l, CSN_IGNORE_FILE);
    return rc;
}

static bool is_ignored(const csn_tree_files *t, bool is_dir)
{
    return t->filter.ignore && csn_ignore_match(t->filter.ignore, t->path, is_dir);
}

/* ---- going down and up ---- */

/* Makes `fd` the innermost directory; it is closed on failure. */
static int enter(csn_tree_files *t, int fd, size_t path_len)
{
    csn_autofd int own = fd;

    if (t->depth == t->room) {
        size_t room = t->room ? 2 * t->room : 16;
        level *more = reallocarray(t->levels, room, sizeof(*more));
        if (!more)
            return -ENOMEM;
        memset(more + t->room, 0, (room - t->room) * sizeof(*more));
        t->levels = more;
        t->room = room;
    }
    level *l = &t->levels[t->depth];
    l->dir = hold(own);
    if (!l->dir)
        return -ENOMEM;
    (void)csn_steal_fd(&own);
    l->names.max = NAMES_MAX;
    l->names.len = l->count = l->at = 0;
    l->path_len = path_len;
    l->has_ignore = l->has_git = false;
    t->depth++;
    int rc = read_entries(t, l);
    return rc < 0 ? rc : add_ignores(t, l);
}

static void leave(csn_tree_files *t)
{
    level *l = &t->levels[--t->depth];

    let_go(l->dir);
    l->dir = NULL;
    if (t->filter.ignore)
        csn_ignore_reset(t->filter.ignore, l->mark);
}

/* A failure that concerns one entry only is 0. */
static int pass_over(int error)
{
    return error == EMFILE || error == ENFILE || error == ENOMEM ? -error : 0;
}

/* Opens a directory again that was closed because the walk went too deep. */
static int reopen(csn_tree_files *t, level *l)
{
    char path[PATH_MAX + NAME_MAX + 2];

    if (l->dir)
        return 0;
    memcpy(path, t->path, l->path_len);
    path[l->path_len > 0 ? l->path_len - 1 : 0] = '\0';
    int fd = csn_beneath_open(t->start, *path ? path : ".", O_RDONLY | O_DIRECTORY,
                              CSN_BENEATH_NOFOLLOW);
    l->dir = fd < 0 ? NULL : hold(fd);
    if (fd >= 0 && !l->dir) {
        close(fd);
        return -ENOMEM;
    }
    return fd < 0 ? fd : 0;
}

/* t->path is the path of `name`, without the slash. */
static int enter_child(csn_tree_files *t, const char *name, size_t len)
{
    size_t at = t->depth - 1;
    level *l = &t->levels[at];

    if (t->filter.dir && !t->filter.dir(t->filter.ctx, t->path))
        return 0;
    int fd = openat(l->dir->fd, name, DIR_FLAGS);
    if (fd < 0)
        return pass_over(errno);
    if (at >= HELD_DEPTH) {
        let_go(l->dir);
        l->dir = NULL;
    }
    t->path[l->path_len + len] = '/';
    return enter(t, fd, l->path_len + len + 1);
}

/* ---- batches ---- */

static int add_file(csn_tree_files *t, csn_batch *b, level *l, size_t len)
{
    csn_batch_file f = {.dir = l->dir, .path = b->names.len};

    if (t->filter.file && !t->filter.file(t->filter.ctx, t->path))
        return 0;
    f.name = f.path + l->path_len;
    if (csn_buf_append(&b->names, t->path, l->path_len + len + 1) != 0)
        return -ENOMEM;
    atomic_fetch_add_explicit(&l->dir->users, 1, memory_order_relaxed);
    t->batch_dirs += l->dir != t->batch_dir;
    t->batch_dir = l->dir;
    b->files[b->count++] = f;
    return 0;
}

static int next_entry(csn_tree_files *t, csn_batch *b)
{
    level *l = &t->levels[t->depth - 1];

    if (l->at == l->count) {
        leave(t);
        return 0;
    }
    const entry *e = &l->entries[l->at++];
    char name[NAME_MAX + 2];
    size_t len = strlen(l->names.data + e->name) - e->is_dir;
    memcpy(name, l->names.data + e->name, len);
    name[len] = '\0';
    memcpy(t->path + l->path_len, name, len + 1);
    if (is_ignored(t, e->is_dir))
        return 0;
    int rc = reopen(t, l);
    if (rc < 0)
        return pass_over(-rc);
    return e->is_dir ? enter_child(t, name, len) : add_file(t, b, l, len);
}

int csn_tree_files_next(csn_tree_files *t, csn_batch *b)
{
    int rc = 0;

    t->batch_dirs = 0;
    t->batch_dir = NULL;
    while (rc == 0 && t->depth > 0 && b->count < CSN_BATCH_FILES &&
           t->batch_dirs < CSN_BATCH_DIRS)
        rc = next_entry(t, b);
    return rc < 0 ? rc : b->count > 0;
}

csn_tree_files *csn_tree_files_new(int dir, const csn_tree_filter *filter)
{
    csn_tree_files *t = malloc(sizeof(*t));
    int fd = t ? fcntl(dir, F_DUPFD_CLOEXEC, 3) : -1;

    if (fd < 0 || lseek(fd, 0, SEEK_SET) < 0) {
        if (fd >= 0)
            close(fd);
        free(t);
        return NULL;
    }
    memset(t, 0, offsetof(csn_tree_files, path));
    t->start = dir;
    t->filter = *filter;
    if (enter(t, fd, 0) < 0) {
        csn_tree_files_free(t);
        return NULL;
    }
    return t;
}

void csn_tree_files_free(csn_tree_files *t)
{
    if (!t)
        return;
    while (t->depth > 0)
        leave(t);
    for (size_t i = 0; i < t->room; i++) {
        csn_buf_release(&t->levels[i].names);
        free(t->levels[i].entries);
    }
    free(t->levels);
    free(t);
}
