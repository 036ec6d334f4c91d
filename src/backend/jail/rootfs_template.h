/* rootfs_template.h: the part of a jail's root that is the same for many: directories, links
 * and small files, ours and copies of the host's.
 *
 * Each of them costs a start of a jail, and there are some sixty, so they are made once, in a
 * directory of caisson's own (rootfs_template_store.c), and jails have that as their root,
 * read-only. Its name is made of all that went into it (rootfs_template.c), so what changes on
 * the host makes another. What must hold: nothing a jail can write to gets into a frame, and
 * nobody reads in it what could not be read on the host. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "os/mount_list.h"

#define CSN_ROOTFS_TEMPLATE_MAX 128u

/* TEXT, LINK and DIR; BIND is a file to be copied. Places are absolute. */
typedef struct csn_rootfs_template {
    csn_arena *arena;
    csn_mount v[CSN_ROOTFS_TEMPLATE_MAX];
    size_t count; /* beyond the end: it cannot be used */
    bool partial; /* something could not be read just now: not to be kept for others */
} csn_rootfs_template;

/* rootfs_template.c. Something to see; and a place to mount something on, which a mount makes
 * itself where there is no frame. */
void csn_rootfs_template_add(csn_rootfs_template *f, uint32_t kind, const char *from,
                             const char *to);
void csn_rootfs_template_spot(csn_rootfs_template *f, const char *to, bool dir);
/* A file of the host could not be read, with that errno. True: as far as this user goes it is
 * not there, and will not be the next time either. */
bool csn_rootfs_template_lacks(int error);

/* rootfs_template_store.c. Makes the directory `key` in the directory `store` out of a list of
 * entries, and removes old ones that nobody uses. It appears complete or not at all. 0, also
 * when somebody else was faster, or -errno. */
int csn_rootfs_template_make(int store, const char *key, const csn_mount *list, size_t count);
/* Opens the one of that name and keeps it from being removed as long as *ret_lock is open.
 * 0 or -errno, -ENOENT: there is none. */
int csn_rootfs_template_hold(int store, const char *key, int *ret_lock);
