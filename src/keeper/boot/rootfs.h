/* rootfs.h: builds the root file system of a jail and enters it.
 *
 * The keeper is the only process of a mount namespace that it owns. A helper process detaches
 * the old root, calls on_proc, mounts the entries marked CSN_MOUNT_BY_HELPER and makes the new
 * root read-only when everything is mounted. */
#pragma once
#include "keeper/boot/helper.h"
#include "os/mount_list.h"

#define KP_DEFERRED_RDONLY_MAX 32u /* SCRATCH that is RDONLY */

typedef struct kp_rootfs {
    /* NULL, or called by the helper when /proc is mounted and nothing in it is covered yet. It
     * returns 0 or -errno and leaves errno alone. */
    int (*on_proc)(void *arg);
    void *arg;
    /* Set when a CSN_MOUNT_PROC is mounted: another mount of the same file system, attached
     * nowhere, that can be written to. The caller closes it. */
    int proc;
    /* -1, or set when a CSN_MOUNT_OVERLAY is mounted: O_PATH of the tree that it covers. The
     * caller closes it. */
    int layers;
    /* ---- private to boot/rootfs*.c ---- */
    kp_helper helper;
    csn_rootfs m;               /* its list stays valid until kp_rootfs_join */
    int source[CSN_MOUNTS_MAX]; /* detached mounts, opened before the old root is detached; or
                                   -errno */
    int root, old;
    int scratch; /* the tmpfs: the root itself, or hidden under /proc of a template */
    int deferred_rdonly[KP_DEFERRED_RDONLY_MAX]; /* read-only when all entries are mounted */
    size_t deferred_count;
    int mask_dir, mask_file; /* mounts that CSN_MOUNT_MASK copies */
    int mask_empty;          /* the same with RDONLY; -1: no entry needs it */
    size_t failed_at;        /* entry of the helper that failed */
    int ready;               /* step: everything that marked entries lie in is mounted */
    int filled;              /* step: all unmarked entries are mounted */
    int detached, detach_rc; /* step: the old root is detached; the result of that */
    int proc_done;           /* step: on_proc has returned, or will not be called */
    char path[2][4096];      /* of the keeper, of the helper */
} kp_rootfs;

/* Mounts the entries and makes the new tree the root. The tree is complete, and the old root
 * gone, after kp_rootfs_join. 0 or -errno; *ret_at is the entry that failed, or m->count when
 * it was the root itself. After a failure the process must exit. */
int kp_rootfs_enter(const csn_rootfs *m, kp_rootfs *w, size_t *ret_at);
/* Waits until the old root is detached: before that the kernel refuses to create a user
 * namespace. 0 or -errno. */
int kp_rootfs_await_detached(kp_rootfs *w);
/* Waits for the helper. Needs no privilege; call it before the first command. 0 or -errno. */
int kp_rootfs_join(kp_rootfs *w, size_t *ret_at);
