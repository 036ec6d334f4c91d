/* replica.h: makes copies of single entries of a layer or workspace. Internal to src/layers.
 *
 * Sources are hostile (see entry.h); the directories that are written to belong to the caller
 * alone. Functions return 0 or -errno. */
#pragma once
#include "layers/copy_tree.h"
#include "layers/entry.h"
#include "os/atomic.h"

typedef struct csn_replica_link {
    uint64_t dev, ino;
    uint32_t number; /* of the first copy, in the directory `anchors`; 0: the slot is free */
} csn_replica_link;

/* The state of one copy. Begin with csn_replica_init. */
typedef struct csn_replica {
    int root;   /* of the copy */
    bool layer; /* all entries, set-id bits and user.overlay.*; see CSN_COPY_LAYER */
    bool share; /* hard links to the source's regular files, where that is possible */
    bool no_clone, no_share; /* the file systems cannot */
    bool is_root;
    csn_tree_copied done;
    char *buf; /* CSN_ENTRY_BUFFER */
    /* First copies of files with several names, in a directory of the copy that
     * csn_replica_end_links removes: no path to them must be remembered. */
    int anchors; /* or -1 */
    char anchors_name[CSN_TEMP_SIZE];
    csn_replica_link *links; /* hash table */
    size_t links_count, links_room;
} csn_replica;

int csn_replica_init(csn_replica *r, int root, unsigned flags);
/* All files are copied: removes `anchors`. Before the root gets its time. */
int csn_replica_end_links(csn_replica *r);
void csn_replica_release(csn_replica *r);

/* Copies `name` of the directory `dir`, which is no directory itself. What may not be copied is
 * left out and counted. -ENOENT and the like: it vanished. */
int csn_replica_entry(csn_replica *r, const csn_entry_tree *t, int dir, const char *name,
                      int to);
/* Gives the directory `to` the attributes of a source. fd: open for reading, or -1 if only *st
 * is left of it. opaque: in a layer, what is below it is hidden. verbatim: that is copied from
 * the source. */
int csn_replica_dir(csn_replica *r, const csn_entry_tree *t, int fd, const struct stat *st,
                    int to, bool verbatim, bool opaque);
/* Did the entry vanish, or was it replaced by another type? */
bool csn_replica_is_gone(int error);
