/* compare.h: what differs between two entries of one name. Internal to src/layers. */
#pragma once
#include "layers/changes.h"
#include "layers/entry.h"

typedef struct csn_compared {
    const char *name;
    struct {
        const csn_entry_tree *tree;
        int dir; /* has the name */
        const struct stat *st;
    } a, b;
} csn_compared;

/* A csn_change_kind (MODIFIED, META or TYPE), 0 if they are equal, or -errno. A file that was
 * replaced since, or that may not be read, counts as modified. */
int csn_compare(const csn_compared *c, char buf[CSN_ENTRY_BUFFER]);
