/* commit_ops.c: translates the verdicts of a plan into operations on the base.
 *
 * Everything that can be known to fail is refused here, before anything is written: after the
 * commit point a failure can only be reported. Directories that are closed to their owner are
 * opened for the time of the commit. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "layers/commit_internal.h"
#include "layers/entry.h"

typedef struct builder {
    const csn_commit_request *r;
    const csn_commit_plan *plan;
    csn_oplist *l;
    csn_commit_dir dir; /* the parent of the current path */
    const char **made;  /* directories that the commit makes, in the order of the plan */
    size_t made_count, made_room;
    csn_error **err;
} builder;

static csn_status no_memory(builder *b)
{
    return csn_fail(b->err, CSN_NOMEM, "out of memory");
}

/* Items are taken in the plan's order, so `made` is in that order, too. */
static bool is_made(const builder *b, const char *path, size_t len)
{
    size_t low = 0, high = b->made_count;

    while (low < high) {
        size_t mid = low + (high - low) / 2;
        int c = csn_path_compare(path, len, b->made[mid], strlen(b->made[mid]));
        if (c == 0)
            return true;
        *(c < 0 ? &high : &low) = c < 0 ? mid : mid + 1;
    }
    return false;
}

static csn_status note_made(builder *b, const char *path)
{
    if (b->made_count == b->made_room) {
        size_t room = b->made_room ? 2 * b->made_room : 16;
        const char **v = reallocarray(b->made, room, sizeof(*v));
        if (!v)
            return no_memory(b);
        b->made = v;
        b->made_room = room;
    }
    b->made[b->made_count++] = path;
    return CSN_OK;
}

/* ---- directories ---- */

/* Mode, owner and attributes of a directory, as the newest layer that has it says. */
static csn_status add_finish(builder *b, const char *path, bool fresh)
{
    csn_op *op = csn_oplist_add(b->l, CSN_OP_FINISH, path);
    csn_autofd int fd = -ENOENT;
    struct stat st;

    if (!op)
        return no_memory(b);
    for (size_t i = 0; fd == -ENOENT && i < b->r->stack->count; i++) {
        const csn_entry_tree layer = {.root = b->r->stack->layers[i], .unlock = true};
        fd = csn_entry_open_path(&layer, path, O_RDONLY | O_DIRECTORY);
    }
    int rc = fd < 0 ? fd : fstat(fd, &st) < 0 ? -errno : 0;
    if (rc == 0)
        rc = csn_attrs_read(fd, b->l->arena, &op->attrs, &op->attrs_len);
    if (rc < 0)
        return csn_commit_fail(b->err, -rc, "read the sandbox's", path);
    op->mode = st.st_mode & 07777;
    op->mtime = st.st_mtim;
    op->uid = st.st_uid;
    op->gid = st.st_gid;
    op->flags = CSN_OP_ATTRS | (fresh ? CSN_OP_MTIME : 0) |
                (fresh && geteuid() == 0 ? CSN_OP_OWNER : 0);
    return CSN_OK;
}

/* host: what gives way to it, or NULL. */
static csn_status add_mkdir(builder *b, const char *path, const csn_change_side *host)
{
    csn_op *op = csn_oplist_add(b->l, CSN_OP_MKDIR, path);

    if (!op)
        return no_memory(b);
    if (host)
        op->host = *host;
    csn_status st = note_made(b, path);
    return st == CSN_OK ? add_finish(b, path, true) : st;
}

/* The directory `path` of the base will be changed. One that is closed to its owner is opened
 * for the commit; then its mode is restored unless the plan sets another. */
static csn_status open_for_writing(builder *b, const char *path, int fd, bool *ret_closed)
{
    csn_change_side side;
    struct stat st;

    *ret_closed = faccessat(fd, ".", W_OK | X_OK, AT_EACCESS) < 0;
    if (!*ret_closed)
        return CSN_OK;
    if (errno != EACCES) /* read-only, immutable: a mode does not help */
        return csn_commit_fail(b->err, errno, "write to", *path ? path : ".");
    int rc = csn_side_read(fd, ".", &side);
    if (rc < 0 || fstat(fd, &st) < 0)
        return csn_commit_fail(b->err, rc < 0 ? -rc : errno, "read", path);
    if (st.st_uid != geteuid() || *path == '\0')
        return csn_commit_fail(b->err, EACCES, "write to", *path ? path : ".");
    for (size_t i = b->l->count; i-- > 0;) {
        if (b->l->v[i].kind == CSN_OP_OPEN && strcmp(b->l->v[i].path, path) == 0)
            return CSN_OK;
    }
    const char *name = csn_arena_strdup(b->l->arena, path);
    csn_op *op = name ? csn_oplist_add(b->l, CSN_OP_OPEN, name) : NULL;
    if (!op)
        return no_memory(b);
    op->host = side;
    const csn_commit_item *own = csn_plan_find(b->plan, path, strlen(path));
    if (own && own->verdict == CSN_COMMIT_APPLY)
        return CSN_OK;
    op = csn_oplist_add(b->l, CSN_OP_FINISH, name);
    if (!op)
        return no_memory(b);
    op->mode = side.mode & 07777;
    return CSN_OK;
}

static bool is_absent(int rc)
{
    return rc == -ENOENT || rc == -ENOTDIR ||
           rc == -ELOOP; /* a file gives way to a directory */
}

/* Makes the missing directories above a path; the layer has all of them. */
static csn_status make_parents(builder *b, const csn_layer_change *c)
{
    const char *last = strrchr(c->path, '/'), *unused;

    if (!last || is_made(b, c->path, (size_t)(last - c->path)) ||
        csn_commit_dir_above(&b->dir, c->path, &unused) >= 0)
        return CSN_OK;
    for (const char *s = strchr(c->path, '/'); s; s = strchr(s + 1, '/')) {
        size_t len = (size_t)(s - c->path);
        csn_change_side side = {0};
        const char *name;
        if (is_made(b, c->path, len))
            continue;
        char *dir = csn_arena_memdup(b->l->arena, c->path, len);
        if (!dir)
            return no_memory(b);
        int fd = csn_commit_dir_above(&b->dir, dir, &name);
        int rc = fd < 0 ? fd : csn_side_read(fd, name, &side);
        if (rc < 0 && !is_absent(rc))
            return csn_commit_fail(b->err, -rc, "open", dir);
        if (side.mode != 0)
            continue;
        bool closed;
        csn_status st = fd < 0 ? CSN_OK : open_for_writing(b, b->dir.path, fd, &closed);
        if (st == CSN_OK)
            st = add_mkdir(b, dir, NULL);
        if (st != CSN_OK)
            return st;
    }
    return CSN_OK;
}

/* ---- entries ---- */

/* The deepest directory above `path` that exists and can be written to now. */
static csn_status choose_stage(builder *b, const char *path, const char **ret)
{
    char *dir = csn_arena_strdup(b->l->arena, path);
    dev_t dev = 0;
    bool first = true;

    if (!dir)
        return no_memory(b);
    for (;;) {
        char *slash = strrchr(dir, '/');
        struct stat st;
        *(slash ? slash : dir) = '\0';
        int fd = is_made(b, dir, strlen(dir)) ? -ENOENT : csn_commit_dir_open(&b->dir, dir);
        if (fd >= 0 && fstat(fd, &st) < 0)
            return csn_commit_fail(b->err, errno, "open", dir);
        if (fd < 0 && (*dir == '\0' || fd == -ENOMEM || fd == -EMFILE))
            return csn_commit_fail(b->err, -fd, "open", *dir ? dir : ".");
        if (fd < 0)
            continue;
        dev = first ? st.st_dev : dev;
        first = false;
        if (st.st_dev != dev)
            return csn_commit_fail(b->err, EXDEV, "write", path);
        if (faccessat(fd, ".", W_OK | X_OK, AT_EACCESS) == 0) {
            *ret = dir;
            return CSN_OK;
        }
        if (*dir == '\0')
            return csn_commit_fail(b->err, EACCES, "write to", ".");
    }
}

static csn_status add_rename(builder *b, const csn_commit_item *i, size_t index)
{
    const char *stage = NULL, *slash = strrchr(i->change->path, '/');
    csn_status st = choose_stage(b, i->change->path, &stage);

    if (st != CSN_OK)
        return st;
    csn_op *op = csn_oplist_add(b->l, CSN_OP_RENAME, i->change->path);
    if (!op)
        return no_memory(b);
    op->host = i->host;
    op->stage = stage;
    if (slash && is_made(b, i->change->path, (size_t)(slash - i->change->path)))
        op->flags = CSN_OP_IN_NEW;
    op->item = index;
    return CSN_OK;
}

static csn_status add_remove(builder *b, const csn_commit_item *i, size_t index, bool replaced)
{
    csn_op *op = csn_oplist_add(b->l, CSN_OP_REMOVE, i->change->path);

    if (!op)
        return no_memory(b);
    op->host = i->host;
    op->flags = replaced ? CSN_OP_REPLACED : 0;
    op->item = index;
    return CSN_OK;
}

/* Removing or replacing an entry: a sticky directory lets only owners do that, and nothing
 * replaces an immutable file. */
static csn_status check_replaceable(builder *b, const csn_commit_item *i, int dir,
                                    const char *name)
{
    struct stat d, f;
    struct statx x = {0};

    if (i->host.mode == 0)
        return CSN_OK;
    if (statx(dir, name, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT, STATX_TYPE, &x) == 0 &&
        x.stx_attributes & (STATX_ATTR_IMMUTABLE | STATX_ATTR_APPEND))
        return csn_commit_fail(b->err, EPERM, "replace the immutable", i->change->path);
    if (geteuid() == 0)
        return CSN_OK;
    if (fstat(dir, &d) < 0 || fstatat(dir, name, &f, AT_SYMLINK_NOFOLLOW) < 0)
        return csn_commit_fail(b->err, errno, "read", i->change->path);
    if (d.st_mode & S_ISVTX && d.st_uid != geteuid() && f.st_uid != geteuid())
        return csn_commit_fail(b->err, EPERM, "replace", i->change->path);
    return CSN_OK;
}

/* Only its mode and attributes change. After an interruption its contents must be reachable
 * whatever the new mode is. */
static csn_status add_dir_change(builder *b, const csn_commit_item *i)
{
    const char *path = i->change->path;
    csn_change_side now = {0};
    struct stat st;
    int fd = csn_commit_dir_open(&b->dir, path);

    if (fd < 0 || fstat(fd, &st) < 0 || csn_side_read(fd, ".", &now) < 0)
        return csn_commit_fail(b->err, fd < 0 ? -fd : errno, "open", path);
    if (geteuid() != 0 && st.st_uid != geteuid())
        return csn_commit_fail(b->err, EPERM, "change the mode of", path);
    if ((i->change->after.mode & 0700) != 0700) {
        csn_op *op = csn_oplist_add(b->l, CSN_OP_OPEN, path);
        if (!op)
            return no_memory(b);
        op->host = now;
    }
    return add_finish(b, path, false);
}

static csn_status add_item(builder *b, const csn_commit_item *i, size_t index)
{
    const csn_layer_change *c = i->change;
    uint32_t want = i->verdict == CSN_COMMIT_MERGE ? S_IFREG : c->after.mode & S_IFMT;
    uint32_t has = i->host.mode & S_IFMT;
    const char *name;
    bool closed = false;
    csn_status st = CSN_OK;

    if (want == S_IFDIR && has == S_IFDIR)
        return add_dir_change(b, i);
    if (want == 0 && has == 0)
        return CSN_OK;
    if (want != 0)
        st = make_parents(b, c);
    int fd = st == CSN_OK ? csn_commit_dir_above(&b->dir, c->path, &name) : -1;
    if (st == CSN_OK && fd < 0 && !is_absent(fd))
        st = csn_commit_fail(b->err, -fd, "open the directory of", c->path);
    if (st == CSN_OK && fd >= 0)
        st = open_for_writing(b, b->dir.path, fd, &closed);
    if (st == CSN_OK && fd >= 0)
        st = check_replaceable(b, i, fd, name);
    /* A file gives way to a file by the rename itself. */
    if (st == CSN_OK && has != 0 && (want == 0 || want == S_IFDIR || has == S_IFDIR))
        st = add_remove(b, i, index, want != 0);
    if (st == CSN_OK && want == S_IFDIR)
        st = add_mkdir(b, c->path, &i->host);
    else if (st == CSN_OK && want != 0)
        st = add_rename(b, i, index);
    return st;
}

/* ---- order ---- */

static int by_execution(const void *x, const void *y)
{
    const csn_op *a = x, *b = y;
    bool children_first = a->kind == CSN_OP_REMOVE || a->kind == CSN_OP_FINISH;

    if (a->kind != b->kind)
        return a->kind < b->kind ? -1 : 1;
    if (a->number == b->number)
        return 0;
    return (a->number < b->number) != children_first ? -1 : 1;
}

static int make_token(char ret[CSN_COMMIT_TOKEN + 1])
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz234567";
    unsigned char bytes[CSN_COMMIT_TOKEN];

    if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes))
        return -EIO;
    for (size_t i = 0; i < sizeof(bytes); i++)
        ret[i] = letters[bytes[i] % 32];
    ret[CSN_COMMIT_TOKEN] = '\0';
    return 0;
}

csn_status csn_ops_make(const csn_commit_request *r, const csn_commit_plan *plan,
                        csn_oplist *ret, csn_error **err)
{
    csn_oplist l = {.arena = csn_arena_new()};
    builder b = {
        .r = r, .plan = plan, .l = &l, .dir = CSN_COMMIT_DIR(r->stack->base), .err = err};
    csn_status st = l.arena ? CSN_OK : no_memory(&b);

    if (st == CSN_OK && make_token(l.token) < 0)
        st = csn_fail(err, CSN_IO, "getrandom failed");
    for (size_t i = 0; st == CSN_OK && i < plan->count; i++) {
        if (plan->v[i].verdict == CSN_COMMIT_APPLY || plan->v[i].verdict == CSN_COMMIT_MERGE)
            st = add_item(&b, &plan->v[i], i);
    }
    csn_commit_dir_release(&b.dir);
    free(b.made);
    if (st != CSN_OK) {
        csn_oplist_release(&l);
        return st;
    }
    for (size_t i = 0; i < l.count; i++)
        l.v[i].number = i;
    if (l.count > 1)
        qsort(l.v, l.count, sizeof(*l.v), by_execution);
    *ret = l;
    return CSN_OK;
}
