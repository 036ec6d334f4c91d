/* usage.h: measures how much space a tree takes, in small steps.
 *
 * The caller is the keeper, which must not stop for the time that a large tree takes: each step
 * looks at a limited number of entries. Processes change the tree meanwhile; what moves during
 * a walk may be counted twice or not at all. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CSN_USAGE_DEPTH                                                                        \
    512u /* directories that a walk holds open; what is deeper is left out */

typedef struct csn_usage {
    uint64_t bytes;
    uint64_t files; /* of any type; a mark that a file of the base is removed is none */
    bool too_deep;  /* something was left out */
} csn_usage;

typedef struct csn_usage_walk {
    csn_usage sum;
    const char *mark; /* the first directory is a tree of layers (store.h): only those with a
                         file of this name count; NULL: all of the directory */
    size_t depth;     /* 0: the walk is at its end */
    int fds[CSN_USAGE_DEPTH];
} csn_usage_walk;

/* dir: of any kind, also O_PATH; stays the caller's. 0 or -errno. */
int csn_usage_begin(csn_usage_walk *w, int dir, const char *mark);
/* Looks at about `entries` more. 1: there are more, 0: w->sum is complete. */
int csn_usage_step(csn_usage_walk *w, size_t entries);
void csn_usage_end(csn_usage_walk *w); /* also in the middle */
/* A whole walk. 0 or -errno. */
int csn_usage_measure(int dir, csn_usage *ret);
