/* copy_walk.c: walks trees depth first and makes each entry in the copy.
 *
 * One frame per directory of the path at hand: which trees take part in it, the directory of
 * the copy, and the names left to visit. Commands decide how deep and how wide a layer is:
 * frames are on the heap, and only the deepest FRAMES_OPEN of them hold descriptors. An earlier
 * one opens its directories again from below, and checks that they are the same; the copy's own
 * directories are moved by no one. */
#include "layers/copy_walk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "layers/names.h"

#define BASE        CSN_LAYERS_MAX /* its place among the trees */
#define TREES       (CSN_LAYERS_MAX + 1)
#define BIT(i)      (1u << (i))
#define FRAMES_OPEN 4u

typedef struct frame {
    uint32_t in;     /* trees whose directories are merged here; BASE: it has one, too */
    bool base_shown; /* nothing hides the base here, and it may have the directory */
    bool opaque;     /* this directory hides it */
    bool open;       /* the descriptors of the trees */
    size_t newest;   /* whose attributes it gets */
    struct stat st;
    int fd[TREES], to;
    dev_t dev[TREES];
    ino_t ino[TREES];
    csn_names names;
    size_t next;
} frame;

typedef struct walk {
    const csn_copy_walk *w;
    csn_replica *r;
    csn_entry_tree tree[TREES];
    dev_t dev[TREES]; /* of the roots */
    frame *frames;
    size_t depth, room;
} walk;

/* ---- frames ---- */

static void frame_init(frame *f)
{
    *f = (frame){.to = -1};
    memset(f->fd, -1, sizeof(f->fd));
}

static void frame_close_trees(frame *f)
{
    for (size_t i = 0; i < TREES; i++)
        if (f->fd[i] >= 0)
            close(f->fd[i]);
    memset(f->fd, -1, sizeof(f->fd));
    f->open = false;
}

static void frame_close(frame *f)
{
    frame_close_trees(f);
    if (f->to >= 0)
        close(f->to);
    f->to = -1;
}

static void frame_release(frame *f)
{
    frame_close(f);
    csn_names_release(&f->names);
}

/* The frame has the descriptor afterwards. */
static void frame_put(frame *f, size_t tree, int fd, const struct stat *st)
{
    if (f->in == 0) { /* the base comes last */
        f->newest = tree;
        f->st = *st;
    }
    f->fd[tree] = fd;
    f->dev[tree] = st->st_dev;
    f->ino[tree] = st->st_ino;
    f->in |= BIT(tree);
    f->open = true;
}

static void frame_drop_base(frame *f)
{
    if (f->fd[BASE] >= 0)
        close(f->fd[BASE]);
    f->fd[BASE] = -1;
    f->in &= ~BIT(BASE);
}

static bool is_same_dir(const frame *f, size_t tree, int fd)
{
    struct stat st;

    return fd >= 0 && fstat(fd, &st) == 0 && st.st_dev == f->dev[tree] &&
           st.st_ino == f->ino[tree];
}

static int flags_of(size_t tree)
{
    return (tree == BASE ? O_PATH : O_RDONLY) | O_DIRECTORY;
}

/* From the root by the names of the frames, if `..` is another directory now. */
static int reopen_by_names(const walk *k, size_t depth, size_t tree)
{
    const csn_entry_tree *t = &k->tree[tree];
    int fd = csn_entry_open(t, t->root, ".", flags_of(tree));

    for (size_t i = 0; i < depth && fd >= 0; i++) {
        const frame *f = &k->frames[i];
        csn_autofd int above = fd;
        fd = csn_entry_open(t, above, f->names.v[f->next - 1].text, flags_of(tree));
    }
    return fd;
}

static int reopen_tree(const walk *k, size_t depth, size_t tree)
{
    const frame *f = &k->frames[depth], *child = f + 1;

    if (child->fd[tree] >= 0) {
        int fd = csn_entry_open(&k->tree[tree], child->fd[tree], "..", O_RDONLY | O_DIRECTORY);
        if (is_same_dir(f, tree, fd))
            return fd;
        if (fd >= 0)
            close(fd);
    }
    return reopen_by_names(k, depth, tree);
}

/* Opens the directories of a frame again, from its child. What is left of one that is gone is
 * not visited. */
static int frame_reopen(walk *k, size_t depth)
{
    frame *f = &k->frames[depth];

    f->to = openat(f[1].to, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (f->to < 0)
        return -errno;
    for (size_t i = 0; i < TREES; i++) {
        if (!(f->in & BIT(i)))
            continue;
        f->fd[i] = reopen_tree(k, depth, i);
        if (f->fd[i] == -EMFILE || f->fd[i] == -ENFILE || f->fd[i] == -ENOMEM)
            return f->fd[i];
        if (i == BASE && !is_same_dir(f, i, f->fd[i])) {
            frame_drop_base(f); /* the user moved it: it may be there again */
        } else if (!is_same_dir(f, i, f->fd[i])) {
            frame_close_trees(f);
            f->next = f->names.count;
            return 0;
        }
    }
    f->open = true;
    return 0;
}

/* ---- names ---- */

static void closedirp(DIR **d)
{
    if (*d)
        closedir(*d);
}

static int read_names(const csn_entry_tree *t, int dir, size_t tree, csn_names *l)
{
    csn_autofd int fd = csn_entry_open(t, dir, ".", O_RDONLY | O_DIRECTORY);
    CSN_CLEANUP(closedirp) DIR *d = fd < 0 ? NULL : fdopendir(fd);

    if (!d)
        return fd < 0 ? fd : -errno;
    (void)csn_steal_fd(&fd); /* d has it */
    for (;;) {
        errno = 0;
        const struct dirent *e = readdir(d);
        if (!e)
            return -errno;
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
            continue;
        int rc = csn_names_add(l, e->d_name, BIT(tree));
        if (rc < 0)
            return rc;
    }
}

static int frame_list(const walk *k, frame *f)
{
    int rc = 0;

    for (size_t i = 0; i < k->w->count && rc >= 0; i++) {
        if (f->in & BIT(i))
            rc = read_names(&k->tree[i], f->fd[i], i, &f->names);
        if (csn_replica_is_gone(rc))
            rc = 0; /* removed: it has no names */
    }
    csn_names_merge(&f->names);
    return rc;
}

/* Takes over the descriptors of *f, on failure too. */
static int push(walk *k, frame *f)
{
    int rc = frame_list(k, f);

    if (rc == 0 && (!k->frames || k->depth == k->room)) {
        size_t room = k->room ? 2 * k->room : 16;
        frame *v = reallocarray(k->frames, room, sizeof(*v));
        if (!v)
            rc = -ENOMEM;
        else {
            k->frames = v;
            k->room = room;
        }
    }
    if (rc < 0) {
        frame_release(f);
        return rc;
    }
    if (k->depth >= FRAMES_OPEN)
        frame_close(&k->frames[k->depth - FRAMES_OPEN]);
    k->frames[k->depth++] = *f;
    return 0;
}

/* ---- one name ---- */

/* A mount point, or on another file system. Overlays give files other device numbers than
 * directories: those of directories alone are compared. */
static bool is_other_fs(const walk *k, size_t tree, int dir, const char *name,
                        const struct stat *st)
{
    struct statx x;

    if (S_ISDIR(st->st_mode) && st->st_dev != k->dev[tree])
        return true;
    if (k->r->layer)
        return false;
    return statx(dir, name, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT, STATX_TYPE, &x) == 0 &&
           (x.stx_attributes & STATX_ATTR_MOUNT_ROOT);
}

static int open_dir(const walk *k, size_t tree, int dir, const char *name, frame *sub)
{
    struct stat st;
    int fd = csn_entry_open(&k->tree[tree], dir, name, O_RDONLY | O_DIRECTORY);

    if (fd < 0)
        return fd;
    if (fstat(fd, &st) < 0 || st.st_dev != k->dev[tree]) {
        close(fd);
        return -ESTALE;
    }
    frame_put(sub, tree, fd, &st);
    return k->r->layer ? csn_entry_is_opaque(&k->tree[tree], fd) : 0;
}

/* What of the base is below the name. Unless that is known, it may have a directory there. */
static void look_below(const walk *k, const frame *f, const char *name, frame *sub)
{
    struct stat st;

    sub->base_shown = f->base_shown && !sub->opaque;
    if (!sub->base_shown || !(f->in & BIT(BASE)))
        return;
    int fd = csn_entry_open(&k->tree[BASE], f->fd[BASE], name, flags_of(BASE));
    if (csn_replica_is_gone(fd))
        sub->base_shown = false;
    else if (fd >= 0 && fstat(fd, &st) == 0)
        frame_put(sub, BASE, fd, &st);
    else if (fd >= 0)
        close(fd);
}

/* Only a mark for the base: without that, it is not needed. */
static bool is_needless(const walk *k, const frame *f, const struct stat *st)
{
    return !k->w->verbatim && !f->base_shown && csn_entry_is_whiteout(st);
}

/* Collects the directories of the name in *sub, or copies another entry. 1: all older trees
 * are hidden. */
static int look_at(walk *k, const frame *f, size_t tree, const char *name, frame *sub)
{
    const csn_entry_tree *t = &k->tree[tree];
    struct stat st;
    int rc = csn_entry_stat(t, f->fd[tree], name, &st);

    if (rc < 0)
        return rc;
    if (is_other_fs(k, tree, f->fd[tree], name, &st)) {
        k->r->done.other_fs++;
        return 0;
    }
    if (!S_ISDIR(st.st_mode)) {
        if (sub->in == 0 && !is_needless(k, f, &st))
            rc = csn_replica_entry(k->r, t, f->fd[tree], name, f->to);
        return rc < 0 ? rc : 1;
    }
    return open_dir(k, tree, f->fd[tree], name, sub);
}

static int make_dir(walk *k, const frame *f, const char *name, frame *sub)
{
    if (mkdirat(f->to, name, 0700) < 0)
        return -errno;
    sub->to = openat(f->to, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (sub->to < 0)
        return -errno;
    k->r->done.entries++;
    return 0;
}

static int visit(walk *k, frame *f)
{
    const csn_name *n = &f->names.v[f->next++];
    frame sub;
    int rc = 0;

    frame_init(&sub);
    for (size_t i = 0; i < k->w->count && rc == 0; i++) {
        if (n->in & f->in & BIT(i))
            rc = look_at(k, f, i, n->text, &sub);
        if (csn_replica_is_gone(rc))
            rc = 0;
    }
    sub.opaque = rc == 1;
    if (rc >= 0 && sub.in != 0) {
        look_below(k, f, n->text, &sub);
        rc = make_dir(k, f, n->text, &sub);
        if (rc == 0)
            return push(k, &sub); /* f is not valid any more */
    }
    frame_release(&sub);
    return rc < 0 ? rc : 0;
}

static int pop(walk *k)
{
    frame *f = &k->frames[k->depth - 1];
    int rc = 0;

    if (k->depth == 1)
        rc = csn_replica_end_links(k->r);
    else if (f[-1].to < 0)
        rc = frame_reopen(k, k->depth - 2);
    if (rc == 0)
        rc = csn_replica_dir(k->r, &k->tree[f->newest], f->fd[f->newest], &f->st, f->to,
                             k->w->verbatim, f->opaque);
    frame_release(f);
    k->depth--;
    return rc;
}

static int push_root(walk *k)
{
    frame f;
    int rc = 0;

    frame_init(&f);
    f.base_shown = true;
    for (size_t i = 0; i < k->w->count && rc >= 0; i++) {
        const csn_entry_tree *t = &k->tree[i];
        struct stat st;
        int fd = csn_entry_open(t, t->root, ".", O_RDONLY | O_DIRECTORY);
        rc = fd < 0 ? fd : fstat(fd, &st) < 0 ? -errno : 0;
        if (rc == 0) {
            k->dev[i] = st.st_dev;
            frame_put(&f, i, fd, &st);
        } else if (fd >= 0)
            close(fd);
    }
    if (rc == 0 && k->tree[BASE].root >= 0) {
        struct stat st;
        int fd = csn_entry_open(&k->tree[BASE], k->tree[BASE].root, ".", flags_of(BASE));
        if (fd >= 0 && fstat(fd, &st) == 0)
            frame_put(&f, BASE, fd, &st);
        else if (fd >= 0)
            close(fd);
    }
    if (rc == 0) {
        f.to = openat(k->r->root, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        rc = f.to < 0 ? -errno : 0;
    }
    if (rc < 0) {
        frame_release(&f);
        return rc;
    }
    return push(k, &f);
}

int csn_copy_walk_run(const csn_copy_walk *w, csn_replica *r)
{
    walk k = {.w = w, .r = r, .tree[BASE] = {w->base, false}};

    memcpy(k.tree, w->tree, w->count * sizeof(*w->tree));
    int rc = push_root(&k);

    while (rc == 0 && k.depth > 0) {
        frame *f = &k.frames[k.depth - 1];
        rc = f->next == f->names.count ? pop(&k) : visit(&k, f);
    }
    while (k.depth > 0)
        frame_release(&k.frames[--k.depth]);
    free(k.frames);
    return rc;
}
