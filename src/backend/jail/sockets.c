/* sockets.c: what of the host's own running must not be reached through a share.
 *
 * Called by plan.c when the shares are known. Two things can lie in a directory that is shared:
 * a unix socket on which a program of the host listens, and caisson's own records. No wall but
 * the mounts can keep a command from connecting to a socket by its name: network namespaces do
 * not divide those, and Landlock does not see them. So they are covered. The kernel's list of
 * bound sockets tells which there are, without a walk through the tree; one that is bound
 * later, or by a container with a network of its own, is not in it. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backend/jail/jail.h"
#include "base/path.h"
#include "os/statedir.h"
#include "os/unixname.h"

#define COVERED_MAX 64u /* there is an end to what can be mounted */

/* Covers `path` of the host wherever a share shows it. How often it did. */
static size_t cover(csn_jail *j, const csn_jail_share *shares, size_t count, const char *path)
{
    size_t n = 0;

    for (size_t i = 0; i < count; i++) {
        const char *rest = csn_path_below(path, shares[i].host);
        if (!rest || !*rest)
            continue;
        csn_jail_add(j, CSN_MOUNT_MASK, CSN_MOUNT_OPTIONAL, 0, NULL,
                     csn_arena_printf(j->arena, "%s/%s", shares[i].inside, rest));
        n++;
    }
    return n;
}

/* Bound by a relative name: below which share, if any, cannot be known, so all are tried. */
static size_t cover_relative(csn_jail *j, const csn_jail_share *shares, size_t count,
                             const char *name)
{
    struct stat st;
    size_t n = 0;

    for (size_t i = 0; i < count; i++) {
        const char *path = csn_arena_printf(j->arena, "%s/%s", shares[i].host, name);
        if (path && lstat(path, &st) == 0 && S_ISSOCK(st.st_mode))
            n += cover(j, shares, count, path);
    }
    return n;
}

typedef struct covering {
    csn_jail *j;
    const csn_jail_share *shares;
    size_t count, covered;
} covering;

static int cover_name(void *ctx, const char *name)
{
    covering *c = ctx;

    c->covered += name[0] == '/' ? cover(c->j, c->shares, c->count, name)
                                 : cover_relative(c->j, c->shares, c->count, name);
    return c->covered >= COVERED_MAX;
}

static void cover_sockets(csn_jail *j, const csn_jail_share *shares, size_t count)
{
    covering c = {.j = j, .shares = shares, .count = count};

    (void)csn_unix_names(cover_name, &c);
}

/* Records that are not there yet would be made, and seen, later: so they are made now. Only
 * when a share is wide enough to hold them. */
static void cover_records(csn_jail *j, const csn_jail_share *shares, size_t count, int which)
{
    csn_autofree char *path = NULL;
    char real[PATH_MAX];
    const char *home = getenv("HOME");
    bool wide = false;

    for (size_t i = 0; home && i < count; i++)
        wide = wide || csn_path_below(home, shares[i].host) != NULL;
    csn_autofd int fd =
        wide ? csn_statedir_open(which, NULL, &path) : csn_statedir_find(which, NULL, &path);
    if (fd >= 0 && path && realpath(path, real))
        (void)cover(j, shares, count, real);
}

void csn_jail_cover_host(csn_jail *j, const csn_jail_share *shares, size_t count)
{
    cover_sockets(j, shares, count);
    cover_records(j, shares, count, CSN_DIR_STATE);
    cover_records(j, shares, count, CSN_DIR_RUNTIME);
}
