/* guard.h: the process that decides about attributes of files (os/owner_guard.h). */
#pragma once
#include "os/mount_list.h"

/* Forks the process, which may then change attributes below the entries of the list that
 * commands can write. Returns the descriptor for kp_guard_finish, or -errno. Call it before
 * the keeper's own seccomp filter. */
int kp_guard_begin(const csn_rootfs *m);
/* Installs the filter for the keeper and its commands. 0 or -errno. */
int kp_guard_finish(int link);
