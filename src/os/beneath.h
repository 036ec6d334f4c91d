/* beneath.h: opens a path that cannot leave a directory, whatever is renamed meanwhile.
 *
 * openat2 resolves the path; where it is missing, a walk on open descriptors gives the same
 * results. Static programs link this. */
#pragma once
#include <stdbool.h>

#define CSN_BENEATH_NOFOLLOW (1u << 0) /* any symlink on the way: -ELOOP */
#define CSN_BENEATH_ROOTED   (1u << 1) /* `/` and `..` stop at the root instead of -EXDEV */

/* Opens `path` below the directory `root`. flags are those of open(2) without O_CREAT;
 * O_CLOEXEC, O_NOCTTY and O_NONBLOCK are added; O_PATH | O_NOFOLLOW opens a final symlink
 * itself. Returns a descriptor, or -errno. -EXDEV: the path or a symlink on it leads out of
 * root. -ELOOP: too many symlinks, a magic link of /proc, or any link with NOFOLLOW. -EBUSY:
 * every attempt raced with a rename. */
int csn_beneath_open(int root, const char *path, int flags, unsigned how);

/* For tests: walk although the kernel has openat2. */
void csn_beneath_force_walk(bool on);
