/* commit_world.h: a base, layers and a store, in a few characters per entry. After cmocka.h.
 *
 *   "base/a=text"  a file    "0/a>to"  a symbolic link    "0/d/"  a directory
 *   "0/a!"  a whiteout (0: the newest layer), or in the base: the entry is removed
 *   "0/p|"  a fifo           "0/a@755"  a mode            "0/a&b"  a hard link of 0/b */
#pragma once
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/limits.h"
#include "base/path.h"
#include "layer_world.h"
#include "layers/commit.h"

/* A kill does not lose what the kernel has: synchronizing hundreds of trees would only take
 * time. These replace the functions of the C library. */
static bool commit_syncs;
int fsync(int fd)
{
    return commit_syncs ? (int)syscall(SYS_fsync, fd) : 0;
}
int syncfs(int fd)
{
    return commit_syncs ? (int)syscall(SYS_syncfs, fd) : 0;
}

typedef struct commit_world {
    layer_world lw;
    int store;
    csn_layer_changes changes;
    csn_commit_request request;
    csn_commit_plan plan;
    const char *original;   /* of every path: NULL not known, "-" none, else its content */
    const char *protected_; /* this path is */
} commit_world;

#define PAST   ((struct timespec){.tv_sec = 1})          /* everything changed since */
#define FUTURE ((struct timespec){.tv_sec = 4000000000}) /* nothing did */

static void commit_remove(commit_world *w, const char *path)
{
    csn_autofree char *dir = csn_path_dir(path);
    csn_autofd int fd = openat(w->lw.top_fd, dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    must(csn_tree_remove(fd, csn_path_base(path)) == 0, path);
}

static void commit_put(commit_world *w, const char *entry)
{
    size_t n = strcspn(entry, "=!>|@&");
    const char *arg = entry[n] ? entry + n + 1 : "";
    char path[256], other[256];

    snprintf(path, sizeof(path), "%.*s", (int)n, entry);
    bool base = strncmp(path, "base/", 5) == 0;
    if (entry[n] != '@')
        world_parents(&w->lw, path);
    if (entry[n] != '@' && entry[n] != '\0' && base)
        commit_remove(w, path);
    if (entry[n] == '=') {
        world_file(&w->lw, path, arg);
    } else if (entry[n] == '!' && !base) {
        world_whiteout(&w->lw, path);
    } else if (entry[n] == '>') {
        must(symlinkat(arg, w->lw.top_fd, path) == 0, path);
    } else if (entry[n] == '|') {
        must(mkfifoat(w->lw.top_fd, path, 0600) == 0, path);
    } else if (entry[n] == '@') {
        must(fchmodat(w->lw.top_fd, path, (mode_t)strtoul(arg, NULL, 8), 0) == 0, path);
    } else if (entry[n] == '&') {
        snprintf(other, sizeof(other), "%.*s/%s", (int)strcspn(path, "/"), path, arg);
        must(linkat(w->lw.top_fd, other, w->lw.top_fd, path, 0) == 0, path);
    }
}

static void commit_put_all(commit_world *w, const char *const *entries)
{
    for (size_t i = 0; entries[i]; i++)
        commit_put(w, entries[i]);
}
#define PUT(w, ...) commit_put_all(w, (const char *const[]){__VA_ARGS__, NULL})

static csn_status commit_original(void *ctx, const csn_layer_change *c, csn_original *ret,
                                  csn_error **err)
{
    commit_world *w = ctx;

    (void)c;
    (void)err;
    if (!w->original)
        return CSN_OK;
    ret->known = true;
    if (strcmp(w->original, "-") == 0)
        return CSN_OK;
    ret->side.mode = S_IFREG | 0644;
    ret->content = memfd_create("original", MFD_CLOEXEC);
    must(ret->content >= 0 && write(ret->content, w->original, strlen(w->original)) ==
                                  (ssize_t)strlen(w->original),
         "memfd");
    return CSN_OK;
}

static const char *commit_protects(void *ctx, const csn_layer_change *c)
{
    const commit_world *w = ctx;

    return w->protected_ && strcmp(w->protected_, c->path) == 0 ? "protected here" : NULL;
}

static void commit_make(commit_world *w)
{
    *w = (commit_world){.store = -1};
    world_make(&w->lw, 2);
    must(mkdirat(w->lw.top_fd, "store", 0700) == 0, "store");
    w->store = openat(w->lw.top_fd, "store", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    w->request = (csn_commit_request){.stack = &w->lw.stack,
                                      .changes = &w->changes,
                                      .since = FUTURE,
                                      .original = commit_original,
                                      .protects = commit_protects,
                                      .ctx = w};
}

static void commit_wipe(commit_world *w)
{
    csn_commit_plan_release(&w->plan);
    csn_layer_changes_release(&w->changes);
    close(w->store);
    world_wipe(&w->lw);
}

static void commit_list(commit_world *w)
{
    csn_error *err = NULL;

    csn_layer_changes_release(&w->changes);
    if (csn_layer_changes_list(&w->lw.stack, NULL, &w->changes, &err) != CSN_OK)
        fail_msg("%s", csn_error_message(err));
}

static void commit_plan(commit_world *w)
{
    csn_error *err = NULL;

    csn_commit_plan_release(&w->plan);
    if (csn_commit_plan_make(&w->request, &w->plan, &err) != CSN_OK)
        fail_msg("%s", csn_error_message(err));
}

__attribute__((unused)) static csn_status commit_try(commit_world *w)
{
    csn_error *err = NULL;
    csn_status st = csn_commit_apply(&w->request, &w->plan, w->store, &err);

    csn_error_free(err);
    return st;
}

__attribute__((unused)) static void commit_all(commit_world *w)
{
    csn_error *err = NULL;

    commit_list(w);
    commit_plan(w);
    if (csn_commit_apply(&w->request, &w->plan, w->store, &err) != CSN_OK)
        fail_msg("%s", csn_error_message(err));
}

/* ---- a tree as text ---- */

#define DUMP_TIMES  (1u << 0) /* of files and links */
#define DUMP_INODES (1u << 1) /* and ctime: nothing was touched */

typedef struct commit_dump {
    int dir;
    unsigned what;
    char *lines[4096];
    uint64_t inodes[4096];
    size_t count;
} commit_dump;

static void dump_attrs(int fd, csn_buf *b)
{
    char names[1024], value[256];
    ssize_t n = flistxattr(fd, names, sizeof(names));

    for (ssize_t at = 0; at < n; at += (ssize_t)strlen(names + at) + 1) {
        if (strncmp(names + at, "user.overlay.", 13) == 0)
            continue;
        ssize_t len = fgetxattr(fd, names + at, value, sizeof(value));
        csn_buf_putc(b, ' ');
        csn_buf_puts(b, names + at);
        csn_buf_putc(b, '=');
        csn_buf_append(b, value, len > 0 ? (size_t)len : 0);
    }
}

static int dump_entry(void *ctx, const char *path, const struct stat *st, const char *target)
{
    commit_dump *d = ctx;
    csn_buf b;

    csn_buf_init(&b, SIZE_MAX);
    csn_buf_printf(&b, "%s %o", path, st->st_mode);
    if (!S_ISDIR(st->st_mode) && d->what & DUMP_TIMES)
        csn_buf_printf(&b, " %lld.%ld", (long long)st->st_mtim.tv_sec, st->st_mtim.tv_nsec);
    if (d->what & DUMP_INODES)
        csn_buf_printf(&b, " #%llu %lld.%ld", (unsigned long long)st->st_ino,
                       S_ISDIR(st->st_mode) ? 0 : (long long)st->st_ctim.tv_sec,
                       S_ISDIR(st->st_mode) ? 0 : st->st_ctim.tv_nsec);
    csn_buf_printf(&b, " %s", target ? target : "");
    if (S_ISREG(st->st_mode) || S_ISDIR(st->st_mode)) {
        csn_autofd int fd = openat(d->dir, path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
        csn_autobuf text;
        char part[4096], hex[CSN_HASH_HEX];
        ssize_t n;
        csn_buf_init(&text, SIZE_MAX);
        while (S_ISREG(st->st_mode) && fd >= 0 && (n = read(fd, part, sizeof(part))) > 0)
            csn_buf_append(&text, part, (size_t)n);
        csn_hash_bytes(text.len ? text.data : "", text.len, hex);
        if (S_ISREG(st->st_mode))
            csn_buf_printf(&b, "%.*s", text.len < 80 ? (int)text.len : 16,
                           text.len < 80 ? (text.len ? text.data : "") : hex);
        if (fd >= 0)
            dump_attrs(fd, &b);
    }
    must(d->count < 4096, "large tree");
    d->inodes[d->count] = S_ISREG(st->st_mode) && st->st_nlink > 1 ? st->st_ino : 0;
    /* The number of the inode follows the text, so that sorting keeps them together. */
    csn_buf_printf(&b, "%c%llu", '\0', (unsigned long long)d->inodes[d->count]);
    d->lines[d->count++] = csn_buf_take(&b);
    return 0;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Names of one inode show the first of them. malloc'd. */
static char *commit_tree(commit_world *w, const char *path, unsigned what)
{
    static commit_dump d;
    csn_buf b;

    d.dir = openat(w->lw.top_fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    d.what = what;
    d.count = 0;
    must(csn_tree_walk(d.dir, dump_entry, &d) == 0, path);
    close(d.dir);
    qsort(d.lines, d.count, sizeof(d.lines[0]), by_text);
    csn_buf_init(&b, SIZE_MAX);
    for (size_t i = 0; i < d.count; i++) {
        const char *ino = d.lines[i] + strlen(d.lines[i]) + 1;
        size_t first = i;
        for (size_t j = 0; strcmp(ino, "0") != 0 && j < i && first == i; j++) {
            if (strcmp(ino, d.lines[j] + strlen(d.lines[j]) + 1) == 0)
                first = j;
        }
        csn_buf_puts(&b, d.lines[i]);
        if (first != i)
            csn_buf_printf(&b, " = %.*s", (int)strcspn(d.lines[first], " "), d.lines[first]);
        csn_buf_putc(&b, '\n');
    }
    for (size_t i = 0; i < d.count; i++)
        free(d.lines[i]);
    return csn_buf_take(&b);
}

/* Nothing of a commit is left: neither temporary files nor lists. */
static void commit_left_nothing(commit_world *w)
{
    csn_autofree char *base = commit_tree(w, "base", 0);
    csn_autofree char *store = commit_tree(w, "store", 0);

    if (strstr(base, ".csn-commit-"))
        fail_msg("%s", base);
    assert_string_equal(store, "");
}
