/* atomic.c: temporary files and the steps that put them in place.
 *
 * Called by the writers of backends. What must hold: a reader sees the old file or the new one,
 * whole; a failure leaves the old one; a name that is a symlink, a hard link or a fifo by the
 * time of the rename is replaced, never written through; who is killed while content is written
 * leaves nothing. So a temporary file has no name (O_TMPFILE) until it is complete. A new file
 * is then linked straight to its name. One that replaces another needs a name to be renamed
 * from: it is linked to a random one and renamed in the next system call, and only a kill
 * between these two leaves a file. An attacker may control the directory: random names are made
 * without replacing anything, so none can be waiting there.
 *
 * Where the file system has no such files, or nobody lets us link one (no /proc, a security
 * module), the file has its random name from the start. Exchanging two names (RENAME_EXCHANGE)
 * keeps the old file at hand until a whole batch is in place; file systems without it keep it
 * by a hard link. */
#include "os/atomic.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#define TRIES 16

int csn_temp_name(char ret_name[CSN_TEMP_SIZE])
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz234567";
    const size_t prefix = sizeof(CSN_TEMP_PREFIX) - 1;
    unsigned char bytes[CSN_TEMP_SIZE];

    if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes))
        return errno ? -errno : -EIO;
    memcpy(ret_name, CSN_TEMP_PREFIX, prefix);
    for (size_t i = prefix; i < CSN_TEMP_SIZE - 1; i++)
        ret_name[i] = letters[bytes[i] % 32];
    ret_name[CSN_TEMP_SIZE - 1] = '\0';
    return 0;
}

/* ---- making one ---- */

/* The file system on which a link was refused last, so that the next file there has a name from
 * the start and is not copied again. A hint: one that is wrong costs a copy, or the advantage
 * of having no name. 0: none. */
static _Atomic uint32_t refusing;

static uint32_t file_system_of(int fd)
{
    struct stat st;

    if (fstat(fd, &st) < 0)
        return 0;
    return ((uint32_t)st.st_dev ^ (uint32_t)((uint64_t)st.st_dev >> 32)) | 1u << 31;
}

/* O_EXCL never opens what is there, nor follows a link. */
int csn_temp_create_named(csn_temp *ret, int dir, mode_t mode)
{
    int rc = -EEXIST;

    *ret = CSN_TEMP_NONE;
    for (int i = 0; rc == -EEXIST && i < TRIES; i++) {
        char name[CSN_TEMP_SIZE];
        rc = csn_temp_name(name);
        if (rc < 0)
            return rc;
        ret->fd = openat(dir, name,
                         O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY, mode);
        rc = ret->fd < 0 ? -errno : 0;
        if (rc == 0)
            memcpy(ret->name, name, sizeof(name));
    }
    return rc;
}

/* Kernels and file systems have many ways to say that they cannot (EOPNOTSUPP, EISDIR, EINVAL,
 * ENOENT). Whatever it is, the named way comes next, and says why if that fails too. Readable,
 * because it may have to be copied. */
int csn_temp_create(csn_temp *ret, int dir, mode_t mode)
{
    uint32_t not_there = atomic_load_explicit(&refusing, memory_order_relaxed);

    *ret = CSN_TEMP_NONE;
    if (not_there == 0 || not_there != file_system_of(dir))
        ret->fd = openat(dir, ".", O_RDWR | O_TMPFILE | O_CLOEXEC, mode);
    return ret->fd >= 0 ? 0 : csn_temp_create_named(ret, dir, mode);
}

static void close_it(csn_temp *t)
{
    if (t->fd >= 0)
        close(t->fd);
    t->fd = -1;
}

void csn_temp_written(csn_temp *t)
{
    if (t->name[0])
        close_it(t);
}

void csn_temp_drop(csn_temp *t, int dir)
{
    close_it(t);
    if (t->name[0])
        unlinkat(dir, t->name, 0);
    t->name[0] = '\0';
}

/* The signal goes to the thread that writes, so blocking it here and taking it from the queue
 * touches no handler and no other thread of the program we are a guest in. */
int csn_write_full(int fd, const void *data, size_t len, size_t *ret_done)
{
    const char *p = data;
    sigset_t block, old, pending;
    size_t done = 0;
    bool theirs = false; /* a SIGXFSZ was waiting before: it is the caller's */
    int rc = 0;

    sigemptyset(&block);
    sigaddset(&block, SIGXFSZ);
    pthread_sigmask(SIG_BLOCK, &block, &old);
    if (sigismember(&old, SIGXFSZ) && sigpending(&pending) == 0)
        theirs = sigismember(&pending, SIGXFSZ);
    while (done < len) {
        ssize_t n = write(fd, p + done, len - done);
        if (n > 0) {
            done += (size_t)n;
        } else if (n == 0) {
            rc = -EIO;
            break;
        } else if (errno != EINTR) {
            rc = -errno;
            break;
        }
    }
    if (rc == -EFBIG && !theirs) {
        const struct timespec now = {0};
        sigtimedwait(&block, NULL, &now);
    }
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (ret_done)
        *ret_done = done;
    return rc;
}

/* ---- giving one a name ---- */

/* By descriptor the kernel allows it to whoever opened the file, since Linux 6.10 and as long
 * as the thread's identity was not changed in between; before, to privileged processes. By the
 * magic link everybody may, where there is a /proc. Never replaces anything. */
static int link_to(int fd, int dir, const char *name)
{
    char path[40];

    if (linkat(fd, "", dir, name, AT_EMPTY_PATH) == 0)
        return 0;
    if (errno != ENOENT && errno != EINVAL)
        return -errno;
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    return linkat(AT_FDCWD, path, dir, name, AT_SYMLINK_FOLLOW) < 0 ? -errno : 0;
}

static bool is_refusal(int rc)
{
    return rc == -ENOENT || rc == -EPERM || rc == -EACCES || rc == -EOPNOTSUPP ||
           rc == -EINVAL || rc == -ENOSYS || rc == -EXDEV || rc == -EMLINK;
}

/* What the caller gave the first one: owner, mode, times, and a place on the disk. */
static int make_alike(int from, int to)
{
    struct stat want, have;

    if (fstat(from, &want) < 0 || fstat(to, &have) < 0)
        return -errno;
    const struct timespec times[2] = {want.st_atim, want.st_mtim};
    uid_t uid = want.st_uid == have.st_uid ? (uid_t)-1 : want.st_uid;
    gid_t gid = want.st_gid == have.st_gid ? (gid_t)-1 : want.st_gid;
    if ((uid != (uid_t)-1 || gid != (gid_t)-1) && fchown(to, uid, gid) < 0)
        return -errno;
    if (fchmod(to, want.st_mode & 0777) < 0 || futimens(to, times) < 0 || fsync(to) < 0)
        return -errno;
    return 0;
}

static int copy_to(int from, int to)
{
    char buf[8192];
    off_t at = 0;
    ssize_t n;

    while ((n = pread(from, buf, sizeof(buf), at)) > 0) {
        int rc = csn_write_full(to, buf, (size_t)n, NULL);
        if (rc < 0)
            return rc;
        at += n;
    }
    return n < 0 ? -errno : make_alike(from, to);
}

/* It cannot be linked: the same again, in a file that has a name. */
static int name_by_copy(csn_temp *t, int dir)
{
    csn_temp other;
    int rc = csn_temp_create_named(&other, dir, 0600);

    if (rc == 0)
        rc = copy_to(t->fd, other.fd);
    if (rc < 0) {
        csn_temp_drop(&other, dir);
        return rc;
    }
    atomic_store_explicit(&refusing, file_system_of(dir), memory_order_relaxed);
    close_it(t);
    *t = other;
    csn_temp_written(t);
    return 0;
}

static int give_name(csn_temp *t, int dir)
{
    char name[CSN_TEMP_SIZE];
    int rc = t->name[0] ? 0 : -EEXIST;

    for (int i = 0; rc == -EEXIST && i < TRIES; i++) {
        rc = csn_temp_name(name);
        if (rc < 0)
            return rc;
        rc = link_to(t->fd, dir, name);
        if (rc == 0)
            memcpy(t->name, name, sizeof(name));
    }
    return is_refusal(rc) ? name_by_copy(t, dir) : rc;
}

/* ---- the name that was asked for ---- */

/* For file systems whose rename has no flags: a hard link never replaces anything. */
static int publish_by_link(int dir, const char *temp, const char *name)
{
    if (linkat(dir, temp, dir, name, 0) < 0)
        return -errno;
    unlinkat(dir, temp, 0);
    return 0;
}

/* rename replaces a link or a hard link as a name; neither is ever opened. */
static int rename_to(int dir, const char *temp, const char *name, bool fresh)
{
    if (!fresh)
        return renameat(dir, temp, dir, name) < 0 ? -errno : 0;
    if (renameat2(dir, temp, dir, name, RENAME_NOREPLACE) == 0)
        return 0;
    if (errno != EINVAL && errno != ENOSYS)
        return -errno;
    return publish_by_link(dir, temp, name);
}

int csn_temp_publish(csn_temp *t, int dir, const char *name, unsigned how)
{
    bool fresh = how & CSN_TEMP_FRESH;
    int rc = -EEXIST;

    if (!t->name[0] && !(how & CSN_TEMP_OVER)) {
        rc = link_to(t->fd, dir, name);
        if (rc == 0 || (rc == -EEXIST && fresh) || (rc != -EEXIST && !is_refusal(rc)))
            return rc;
    }
    rc = give_name(t, dir); /* from here to the rename is the window */
    if (rc == 0)
        rc = rename_to(dir, t->name, name, fresh);
    if (rc == 0)
        t->name[0] = '\0';
    return rc;
}

/* Without RENAME_EXCHANGE: keep the old file by a second name, then replace the first. */
static int swap_by_link(int dir, const char *temp, const char *name)
{
    char kept[CSN_TEMP_SIZE];
    int rc = csn_temp_name(kept);

    if (rc < 0)
        return rc;
    if (linkat(dir, name, dir, kept, 0) < 0)
        return -errno;
    if (renameat(dir, temp, dir, name) < 0) {
        rc = -errno;
        unlinkat(dir, kept, 0);
        return rc;
    }
    if (renameat(dir, kept, dir, temp) == 0)
        return 0;
    rc = -errno;
    renameat(dir, kept, dir, name);
    return rc;
}

/* An exchange does not look at types: a directory that came to the name goes back there. */
static int swap_once(int dir, const char *temp, const char *name)
{
    struct stat st;

    if (renameat2(dir, temp, dir, name, RENAME_EXCHANGE) < 0)
        return errno == EINVAL || errno == ENOSYS ? swap_by_link(dir, temp, name) : -errno;
    if (fstatat(dir, temp, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
        (S_ISREG(st.st_mode) || S_ISLNK(st.st_mode)))
        return 0;
    renameat2(dir, temp, dir, name, RENAME_EXCHANGE);
    return S_ISDIR(st.st_mode) ? -EISDIR : -EMEDIUMTYPE;
}

int csn_temp_swap(csn_temp *t, int dir, const char *name, bool fresh, bool *ret_swapped)
{
    int rc = -EBUSY;

    /* The name may come and go between the two attempts. */
    for (int i = 0; i < TRIES; i++) {
        rc = csn_temp_publish(t, dir, name, CSN_TEMP_FRESH);
        if (rc == 0)
            *ret_swapped = false;
        if (rc != -EEXIST || fresh)
            return rc;
        rc = give_name(t, dir);
        if (rc == 0)
            rc = swap_once(dir, t->name, name);
        if (rc == 0)
            *ret_swapped = true;
        if (rc != -ENOENT)
            return rc;
    }
    return rc;
}

/* Without the exchange, the kept old file simply takes its name again. */
void csn_temp_unswap(csn_temp *t, int dir, const char *name, bool swapped)
{
    if (!swapped)
        unlinkat(dir, name, 0);
    else if (renameat2(dir, t->name, dir, name, RENAME_EXCHANGE) < 0 &&
             renameat(dir, t->name, dir, name) == 0)
        t->name[0] = '\0';
}
