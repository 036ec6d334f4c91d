/* originals_collect.c: finds the files of a layer that have no record yet.
 *
 * Only directories that base and layer both have are walked, so the base bounds the depth. A
 * directory of the layer whose ctime is older than the last complete walk has no new files; its
 * directories may have. Directories wait as paths and are opened from the root, without
 * following links: none stays open. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/limits.h"
#include "layers/entry.h"
#include "layers/originals_internal.h"
#include "os/atomic.h"

#define STATE   "collected"
#define MAGIC   "CSNCOLL"
#define VERSION 1u

/* Between calls. Zeroed: there was none. */
typedef struct state {
    char magic[8];
    uint32_t version, reserved;
    uint64_t dev, ino;               /* of the layer */
    int64_t complete_s, complete_ns; /* when the last complete call began its walk */
    int64_t began_s,
        began_ns; /* the first command since then, if later calls were incomplete */
} state;

typedef struct collector {
    int dir;
    csn_entry_tree layer, base;
    dev_t base_dev;
    state old;
    struct timespec began;
    size_t max, made;
    char **todo; /* paths of directories; "" is the root */
    size_t count, room;
} collector;

static struct timespec earlier(struct timespec a, struct timespec b)
{
    return a.tv_sec < b.tv_sec || (a.tv_sec == b.tv_sec && a.tv_nsec < b.tv_nsec) ? a : b;
}

static bool is_gone(int rc)
{
    return rc == -ENOENT || rc == -ENOTDIR || rc == -ELOOP || rc == -ESTALE;
}

/* ---- state ---- */

static struct timespec completed(const collector *c)
{
    return (struct timespec){c->old.complete_s, c->old.complete_ns};
}

static int load_state(collector *c)
{
    struct stat st;

    if (fstat(c->layer.root, &st) < 0)
        return -errno;
    csn_autofd int fd = openat(c->dir, STATE, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    bool ok = fd >= 0 && read(fd, &c->old, sizeof(c->old)) == (ssize_t)sizeof(c->old) &&
              memcmp(c->old.magic, MAGIC, sizeof(c->old.magic)) == 0 &&
              c->old.version == VERSION && c->old.dev == st.st_dev && c->old.ino == st.st_ino;
    if (!ok)
        c->old = (state){.dev = st.st_dev, .ino = st.st_ino};
    if (c->old.began_s != 0)
        c->began = earlier(c->began, (struct timespec){c->old.began_s, c->old.began_ns});
    return 0;
}

static int save_state(const collector *c, const struct timespec *start, bool complete)
{
    state s = {.magic = MAGIC, .version = VERSION, .dev = c->old.dev, .ino = c->old.ino};
    csn_temp t;

    if (complete) {
        s.complete_s = start->tv_sec;
        s.complete_ns = start->tv_nsec;
    } else {
        s.complete_s = c->old.complete_s;
        s.complete_ns = c->old.complete_ns;
        s.began_s = c->began.tv_sec;
        s.began_ns = c->began.tv_nsec;
    }
    int rc = csn_temp_create(&t, c->dir, 0600);
    if (rc == 0)
        rc = csn_write_full(t.fd, &s, sizeof(s), NULL);
    if (rc == 0)
        rc = csn_temp_publish(&t, c->dir, STATE, 0);
    csn_temp_drop(&t, c->dir);
    return rc;
}

/* ---- files ---- */

/* The host's file must not have changed since this time. The birth of the layer's file is
 * before the copy of its content. Where the file system does not tell it, the file may be as
 * old as the last complete walk. */
static struct timespec limit_of(const collector *c, const struct statx *x)
{
    if (x->stx_mask & STATX_BTIME)
        return earlier(c->began, (struct timespec){x->stx_btime.tv_sec, x->stx_btime.tv_nsec});
    return c->old.complete_s != 0 ? earlier(c->began, completed(c)) : c->began;
}

/* 1: the limit is reached. */
static int look_at_file(collector *c, int layer, int base, const char *name, const char *path)
{
    char record[CSN_HASH_HEX];
    struct statx x;
    struct stat st;

    int rc = csn_entry_stat(&c->base, base, name, &st);
    if (rc < 0 || !S_ISREG(st.st_mode))
        return is_gone(rc) ? 0 : rc;
    csn_original_name(path, record);
    if (csn_original_has(c->dir, record))
        return 0;
    csn_autofd int fd = csn_entry_open(&c->layer, layer, name, O_PATH);
    if (fd < 0)
        return is_gone(fd) ? 0 : fd;
    if (statx(fd, "", AT_EMPTY_PATH, STATX_TYPE | STATX_BTIME, &x) < 0)
        return -errno;
    if (!S_ISREG(x.stx_mode))
        return 0;
    if (c->made >= c->max)
        return 1;
    struct timespec limit = limit_of(c, &x);
    rc = csn_original_save(c->dir, record, base, name, &limit, true);
    if (rc < 0)
        return is_gone(rc) ? 0 : rc;
    c->made++;
    return 0;
}

/* ---- directories ---- */

/* Takes over the path. */
static int push(collector *c, char *path)
{
    if (!path)
        return -ENOMEM;
    if (c->count == c->room) {
        size_t room = c->room ? 2 * c->room : 64;
        char **v = reallocarray(c->todo, room, sizeof(*v));
        if (!v) {
            free(path);
            return -ENOMEM;
        }
        c->todo = v;
        c->room = room;
    }
    c->todo[c->count++] = path;
    return 0;
}

static char *join(const char *dir, const char *name)
{
    size_t len = strlen(dir), add = strlen(name);
    char *path = len + add + 2 > CSN_LAYER_PATH_MAX ? NULL : malloc(len + add + 2);

    if (!path)
        return NULL;
    memcpy(path, dir, len);
    if (len > 0)
        path[len++] = '/';
    memcpy(path + len, name, add + 1);
    return path;
}

/* fresh: the directory may have new files. */
static int look_at(collector *c, int layer, int base, const char *dir, const struct dirent *e,
                   bool fresh)
{
    unsigned char type = e->d_type;
    struct stat st;

    if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
        return 0;
    if (type == DT_UNKNOWN) {
        int rc = csn_entry_stat(&c->layer, layer, e->d_name, &st);
        if (rc < 0)
            return is_gone(rc) ? 0 : rc;
        type = S_ISDIR(st.st_mode) ? DT_DIR : S_ISREG(st.st_mode) ? DT_REG : DT_LNK;
    }
    if (type != DT_DIR && (type != DT_REG || !fresh))
        return 0;
    csn_autofree char *path = join(dir, e->d_name);
    if (!path)
        return -ENOMEM;
    if (type == DT_DIR) {
        int rc = csn_entry_stat(&c->base, base, e->d_name, &st);
        if (rc < 0 || !S_ISDIR(st.st_mode) || st.st_dev != c->base_dev)
            return 0; /* nothing below has an original */
        return push(c, CSN_STEAL(path));
    }
    return look_at_file(c, layer, base, e->d_name, path);
}

static void closedirp(DIR **d)
{
    if (*d)
        closedir(*d);
}

static int walk_dir(collector *c, const char *path)
{
    const char *at = *path ? path : ".";
    csn_autofd int base = csn_entry_open_path(&c->base, at, O_PATH | O_DIRECTORY);
    csn_autofd int fd =
        base < 0 ? base : csn_entry_open_path(&c->layer, at, O_RDONLY | O_DIRECTORY);
    struct stat st;

    if (fd < 0)
        return is_gone(fd) || base == -EACCES ? 0 : fd;
    if (fstat(fd, &st) < 0)
        return -errno;
    const struct timespec last = completed(c);
    bool fresh = last.tv_sec == 0 || st.st_ctim.tv_nsec == 0 ||
                 st.st_ctim.tv_sec > last.tv_sec ||
                 (st.st_ctim.tv_sec == last.tv_sec && st.st_ctim.tv_nsec >= last.tv_nsec);
    int layer = fd;
    CSN_CLEANUP(closedirp) DIR *d = fdopendir(fd);
    if (!d)
        return -errno;
    (void)csn_steal_fd(&fd); /* d has it */
    for (int rc = 0;;) {
        errno = 0;
        const struct dirent *e = readdir(d);
        if (!e)
            return is_gone(-errno) ? 0 : -errno;
        rc = look_at(c, layer, base, path, e, fresh);
        if (rc != 0)
            return rc;
    }
}

static int walk(collector *c)
{
    int rc = push(c, strdup(""));

    while (rc == 0 && c->count > 0) {
        csn_autofree char *path = c->todo[--c->count];
        rc = walk_dir(c, path);
    }
    while (c->count > 0)
        free(c->todo[--c->count]);
    free(c->todo);
    return rc;
}

int csn_originals_collect(int dir, int layer, int base, struct timespec began, size_t max,
                          size_t *ret_made)
{
    collector c = {
        .dir = dir, .layer = {layer, true}, .base = {base, false}, .began = began, .max = max};
    struct timespec start;
    struct stat st;

    if (fstat(base, &st) < 0 || clock_gettime(CLOCK_REALTIME_COARSE, &start) < 0)
        return -errno;
    c.base_dev = st.st_dev;
    int rc = load_state(&c);
    if (rc == 0)
        rc = walk(&c);
    int saved = rc < 0 && c.old.began_s != 0 ? 0 : save_state(&c, &start, rc == 0);
    if (rc >= 0 && saved < 0)
        rc = saved;
    if (rc >= 0 && ret_made)
        *ret_made = c.made;
    return rc;
}
