/* mount_list.h: the root file system of a jail, described as a list of entries.
 *
 * The library makes the list, the keeper receives it in its spec and mounts the entries in
 * order (keeper/boot/rootfs.c). */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum csn_mount_kind {
    CSN_MOUNT_DIR = 1, /* an empty directory */
    CSN_MOUNT_LINK,    /* a symlink with the text `from` */
    CSN_MOUNT_TEXT,    /* a small file with the content `from` */
    CSN_MOUNT_BIND,    /* `from` of the old root, with all that is mounted below it */
    CSN_MOUNT_GIVEN,   /* a detached mount made by the library: descriptor `fd` */
    CSN_MOUNT_SCRATCH, /* a writable directory; all of them share one size limit. RDONLY takes
                          effect when all entries are mounted */
    CSN_MOUNT_PROC,    /* the processes of this pid namespace. RDONLY does not apply to the
                          keeper, which has a mount of its own */
    CSN_MOUNT_PTS,     /* a new instance of devpts */
    CSN_MOUNT_QUEUES,  /* the POSIX message queues of this ipc namespace */
    CSN_MOUNT_SELF,    /* what is at `to`, mounted over itself, so that it cannot be moved */
    CSN_MOUNT_MASK,    /* what is at `to` can be neither read nor written nor moved. RDONLY: a
                          directory looks empty instead */
    CSN_MOUNT_OVERLAY, /* an overlay of the layers `from` (os/overlay.h) of the tree that is
                          mounted at `to`; it covers the tree */
} csn_mount_kind;
#define CSN_MOUNT_KINDS 12u

#define CSN_MOUNT_RDONLY   (1u << 0)
#define CSN_MOUNT_OPTIONAL (1u << 1) /* skipped when the source or the place is missing */
#define CSN_MOUNT_DEVICES  (1u << 2) /* device nodes work */
#define CSN_MOUNT_NOEXEC   (1u << 3)
#define CSN_MOUNT_STICKY   (1u << 4) /* SCRATCH: mode 1777 instead of 0755 */
#define CSN_MOUNT_KEEPER   (1u << 5) /* Landlock: for the keeper, not for its commands */
/* For Landlock only. WIDE: one rule for a whole tree, used when the mounts decide what the tree
 * contains. NARROW: the rules that WIDE replaces, used when there are no mounts. */
#define CSN_MOUNT_WIDE   (1u << 6)
#define CSN_MOUNT_NARROW (1u << 7)
/* BIND, GIVEN: the tree holds no link that an agent may have planted to redirect a later
 * mount. */
#define CSN_MOUNT_TRUSTED (1u << 8)
/* LINK, BIND, SELF, MASK: the keeper's helper process mounts it, after all unmarked entries
 * that precede the first marked one. The entry it lies in is not marked and precedes the first
 * marked one; no entry lies in it; no untrusted tree is on its path; Landlock has no rule for
 * it. */
#define CSN_MOUNT_BY_HELPER (1u << 9)
/* SELF: a link at `to` is mounted over itself, so that it cannot be replaced */
#define CSN_MOUNT_NOFOLLOW (1u << 10)
#define CSN_MOUNT_ALL      0x7ffu

typedef struct csn_mount {
    uint32_t kind, flags;
    uint32_t access;  /* CSN_LL_*: rights that Landlock grants there; ignored when mounting */
    int32_t fd;       /* GIVEN */
    const char *from; /* or NULL */
    const char *to;   /* absolute, below the new root */
} csn_mount;

/* A BIND or GIVEN at "/" as the first entry is a template: it becomes the new root, read-only,
 * and contains the places for all other entries. Without one the root is a new tmpfs. */
typedef struct csn_rootfs {
    const csn_mount *list;
    size_t count;
    uint64_t size;   /* bytes of the scratch space; 0: the kernel's default (half the memory) */
    uint64_t inodes; /* as size */
} csn_rootfs;

#define CSN_MOUNTS_MAX 256u
