/* protected_refers.c: checks what unchanged protected files below the root refer to.
 *
 * A link among the hooks of a nested repository, a linked .vscode, a config that the user made
 * and that includes a file or names hooks: such files are not mounted read-only, and a command
 * may change the file that they lead to without touching them. A scan therefore follows them
 * even if they did not change. What changed on the way is moved to quarantine: a link, the file
 * itself, or a file in the directory. A directory that was renamed into place holds old files;
 * it is recognised because the last scan saw another inode there.
 *
 * Runs in a scan, as the caller, on the host's directory, while processes of the sandbox may
 * still run. Names and contents are hostile; listing is bounded. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backend/jail/protected.h"
#include "base/path.h"
#include "os/beneath.h"
#include "policy/gitconfig.h"
#include "policy/protected_names.h"

#define CONFIG_MAX  (1u << 20)
#define TARGET_MAX  (64u << 20) /* a larger index counts as unreadable */
#define ENTRIES_MAX 4096u
#define DEPTH_MAX   8

typedef struct refers {
    csn_protected_tree *t;
    const struct timespec *since;
    const csn_changed *hit;
    csn_protected_move_fn move;
    void *ctx;
    char rule[200];
    size_t at_len;    /* of the directory to which a link leads */
    bool use;         /* a value of a config leads there: every file in it counts */
    bool loaded;      /* the result of the last scan, if there is one */
    bool found;       /* the file refers to something */
    unsigned entries; /* that were listed */
} refers;

static bool not_before(const struct timespec *a, const struct timespec *b)
{
    return a->tv_sec > b->tv_sec || (a->tv_sec == b->tv_sec && a->tv_nsec >= b->tv_nsec);
}

static bool is_new(const refers *r, const struct stat *st)
{
    return not_before(&st->st_ctim, r->since);
}

static void move_path(const refers *r, const char *path)
{
    csn_protected_move_path(r->t, path, r->rule, r->move, r->ctx);
}

/* ---- one target ---- */

static bool by_content(csn_protected_name_kind kind)
{
    return kind != CSN_PROTECTED_NAME_ALWAYS && kind != CSN_PROTECTED_NAME_FILE;
}

/* A link to a file that is judged by its content, such as a config. */
static bool is_harmless(const refers *r, int path_fd)
{
    csn_protected_content doc = {
        .rule = r->hit->rule, .path = r->hit->path, .workspace = r->t->named, .hash_len = 20};
    csn_protected_content_verdict v;
    char self[40];

    if (r->use || !by_content(csn_protected_name_rule_kind(r->hit->rule)))
        return false;
    snprintf(self, sizeof(self), "/proc/self/fd/%d", path_fd);
    csn_autofd int fd = open(self, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    csn_autofree char *text = malloc(TARGET_MAX);
    ssize_t n = fd >= 0 && text ? read(fd, text, TARGET_MAX) : -1;
    if (n < 0 || n == TARGET_MAX)
        return false;
    doc.text = text;
    doc.len = (size_t)n;
    csn_protected_content_check(&doc, &v);
    bool harmless = v.harmless && !v.real_dir && !v.also;
    csn_protected_content_verdict_release(&v);
    return harmless;
}

/* Is a file in the directory to which a link leads protected under the name of the link? Those
 * of a linked .git are found by the layout of that directory. */
static bool is_covered(const refers *r, const char *path)
{
    csn_autofree char *seen = NULL;

    if (r->use || r->at_len == 0)
        return true;
    if (asprintf(&seen, "%s%s", r->hit->path, path + r->at_len) < 0) {
        seen = NULL;
        return true;
    }
    int rule = csn_protected_name_rule(seen, false);
    return rule >= 0 && !by_content(csn_protected_name_rule_kind((uint8_t)rule));
}

static void check_entry(void *ctx, const char *path)
{
    const refers *r = ctx;
    struct stat st;
    csn_autofd int fd =
        csn_beneath_open(r->t->fd, path, O_PATH | O_NOFOLLOW, CSN_BENEATH_NOFOLLOW);

    if (fd < 0 || fstat(fd, &st) < 0 || S_ISDIR(st.st_mode) || !is_new(r, &st) ||
        strcmp(path, r->hit->path) == 0 || !is_covered(r, path))
        return;
    if (!S_ISREG(st.st_mode) || !is_harmless(r, fd))
        move_path(r, path);
}

static void check_dir(refers *r, const char *path, int depth)
{
    int fd = csn_beneath_open(r->t->fd, path, O_RDONLY | O_DIRECTORY, CSN_BENEATH_NOFOLLOW);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);

    if (!dir) {
        if (fd >= 0)
            close(fd);
        return;
    }
    for (const struct dirent *d; (d = readdir(dir)) && r->entries++ < ENTRIES_MAX;) {
        csn_autofree char *below = NULL;
        if (strcmp(d->d_name, ".") == 0 || strcmp(d->d_name, "..") == 0)
            continue;
        if (asprintf(&below, "%s/%s", path, d->d_name) < 0)
            below = NULL;
        if (below && d->d_type == DT_DIR && depth < DEPTH_MAX)
            check_dir(r, below, depth + 1);
        else if (below)
            check_entry(r, below);
    }
    closedir(dir);
}

/* Identifies the target at the end of this path; see csn_changed_memory. */
static csn_scan_cache_dir place_of(const char *path, const struct stat *st)
{
    uint64_t h = 14695981039346656037u;

    for (; *path; path++)
        h = (h ^ (unsigned char)*path) * 1099511628211u;
    return (csn_scan_cache_dir){.dev = st->st_dev,
                                .ino = st->st_ino,
                                .sec = (int64_t)(h | 1ull << 63),
                                .nsec = (uint32_t)(h >> 32)};
}

/* A rename changes the time of the renamed directory. */
static bool has_new_dir(const refers *r, const char *path)
{
    csn_autofree char *dir = strdup(path);

    for (char *slash = dir ? dir + strlen(dir) : NULL; slash; slash = strrchr(dir, '/')) {
        struct stat st;
        *slash = '\0';
        csn_autofd int fd =
            csn_beneath_open(r->t->fd, dir, O_PATH | O_DIRECTORY, CSN_BENEATH_NOFOLLOW);
        if (fd >= 0 && fstat(fd, &st) == 0 && is_new(r, &st))
            return true;
    }
    return false;
}

/* True if the last scan saw the protected file lead to another inode, and if this one is as old
 * as that scan: a directory on the way was renamed since, by the sandbox. */
static bool was_moved_here(const refers *r, const csn_scan_cache_dir *place,
                           const csn_protected_path *p)
{
    const csn_protected_tree *t = r->t;

    if (csn_protected_name_rule_kind(r->hit->rule) == CSN_PROTECTED_NAME_GITFILE)
        return false; /* the walk itself recognises the moved repository */
    return t->has_cache && !csn_scan_cache_has(&t->cache.were, place) &&
           not_before(&t->cached_at, &r->hit->st->st_ctim) &&
           (S_ISDIR(p->st.st_mode) || not_before(&t->cached_at, &p->st.st_ctim)) &&
           has_new_dir(r, p->at);
}

static void check_target(refers *r, const char *path)
{
    csn_protected_path p = {.t = r->t, .on_link = check_entry, .ctx = r};

    r->found = true;
    if (!r->loaded || csn_protected_resolve(&p, path) <= 0 || !p.at[0])
        return; /* later, or it is outside of the workspace or absent */
    const csn_scan_cache_dir place = place_of(path, &p.st);
    csn_scan_cache_add(&r->t->cache.now, &place);
    if (was_moved_here(r, &place, &p)) {
        move_path(r, r->use ? p.at : r->hit->path); /* removing the link is enough */
    } else if (S_ISDIR(p.st.st_mode)) {
        r->at_len = strlen(p.at);
        check_dir(r, p.at, 0);
        r->at_len = 0;
    } else {
        check_entry(r, p.at);
    }
}

/* ---- configs ---- */

/* The directory from which git runs programs: above .git, or the one of the config. */
static char *work_dir(const char *config)
{
    csn_autofree char *dir = csn_path_dir(config);

    if (dir && strcmp(csn_path_base(dir), ".git") == 0)
        return csn_path_dir(dir);
    return CSN_STEAL(dir);
}

static char *join(const char *dir, const char *path)
{
    char *out = NULL;

    if (path[0] == '/')
        return strdup(path);
    return asprintf(&out, "%s/%s", dir ? dir : ".", path) < 0 ? NULL : out;
}

static void check_use(void *ctx, csn_gitconfig_use use, const char *value)
{
    refers *r = ctx;
    csn_autofree char *from =
        use == CSN_GITCONFIG_INCLUDE ? csn_path_dir(r->hit->path) : work_dir(r->hit->path);
    csn_autofree char *path = NULL;

    r->use = true;
    if (use != CSN_GITCONFIG_PROGRAM) {
        path = join(from, value);
        size_t len = path ? strlen(path) : 0;
        if (len > 2 && use == CSN_GITCONFIG_HOOKS && strcmp(path + len - 2, "/_") == 0)
            path[len - 2] = '\0'; /* husky; see protected_git.c */
        if (path)
            check_target(r, path);
        return;
    }
    for (int i = 0; i < 2; i++) {
        value += strspn(value, " \t!\"'");
        size_t len = strcspn(value, " \t\"';|&");
        csn_autofree char *word = strndup(value, len);
        csn_autofree char *program = word && strchr(word, '/') ? join(from, word) : NULL;
        csn_protected_path p = {.t = r->t};
        if (program && csn_protected_resolve(&p, program) > 0 && S_ISREG(p.st.st_mode))
            check_target(r, program);
        value += len;
    }
}

/* Most configs refer to nothing; these are remembered by inode and time. */
static void check_config(refers *r)
{
    const struct stat *st = r->hit->st;
    const csn_scan_cache_dir id = {.dev = st->st_dev,
                                   .ino = st->st_ino,
                                   .sec = st->st_ctim.tv_sec,
                                   .nsec = (uint32_t)st->st_ctim.tv_nsec};

    if (csn_scan_cache_has(&r->t->plain, &id))
        return;
    csn_autofd int fd = openat(r->hit->dir, r->hit->name,
                               O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    csn_autofree char *text = malloc(CONFIG_MAX);
    ssize_t n = fd >= 0 && text ? read(fd, text, CONFIG_MAX) : -1;
    if (n < 0)
        return;
    csn_gitconfig_uses(text, (size_t)n, check_use, r);
    if (!r->found)
        csn_scan_cache_add(&r->t->plain, &id);
}

bool csn_protected_check_refers(csn_protected_tree *t, const struct timespec *since,
                                bool loaded, const csn_changed *hit, csn_protected_move_fn move,
                                void *ctx)
{
    refers r = {.t = t, .since = since, .hit = hit, .move = move, .ctx = ctx, .loaded = loaded};

    snprintf(r.rule, sizeof(r.rule), "%.60s leads to it; %s", hit->path,
             csn_protected_name_rule_text(hit->rule));
    if (S_ISLNK(hit->st->st_mode))
        check_target(&r, hit->path);
    else
        check_config(&r);
    return loaded || !r.found;
}
