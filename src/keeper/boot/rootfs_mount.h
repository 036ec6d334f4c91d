/* rootfs_mount.h: mounts one entry of the list. For boot/rootfs.c, which decides the order. */
#pragma once
#include "keeper/boot/rootfs.h"

/* One of the two processes that mount entries. */
typedef struct kp_mounter {
    kp_rootfs *w;
    char *path;   /* memory for one path */
    bool trusted; /* no path in the new root can hold a link planted by an agent */
} kp_mounter;

bool kp_rootfs_has_template(const csn_rootfs *m);

/* The detached mount that an entry needs, opened while the old root is still there; -errno, or
 * -1 for kinds that need none. */
int kp_rootfs_open_source(const csn_mount *m);
/* Makes the two mounts that CSN_MOUNT_MASK copies. Call it before the first kp_rootfs_mount. */
int kp_rootfs_make_masks(const kp_mounter *b);
/* Mounts entry i and closes its source. A missing optional entry is skipped. */
int kp_rootfs_mount(kp_mounter *b, size_t i);
