/* cover_aliases.c: covers what is denied where a bind mount of the host shows it again.
 *
 * Shares contain the mounts of the host below them, so a denied file may have a second path in
 * a share. The table of mounts is read once for each sandbox that denies something. */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "backend/jail/cover.h"
#include "base/error.h"

typedef struct aliases {
    csn_runtime *rt;
    uint32_t cover;
    bool loose;
    unsigned where;
    csn_status st;
    csn_error **err;
} aliases;

/* Another mount may hide the path. */
static bool is_same(const char *a, const char *b)
{
    struct stat x, y;

    return lstat(a, &x) == 0 && lstat(b, &y) == 0 && x.st_dev == y.st_dev &&
           x.st_ino == y.st_ino;
}

static int cover_alias(void *ctx, const char *alias, const char *same)
{
    aliases *a = ctx;
    unsigned where = 0;

    if (!is_same(alias, same))
        return 0;
    a->st = csn_cover_in_shares(a->rt, a->cover, alias, a->loose, &where, a->err);
    a->where |= where ? CSN_COVER_ALIAS : 0;
    return a->st < 0 ? -ECANCELED : 0;
}

csn_status csn_cover_real(csn_runtime *rt, uint32_t cover, const char *real, bool loose,
                          unsigned *ret_where, csn_error **err)
{
    csn_covers *all = rt->jail->covers;
    aliases a = {.rt = rt, .cover = cover, .loose = loose, .err = err};
    int rc = all->mounts.v ? 0 : csn_mount_table_read(&all->mounts);

    a.st = rc < 0 ? csn_fail_errno(err, -rc, "%s: table of mounts", all->v[cover].label)
                  : csn_cover_in_shares(rt, cover, real, loose, &a.where, err);
    if (a.st < 0)
        return a.st;
    rc = csn_mount_table_aliases(&all->mounts, real, cover_alias, &a);
    if (rc < 0 && a.st == CSN_OK)
        a.st = csn_fail_errno(err, -rc, "%s", all->v[cover].label);
    *ret_where = a.where;
    return a.st;
}
