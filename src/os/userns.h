/* userns.h: the user a jail's commands are. Raw system calls: static programs link it. */
#pragma once

/* From a namespace that owns the jail's mounts, network and processes into one below it that
 * owns nothing: even with all capabilities of the new one nobody can undo what was built. The
 * caller's one user and group become `uid` and `gid` there. /proc must be mounted. 0 or -errno.
 */
int csn_userns_descend(unsigned uid, unsigned gid);
/* At most `n` user namespaces may exist below the calling process's own. Leaves errno alone
 * (os/raw_syscall.h). 0 or -errno. */
int csn_userns_limit(unsigned n);
/* Whoever is in the calling process's namespace, or below it, gets at most half of what the
 * kernel lets a user have of inotify: the user outside has the other half. Best effort, and
 * leaves errno alone. */
void csn_userns_halve_inotify(void);
