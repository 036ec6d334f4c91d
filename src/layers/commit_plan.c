/* commit_plan.c: decides for each change whether it is applied.
 *
 * A first pass goes from parents to children: what becomes of a directory decides about its
 * contents. A second one goes back: a directory can be removed only if everything in it is.
 * The host's entries are looked up below the base without following links. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/limits.h"
#include "base/path.h"
#include "layers/commit_internal.h"
#include "os/tree.h"

typedef struct planner {
    const csn_commit_request *r;
    csn_commit_plan *p;
    const csn_commit_resolution **resolved; /* of each item, or NULL */
    csn_commit_dir at;
    uint64_t mount; /* of the base; 0: the kernel does not tell */
    csn_error **err;
} planner;

const csn_commit_item *csn_plan_find(const csn_commit_plan *p, const char *path, size_t len)
{
    size_t low = 0, high = p->count;

    while (low < high) {
        size_t mid = low + (high - low) / 2;
        const char *other = p->v[mid].change->path;
        int c = csn_path_compare(path, len, other, strlen(other));
        if (c == 0)
            return &p->v[mid];
        *(c < 0 ? &high : &low) = c < 0 ? mid : mid + 1;
    }
    return NULL;
}

bool csn_item_removes(const csn_commit_item *i)
{
    return i->verdict == CSN_COMMIT_MERGE ||
           (i->verdict == CSN_COMMIT_APPLY && !S_ISDIR(i->change->after.mode));
}

/* ---- the host's side ---- */

static uint64_t mount_of(int dir, const char *name)
{
    struct statx st;

    return statx(dir, name, AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT, STATX_MNT_ID,
                 &st) == 0 &&
                   st.stx_mask & STATX_MNT_ID
               ? st.stx_mnt_id
               : 0;
}

/* Why the path cannot be reached on the host, if a parent is no directory: NULL if that parent
 * becomes one. *ret_by: the item of that parent. */
static const char *find_obstacle(planner *k, const char *path, const csn_commit_item **ret_by)
{
    for (const char *s = strchr(path, '/'); s; s = strchr(s + 1, '/')) {
        const csn_commit_item *i = csn_plan_find(k->p, path, (size_t)(s - path));
        csn_autofree char *dir = strndup(path, (size_t)(s - path));
        csn_change_side side = {0};
        const char *name;
        int fd = dir ? csn_commit_dir_above(&k->at, dir, &name) : -1;
        if (fd < 0 || csn_side_read(fd, name, &side) < 0 || S_ISDIR(side.mode))
            continue;
        *ret_by = i;
        if (i && i->verdict == CSN_COMMIT_APPLY && S_ISDIR(i->change->after.mode))
            return NULL;
        return S_ISLNK(side.mode) ? "a directory above it is a symbolic link on the host"
                                  : "a directory above it is no directory on the host";
    }
    return "a directory above it was changed at the same moment";
}

static csn_status stuck(csn_commit_item *i, const char *why)
{
    i->verdict = CSN_COMMIT_CONFLICT;
    i->why = why;
    i->stuck = true;
    return CSN_OK;
}

/* The parent is no directory on the host. *ret_go_on: it becomes one. */
static csn_status under_obstacle(planner *k, csn_commit_item *i, bool *ret_go_on)
{
    const csn_commit_item *by = NULL;
    const char *why = find_obstacle(k, i->change->path, &by);

    *ret_go_on = !why;
    if (!why)
        return CSN_OK;
    if (i->change->after.mode == 0) {
        i->verdict = CSN_COMMIT_SAME;
        i->why = "the host removed it, too";
    } else if (by && (by->verdict == CSN_COMMIT_KEEP || by->verdict == CSN_COMMIT_HELD)) {
        i->verdict = by->verdict;
        i->why = why;
    } else {
        return stuck(i, why);
    }
    return CSN_OK;
}

/* ---- one item ---- */

static bool is_held(planner *k, csn_commit_item *i)
{
    i->why = k->r->protects ? k->r->protects(k->r->ctx, i->change) : NULL;
    if (i->why)
        i->verdict = CSN_COMMIT_HELD;
    return i->why != NULL;
}

static csn_status resolve(planner *k, csn_commit_item *i, const csn_commit_resolution *by)
{
    uint32_t sandbox = i->change->after.mode;

    csn_buf_init(&i->merged, by->size);
    if (csn_buf_append(&i->merged, by->data, by->size) != 0)
        return csn_fail(k->err, CSN_NOMEM, "out of memory");
    i->verdict = CSN_COMMIT_MERGE;
    i->why = "resolved";
    i->mode = S_ISREG(sandbox)        ? sandbox & 01777
              : S_ISREG(i->host.mode) ? i->host.mode & 01777
                                      : 0644;
    return CSN_OK;
}

static void apply_rule(const planner *k, csn_commit_item *i)
{
    if (i->verdict != CSN_COMMIT_CONFLICT || k->r->rule == CSN_CONFLICT_STOP)
        return;
    if (k->r->rule == CSN_CONFLICT_HOST)
        i->verdict = CSN_COMMIT_KEEP;
    else if (!i->stuck)
        i->verdict = CSN_COMMIT_APPLY;
}

static csn_status decide(planner *k, size_t index)
{
    csn_commit_item *i = &k->p->v[index];
    const csn_commit_resolution *by = k->resolved[index];
    const char *name;
    bool held = is_held(k, i), go_on = true;
    csn_status st = CSN_OK;
    int dir = csn_commit_dir_above(&k->at, i->change->path, &name), rc = 0;

    if (dir == -ENOTDIR || dir == -ELOOP)
        st = held ? CSN_OK : under_obstacle(k, i, &go_on);
    else if (dir >= 0)
        rc = csn_side_read(dir, name, &i->host);
    else if (dir != -ENOENT)
        rc = dir;
    if (rc < 0)
        return csn_commit_fail(k->err, -rc, "read the host's", i->change->path);
    if (held || st != CSN_OK || !go_on)
        return st;
    if (dir >= 0 && (mount_of(dir, "") != k->mount ||
                     (i->host.mode != 0 && mount_of(dir, name) != k->mount)))
        return stuck(i, "another file system is mounted there on the host");
    return by ? resolve(k, i, by)
              : csn_item_compare(k->r, k->p->arena, i, dir >= 0 ? dir : -1, name, k->err);
}

/* ---- directories that are removed ---- */

typedef struct remainder {
    const csn_commit_plan *p;
    const char *dir;
    bool found;
    const csn_commit_item *item; /* of what was found */
} remainder;

static int stays(void *ctx, const char *name, const struct stat *st, const char *target)
{
    remainder *m = ctx;
    char path[CSN_PATH_MAX + 260];
    int n = snprintf(path, sizeof(path), "%s/%s", m->dir, name);

    (void)st;
    (void)target;
    m->item = n > 0 && (size_t)n < sizeof(path) ? csn_plan_find(m->p, path, (size_t)n) : NULL;
    m->found = !m->item || !csn_item_removes(m->item);
    return m->found;
}

int csn_plan_has_remainder(const csn_commit_plan *p, int base, const char *path,
                           const csn_commit_item **ret_item)
{
    csn_commit_dir at = CSN_COMMIT_DIR(base);
    remainder m = {.p = p, .dir = path};
    int dir = csn_commit_dir_open(&at, path);
    csn_autofd int fd =
        dir < 0 ? -1 : openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NONBLOCK);
    int rc = dir < 0 ? dir : fd < 0 ? -errno : csn_tree_list(fd, stays, &m);

    csn_commit_dir_release(&at);
    if (ret_item)
        *ret_item = m.found ? m.item : NULL;
    return rc < 0 ? rc : m.found;
}

static csn_status check_removal(planner *k, csn_commit_item *i)
{
    const csn_commit_item *kept = NULL;
    int rc = csn_plan_has_remainder(k->p, k->r->stack->base, i->change->path, &kept);

    if (rc < 0)
        return csn_commit_fail(k->err, -rc, "read the host's", i->change->path);
    if (rc == 0)
        return CSN_OK;
    i->why = kept ? "something in it stays" : "the host has files in it that are new";
    if (i->change->after.mode == 0 && i->verdict != CSN_COMMIT_MERGE) {
        i->verdict = CSN_COMMIT_KEEP;
    } else if (kept && (kept->verdict == CSN_COMMIT_KEEP || kept->verdict == CSN_COMMIT_HELD)) {
        i->verdict = kept->verdict;
    } else {
        (void)stuck(i, i->why);
        apply_rule(k, i);
    }
    return CSN_OK;
}

/* ---- the plan ---- */

static csn_status match_resolutions(planner *k)
{
    for (size_t n = 0; n < k->r->resolved_count; n++) {
        const csn_commit_resolution *by = &k->r->resolved[n];
        const csn_commit_item *i = csn_plan_find(k->p, by->path, strlen(by->path));
        if (!i) {
            csn_autofree char *shown = csn_path_printable(by->path);
            return csn_fail(k->err, CSN_INVALID,
                            "%s has a resolution, but the sandbox has not changed it",
                            shown ? shown : "a file");
        }
        k->resolved[i - k->p->v] = by;
    }
    return CSN_OK;
}

static csn_status decide_all(planner *k)
{
    csn_commit_plan *p = k->p;
    csn_status st = match_resolutions(k);

    for (size_t i = 0; st == CSN_OK && i < p->count; i++) {
        st = decide(k, i);
        if (st == CSN_OK)
            apply_rule(k, &p->v[i]);
    }
    for (size_t i = p->count; st == CSN_OK && i-- > 0;) {
        if (csn_item_removes(&p->v[i]) && S_ISDIR(p->v[i].host.mode))
            st = check_removal(k, &p->v[i]);
    }
    for (size_t i = 0; st == CSN_OK && i < p->count; i++) {
        csn_commit_item *it = &p->v[i];
        p->conflicts += it->verdict == CSN_COMMIT_CONFLICT;
        p->held += it->verdict == CSN_COMMIT_HELD;
        if (it->verdict == CSN_COMMIT_APPLY && !it->why && S_ISREG(it->change->after.mode) &&
            it->change->after.mode & (S_ISUID | S_ISGID))
            it->why = "its set-user-ID and set-group-ID bits are not committed";
    }
    return st;
}

csn_status csn_commit_plan_make(const csn_commit_request *r, csn_commit_plan *ret,
                                csn_error **err)
{
    size_t n = r->changes->count;
    csn_commit_plan p = {.arena = csn_arena_new(), .count = n};
    planner k = {.r = r,
                 .p = &p,
                 .at = CSN_COMMIT_DIR(r->stack->base),
                 .mount = mount_of(r->stack->base, ""),
                 .err = err};
    csn_status st = CSN_OK;

    if (p.arena) {
        p.v = csn_arena_array(p.arena, n ? n : 1, sizeof(*p.v));
        k.resolved = csn_arena_array(p.arena, n ? n : 1, sizeof(const void *));
    }
    if (!p.v || !k.resolved) {
        p.count = 0;
        st = csn_fail(err, CSN_NOMEM, "out of memory");
    }
    for (size_t i = 0; i < p.count; i++)
        p.v[i].change = &r->changes->v[i];
    if (st == CSN_OK)
        st = decide_all(&k);
    csn_commit_dir_release(&k.at);
    if (st == CSN_OK)
        *ret = p;
    else
        csn_commit_plan_release(&p);
    return st;
}

void csn_commit_plan_release(csn_commit_plan *p)
{
    for (size_t i = 0; i < p->count; i++)
        csn_buf_release(&p->v[i].merged);
    csn_arena_free(p->arena);
    *p = (csn_commit_plan){0};
}
