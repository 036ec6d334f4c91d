/* store.h: where the layers of copy-on-write workspaces are kept.
 *
 *   <state>/layers/TREE/             one tree for a sandbox and all its forks; 0755, what is in
 *                                    it 0711: the state directory above is private, and a root
 *                                    caller's keeper enters, and lists it, as another user
 *     base/                          empty; the host's directory is mounted on it, in a jail
 *     lock-ID                        locked (flock) while the process of sandbox ID lives; made
 *                                    before all else of the sandbox, and removed after it
 *     originals-ID/                  see originals.h
 *     stacks/ID                      the layers and snapshots of sandbox ID (csn_layer_record)
 *     NAME/fs  NAME/work             one layer: an upper directory of an overlay
 *     NAME/by-ID                     the sandbox that made it
 *     NAME/shared                    exists: another sandbox of the tree uses the layer
 *     new-ID/                        a layer that is being made
 *
 * A layer is written to while it is the first of one stack; below that it is frozen and never
 * changes. A shared layer lives until the last sandbox of the tree has ended; others until no
 * stack or snapshot of their sandbox names them.
 *
 * Functions return 0 or -errno. To change a tree, hold flock on its
 * directory. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <time.h>

#include "base/limits.h"
#include "os/overlay.h"

#define CSN_LAYER_NAMES      (CSN_OVERLAY_MAX * (CSN_OVERLAY_NAME + 1)) /* with the NUL */
#define CSN_SNAPSHOT_NAME    64u
#define CSN_SNAPSHOTS_MAX    1000u
#define CSN_LAYERS_FLATTEN   24u    /* a stack of more is merged */
#define CSN_LAYER_UNFINISHED "new-" /* and the id of a sandbox: a layer that is being made */

typedef struct csn_layer_snapshot {
    char name[CSN_SNAPSHOT_NAME + 1];
    char names[CSN_LAYER_NAMES]; /* its layers, all frozen */
    int64_t created_ms;
    bool copied, automatic;
} csn_layer_snapshot;

typedef struct csn_layer_record {
    char names[CSN_LAYER_NAMES]; /* the newest first, separated by spaces */
    struct timespec since;       /* when the base was taken */
    bool copy;      /* no overlay: the first layer is a copy of the whole workspace */
    bool switching; /* the mount may still be that of the stack before */
    csn_layer_snapshot *snapshots; /* malloc'd, the oldest first */
    size_t snapshot_count;
} csn_layer_record;

int csn_layer_record_read(int tree, const char *id, csn_layer_record *ret);
/* Replaces the record atomically. */
int csn_layer_record_write(int tree, const char *id, const csn_layer_record *r);
/* Sets `switching` of the record to false: one byte, without replacing it. */
int csn_layer_record_settle(int tree, const char *id);
void csn_layer_record_release(csn_layer_record *r);
/* NULL: there is none of that name. */
csn_layer_snapshot *csn_layer_find(const csn_layer_record *r, const char *name);
/* Letters, digits, `.`, `_` and `-`, not first a `.` or `-`; at most CSN_SNAPSHOT_NAME. */
bool csn_snapshot_name_is_valid(const char *name);

/* Prepares a new, empty directory of a tree. */
int csn_layer_tree_init(int tree);
/* Makes a layer of sandbox `id` whose root has the owner, mode and time of `like`. */
int csn_layer_create(int tree, const char *id, const struct stat *like,
                     char ret_name[CSN_OVERLAY_NAME + 1]);
/* Makes the layer `to` a whole copy of a directory: nothing of the base shows through. */
int csn_layer_copy(int from, int to);
/* The directory `fs` of the layer at `index` of names: a descriptor or -errno (-ENOENT: there
 * are fewer). */
int csn_layer_open_fs(int tree, const char *names, size_t index);
void csn_layer_names_copy(char to[CSN_LAYER_NAMES], const char *names); /* no overlap */
size_t csn_layer_count(const char *names);
/* Puts a layer on top. -ENOSPC: too many. */
int csn_layer_push(char names[CSN_LAYER_NAMES], const char *name);
/* True if nothing was written to the layer. */
bool csn_layer_is_empty(int tree, const char *names, size_t index);
/* Marks layers as used by other sandboxes, too. */
int csn_layer_share(int tree, const char *names);
/* Removes the layers of `old` that are not shared and that the record no longer names. */
void csn_layer_drop(int tree, const char *old, const csn_layer_record *r);
/* Opens originals-ID, which is made if it is missing: a descriptor or -errno. */
int csn_layer_originals(int tree, const char *id);
/* The sandbox that made a layer; -ENOENT: unknown. */
int csn_layer_owner(int tree, const char *names, char ret_id[CSN_NAME_BYTES_MAX + 1]);
/* Locks lock-ID for as long as the descriptor is open; -EWOULDBLOCK: another process has it. */
int csn_layer_lock(int tree, const char *id);

/* release.c, which the sweeper links. Ends the part of sandbox `id`: removes its record and
 * unshared layers, and the whole tree after the last sandbox. path: of the tree. A missing tree
 * is not an error. */
void csn_layer_tree_release(const char *path, const char *id);
