/* mount_inside.h: mounts in the mount namespace of another process. */
#pragma once
#include <stddef.h>
#include <sys/types.h>

#include "os/mount_list.h"

/* Mounts entries of kind CSN_MOUNT_MASK and CSN_MOUNT_SELF in the root of process `pid`, which
 * `pidfd` also refers to; nothing on the paths may be a link, except at the end of a mask. The
 * caller owns the process's user namespace or is privileged. Masks are copies of those that the
 * process's root has in /proc. The host's threads, signals and children are not affected.
 * Returns 0 or -errno; *ret_at is the entry that failed. */
int csn_mount_inside(pid_t pid, int pidfd, const csn_mount *list, size_t count, size_t *ret_at);
