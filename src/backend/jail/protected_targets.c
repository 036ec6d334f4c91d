/* protected_targets.c: finds what links and hard links of protected files lead to.
 *
 * A hook may be a link to a script of the project, .vscode a link to a directory with another
 * name, a protected file one of two hard links. A command that can write the target changes
 * what the host runs without touching the protected name. When a sandbox is opened, targets in
 * the workspace become read-only like the protected files themselves; a target that does not
 * exist yet, and each link on the way, is watched by the scans. Of hard links only the
 * protected name can be found: the scan then does not rely on the mount.
 *
 * An agent of an earlier run may have made the tree: paths are resolved one component at a time
 * below the open workspace, and links, depth and entries have ceilings. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backend/jail/jail.h"
#include "backend/jail/protected_survey.h"
#include "base/path.h"
#include "os/beneath.h"
#include "policy/protected_names.h"

#define LINKS_MAX   40    /* as in the kernel */
#define DEPTH_MAX   8     /* of protected directories */
#define ENTRIES_MAX 4096u /* in all protected directories of a workspace */
#define SHARED_MAX  8u    /* hard-linked files that are recorded one by one per directory */
#define LINKED      "a protected directory is a link to it"

/* ---- resolving a path ---- */

static int append(char *to, const char *name, size_t len)
{
    size_t used = strlen(to);

    if (used + len + 2 > PATH_MAX)
        return -ENAMETOOLONG;
    if (used > 0)
        to[used++] = '/';
    memcpy(to + used, name, len);
    to[used + len] = '\0';
    return 0;
}

/* Puts `first`, a slash and the rest of the path before it. */
static int prepend(char rest[PATH_MAX], const char *first)
{
    size_t n = strlen(first), old = strlen(rest);

    if (n + old + 2 > PATH_MAX)
        return -ENAMETOOLONG;
    memmove(rest + n + 1, rest, old + 1);
    memcpy(rest, first, n);
    rest[n] = '/';
    return 0;
}

/* An absolute path: finds where it enters the workspace, under whatever name. 1: `at` and
 * `rest` continue there; 0: it stays outside. */
static int enter_absolute(csn_protected_path *p)
{
    struct stat root, st;
    char real[PATH_MAX];

    if (fstat(p->t->fd, &root) < 0)
        return -errno;
    for (char *slash = strchr(p->rest + 1, '/');; slash = strchr(slash + 1, '/')) {
        char was = slash ? *slash : '\0';
        if (slash)
            *slash = '\0';
        bool same =
            stat(p->rest, &st) == 0 && st.st_dev == root.st_dev && st.st_ino == root.st_ino;
        if (slash)
            *slash = was;
        if (same) {
            p->at[0] = '\0';
            memmove(p->rest, slash ? slash : "", slash ? strlen(slash) + 1 : 1);
            return 1;
        }
        if (!slash)
            break;
    }
    const char *below = realpath(p->rest, real) ? csn_path_below(real, p->t->host) : NULL;
    if (!below)
        return 0;
    p->at[0] = '\0';
    memcpy(p->rest, below, strlen(below) + 1);
    return 1;
}

/* `..`: the parent of what was reached so far. As enter_absolute. */
static int go_up(csn_protected_path *p)
{
    char *slash = strrchr(p->at, '/');

    if (p->at[0]) {
        *(slash ? slash : p->at) = '\0';
        return 1;
    }
    csn_autofree char *above = csn_path_dir(p->t->host);
    int rc = !above ? -ENOMEM : ++p->links > LINKS_MAX ? -ELOOP : prepend(p->rest, above);
    return rc < 0 ? rc : enter_absolute(p);
}

static int follow(csn_protected_path *p, int fd, const char *link)
{
    char target[PATH_MAX];
    ssize_t n = readlinkat(fd, "", target, sizeof(target) - 1);

    if (n < 0)
        return -errno;
    target[n] = '\0';
    if (++p->links > LINKS_MAX)
        return -ELOOP;
    if (p->on_link)
        p->on_link(p->ctx, link);
    int rc = prepend(p->rest, target);
    return rc < 0 || target[0] != '/' ? (rc < 0 ? rc : 1) : enter_absolute(p);
}

/* One name. 1: go on, 0: outside, else -errno. */
static int step(csn_protected_path *p, const char *name, size_t len)
{
    char next[PATH_MAX];
    struct stat st;

    snprintf(next, sizeof(next), "%s", p->at);
    int rc = append(next, name, len);
    if (rc < 0)
        return rc;
    csn_autofd int fd =
        csn_beneath_open(p->t->fd, next, O_PATH | O_NOFOLLOW, CSN_BENEATH_NOFOLLOW);
    if (fd < 0)
        return fd;
    if (fstat(fd, &st) < 0)
        return -errno;
    if (S_ISLNK(st.st_mode))
        return follow(p, fd, next);
    if (!S_ISDIR(st.st_mode) && p->rest[strspn(p->rest, "/")])
        return -ENOTDIR;
    memcpy(p->at, next, sizeof(next));
    p->st = st;
    return 1;
}

int csn_protected_resolve(csn_protected_path *p, const char *path)
{
    char name[NAME_MAX + 1];
    int rc = 1;

    p->at[0] = '\0';
    p->links = 0;
    if (strlen(path) >= sizeof(p->rest))
        return -ENAMETOOLONG;
    memcpy(p->rest, path, strlen(path) + 1);
    if (path[0] == '/')
        rc = enter_absolute(p);
    if (rc > 0 && fstat(p->t->fd, &p->st) < 0)
        rc = -errno;
    while (rc > 0) {
        size_t skip = strspn(p->rest, "/"), len = strcspn(p->rest + skip, "/");
        if (len == 0)
            return 1;
        if (len > NAME_MAX)
            return -ENAMETOOLONG;
        memcpy(name, p->rest + skip, len);
        name[len] = '\0';
        char before[PATH_MAX];
        memcpy(before, p->rest, strlen(p->rest) + 1);
        memmove(p->rest, p->rest + skip + len, strlen(p->rest + skip + len) + 1);
        if (strcmp(name, ".") == 0)
            continue;
        rc = strcmp(name, "..") == 0 ? go_up(p) : step(p, name, len);
        if (rc < 0)
            memcpy(p->rest, before, strlen(before) + 1);
    }
    return rc;
}

/* ---- targets of protected files ---- */

static bool is_excepted(const csn_survey *s, const char *below)
{
    csn_autofree char *inside = NULL;

    if (s->j->protected->exception_count == 0)
        return false;
    if (asprintf(&inside, "%s/%s", s->t->inside, below) < 0) {
        inside = NULL;
        return false;
    }
    return csn_protected_is_excepted_target(s->j->protected, inside);
}

/* A link that no name of the table and no read-only place protects. */
static void watch_link(void *ctx, const char *link)
{
    csn_survey *s = ctx;

    if (csn_protected_name_match(link, NULL) || csn_survey_covering(s, link) ||
        is_excepted(s, link))
        return;
    csn_survey_pin_parents(s, link);
    csn_survey_watch(s, &(csn_protected_place){.path = link,
                                               .rule = "a link that leads to a protected file",
                                               .link = true});
}

/* The path that would exist if the missing part did, with `.` and `..` removed as text. */
static bool missing_path(const csn_protected_path *p, char out[PATH_MAX], bool *ret_up)
{
    snprintf(out, PATH_MAX, "%s", p->at);
    *ret_up = false;
    for (const char *r = p->rest; *(r += strspn(r, "/"));) {
        size_t len = strcspn(r, "/");
        char *slash = strrchr(out, '/');
        bool up = len == 2 && memcmp(r, "..", 2) == 0;
        *ret_up = *ret_up || up;
        if (up && !out[0])
            return false; /* outside */
        if (up)
            *(slash ? slash : out) = '\0';
        else if (!(len == 1 && *r == '.') && append(out, r, len) < 0)
            return false;
        r += len;
    }
    return out[0] != '\0';
}

static void watch_absent(csn_survey *s, const csn_protected_path *p, const char *rule)
{
    char path[PATH_MAX];
    bool up;

    if (!missing_path(p, path, &up) || csn_protected_name_match(path, NULL) ||
        csn_survey_covering(s, path) || is_excepted(s, path))
        return;
    if (p->at[0]) {
        csn_survey_pin_parents(s, p->at);
        csn_survey_add(s, p->at, NULL);
    }
    if (up)
        csn_survey_target(s, path, rule); /* the text may name something that exists */
    else
        csn_survey_watch(s, &(csn_protected_place){.path = path, .rule = rule, .absent = true});
}

void csn_survey_target(csn_survey *s, const char *path, const char *rule)
{
    csn_protected_path p = {.t = s->t, .on_link = watch_link, .ctx = s};
    int rc = csn_protected_resolve(&p, path);

    if (rc == -ENOENT || rc == -ENOTDIR)
        watch_absent(s, &p, rule ? rule : LINKED);
    else if (rc < 0)
        csn_survey_fail_unless_absent(s, -rc);
    if (rc <= 0 || !rule || !p.at[0] || csn_survey_covering(s, p.at) || is_excepted(s, p.at))
        return;
    csn_survey_pin_parents(s, p.at);
    csn_survey_add(s, p.at, rule);
    if (S_ISDIR(p.st.st_mode))
        csn_survey_dir(s, p.at, rule);
    else
        csn_survey_file(s, p.at, rule, &p.st);
}

void csn_survey_file(csn_survey *s, const char *path, const char *rule, const struct stat *st)
{
    if (S_ISREG(st->st_mode) && st->st_nlink > 1)
        csn_survey_watch(s, &(csn_protected_place){.path = path, .rule = rule, .shared = true});
}

/* ---- protected directories ---- */

typedef struct listing {
    csn_survey *s;
    const char *rule;
    int depth;
} listing;

/* git does not run these; every repository has a dozen of them. */
static bool is_sample(const char *name)
{
    size_t len = strlen(name);

    return len > 7 && strcasecmp(name + len - 7, ".sample") == 0;
}

static void list_dir(const listing *l, const char *path);

static void list_entry(const listing *l, int dir, const char *path, const struct dirent *d,
                       unsigned *shared)
{
    csn_autofree char *below = NULL;
    struct stat st;

    if (is_sample(d->d_name) || fstatat(dir, d->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return;
    if (asprintf(&below, "%s/%s", path, d->d_name) < 0) {
        below = NULL;
        csn_survey_fail(l->s, ENOMEM);
        return;
    }
    if (is_excepted(l->s, below))
        return;
    if (S_ISLNK(st.st_mode)) {
        const char *rule =
            csn_arena_printf(l->s->j->arena, "%s is a link to it; %s", below, l->rule);
        csn_survey_target(l->s, below, rule ? rule : l->rule);
    } else if (S_ISDIR(st.st_mode) && strcmp(d->d_name, "node_modules") != 0 &&
               l->depth < DEPTH_MAX) {
        const listing deeper = {.s = l->s, .rule = l->rule, .depth = l->depth + 1};
        list_dir(&deeper, below);
    } else if (S_ISREG(st.st_mode) && st.st_nlink > 1 && ++*shared <= SHARED_MAX) {
        bool many = *shared == SHARED_MAX;
        csn_survey_watch(l->s, &(csn_protected_place){.path = many ? path : below,
                                                      .rule = l->rule,
                                                      .shared = true});
    }
}

static void list_dir(const listing *l, const char *path)
{
    int fd = csn_beneath_open(l->s->t->fd, path, O_RDONLY | O_DIRECTORY, CSN_BENEATH_NOFOLLOW);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    unsigned shared = 0;

    if (!dir) {
        if (fd >= 0)
            close(fd);
        return;
    }
    for (const struct dirent *d; l->s->error == 0 && (d = readdir(dir));) {
        if (strcmp(d->d_name, ".") == 0 || strcmp(d->d_name, "..") == 0)
            continue;
        if (l->s->entries++ == ENTRIES_MAX)
            break;
        list_entry(l, dirfd(dir), path, d, &shared);
    }
    closedir(dir);
}

void csn_survey_dir(csn_survey *s, const char *path, const char *rule)
{
    list_dir(&(listing){.s = s, .rule = rule}, path);
}
