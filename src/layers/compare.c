/* compare.c: compares a file, link or directory of a layer with that of the base. */
#include "layers/compare.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/limits.h"

static bool is_other_now(int fd)
{
    return fd == -ENOENT || fd == -ELOOP || fd == -ENXIO || fd == -ENOTDIR || fd == -EACCES;
}

static int same_xattrs(const csn_compared *c, int a, int b, char *buf)
{
    int same = csn_entry_same_xattrs(c->a.tree, a, c->b.tree, b, buf);

    return same < 0 ? same : same ? 0 : CSN_CHANGE_META;
}

static int compare_files(const csn_compared *c, char *buf)
{
    const struct timespec *x = &c->a.st->st_mtim, *y = &c->b.st->st_mtim;
    struct stat st;

    if (c->a.st->st_size != c->b.st->st_size)
        return CSN_CHANGE_MODIFIED;
    csn_autofd int a = csn_entry_open(c->a.tree, c->a.dir, c->name, O_RDONLY);
    csn_autofd int b = csn_entry_open(c->b.tree, c->b.dir, c->name, O_RDONLY);
    if (is_other_now(a) || is_other_now(b))
        return CSN_CHANGE_MODIFIED;
    if (a < 0 || b < 0)
        return a < 0 ? a : b;
    if (fstat(a, &st) < 0 || !S_ISREG(st.st_mode) || fstat(b, &st) < 0 || !S_ISREG(st.st_mode))
        return CSN_CHANGE_MODIFIED;
    int same = csn_entry_same_content(a, b, buf);
    if (same <= 0)
        return same < 0 ? same : CSN_CHANGE_MODIFIED;
    if (x->tv_sec != y->tv_sec || x->tv_nsec != y->tv_nsec)
        return CSN_CHANGE_META;
    return same_xattrs(c, a, b, buf);
}

static ssize_t link_text(const csn_entry_tree *t, int dir, const char *name, char *ret)
{
    csn_autofd int fd = csn_entry_open(t, dir, name, O_PATH);

    return fd < 0 ? fd : readlinkat(fd, "", ret, CSN_PATH_MAX);
}

static int compare_links(const csn_compared *c, char *buf)
{
    ssize_t x = link_text(c->a.tree, c->a.dir, c->name, buf);
    ssize_t y = link_text(c->b.tree, c->b.dir, c->name, buf + CSN_PATH_MAX);

    if (x < 0 || x != y || memcmp(buf, buf + CSN_PATH_MAX, (size_t)x) != 0)
        return CSN_CHANGE_MODIFIED;
    return 0;
}

static int compare_dirs(const csn_compared *c, char *buf)
{
    csn_autofd int a = csn_entry_open(c->a.tree, c->a.dir, c->name, O_RDONLY | O_DIRECTORY);
    csn_autofd int b = csn_entry_open(c->b.tree, c->b.dir, c->name, O_RDONLY | O_DIRECTORY);

    if (is_other_now(a) || is_other_now(b))
        return 0;
    return a < 0 || b < 0 ? (a < 0 ? a : b) : same_xattrs(c, a, b, buf);
}

int csn_compare(const csn_compared *c, char buf[CSN_ENTRY_BUFFER])
{
    mode_t type = c->a.st->st_mode & S_IFMT;
    int r = 0;

    if (type != (c->b.st->st_mode & S_IFMT))
        return CSN_CHANGE_TYPE;
    if (type == S_IFREG)
        r = compare_files(c, buf);
    else if (type == S_IFLNK)
        return compare_links(c, buf);
    else if (type == S_IFDIR)
        r = compare_dirs(c, buf);
    else if (c->a.st->st_rdev != c->b.st->st_rdev)
        r = CSN_CHANGE_MODIFIED;
    if (r == 0 && ((c->a.st->st_mode ^ c->b.st->st_mode) & 07777) != 0)
        r = CSN_CHANGE_META;
    return r;
}
