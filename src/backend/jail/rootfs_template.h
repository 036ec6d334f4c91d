/* rootfs_template.h: stores the directories, links and small files that many jails' roots
 * share.
 *
 * A root has about sixty such entries, and creating them would slow down each start. They are
 * created once in the state directory (rootfs_template_store.c), and jails mount the result
 * read-only as their root. The name of a template is a hash of all entries and of the identity
 * of copied files, so a change on the host results in a new template.
 *
 * Invariants: a jail cannot write to a template; a template has no file that its user could not
 * read on the host. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "os/mount_list.h"

#define CSN_ROOTFS_TEMPLATE_MAX 192u

/* Entries are TEXT, LINK, DIR, or BIND for a file to copy. Paths are absolute. */
struct csn_etc;
typedef struct csn_rootfs_template {
    csn_arena *arena;
    const struct csn_etc *etc; /* what the host's /etc has, see etc_files.h */
    csn_mount v[CSN_ROOTFS_TEMPLATE_MAX];
    size_t count; /* above the maximum: not usable */
    bool partial; /* a file could not be read, possibly temporarily: do not store */
} csn_rootfs_template;

/* rootfs_template.c. add: adds an entry. mountpoint: adds a mount point, which only a template
 * needs: without one, the mount creates it. */
void csn_rootfs_template_add(csn_rootfs_template *t, uint32_t kind, const char *from,
                             const char *to);
void csn_rootfs_template_mountpoint(csn_rootfs_template *t, const char *to, bool dir);
/* True for an errno that means that the file does not exist for this user. Others may be
 * temporary. */
bool csn_rootfs_template_is_absent(int error);

/* rootfs_template_store.c. Creates the directory `key` in `store` atomically from a list of
 * entries, and removes old unused ones. 0, also if it exists by now, or -errno. */
int csn_rootfs_template_make(int store, const char *key, const csn_mount *list, size_t count);
/* Locks the template `key` against removal until *ret_lock is closed. 0 or -errno; -ENOENT: it
 * does not exist. */
int csn_rootfs_template_hold(int store, const char *key, int *ret_lock);
