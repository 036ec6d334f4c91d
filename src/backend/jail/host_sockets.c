/* host_sockets.c: masks sockets of host programs inside shares.
 *
 * Neither network namespaces nor Landlock prevent a command from connecting to a unix socket by
 * its path, so every socket that is visible in a share is masked by a mount. The kernel's list
 * of bound sockets names them without a walk through the tree. Sockets that are bound later, or
 * in another network namespace, are not in the list.
 *
 * The list has the name that was passed to bind(2). If the file is still there and has one
 * name, it is masked. Otherwise (renamed, linked, or bound by a relative name) it is searched
 * for in that directory, and then in the shares. An agent may control paths and trees: only
 * lstat is used, and the search is bounded. */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "backend/jail/jail.h"
#include "base/limits.h"
#include "base/path.h"
#include "os/tree.h"
#include "os/unix_sockets.h"

#define MISPLACED_MAX 32u /* with more, every socket in the shares is masked */

void csn_jail_cover(csn_jail *j, const csn_jail_share *shares, size_t count, const char *path)
{
    for (size_t i = 0; i < count; i++) {
        const char *rest = csn_path_below(path, shares[i].host);
        if (!rest || !*rest)
            continue;
        csn_jail_pin_parents(j, &shares[i], rest);
        csn_jail_add(j, CSN_MOUNT_MASK, CSN_MOUNT_OPTIONAL, 0, NULL,
                     csn_arena_printf(j->arena, "%s/%s", shares[i].inside, rest));
    }
}

typedef struct search {
    csn_jail *j;
    const csn_jail_share *shares;
    size_t count;
    dev_t *devs;                       /* of the shares */
    uint32_t misplaced[MISPLACED_MAX]; /* inodes of sockets that were renamed or linked */
    size_t misplaced_count;            /* above MISPLACED_MAX: every socket is masked */
    const char *in;                    /* the directory being searched */
    uint32_t wanted_ino;               /* search for this inode; 0: for `misplaced` */
    bool found;
    unsigned seen;
} search;

/* Masks a socket at `path`. True: it is the listed one and has no other name. */
static bool cover_at(search *c, const char *path, const csn_unix_socket *name)
{
    struct stat st;

    if (lstat(path, &st) < 0 || !S_ISSOCK(st.st_mode))
        return false;
    csn_jail_cover(c->j, c->shares, c->count, path);
    return name->known && (uint32_t)st.st_ino == name->ino && st.st_nlink == 1;
}

static bool is_wanted(const search *c, uint32_t ino)
{
    bool wanted = c->wanted_ino ? c->wanted_ino == ino : c->misplaced_count > MISPLACED_MAX;

    for (size_t i = 0; !c->wanted_ino && !wanted && i < c->misplaced_count; i++)
        wanted = c->misplaced[i] == ino;
    return wanted;
}

static int search_entry(void *ctx, const char *path, const struct stat *st, const char *target)
{
    search *c = ctx;

    (void)target;
    if (S_ISSOCK(st->st_mode) && is_wanted(c, (uint32_t)st->st_ino)) {
        const char *full = csn_arena_printf(c->j->arena, "%s/%s", c->in, path);
        c->found = c->found || st->st_nlink == 1;
        if (full)
            csn_jail_cover(c->j, c->shares, c->count, full);
    }
    return ++c->seen >= CSN_SOCKET_SEARCH_MAX;
}

/* Many programs bind a temporary name and rename it in the same directory. */
static bool cover_in_dir(search *c, const char *dir, const csn_unix_socket *name)
{
    csn_autofd int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    c->in = dir;
    c->wanted_ino = name->ino;
    c->found = false;
    if (fd >= 0 && name->known)
        (void)csn_tree_list(fd, search_entry, c);
    c->wanted_ino = 0;
    return c->found;
}

/* btrfs and overlayfs (major 0) report other device numbers for files than the socket list. */
static bool may_be_shared(const search *c, const csn_unix_socket *name)
{
    for (size_t i = 0; c->devs && i < c->count; i++)
        if (major(c->devs[i]) == 0 ||
            (major(c->devs[i]) == name->dev_major && minor(c->devs[i]) == name->dev_minor))
            return true;
    return false;
}

/* The directory of a relative name is unknown, so tries the root of each share. */
static bool cover_relative(search *c, const csn_unix_socket *name)
{
    bool done = false;

    for (size_t i = 0; !done && i < c->count; i++) {
        const char *path =
            csn_arena_printf(c->j->arena, "%s/%s", c->shares[i].host, name->path);
        done = path && cover_at(c, path, name);
    }
    return done;
}

static bool cover_absolute(search *c, const csn_unix_socket *name)
{
    csn_autofree char *dir = csn_path_dir(name->path);
    char real[PATH_MAX];

    if (!dir || !realpath(dir, real))
        return false;
    const char *path = csn_arena_printf(
        c->j->arena, "%s/%s", strcmp(real, "/") == 0 ? "" : real, csn_path_base(name->path));
    return path && (cover_at(c, path, name) || cover_in_dir(c, real, name));
}

static int cover_name(void *ctx, const csn_unix_socket *name)
{
    search *c = ctx;
    bool may_be_inside = !name->known || may_be_shared(c, name),
         absolute = name->path[0] == '/';

    if (absolute && !may_be_inside)
        csn_jail_cover(c->j, c->shares, c->count, name->path);
    else if (!(absolute ? cover_absolute(c, name) : cover_relative(c, name)) && may_be_inside &&
             name->known && c->misplaced_count++ < MISPLACED_MAX)
        c->misplaced[c->misplaced_count - 1] = name->ino;
    return 0;
}

void csn_jail_cover_sockets(csn_jail *j, const csn_jail_share *shares, size_t count)
{
    search c = {.j = j, .shares = shares, .count = count};
    struct stat st;

    c.devs = csn_arena_array(j->arena, count, sizeof(*c.devs));
    for (size_t i = 0; c.devs && i < count; i++)
        c.devs[i] = stat(shares[i].host, &st) == 0 ? st.st_dev : 0;
    (void)csn_unix_sockets_each(cover_name, &c);
    c.seen = 0;
    for (size_t i = 0; c.misplaced_count > 0 && i < count; i++) {
        csn_autofd int fd = open(shares[i].host, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        c.in = shares[i].host;
        if (fd >= 0)
            (void)csn_tree_walk(fd, search_entry, &c);
    }
}
