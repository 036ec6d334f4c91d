/* scan_cache.h: a set of directories in which a scan found nothing.
 *
 * A directory is identified by device, inode and ctime. Adding, removing or renaming an entry
 * changes the ctime, which cannot be set, so the same ctime means the same names. Not
 * thread-safe.
 *
 * Also holds places of directories (place.h); then the members are parts of a hash. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct csn_scan_cache_dir {
    uint64_t dev, ino;
    int64_t sec;
    uint32_t nsec;
    uint32_t used; /* 0: a free slot */
} csn_scan_cache_dir;

typedef struct csn_scan_cache {
    csn_scan_cache_dir *slots;
    size_t count, room; /* room: a power of two, or 0 */
    size_t added;       /* entries added so far, also in place of others */
} csn_scan_cache;

bool csn_scan_cache_has(const csn_scan_cache *b, const csn_scan_cache_dir *d);
/* Does nothing if out of memory: an uncached directory is only read again. */
void csn_scan_cache_add(csn_scan_cache *b, const csn_scan_cache_dir *d);
/* True if both have the same members. */
bool csn_scan_cache_same(const csn_scan_cache *a, const csn_scan_cache *b);
void csn_scan_cache_release(csn_scan_cache *b);
