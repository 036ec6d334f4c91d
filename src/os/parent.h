/* parent.h: the directory in which a path's last name is to be made, replaced or removed.
 *
 * Creation never goes through a path: the parent is held as a descriptor, the last name is
 * plain. Functions return 0 or -errno. */
#pragma once
#include <stdbool.h>
#include <sys/stat.h>

#include "base/cleanup.h"

#define CSN_PARENT_FOLLOW (1u << 8) /* how: a symlink at the end leads on to its target */

typedef struct csn_parent {
    int root; /* borrowed */
    unsigned how;
    int fd;     /* O_PATH: the parent, or the last directory there is when some are missing */
    char *path; /* the text that led here, links at the end replaced; no trailing slash */
    const char *name; /* the last component, in path; never "." or ".." */
    size_t have;      /* bytes of path that name fd */
    size_t made;      /* bytes of path that name the directory above the first one made by us */
    bool slash;       /* the path ended with a slash: it means a directory */
    bool exists;      /* then st is valid: of the name itself, links not followed */
    struct stat st;
} csn_parent;

#define CSN_PARENT_NONE ((csn_parent){.fd = -1})

/* Finds the parent. Missing directories are not an error, but `..` among them is -ENOENT. A
 * path that ends in `.` or `..` or is the root: -EINVAL (with FOLLOW -EISDIR), -EXDEV if it
 * leads out. */
int csn_parent_find(int root, const char *path, unsigned how, csn_parent *ret);
/* What is missing between fd and the name: "a/b", or "" when nothing is. malloc'd. */
char *csn_parent_missing(const csn_parent *p);
/* Makes the missing directories (mode 0777 & ~umask); fd is the parent then. */
int csn_parent_make(csn_parent *p);
/* Removes those that csn_parent_make made, as far as they are empty. */
void csn_parent_undo(csn_parent *p);
/* Puts on disk the parent, and the names of all directories that were made. */
int csn_parent_sync(const csn_parent *p);
void csn_parent_release(csn_parent *p);
#define csn_autoparent CSN_CLEANUP(csn_parent_release) csn_parent
