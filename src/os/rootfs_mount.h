/* rootfs_mount.h: the entries of the list, one at a time. For os/rootfs.c, which decides who
 * puts what and when. */
#pragma once
#include "os/rootfs.h"

typedef struct csn_rootfs_builder {
    csn_rootfs_work *w;
    int root;   /* the new one */
    char *path; /* room for one, of w; nobody's stack is to grow for it */
    bool ours;  /* nothing in it is of anybody else's making */
} csn_rootfs_builder;

bool csn_rootfs_has_template(const csn_rootfs *m);

/* What an entry is made of, while the old root is there: a detached mount, or -errno; -1 for
 * kinds that need none. The kernel wants to see a whole /proc before it lets anybody mount one.
 */
int csn_rootfs_open_sources(const csn_mount *m);
/* Where /proc will lie over them: what CSN_MOUNT_MASK is made of. Before anything else. */
int csn_rootfs_mount_masks(const csn_rootfs_builder *b);
/* Entry number i, with what was opened for it. What is optional and not there is left out. */
int csn_rootfs_mount(csn_rootfs_builder *b, size_t i);
