/* commit_execute.c: executes the operations of a commit, once or again after a crash.
 *
 * Each operation first looks at what the base has under its path. What the plan saw is
 * replaced; what the operation itself leaves behind means that it was executed before; anything
 * else was made by the user after the commit point and stays. Errors of the second kind (no
 * permission, I/O) stop the execution, and the journal stays. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "layers/journal.h"

#define LEFT      1 /* an operation's result: the host changed the path meanwhile */
#define DIR_FLAGS (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK)

typedef struct executor {
    const csn_oplist *l;
    csn_commit_dir at, stage;
} executor;

/* The host removed, replaced or filled something on the way. */
static bool by_host(int error)
{
    return error == ENOENT || error == ENOTDIR || error == ELOOP || error == EEXIST ||
           error == ENOTEMPTY || error == EISDIR || error == EXDEV;
}

static int failure(int error)
{
    return by_host(error) ? LEFT : -error;
}

static bool has_inode(const csn_change_side *s, uint64_t ino)
{
    return s->mode != 0 && s->ino == ino;
}

/* ---- operations: 0, LEFT or -errno ---- */

/* Opens a directory for reading. An owner's directory that its mode closes is opened to its
 * owner first: a FINISH operation sets its mode at the end. */
static int reopen_dir(int dir, const char *name)
{
    int fd = openat(dir, name, DIR_FLAGS);
    struct stat st;
    char self[32];

    if (fd >= 0 || errno != EACCES)
        return fd < 0 ? -errno : fd;
    csn_autofd int path = openat(dir, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (path < 0 || fstat(path, &st) < 0)
        return -errno;
    snprintf(self, sizeof(self), "/proc/self/fd/%d", path);
    if (chmod(self, (st.st_mode & 07777) | 0700) < 0)
        return -errno;
    fd = openat(dir, name, DIR_FLAGS);
    return fd < 0 ? -errno : fd;
}

static int make_accessible(int dir, const char *name)
{
    csn_autofd int fd = reopen_dir(dir, name);
    struct stat st;

    if (fd < 0 || fstat(fd, &st) < 0)
        return fd < 0 ? fd : -errno;
    return (st.st_mode & 0700) != 0700 && fchmod(fd, (st.st_mode & 07777) | 0700) < 0 ? -errno
                                                                                      : 0;
}

/* A directory that is no longer there is that of an operation executed before, or the host's
 * change, which the operations on its contents find. */
static int op_open(executor *x, const csn_op *op)
{
    const char *name;
    int dir = csn_commit_dir_above(&x->at, op->path, &name);
    csn_change_side now = {0};
    int rc = dir < 0 ? dir : csn_side_read(dir, name, &now);

    if (rc == 0 && csn_side_same(&op->host, &now))
        rc = make_accessible(dir, name);
    return rc < 0 && !by_host(-rc) ? rc : 0;
}

static int op_remove(executor *x, const csn_op *op)
{
    const char *name;
    int dir = csn_commit_dir_above(&x->at, op->path, &name);
    csn_change_side now = {0};
    int rc = dir < 0 ? dir : csn_side_read(dir, name, &now);

    if (rc == -ENOENT || rc == -ENOTDIR)
        return 0; /* with its parent */
    if (rc < 0)
        return failure(-rc);
    if (now.mode == 0)
        return 0;
    if (!csn_side_same(&op->host, &now)) {
        bool other_type = (op->host.mode & S_IFMT) != (now.mode & S_IFMT);
        /* Executed before if the replacement is there, which its own operation verifies. */
        return op->flags & CSN_OP_REPLACED && other_type ? 0 : LEFT;
    }
    if (unlinkat(dir, name, S_ISDIR(now.mode) ? AT_REMOVEDIR : 0) < 0)
        return errno == ENOENT ? 0 : failure(errno);
    return 0;
}

static int op_mkdir(executor *x, const csn_op *op)
{
    const char *name;
    int dir = csn_commit_dir_above(&x->at, op->path, &name);
    csn_change_side now = {0};

    if (dir < 0)
        return failure(-dir);
    if (mkdirat(dir, name, 0700) == 0)
        return 0;
    if (errno != EEXIST)
        return failure(errno);
    int rc = csn_side_read(dir, name, &now);
    if (rc == 0)
        rc = S_ISDIR(now.mode) ? make_accessible(dir, name) : LEFT;
    return rc < 0 ? failure(-rc) : rc;
}

static int give_name(int from, const char *temp, int to, const char *name, bool replace)
{
    if (!replace) {
        if (renameat2(from, temp, to, name, RENAME_NOREPLACE) == 0)
            return 0;
        if (errno != EINVAL && errno != ENOSYS)
            return failure(errno);
        if (faccessat(to, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
            return LEFT;
    }
    return renameat(from, temp, to, name) < 0 ? failure(errno) : 0;
}

static int op_rename(executor *x, const csn_op *op)
{
    char temp[CSN_COMMIT_TEMP_SIZE];
    const char *name;
    csn_change_side staged = {0}, now = {0};
    int from = csn_commit_dir_open(&x->stage, op->stage);
    int to = csn_commit_dir_above(&x->at, op->path, &name);

    csn_op_temp_name(x->l, op, temp);
    int rc = from < 0 ? from : csn_side_read(from, temp, &staged);
    if (rc == 0 && to >= 0)
        rc = csn_side_read(to, name, &now);
    if (rc < 0 || to < 0) {
        if (rc == 0 && by_host(-to))
            unlinkat(from, temp, 0);
        return failure(rc < 0 ? -rc : -to);
    }
    if (!has_inode(&staged, op->temp_ino))
        return has_inode(&now, op->temp_ino) ? 0 : LEFT;
    if (now.mode != 0 && !csn_side_same(&op->host, &now))
        rc = LEFT;
    else if (S_ISDIR(now.mode))
        rc = LEFT; /* its removal found files of the host in it */
    else
        rc = give_name(from, temp, to, name, now.mode != 0);
    if (rc == LEFT)
        unlinkat(from, temp, 0);
    return rc;
}

static int op_finish(executor *x, const csn_op *op)
{
    const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, op->mtime};
    int dir = csn_commit_dir_open(&x->at, op->path);
    csn_autofd int fd = dir < 0 ? dir : reopen_dir(dir, ".");

    if (fd < 0)
        return by_host(-fd) ? 0 : fd;
    if (op->flags & CSN_OP_OWNER && fchown(fd, op->uid, op->gid) < 0)
        return -errno;
    if (op->flags & CSN_OP_ATTRS) {
        /* The mode may deny the attributes to their owner. */
        int rc = make_accessible(fd, ".");
        if (rc == 0)
            rc = csn_attrs_write(fd, op->attrs, op->attrs_len, true);
        if (rc < 0)
            return rc;
    }
    if (fchmod(fd, op->mode) < 0)
        return -errno;
    return op->flags & CSN_OP_MTIME && futimens(fd, times) < 0 ? -errno : 0;
}

static int execute(executor *x, const csn_op *op)
{
    switch (op->kind) {
    case CSN_OP_OPEN:
        return op_open(x, op);
    case CSN_OP_REMOVE:
        return op_remove(x, op);
    case CSN_OP_MKDIR:
        return op_mkdir(x, op);
    case CSN_OP_RENAME:
        return op_rename(x, op);
    default:
        return op_finish(x, op);
    }
}

/* A directory that the user filled since the plan stays, as csn_commit_plan_make would have
 * decided; that is no failure unless something else was to take its place. */
static bool stays_quietly(const csn_op *op)
{
    return op->kind == CSN_OP_REMOVE && S_ISDIR(op->host.mode) &&
           !(op->flags & CSN_OP_REPLACED);
}

int csn_ops_execute(int base, const csn_oplist *l, csn_executed *ret)
{
    executor x = {.l = l, .at = CSN_COMMIT_DIR(base), .stage = CSN_COMMIT_DIR(base)};
    int rc = 0;

    *ret = (csn_executed){0};
    for (size_t i = 0; rc >= 0 && i < l->count; i++) {
        /* Names change under the held directory only with an operation that removes or makes
         * one: the next operation resolves its path anew. */
        if (l->v[i].kind != CSN_OP_RENAME)
            csn_commit_dir_release(&x.at);
        rc = execute(&x, &l->v[i]);
        if (rc < 0) {
            ret->failed = l->v[i].path;
        } else if (rc == LEFT && !stays_quietly(&l->v[i])) {
            ret->first_left = ret->first_left ? ret->first_left : l->v[i].path;
            ret->left++;
        }
    }
    csn_commit_dir_release(&x.at);
    csn_commit_dir_release(&x.stage);
    return rc < 0 ? rc : csn_ops_sync(base, l, false);
}

int csn_ops_unstage(int base, const csn_oplist *l)
{
    csn_commit_dir stage = CSN_COMMIT_DIR(base);
    int rc = 0;

    for (size_t i = 0; i < l->count; i++) {
        char temp[CSN_COMMIT_TEMP_SIZE];
        if (l->v[i].kind != CSN_OP_RENAME)
            continue;
        csn_op_temp_name(l, &l->v[i], temp);
        int dir = csn_commit_dir_open(&stage, l->v[i].stage);
        if (dir < 0 && !by_host(-dir))
            rc = dir;
        else if (dir >= 0 && unlinkat(dir, temp, 0) < 0 && errno != ENOENT)
            rc = -errno;
    }
    csn_commit_dir_release(&stage);
    return rc;
}

/* ---- durability ---- */

static int sync_one(csn_commit_dir *p, const char *path, bool parent)
{
    const char *name;
    int dir = parent ? csn_commit_dir_above(p, path, &name) : csn_commit_dir_open(p, path);

    if (dir < 0)
        return by_host(-dir) ? 0 : dir;
    csn_autofd int fd = openat(dir, ".", DIR_FLAGS);
    if (fd < 0) /* without read permission: the file system as a whole */
        return errno == EACCES ? 1 : -errno;
    return fsync(fd) < 0 && errno != EINVAL ? -errno : 0;
}

int csn_ops_sync(int base, const csn_oplist *l, bool staged)
{
    csn_commit_dir p = CSN_COMMIT_DIR(base);
    int rc = l->count > CSN_SYNC_EACH;

    for (size_t i = 0; rc == 0 && i < l->count; i++) {
        const csn_op *op = &l->v[i];
        if (!staged)
            rc = sync_one(&p, op->path, op->kind != CSN_OP_FINISH && op->kind != CSN_OP_OPEN);
        else if (op->kind == CSN_OP_RENAME)
            rc = sync_one(&p, op->stage, false);
        if (rc == 0 && !staged && op->kind == CSN_OP_RENAME)
            rc = sync_one(&p, op->stage, false);
    }
    csn_commit_dir_release(&p);
    if (rc > 0) {
        csn_autofd int fd = openat(base, ".", DIR_FLAGS);
        rc = fd < 0 || syncfs(fd) < 0 ? -errno : 0;
    }
    return rc;
}
