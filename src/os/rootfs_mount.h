/* rootfs_mount.h: the entries of the list, one at a time. For os/rootfs.c, which decides who puts
 * what and when. */
#pragma once
#include "os/rootfs.h"

typedef struct csn_mounts_builder {
    csn_mounts_work *w;
    int root;   /* the new one */
    char *path; /* room for one, of w; nobody's stack is to grow for it */
    bool ours;  /* nothing in it is of anybody else's making */
} csn_mounts_builder;

bool csn_mounts_has_frame(const csn_mounts *m);

/* What an entry is made of, while the old root is there: a detached mount, or -errno; -1 for
 * kinds that need none. The kernel wants to see a whole /proc before it lets anybody mount one.
 */
int csn_mounts_open(const csn_mount *m);
/* Where /proc will lie over them: what CSN_MOUNT_MASK is made of. Before anything else. */
int csn_mounts_put_masks(const csn_mounts_builder *b);
/* Entry number i, with what was opened for it. What is optional and not there is left out. */
int csn_mounts_put(csn_mounts_builder *b, size_t i);
