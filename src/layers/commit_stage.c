/* commit_stage.c: makes the temporary files of a commit.
 *
 * Commands control the layers and may change them while they are copied: a file whose inode,
 * size or times differ from those of the change makes the commit fail. Temporary files are
 * created exclusively, under names that a list in the store already has. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "layers/commit_internal.h"
#include "os/atomic.h"

#define SET_ID (S_ISUID | S_ISGID)

typedef struct stager {
    const csn_commit_request *r;
    const csn_commit_plan *plan;
    csn_oplist *l;
    csn_commit_dir stage;
    size_t *links; /* a hash table of operations whose file has several names; 0: free */
    size_t link_slots;
    csn_error **err;
} stager;

/* ---- hard links ---- */

static csn_status links_init(stager *s)
{
    size_t several = 0;

    for (size_t i = 0; i < s->l->count; i++) {
        if (s->l->v[i].kind == CSN_OP_RENAME &&
            s->plan->v[s->l->v[i].item].change->after.nlink > 1)
            several++;
    }
    if (several == 0)
        return CSN_OK;
    for (s->link_slots = 16; s->link_slots < 2 * several;)
        s->link_slots *= 2;
    s->links = calloc(s->link_slots, sizeof(*s->links));
    return s->links ? CSN_OK : csn_fail(s->err, CSN_NOMEM, "out of memory");
}

/* The earlier operation on the same inode of a layer, or NULL; then this one is remembered. */
static const csn_op *find_link(stager *s, size_t index)
{
    const csn_change_side *a = &s->plan->v[s->l->v[index].item].change->after;
    size_t mask = s->link_slots - 1;

    if (a->nlink < 2 || !s->links)
        return NULL;
    for (size_t at = (size_t)(a->ino * 0x9e3779b97f4a7c15ull >> 20) & mask;;
         at = (at + 1) & mask) {
        if (s->links[at] == 0) {
            s->links[at] = index + 1;
            return NULL;
        }
        const csn_op *op = &s->l->v[s->links[at] - 1];
        const csn_change_side *b = &s->plan->v[op->item].change->after;
        if (a->ino == b->ino && a->dev == b->dev)
            return op;
    }
}

/* -EXDEV, -EMLINK, -EPERM: the file is copied instead. */
static int link_staged(stager *s, const csn_op *from, int dir, const char *name)
{
    csn_commit_dir p = CSN_COMMIT_DIR(s->r->stack->base);
    char temp[CSN_COMMIT_TEMP_SIZE];
    int fd = csn_commit_dir_open(&p, from->stage);
    int rc = fd;

    csn_op_temp_name(s->l, from, temp);
    if (fd >= 0)
        rc = linkat(fd, temp, dir, name, 0) < 0 ? -errno : 0;
    csn_commit_dir_release(&p);
    return rc;
}

/* ---- one file ---- */

/* The owner: of the file that is replaced, else that of the layer; only root can give it. */
static int set_owner(stager *s, int fd, const csn_commit_item *i, const struct stat *layer)
{
    csn_commit_dir at = CSN_COMMIT_DIR(s->r->stack->base);
    const char *name;
    struct stat old;
    int dir = S_ISREG(i->host.mode) ? csn_commit_dir_above(&at, i->change->path, &name) : -1;
    bool replaces = dir >= 0 && fstatat(dir, name, &old, AT_SYMLINK_NOFOLLOW) == 0;
    const struct stat *from = replaces ? &old : layer;

    csn_commit_dir_release(&at);
    if (!from)
        return 0;
    if (geteuid() == 0)
        return fchown(fd, from->st_uid, from->st_gid) < 0 ? -errno : 0;
    if (replaces && fchown(fd, (uid_t)-1, old.st_gid) < 0 && errno != EPERM)
        return -errno;
    return 0;
}

static int set_attrs(stager *s, int fd, int from)
{
    const void *attrs = NULL;
    uint64_t len = 0;
    int rc = from < 0 ? 0 : csn_attrs_read(from, s->l->arena, &attrs, &len);

    return rc == 0 && len > 0 ? csn_attrs_write(fd, attrs, len, false) : rc;
}

static bool unchanged(const struct stat *a, const struct stat *b)
{
    return a->st_size == b->st_size && a->st_mtim.tv_sec == b->st_mtim.tv_sec &&
           a->st_mtim.tv_nsec == b->st_mtim.tv_nsec && a->st_ctim.tv_sec == b->st_ctim.tv_sec &&
           a->st_ctim.tv_nsec == b->st_ctim.tv_nsec;
}

/* -ESTALE: a command of the sandbox wrote to it since the changes were listed. */
static int copy_layer_file(int from, int to, const csn_layer_change *c)
{
    struct stat before, after;

    if (fstat(from, &before) < 0)
        return -errno;
    if ((uint64_t)before.st_size != c->after.size ||
        before.st_mtim.tv_sec != c->after.mtime.tv_sec ||
        before.st_mtim.tv_nsec != c->after.mtime.tv_nsec)
        return -ESTALE;
    int rc = csn_content_copy(from, to);
    if (rc == 0 && fstat(from, &after) < 0)
        rc = -errno;
    return rc == 0 && !unchanged(&before, &after) ? -ESTALE : rc;
}

static int write_file(stager *s, const csn_commit_item *i, int fd)
{
    const csn_layer_change *c = i->change;
    bool merge = i->verdict == CSN_COMMIT_MERGE, has_layer = S_ISREG(c->after.mode);
    struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, c->after.mtime};
    struct stat st;
    csn_autofd int from = has_layer ? csn_layer_open(s->r->stack, c, true) : -1;
    int rc = has_layer && from < 0 ? from : 0;

    if (rc == 0)
        rc = merge ? csn_write_full(fd, i->merged.data, i->merged.len, NULL)
                   : copy_layer_file(from, fd, c);
    if (rc == 0 && has_layer && fstat(from, &st) < 0)
        rc = -errno;
    if (rc == 0)
        rc = set_owner(s, fd, i, has_layer ? &st : NULL);
    if (rc == 0)
        rc = set_attrs(s, fd, from);
    /* Last: the mode may deny the attributes to their owner. */
    if (rc == 0 && fchmod(fd, (merge ? i->mode : c->after.mode) & 07777 & ~SET_ID) < 0)
        rc = -errno;
    if (rc == 0 && !merge && futimens(fd, times) < 0)
        rc = -errno;
    return rc;
}

static int stage_link(stager *s, const csn_commit_item *i, int dir, const char *name)
{
    const csn_layer_change *c = i->change;
    csn_autofree char *text = csn_layer_readlink(s->r->stack, c, true);
    struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, c->after.mtime};
    struct stat st;

    if (!text || symlinkat(text, dir, name) < 0)
        return -errno;
    if (utimensat(dir, name, times, AT_SYMLINK_NOFOLLOW) < 0)
        return -errno;
    if (geteuid() != 0)
        return 0;
    csn_commit_dir layer = CSN_COMMIT_DIR(s->r->stack->layers[c->layer]);
    const char *last = NULL;
    int from = csn_commit_dir_above(&layer, c->path, &last);
    int rc = from < 0 ? from : fstatat(from, last, &st, AT_SYMLINK_NOFOLLOW) < 0 ? -errno : 0;
    csn_commit_dir_release(&layer);
    if (rc == 0 && fchownat(dir, name, st.st_uid, st.st_gid, AT_SYMLINK_NOFOLLOW) < 0)
        rc = -errno;
    return rc;
}

static int stage_file(stager *s, const csn_commit_item *i, int dir, const char *name)
{
    csn_autofd int fd = openat(
        dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY, 0600);
    int rc = fd < 0 ? -errno : write_file(s, i, fd);

    return rc == 0 && s->l->count <= CSN_SYNC_EACH && fsync(fd) < 0 ? -errno : rc;
}

static int stage_op(stager *s, size_t index)
{
    csn_op *op = &s->l->v[index];
    const csn_commit_item *i = &s->plan->v[op->item];
    bool merge = i->verdict == CSN_COMMIT_MERGE;
    const csn_op *first = merge ? NULL : find_link(s, index);
    char name[CSN_COMMIT_TEMP_SIZE];
    csn_change_side made;
    int dir = csn_commit_dir_open(&s->stage, op->stage), rc = dir;

    csn_op_temp_name(s->l, op, name);
    if (dir >= 0)
        rc = first ? link_staged(s, first, dir, name) : -EXDEV;
    if (rc == -EXDEV || rc == -EMLINK || rc == -EPERM)
        rc = merge || S_ISREG(i->change->after.mode) ? stage_file(s, i, dir, name)
                                                     : stage_link(s, i, dir, name);
    if (rc == 0)
        rc = csn_side_read(dir, name, &made);
    if (rc == 0)
        op->temp_ino = made.ino;
    return rc;
}

csn_status csn_ops_stage(const csn_commit_request *r, const csn_commit_plan *plan,
                         csn_oplist *l, csn_error **err)
{
    stager s = {
        .r = r, .plan = plan, .l = l, .stage = CSN_COMMIT_DIR(r->stack->base), .err = err};
    csn_status st = links_init(&s);

    for (size_t i = 0; st == CSN_OK && i < l->count; i++) {
        int rc = l->v[i].kind == CSN_OP_RENAME ? stage_op(&s, i) : 0;
        if (rc == -ESTALE)
            st = csn_commit_stale(err, "the sandbox", l->v[i].path);
        else if (rc < 0)
            st = csn_commit_fail(err, -rc, "write", l->v[i].path);
    }
    csn_commit_dir_release(&s.stage);
    free(s.links);
    if (st == CSN_OK) {
        int rc = csn_ops_sync(r->stack->base, l, true);
        if (rc < 0)
            st = csn_commit_fail(err, -rc, "synchronize", ".");
    }
    return st;
}
