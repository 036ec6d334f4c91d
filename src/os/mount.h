/* mount.h: one mount: made, set, put somewhere.
 *
 * Flags are CSN_MOUNT_RDONLY, _DEVICES and _NOEXEC of os/rootfs.h. A descriptor stands for a
 * mount that is attached nowhere until it is put somewhere, and ends with it if it never is.
 * All return a descriptor or 0, or -errno. Static programs link it. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

/* A copy of what is mounted at a path, or of a descriptor's own mount (""). */
int csn_mount_clone(int at, const char *path, bool recursive);
/* A new file system. options: name, value, name, value, NULL. */
int csn_mount_new_fs(const char *type, const char *const *options, uint32_t flags);
/* And private: what the host mounts or unmounts later changes nothing in it. */
int csn_mount_set(int mount, uint32_t flags, bool recursive);
int csn_mount_attach(int mount, int at, const char *path);

/* A copy of the tree at `path` of the caller's own mount namespace, in which whoever has number
 * n on disk is whoever has number n in the user namespace (-1: in none, owners stay as they
 * are); everybody else is nobody. For privileged callers. -EINVAL: the file system cannot. */
int csn_mount_detached(const char *path, int userns, uint32_t flags);
