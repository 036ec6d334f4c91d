/* changes.c: walks all layers and the base at once, depth first, and lists what differs.
 *
 * One frame per directory of the path at hand: which layers take part in it, whether the base
 * shows through, and the names left to visit. Names come from the layers; those of the base are
 * read only where a layer hides it, so the cost follows the changes and not the base.
 *
 * Commands decide how deep and how wide a layer is. Frames are on the heap, only the deepest
 * FRAMES_OPEN of them hold descriptors (an earlier one opens its directories again, and checks
 * that they are the same), and names, rows and paths have ceilings. */
#include "layers/changes.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/limits.h"
#include "base/path.h"
#include "layers/compare.h"
#include "layers/entry.h"
#include "layers/names.h"
#include "layers/path_filter.h"

#define BASE        CSN_LAYERS_MAX /* its place among the trees */
#define TREES       (CSN_LAYERS_MAX + 1)
#define BIT(i)      (1u << (i))
#define FRAMES_OPEN 8u
_Static_assert(TREES <= 32, "a bit for each tree");

typedef struct frame {
    size_t path_len;
    uint32_t in;     /* layers whose directories are merged here; BASE: the base has one, too */
    bool base_shown; /* and it is merged with those */
    bool selected;   /* all below it is asked for */
    bool open;
    int fd[TREES];
    dev_t dev[TREES];
    ino_t ino[TREES];
    csn_names names;
    size_t next;
} frame;

typedef struct walk {
    size_t layers;
    csn_entry_tree tree[TREES];
    const csn_path_filter *filter;
    char *path; /* of CSN_LAYER_PATH_MAX bytes; a frame's path is the start of it */
    frame *frames;
    size_t depth, frames_room;
    csn_layer_changes found;
    size_t found_room;
    uint64_t path_bytes;
    char *buf; /* CSN_ENTRY_BUFFER */
    csn_error **err;
} walk;

/* One name on both sides. */
typedef struct pair {
    frame dir; /* what is to be visited below; not open: nothing */
    struct stat before, after;
    bool had, has;
    size_t layer; /* of after */
} pair;

static csn_status fail_at(walk *w, int errnum, const char *what)
{
    csn_autofree char *shown = csn_path_printable(w->path[0] ? w->path : ".");

    csn_status st = csn_fail_errno(w->err, errnum, "%s %s", what, shown ? shown : "");
    if (errnum == EACCES)
        csn_error_advise(st, w->err, "`chmod u+rx` on the host makes it readable");
    return st;
}

/* ---- rows ---- */

static csn_change_side side_of(bool exists, const struct stat *st)
{
    if (!exists)
        return (csn_change_side){0};
    return (csn_change_side){
        .mode = st->st_mode,
        .size = (uint64_t)st->st_size,
        .dev = st->st_dev,
        .ino = st->st_ino,
        .nlink = st->st_nlink,
        .mtime = st->st_mtim,
        .ctime = st->st_ctim,
    };
}

static csn_status add_row(walk *w, const pair *p, csn_change_kind kind)
{
    size_t len = strlen(w->path);

    w->path_bytes += len + 1;
    if (w->found.count >= CSN_LAYER_CHANGES_MAX || w->path_bytes > CSN_LAYER_PATHS_BYTES_MAX)
        return csn_fail(w->err, CSN_TOO_LARGE,
                        "the workspace has more than %u changes, or paths too long to list",
                        CSN_LAYER_CHANGES_MAX);
    if (w->found.count == w->found_room) {
        size_t room = w->found_room ? 2 * w->found_room : 64;
        csn_layer_change *v = reallocarray(w->found.v, room, sizeof(*v));
        if (!v)
            return fail_at(w, ENOMEM, "list");
        w->found.v = v;
        w->found_room = room;
    }
    char *path = strdup(w->path);
    if (!path)
        return fail_at(w, ENOMEM, "list");
    w->found.v[w->found.count++] = (csn_layer_change){
        .path = path,
        .kind = kind,
        .before = side_of(p->had, &p->before),
        .after = side_of(p->has, &p->after),
        .layer = p->layer,
    };
    return CSN_OK;
}

/* ---- comparing ---- */

static csn_status compare(walk *w, const frame *f, const pair *p, const char *name)
{
    csn_compared c = {.name = name,
                      .a = {&w->tree[p->layer], f->fd[p->layer], &p->after},
                      .b = {&w->tree[BASE], f->fd[BASE], &p->before}};

    if (!p->had || !p->has)
        return add_row(w, p, p->has ? CSN_CHANGE_ADDED : CSN_CHANGE_DELETED);
    int r = csn_compare(&c, w->buf);
    if (r < 0)
        return fail_at(w, -r, "compare");
    return r == 0 ? CSN_OK : add_row(w, p, (csn_change_kind)r);
}

/* ---- frames ---- */

static void frame_close(frame *f)
{
    for (size_t i = 0; i < TREES; i++)
        if (f->fd[i] >= 0)
            close(f->fd[i]);
    memset(f->fd, -1, sizeof(f->fd));
    f->open = false;
}

static void frame_release(frame *f)
{
    frame_close(f);
    csn_names_release(&f->names);
}

static void frame_init(frame *f)
{
    *f = (frame){0};
    memset(f->fd, -1, sizeof(f->fd));
}

/* The frame has the descriptor afterwards, on failure too. */
static int frame_put(frame *f, size_t tree, int fd)
{
    struct stat st;

    f->fd[tree] = fd;
    if (fstat(fd, &st) < 0)
        return -errno;
    f->dev[tree] = st.st_dev;
    f->ino[tree] = st.st_ino;
    f->in |= BIT(tree);
    f->open = true;
    return 0;
}

/* A directory of the base that cannot be listed can still be looked into. */
static int open_base_dir(const csn_entry_tree *t, int dir, const char *name)
{
    int fd = csn_entry_open(t, dir, name, O_RDONLY | O_DIRECTORY);

    return fd == -EACCES ? csn_entry_open(t, dir, name, O_PATH | O_DIRECTORY) : fd;
}

static bool is_same_dir(const frame *f, size_t tree, int fd)
{
    struct stat st;

    return fd >= 0 && fstat(fd, &st) == 0 && st.st_dev == f->dev[tree] &&
           st.st_ino == f->ino[tree];
}

/* `..` of a child is right unless the child was moved; the path is right unless a directory on
 * it was. Which of them led to the directory does not matter. */
static int reopen_dir(const walk *w, const frame *f, const frame *child, size_t tree)
{
    const csn_entry_tree *t = &w->tree[tree];
    const char *path = f->path_len == 0 ? "." : w->path;

    if (child->fd[tree] >= 0) {
        int fd = csn_entry_open(t, child->fd[tree], "..", O_RDONLY | O_DIRECTORY);
        if (is_same_dir(f, tree, fd))
            return fd;
        if (fd >= 0)
            close(fd);
    }
    int fd = csn_entry_open_path(t, path, O_RDONLY | O_DIRECTORY);
    return fd == -EACCES ? csn_entry_open_path(t, path, O_PATH | O_DIRECTORY) : fd;
}

/* Opens the directories of a frame again, after its child. A directory that is another one now:
 * 0, and nothing more is visited there. */
static int frame_reopen(walk *w, frame *f, const frame *child)
{
    w->path[f->path_len] = '\0';
    for (size_t i = 0; i < TREES; i++) {
        if (!(f->in & BIT(i)))
            continue;
        f->fd[i] = reopen_dir(w, f, child, i);
        if (f->fd[i] == -EMFILE || f->fd[i] == -ENFILE || f->fd[i] == -ENOMEM)
            return f->fd[i];
        if (!is_same_dir(f, i, f->fd[i])) {
            frame_close(f);
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

static int read_names(walk *w, const frame *f, size_t tree, csn_names *l)
{
    csn_autofd int fd =
        csn_entry_open(&w->tree[tree], f->fd[tree], ".", O_RDONLY | O_DIRECTORY);
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
        if (!f->selected && !csn_path_filter_leads(w->filter, w->path, e->d_name))
            continue;
        int r = csn_names_add(l, e->d_name, BIT(tree));
        if (r < 0)
            return r;
    }
}

/* A directory that is gone has no names. w->path is that of the frame. */
static csn_status frame_list(walk *w, frame *f)
{
    int r = 0;

    for (size_t i = 0; i < w->layers && r >= 0; i++)
        if (f->in & BIT(i))
            r = read_names(w, f, i, &f->names);
    if (r >= 0 && (f->in & BIT(BASE)) && !f->base_shown)
        r = read_names(w, f, BASE, &f->names);
    csn_names_merge(&f->names);
    if (r < 0 && r != -ENOENT && r != -ESTALE)
        return fail_at(w, -r, "list");
    return CSN_OK;
}

static bool grow_frames(walk *w)
{
    size_t room = w->frames_room ? 2 * w->frames_room : 16;
    frame *v = reallocarray(w->frames, room, sizeof(*v));

    if (!v)
        return false;
    w->frames = v;
    w->frames_room = room;
    return true;
}

/* Takes over the descriptors of *f. */
static csn_status push(walk *w, frame *f)
{
    if ((!w->frames || w->depth == w->frames_room) && !grow_frames(w)) {
        frame_release(f);
        return fail_at(w, ENOMEM, "list");
    }
    csn_status st = frame_list(w, f);
    if (st != CSN_OK || f->names.count == 0) {
        frame_release(f);
        return st;
    }
    if (w->depth >= FRAMES_OPEN)
        frame_close(&w->frames[w->depth - FRAMES_OPEN]);
    w->frames[w->depth++] = *f;
    return CSN_OK;
}

/* ---- one name ---- */

/* Commands may replace an entry between two calls: as if it had not been there. */
static bool is_gone(int r)
{
    return r == -ENOENT || r == -ENOTDIR || r == -ELOOP || r == -ESTALE;
}

/* What the layers make of a name. p->dir.base_shown: the base is not hidden by them. */
static int look_above(walk *w, const frame *f, const csn_name *n, pair *p)
{
    p->dir.base_shown = f->base_shown;
    for (size_t i = 0; i < w->layers; i++) {
        struct stat st;
        if (!(n->in & f->in & BIT(i)))
            continue;
        int r = csn_entry_stat(&w->tree[i], f->fd[i], n->text, &st);
        if (is_gone(r))
            continue;
        if (r < 0)
            return r;
        if (!S_ISDIR(st.st_mode)) {
            if (!p->has && !csn_entry_is_whiteout(&st)) {
                p->has = true;
                p->after = st;
                p->layer = i;
            }
            p->dir.base_shown = false;
            return 0;
        }
        int fd = csn_entry_open(&w->tree[i], f->fd[i], n->text, O_RDONLY | O_DIRECTORY);
        if (is_gone(fd))
            continue;
        r = fd < 0 ? fd : frame_put(&p->dir, i, fd);
        r = r < 0 ? r : csn_entry_is_opaque(&w->tree[i], fd);
        if (r < 0)
            return r;
        if (!p->has) {
            p->has = true;
            p->after = st;
            p->layer = i;
        }
        if (r == 1) {
            p->dir.base_shown = false;
            return 0;
        }
    }
    return 0;
}

static int look_below(walk *w, const frame *f, const char *name, pair *p)
{
    if (!(f->in & BIT(BASE)))
        return 0;
    int r = csn_entry_stat(&w->tree[BASE], f->fd[BASE], name, &p->before);
    if (is_gone(r) || (r == 0 && csn_entry_is_whiteout(&p->before)))
        return 0;
    if (r < 0)
        return r;
    p->had = true;
    /* Unless the stack has the same directory, what is below it in the base is deleted. */
    if (S_ISDIR(p->before.st_mode)) {
        int fd = open_base_dir(&w->tree[BASE], f->fd[BASE], name);
        if (fd < 0)
            return is_gone(fd) ? 0 : fd;
        return frame_put(&p->dir, BASE, fd);
    }
    return 0;
}

static csn_status visit_pair(walk *w, const frame *f, const csn_name *n, pair *p)
{
    int r = look_above(w, f, n, p);

    r = r < 0 ? r : look_below(w, f, n->text, p);
    if (r < 0)
        return fail_at(w, -r, "read");
    /* No layer has it any more: the base shows through. */
    if (!p->has && p->dir.base_shown)
        return CSN_OK;
    if (p->has && S_ISDIR(p->after.st_mode) && !(p->dir.in & BIT(p->layer)))
        return CSN_OK;
    p->dir.path_len = strlen(w->path);
    p->dir.selected = f->selected || csn_path_filter_has(w->filter, w->path);
    if (p->dir.selected && (p->had || p->has)) {
        csn_status st = compare(w, f, p, n->text);
        if (st != CSN_OK)
            return st;
    }
    if (!p->dir.open)
        return CSN_OK;
    frame dir = p->dir;
    frame_init(&p->dir);
    return push(w, &dir);
}

static csn_status visit(walk *w, frame *f)
{
    const csn_name *n = &f->names.v[f->next++];
    size_t len = strlen(n->text), at = f->path_len;
    pair p = {0};

    if (at + len + 2 > CSN_LAYER_PATH_MAX)
        return csn_fail(w->err, CSN_TOO_LARGE,
                        "the workspace has a path of more than %u bytes: remove it inside",
                        CSN_LAYER_PATH_MAX);
    if (at > 0)
        w->path[at++] = '/';
    memcpy(w->path + at, n->text, len + 1);
    frame_init(&p.dir);
    csn_status st = visit_pair(w, f, n, &p);
    frame_close(&p.dir);
    return st;
}

static csn_status pop(walk *w)
{
    frame *f = &w->frames[w->depth - 1], *parent = f - 1;
    int r = 0;

    if (w->depth > 1 && !parent->open && parent->next < parent->names.count)
        r = frame_reopen(w, parent, f);
    frame_release(f);
    w->depth--;
    return r < 0 ? fail_at(w, -r, "open") : CSN_OK;
}

static csn_status run(walk *w)
{
    csn_status st = CSN_OK;

    while (st == CSN_OK && w->depth > 0) {
        frame *f = &w->frames[w->depth - 1];
        st = f->next == f->names.count ? pop(w) : visit(w, f);
    }
    return st;
}

static csn_status push_root(walk *w)
{
    frame f;
    int r = 0;

    frame_init(&f);
    f.base_shown = true;
    f.selected = csn_path_filter_has(w->filter, "");
    for (size_t i = 0; i < w->layers && r >= 0; i++) {
        int fd = csn_entry_open(&w->tree[i], w->tree[i].root, ".", O_RDONLY | O_DIRECTORY);
        r = fd < 0 ? fd : frame_put(&f, i, fd);
        /* a copy of the whole workspace, which is the only layer (store.h) */
        r = r < 0 ? r : csn_entry_is_opaque(&w->tree[i], fd);
        f.base_shown = f.base_shown && r != 1;
    }
    if (r >= 0) {
        int fd = open_base_dir(&w->tree[BASE], w->tree[BASE].root, ".");
        r = fd < 0 ? fd : frame_put(&f, BASE, fd);
    }
    if (r < 0) {
        frame_release(&f);
        return fail_at(w, -r, "open");
    }
    return push(w, &f);
}

static csn_status make_list(walk *w)
{
    w->path = calloc(1, CSN_LAYER_PATH_MAX);
    w->buf = malloc(CSN_ENTRY_BUFFER);
    if (!w->path || !w->buf)
        return csn_fail(w->err, CSN_NOMEM, "out of memory");
    csn_status st = push_root(w);
    return st == CSN_OK ? run(w) : st;
}

csn_status csn_layer_changes_list(const csn_layer_stack *s, const char *const *paths,
                                  csn_layer_changes *ret, csn_error **err)
{
    csn_path_filter filter = {0};
    walk w = {.layers = s->count, .filter = &filter, .err = err};

    if (s->count > CSN_LAYERS_MAX)
        return csn_fail(err, CSN_INVALID, "more than %u layers", CSN_LAYERS_MAX);
    for (size_t i = 0; i < s->count; i++)
        w.tree[i] = (csn_entry_tree){s->layers[i], true};
    w.tree[BASE] = (csn_entry_tree){s->base, false};
    csn_status st = csn_path_filter_make(paths, &filter, err);
    if (st == CSN_OK)
        st = make_list(&w);
    if (st == CSN_OK)
        st = csn_path_filter_check(&filter, &w.tree[BASE], &w.found, err);
    while (w.depth > 0)
        frame_release(&w.frames[--w.depth]);
    free(w.frames);
    free(w.path);
    free(w.buf);
    csn_path_filter_release(&filter);
    if (st == CSN_OK)
        *ret = w.found;
    else
        csn_layer_changes_release(&w.found);
    return st;
}

void csn_layer_changes_release(csn_layer_changes *c)
{
    for (size_t i = 0; i < c->count; i++)
        free((char *)c->v[i].path);
    free(c->v);
    *c = (csn_layer_changes){0};
}
