/* mount.h: the kernel's calls on detached mounts.
 *
 * Flags are CSN_MOUNT_RDONLY, _DEVICES and _NOEXEC of os/mount_list.h. A descriptor holds a
 * mount that is attached nowhere until csn_mount_attach; closing it before that ends the mount.
 * All return a descriptor or 0, or -errno. The keeper links this file. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

/* Copies the mount at a path, or the mount of `at` itself (path ""). */
int csn_mount_clone(int at, const char *path, bool recursive);
/* Creates a file system. options: name, value, name, value, NULL. */
int csn_mount_new_fs(const char *type, const char *const *options, uint32_t flags);
/* Sets flags and private propagation: later mounts of the host do not appear in it. */
int csn_mount_set(int mount, uint32_t flags, bool recursive);
int csn_mount_attach(int mount, int at, const char *path);

/* Copies the tree at `path`, id-mapped by a user namespace (-1: not mapped): owner n on disk
 * appears as the user that has number n in that namespace. Needs privilege. -EINVAL: the file
 * system does not support id-mapped mounts. */
int csn_mount_detached(const char *path, int userns, uint32_t flags);
