/* owner_guard.h: keeps commands that run as root from changing attributes of root's files.
 *
 * Landlock does not mediate chmod, chown, utimes, xattrs and file flags. Their only condition
 * is that the caller owns the file, which uid 0 does for most files of a system, without any
 * capability. In a jail without namespaces these calls are decided by a second process, which
 * makes them itself, on files below the directories that commands may write. */
#pragma once
#include <stddef.h>

/* Installs the filter for the calling thread and its children, for good; no_new_privs must be
 * set. Returns the listener, close-on-exec, or -errno. Calls of other ABIs than the native one
 * answer ENOSYS; xattrs and file flags cannot be changed at all. */
int csn_owner_guard_install(void);

/* Serves the listener until no process has the filter. roots: absolute paths without links,
 * below which attributes may be changed. 0 or -errno. */
int csn_owner_guard_serve(int listener, const char *const *roots, size_t count);
