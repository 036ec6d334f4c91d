/* usage.c: measures how much space a tree takes, in small steps.
 *
 * Commands own the tree and change it during the walk. All directories down to the present one
 * are held open, so a renamed one leads nowhere else. The position in a directory is that of
 * its descriptor: nothing is read ahead across steps. */
#include "layers/usage.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/limits.h"
#include "layers/entry.h"
#include "os/overlay.h"

#define BLOCK 512u /* the unit of st_blocks */

/* The kernel's; readdir reads ahead. */
typedef struct raw_entry {
    uint64_t ino;
    int64_t next; /* position behind this one */
    uint16_t length;
    uint8_t type;
    char name[];
} raw_entry;

static const csn_entry_tree layer = {.root = -1, .unlock = true};

int csn_usage_begin(csn_usage_walk *w, int dir, const char *mark)
{
    int fd = csn_entry_reopen(&layer, dir, O_RDONLY | O_DIRECTORY);

    w->sum = (csn_usage){0};
    w->mark = mark;
    w->depth = 0;
    if (fd < 0)
        return fd;
    w->fds[w->depth++] = fd;
    return 0;
}

void csn_usage_end(csn_usage_walk *w)
{
    while (w->depth > 0)
        close(w->fds[--w->depth]);
}

/* A file with several names is counted in parts, one with each name. */
static void add(csn_usage *u, const struct stat *st)
{
    uint64_t links = S_ISDIR(st->st_mode) || st->st_nlink == 0 ? 1 : st->st_nlink;

    u->bytes += (uint64_t)st->st_blocks * BLOCK / links;
    u->files++;
}

/* True: the walk continues in another directory. */
static bool enter(csn_usage_walk *w, int fd)
{
    if (fd < 0)
        return false;
    if (w->depth == CSN_USAGE_DEPTH) {
        w->sum.too_deep = true;
        close(fd);
        return false;
    }
    w->fds[w->depth++] = fd;
    return true;
}

static bool enter_layer(csn_usage_walk *w, int tree, const char *name)
{
    char path[CSN_OVERLAY_NAME + CSN_NAME_BYTES_MAX + 16];

    if (strlen(name) != CSN_OVERLAY_NAME)
        return false;
    snprintf(path, sizeof(path), "%.*s/%s", (int)CSN_OVERLAY_NAME, name, w->mark);
    if (faccessat(tree, path, F_OK, AT_SYMLINK_NOFOLLOW) < 0)
        return false;
    snprintf(path, sizeof(path), "%.*s/fs", (int)CSN_OVERLAY_NAME, name);
    return enter(w, csn_entry_open(&layer, tree, path, O_RDONLY | O_DIRECTORY));
}

static bool look_at(csn_usage_walk *w, int dir, const raw_entry *e)
{
    struct stat st;

    if (strcmp(e->name, ".") == 0 || strcmp(e->name, "..") == 0)
        return false;
    if (w->mark && w->depth == 1)
        return enter_layer(w, dir, e->name);
    if (csn_entry_stat(&layer, dir, e->name, &st) < 0 || csn_entry_is_whiteout(&st))
        return false;
    add(&w->sum, &st);
    if (!S_ISDIR(st.st_mode))
        return false;
    return enter(w, csn_entry_open(&layer, dir, e->name, O_RDONLY | O_DIRECTORY));
}

/* Looks at a part of the directory. If one of its entries is entered, the next part begins
 * behind that one. */
static size_t read_part(csn_usage_walk *w)
{
    _Alignas(raw_entry) char buf[4096];
    int dir = w->fds[w->depth - 1];
    long n = syscall(SYS_getdents64, dir, buf, sizeof(buf));
    size_t seen = 1;

    if (n <= 0) {
        close(w->fds[--w->depth]);
        return seen;
    }
    for (long at = 0; at < n; seen++) {
        const raw_entry *e = (const raw_entry *)(buf + at);
        at += e->length;
        if (look_at(w, dir, e)) {
            (void)lseek(dir, e->next, SEEK_SET);
            break;
        }
    }
    return seen;
}

int csn_usage_step(csn_usage_walk *w, size_t entries)
{
    for (size_t seen = 0; w->depth > 0 && seen < entries;)
        seen += read_part(w);
    return w->depth > 0;
}

int csn_usage_measure(int dir, csn_usage *ret)
{
    csn_usage_walk w;
    int rc = csn_usage_begin(&w, dir, NULL);

    if (rc < 0)
        return rc;
    while (csn_usage_step(&w, 1000) > 0)
        ;
    *ret = w.sum;
    return 0;
}
