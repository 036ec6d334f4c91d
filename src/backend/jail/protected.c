/* protected.c: finds the protected files of a workspace and makes them read-only mounts.
 *
 * Runs when a sandbox is opened, before any of its processes; the tree may have been written by
 * an agent in an earlier run. Only the names of the table are checked, in the root of the
 * workspace; nothing is walked. What exists is mounted over itself read-only, and every
 * directory above it is mounted over itself, so that neither can be renamed, removed or
 * replaced. Links in the workspace are followed (protected_targets.c), and so is the git config
 * (protected_git.c). The scan after each command (protected_scan.c) handles replaced links,
 * files that do not exist yet, and deeper ones.
 *
 * A place with an unchanged inode was not changed by the sandbox: the kernel removes a mount
 * only if the host removes or replaces the file below it. */
#include "backend/jail/protected_survey.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "backend/jail/jail.h"
#include "base/error.h"
#include "base/path.h"
#include "os/beneath.h"
#include "os/mount.h"
#include "policy/protected_names.h"
#include "search/changed.h"

#define STAMP_NAME "protected"
#define CONFIG_MAX (1u << 20)

/* ---- places ---- */

/* Without birth times, the change time is used: a file that was changed in place then counts as
 * a different file and is scanned. */
bool csn_protected_identify(int dir, const char *path, csn_protected_id *ret)
{
    struct statx st;

    if (statx(dir, path, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT,
              STATX_INO | STATX_CTIME | STATX_BTIME, &st) < 0)
        return false;
    bool born = (st.stx_mask & STATX_BTIME) != 0;
    *ret = (csn_protected_id){.dev = (uint64_t)st.stx_dev_major << 32 | st.stx_dev_minor,
                              .ino = st.stx_ino,
                              .sec = born ? st.stx_btime.tv_sec : st.stx_ctime.tv_sec,
                              .nsec = born ? st.stx_btime.tv_nsec : st.stx_ctime.tv_nsec};
    return true;
}

static csn_protected_place *find_place(const csn_protected_tree *t, const char *path)
{
    for (size_t i = 0; i < t->place_count; i++)
        if (strcmp(t->places[i].path, path) == 0)
            return &t->places[i];
    return NULL;
}

/* 0 or an errno. E2BIG: too many places. */
static int put_place(csn_protected_tree *t, const csn_protected_place *one)
{
    const size_t step = 8;

    if (t->place_count == CSN_PROTECTED_PLACES)
        return E2BIG;
    if (t->place_count % step == 0) {
        csn_protected_place *grown =
            reallocarray(t->places, t->place_count + step, sizeof(*t->places));
        if (!grown)
            return ENOMEM;
        t->places = grown;
    }
    t->places[t->place_count++] = *one;
    return 0;
}

void csn_survey_fail(csn_survey *s, int error)
{
    if (s->error == 0)
        s->error = error;
}

bool csn_protected_is_absent(int error)
{
    return error == ENOENT || error == ENOTDIR || error == ELOOP || error == EACCES ||
           error == EXDEV || error == ENAMETOOLONG;
}

void csn_survey_fail_unless_absent(csn_survey *s, int error)
{
    if (!csn_protected_is_absent(error))
        csn_survey_fail(s, error);
}

void csn_survey_add(csn_survey *s, const char *path, const char *rule)
{
    csn_protected_tree *t = s->t;
    csn_protected_place *old = find_place(t, path);
    csn_protected_place one = {.path = csn_arena_strdup(s->j->arena, path), .rule = rule};
    const char *to = csn_arena_printf(s->j->arena, "%s/%s", t->inside, path);

    if ((old && (old->rule || !rule)) || s->error != 0)
        return;
    if (!csn_protected_identify(t->fd, path, &one.id)) {
        csn_survey_fail_unless_absent(s, errno);
        return;
    }
    s->error = !one.path || !to ? ENOMEM : put_place(t, &one);
    if (s->error != 0)
        return;
    csn_jail_add(s->j, CSN_MOUNT_SELF, rule ? CSN_MOUNT_RDONLY : 0, 0, NULL, to);
}

void csn_survey_watch(csn_survey *s, const csn_protected_place *how)
{
    csn_protected_place one = *how, *old = find_place(s->t, how->path);

    if (old)
        old->shared = old->shared || how->shared;
    if (old || s->error != 0)
        return;
    one.path = csn_arena_strdup(s->j->arena, how->path);
    if (how->link && !csn_protected_identify(s->t->fd, how->path, &one.id)) {
        csn_survey_fail_unless_absent(s, errno);
        return;
    }
    s->error = one.path ? put_place(s->t, &one) : ENOMEM;
}

const csn_protected_place *csn_survey_covering(const csn_survey *s, const char *path)
{
    for (size_t i = 0; i < s->t->place_count; i++) {
        const csn_protected_place *p = &s->t->places[i];
        if (p->rule && !p->absent && !p->link && csn_path_below(path, p->path))
            return p;
    }
    return NULL;
}

void csn_survey_pin_parents(csn_survey *s, const char *path)
{
    for (const char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
        csn_autofree char *dir = strndup(path, (size_t)(slash - path));
        if (dir)
            csn_survey_add(s, dir, NULL);
        else
            csn_survey_fail(s, ENOMEM);
    }
}

/* Resolves links. The result is below the workspace, malloc'd; NULL: outside or absent. */
static char *resolve_below(csn_survey *s, const char *path, struct stat *ret)
{
    csn_autofd int fd = csn_beneath_open(s->t->fd, path, O_PATH, 0);

    if (fd < 0) {
        csn_survey_fail_unless_absent(s, -fd);
        return NULL;
    }
    csn_autofree char *real = fstat(fd, ret) < 0 ? NULL : csn_runtime_fd_path(fd);
    const char *below = real ? csn_path_below(real, s->t->host) : NULL;
    char *out = below && *below ? strdup(below) : NULL;
    if (!real || (below && *below && !out))
        csn_survey_fail(s, errno);
    return out;
}

/* Adds the place that p leads to. */
static void add_found(csn_survey *s, const csn_protected_name_place *p, const char *inside,
                      const char *real, const struct stat *st)
{
    bool dir = S_ISDIR(st->st_mode);
    bool open = dir && csn_protected_has_exception(s->j->protected, inside);

    if (p->pin || (dir && p->file_only))
        return; /* pinned with the first protected file in it */
    csn_survey_pin_parents(s, real);
    /* A directory with an exception stays writable; the scan checks it after each command. */
    if (open) {
        csn_survey_add(s, real, NULL);
        csn_survey_dir(s, real, p->rule);
        return;
    }
    csn_survey_add(s, real, p->rule);
    if (dir)
        csn_survey_dir(s, real, p->rule);
    else
        csn_survey_file(s, real, p->rule, st);
}

/* True: the path exists. */
static bool survey_place(csn_survey *s, const csn_protected_name_place *p)
{
    csn_protected_tree *t = s->t;
    char inside[PATH_MAX];
    struct stat st;

    snprintf(inside, sizeof(inside), "%s/%s", t->inside, p->path);
    if (fstatat(t->fd, p->path, &st, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT) < 0) {
        csn_survey_fail_unless_absent(s, errno);
        /* The scan knows it by its name only if no link leads to its directory. */
        if (!p->pin && strncmp(p->path, s->via, strlen(s->via)) == 0 &&
            !csn_protected_is_excepted(s->j->protected, inside))
            csn_survey_target(s, p->path, p->rule);
        return false;
    }
    if (csn_protected_is_excepted(s->j->protected, inside))
        return true;
    csn_autofree char *real = resolve_below(s, p->path, &st);
    bool linked = !real || strcmp(real, p->path) != 0;
    if (linked)
        csn_survey_target(s, p->path, p->pin || p->file_only ? NULL : p->rule);
    if (linked && p->pin && strcmp(p->path, ".git") != 0)
        snprintf(s->via, sizeof(s->via), "%s/", p->path);
    if (real)
        add_found(s, p, inside, real, &st);
    return true;
}

/* Hashes the first three bytes of a name, without case, to one bit. Non-ASCII names get all
 * bits, because a case-insensitive file system may match them with other names. */
static uint64_t name_bit(const char *name)
{
    unsigned sum = 0;

    for (size_t i = 0; i < 3 && name[i]; i++) {
        unsigned char c = (unsigned char)name[i];
        if (c >= 0x80)
            return ~0ull;
        sum = sum * 31 + (unsigned)(c >= 'A' && c <= 'Z' ? c | 0x20 : c);
    }
    return 1ull << (sum % 64);
}

/* The bits of all names in the directory. Reading a small directory is faster than one stat per
 * protected name; for a large one all bits are set. */
static uint64_t name_bits(int dir)
{
    _Alignas(8) char buf[4096];
    uint64_t seen = 0;
    long n = syscall(SYS_getdents64, dir, buf, sizeof(buf));
    long more = n < 0 ? -1 : syscall(SYS_getdents64, dir, buf + n, sizeof(buf) - (size_t)n);

    (void)lseek(dir, 0, SEEK_SET); /* the scan reads the same descriptor */
    if (more != 0)
        return ~0ull;
    for (long at = 0; at < n;) {
        const struct dirent64 *e = (const void *)(buf + at);
        seen |= name_bit(e->d_name);
        at += e->d_reclen;
    }
    return seen;
}

static void survey_name(void *ctx, const csn_protected_name_place *p)
{
    csn_survey *s = ctx;

    if (!(s->name_bits & name_bit(p->path)) ||
        strncmp(p->path, s->missing, strlen(s->missing)) == 0)
        return;
    if (!survey_place(s, p) && p->pin)
        snprintf(s->missing, sizeof(s->missing), "%s/", p->path);
}

/* ---- all workspaces ---- */

/* True if the path inside names the same directory on the host. */
static bool has_same_path(const csn_jail_share *share)
{
    char real[PATH_MAX];

    return strcmp(share->inside, share->host) == 0 ||
           (realpath(share->inside, real) && strcmp(real, share->host) == 0);
}

static csn_status open_tree(csn_protected *g, const csn_jail_share *share, csn_error **err)
{
    csn_protected_tree *t = &g->trees[g->tree_count];

    *t = (csn_protected_tree){.host = share->host,
                              .inside = share->inside,
                              .named = has_same_path(share) ? share->inside : NULL,
                              .mark_fd = -1,
                              .mark_slot = -1};
    t->fd = open(share->host, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (t->fd < 0)
        return csn_fail_errno(err, errno, "workspace %s", share->host);
    g->tree_count++;
    return CSN_OK;
}

static csn_status survey_tree(csn_runtime *rt, csn_protected_tree *t, csn_error **err)
{
    csn_survey s = {
        .j = rt->jail, .t = t, .name_bits = name_bits(t->fd), .missing = "\n", .via = "\n"};

    csn_protected_name_each_place(survey_name, &s);
    csn_survey_git(&s);
    if (s.error == E2BIG)
        return csn_fail(err, CSN_TOO_LARGE, "workspace %s: more than %u protected files",
                        t->host, CSN_PROTECTED_PLACES);
    return s.error == 0
               ? CSN_OK
               : csn_fail_errno(err, s.error, "workspace %s: protected files", t->host);
}

/* ---- the state ---- */

static csn_status new_state(csn_runtime *rt, size_t tree_max, csn_error **err)
{
    csn_jail *j = rt->jail;
    csn_protected *g = csn_arena_alloc(j->arena, sizeof(*g));

    if (!g)
        return csn_fail(err, CSN_NOMEM, "workspace");
    *g = (csn_protected){.arena = j->arena, .base = rt->base.path, .clean = true, .stamp = -1};
    g->quarantine.fd = g->children = g->store = -1;
    pthread_mutex_init(&g->lock, NULL);
    pthread_mutex_init(&g->scan_lock, NULL);
    j->protected = g;
    csn_changed_now(&g->since);
    g->trees = csn_arena_array(j->arena, tree_max, sizeof(*g->trees));
    return g->trees ? CSN_OK : csn_fail(err, CSN_NOMEM, "workspace");
}

static bool is_protected(const csn_jail_share *share)
{
    return share->writable && !share->cow && strcmp(share->option, "workspace") == 0;
}

csn_status csn_protected_plan(csn_runtime *rt, const csn_jail_share *shares, size_t count,
                              csn_error **err)
{
    csn_status st = new_state(rt, count, err);
    csn_protected *g = rt->jail->protected;

    if (st == CSN_OK)
        st = csn_protected_read_rules(rt, shares, count, err);
    for (size_t i = 0; st == CSN_OK && i < count; i++)
        if (is_protected(&shares[i]))
            st = open_tree(g, &shares[i], err);
    if (st == CSN_OK)
        csn_protected_finish(rt);
    /* Without mounts, only the scan protects files. */
    for (size_t i = 0; st == CSN_OK && rt->level == CSN_LEVEL_NAMESPACES && i < g->tree_count;
         i++)
        st = survey_tree(rt, &g->trees[i], err);
    return st;
}

csn_status csn_protected_share(csn_runtime *rt, csn_error **err)
{
    csn_protected *g = rt->jail->protected;

    g->stamp = openat(rt->run_fd, STAMP_NAME,
                      O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (g->stamp < 0)
        return csn_runtime_run_failed(rt, errno, "state of protected files", err);
    csn_protected_stamp_write(g);
    return CSN_OK;
}

csn_status csn_protected_join(csn_runtime *rt, csn_error **err)
{
    csn_protected *g = rt->jail->protected;

    g->stamp = openat(rt->run_fd, STAMP_NAME, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
    if (g->stamp < 0 && errno == EROFS) /* nothing that changes files can start */
        g->stamp = openat(rt->run_fd, STAMP_NAME, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (g->stamp < 0)
        return csn_runtime_run_failed(rt, errno, "state of protected files", err);
    csn_protected_stamp_read(g);
    return CSN_OK;
}

/* ---- record of a detached jail ---- */

typedef struct tree_head {
    uint64_t dev, ino;
    const char *config; /* of git */
    uint32_t place_count;
} tree_head;

static const csn_field tree_fields[] = {
    CSN_FIELD(tree_head, U64, dev, 0, UINT64_MAX),
    CSN_FIELD(tree_head, U64, ino, 0, UINT64_MAX),
    CSN_FIELD(tree_head, OPTIONAL_TEXT, config, 0, CONFIG_MAX),
    CSN_FIELD(tree_head, U32, place_count, 0, CSN_PROTECTED_PLACES),
    {0}};

static const csn_field place_fields[] = {
    CSN_FIELD(csn_protected_place, TEXT, path, 1, CSN_PATH_MAX),
    CSN_FIELD(csn_protected_place, OPTIONAL_TEXT, rule, 0, CSN_PATH_MAX),
    CSN_FIELD(csn_protected_place, U64, id.dev, 0, UINT64_MAX),
    CSN_FIELD(csn_protected_place, U64, id.ino, 0, UINT64_MAX),
    CSN_FIELD(csn_protected_place, I64, id.sec, 0, 0),
    CSN_FIELD(csn_protected_place, I64, id.nsec, 0, 0),
    {0}};

static const csn_field exception_fields[] = {
    CSN_FIELD(csn_protected_exception, OPTIONAL_TEXT, path, 0, CSN_PATH_MAX),
    CSN_FIELD(csn_protected_exception, OPTIONAL_TEXT, pattern, 0, CSN_PATH_MAX),
    {0}};

void csn_protected_put(const csn_protected *g, csn_packer *o)
{
    csn_put_u32(o, (uint32_t)g->exception_count);
    for (size_t i = 0; i < g->exception_count; i++) {
        csn_put_fields(o, exception_fields, &g->exceptions[i]);
        csn_put_u32(o, g->exceptions[i].from_base);
    }
    for (size_t i = 0; i < g->tree_count; i++) {
        const csn_protected_tree *t = &g->trees[i];
        struct stat st = {0};
        (void)fstat(t->fd, &st);
        const tree_head h = {.dev = st.st_dev,
                             .ino = st.st_ino,
                             .config = t->config,
                             .place_count = (uint32_t)t->place_count};
        csn_put_fields(o, tree_fields, &h);
        for (size_t n = 0; n < t->place_count; n++) {
            csn_put_fields(o, place_fields, &t->places[n]);
            csn_put_u32(o, t->places[n].absent);
            csn_put_u32(o, t->places[n].link);
            csn_put_u32(o, t->places[n].shared);
        }
    }
}

static bool is_mounted_dir(const csn_protected_tree *t)
{
    struct stat st;

    return t->fd >= 0 && fstat(t->fd, &st) == 0 && st.st_dev == t->dev && st.st_ino == t->ino;
}

/* Opens the directory that was mounted, not another one that has its path by now. The jail
 * mounts it, so its inode number is not reused. */
static void open_mounted(csn_protected_tree *t)
{
    t->fd = open(t->host, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    t->moved = t->fd >= 0 || errno == ENOTDIR ? ENOENT : errno;
    if (is_mounted_dir(t))
        t->moved = 0;
    else if (t->fd >= 0)
        close(csn_steal_fd(&t->fd));
}

size_t csn_protected_clone_trees(const csn_runtime *rt, int *ret, size_t max)
{
    const csn_protected *g = rt->jail->protected;
    size_t n = 0;

    for (size_t i = 0; i < g->tree_count && n < max; i++) {
        int fd = csn_mount_clone(g->trees[i].fd, "", true);
        if (fd >= 0)
            ret[n++] = fd;
    }
    return n;
}

/* The jail's mount of a root caller is id-mapped: root cannot move files there. The sweeper has
 * another one. */
static int open_moved(const csn_runtime *rt, const csn_protected_tree *t)
{
    char held[CSN_FD_PATH_SIZE];

    if (csn_keeper_record_is_near(&rt->record) == 1 &&
        csn_pid_find_fd(&rt->record.holder, t->dev, t->ino, held) == 0)
        return open(held, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return csn_beneath_open(rt->root.fd, t->inside, O_RDONLY | O_DIRECTORY, CSN_BENEATH_ROOTED);
}

void csn_protected_reopen(csn_runtime *rt)
{
    csn_protected *g = rt->jail->protected;

    for (size_t i = 0; i < g->tree_count; i++) {
        csn_protected_tree *t = &g->trees[i];
        if (t->moved == 0)
            continue;
        int fd = open_moved(rt, t);
        t->fd = fd < 0 ? -1 : fd;
        if (fd >= 0 && !is_mounted_dir(t))
            close(csn_steal_fd(&t->fd));
    }
}

static int get_tree(csn_protected *g, const csn_jail_share *share, csn_unpacker *in)
{
    csn_protected_tree *t = &g->trees[g->tree_count];
    tree_head h;
    int rc = csn_get_fields(in, tree_fields, &h);

    if (rc < 0)
        return rc;
    *t = (csn_protected_tree){.host = share->host,
                              .inside = share->inside,
                              .named = has_same_path(share) ? share->inside : NULL,
                              .dev = h.dev,
                              .ino = h.ino,
                              .config = h.config,
                              .mark_fd = -1,
                              .mark_slot = -1};
    open_mounted(t);
    g->tree_count++;
    for (uint32_t i = 0; rc == 0 && i < h.place_count; i++) {
        csn_protected_place p = {0};
        rc = csn_get_fields(in, place_fields, &p);
        p.absent = csn_get_u32(in) != 0;
        p.link = csn_get_u32(in) != 0;
        p.shared = csn_get_u32(in) != 0;
        rc = rc < 0 ? rc : -put_place(t, &p);
    }
    return rc;
}

static int get_exception(csn_protected *g, csn_unpacker *in)
{
    csn_protected_exception one = {0};

    if (csn_get_fields(in, exception_fields, &one) < 0 || !one.path == !one.pattern)
        return -EPROTO;
    one.from_base = csn_get_u32(in) != 0;
    if (one.pattern && csn_glob_compile(one.pattern, &one.glob, NULL) < 0)
        return -ENOMEM;
    g->exceptions[g->exception_count++] = one;
    return 0;
}

int csn_protected_get(csn_runtime *rt, csn_unpacker *in)
{
    const csn_jail_shares *s = rt->jail->shares;
    int rc = new_state(rt, s->count, NULL) < 0 ? -ENOMEM : 0;
    csn_protected *g = rt->jail->protected;
    uint32_t opened = csn_get_u32(in);

    if (rc == 0 && opened > (size_t)(in->end - in->p))
        rc = -EPROTO;
    if (rc == 0 &&
        !(g->exceptions = csn_arena_array(g->arena, opened + 1, sizeof(*g->exceptions))))
        rc = -ENOMEM;
    for (uint32_t i = 0; rc == 0 && i < opened; i++)
        rc = get_exception(g, in);
    for (size_t i = 0; rc == 0 && i < s->count; i++)
        if (is_protected(&s->v[i]))
            rc = get_tree(g, &s->v[i], in);
    return rc;
}

csn_status csn_protected_check_trees(const csn_runtime *rt, csn_error **err)
{
    const csn_protected *g = rt->jail->protected;

    for (size_t i = 0; i < g->tree_count; i++) {
        const csn_protected_tree *t = &g->trees[i];
        if (t->moved == 0)
            continue;
        if (t->moved != ENOENT)
            return csn_fail_errno(err, t->moved, "workspace %s", t->host);
        csn_status st = csn_fail(
            err, CSN_NOT_FOUND,
            "workspace %s was removed, renamed or replaced since this sandbox was opened",
            t->host);
        return csn_error_advise(st, err, "destroy the sandbox and open a new one");
    }
    return CSN_OK;
}

void csn_protected_release(csn_protected *g)
{
    if (!g)
        return;
    for (size_t i = 0; i < g->tree_count; i++) {
        if (g->trees[i].fd >= 0)
            close(g->trees[i].fd);
        if (g->trees[i].mark_fd >= 0)
            close(g->trees[i].mark_fd);
        free(g->trees[i].places);
        csn_changed_memory_release(&g->trees[i].cache);
        csn_scan_cache_release(&g->trees[i].plain);
    }
    for (size_t i = 0; i < g->exception_count; i++)
        csn_glob_free(g->exceptions[i].glob);
    if (g->stamp >= 0)
        close(g->stamp);
    if (g->children >= 0)
        close(g->children);
    if (g->store >= 0)
        close(g->store);
    csn_scan_cache_release(&g->reported);
    csn_quarantine_release(&g->quarantine);
    pthread_mutex_destroy(&g->lock);
    pthread_mutex_destroy(&g->scan_lock);
}
