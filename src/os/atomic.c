/* atomic.c: temporary files and the renames that put them in place.
 *
 * Called by the writers of backends. What must hold: a reader sees the old file or the new one,
 * whole; a failure leaves the old one; a name that is a symlink, a hard link or a fifo by the
 * time of the rename is replaced, never written through. An attacker may control the directory:
 * names of temporary files are random and made with O_EXCL, so none can be waiting there.
 * Exchanging two names (RENAME_EXCHANGE) keeps the old file at hand until a whole batch is in
 * place; file systems without it keep it by a hard link. */
#include "os/atomic.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#define TRIES 16

static int random_name(char out[CSN_TEMP_SIZE])
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz234567";
    const size_t prefix = sizeof(CSN_TEMP_PREFIX) - 1;
    unsigned char bytes[CSN_TEMP_SIZE];

    if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes))
        return errno ? -errno : -EIO;
    memcpy(out, CSN_TEMP_PREFIX, prefix);
    for (size_t i = prefix; i < CSN_TEMP_SIZE - 1; i++)
        out[i] = letters[bytes[i] % 32];
    out[CSN_TEMP_SIZE - 1] = '\0';
    return 0;
}

/* O_EXCL never opens what is there, nor follows a link. */
int csn_temp_create(int dir, mode_t mode, char ret_name[CSN_TEMP_SIZE])
{
    for (int i = 0; i < TRIES; i++) {
        int rc = random_name(ret_name);
        if (rc < 0)
            return rc;
        int fd = openat(dir, ret_name,
                        O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY, mode);
        if (fd >= 0 || errno != EEXIST)
            return fd < 0 ? -errno : fd;
    }
    return -EEXIST;
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

/* For file systems whose rename has no flags: a hard link never replaces anything. */
static int publish_by_link(int dir, const char *temp, const char *name)
{
    if (linkat(dir, temp, dir, name, 0) < 0)
        return -errno;
    unlinkat(dir, temp, 0);
    return 0;
}

/* rename replaces a link or a hard link as a name; neither is ever opened. */
int csn_temp_publish(int dir, const char *temp, const char *name, bool fresh)
{
    if (!fresh)
        return renameat(dir, temp, dir, name) < 0 ? -errno : 0;
    if (renameat2(dir, temp, dir, name, RENAME_NOREPLACE) == 0)
        return 0;
    if (errno != EINVAL && errno != ENOSYS)
        return -errno;
    return publish_by_link(dir, temp, name);
}

/* Without RENAME_EXCHANGE: keep the old file by a second name, then replace the first. */
static int swap_by_link(int dir, const char *temp, const char *name)
{
    char kept[CSN_TEMP_SIZE];
    int rc = random_name(kept);

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

int csn_temp_swap(int dir, const char *temp, const char *name, bool fresh, bool *ret_swapped)
{
    int rc = -EBUSY;

    /* The name may come and go between the two attempts. */
    for (int i = 0; i < TRIES; i++) {
        rc = csn_temp_publish(dir, temp, name, true);
        if (rc == 0)
            *ret_swapped = false;
        if (rc != -EEXIST || fresh)
            return rc;
        rc = swap_once(dir, temp, name);
        if (rc == 0)
            *ret_swapped = true;
        if (rc != -ENOENT)
            return rc;
    }
    return rc;
}

/* Without the exchange, the kept old file simply takes its name again. */
void csn_temp_unswap(int dir, const char *temp, const char *name, bool swapped)
{
    if (!swapped)
        unlinkat(dir, name, 0);
    else if (renameat2(dir, temp, dir, name, RENAME_EXCHANGE) < 0)
        renameat(dir, temp, dir, name);
}
