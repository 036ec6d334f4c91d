/* change.c: the file operations mkdir, chmod, symlink, remove, rename and cleanup.
 *
 * Entries of the ops table, called from many threads at once. An attacker controls paths and
 * trees.
 *
 * Invariants:
 *  - Each operation uses an open parent directory and a plain last name, so remove and rename
 *    act on a link itself, never on its target.
 *  - The grants themselves cannot be removed or moved.
 *  - A refused or failed operation leaves no directory that it created.
 *  - A recursive removal checks the policy for every entry before it removes the first one: a
 *    denied path below refuses the whole removal. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/path.h"
#include "os/beneath.h"
#include "os/tree.h"
#include "runtime/files.h"

/* Creates missing parent directories, unless flags forbid it. */
static csn_status make_parents(const csn_target *t, csn_parent *p, uint32_t flags,
                               csn_error **err)
{
    csn_autofree char *missing = csn_parent_missing(p);

    if (!missing)
        return csn_fail(err, CSN_NOMEM, "out of memory");
    if (*missing == '\0')
        return CSN_OK;
    int rc = flags & CSN_FILE_NO_PARENTS ? -ENOENT : csn_parent_make(p);
    if (rc == 0)
        return CSN_OK;
    csn_parent_undo(p);
    return csn_target_fail(t, -rc, err);
}

csn_status csn_runtime_mkdir(void *state, const char *path, uint32_t flags, csn_error **err)
{
    csn_target t = csn_target_of(state, CSN_OP_WRITE, path, flags);
    csn_autoparent p = CSN_PARENT_NONE;
    csn_autofd int fd = -1;
    csn_error *ignored = NULL;

    /* Usually the directory exists. Only opening it shows that reliably if the path has
     * links. */
    csn_status st = csn_target_open(&t, O_PATH | O_DIRECTORY, &fd, &ignored);
    bool missing = st == CSN_NOT_FOUND;
    if (missing || !err)
        csn_error_free(ignored);
    else if (st < 0)
        *err = ignored;
    if (st == CSN_OK && (flags & CSN_FILE_NO_PARENTS))
        return csn_target_fail(&t, EEXIST, err);
    if (!missing)
        return st;
    st = csn_target_parent(&t, 0, &p, err);
    if (st == CSN_OK)
        st = make_parents(&t, &p, flags, err);
    if (st < 0)
        return st;
    if (mkdirat(p.fd, p.name, 0777) < 0) {
        /* EEXIST may also mean a dangling link, which mkdir does not follow. */
        int e = errno;
        struct stat now;
        bool there = fstatat(p.fd, p.name, &now, AT_SYMLINK_NOFOLLOW) == 0;
        if (e == EEXIST && there && S_ISDIR(now.st_mode) && !(flags & CSN_FILE_NO_PARENTS))
            return CSN_OK; /* another process made it first */
        csn_parent_undo(&p);
        return csn_target_fail(&t, e, err);
    }
    return CSN_OK;
}

csn_status csn_runtime_chmod(void *state, const char *path, uint32_t mode, csn_error **err)
{
    csn_target t = csn_target_of(state, CSN_OP_WRITE, path, 0);
    csn_autofd int fd = -1;
    char link[40];

    csn_status st = csn_target_open(&t, O_PATH | O_DIRECTORY, &fd, err);
    if (st < 0)
        return st;
    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd); /* fchmod refuses O_PATH */
    return chmod(link, mode & 0777) < 0 ? csn_target_fail(&t, errno, err) : CSN_OK;
}

/* The target may be any text: a link has no effect until a path is resolved through it, and
 * resolution refuses to leave the grant. */
csn_status csn_runtime_symlink(void *state, const char *target, const char *path,
                               csn_error **err)
{
    csn_target t = csn_target_of(state, CSN_OP_WRITE | CSN_OP_TREE, path, 0);
    csn_autoparent p = CSN_PARENT_NONE;

    if (!target || target[0] == '\0')
        return csn_fail(err, CSN_INVALID, "a symbolic link needs a target");
    csn_status st = csn_target_parent(&t, 0, &p, err);
    if (st == CSN_OK)
        st = make_parents(&t, &p, 0, err);
    if (st < 0)
        return st;
    if (p.slash || symlinkat(target, p.fd, p.name) < 0) {
        int e = p.slash ? EISDIR : errno;
        csn_parent_undo(&p);
        return csn_target_fail(&t, e, err);
    }
    return CSN_OK;
}

/* ---- remove ---- */

typedef struct censor {
    const csn_target *t;
    const char *start; /* path of the walked directory for the rules */
    csn_status st;
    csn_error **err;
} censor;

static int censor_entry(void *ctx, const char *path, const struct stat *st, const char *target)
{
    censor *c = ctx;
    csn_autofree char *full = NULL;

    (void)st;
    (void)target;
    if (asprintf(&full, "%s/%s", c->start, path) < 0) {
        full = NULL;
        c->st = csn_fail(c->err, CSN_NOMEM, "out of memory");
    } else {
        c->st = csn_runtime_check_rules(c->t->rt, c->t->op, c->t->asked, full, c->err);
    }
    return c->st < 0;
}

/* Checks the target's operation for every entry of the directory `fd` as if it were at
 * `start`. */
static csn_status judge_tree(const csn_target *t, int fd, const char *start, csn_error **err)
{
    censor c = {.t = t, .start = start, .err = err};

    if (!start)
        return csn_fail(err, CSN_UNAVAILABLE,
                        "the kernel does not report where the path leads");
    int rc = csn_tree_walk(fd, censor_entry, &c);
    if (c.st < 0)
        return c.st;
    return rc < 0 ? csn_target_fail(t, -rc, err) : CSN_OK;
}

/* Files that other processes add between check and removal are removed unchecked; the rules
 * bind agents, not other programs of the host. */
static csn_status remove_tree(const csn_target *t, const csn_parent *p, csn_error **err)
{
    if (csn_target_checked(t)) {
        csn_autofd int fd =
            openat(p->fd, p->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0)
            return csn_target_fail(t, errno, err);
        csn_autofree char *start = csn_target_path(t, fd, "");
        csn_status st = judge_tree(t, fd, start, err);
        if (st < 0)
            return st;
    }
    int rc = csn_tree_remove(p->fd, p->name);
    return rc < 0 ? csn_target_fail(t, -rc, err) : CSN_OK;
}

/* Usually one unlink is enough. It takes the commit lock, so that a conditional write that has
 * just checked the file does not recreate it. */
csn_status csn_runtime_remove(void *state, const char *path, uint32_t flags, csn_error **err)
{
    csn_runtime *rt = state;
    uint32_t tree = flags & CSN_FILE_RECURSIVE ? CSN_OP_TREE : 0;
    csn_target t = csn_target_of(rt, CSN_OP_DELETE | tree, path, flags);
    csn_autoparent p = CSN_PARENT_NONE;

    csn_status st = csn_target_parent(&t, 0, &p, err);
    if (st < 0)
        return st;
    if (!p.exists)
        return csn_target_fail(&t, ENOENT, err);
    bool dir = S_ISDIR(p.st.st_mode);
    if (p.slash && !dir)
        return csn_target_fail(&t, ENOTDIR, err);
    pthread_mutex_lock(&rt->commit_lock);
    int e = unlinkat(p.fd, p.name, dir ? AT_REMOVEDIR : 0) < 0 ? errno : 0;
    pthread_mutex_unlock(&rt->commit_lock);
    if (e == 0)
        return CSN_OK;
    if ((e == ENOTEMPTY || e == EEXIST) && (flags & CSN_FILE_RECURSIVE))
        return remove_tree(&t, &p, err);
    return csn_target_fail(&t, e == EEXIST ? ENOTEMPTY : e, err);
}

csn_status csn_runtime_cleanup_dir(csn_runtime *rt, int fd, csn_error **err)
{
    csn_target t = csn_target_of(rt, CSN_OP_DELETE | CSN_OP_BY_USER, rt->base.path, 0);

    t.grant = &rt->base;
    if (csn_target_checked(&t)) {
        csn_status st = judge_tree(&t, fd, rt->base.path, err);
        if (st < 0)
            return st;
    }
    int rc = csn_tree_empty(fd);
    return rc < 0 ? csn_target_fail(&t, -rc, err) : CSN_OK;
}

/* Empties the directory that was opened as base, even if its path names another one by now. */
csn_status csn_runtime_cleanup(void *state, csn_error **err)
{
    csn_runtime *rt = state;
    csn_target t = csn_target_of(rt, CSN_OP_DELETE, rt->base.path, 0);

    if (strcmp(rt->base.path, "/") == 0)
        return csn_fail(err, CSN_INVALID, "the workspace is the host's root directory");
    csn_autofd int fd = openat(rt->base.fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return fd < 0 ? csn_target_fail(&t, errno, err) : csn_runtime_cleanup_dir(rt, fd, err);
}

/* ---- rename ---- */

/* EXDEV here means another file system, not an escape, because both parents are open. */
static csn_status rename_fail(const csn_target *from, const csn_target *to, int e,
                              csn_error **err)
{
    csn_autofree char *a = csn_path_printable(from->asked), *b = csn_path_printable(to->asked);
    const char *x = a ? a : "path", *y = b ? b : "path";

    switch (e) {
    case EINVAL:
        return csn_fail(err, CSN_INVALID, "cannot move %s into itself: %s", x, y);
    case EXDEV:
        return csn_fail(err, CSN_UNSUPPORTED, "cannot move %s to another file system: %s", x,
                        y);
    case ENOENT:
        return csn_target_fail(from, e, err);
    case EEXIST:
    case ENOTEMPTY:
        return csn_fail(err, CSN_CONFLICT, "cannot move %s: %s is not empty", x, y);
    case EISDIR:
    case ENOTDIR:
        return csn_fail(err, CSN_WRONG_TYPE, "cannot move %s: %s is %s", x, y,
                        e == EISDIR ? "a directory" : "not a directory");
    default:
        return csn_fail_errno(err, e, "move %s to %s", x, y);
    }
}

/* If a directory is moved, checks for every entry in it that it may leave the source and enter
 * the destination. */
static csn_status judge_moved(const csn_target *ft, const csn_parent *fp, const csn_target *tt,
                              const csn_parent *tp, csn_error **err)
{
    csn_autofree char *start = NULL, *end = NULL, *missing = NULL, *more = NULL;
    csn_status st = CSN_OK;

    if (!S_ISDIR(fp->st.st_mode) || !(csn_target_checked(ft) || csn_target_checked(tt)))
        return CSN_OK;
    csn_autofd int fd =
        openat(fp->fd, fp->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return csn_target_fail(ft, errno, err);
    if (csn_target_checked(ft)) {
        start = csn_target_path(ft, fd, "");
        st = judge_tree(ft, fd, start, err);
    }
    if (st < 0 || !csn_target_checked(tt))
        return st;
    missing = csn_parent_missing(tp);
    if (!missing || asprintf(&more, "%s%s%s", missing, *missing ? "/" : "", tp->name) < 0) {
        more = NULL;
        return csn_fail(err, CSN_NOMEM, "out of memory");
    }
    end = csn_target_path(tt, tp->fd, more);
    return judge_tree(tt, fd, end, err);
}

/* Checks both names and all moved entries before any directory is created. */
csn_status csn_runtime_rename(void *state, const char *from, const char *to, uint32_t flags,
                              csn_error **err)
{
    csn_runtime *rt = state;
    /* Also needs read permission: a file that may not be read must not be moved to where it
     * may. */
    csn_target ft = csn_target_of(rt, CSN_OP_DELETE | CSN_OP_READ | CSN_OP_TREE, from, flags);
    csn_target tt = csn_target_of(rt, CSN_OP_WRITE | CSN_OP_TREE, to, flags);
    csn_autoparent fp = CSN_PARENT_NONE, tp = CSN_PARENT_NONE;
    bool fresh = flags & CSN_FILE_CREATE;

    csn_status st = csn_target_parent(&ft, 0, &fp, err);
    if (st == CSN_OK && !fp.exists)
        st = csn_target_fail(&ft, ENOENT, err);
    if (st == CSN_OK && fp.slash && !S_ISDIR(fp.st.st_mode))
        st = csn_target_fail(&ft, ENOTDIR, err);
    if (st == CSN_OK)
        st = csn_target_parent(&tt, 0, &tp, err);
    if (st == CSN_OK && tp.slash && !S_ISDIR(fp.st.st_mode))
        st = csn_target_fail(&tt, tp.exists && !S_ISDIR(tp.st.st_mode) ? ENOTDIR : EISDIR, err);
    if (st == CSN_OK)
        st = judge_moved(&ft, &fp, &tt, &tp, err);
    if (st == CSN_OK)
        st = make_parents(&tt, &tp, flags, err);
    if (st < 0)
        return st;
    pthread_mutex_lock(&rt->commit_lock);
    int e =
        renameat2(fp.fd, fp.name, tp.fd, tp.name, fresh ? RENAME_NOREPLACE : 0) < 0 ? errno : 0;
    pthread_mutex_unlock(&rt->commit_lock);
    if (e == 0)
        return CSN_OK;
    csn_parent_undo(&tp);
    return fresh && e == EEXIST ? csn_target_fail(&tt, e, err) : rename_fail(&ft, &tt, e, err);
}
