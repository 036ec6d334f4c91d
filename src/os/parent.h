/* parent.h: the directory in which a path's last name is made, replaced or removed.
 *
 * Files are never created through a path: the parent is an open descriptor, the last name is
 * plain. Functions return 0 or -errno. */
#pragma once
#include <stdbool.h>
#include <sys/stat.h>

#include "base/cleanup.h"

#define CSN_PARENT_FOLLOW (1u << 8) /* how: follow a final symlink */

typedef struct csn_parent {
    int root; /* borrowed */
    unsigned how;
    int fd;           /* O_PATH: the parent, or its last existing ancestor */
    char *path;       /* final links resolved, no trailing slash */
    const char *name; /* the last component, in path; never "." or ".." */
    size_t have;      /* length of the prefix of path that names fd */
    size_t made;      /* length of the prefix that existed before csn_parent_make */
    bool slash;       /* the path ended with a slash: names a directory */
    bool exists;      /* st is valid: lstat of the name */
    struct stat st;
} csn_parent;

#define CSN_PARENT_NONE ((csn_parent){.fd = -1})

/* Finds the parent. Missing directories are no error, but `..` among them is -ENOENT. -EINVAL
 * (with FOLLOW -EISDIR): the path ends in `.` or `..` or is the root. -EXDEV: it leads out. */
int csn_parent_find(int root, const char *path, unsigned how, csn_parent *ret);
/* Returns the missing directories between fd and the name, as "a/b" or "". malloc'd. */
char *csn_parent_missing(const csn_parent *p);
/* Makes the missing directories (mode 0777 & ~umask) and sets fd to the parent. */
int csn_parent_make(csn_parent *p);
/* Removes the directories that csn_parent_make made, as far as they are empty. */
void csn_parent_undo(csn_parent *p);
/* Syncs the parent and the names of all directories that were made. */
int csn_parent_sync(const csn_parent *p);
void csn_parent_release(csn_parent *p);
#define csn_autoparent CSN_CLEANUP(csn_parent_release) csn_parent
