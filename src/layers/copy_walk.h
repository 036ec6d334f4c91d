/* copy_walk.h: walks one tree, or several layers at once, and makes a copy. Internal to
 * src/layers. */
#pragma once
#include "layers/changes.h"
#include "layers/replica.h"

typedef struct csn_copy_walk {
    csn_entry_tree tree[CSN_LAYERS_MAX]; /* the newest first */
    size_t count;
    /* One layer, copied as it is. Else layers are merged: an entry of a newer one hides those
     * of the older ones, and whiteouts stay where the base shows through. */
    bool verbatim;
    /* Merging: the directory below the layers, or -1. Only its directories are looked for: in
     * one that only layers have, a whiteout would be listed as a name without a file. */
    int base;
} csn_copy_walk;

/* Copies all into r->root, which is empty. 0 or -errno. */
int csn_copy_walk_run(const csn_copy_walk *w, csn_replica *r);
