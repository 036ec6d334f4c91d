/* rootfs_template_store.c: creates, locks and removes root templates in the state directory.
 *
 * <state>/frames has a directory per template and a lock file for each, on which its users hold
 * a shared lock. The copied files belong to root or to packages; their total size is bounded
 * nevertheless. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "backend/jail/rootfs_template.h"
#include "base/cleanup.h"
#include "base/hash.h"
#include "base/limits.h"
#include "os/atomic.h"
#include "os/tree.h"

#define LOCK_SUFFIX    ".lock"
#define NAME_SIZE      96u
#define BYTES_MAX      (16u << 20)
#define CROWDED        64u  /* with more templates, unused ones are removed after TEMP_AGE_S */
#define TEMP_AGE_S     3600 /* older temporary directories were left by killed processes */
#define TEMPLATE_AGE_S (30 * 86400) /* older templates are removed */

/* Templates are not synced to disk, so a crash may leave empty files. Templates from before the
 * last boot are created again. */
static bool is_of_this_boot(const struct stat *template)
{
    struct timespec now, up;

    clock_gettime(CLOCK_REALTIME, &now);
    clock_gettime(CLOCK_BOOTTIME, &up);
    return template->st_mtim.tv_sec >= now.tv_sec - up.tv_sec - 1;
}

int csn_rootfs_template_hold(int store, const char *key, int *ret_lock)
{
    char name[NAME_SIZE];
    struct stat st, template;

    snprintf(name, sizeof(name), "%s" LOCK_SUFFIX, key);
    csn_autofd int lock = openat(store, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (lock < 0)
        return -errno;
    if (flock(lock, LOCK_SH | LOCK_NB) < 0)
        return -errno;
    /* Removal unlinks the template before its lock: if both exist, it is not being removed. */
    if (fstatat(store, key, &template, AT_SYMLINK_NOFOLLOW) < 0 || fstat(lock, &st) < 0)
        return -errno;
    if (st.st_nlink == 0 || !is_of_this_boot(&template))
        return -ENOENT;
    *ret_lock = csn_steal_fd(&lock);
    return 0;
}

/* ---- copying ---- */

/* Readable regardless of the umask: commands of a root caller have another uid. */
static int make_dir(int at, const char *name)
{
    return mkdirat(at, name, 0755) < 0 || fchmodat(at, name, 0755, 0) < 0 ? -errno : 0;
}

static int copy_bytes(int in, int out, size_t *bytes)
{
    char buf[16384];

    for (ssize_t n; (n = read(in, buf, sizeof(buf))) != 0;) {
        if (n < 0)
            return -errno;
        *bytes += (size_t)n;
        if (*bytes > BYTES_MAX)
            return -EFBIG;
        int rc = csn_write_full(out, buf, (size_t)n, NULL);
        if (rc < 0)
            return rc;
    }
    return 0;
}

/* The copy is never more readable than the original; group permissions apply to our group. What
 * cannot be read or is not a regular file is left out. */
static int copy_file(int at, const char *path, const char *to, size_t *bytes)
{
    struct stat st;
    csn_autofd int in = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);

    if (in < 0 || fstat(in, &st) < 0)
        return csn_rootfs_template_is_absent(errno) ? 0 : -errno;
    if (!S_ISREG(st.st_mode))
        return 0;
    csn_autofd int out =
        openat(at, to, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    int rc = out < 0 ? -errno : copy_bytes(in, out, bytes);
    return rc == 0 && fchmod(out, st.st_mode & 0555) < 0 ? -errno : rc;
}

static int make_parents(int at, const char *path)
{
    char dir[CSN_PATH_MAX + 1];

    for (const char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
        snprintf(dir, sizeof(dir), "%.*s", (int)(slash - path), path);
        int rc = make_dir(at, dir);
        if (rc < 0 && rc != -EEXIST)
            return rc;
    }
    return 0;
}

static int make_text(int at, const char *to, const char *text)
{
    csn_autofd int fd = openat(at, to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    int rc = fd < 0 ? -errno : csn_write_full(fd, text, strlen(text), NULL);

    return rc == 0 && fchmod(fd, 0444) < 0 ? -errno : rc;
}

static int put(int at, const csn_mount *m, size_t *bytes)
{
    const char *to = m->to + 1;
    int rc = make_parents(at, to);

    if (rc < 0)
        return rc;
    if (m->kind == CSN_MOUNT_DIR) {
        rc = make_dir(at, to);
        return rc == -EEXIST ? 0 : rc;
    }
    if (m->kind == CSN_MOUNT_LINK)
        return symlinkat(m->from, at, to) < 0 ? -errno : 0;
    return m->kind == CSN_MOUNT_TEXT ? make_text(at, to, m->from)
                                     : copy_file(at, m->from, to, bytes);
}

/* ---- the store ---- */

typedef struct cleanup {
    int store;
    size_t count; /* of templates */
} cleanup;

static int count_one(void *ctx, const char *name, const struct stat *st, const char *target)
{
    cleanup *t = ctx;

    (void)name;
    (void)target;
    t->count += S_ISDIR(st->st_mode);
    return 0;
}

/* True for the names that are made here: temporary ones and keys. */
static bool is_temp(const char *name)
{
    return strncmp(name, CSN_TEMP_PREFIX, strlen(CSN_TEMP_PREFIX)) == 0 &&
           strlen(name) == CSN_TEMP_SIZE - 1;
}

static bool is_key(const char *name)
{
    return strlen(name) == CSN_HASH_HEX - 1 && !name[strspn(name, "0123456789abcdef")];
}

/* Keeps templates that are locked or new. */
static int remove_unused(void *ctx, const char *name, const struct stat *st, const char *target)
{
    const cleanup *t = ctx;
    const time_t age = t->count < CROWDED ? TEMPLATE_AGE_S : TEMP_AGE_S;
    char lock_name[NAME_SIZE];
    int store = t->store;

    (void)target;
    if (!S_ISDIR(st->st_mode) || st->st_uid != geteuid())
        return 0;
    if (is_temp(name)) {
        if (time(NULL) - st->st_mtim.tv_sec > TEMP_AGE_S)
            (void)csn_tree_remove_force(store, name);
        return 0;
    }
    if (!is_key(name) || (time(NULL) - st->st_mtim.tv_sec < age && is_of_this_boot(st)))
        return 0;
    snprintf(lock_name, sizeof(lock_name), "%s" LOCK_SUFFIX, name);
    csn_autofd int lock = openat(store, lock_name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (lock < 0 ? errno == ENOENT : flock(lock, LOCK_EX | LOCK_NB) == 0) {
        (void)csn_tree_remove_force(store, name);
        unlinkat(store, lock_name, 0);
    }
    return 0;
}

/* Creates the lock file, then renames the template to its final name. */
static int publish(int store, const char *temp, const char *key)
{
    char lock_name[NAME_SIZE];

    snprintf(lock_name, sizeof(lock_name), "%s" LOCK_SUFFIX, key);
    csn_autofd int lock = openat(store, lock_name, O_RDONLY | O_CREAT | O_CLOEXEC, 0600);
    if (lock < 0)
        return -errno;
    if (flock(lock, LOCK_SH | LOCK_NB) < 0)
        return -errno;
    if (renameat(store, temp, store, key) == 0)
        return 0;
    return errno == EEXIST || errno == ENOTEMPTY ? 0 : -errno;
}

int csn_rootfs_template_make(int store, const char *key, const csn_mount *list, size_t count)
{
    char temp[CSN_TEMP_SIZE];
    int rc = csn_temp_name(temp);

    if (rc < 0)
        return rc;
    cleanup t = {.store = store};
    (void)csn_tree_list(store, count_one, &t);
    (void)csn_tree_list(store, remove_unused, &t);
    rc = make_dir(store, temp);
    csn_autofd int to =
        rc < 0 ? -1 : openat(store, temp, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    size_t bytes = 0;
    if (rc == 0 && to < 0)
        rc = -errno;
    for (size_t i = 0; rc == 0 && i < count; i++)
        rc = put(to, &list[i], &bytes);
    if (rc == 0)
        rc = publish(store, temp, key);
    (void)csn_tree_remove_force(store, temp); /* fails if it was published, i.e. renamed */
    return rc;
}
