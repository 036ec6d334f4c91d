/* cover_later.c: keeps denials in force while a sandbox lives.
 *
 * Before each command, each covered path is checked: a program of the host that replaces a file
 * by renaming another one over it removes the mount inside. What matches a pattern, or a path
 * that may be missing at open, is covered when it appears. The mounts are made in the jail's
 * mount namespace by a short-lived process (os/mount_inside.h). If one cannot be made, the
 * command is refused.
 *
 * A command that already runs can read what the host creates until the next command starts. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "backend/jail/cover.h"
#include "base/error.h"
#include "base/path.h"
#include "os/beneath.h"
#include "os/mount_inside.h"

#ifndef STATX_ATTR_MOUNT_ROOT
#define STATX_ATTR_MOUNT_ROOT 0x2000
#endif

/* What lacks its mount. */
typedef struct bare {
    csn_runtime *rt;
    csn_mount *list; /* malloc'd */
    uint32_t *cover; /* malloc'd: the denial of each */
    size_t count;
} bare;

typedef enum cover_state { ABSENT, COVERED, BARE } cover_state;

/* Looks at a path inside without following a link at its end. */
static cover_state state_of(const csn_runtime *rt, const char *path, uint32_t ops,
                            struct statx *ret)
{
    csn_autofd int fd =
        csn_beneath_open(rt->root.fd, path, O_PATH | O_NOFOLLOW, CSN_BENEATH_ROOTED);
    struct statvfs fs;

    if (fd < 0) /* behind a mask: EACCES */
        return fd == -ENOENT || fd == -ENOTDIR || fd == -EACCES || fd == -ELOOP ? ABSENT : BARE;
    if (statx(fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS, ret) < 0)
        return BARE;
    if (!(ret->stx_attributes & STATX_ATTR_MOUNT_ROOT))
        return BARE;
    if (ops & CSN_OP_READ)
        return ret->stx_mode & 0777 ? BARE : COVERED;
    if (ops & CSN_OP_WRITE)
        return fstatvfs(fd, &fs) == 0 && (fs.f_flag & ST_RDONLY) ? COVERED : BARE;
    return COVERED;
}

static csn_status refuse(const csn_cover *c, const char *path, const char *why, csn_error **err)
{
    csn_autofree char *shown = csn_path_printable(path);
    csn_status st = csn_fail(err, CSN_UNAVAILABLE, "%s: %s cannot be covered: %s", c->label,
                             shown ? shown : "a path", why);

    return csn_error_advise(st, err, "remove it, or open a new sandbox");
}

static csn_status add_bare(bare *b, uint32_t cover, const char *path, const struct statx *st,
                           csn_error **err)
{
    csn_jail *j = b->rt->jail;
    const csn_cover *c = &j->covers->v[cover];
    uint32_t flags, kind = csn_cover_kind(c->ops, &flags);
    const char *to = csn_arena_strdup(j->arena, path);
    csn_mount *list = reallocarray(b->list, b->count + 1, sizeof(*list));

    b->list = list ? list : b->list;
    uint32_t *covers = reallocarray(b->cover, b->count + 1, sizeof(*covers));
    b->cover = covers ? covers : b->cover;
    if (!to || !list || !covers)
        return csn_fail(err, CSN_NOMEM, "deny");
    if (S_ISDIR(st->stx_mode) && !(c->ops & (CSN_OP_READ | CSN_OP_WRITE)))
        return refuse(c, path, "it is a directory", err);
    if (S_ISREG(st->stx_mode) && st->stx_nlink > 1 && !c->key &&
        (c->ops & (CSN_OP_READ | CSN_OP_WRITE)))
        return refuse(c, path, "it has other names (hard links)", err);
    csn_status ok = csn_cover_check(b->rt, c, path, err);
    if (ok == CSN_OK)
        ok = csn_cover_add_name(b->rt, cover, to, err);
    if (ok < 0)
        return ok;
    b->list[b->count] = (csn_mount){.kind = kind, .flags = flags, .fd = -1, .to = to};
    b->cover[b->count++] = cover;
    return CSN_OK;
}

static csn_status check_path(bare *b, uint32_t cover, const char *path, csn_error **err)
{
    struct statx st = {0};

    return state_of(b->rt, path, b->rt->jail->covers->v[cover].ops, &st) == BARE
               ? add_bare(b, cover, path, &st, err)
               : CSN_OK;
}

/* A path that may be missing is covered, and what it leads to, once they exist. */
static csn_status check_awaited(bare *b, uint32_t cover, csn_error **err)
{
    const csn_cover *c = &b->rt->jail->covers->v[cover];
    csn_status st = check_path(b, cover, c->path, err);
    csn_autofd int fd =
        st < 0 ? -1 : csn_beneath_open(b->rt->root.fd, c->path, O_PATH, CSN_BENEATH_ROOTED);
    csn_autofree char *real = fd < 0 ? NULL : csn_runtime_fd_path(fd);

    return real && strcmp(real, c->path) != 0 ? check_path(b, cover, real, err) : st;
}

static csn_status check_match(void *ctx, uint32_t cover, size_t share, const char *path,
                              const char *inside, csn_error **err)
{
    (void)share;
    (void)path;
    return check_path(ctx, cover, inside, err);
}

static csn_status check_all(bare *b, csn_error **err)
{
    csn_covers *all = b->rt->jail->covers;
    size_t names = all->name_count;
    csn_status st = CSN_OK;
    bool patterns = false;

    for (size_t i = 0; st == CSN_OK && i < names; i++)
        st = check_path(b, all->names[i].cover, all->names[i].path, err);
    for (uint32_t i = 0; st == CSN_OK && i < all->count; i++) {
        patterns = patterns || all->v[i].glob;
        if (all->v[i].missing_ok && !all->v[i].glob)
            st = check_awaited(b, i, err);
    }
    return st < 0 || !patterns ? st
                               : csn_cover_search(b->rt, b->rt->root.fd, check_match, b, err);
}

static csn_status mount_all(const bare *b, csn_error **err)
{
    const csn_runtime *rt = b->rt;
    size_t at = 0;
    int rc = b->count == 0 ? 0
                           : csn_mount_inside((pid_t)rt->keeper_pid, rt->keeper_pidfd, b->list,
                                              b->count, &at);

    if (rc == 0)
        return CSN_OK;
    at = at < b->count ? at : 0;
    return refuse(&rt->jail->covers->v[b->cover[at]], b->list[at].to, strerrordesc_np(-rc),
                  err);
}

/* ---- what a command created ---- */

typedef struct report {
    csn_runtime *rt;
    const csn_deny_sink *denials;
} report;

static csn_status report_match(void *ctx, uint32_t cover, size_t share, const char *path,
                               const char *inside, csn_error **err)
{
    const report *r = ctx;
    const csn_cover *c = &r->rt->jail->covers->v[cover];
    struct statx st = {0};
    char rule[256], source[48];

    (void)share;
    (void)path;
    (void)err;
    if (state_of(r->rt, inside, c->ops, &st) != BARE)
        return CSN_OK;
    snprintf(rule, sizeof(rule), "%s", c->label);
    snprintf(source, sizeof(source), "%s[%ld]", c->list, c->index);
    const csn_denial d = {.op = "write",
                          .target = inside,
                          .resolved = inside,
                          .rule = rule,
                          .source = source,
                          .hint = "later commands cannot access it; give it another name"};
    r->denials->tell(r->denials->ctx, &d);
    return CSN_OK;
}

void csn_cover_report(csn_runtime *rt, const csn_deny_sink *denials)
{
    csn_covers *all = rt->jail->covers;
    const report r = {.rt = rt, .denials = denials};
    bool patterns = false;

    for (size_t i = 0; all && i < all->count; i++)
        patterns = patterns || all->v[i].glob;
    if (!patterns || !denials || !denials->tell)
        return;
    pthread_mutex_lock(&all->lock);
    (void)csn_cover_search(rt, rt->root.fd, report_match, (void *)(uintptr_t)&r, NULL);
    pthread_mutex_unlock(&all->lock);
}

csn_status csn_cover_renew(csn_runtime *rt, csn_error **err)
{
    csn_covers *all = rt->jail->covers;
    bare b = {.rt = rt};

    if (!all || all->count == 0)
        return CSN_OK;
    pthread_mutex_lock(&all->lock);
    csn_status st = check_all(&b, err);
    if (st == CSN_OK)
        st = mount_all(&b, err);
    pthread_mutex_unlock(&all->lock);
    free(b.list);
    free(b.cover);
    return st;
}
