/* parent.c: finds, makes and removes the directories above a name.
 *
 * An attacker controls the path, the links on it and the moment they change. Invariant: each
 * directory is reached from the root by csn_beneath_open or, when it is new, by one plain name
 * from an open descriptor without following a link; so nothing is ever made outside the root. A
 * final symlink is replaced in the path by its target, and the new path is resolved from the
 * root: a link out of the root is -EXDEV, a dangling link inside names the file to create.
 * csn_parent_undo removes the directories that were made, so that a refused operation leaves
 * nothing. */
#include "os/parent.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "os/beneath.h"

#define LINKS_MAX 40

static bool is_dots(const char *name, size_t len)
{
    return (len == 1 && name[0] == '.') || (len == 2 && name[0] == '.' && name[1] == '.');
}

/* Returns the offset of the last component of path[0..len), and in *ret_above the length of the
 * path before it, without trailing slashes. */
static size_t last_component(const char *path, size_t len, size_t *ret_above)
{
    size_t at = len;

    while (at > 0 && path[at - 1] != '/')
        at--;
    size_t above = at;
    while (above > 0 && path[above - 1] == '/')
        above--;
    *ret_above = above == 0 && at > 0 ? 1 : above; /* "/x": above it is "/" */
    return at;
}

static int open_prefix(const csn_parent *p, const char *path, size_t len, int flags)
{
    char text[PATH_MAX];

    if (len >= sizeof(text))
        return -ENAMETOOLONG;
    if (len == 0) {
        text[0] = '.';
        len = 1;
    } else {
        memcpy(text, path, len);
    }
    text[len] = '\0';
    return csn_beneath_open(p->root, text, flags | O_DIRECTORY, p->how);
}

/* Opens the longest existing prefix of path[0..len). `..` among the missing names is
 * refused. */
static int find_prefix(csn_parent *p, size_t len)
{
    for (;;) {
        int fd = open_prefix(p, p->path, len, O_PATH);
        if (fd >= 0) {
            p->fd = fd;
            p->have = len;
            return 0;
        }
        if (fd != -ENOENT || len == 0)
            return fd;
        size_t above, at = last_component(p->path, len, &above);
        if (len - at == 2 && is_dots(p->path + at, 2))
            return -ENOENT; /* only the kernel resolves `..`, and there is no directory yet */
        if (above >= len)
            return fd;
        len = above;
    }
}

/* Replaces the last component of p->path by the link's target. -EXDEV for an absolute link. */
static int replace_by_link(csn_parent *p, size_t above, bool slash)
{
    char text[PATH_MAX + 1];
    ssize_t n = readlinkat(p->fd, p->name, text, PATH_MAX);

    if (n < 0)
        return errno == EINVAL ? -EAGAIN : -errno; /* not a link any more */
    text[n] = '\0';
    bool absolute = text[0] == '/';
    if (absolute && !(p->how & CSN_BENEATH_ROOTED))
        return -EXDEV;
    size_t dir = absolute ? 0 : above;
    if (dir + (size_t)n + 2 > PATH_MAX)
        return -ENAMETOOLONG;
    char *path = malloc(dir + (size_t)n + 3);
    if (!path)
        return -ENOMEM;
    memcpy(path, p->path, dir);
    size_t len = dir;
    if (dir > 0 && path[dir - 1] != '/')
        path[len++] = '/';
    memcpy(path + len, text, (size_t)n);
    len += (size_t)n;
    if (slash && len > 0 && path[len - 1] != '/')
        path[len++] = '/';
    path[len] = '\0';
    free(p->path);
    p->path = path;
    return 0;
}

/* Resolves p->path once. 1: it ended in a link and p->path is its target now. The name may
 * change after the fstatat; every later use of it follows no link. */
static int find_once(csn_parent *p, bool follow)
{
    size_t len = strlen(p->path), above;

    p->slash = false;
    while (len > 1 && p->path[len - 1] == '/') {
        p->path[--len] = '\0';
        p->slash = true;
    }
    size_t at = last_component(p->path, len, &above);
    if (at == len || is_dots(p->path + at, len - at)) {
        int fd = open_prefix(p, p->path, len, O_PATH);
        if (fd < 0)
            return fd;
        close(fd);
        return follow ? -EISDIR : -EINVAL;
    }
    if (len - at > NAME_MAX)
        return -ENAMETOOLONG;
    p->name = p->path + at;
    int rc = find_prefix(p, above);
    if (rc < 0)
        return rc;
    p->made = above;
    p->exists = p->have == above && fstatat(p->fd, p->name, &p->st, AT_SYMLINK_NOFOLLOW) == 0;
    if (!p->exists && p->have == above && errno != ENOENT)
        return -errno;
    if (!follow || !p->exists || !S_ISLNK(p->st.st_mode))
        return 0;
    if (p->how & CSN_BENEATH_NOFOLLOW)
        return -ELOOP;
    rc = replace_by_link(p, above, p->slash);
    close(p->fd);
    p->fd = -1;
    return rc < 0 && rc != -EAGAIN ? rc : 1;
}

int csn_parent_find(int root, const char *path, unsigned how, csn_parent *ret)
{
    csn_autoparent p = {.root = root, .how = how & ~CSN_PARENT_FOLLOW, .fd = -1};
    int rc = 1;

    if (*path == '\0')
        return -ENOENT;
    if (strlen(path) >= PATH_MAX)
        return -ENAMETOOLONG;
    if (!(p.path = strdup(path)))
        return -ENOMEM;
    for (int i = 0; rc > 0; i++)
        rc = i > LINKS_MAX ? -ELOOP : find_once(&p, how & CSN_PARENT_FOLLOW);
    if (rc < 0)
        return rc;
    *ret = p;
    p = CSN_PARENT_NONE;
    return 0;
}

/* Moves *at to the next missing directory; false: only the last name is left. */
static bool next_missing(const csn_parent *p, size_t *at, size_t *ret_len)
{
    size_t name_at = (size_t)(p->name - p->path);

    for (;;) {
        while (*at < name_at && p->path[*at] == '/')
            (*at)++;
        if (*at >= name_at)
            return false;
        *ret_len = strcspn(p->path + *at, "/");
        if (!is_dots(p->path + *at, *ret_len))
            return true;
        *at += *ret_len; /* only "." can be here: find_prefix refuses ".." */
    }
}

char *csn_parent_missing(const csn_parent *p)
{
    char *out = calloc(1, strlen(p->path) + 1);
    size_t at = p->have, len, n = 0;

    while (out && next_missing(p, &at, &len)) {
        if (n > 0)
            out[n++] = '/';
        memcpy(out + n, p->path + at, len);
        n += len;
        at += len;
    }
    return out;
}

/* Each directory is made and opened by one plain name from the one above; O_NOFOLLOW, because a
 * link may replace it between the two calls. */
int csn_parent_make(csn_parent *p)
{
    size_t at = p->have, len;
    bool ours = false; /* all directories after p->made are ours */

    while (next_missing(p, &at, &len)) {
        char name[NAME_MAX + 1];
        if (len > NAME_MAX)
            return -ENAMETOOLONG;
        memcpy(name, p->path + at, len);
        name[len] = '\0';
        if (mkdirat(p->fd, name, 0777) == 0) {
            if (!ours)
                p->made = p->have;
            ours = true;
        } else if (errno == EEXIST) {
            /* Another process made and uses this one, so undo must keep its parents too. */
            p->made = (size_t)(p->name - p->path);
            ours = false;
        } else {
            return -errno;
        }
        at += len;
        p->have = at;
        int fd = openat(p->fd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0)
            return errno == ENOTDIR && !ours ? -ENOENT : -errno; /* a dangling link */
        close(p->fd);
        p->fd = fd;
    }
    return 0;
}

/* Deepest first, by path: a batch may make thousands of directories, too many to keep open.
 * rmdir removes only empty directories, so files that others put there stay. */
void csn_parent_undo(csn_parent *p)
{
    size_t end = p->have, above;

    while (p->path && end > p->made) {
        csn_autoparent dir = CSN_PARENT_NONE;
        csn_autofree char *text = strndup(p->path, end);
        if (!text || csn_parent_find(p->root, text, p->how, &dir) < 0)
            return;
        if (unlinkat(dir.fd, dir.name, AT_REMOVEDIR) < 0)
            return;
        do {
            size_t at = last_component(p->path, end, &above);
            end = at == 0 ? 0 : above;
        } while (end > p->made && p->path[end - 1] == '.' &&
                 (end == 1 || p->path[end - 2] == '/'));
    }
    p->made = p->have;
}

/* Some file systems answer fsync of a directory with EINVAL. */
static int sync_dir(int fd)
{
    int rc = fsync(fd) < 0 && errno != EINVAL && errno != EROFS ? -errno : 0;

    close(fd);
    return rc;
}

/* A new directory also needs the sync of the directory above it. */
int csn_parent_sync(const csn_parent *p)
{
    int fd = openat(p->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int rc = fd < 0 ? -errno : sync_dir(fd);
    size_t end = p->have, above;

    while (rc == 0 && end > p->made) {
        size_t at = last_component(p->path, end, &above);
        end = at == 0 ? 0 : above;
        fd = open_prefix(p, p->path, end, O_RDONLY);
        rc = fd < 0 ? fd : sync_dir(fd);
    }
    return rc;
}

void csn_parent_release(csn_parent *p)
{
    if (p->fd >= 0)
        close(p->fd);
    free(p->path);
    *p = CSN_PARENT_NONE;
}
