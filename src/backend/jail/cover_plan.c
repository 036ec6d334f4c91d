/* cover_plan.c: plans the mounts that enforce the denials of a policy.
 *
 * Runs when a sandbox is opened, before any of its processes. The config is trusted; the trees
 * may have been written by an agent in an earlier run, so a denied path may lead through a link
 * that the agent made or may replace. What is covered is the file that a path leads to now, and
 * a link at its end: with the link replaced, the next sandbox would cover another file.
 *
 * Invariant: after csn_cover_plan every denial has its mounts in the plan, or waits for its
 * path to appear (missing_ok, patterns), or the plan has failed with the name of the denial. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backend/jail/cover.h"
#include "base/error.h"
#include "base/path.h"

#define PATH_OPS    (CSN_OP_READ | CSN_OP_WRITE | CSN_OP_DELETE)
#define PLANNED_MAX (CSN_MOUNTS_MAX - 16)

typedef csn_jail_shares shares;

/* ---- covering ---- */

uint32_t csn_cover_kind(uint32_t ops, uint32_t *ret_flags)
{
    *ret_flags = ops & CSN_OP_WRITE && !(ops & CSN_OP_READ) ? CSN_MOUNT_RDONLY : 0;
    return ops & CSN_OP_READ ? CSN_MOUNT_MASK : CSN_MOUNT_SELF;
}

/* The operations that the mount refuses, which may be more than the denial names. */
static uint32_t refused_ops(uint32_t ops)
{
    if (ops & CSN_OP_READ)
        return PATH_OPS;
    return ops & CSN_OP_WRITE ? CSN_OP_WRITE | CSN_OP_DELETE : CSN_OP_DELETE;
}

csn_status csn_cover_check(const csn_runtime *rt, const csn_cover *c, const char *to,
                           csn_error **err)
{
    const csn_config *config = rt->config;
    const shares *s = rt->jail->shares;
    const char *const own[] = {"/proc", "/dev", rt->base.path, rt->home.path};
    bool mask = c->ops & CSN_OP_READ;
    const char *lost = NULL;

    for (size_t i = 0; mask && !lost && i < sizeof(own) / sizeof(own[0]); i++)
        lost = csn_path_below(own[i], to) ? own[i] : NULL;
    for (size_t i = 0; !lost && i < s->count; i++) {
        const char *rest = csn_path_below(s->v[i].inside, to);
        lost = rest && *rest && (mask || s->v[i].writable) ? s->v[i].inside : NULL;
    }
    if (lost) {
        csn_status st =
            csn_fail(err, CSN_INVALID, "%s: the sandbox needs %s, which %s", c->label, lost,
                     strcmp(lost, to) == 0 ? "would be covered" : "is inside");
        return csn_error_advise(st, err, "deny single paths below it");
    }
    for (size_t i = 0; i < config->rule_count; i++) {
        const csn_rule *r = &config->rules[i];
        const char *path = r->allow && r->path && (r->ops & refused_ops(c->ops))
                               ? csn_cover_path(rt, r->path)
                               : NULL;
        const char *rest = path ? csn_path_below(path, to) : NULL;
        if (!rest || !*rest)
            continue;
        csn_status st =
            csn_fail(err, CSN_UNSUPPORTED,
                     "%s: rules[%zu] allows %s below it, which a jail cannot do for "
                     "commands",
                     c->label, i, path);
        return csn_error_advise(st, err, "deny single paths, or add \"scope\": \"files\"");
    }
    return CSN_OK;
}

csn_status csn_cover_add_name(csn_runtime *rt, uint32_t cover, const char *path,
                              csn_error **err)
{
    csn_covers *all = rt->jail->covers;
    const size_t step = 16;

    for (size_t i = 0; i < all->name_count; i++)
        if (all->names[i].cover == cover && strcmp(all->names[i].path, path) == 0)
            return CSN_OK;
    if (all->name_count == CSN_COVER_NAMES_MAX)
        return csn_fail(err, CSN_TOO_LARGE, "%s: more than %u denied files",
                        all->v[cover].label, CSN_COVER_NAMES_MAX);
    if (all->name_count % step == 0) {
        csn_cover_name *grown =
            reallocarray(all->names, all->name_count + step, sizeof(*grown));
        if (!grown)
            return csn_fail(err, CSN_NOMEM, "deny");
        all->names = grown;
    }
    all->names[all->name_count++] = (csn_cover_name){.path = path, .cover = cover};
    return CSN_OK;
}

/* Landlock rules below a mask are dropped. */
csn_status csn_cover_at(csn_runtime *rt, uint32_t cover, const char *to, csn_error **err)
{
    csn_jail *j = rt->jail;
    const csn_cover *c = &j->covers->v[cover];
    size_t count = j->mount_count < CSN_MOUNTS_MAX ? j->mount_count : CSN_MOUNTS_MAX;
    uint32_t flags, kind = csn_cover_kind(c->ops, &flags);

    if (!to)
        return csn_fail(err, CSN_NOMEM, "%s", c->label);
    csn_status st = csn_cover_check(rt, c, to, err);
    if (st == CSN_OK)
        st = csn_cover_add_name(rt, cover, to, err);
    if (st < 0)
        return st;
    for (size_t i = 0; i < count; i++) {
        const csn_mount *m = &j->mounts[i];
        if (m->to && m->kind == kind && m->flags == (flags | CSN_MOUNT_OPTIONAL) &&
            strcmp(m->to, to) == 0)
            return CSN_OK; /* another denial covers it */
    }
    for (size_t i = 0; kind == CSN_MOUNT_MASK && i < count; i++)
        if (j->mounts[i].to && csn_path_below(j->mounts[i].to, to))
            j->mounts[i].access = 0;
    /* csn_cover_renew makes the mounts that have no room in the spec. */
    if (count < PLANNED_MAX)
        csn_jail_add(j, kind, flags | CSN_MOUNT_OPTIONAL, 0, NULL, to);
    return CSN_OK;
}

/* What is below a directory can be kept from being removed only by keeping it from being
 * written: Landlock grants the right to remove for a whole tree, and a mount refuses both. */
static csn_status check_delete(const csn_cover *c, const char *real, csn_error **err)
{
    struct stat st;

    if ((c->ops & (CSN_OP_READ | CSN_OP_WRITE)) || stat(real, &st) < 0 || !S_ISDIR(st.st_mode))
        return CSN_OK;
    csn_status failed =
        csn_fail(err, CSN_UNSUPPORTED,
                 "%s: it is a directory, and commands that may write in it cannot be kept from "
                 "removing what it contains",
                 c->label);
    return csn_error_advise(failed, err,
                            "deny write as well, name single files, or add \"scope\": "
                            "\"files\" to bind file calls only");
}

csn_status csn_cover_in_shares(csn_runtime *rt, uint32_t cover, const char *real, bool loose,
                               unsigned *ret_where, csn_error **err)
{
    csn_jail *j = rt->jail;
    const shares *s = j->shares;
    csn_status st = check_delete(&j->covers->v[cover], real, err);

    *ret_where = 0;
    for (size_t i = 0; st == CSN_OK && i < s->count; i++) {
        const char *rest = csn_path_below(real, s->v[i].host);
        if (!rest)
            continue;
        *ret_where = CSN_COVER_OWN;
        if (!loose)
            csn_jail_pin_parents(j, &s->v[i], rest);
        st = csn_cover_at(
            rt, cover,
            csn_arena_printf(j->arena, "%s%s%s", s->v[i].inside, *rest ? "/" : "", rest), err);
    }
    return st;
}

/* ---- one path ---- */

/* Where the path of a denial lies on the host. */
typedef struct place {
    const csn_jail_share *share; /* NULL: in none */
    const char *rest;            /* below the share */
    char text[PATH_MAX];         /* before links are resolved */
    char real[PATH_MAX];
    int error; /* 0, or why there is no real path */
} place;

/* A path inside a share, or else of the host. */
static void find_place(const csn_jail *j, const char *path, place *ret)
{
    const shares *s = j->shares;

    *ret = (place){.error = ENOENT};
    for (size_t i = 0; i < s->count && ret->error != 0; i++) {
        const char *rest = csn_path_below(path, s->v[i].inside);
        if (!rest || snprintf(ret->text, sizeof(ret->text), "%s%s%s", s->v[i].host,
                              *rest ? "/" : "", rest) >= (int)sizeof(ret->text))
            continue;
        ret->share = &s->v[i];
        ret->rest = rest;
        ret->error = realpath(ret->text, ret->real) ? 0 : errno;
    }
    if (ret->error == 0)
        return;
    int inside = ret->error;
    ret->error = realpath(path, ret->real) ? 0 : errno;
    if (ret->error == 0 || !ret->share)
        snprintf(ret->text, sizeof(ret->text), "%s", path);
    else
        ret->error = inside;
    if (ret->error == 0)
        ret->share = NULL;
}

static csn_status missing(const csn_cover *c, const place *p, csn_error **err)
{
    csn_status st = csn_fail(err, CSN_NOT_FOUND, "%s: %s", c->label, strerrordesc_np(p->error));

    return strcmp(c->list, "config.deny") == 0
               ? csn_error_advise(st, err,
                                  "--deny-missing-ok denies a path that may not exist "
                                  "yet")
               : csn_error_advise(st, err, "add \"scope\": \"files\" to bind file calls only");
}

static bool is_shared(const csn_jail *j, const char *real)
{
    for (size_t i = 0; i < j->shares->count; i++)
        if (csn_path_below(real, j->shares->v[i].host))
            return true;
    return false;
}

/* Removes `.`, `..` and doubled slashes of an absolute path, as text. */
static void clean_text(char *path)
{
    char *to = path;

    for (const char *p = path; *p;) {
        p += strspn(p, "/");
        size_t len = strcspn(p, "/");
        if (len == 2 && memcmp(p, "..", 2) == 0) {
            while (to > path && *--to != '/')
                ;
        } else if (len > 0 && !(len == 1 && *p == '.')) {
            *to++ = '/';
            memmove(to, p, len);
            to += len;
        }
        p += len;
    }
    *to = '\0';
}

/* True if the path is a link that leads straight to the file, or out of all shares: no other
 * link is on the way. */
static bool is_plain_link(const csn_jail *j, const place *p)
{
    csn_autofree char *dir = csn_path_dir(p->text);
    csn_autofree char *real_dir = dir ? realpath(dir, NULL) : NULL, *hop = NULL;
    char next[PATH_MAX];
    ssize_t n = readlink(p->text, next, sizeof(next) - 1);

    if (n <= 0 || !real_dir || strcmp(dir, real_dir) != 0)
        return false;
    next[n] = '\0';
    if (asprintf(&hop, "%s/%s", next[0] == '/' ? "" : dir, next) < 0) {
        hop = NULL;
        return false;
    }
    clean_text(hop);
    return strcmp(hop, p->real) == 0 || !is_shared(j, p->real);
}

/* A command could replace a link in a writable share, and the next sandbox would cover another
 * file. A mask can be mounted on a link at the end of the path; any other link is refused. */
static csn_status check_links(csn_runtime *rt, uint32_t cover, const place *p, csn_error **err)
{
    csn_jail *j = rt->jail;
    const csn_cover *c = &j->covers->v[cover];

    if (!p->share || !p->share->writable || !*p->rest || strcmp(p->text, p->real) == 0)
        return CSN_OK;
    if ((c->ops & CSN_OP_READ) && is_plain_link(j, p)) {
        csn_jail_pin_parents(j, p->share, p->rest);
        return csn_cover_at(
            rt, cover, csn_arena_printf(j->arena, "%s/%s", p->share->inside, p->rest), err);
    }
    csn_status st = csn_fail(
        err, CSN_INVALID, "%s: it leads through a link that commands could replace", c->label);
    return csn_error_advise(st, err, "name what it leads to: %s", p->real);
}

/* Waits for a path that does not exist yet. A link that leads nowhere is covered now. */
static csn_status await_path(csn_runtime *rt, uint32_t cover, const place *p, csn_error **err)
{
    csn_jail *j = rt->jail;
    struct stat st;

    if (!p->share)
        return CSN_OK;
    csn_jail_pin_parents(j, p->share, p->rest);
    if (lstat(p->text, &st) < 0)
        return CSN_OK;
    return csn_cover_at(rt, cover,
                        csn_arena_printf(j->arena, "%s/%s", p->share->inside, p->rest), err);
}

/* Covers the file in every share that contains it, and pins the directories above. */
static csn_status cover_path(csn_runtime *rt, uint32_t cover, csn_error **err)
{
    csn_jail *j = rt->jail;
    const csn_cover *c = &j->covers->v[cover];
    unsigned where = 0;
    place p;

    find_place(j, c->path, &p);
    bool absent = p.error == ENOENT || p.error == ENOTDIR;
    if (absent)
        return c->missing_ok ? await_path(rt, cover, &p, err) : missing(c, &p, err);
    csn_status st = csn_cover_check(rt, c, c->path, err);
    if (st == CSN_OK && p.error == 0)
        st = check_links(rt, cover, &p, err);
    if (st == CSN_OK && p.error == 0)
        st = csn_cover_real(rt, cover, p.real, false, &where, err);
    if (st == CSN_OK && p.error == 0)
        st = csn_cover_links_collect(rt, cover, p.real, where != 0, err);
    if (st < 0 || (where & CSN_COVER_OWN))
        return st;
    /* Not in a share: the path as given, and the target of its links. */
    st = csn_cover_at(rt, cover, c->path, err);
    if (st == CSN_OK && p.error == 0 && strcmp(p.real, c->path) != 0)
        st = csn_cover_at(rt, cover, csn_arena_strdup(j->arena, p.real), err);
    return st;
}

csn_status csn_cover_plan(csn_runtime *rt, csn_error **err)
{
    csn_status st = csn_cover_read(rt, err);
    csn_covers *all = rt->jail->covers;

    for (uint32_t i = 0; st == CSN_OK && i < all->count; i++)
        st = all->v[i].glob ? CSN_OK : cover_path(rt, i, err);
    if (st == CSN_OK)
        st = csn_cover_keys_plan(rt, err);
    if (st == CSN_OK)
        st = csn_cover_make_rules(rt, err);
    if (st < 0 || all->count == 0)
        return st;
    st = csn_cover_find(rt, err);
    if (st == CSN_OK)
        st = csn_cover_links_find(rt, err);
    csn_mount_table_release(&all->mounts);
    return st < 0 ? st : csn_cover_make_rules(rt, err); /* with the other names */
}
