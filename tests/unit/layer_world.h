/* layer_world.h: a base and layers in a throwaway directory. After cmocka.h.
 *
 * Rows are compared as text, one line each: A D M X T (X: attributes), a space, the path. */
#pragma once
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/buf.h"
#include "corpus.h"
#include "layers/changes.h"
#include "os/tree.h"

#define WORLD_USER 65534

typedef struct layer_world {
    char top[64];
    int top_fd;
    csn_layer_stack stack;
} layer_world;

/* Thousands of directories take long on a disk: memory, if it has user.* attributes. */
static void world_make_top(layer_world *w)
{
    static const char *const places[] = {"/dev/shm", "/tmp"};

    for (size_t i = 0; i < 2; i++) {
        snprintf(w->top, sizeof(w->top), "%s/csn-layers-XXXXXX", places[i]);
        if (!mkdtemp(w->top))
            continue;
        if (setxattr(w->top, "user.t", "x", 1, 0) == 0)
            return;
        rmdir(w->top);
    }
    must(false, "no place with user.* attributes in /dev/shm and /tmp");
}

/* layers: how many; they are top/0 (the newest), top/1 ... */
static void world_make(layer_world *w, size_t layers)
{
    *w = (layer_world){.stack.count = layers};
    world_make_top(w);
    w->top_fd = open(w->top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    must(w->top_fd >= 0 && mkdirat(w->top_fd, "base", 0755) == 0, "base");
    w->stack.base = openat(w->top_fd, "base", O_PATH | O_DIRECTORY | O_CLOEXEC);
    for (size_t i = 0; i < layers; i++) {
        char name[16];
        snprintf(name, sizeof(name), "%zu", i);
        must(mkdirat(w->top_fd, name, 0755) == 0, name);
        w->stack.layers[i] = openat(w->top_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    }
}

static void world_wipe(layer_world *w)
{
    csn_layer_stack_close(&w->stack);
    must(csn_tree_empty(w->top_fd) == 0, "empty");
    close(w->top_fd);
    must(rmdir(w->top) == 0, w->top);
}

/* A file with a fixed time, in directories that are made. "0/d/f": in the newest layer. */
static void world_parents(layer_world *w, const char *path)
{
    char part[512];

    for (const char *p = strchr(path, '/'); p; p = strchr(p + 1, '/')) {
        snprintf(part, sizeof(part), "%.*s", (int)(p - path), path);
        must(mkdirat(w->top_fd, part, 0755) == 0 || errno == EEXIST, part);
    }
}

static void world_time(int dir, const char *path, time_t s)
{
    const struct timespec t[2] = {{s, 5}, {s, 5}};

    must(utimensat(dir, path, t, AT_SYMLINK_NOFOLLOW) == 0, path);
}

__attribute__((unused)) static void world_file(layer_world *w, const char *path,
                                               const char *text)
{
    world_parents(w, path);
    put_file(w->top_fd, path, text);
    world_time(w->top_fd, path, 1000);
}

static void world_dir(layer_world *w, const char *path)
{
    world_parents(w, path);
    put_dir(w->top_fd, path);
}

__attribute__((unused)) static void world_whiteout(layer_world *w, const char *path)
{
    world_parents(w, path);
    must(mknodat(w->top_fd, path, S_IFCHR, makedev(0, 0)) == 0, path);
}

static void world_xattr(layer_world *w, const char *path, const char *name, const char *value)
{
    int fd = openat(w->top_fd, path, O_RDONLY | O_CLOEXEC);

    must(fd >= 0 && fsetxattr(fd, name, value, strlen(value), 0) == 0, path);
    close(fd);
}

__attribute__((unused)) static void world_opaque(layer_world *w, const char *path)
{
    world_dir(w, path);
    world_xattr(w, path, "user.overlay.opaque", "y");
}

__attribute__((unused)) static void world_rows(const csn_layer_changes *c, csn_buf *ret)
{
    static const char letters[] = "?ADMXT";

    csn_buf_init(ret, SIZE_MAX);
    csn_buf_puts(ret, "");
    for (size_t i = 0; i < c->count; i++)
        csn_buf_printf(ret, "%c %s\n", letters[c->v[i].kind], c->v[i].path);
}
