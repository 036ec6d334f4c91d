/* beneath.h: opening a path that can not leave a directory, whoever races with it.
 *
 * The kernel resolves (openat2); where it can not, a walk by components on held descriptors
 * does the same with the same answers. Nothing here needs more than libc: static programs link
 * it. */
#pragma once
#include <stdbool.h>

#define CSN_BENEATH_NOFOLLOW (1u << 0) /* any symlink on the way: -ELOOP */
#define CSN_BENEATH_ROOTED   (1u << 1) /* `/` and `..` stop at the root instead of -EXDEV */

/* Opens `path` below the directory `root`. flags are those of open(2) without O_CREAT;
 * O_CLOEXEC, O_NOCTTY and O_NONBLOCK are added. Returns a descriptor, or -errno: -EXDEV  the
 * path, or a symlink on it, leads out -ELOOP  too many symlinks, a magic link of /proc, or any
 * link with NOFOLLOW -EBUSY  something was renamed under it again and again With O_PATH |
 * O_NOFOLLOW a symlink at the end is opened itself. */
int csn_beneath_open(int root, const char *path, int flags, unsigned how);

/* For tests: use the walk although the kernel has openat2. */
void csn_beneath_force_walk(bool on);
