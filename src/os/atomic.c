/* atomic.c: creates temporary files and publishes them under their final name.
 *
 * Invariants: a reader sees the old file or the new one, whole; a failure leaves the old one; a
 * name that is a symlink, a hard link or a fifo at the time of the rename is replaced, never
 * written through; a process killed while it writes leaves nothing. A temporary file therefore
 * has no name (O_TMPFILE) until it is complete. A new file is then linked directly to its name.
 * One that replaces another is linked to a random name and renamed in the next system call;
 * only a kill between these two leaves a file. An attacker may control the directory: random
 * names are created without replacing anything, so a prepared file is never used.
 *
 * Where O_TMPFILE or linking is unavailable (file system, no /proc, a security module), the
 * file has its random name from the start. RENAME_EXCHANGE keeps the old file until a whole
 * batch is in place; file systems without it keep it by a hard link. */
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

/* ---- creation ---- */

/* Hash of the device on which the last linkat was refused: the next file there is named from
 * the start and need not be copied. 0: none. A wrong hint costs a copy, or leaves a named file
 * if the process is killed. */
static _Atomic uint32_t nolink_dev;

static uint32_t device_hash(int fd)
{
    struct stat st;

    if (fstat(fd, &st) < 0)
        return 0;
    return ((uint32_t)st.st_dev ^ (uint32_t)((uint64_t)st.st_dev >> 32)) | 1u << 31;
}

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

/* Kernels and file systems refuse O_TMPFILE with several errors (EOPNOTSUPP, EISDIR, EINVAL,
 * ENOENT): after any of them a named file is tried. Open for reading, because it may have to be
 * copied. */
int csn_temp_create(csn_temp *ret, int dir, mode_t mode)
{
    uint32_t nolink = atomic_load_explicit(&nolink_dev, memory_order_relaxed);

    *ret = CSN_TEMP_NONE;
    if (nolink == 0 || nolink != device_hash(dir))
        ret->fd = openat(dir, ".", O_RDWR | O_TMPFILE | O_CLOEXEC, mode);
    return ret->fd >= 0 ? 0 : csn_temp_create_named(ret, dir, mode);
}

static void close_temp(csn_temp *t)
{
    if (t->fd >= 0)
        close(t->fd);
    t->fd = -1;
}

void csn_temp_complete(csn_temp *t)
{
    if (t->name[0])
        close_temp(t);
}

void csn_temp_drop(csn_temp *t, int dir)
{
    close_temp(t);
    if (t->name[0])
        unlinkat(dir, t->name, 0);
    t->name[0] = '\0';
}

/* SIGXFSZ is sent to the writing thread, so blocking and consuming it here affects neither the
 * host's handlers nor its other threads. */
int csn_write_full(int fd, const void *data, size_t len, size_t *ret_done)
{
    const char *p = data;
    sigset_t block, old, pending;
    size_t done = 0;
    bool was_pending = false; /* the caller's own SIGXFSZ must stay pending */
    int rc = 0;

    sigemptyset(&block);
    sigaddset(&block, SIGXFSZ);
    pthread_sigmask(SIG_BLOCK, &block, &old);
    if (sigismember(&old, SIGXFSZ) && sigpending(&pending) == 0)
        was_pending = sigismember(&pending, SIGXFSZ);
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
    if (rc == -EFBIG && !was_pending) {
        const struct timespec now = {0};
        sigtimedwait(&block, NULL, &now);
    }
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (ret_done)
        *ret_done = done;
    return rc;
}

/* ---- naming ---- */

/* AT_EMPTY_PATH works for the opener of the file since Linux 6.10, unless its credentials have
 * changed, and for privileged processes before; the magic link works for every user with /proc.
 * Never replaces a file. */
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

/* Copies owner, mode and times, and syncs the new file. */
static int copy_attributes(int from, int to)
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

static int copy_file(int from, int to)
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
    return n < 0 ? -errno : copy_attributes(from, to);
}

/* Names a file that cannot be linked by copying it. */
static int name_by_copy(csn_temp *t, int dir)
{
    csn_temp copy;
    int rc = csn_temp_create_named(&copy, dir, 0600);

    if (rc == 0)
        rc = copy_file(t->fd, copy.fd);
    if (rc < 0) {
        csn_temp_drop(&copy, dir);
        return rc;
    }
    atomic_store_explicit(&nolink_dev, device_hash(dir), memory_order_relaxed);
    close_temp(t);
    *t = copy;
    csn_temp_complete(t);
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

/* ---- publication ---- */

/* For file systems without renameat2 flags: a hard link never replaces a file. */
static int publish_by_link(int dir, const char *temp, const char *name)
{
    if (linkat(dir, temp, dir, name, 0) < 0)
        return -errno;
    unlinkat(dir, temp, 0);
    return 0;
}

/* rename replaces a symlink or hard link itself; neither is ever opened. */
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
    bool fresh = how & CSN_TEMP_EXCL;
    int rc = -EEXIST;

    if (!t->name[0] && !(how & CSN_TEMP_REPLACE)) {
        rc = link_to(t->fd, dir, name);
        if (rc == 0 || (rc == -EEXIST && fresh) || (rc != -EEXIST && !is_refusal(rc)))
            return rc;
    }
    rc = give_name(t, dir); /* a kill from here to the rename leaves a file */
    if (rc == 0)
        rc = rename_to(dir, t->name, name, fresh);
    if (rc == 0)
        t->name[0] = '\0';
    return rc;
}

/* Without RENAME_EXCHANGE: link the old file to a second name, then replace the first. */
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

/* RENAME_EXCHANGE accepts any type: a directory that has taken the name is put back. */
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

    /* The name may appear or vanish between the two attempts. */
    for (int i = 0; i < TRIES; i++) {
        rc = csn_temp_publish(t, dir, name, CSN_TEMP_EXCL);
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

/* Without RENAME_EXCHANGE a plain rename puts the old file back. */
void csn_temp_unswap(csn_temp *t, int dir, const char *name, bool swapped)
{
    if (!swapped)
        unlinkat(dir, name, 0);
    else if (renameat2(dir, t->name, dir, name, RENAME_EXCHANGE) < 0 &&
             renameat(dir, t->name, dir, name) == 0)
        t->name[0] = '\0';
}
