/* overlay.h: the kernel's overlay file system over a tree of layers.
 *
 * A tree is a directory with one directory per layer, LAYER/fs and LAYER/work, and `base`, on
 * which the lowest directory is mounted. All paths are given to the kernel relative to the
 * tree, so the tree may be hidden by other mounts and needs no /proc. The mount keeps its
 * attributes in user.overlay.*, and does not sync: layers do not outlive the machine's boot. */
#pragma once
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "os/mount_list.h"

#define CSN_OVERLAY_BASE "base"
#define CSN_OVERLAY_NAME 4u   /* characters of the name of a layer */
#define CSN_OVERLAY_MAX  30u  /* layers; their paths fit into CSN_OVERLAY_TEXT */
#define CSN_OVERLAY_TEXT 256u /* what the kernel takes as the value of an option */

/* The values of the mount options. */
typedef struct csn_overlay {
    char lower[CSN_OVERLAY_TEXT], upper[CSN_OVERLAY_NAME + 8], work[CSN_OVERLAY_NAME + 8];
} csn_overlay;

/* names: the layers, the newest first, separated by spaces. The first is written to. 0, or
 * -EINVAL for names with other characters than letters and digits, or too many. */
int csn_overlay_describe(const char *names, csn_overlay *ret);
/* Makes the mount, attached nowhere; the process works in the directory `tree` afterwards.
 * Needs CAP_SYS_ADMIN in the user namespace of the mount namespace, in which the tree and base
 * must be mounted. A descriptor or -errno. Leaves errno alone. */
int csn_overlay_new(int tree, const csn_overlay *o);

/* Replaces the overlay at a place in the root of another process by one of other layers. */
typedef struct csn_overlay_switch {
    pid_t pid;
    int pidfd; /* of the same process */
    int tree;
    const char *names;
    const char *place;      /* absolute, without links */
    const csn_mount *cover; /* MASK and SELF to mount in it again; those whose path is missing
                               are skipped */
    size_t cover_count;
    uint32_t uid, gid; /* for a root caller: the owner of layers, in the process's first user
                          namespace */
} csn_overlay_switch;

/* Processes that have files or their working directory in the old mount keep it. On Linux 6.5
 * and later the change is atomic for other processes. 0 or -errno; after a failure the old
 * overlay is in place, or none (*ret_lost is 1). */
int csn_overlay_replace(const csn_overlay_switch *s, int *ret_lost);
