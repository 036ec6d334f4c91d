/* commit_base.c: entries of the base as a commit sees them: parents, identity, attributes.
 *
 * The user may rename anything in the base at any time. Parents are opened below the base
 * without following links and held; entries are named relative to them. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/limits.h"
#include "base/strv.h"
#include "layers/commit_internal.h"
#include "layers/entry.h"
#include "os/beneath.h"

#define ATTR_VALUE_MAX 65536u /* of the kernel */

int csn_path_compare(const char *a, size_t alen, const char *b, size_t blen)
{
    for (size_t i = 0; i < alen && i < blen; i++) {
        unsigned char x = (unsigned char)a[i], y = (unsigned char)b[i];
        if (x != y) /* a component that ends is less than one that goes on */
            return x == '/' ? -1 : y == '/' ? 1 : x < y ? -1 : 1;
    }
    return alen < blen ? -1 : alen > blen;
}

void csn_commit_dir_release(csn_commit_dir *p)
{
    if (p->fd >= 0)
        close(p->fd);
    free(p->path);
    *p = CSN_COMMIT_DIR(p->base);
}

int csn_commit_dir_open(csn_commit_dir *p, const char *path)
{
    if (p->path && strcmp(p->path, path) == 0)
        return p->fd;
    csn_commit_dir_release(p);
    p->fd = csn_beneath_open(p->base, *path ? path : ".", O_PATH | O_DIRECTORY | O_NOFOLLOW,
                             CSN_BENEATH_NOFOLLOW);
    if (p->fd < 0) {
        int rc = p->fd;
        p->fd = -1;
        return rc;
    }
    p->path = strdup(path);
    return p->path ? p->fd : -ENOMEM;
}

int csn_commit_dir_above(csn_commit_dir *p, const char *path, const char **ret_name)
{
    const char *slash = strrchr(path, '/');
    csn_autofree char *dir = strndup(path, slash ? (size_t)(slash - path) : 0);

    *ret_name = slash ? slash + 1 : path;
    return dir ? csn_commit_dir_open(p, dir) : -ENOMEM;
}

int csn_side_read(int dir, const char *name, csn_change_side *ret)
{
    struct stat st;

    *ret = (csn_change_side){0};
    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT) < 0)
        return errno == ENOENT ? 0 : -errno;
    *ret = (csn_change_side){.mode = st.st_mode,
                             .size = (uint64_t)st.st_size,
                             .dev = st.st_dev,
                             .ino = st.st_ino,
                             .nlink = st.st_nlink,
                             .mtime = st.st_mtim,
                             .ctime = st.st_ctim};
    return 0;
}

static bool same_time(struct timespec a, struct timespec b)
{
    return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

bool csn_side_same(const csn_change_side *a, const csn_change_side *b)
{
    if (a->mode == 0 || b->mode == 0)
        return a->mode == b->mode;
    if (a->ino != b->ino || (a->mode & S_IFMT) != (b->mode & S_IFMT))
        return false;
    if (S_ISDIR(a->mode))
        return true;
    return a->mode == b->mode && a->size == b->size && same_time(a->mtime, b->mtime) &&
           (a->nlink > 1 || same_time(a->ctime, b->ctime));
}

/* ---- extended attributes ---- */

/* Capabilities, labels and trusted.* are the host's to give; overlayfs's marks mean nothing
 * outside of a layer. */
static bool is_kept(const char *name)
{
    return (csn_str_starts(name, "user.") && !csn_str_starts(name, "user.overlay.")) ||
           csn_str_starts(name, "system.posix_acl_");
}

static bool has_no_attrs(int error)
{
    return error == ENOTSUP || error == ENOSYS;
}

/* The names, each with its NUL, malloc'd. */
static int list_names(int fd, char **ret, size_t *ret_len)
{
    for (int tries = 0; tries < 8; tries++) {
        ssize_t n = flistxattr(fd, NULL, 0);
        if (n < 0)
            return has_no_attrs(errno) ? 0 : -errno;
        csn_autofree char *names = malloc((size_t)n + 1);
        if (!names)
            return -ENOMEM;
        n = flistxattr(fd, names, (size_t)n);
        if (n >= 0) {
            *ret = CSN_STEAL(names);
            *ret_len = (size_t)n;
            return 0;
        }
        if (errno != ERANGE)
            return -errno;
    }
    return -EBUSY;
}

int csn_attrs_read(int fd, csn_arena *arena, const void **ret, uint64_t *ret_len)
{
    const csn_entry_tree layer = {.root = -1, .unlock = true};
    csn_autofree char *names = NULL;
    csn_autofree char *value = NULL;
    csn_autobuf b;
    size_t len = 0;
    int rc = list_names(fd, &names, &len);

    csn_buf_init(&b, CSN_JOURNAL_BYTES_MAX);
    for (size_t at = 0; rc == 0 && at < len; at += strlen(names + at) + 1) {
        if (!is_kept(names + at))
            continue;
        if (!value && !(value = malloc(ATTR_VALUE_MAX)))
            return -ENOMEM;
        ssize_t n = csn_entry_get_xattr(&layer, fd, names + at, value, ATTR_VALUE_MAX);
        if (n == -ENODATA)
            continue;
        if (n < 0)
            return (int)n;
        uint64_t size = (uint64_t)n;
        (void)csn_buf_append(&b, names + at, strlen(names + at) + 1);
        (void)csn_buf_append(&b, &size, sizeof(size));
        (void)csn_buf_append(&b, value, size);
        rc = -b.err;
    }
    if (rc < 0)
        return rc;
    *ret = b.len ? csn_arena_memdup(arena, b.data, b.len) : "";
    *ret_len = b.len;
    return *ret ? 0 : -ENOMEM;
}

/* One entry of the list: its end, or NULL if the list is damaged. */
static const char *next_attr(const char *p, const char *end, const char **ret_value,
                             uint64_t *ret_size)
{
    const char *nul = memchr(p, '\0', (size_t)(end - p));

    if (!nul || (size_t)(end - nul - 1) < sizeof(*ret_size))
        return NULL;
    memcpy(ret_size, nul + 1, sizeof(*ret_size));
    *ret_value = nul + 1 + sizeof(*ret_size);
    return *ret_size <= (uint64_t)(end - *ret_value) ? *ret_value + *ret_size : NULL;
}

static bool has_attr(const char *p, const char *end, const char *name)
{
    const char *value;
    uint64_t size;

    while (p && p < end) {
        if (strcmp(p, name) == 0)
            return true;
        p = next_attr(p, end, &value, &size);
    }
    return false;
}

static int remove_others(int fd, const char *attrs, const char *end)
{
    csn_autofree char *names = NULL;
    size_t len = 0;
    int rc = list_names(fd, &names, &len);

    for (size_t at = 0; rc == 0 && at < len; at += strlen(names + at) + 1) {
        if (is_kept(names + at) && !has_attr(attrs, end, names + at) &&
            fremovexattr(fd, names + at) < 0 && errno != ENODATA)
            rc = -errno;
    }
    return rc;
}

int csn_attrs_write(int fd, const void *attrs, uint64_t len, bool exact)
{
    const char *begin = attrs, *end = begin + len, *value;
    uint64_t size;

    for (const char *p = begin; p < end;) {
        const char *name = p;
        p = next_attr(p, end, &value, &size);
        if (!p)
            return -EBADMSG;
        if (is_kept(name) && fsetxattr(fd, name, value, size, 0) < 0 && !has_no_attrs(errno))
            return -errno;
    }
    return exact ? remove_others(fd, begin, end) : 0;
}
