/* userns.h: the user namespaces of a jail. Static programs link this.
 *
 * `proc` is the directory of a proc file system that can be written to. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

/* Enters a new user namespace that owns nothing: even all its capabilities give no power over
 * the jail's mounts and network. The caller's user and group become `uid` and `gid`. Returns 0
 * or -errno. */
int csn_userns_enter_nested(int proc, unsigned uid, unsigned gid);
/* Limits the process numbers of this pid namespace, of which the kernel assigns those below 300
 * only once. Since Linux 6.14; 0 or -errno. */
int csn_userns_limit_pids(int proc, unsigned n);
/* False if uid 0 of this user namespace is certainly not uid 0 of the host. */
bool csn_userns_root_may_be_global(void);
/* Limits the user namespaces below the caller's own to `n`. Does not touch errno
 * (os/raw_syscall.h). Returns 0 or -errno. */
int csn_userns_limit(int proc, unsigned n);
/* Limits inotify use in the caller's namespace to half of the kernel's limit for a user, so
 * that the user's other programs keep the other half. Best effort; does not touch errno. */
void csn_userns_halve_inotify(int proc);
/* Limits the System V objects of the caller's ipc namespace: shared memory to `shm_bytes` (0:
 * unchanged), message queues and semaphores to what their names say. Best effort, before Linux
 * 6.8 the kernel refuses it; does not touch errno. */
void csn_userns_limit_ipc(int proc, uint64_t shm_bytes);
#define CSN_MSG_QUEUES "128"                /* of 16 KiB each */
#define CSN_SEMAPHORES "1000 32000 500 128" /* in a set, together, in one call, sets */
