/* quarantine.c: moves a file out of a workspace to where no program runs it.
 *
 * Runs after a command, as the caller, possibly root. The agent controls the file and its
 * directory, and its other processes may change them at the same time.
 *
 * Invariants: no link is followed; only a plain name in an open directory is changed;
 * afterwards the name is free, even if the contents could not be kept, because the file is
 * renamed before it is examined.
 *
 *   <state>/aside/ID/N/item   the file
 *   <state>/aside/ID/N/from   its former path and the reason */
#include "backend/jail/quarantine.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "os/atomic.h"
#include "os/statedir.h"

#define COPY_MAX  (64u << 20) /* a longer file is truncated if it has to be copied */
#define SLOTS_MAX 1000000u
#define NAME_SIZE 32u

/* ---- destination ---- */

static int open_store(csn_quarantine *q, const char *id)
{
    char sub[96];

    if (q->fd >= 0)
        return 0;
    snprintf(sub, sizeof(sub), "aside/%s", id);
    int fd = csn_statedir_open(CSN_DIR_STATE, sub, &q->path);
    if (fd < 0)
        return fd;
    q->fd = fd;
    return 0;
}

/* A new directory per file, so that a rename cannot collide. */
static int new_slot(csn_quarantine *q, char name[NAME_SIZE])
{
    for (; q->next < SLOTS_MAX; q->next++) {
        snprintf(name, NAME_SIZE, "%u", q->next + 1);
        if (mkdirat(q->fd, name, 0700) == 0) {
            q->next++;
            int fd = openat(q->fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
            return fd < 0 ? -errno : fd;
        }
        if (errno != EEXIST)
            return -errno;
    }
    return -ENOSPC;
}

static void note_origin(int slot, const char *from)
{
    csn_autofd int fd = openat(slot, "from", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

    if (fd >= 0)
        (void)csn_write_full(fd, from, strlen(from), NULL);
}

/* ---- moving ---- */

/* The agent may have removed write permission of the directory. */
static int move_out(int dir, const char *name, int to, const char *as)
{
    struct stat st;

    if (renameat(dir, name, to, as) == 0)
        return 0;
    int e = errno;
    if (e != EACCES || fstat(dir, &st) < 0 || st.st_uid != geteuid() ||
        fchmod(dir, (st.st_mode & 07777) | S_IRWXU) < 0)
        return -e;
    return renameat(dir, name, to, as) < 0 ? -errno : 0;
}

static int copy_bytes(int from, int to)
{
    csn_autofree char *buf = malloc(1u << 16);
    size_t total = 0;

    if (!buf)
        return -ENOMEM;
    while (total < COPY_MAX) {
        ssize_t n = read(from, buf, 1u << 16);
        if (n <= 0)
            return n < 0 ? -errno : 0;
        int rc = csn_write_full(to, buf, (size_t)n, NULL);
        if (rc < 0)
            return rc;
        total += (size_t)n;
    }
    return 0;
}

/* Contents are kept of regular files and links only. */
static int copy(int dir, const char *name, int slot)
{
    char target[PATH_MAX];
    struct stat st;

    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return -errno;
    if (S_ISLNK(st.st_mode)) {
        ssize_t n = readlinkat(dir, name, target, sizeof(target) - 1);
        if (n < 0)
            return -errno;
        target[n] = '\0';
        return symlinkat(target, slot, "item") < 0 ? -errno : 0;
    }
    if (!S_ISREG(st.st_mode))
        return 0;
    csn_autofd int from =
        openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (from < 0)
        return -errno;
    if (fstat(from, &st) < 0 || !S_ISREG(st.st_mode))
        return -EAGAIN;
    csn_autofd int to = openat(slot, "item", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    return to < 0 ? -errno : copy_bytes(from, to);
}

static void random_name(char out[NAME_SIZE])
{
    uint64_t r = 0;

    (void)!getrandom(&r, sizeof(r), 0);
    snprintf(out, NAME_SIZE, CSN_TEMP_PREFIX "aside-%08llx",
             (unsigned long long)(r & 0xffffffffu));
}

/* For a slot on another file system, or none (-1): renames the file in place to a random name,
 * then copies it. *ret_in_place: it could not be copied and stays under that name. */
static int take_by_copy(int dir, const char *name, int slot, char temp[NAME_SIZE],
                        bool *ret_in_place)
{
    random_name(temp);
    int rc = move_out(dir, name, dir, temp);
    if (rc < 0)
        return rc;
    *ret_in_place = slot < 0 || copy(dir, temp, slot) < 0 || unlinkat(dir, temp, 0) < 0;
    return 0;
}

int csn_quarantine_file(csn_quarantine *q, const char *id, int dir, const char *name,
                        const char *from, char **ret_path)
{
    char slot_name[NAME_SIZE] = "", temp[NAME_SIZE];
    bool in_place = false;
    csn_autofd int slot = open_store(q, id) < 0 ? -1 : new_slot(q, slot_name);

    *ret_path = NULL;
    int rc = slot < 0 ? -EXDEV : move_out(dir, name, slot, "item");
    if (rc == -EXDEV)
        rc = take_by_copy(dir, name, slot, temp, &in_place);
    if (rc == 0 && !in_place) {
        note_origin(slot, from);
        if (asprintf(ret_path, "%s/%s/item", q->path, slot_name) < 0)
            *ret_path = NULL;
    } else if (slot >= 0) {
        (void)unlinkat(slot, "item", 0);
        (void)unlinkat(q->fd, slot_name, AT_REMOVEDIR);
    }
    if (rc == 0 && in_place)
        *ret_path = strdup(temp);
    return rc;
}

void csn_quarantine_release(csn_quarantine *q)
{
    if (q->fd >= 0)
        close(q->fd);
    free(q->path);
    *q = (csn_quarantine){.fd = -1};
}
