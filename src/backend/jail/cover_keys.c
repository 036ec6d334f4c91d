/* cover_keys.c: hides the keys of the user's home from a sandbox that shares the home.
 *
 * If a share contains a home, or a part of one, the places in it that hold keys
 * (policy/key_places.h) are covered like a denied path. Homes are those of HOME, of the
 * caller's entry in the user database and, for a root caller, of the owner of the workspace,
 * whose files commands use as their own. A place is shown if a share is that place, or a rule
 * of the policy allows reading it. If a share is inside of a place, what lies beside the share
 * is covered instead.
 *
 * Only the names of the table are looked up: other hard links of a key are not found. A name
 * that does not exist is not covered, so a command may create it; the next sandbox hides it.
 * An earlier sandbox may have made any link here. The place that a link leads to is covered as
 * well, and the links on the way cannot be replaced by commands. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backend/jail/cover.h"
#include "base/error.h"
#include "base/path.h"
#include "base/strv.h"
#include "policy/key_places.h"

#define HOMES_MAX   3u
#define BESIDES_MAX 512u /* entries beside a share inside of a place */
#define PATH_OPS    (CSN_OP_READ | CSN_OP_WRITE | CSN_OP_DELETE)
#define SOURCE      "keys of the home"

typedef csn_jail_shares shares;

typedef struct keys {
    csn_runtime *rt;
    csn_arena *arena;
    char *homes[HOMES_MAX]; /* resolved */
    size_t home_count;
    const char **named; /* paths of the host that options or rules name */
    size_t named_count;
    size_t besides;
} keys;

/* ---- the homes ---- */

static void add_home(keys *k, const char *home)
{
    char real[PATH_MAX];

    if (!home || home[0] != '/' || !realpath(home, real))
        return;
    for (size_t i = 0; i < k->home_count; i++)
        if (strcmp(k->homes[i], real) == 0)
            return;
    k->homes[k->home_count] = csn_arena_strdup(k->arena, real);
    k->home_count += k->homes[k->home_count] != NULL;
}

static void find_homes(keys *k)
{
    csn_jail *j = k->rt->jail;
    const char *home = getenv("HOME"), *listed = csn_jail_listed_home(j, geteuid());

    add_home(k, home);
    if (listed && !(home && strcmp(home, listed) == 0))
        add_home(k, listed);
    if (j->root && j->disk_uid != geteuid())
        add_home(k, csn_jail_listed_home(j, j->disk_uid));
}

/* True if some share has the place `row` of the home, and more than only that. */
static bool is_shared(const keys *k, const char *home, const char *row)
{
    const shares *s = k->rt->jail->shares;

    for (size_t i = 0; i < s->count; i++) {
        const char *rest = csn_path_below(s->v[i].host, home);
        size_t len = rest ? strlen(rest) : 0;
        if (csn_path_below(home, s->v[i].host) ||
            (len > 0 && strncmp(row, rest, len) == 0 && row[len] == '/'))
            return true;
    }
    return false;
}

/* Compares a row only if a share is inside of a home. */
static bool is_any_shared(const keys *k)
{
    const shares *s = k->rt->jail->shares;

    for (size_t i = 0; i < k->home_count * s->count; i++) {
        const char *home = k->homes[i / s->count], *share = s->v[i % s->count].host;
        if (csn_path_below(home, share))
            return true;
        for (const csn_key_place *p = csn_key_places; csn_path_below(share, home) && p->path;
             p++)
            if (is_shared(k, home, p->path))
                return true;
    }
    return false;
}

/* ---- what the user has named ---- */

/* The path of the host that a path inside of a share has; NULL: not in a share. */
static const char *host_path(const keys *k, const char *inside)
{
    const shares *s = k->rt->jail->shares;

    for (size_t i = 0; inside && i < s->count; i++) {
        const char *rest = csn_path_below(inside, s->v[i].inside);
        if (rest)
            return csn_arena_printf(k->arena, "%s%s%s", s->v[i].host, *rest ? "/" : "", rest);
    }
    return NULL;
}

static void add_named(keys *k, const char *path)
{
    char real[PATH_MAX];
    const char *host = path && realpath(path, real) ? csn_arena_strdup(k->arena, real) : NULL;

    if (host)
        k->named[k->named_count++] = host;
}

static csn_status find_named(keys *k, csn_error **err)
{
    const csn_config *c = k->rt->config;
    const shares *s = k->rt->jail->shares;

    k->named = csn_arena_array(k->arena, s->count + csn_strv_len(c->write) + c->rule_count + 1,
                               sizeof(*k->named));
    if (!k->named)
        return csn_fail(err, CSN_NOMEM, SOURCE);
    for (size_t i = 0; i < s->count; i++)
        k->named[k->named_count++] = s->v[i].host;
    /* `write` of a protected place (.ssh) is an exception, not a share. */
    for (size_t i = 0; c->write && c->write[i]; i++)
        add_named(k, host_path(k, csn_cover_path(k->rt, c->write[i])));
    for (size_t i = 0; i < c->rule_count; i++) {
        const csn_rule *r = &c->rules[i];
        bool shows = r->allow && (r->ops & CSN_OP_READ) && !(r->ops & CSN_RULE_FILES);
        if (shows && r->path)
            add_named(k, host_path(k, csn_cover_path(k->rt, r->path)));
    }
    return CSN_OK;
}

typedef enum naming { NOT_NAMED, NAMED, NAMED_INSIDE } naming;

static naming is_named(const keys *k, const char *real)
{
    naming n = NOT_NAMED;

    for (size_t i = 0; i < k->named_count; i++) {
        const char *rest = csn_path_below(k->named[i], real);
        if (rest && !*rest)
            return NAMED;
        n = rest ? NAMED_INSIDE : n;
    }
    return n;
}

/* ---- covering ---- */

static csn_status cover_besides(keys *k, uint32_t cover, const char *dir, csn_error **err);

/* Covers a path of the host without links, except for what is named in it. */
static csn_status cover_host(keys *k, uint32_t cover, const char *path, csn_error **err)
{
    unsigned where = 0;

    switch (is_named(k, path)) {
    case NAMED:
        return CSN_OK;
    case NAMED_INSIDE:
        return cover_besides(k, cover, path, err);
    case NOT_NAMED:
        break;
    }
    return csn_cover_real(k->rt, cover, path, false, &where, err);
}

static csn_status cover_besides(keys *k, uint32_t cover, const char *dir, csn_error **err)
{
    const char *label = k->rt->jail->covers->v[cover].label;
    DIR *d = opendir(dir);
    csn_status st = d ? CSN_OK : csn_fail_errno(err, errno, "%s: %s", label, dir);
    const struct dirent *e;

    while (st == CSN_OK && (errno = 0, e = readdir(d))) {
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
            continue;
        const char *path = csn_arena_printf(k->arena, "%s/%s", dir, e->d_name);
        if (!path)
            st = csn_fail(err, CSN_NOMEM, "%s", label);
        else if (k->besides++ == BESIDES_MAX)
            st = csn_fail(err, CSN_TOO_LARGE, "%s: more than %u files are beside a share in it",
                          label, BESIDES_MAX);
        else
            st = cover_host(k, cover, path, err);
    }
    if (st == CSN_OK && errno != 0)
        st = csn_fail_errno(err, errno, "%s: %s", label, dir);
    if (d)
        closedir(d);
    return st;
}

/* Keeps commands from replacing a link on the way to a place. `path`: of the host, without
 * links above its end. */
static void pin_link(const keys *k, const char *path)
{
    csn_jail *j = k->rt->jail;

    for (size_t i = 0; i < j->shares->count; i++) {
        const csn_jail_share *s = &j->shares->v[i];
        const char *rest = csn_path_below(path, s->host);
        if (!rest || !*rest || !s->writable)
            continue;
        csn_jail_pin_parents(j, s, rest);
        csn_jail_add(j, CSN_MOUNT_SELF, CSN_MOUNT_OPTIONAL | CSN_MOUNT_NOFOLLOW, 0, NULL,
                     csn_arena_printf(j->arena, "%s/%s", s->inside, rest));
    }
}

/* Handles the links on the way to the place: the last component is covered, others are
 * pinned. */
static csn_status cover_links(keys *k, uint32_t cover, const char *home, const char *row,
                              csn_error **err)
{
    char at[PATH_MAX], next[PATH_MAX];
    csn_status st = CSN_OK;

    snprintf(at, sizeof(at), "%s", home);
    for (const char *part = row; st == CSN_OK && *part; part += strspn(part, "/")) {
        size_t len = strcspn(part, "/");
        struct stat info;
        if (snprintf(next, sizeof(next), "%s/%.*s", strcmp(at, "/") == 0 ? "" : at, (int)len,
                     part) >= (int)sizeof(next) ||
            lstat(next, &info) < 0)
            break;
        part += len;
        if (S_ISLNK(info.st_mode) && *part)
            pin_link(k, next);
        else if (S_ISLNK(info.st_mode))
            st = cover_host(k, cover, next, err);
        if (!realpath(next, at))
            break;
    }
    return st;
}

static csn_status cover_row(keys *k, uint32_t cover, const char *home, const char *row,
                            csn_error **err)
{
    char path[PATH_MAX], real[PATH_MAX];
    struct stat st;

    if (!is_shared(k, home, row) ||
        snprintf(path, sizeof(path), "%s/%s", strcmp(home, "/") == 0 ? "" : home, row) >=
            (int)sizeof(path) ||
        lstat(path, &st) < 0 || !realpath(path, real))
        return CSN_OK;
    if (strcmp(path, real) != 0 && is_named(k, real) == NAMED)
        return CSN_OK; /* the link may stay too */
    csn_status ok = strcmp(path, real) == 0 ? CSN_OK : cover_links(k, cover, home, row, err);
    return ok < 0 ? ok : cover_host(k, cover, real, err);
}

csn_status csn_cover_keys_read(csn_runtime *rt, csn_error **err)
{
    csn_covers *all = rt->jail->covers;
    csn_arena *a = rt->jail->arena;

    if (all->keys)
        return CSN_OK;
    csn_cover *v = csn_arena_array(a, all->count + csn_key_place_count(), sizeof(*v));
    if (!v)
        return csn_fail(err, CSN_NOMEM, SOURCE);
    if (all->count > 0)
        memcpy(v, all->v, all->count * sizeof(*v));
    all->first_key = (uint32_t)all->count;
    for (const csn_key_place *p = csn_key_places; p->path; p++) {
        const csn_cover one = {.label = csn_arena_printf(a, "keys of the home: %s", p->path),
                               .word = "hide",
                               .list = csn_arena_printf(a, SOURCE ": %s", p->why),
                               .index = -1,
                               .ops = PATH_OPS,
                               .key = p->path};
        if (!one.label || !one.list)
            return csn_fail(err, CSN_NOMEM, SOURCE);
        v[all->first_key + (size_t)(p - csn_key_places)] = one;
    }
    all->v = v;
    all->count += csn_key_place_count();
    all->keys = true;
    return CSN_OK;
}

bool csn_cover_keys_shared(csn_runtime *rt)
{
    keys k = {.rt = rt, .arena = rt->jail->arena};

    find_homes(&k);
    return is_any_shared(&k);
}

csn_status csn_cover_keys_plan(csn_runtime *rt, csn_error **err)
{
    keys k = {.rt = rt, .arena = rt->jail->arena};

    find_homes(&k);
    if (!is_any_shared(&k))
        return CSN_OK;
    csn_status st = find_named(&k, err);
    if (st == CSN_OK)
        st = csn_cover_keys_read(rt, err);
    for (size_t i = 0; st == CSN_OK && i < k.home_count; i++)
        for (uint32_t row = 0; st == CSN_OK && csn_key_places[row].path; row++)
            st = cover_row(&k, rt->jail->covers->first_key + row, k.homes[i],
                           csn_key_places[row].path, err);
    return st < 0 ? st : csn_cover_keys_describe(rt, err);
}

csn_status csn_cover_keys_describe(csn_runtime *rt, csn_error **err)
{
    csn_jail *j = rt->jail;
    const csn_covers *all = j->covers;

    if (!all || !all->keys)
        return CSN_OK;
    j->hidden = csn_arena_array(j->arena, all->name_count + 1, sizeof(*j->hidden));
    if (!j->hidden)
        return csn_fail(err, CSN_NOMEM, SOURCE);
    for (size_t i = 0; i < all->name_count; i++) {
        const csn_cover *c = &all->v[all->names[i].cover];
        csn_rule_info one = {.rule = csn_arena_printf(j->arena, "hide %s", all->names[i].path),
                             .source = c->list,
                             .enforced = "mount (covered)"};
        if (!one.rule)
            return csn_fail(err, CSN_NOMEM, SOURCE);
        if (c->key)
            j->hidden[j->hidden_count++] = one;
    }
    return CSN_OK;
}
