/* cow_mount.c: the mounts of a jail's copy-on-write workspace (runtime/cow.h). */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backend/jail/jail.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/path.h"
#include "layers/commit.h"
#include "os/beneath.h"
#include "os/landlock.h"
#include "os/overlay.h"
#include "runtime/cow.h"

/* ---- options ---- */

csn_status csn_jail_cow_check(const csn_runtime *rt, csn_error **err)
{
    const csn_jail_shares *s = rt->jail->shares;
    const csn_jail_share *w = &s->v[0];
    csn_status st = csn_cow_check_image(rt, w->cow, err);

    for (size_t i = 1; st == CSN_OK && i < s->count; i++)
        if (s->v[i].cow)
            st = csn_fail(err, CSN_UNSUPPORTED,
                          "workspace %s:cow: only the first workspace can be copy-on-write",
                          s->v[i].host);
    if (st < 0 || !w->cow)
        return st;
    if (rt->level != CSN_LEVEL_NAMESPACES || rt->jail->weaker)
        rt->jail->cow_copy = true;
    if (rt->jail->cow_copy && rt->jail->root && rt->jail->weaker) {
        st = csn_fail(err, CSN_UNAVAILABLE,
                      "workspace %s: root's copy-on-write workspace needs id-mapped mounts: %s",
                      w->host, rt->jail->weaker);
        return csn_error_advise(st, err, "run caisson as the user who owns the directory");
    }
    if (!rt->jail->cow_copy && strrchr(w->inside, '/') == w->inside) {
        st = csn_fail(err, CSN_INVALID,
                      "workspace %s: a copy-on-write workspace cannot be at %s, in the root "
                      "directory",
                      w->host, w->inside);
        return csn_error_advise(st, err, "--workspace %s:/work%s:cow", w->host, w->inside);
    }
    return CSN_OK;
}

csn_status csn_jail_cow_recover(const csn_runtime *rt, csn_error **err)
{
    const csn_jail_shares *s = rt->jail->shares;
    csn_status st = CSN_OK;

    if (rt->cow)
        return csn_commit_recover_host(rt->cow->host, err);
    for (size_t i = 0; st == CSN_OK && i < s->count; i++)
        if (i == 0 || (s->v[i].option && strcmp(s->v[i].option, "workspace") == 0))
            st = csn_commit_recover_host(s->v[i].host, err);
    return st;
}

/* ---- mounts ---- */

void csn_jail_cow_plan(csn_jail *j, const csn_jail_share *share)
{
    const csn_cow *c = j->cow;
    const char *slash = strrchr(share->inside, '/');
    const char *parent =
        csn_arena_printf(j->arena, "%.*s", (int)(slash - share->inside), share->inside);
    const char *base = csn_arena_printf(j->arena, "%s/" CSN_OVERLAY_BASE, share->inside);

    j->cow_layers = (csn_jail_share){.option = "layers of the workspace",
                                     .host = c->path,
                                     .inside = share->inside,
                                     .writable = true};
    j->cow_base =
        (csn_jail_share){.option = share->option, .host = share->host, .inside = base};
    csn_jail_add(j, CSN_MOUNT_BIND, CSN_MOUNT_TRUSTED, 0, c->path, share->inside);
    if (j->idmapped)
        csn_jail_give(j, &j->cow_layers);
    csn_jail_add(j, CSN_MOUNT_BIND, CSN_MOUNT_RDONLY, 0, share->host, base);
    if (j->idmapped)
        csn_jail_give(j, &j->cow_base);
    csn_jail_add(j, CSN_MOUNT_OVERLAY, 0, 0, c->names, share->inside);
    csn_jail_add(j, CSN_MOUNT_DIR, 0, CSN_LL_READ | CSN_LL_EXEC | CSN_LL_WRITE, NULL, parent);
}

/* ---- another overlay ---- */

/* Mounts that the overlay had inside and the next one must have. */
static const csn_mount *covers_inside(const csn_jail *j, size_t *ret)
{
    const char *place = j->shares->v[0].inside;
    csn_mount *list = calloc(j->mount_count + 1, sizeof(*list));

    *ret = 0;
    for (size_t i = 0; list && i < j->mount_count; i++) {
        const csn_mount *m = &j->mounts[i];
        const char *below = csn_path_below(m->to, place);
        if (below && *below && (m->kind == CSN_MOUNT_MASK || m->kind == CSN_MOUNT_SELF))
            list[(*ret)++] = *m;
    }
    return list;
}

static csn_status reopen_base(csn_runtime *rt, csn_error **err)
{
    int fd =
        csn_beneath_open(rt->root.fd, rt->base.path, O_PATH | O_DIRECTORY, CSN_BENEATH_ROOTED);

    if (fd < 0)
        return csn_fail_errno(err, -fd, "workspace");
    int rc = dup3(fd, rt->base.fd, O_CLOEXEC) < 0 ? -errno : 0; /* threads may be using it */
    close(fd);
    return rc < 0 ? csn_fail_errno(err, -rc, "workspace") : CSN_OK;
}

csn_status csn_jail_cow_change(csn_runtime *rt, int tree, const char *names, csn_error **err)
{
    csn_jail *j = rt->jail;
    csn_overlay_switch s = {.pid = (pid_t)rt->keeper_pid,
                            .pidfd = rt->keeper_pidfd,
                            .tree = tree,
                            .names = names,
                            .place = j->shares->v[0].inside,
                            .uid = j->root ? j->disk_uid : 0,
                            .gid = j->root ? j->disk_gid : 0};
    csn_autofree csn_mount *cover = (csn_mount *)covers_inside(j, &s.cover_count);
    int lost = 0;

    if (!cover)
        return csn_fail(err, CSN_NOMEM, "layers");
    s.cover = cover;
    int rc = csn_overlay_replace(&s, &lost);
    if (rc < 0)
        return csn_fail_errno(err, -rc, "workspace: change its layers");
    return reopen_base(rt, err);
}

/* ---- making ---- */

csn_status csn_jail_cow_create(csn_runtime *rt, csn_error **err)
{
    csn_jail *j = rt->jail;
    csn_jail_share *w = &j->shares->v[0];

    if (!w->cow)
        return CSN_OK;
    csn_status st = csn_cow_create(rt, w->host, j->cow_copy, err);
    if (st < 0)
        return st;
    j->cow = rt->cow;
    rt->cow->change_mount = csn_jail_cow_change;
    if (j->cow_copy)
        w->host = rt->cow->copy;
    return CSN_OK;
}

csn_status csn_jail_cow_find(csn_runtime *rt, csn_error **err)
{
    csn_status st = csn_cow_find(rt, err);

    if (st < 0 || !rt->cow)
        return st;
    rt->jail->cow = rt->cow;
    rt->jail->cow_copy = rt->cow->copy != NULL;
    rt->cow->change_mount = csn_jail_cow_change;
    return CSN_OK;
}
