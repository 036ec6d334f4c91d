/* write.c: writes whole files atomically, and appends to files.
 *
 * Each request is staged: check the policy, create missing parents, write all content to a
 * temporary file in the target's directory. Then, under the commit lock, conditions are checked
 * and the temporary file is renamed to the target. An attacker controls paths, the tree and its
 * timing, and may fill the disk.
 *
 * Invariants:
 *  - A reader sees the old content or the new, never a mix.
 *  - A failure leaves every target unchanged, and no temporary file or parent that we created.
 *  - A final symbolic link is resolved below the grant first. A link that appears at the target
 *    later, and a hard link, are replaced, never written through.
 *  - Set-id bits are dropped.
 *  - The number of open descriptors does not grow with the batch (dirs in batch.c). */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/limits.h"
#include "base/path.h"
#include "os/atomic.h"
#include "runtime/write.h"

#define BLOCK 4096u /* a shorter run of zeros is written */
#define CHUNK (128u * 1024u)

/* ---- staging ---- */

/* Checks that an open for writing would succeed on the existing file. 0 or errno. */
static int check_old(const csn_runtime *rt, const csn_parent *p)
{
    const struct stat *st = &p->st;
    uid_t me = rt->file_uid;

    if (p->slash)
        return p->exists && !S_ISDIR(st->st_mode) ? ENOTDIR : EISDIR;
    if (!p->exists)
        return 0;
    if (!S_ISREG(st->st_mode))
        return S_ISDIR(st->st_mode) ? EISDIR : EMEDIUMTYPE;
    if (me == 0 || (st->st_uid == me && (st->st_mode & S_IWUSR)))
        return 0;
    return faccessat(p->fd, p->name, W_OK, AT_EACCESS | AT_SYMLINK_NOFOLLOW) < 0 ? errno : 0;
}

static csn_status make_parents(csn_job *j, csn_error **err)
{
    csn_autofree char *missing = csn_parent_missing(&j->at);

    if (!missing)
        return csn_fail(err, CSN_NOMEM, "out of memory");
    if (*missing == '\0')
        return CSN_OK;
    int rc = j->req->flags & CSN_FILE_NO_PARENTS ? -ENOENT : csn_parent_make(&j->at);
    return rc < 0 ? csn_target_fail(&j->t, -rc, err) : CSN_OK;
}

static bool is_zero(const char *p, size_t len)
{
    return p[0] == '\0' && memcmp(p, p + 1, len - 1) == 0;
}

/* Writes the bytes; blocks of zeros become holes, so that a copy of a sparse file is one.
 * *ret_hole: the file ends with a hole. */
static int write_sparse(int fd, const char *p, size_t len, bool *ret_hole)
{
    while (len > 0) {
        size_t n = 0;
        bool hole = len >= BLOCK && is_zero(p, BLOCK);
        do
            n += len - n < BLOCK ? len - n : BLOCK;
        while (n < len && (len - n >= BLOCK && is_zero(p + n, BLOCK)) == hole);
        int rc = hole ? (lseek(fd, (off_t)n, SEEK_CUR) < 0 ? -errno : 0)
                      : csn_write_full(fd, p, n, NULL);
        if (rc < 0)
            return rc;
        *ret_hole = hole;
        p += n;
        len -= n;
    }
    return 0;
}

/* Gives a file that ends with a hole its length. */
static int end_sparse(int fd)
{
    return lseek(fd, -1, SEEK_CUR) < 0 ? -errno : csn_write_full(fd, "", 1, NULL);
}

/* Copies the whole source to fd. The source is the caller's code and may be slow or fail, so no
 * lock is held here. */
static csn_status copy_source(csn_job *j, int fd, csn_hash *hash, csn_error **err)
{
    const csn_source *src = &j->req->source;
    uint64_t max = j->t.rt->file_max;
    char first[BLOCK]; /* most files fit; a larger buffer is made for the others */
    csn_autofree char *large = NULL;
    bool hole = false;

    for (;;) {
        /* cppcheck-suppress legacyUninitvar */
        char *buf = large ? large : first;
        const size_t room = large ? CHUNK : sizeof(first);
        int64_t n = src->read ? src->read(src->ctx, buf, room) : 0;
        if (n < 0 || n > (int64_t)room)
            return csn_fail(err, CSN_IO, "the content could not be read to its end");
        if (n == 0) {
            int rc = hole ? end_sparse(fd) : 0;
            return rc < 0 ? csn_target_fail(&j->t, -rc, err) : CSN_OK;
        }
        j->bytes += (uint64_t)n;
        if (max > 0 && j->bytes > max)
            return csn_target_fail(&j->t, EFBIG, err);
        if (hash)
            csn_hash_add(hash, buf, (size_t)n);
        int rc = write_sparse(fd, buf, (size_t)n, &hole);
        if (rc < 0)
            return csn_target_fail(&j->t, -rc, err);
        if (!large && n == (int64_t)room && !(large = malloc(CHUNK)))
            return csn_fail(err, CSN_NOMEM, "out of memory");
    }
}

/* Sets owner and mode as on the file that is replaced, without set-id bits. */
static int take_over(const csn_job *j, int fd)
{
    const struct stat *old = &j->at.st;
    mode_t mode = j->req->mode ? j->req->mode & 0777 : old->st_mode & 0777;

    if (!j->at.exists && !j->req->mode)
        return 0; /* created with the right mode */
    if (j->at.exists && j->t.rt->file_uid == 0 &&
        (old->st_uid != 0 || old->st_gid != getegid())) {
        if (fchown(fd, old->st_uid, old->st_gid) < 0)
            return errno;
    } else if (j->at.exists && old->st_gid != getegid() &&
               fchown(fd, (uid_t)-1, old->st_gid) < 0) {
        mode &= (mode_t)~070 | (mode & 07) << 3; /* our group gets the rights of others */
    }
    return fchmod(fd, mode) < 0 ? errno : 0;
}

/* Copies the current content, to append to a file that must not be written in place. */
static int copy_old(csn_job *j, int fd)
{
    csn_autofd int old =
        openat(j->at.fd, j->at.name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    csn_autofree char *buf = malloc(CHUNK);
    ssize_t n;

    if (old < 0 || !buf)
        return old < 0 ? errno : ENOMEM;
    while ((n = read(old, buf, CHUNK)) > 0) {
        int rc = csn_write_full(fd, buf, (size_t)n, NULL);
        if (rc < 0)
            return -rc;
    }
    return n < 0 ? errno : 0;
}

/* The temporary file has mode 0600 until it is complete, since the old file may be private. A
 * new file gets the mode that open(2) would give it. */
static csn_status stage_content(csn_job *j, csn_error **err)
{
    bool fresh = !j->at.exists && !j->req->mode;
    csn_hash hash;

    mode_t mode = fresh ? 0644 : 0600;
    int rc = j->named ? csn_temp_create_named(&j->temp, j->at.fd, mode)
                      : csn_temp_create(&j->temp, j->at.fd, mode);
    if (rc < 0)
        return csn_target_fail(&j->t, -rc, err);
    int fd = j->temp.fd, e = j->copy ? copy_old(j, fd) : 0;
    if (e != 0)
        return csn_target_fail(&j->t, e, err);
    csn_hash_init(&hash);
    csn_status st = copy_source(j, fd, &hash, err);
    if (st < 0)
        return st;
    if (!(j->req->flags & CSN_FILE_APPEND))
        csn_hash_hex(&hash, j->hash);
    e = take_over(j, fd);
    if (e == 0 && (j->req->flags & CSN_FILE_SYNC) && fsync(fd) < 0)
        e = errno;
    csn_temp_complete(&j->temp);
    return e != 0 ? csn_target_fail(&j->t, e, err) : CSN_OK;
}

static csn_status exists_fail(const csn_job *j, csn_error **err)
{
    return csn_fail(err, CSN_EXISTS, "Cannot write to %s because it already exists.",
                    j->req->path);
}

/* Reports errors before anything is created. The target may change until the commit; the final
 * rename replaces any file but never a directory. */
csn_status csn_job_place(csn_job *j, const csn_runtime *rt, csn_error **err)
{
    j->t = csn_target_of(rt, CSN_OP_WRITE, j->req->path, j->req->flags);
    csn_status st = csn_target_parent(&j->t, CSN_PARENT_FOLLOW, &j->at, err);
    if (st < 0)
        return st;
    int e = check_old(j->t.rt, &j->at);
    if (e != 0)
        return csn_target_fail(&j->t, e, err);
    if (j->at.exists && (j->req->flags & CSN_FILE_CREATE))
        return exists_fail(j, err); /* checked again by the commit */
    return make_parents(j, err);
}

csn_status csn_job_stage(csn_job *j, csn_error **err)
{
    return stage_content(j, err);
}

/* ---- committing ---- */

/* Reads the file again, under the lock: size and time stamps would miss quick changes. */
csn_status csn_job_check(const csn_job *j, csn_error **err)
{
    csn_autofree char *buf = NULL;
    char hex[CSN_HASH_HEX];
    struct stat st;
    csn_hash hash;
    ssize_t n;

    if (!j->req->if_hash)
        return CSN_OK;
    csn_autofd int fd =
        openat(j->at.fd, j->at.name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0 && errno != ENOENT && errno != ELOOP)
        return csn_target_fail(&j->t, errno, err);
    if (fd >= 0 && (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)))
        return csn_target_fail(&j->t, EMEDIUMTYPE, err);
    if (fd >= 0) {
        buf = malloc(CHUNK);
        if (!buf)
            return csn_fail(err, CSN_NOMEM, "out of memory");
        csn_hash_init(&hash);
        while ((n = read(fd, buf, CHUNK)) > 0)
            csn_hash_add(&hash, buf, (size_t)n);
        if (n < 0)
            return csn_target_fail(&j->t, errno, err);
        csn_hash_hex(&hash, hex);
        if (strcasecmp(hex, j->req->if_hash) == 0)
            return CSN_OK;
    }
    csn_autofree char *shown = csn_path_printable(j->req->path);
    return csn_fail(err, CSN_CONFLICT, "%s %s", shown ? shown : "file",
                    fd < 0 ? "is not there any more" : "was changed by another process");
}

csn_status csn_job_judge(const csn_job *j, bool one_of_several, csn_error **err)
{
    const csn_runtime *rt = j->t.rt;

    if (!rt->check_content || !(one_of_several || rt->wants_content(j->at.name)))
        return CSN_OK;
    csn_autofree char *resolved = csn_target_path(&j->t, j->at.fd, j->at.name);
    csn_autofd int own = j->temp.fd >= 0 ? -1
                                         : openat(j->at.fd, j->temp.name,
                                                  O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY);
    if (!resolved || (j->temp.fd < 0 && own < 0))
        return csn_target_fail(&j->t, resolved ? errno : ENOMEM, err);
    return rt->check_content(rt, j->t.asked, resolved, own >= 0 ? own : j->temp.fd, err);
}

int csn_commit_begin(csn_runtime *rt)
{
    pthread_mutex_lock(&rt->commit_lock);
    while (rt->commit_fd >= 0 && flock(rt->commit_fd, LOCK_EX) < 0 && errno == EINTR)
        continue;
    return rt->commit_fd;
}

void csn_commit_end(csn_runtime *rt, int lock)
{
    if (lock >= 0)
        (void)flock(lock, LOCK_UN);
    pthread_mutex_unlock(&rt->commit_lock);
}

csn_status csn_job_publish_fail(const csn_job *j, int rc, csn_error **err)
{
    if (rc == -EEXIST && (j->req->flags & CSN_FILE_CREATE))
        return exists_fail(j, err);
    return csn_target_fail(&j->t, -rc, err);
}

static int publish(csn_job *j, bool fresh)
{
    unsigned how = (fresh ? CSN_TEMP_EXCL : 0) | (j->at.exists ? CSN_TEMP_REPLACE : 0);

    return csn_temp_publish(&j->temp, j->at.fd, j->at.name, how);
}

/* A single file needs no exchange: a rename either succeeds or changes nothing. */
static csn_status publish_one(csn_runtime *rt, csn_job *j, csn_error **err)
{
    int lock = csn_commit_begin(rt);
    csn_status st = csn_job_check(j, err);

    if (st == CSN_OK)
        st = csn_job_judge(j, false, err);
    if (st == CSN_OK) {
        int rc = publish(j, j->req->flags & CSN_FILE_CREATE);
        if (rc < 0)
            st = csn_job_publish_fail(j, rc, err);
    }
    csn_commit_end(rt, lock);
    return st;
}

/* The file is in place; only syncing the directory can still fail. */
csn_status csn_job_finish(csn_job *j, csn_written *ret, csn_error **err)
{
    if (j->req->flags & CSN_FILE_SYNC) {
        int rc = csn_parent_sync(&j->at);
        if (rc < 0)
            return csn_target_fail(&j->t, -rc, err);
    }
    ret->bytes = j->bytes;
    memcpy(ret->hash, j->hash, sizeof(ret->hash));
    csn_autofree char *dir = csn_runtime_fd_path(j->at.fd);
    if (!dir || asprintf(&ret->resolved_path, "%s/%s", strcmp(dir, "/") == 0 ? "" : dir,
                         j->at.name) < 0)
        ret->resolved_path = NULL;
    return CSN_OK;
}

void csn_job_drop(csn_job *j, bool failed)
{
    csn_temp_drop(&j->temp, j->at.fd);
    if (failed)
        csn_parent_undo(&j->at);
    csn_parent_release(&j->at);
}

/* ---- append ---- */

/* Reads the whole source into memory, so that it can be appended by one write(2). */
static csn_status slurp(csn_job *j, char **ret, size_t *ret_len, csn_error **err)
{
    csn_autofree char *data = NULL;
    const csn_source *src = &j->req->source;
    size_t len = 0, room = 0;

    for (;;) {
        if (len == room) {
            room = room ? room * 2 : 16384;
            char *grown = realloc(data, room);
            if (!grown)
                return csn_fail(err, CSN_NOMEM, "out of memory");
            data = grown;
        }
        int64_t n = src->read ? src->read(src->ctx, data + len, room - len) : 0;
        if (n < 0 || (uint64_t)n > room - len)
            return csn_fail(err, CSN_IO, "the content could not be read to its end");
        if (n == 0)
            break;
        len += (size_t)n;
        if (len > CSN_EDIT_FILE_MAX)
            return csn_target_fail(&j->t, EFBIG, err);
    }
    *ret = CSN_STEAL(data);
    *ret_len = len;
    return CSN_OK;
}

typedef struct memory {
    const char *data;
    size_t left;
} memory;

static int64_t memory_read(void *ctx, void *buf, size_t len)
{
    memory *m = ctx;
    size_t n = len < m->left ? len : m->left;

    memcpy(buf, m->data, n);
    m->data += n;
    m->left -= n;
    return (int64_t)n;
}

/* Truncates a partial write after an error, unless another process has appended since. */
static void cut_back(int fd, size_t done)
{
    off_t at = lseek(fd, 0, SEEK_CUR);
    struct stat st;

    if (done > 0 && at >= (off_t)done && fstat(fd, &st) == 0 && st.st_size == at &&
        ftruncate(fd, at - (off_t)done) < 0)
        return; /* the old content is intact; only the partial append stays */
}

/* Appends in place. 0, -errno, or 1: the file must be replaced instead. */
static int append_in_place(csn_job *j, const char *data, size_t len)
{
    uint64_t max = j->t.rt->file_max;
    struct stat st;
    size_t done;

    csn_autofd int fd =
        openat(j->at.fd, j->at.name,
               O_WRONLY | O_APPEND | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return errno == ENOENT || errno == ELOOP ? 1 : -errno;
    if (fstat(fd, &st) < 0)
        return -errno;
    if (!S_ISREG(st.st_mode))
        return -EMEDIUMTYPE;
    if (st.st_nlink > 1)
        return 1; /* the other link may be outside the sandbox */
    if (max > 0 && (uint64_t)st.st_size + len > max)
        return -EFBIG;
    int rc = csn_write_full(fd, data, len, &done);
    if (rc < 0)
        cut_back(fd, done);
    if (rc == 0 && (st.st_mode & 06000) && fchmod(fd, st.st_mode & 0777) < 0)
        rc = -errno;
    if (rc == 0 && (j->req->flags & CSN_FILE_SYNC) && fsync(fd) < 0)
        rc = -errno;
    return rc;
}

/* Writes a new file with the old content and the new. Needs the commit lock. */
static csn_status append_by_copy(csn_job *j, bool fresh, csn_error **err)
{
    csn_status st = stage_content(j, err);

    if (st == CSN_OK)
        st = csn_job_judge(j, false, err);
    if (st < 0)
        return st;
    int rc = publish(j, fresh);
    return rc < 0 ? csn_job_publish_fail(j, rc, err) : CSN_OK;
}

static csn_status append_locked(csn_job *j, const char *data, size_t len, csn_error **err)
{
    csn_write_req req = *j->req;
    memory m = {data, len};

    csn_status st = csn_job_check(j, err);
    if (st < 0)
        return st;
    bool there = fstatat(j->at.fd, j->at.name, &j->at.st, AT_SYMLINK_NOFOLLOW) == 0;
    if (there && (req.flags & CSN_FILE_CREATE))
        return exists_fail(j, err);
    /* the whole content is checked before it takes effect */
    bool whole = j->t.rt->wants_content && j->t.rt->wants_content(j->at.name);
    int rc = there && !whole ? append_in_place(j, data, len) : 1;
    j->bytes = len;
    if (rc < 0)
        return csn_target_fail(&j->t, -rc, err);
    if (rc == 0)
        return CSN_OK;
    req.source = (csn_source){memory_read, &m};
    const csn_write_req *asked = j->req;
    j->req = &req; /* the same request with the content from memory */
    j->at.exists = j->copy = there;
    j->bytes = 0;
    st = append_by_copy(j, !there, err);
    j->req = asked;
    return st;
}

/* Appends hold the commit lock: one that replaces the file (hard link, new file) would
 * otherwise lose a concurrent append. Appends by other programs stay intact because of O_APPEND
 * and the single write. */
static csn_status append(csn_runtime *rt, csn_job *j, csn_error **err)
{
    const csn_write_req *req = j->req;
    csn_autofree char *data = NULL;
    size_t len = 0;

    csn_status st = slurp(j, &data, &len, err);
    if (st < 0)
        return st;
    int lock = csn_commit_begin(rt);
    st = append_locked(j, data, len, err);
    csn_commit_end(rt, lock);
    j->req = req;
    return st;
}

csn_status csn_runtime_write(void *state, const csn_write_req *reqs, size_t count,
                             csn_written *rets, csn_error **err)
{
    csn_runtime *rt = state;
    csn_job j = {.req = reqs, .at = CSN_PARENT_NONE, .temp = CSN_TEMP_NONE};
    csn_written out = {0};

    if (count != 1)
        return csn_runtime_write_batch(rt, reqs, count, rets, err);
    csn_status st = csn_job_place(&j, rt, err);
    if (st == CSN_OK && (reqs->flags & CSN_FILE_APPEND)) {
        st = append(rt, &j, err);
    } else if (st == CSN_OK) {
        st = csn_job_stage(&j, err);
        if (st == CSN_OK)
            st = publish_one(rt, &j, err);
    }
    bool failed = st < 0;
    if (st == CSN_OK)
        st = csn_job_finish(&j, &out, err);
    csn_job_drop(&j, failed);
    if (st == CSN_OK)
        *rets = out;
    return st;
}
