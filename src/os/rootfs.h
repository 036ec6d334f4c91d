/* rootfs.h: a root file system made of pieces of another, for the process that is to live in
 * it.
 *
 * The caller is alone in a mount namespace that it owns (capabilities in the user namespace
 * that made it). What is wanted is a list, carried out in its order; a keeper gets it in its
 * orders. Nothing here needs more than libc: static programs link it. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "os/helper.h"

typedef enum csn_mount_kind {
    CSN_MOUNT_DIR = 1, /* an empty directory */
    CSN_MOUNT_LINK,    /* a symlink with the text `from` */
    CSN_MOUNT_TEXT,    /* a small file with the content `from` */
    CSN_MOUNT_BIND,    /* `from` of the old root, with all that is mounted below it */
    CSN_MOUNT_GIVEN,   /* a detached mount that somebody else made: descriptor number `fd` */
    CSN_MOUNT_SCRATCH, /* a writable directory of our own; all of them share one size limit.
                          RDONLY: when all others are in it */
    CSN_MOUNT_PROC,    /* the processes of this pid namespace */
    CSN_MOUNT_PTS,     /* terminals of our own */
    CSN_MOUNT_QUEUES,  /* the POSIX message queues of this ipc namespace */
    CSN_MOUNT_SELF,    /* what is at `to` already, mounted over itself: nobody can move it */
    CSN_MOUNT_MASK,    /* what is at `to` can be neither read nor written nor moved */
} csn_mount_kind;
#define CSN_MOUNT_KINDS 11u

#define CSN_MOUNT_RDONLY   (1u << 0)
#define CSN_MOUNT_OPTIONAL (1u << 1) /* nothing there (or of the kind): left out */
#define CSN_MOUNT_DEVICES  (1u << 2) /* device nodes work; else they do not */
#define CSN_MOUNT_NOEXEC   (1u << 3)
#define CSN_MOUNT_STICKY   (1u << 4) /* SCRATCH: mode 1777 instead of 0755 */
#define CSN_MOUNT_KEEPER   (1u << 5) /* Landlock: for the keeper, not for its commands */
/* For Landlock, not for the mounts: a rule that is wide enough for all below it, and cheap,
 * while the mounts decide what is there; and the narrow ones it stands for, when they do not.
 */
#define CSN_MOUNT_WIDE   (1u << 6)
#define CSN_MOUNT_NARROW (1u << 7)
/* BIND, GIVEN: nobody can have planted a link in it that would turn a later mount elsewhere. */
#define CSN_MOUNT_TRUSTED (1u << 8)
/* LINK, BIND, AGAIN, MASK: made by either process, after all that are not so marked and in no
 * order. What they lie in is not marked and comes in the list before the first of them, nothing
 * lies in them, nobody else's names are on the way, and no rule of Landlock speaks of them. */
#define CSN_MOUNT_BY_HELPER (1u << 9)
#define CSN_MOUNT_ALL       0x3ffu

typedef struct csn_mount {
    uint32_t kind, flags;
    uint32_t access;  /* CSN_LL_*: what Landlock is to let through there; not used here */
    int32_t fd;       /* GIVEN */
    const char *from; /* or NULL */
    const char *to;   /* absolute, below the new root */
} csn_mount;

/* The first entry may be a BIND or GIVEN at "/": then that is the new root, read-only, and has
 * in it whatever the others are mounted on; else the root is a new tmpfs. */
typedef struct csn_rootfs {
    const csn_mount *list;
    size_t count;
    uint64_t size;   /* bytes of the scratch space; 0: the kernel's default (half the memory) */
    uint64_t inodes; /* likewise */
} csn_rootfs;

#define CSN_MOUNTS_MAX          256u
#define CSN_DEFERRED_RDONLY_MAX 32u /* SCRATCH that is RDONLY */

/* A second process (os/helper.h) takes off the old root, does something else for the caller,
 * makes what is marked for it, and makes the new root read-only when all is in it. */
typedef struct csn_rootfs_work {
    csn_helper beside;
    /* or NULL; it finds what the marked entries lie in; errno is not its own, see
     * os/raw_syscall.h */
    int (*then)(void *arg);
    void *arg;
    /* ---- the rest is not the caller's ---- */
    csn_rootfs m;               /* its list stays where it is until join */
    int source[CSN_MOUNTS_MAX]; /* what is to be mounted, detached, or -errno */
    int root, old;
    int scratch; /* the tmpfs: the root itself, or what lies below /proc */
    int lofts[CSN_DEFERRED_RDONLY_MAX]; /* SCRATCH that is yet to become read-only */
    size_t loft_count;
    int mask_dir, mask_file;    /* nothing to see: mounts that can be copied */
    bool taken[CSN_MOUNTS_MAX]; /* marked ones, by whoever comes to them first */
    size_t at;                  /* which entry of the second process failed */
    int ready, filled; /* steps: the caller has made what the marked ones lie in; all its own */
    int off, off_rc;   /* likewise: the old root has gone, or why not */
    int then_done;     /* and `then` has returned, or will not be called */
    char path[2][4096]; /* of the caller's, of the second process */
} csn_rootfs_work;

/* Builds it and makes it the root; it is complete, and the old one gone, after csn_rootfs_join.
 * 0 or -errno; *ret_at is the entry that failed, or count when it was the root itself. On
 * failure the process can only end. */
int csn_rootfs_enter(const csn_rootfs *m, size_t *ret_at, csn_rootfs_work *work);
/* The kernel makes no user namespace for somebody above whose root another lies. 0, or
 * -errno: it cannot be taken off. */
int csn_rootfs_await_detached(csn_rootfs_work *work);
/* Before anything of anybody else's is run; no privilege is needed for it. 0 or -errno. */
int csn_rootfs_join(csn_rootfs_work *work, size_t *ret_at);
