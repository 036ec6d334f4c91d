/* cover_find.c: finds what matches the patterns of a policy, in the granted directories.
 *
 * At open the shares are searched on the host, before the jail exists; later in its root, where
 * a match that is covered can be told from one that is not. Both use one cache of directories
 * for each share, which is stored between sandboxes (search/find_names.h): in an unchanged tree
 * each directory costs one statx. A pattern that starts with plain directories reads only
 * those.
 *
 * Invariant: a directory that cannot be read, and in which a command could read, makes the
 * search fail. */
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
#include "os/atomic.h"
#include "os/beneath.h"
#include "os/statedir.h"

#define DIRECTORY "denied" /* of the caches, in the state directory */
#define SLOTS     512u
#define CACHE_MAX (64u << 20)
#ifndef STATX_ATTR_MOUNT_ROOT
#define STATX_ATTR_MOUNT_ROOT 0x2000
#endif

typedef struct search {
    csn_runtime *rt;
    size_t share;
    int root;
    csn_cover_fn fn;
    void *ctx;
    csn_status st; /* if fn fails */
    char bad[PATH_MAX];
    csn_error **err;
    char inside[2 * PATH_MAX];
} search;

/* ---- the callbacks of the search ---- */

static const char *inside_path(search *s, const char *path)
{
    snprintf(s->inside, sizeof(s->inside), "%s%s%s", s->rt->jail->shares->v[s->share].inside,
             *path ? "/" : "", path);
    return s->inside;
}

static bool matches(const csn_cover *c, const char *inside)
{
    return c->glob && (csn_glob_match(c->glob, inside + 1) || strcmp(c->path, inside) == 0);
}

static bool wanted(void *ctx, const char *path)
{
    search *s = ctx;
    const csn_covers *all = s->rt->jail->covers;
    const char *inside = inside_path(s, path);

    for (size_t i = 0; i < all->count; i++)
        if (matches(&all->v[i], inside))
            return true;
    return false;
}

static bool enters(void *ctx, const char *path)
{
    search *s = ctx;
    const csn_covers *all = s->rt->jail->covers;
    const char *inside = inside_path(s, path);

    for (size_t i = 0; i < all->count; i++) {
        const csn_cover *c = &all->v[i];
        if (c->glob &&
            (csn_glob_may_descend(c->glob, inside + 1) || csn_path_below(c->path, inside)))
            return true;
    }
    return false;
}

/* A rule that is more specific than the pattern may allow the path. */
static bool is_denied(const csn_runtime *rt, const csn_cover *c, const char *inside)
{
    for (uint32_t op = CSN_OP_READ; op <= CSN_OP_DELETE; op <<= 1)
        if ((c->ops & op) && !csn_rules_check(rt->rules, op, inside).allowed)
            return true;
    return false;
}

static int found(void *ctx, const char *path)
{
    search *s = ctx;
    const csn_covers *all = s->rt->jail->covers;
    bool masked = false;

    for (uint32_t i = 0; i < all->count; i++) {
        const csn_cover *c = &all->v[i];
        const char *inside = inside_path(s, path);
        if (!matches(c, inside) || !is_denied(s->rt, c, inside))
            continue;
        s->st = s->fn(s->ctx, i, s->share, path, inside, s->err);
        if (s->st < 0)
            return -ECANCELED;
        masked = masked || (c->ops & CSN_OP_READ);
    }
    return masked ? CSN_FIND_SKIP : 0;
}

bool csn_cover_is_closed(const csn_jail *j, int root, const char *path)
{
    struct statx st;

    if (statx(root, path, AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT,
              STATX_MODE | STATX_UID, &st) < 0)
        return errno == ENOENT || errno == ENOTDIR || errno == EACCES;
    if ((st.stx_attributes & STATX_ATTR_MOUNT_ROOT) && !(st.stx_mode & 0777))
        return true; /* a mask */
    return st.stx_uid != j->host_uid && !(st.stx_mode & (S_IXGRP | S_IXOTH));
}

static int unreadable(void *ctx, const char *path, int error)
{
    search *s = ctx;

    if (error == -EACCES && csn_cover_is_closed(s->rt->jail, s->root, path))
        return 0;
    snprintf(s->bad, sizeof(s->bad), "%s", path);
    return error;
}

/* ---- the cache of a share ---- */

/* Named by the share and the patterns; another combination replaces it. */
static void slot_name(const csn_runtime *rt, size_t share, char name[16], char **ret_key)
{
    const csn_jail *j = rt->jail;
    csn_autobuf key;
    uint32_t h = 2166136261u;

    csn_buf_init(&key, CACHE_MAX);
    (void)csn_buf_printf(&key, "1\n%s\n%s\n", j->shares->v[share].host,
                         j->shares->v[share].inside);
    for (size_t i = 0; i < j->covers->count; i++)
        if (j->covers->v[i].glob)
            (void)csn_buf_printf(&key, "%s\n", j->covers->v[i].path);
    for (size_t i = 0; i < key.len; i++)
        h = (h ^ (unsigned char)key.data[i]) * 16777619u;
    snprintf(name, 16, "%u", h % SLOTS);
    *ret_key = key.err == 0 ? csn_buf_take(&key) : NULL;
}

static void load_cache(const csn_runtime *rt, size_t share, csn_find_cache *c)
{
    csn_autofree char *key = NULL, *data = NULL;
    char name[16];
    struct stat st;
    csn_autofd int store = csn_statedir_find(CSN_DIR_STATE, DIRECTORY, NULL);

    slot_name(rt, share, name, &key);
    csn_autofd int fd =
        store < 0 || !key ? -1 : openat(store, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) < 0 || st.st_size > CACHE_MAX)
        return;
    size_t head = strlen(key) + 1;
    data = malloc((size_t)st.st_size + 1);
    ssize_t n = data ? read(fd, data, (size_t)st.st_size) : -1;
    if (n < (ssize_t)head || memcmp(data, key, head) != 0)
        return;
    (void)csn_find_cache_load(c, data + head, (size_t)n - head);
}

static void save_cache(const csn_runtime *rt, size_t share, const csn_find_cache *c)
{
    csn_autofree char *key = NULL;
    char name[16];
    csn_temp temp;
    csn_autofd int store = csn_statedir_open(CSN_DIR_STATE, DIRECTORY, NULL);

    slot_name(rt, share, name, &key);
    if (store < 0 || !key || csn_temp_create(&temp, store, 0600) < 0)
        return;
    if (csn_write_full(temp.fd, key, strlen(key) + 1, NULL) == 0 &&
        csn_write_full(temp.fd, c->bytes.data ? c->bytes.data : "", c->bytes.len, NULL) == 0)
        (void)csn_temp_publish(&temp, store, name, CSN_TEMP_REPLACE);
    csn_temp_drop(&temp, store);
}

void csn_cover_caches_save(const csn_runtime *rt)
{
    const csn_covers *all = rt->jail->covers;

    for (size_t i = 0; all && all->caches && i < rt->jail->shares->count; i++)
        if (all->caches[i].changed)
            save_cache(rt, i, &all->caches[i].c);
}

/* ---- the search ---- */

static csn_status search_share(search *s, csn_error **err)
{
    csn_cover_cache *cache = &s->rt->jail->covers->caches[s->share];
    csn_find f = {.root = s->root,
                  .ctx = s,
                  .cache = &cache->c,
                  .wanted = wanted,
                  .enters = enters,
                  .found = found,
                  .unreadable = unreadable};

    s->err = err;
    if (!cache->loaded)
        load_cache(s->rt, s->share, &cache->c);
    cache->loaded = true;
    int rc = csn_find_names(&f);
    cache->changed = cache->changed || f.dirs_read > 0;
    if (rc == 0 || s->st < 0)
        return s->st;
    csn_status st = csn_fail(err, CSN_UNAVAILABLE,
                             "deny: the search for files that match a pattern failed: %s: %s",
                             inside_path(s, s->bad), strerrordesc_np(-rc));
    return csn_error_advise(st, err, "make the directory readable, or deny it by its path");
}

static int open_share(const csn_jail_share *share, int inside_root)
{
    if (inside_root >= 0)
        return csn_beneath_open(inside_root, share->inside, O_PATH | O_DIRECTORY,
                                CSN_BENEATH_ROOTED);
    int fd = open(share->host, O_PATH | O_DIRECTORY | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

csn_status csn_cover_search(csn_runtime *rt, int inside_root, csn_cover_fn fn, void *ctx,
                            csn_error **err)
{
    csn_jail *j = rt->jail;
    csn_covers *all = j->covers;
    csn_status st = CSN_OK;

    if (!all->caches) {
        all->caches = csn_arena_array(j->arena, j->shares->count, sizeof(*all->caches));
        for (size_t i = 0; all->caches && i < j->shares->count; i++)
            csn_find_cache_init(&all->caches[i].c);
    }
    csn_autofree search *s = all->caches ? calloc(1, sizeof(*s)) : NULL;
    if (!s)
        return csn_fail(err, CSN_NOMEM, "deny");
    for (size_t i = 0; st == CSN_OK && i < j->shares->count; i++) {
        const csn_jail_share *share = &j->shares->v[i];
        *s = (search){.rt = rt, .share = i, .fn = fn, .ctx = ctx};
        if (share->file || !enters(s, ""))
            continue;
        csn_autofd int fd = open_share(share, inside_root);
        s->root = fd;
        if (fd >= 0)
            st = search_share(s, err);
        else if (fd != -ENOTDIR) /* a share of one file; a record does not tell */
            st = csn_fail_errno(err, -fd, "%s %s", share->option, share->inside);
    }
    return st;
}

/* ---- at open ---- */

/* The part of a pattern before its first component with a special character must be in a share:
 * elsewhere nothing is searched. */
static csn_status check_pattern(const csn_runtime *rt, const csn_cover *c, csn_error **err)
{
    const csn_jail_shares *s = rt->jail->shares;
    size_t len = strcspn(c->path, "*?[{\\");
    char prefix[PATH_MAX];

    while (len > 1 && c->path[len - 1] != '/')
        len--;
    len -= len > 1;
    if (len < sizeof(prefix)) {
        memcpy(prefix, c->path, len);
        prefix[len] = '\0';
        for (size_t i = 0; i < s->count; i++)
            if (!s->v[i].file && csn_path_below(prefix, s->v[i].inside))
                return CSN_OK;
    }
    csn_status st = csn_fail(err, CSN_INVALID,
                             "%s: the pattern does not start in a granted directory", c->label);
    return csn_error_advise(st, err, "write it below the workspace, such as '**/.env*'");
}

/* A link to a file: both are covered. */
static csn_status cover_match(void *ctx, uint32_t cover, size_t share, const char *path,
                              const char *inside, csn_error **err)
{
    csn_runtime *rt = ctx;
    const csn_cover *c = &rt->jail->covers->v[cover];
    char host[PATH_MAX], real[PATH_MAX];
    unsigned where;
    struct stat st;

    if (snprintf(host, sizeof(host), "%s/%s", rt->jail->shares->v[share].host, path) >=
        (int)sizeof(host))
        return csn_fail(err, CSN_TOO_LARGE, "%s: the path of a match is too long", c->label);
    if (lstat(host, &st) < 0)
        return CSN_OK; /* removed meanwhile */
    if (!S_ISLNK(st.st_mode)) {
        csn_status done = csn_cover_real(rt, cover, host, c->anywhere, &where, err);
        return done < 0 ? done : csn_cover_links_collect(rt, cover, host, true, err);
    }
    csn_status ok =
        c->ops & CSN_OP_READ
            ? csn_cover_at(rt, cover, csn_arena_strdup(rt->jail->arena, inside), err)
            : CSN_OK;
    if (ok == CSN_OK && realpath(host, real) && stat(real, &st) == 0 && S_ISREG(st.st_mode))
        ok = csn_cover_real(rt, cover, real, false, &where, err);
    return ok < 0 || !S_ISREG(st.st_mode) ? ok
                                          : csn_cover_links_collect(rt, cover, real, true, err);
}

csn_status csn_cover_find(csn_runtime *rt, csn_error **err)
{
    const csn_covers *all = rt->jail->covers;
    csn_status st = CSN_OK;
    bool any = false;

    for (size_t i = 0; st == CSN_OK && i < all->count; i++) {
        any = any || all->v[i].glob;
        if (all->v[i].glob)
            st = check_pattern(rt, &all->v[i], err);
    }
    return st < 0 || !any ? st : csn_cover_search(rt, -1, cover_match, rt, err);
}
