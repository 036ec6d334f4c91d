/* tree_files.h: the regular files of a tree, in the order of their paths (by bytes), a batch at
 * a time. Links are not followed. */
#pragma once
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "search/ignore.h"

#define CSN_BATCH_FILES 64u
#define CSN_BATCH_DIRS  8u

/* An open directory, as long as a level of the walk or a file of a batch uses it. */
typedef struct csn_held_dir {
    int fd;
    atomic_uint users;
} csn_held_dir;

typedef struct csn_batch_file {
    csn_held_dir *dir;
    size_t path, name; /* offsets in `names`: below the start, and in `dir` */
} csn_batch_file;

typedef struct csn_batch {
    csn_batch_file files[CSN_BATCH_FILES];
    size_t count;
    csn_buf names;
} csn_batch;

/* Which files: each may be NULL. Paths are relative to the start. */
typedef struct csn_tree_filter {
    bool (*file)(void *ctx, const char *path);
    bool (*dir)(void *ctx, const char *path); /* false: do not enter */
    void *ctx;
    csn_ignore *ignore; /* honours .gitignore files, in addition to the rules that it has */
    bool (*may_read)(void *ctx, const char *path); /* such a file */
} csn_tree_filter;

typedef struct csn_tree_files csn_tree_files;

/* `dir` is a directory open for reading and stays the caller's. NULL: out of memory. */
csn_tree_files *csn_tree_files_new(int dir, const csn_tree_filter *filter);
void csn_tree_files_free(csn_tree_files *t);
/* Fills the batch, which must be empty. 1: it has files; 0: the tree has ended; or -errno.
 * Entries that vanish or may not be opened are left out. One thread at a time. */
int csn_tree_files_next(csn_tree_files *t, csn_batch *b);

void csn_batch_init(csn_batch *b);
void csn_batch_clear(csn_batch *b); /* releases the directories; any thread */
void csn_batch_release(csn_batch *b);
