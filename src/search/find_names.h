/* find_names.h: finds entries of a tree by name.
 *
 * A cache holds, for each directory that was read, the names in it that matter: an unchanged
 * directory (same device, inode and ctime) costs one statx. The cache is one block of bytes, so
 * that it can be stored in a file. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

typedef struct csn_find_cache {
    csn_buf bytes;   /* one record per directory */
    uint32_t *index; /* offset + 1 of a record, by the hash of its path; 0: free */
    size_t room;     /* a power of two, or 0 */
    size_t count;
} csn_find_cache;

void csn_find_cache_init(csn_find_cache *c);
void csn_find_cache_release(csn_find_cache *c);
/* Takes the bytes of an earlier cache. False: they are not valid; the cache is empty then. */
bool csn_find_cache_load(csn_find_cache *c, const void *data, size_t len);

#define CSN_FIND_SKIP 1 /* do not enter this directory */

typedef struct csn_find {
    int root; /* the directory; may be O_PATH */
    void *ctx;
    csn_find_cache *cache; /* or NULL: every directory is read */
    /* Both depend on nothing but the path, which is relative to the root. */
    bool (*wanted)(void *ctx, const char *path);
    bool (*enters)(void *ctx, const char *path);
    /* Called for each wanted entry. CSN_FIND_SKIP, 0, or -errno, which stops the search. */
    int (*found)(void *ctx, const char *path);
    /* Called for a directory that cannot be read; error: -errno. 0: leave it out. */
    int (*unreadable)(void *ctx, const char *path, int error);
    uint64_t dirs_read; /* counts */
    uint64_t dirs_known;
} csn_find;

/* Follows no link and crosses mounts. Entries that vanish meanwhile are left out. 0 or -errno:
 * the search is incomplete. */
int csn_find_names(csn_find *f);
