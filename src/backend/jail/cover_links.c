/* cover_links.c: finds other names of files that a policy denies.
 *
 * A file with several hard links can be read under each of its names. The names that lie in a
 * granted directory are covered like the denied one; names elsewhere do not exist inside. The
 * search reads all granted directories, and is made only if a denied file has more links than
 * were seen in the denied path.
 *
 * Invariant: if the search is incomplete, the sandbox is not opened. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "backend/jail/cover.h"
#include "base/error.h"
#include "base/path.h"
#include "search/find_names.h"

#define LINKS_MAX (1u << 18)

/* A search, of a denied directory or of a share. */
typedef struct search {
    csn_runtime *rt;
    csn_covers *all;
    uint32_t cover;
    const char *host; /* the directory */
    int root;
    bool collects; /* of a denied directory */
    bool lenient;  /* leaves out what cannot be read */
    csn_status st; /* if found fails */
    char bad[PATH_MAX];
    csn_error **err;
} search;

static int by_inode(const void *a, const void *b)
{
    const csn_cover_link *x = a, *y = b;

    if (x->dev != y->dev)
        return x->dev < y->dev ? -1 : 1;
    return x->ino < y->ino ? -1 : x->ino > y->ino;
}

/* NULL: it has no other names, or they were all seen. Needs merge_names. */
static const csn_cover_link *find_link(const csn_covers *all, const struct stat *st)
{
    const csn_cover_link key = {.dev = st->st_dev, .ino = st->st_ino};
    const csn_cover_link *found =
        all->link_count == 0
            ? NULL
            : bsearch(&key, all->links, all->link_count, sizeof(*all->links), by_inode);

    return found && found->seen < found->nlink ? found : NULL;
}

/* 0 or -errno. */
static int add_name(csn_covers *all, uint32_t cover, const struct stat *st)
{
    const size_t step = 256;

    if (all->link_count == LINKS_MAX)
        return -E2BIG;
    if (all->link_count % step == 0) {
        csn_cover_link *grown =
            reallocarray(all->links, all->link_count + step, sizeof(*all->links));
        if (!grown)
            return -ENOMEM;
        all->links = grown;
    }
    all->links[all->link_count++] = (csn_cover_link){
        .dev = st->st_dev, .ino = st->st_ino, .nlink = st->st_nlink, .seen = 1, .cover = cover};
    return 0;
}

/* Leaves one entry for each file. A file that two denials name is covered by the stricter. */
static void merge_names(csn_covers *all)
{
    size_t n = 0;

    if (all->link_count > 0)
        qsort(all->links, all->link_count, sizeof(*all->links), by_inode);
    for (size_t i = 0; i < all->link_count; i++) {
        csn_cover_link *to = n > 0 ? &all->links[n - 1] : NULL;
        if (!to || by_inode(to, &all->links[i]) != 0) {
            all->links[n++] = all->links[i];
            continue;
        }
        to->seen++;
        if (all->v[all->links[i].cover].ops & CSN_OP_READ)
            to->cover = all->links[i].cover;
    }
    all->link_count = n;
}

/* ---- the callbacks of the search ---- */

static bool any(void *ctx, const char *path)
{
    (void)ctx;
    (void)path;
    return true;
}

static int unreadable(void *ctx, const char *path, int error)
{
    search *s = ctx;

    if (s->lenient || (error == -EACCES && csn_cover_is_closed(s->rt->jail, s->root, path)))
        return 0;
    snprintf(s->bad, sizeof(s->bad), "%s", path);
    return error;
}

/* True if a planned mount refuses these operations on the path. */
static bool is_below_cover(const csn_covers *all, const char *inside, uint32_t ops)
{
    for (size_t i = 0; i < all->name_count; i++) {
        uint32_t has = all->v[all->names[i].cover].ops;
        if ((has & CSN_OP_READ || (has & CSN_OP_WRITE && !(ops & CSN_OP_READ))) &&
            csn_path_below(inside, all->names[i].path))
            return true;
    }
    return false;
}

static bool is_covered_everywhere(const search *s, const char *real, uint32_t ops)
{
    const csn_jail_shares *shares = s->rt->jail->shares;
    char inside[PATH_MAX];

    for (size_t i = 0; i < shares->count; i++) {
        const char *rest = csn_path_below(real, shares->v[i].host);
        if (!rest)
            continue;
        snprintf(inside, sizeof(inside), "%s/%s", shares->v[i].inside, rest);
        if (!is_below_cover(s->all, inside, ops))
            return false;
    }
    return true;
}

static int found(void *ctx, const char *path)
{
    search *s = ctx;
    char real[PATH_MAX];
    unsigned where;
    struct stat st;

    if (fstatat(s->root, path, &st, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT) < 0)
        return errno == ENOENT || errno == EACCES ? 0 : -errno;
    if (!S_ISREG(st.st_mode) || st.st_nlink < 2)
        return 0;
    if (s->collects)
        return add_name(s->all, s->cover, &st);
    const csn_cover_link *link = find_link(s->all, &st);
    if (!link)
        return 0;
    if (snprintf(real, sizeof(real), "%s/%s", s->host, path) >= (int)sizeof(real))
        return -ENAMETOOLONG;
    if (is_covered_everywhere(s, real, s->all->v[link->cover].ops))
        return 0;
    s->st = csn_cover_real(s->rt, link->cover, real, false, &where, s->err);
    return s->st < 0 ? -ECANCELED : 0;
}

static csn_status search_dir(search *s, const char *label, csn_error **err)
{
    csn_autofd int root = open(s->host, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    csn_find f = {.root = root,
                  .ctx = s,
                  .wanted = any,
                  .enters = any,
                  .found = found,
                  .unreadable = unreadable};
    s->root = root;
    s->err = err;
    int rc = root < 0 ? -errno : csn_find_names(&f);

    if (rc == 0 || s->st < 0)
        return s->st;
    csn_status st =
        csn_fail(err, CSN_UNAVAILABLE,
                 "%s: it has files with other names (hard links), and the search "
                 "for them failed: %s%s%s: %s",
                 label, s->host, s->bad[0] ? "/" : "", s->bad, strerrordesc_np(-rc));
    return csn_error_advise(st, err, "remove the other links, or grant fewer directories");
}

/* ---- both steps ---- */

csn_status csn_cover_links_collect(csn_runtime *rt, uint32_t cover, const char *real,
                                   bool shared, csn_error **err)
{
    csn_covers *all = rt->jail->covers;
    const csn_cover *c = &all->v[cover];
    search s = {.rt = rt,
                .all = all,
                .cover = cover,
                .host = real,
                .collects = true,
                .lenient = !shared};
    struct stat st;

    if (!(c->ops & (CSN_OP_READ | CSN_OP_WRITE)) || lstat(real, &st) < 0 ||
        csn_path_below(real, "/proc") || csn_path_below(real, "/sys"))
        return CSN_OK;
    if (S_ISDIR(st.st_mode))
        return search_dir(&s, c->label, err);
    int rc = S_ISREG(st.st_mode) && st.st_nlink > 1 ? add_name(all, cover, &st) : 0;
    return rc < 0 ? csn_fail_errno(err, -rc, "%s", c->label) : CSN_OK;
}

csn_status csn_cover_links_find(csn_runtime *rt, csn_error **err)
{
    csn_covers *all = rt->jail->covers;
    const csn_jail_shares *shares = rt->jail->shares;
    const csn_cover *first = NULL;
    csn_status st = CSN_OK;

    merge_names(all);
    for (size_t i = 0; i < all->link_count && !first; i++)
        if (all->links[i].seen < all->links[i].nlink)
            first = &all->v[all->links[i].cover];
    for (size_t i = 0; first && st == CSN_OK && i < shares->count; i++) {
        search s = {.rt = rt, .all = all, .host = shares->v[i].host};
        struct stat other;
        if (!shares->v[i].file) {
            st = search_dir(&s, first->label, err);
            continue;
        }
        const csn_cover_link *link = stat(s.host, &other) == 0 ? find_link(all, &other) : NULL;
        if (link)
            st = csn_fail(err, CSN_INVALID, "%s: %s %s is another name of the same file",
                          all->v[link->cover].label, shares->v[i].option, s.host);
    }
    free(all->links);
    all->links = NULL;
    all->link_count = 0;
    return st;
}
