/* host_sockets.c: what of the host's own running must not be reached through a share.
 *
 * Called by plan.c when the shares are known. Two things can lie in a directory that is shared:
 * a unix socket on which a program of the host listens, and caisson's own records. No wall but
 * the mounts can keep a command from connecting to a socket by its name: network namespaces do
 * not divide those, and Landlock does not see them. So they are covered. The kernel's list of
 * bound sockets tells which there are, without a walk through the tree; one that is bound
 * later, or by a container with a network of its own, is not in it.
 *
 * The list has the name that was given to bind. Where that leads to the file the list means,
 * and the file has no other name, that is all. Else (renamed, linked, bound by a relative name)
 * it is looked for: beside that name, and if it could be in a share, there. Names and trees are
 * other people's: what is found is looked at by lstat, and the search has an end. */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "backend/jail/jail.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/path.h"
#include "os/statedir.h"
#include "os/tree.h"
#include "os/unix_sockets.h"

#define LOST_MAX 32u /* more than that are looked for as if all sockets were meant */

/* Covers `path` of the host wherever a share shows it. */
static void cover(csn_jail *j, const csn_jail_share *shares, size_t count, const char *path)
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

typedef struct covering {
    csn_jail *j;
    const csn_jail_share *shares;
    size_t count;
    dev_t *devs;             /* of the shares */
    uint32_t lost[LOST_MAX]; /* sockets whose names are not all known */
    size_t lost_count;       /* beyond LOST_MAX: all are */
    const char *in;          /* the directory that is searched */
    uint32_t only;           /* the socket that is meant; 0: those that are lost */
    bool found;
    unsigned seen;
} covering;

/* Is the socket at `path`, and has it no other name? */
static bool cover_at(covering *c, const char *path, const csn_unix_socket *name)
{
    struct stat st;

    if (lstat(path, &st) < 0 || !S_ISSOCK(st.st_mode))
        return false;
    cover(c->j, c->shares, c->count, path);
    return name->known && (uint32_t)st.st_ino == name->ino && st.st_nlink == 1;
}

static bool is_meant(const covering *c, uint32_t ino)
{
    bool meant = c->only ? c->only == ino : c->lost_count > LOST_MAX;

    for (size_t i = 0; !c->only && !meant && i < c->lost_count; i++)
        meant = c->lost[i] == ino;
    return meant;
}

static int search_entry(void *ctx, const char *path, const struct stat *st, const char *target)
{
    covering *c = ctx;

    (void)target;
    if (S_ISSOCK(st->st_mode) && is_meant(c, (uint32_t)st->st_ino)) {
        const char *full = csn_arena_printf(c->j->arena, "%s/%s", c->in, path);
        c->found = c->found || st->st_nlink == 1;
        if (full)
            cover(c->j, c->shares, c->count, full);
    }
    return ++c->seen >= CSN_SOCKET_SEARCH_MAX;
}

/* Most that are not where they were bound are a name further: bound, then moved into place. */
static bool cover_beside(covering *c, const char *dir, const csn_unix_socket *name)
{
    csn_autofd int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    c->in = dir;
    c->only = name->ino;
    c->found = false;
    if (fd >= 0 && name->known)
        (void)csn_tree_list(fd, search_entry, c);
    c->only = 0;
    return c->found;
}

/* File systems of several devices (they have none themselves: major 0) give files other numbers
 * than sockets are listed with. */
static bool may_be_shared(const covering *c, const csn_unix_socket *name)
{
    for (size_t i = 0; c->devs && i < c->count; i++)
        if (major(c->devs[i]) == 0 ||
            (major(c->devs[i]) == name->dev_major && minor(c->devs[i]) == name->dev_minor))
            return true;
    return false;
}

/* Bound by a relative name: below which share, if any, cannot be known. */
static bool cover_relative(covering *c, const csn_unix_socket *name)
{
    bool done = false;

    for (size_t i = 0; !done && i < c->count; i++) {
        const char *path =
            csn_arena_printf(c->j->arena, "%s/%s", c->shares[i].host, name->path);
        done = path && cover_at(c, path, name);
    }
    return done;
}

static bool cover_absolute(covering *c, const csn_unix_socket *name)
{
    csn_autofree char *dir = csn_path_dir(name->path);
    char real[PATH_MAX];

    if (!dir || !realpath(dir, real))
        return false;
    const char *path = csn_arena_printf(
        c->j->arena, "%s/%s", strcmp(real, "/") == 0 ? "" : real, csn_path_base(name->path));
    return path && (cover_at(c, path, name) || cover_beside(c, real, name));
}

static int cover_name(void *ctx, const csn_unix_socket *name)
{
    covering *c = ctx;
    bool near = !name->known || may_be_shared(c, name), absolute = name->path[0] == '/';

    if (absolute && !near)
        cover(c->j, c->shares, c->count, name->path);
    else if (!(absolute ? cover_absolute(c, name) : cover_relative(c, name)) && near &&
             name->known && c->lost_count++ < LOST_MAX)
        c->lost[c->lost_count - 1] = name->ino;
    return 0;
}

static void cover_sockets(csn_jail *j, const csn_jail_share *shares, size_t count)
{
    covering c = {.j = j, .shares = shares, .count = count};
    struct stat st;

    c.devs = csn_arena_array(j->arena, count, sizeof(*c.devs));
    for (size_t i = 0; c.devs && i < count; i++)
        c.devs[i] = stat(shares[i].host, &st) == 0 ? st.st_dev : 0;
    (void)csn_unix_sockets_each(cover_name, &c);
    c.seen = 0;
    for (size_t i = 0; c.lost_count > 0 && i < count; i++) {
        csn_autofd int fd = open(shares[i].host, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        c.in = shares[i].host;
        if (fd >= 0)
            (void)csn_tree_walk(fd, search_entry, &c);
    }
}

/* What is not there yet would be made later, by us and seen inside, or inside and taken for the
 * user's own: so it is made now. Only when a share is wide enough to hold it. A share that lies
 * in one of these cannot be covered. It may be read, since it was asked for by name; but what
 * is written there is the root of the next sandbox, who it listens to, and what it may do. */
static csn_status cover_records(csn_jail *j, const csn_jail_share *shares, size_t count,
                                int which, csn_error **err)
{
    csn_autofree char *path = csn_statedir_path(which, NULL);
    char real[PATH_MAX];
    const char *home = getenv("HOME");
    bool wide = false;

    for (size_t i = 0; i < count; i++)
        wide = wide || (home && csn_path_below(home, shares[i].host)) ||
               (path && csn_path_below(path, shares[i].host));
    int fd = wide ? csn_statedir_open(which, NULL, NULL) : -1;
    if (fd >= 0)
        close(fd);
    if (!path || !realpath(path, real))
        return CSN_OK;
    for (size_t i = 0; i < count; i++)
        if (shares[i].writable && csn_path_below(shares[i].host, real))
            return csn_fail(err, CSN_INVALID, "%s %s: caisson keeps its own records there",
                            shares[i].option, shares[i].host);
    cover(j, shares, count, real);
    return CSN_OK;
}

csn_status csn_jail_cover_host(csn_jail *j, const csn_jail_share *shares, size_t count,
                               csn_error **err)
{
    cover_sockets(j, shares, count);
    csn_status st = cover_records(j, shares, count, CSN_DIR_STATE, err);
    if (st == CSN_OK)
        st = cover_records(j, shares, count, CSN_DIR_RUNTIME, err);
    return st < 0 ? st : cover_records(j, shares, count, CSN_DIR_CONFIG, err);
}
