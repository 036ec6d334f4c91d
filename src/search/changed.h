/* changed.h: which files with certain names were created, changed or moved since a moment? */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <time.h>

#include "base/name_rules.h"
#include "search/scan_cache.h"

typedef struct csn_changed {
    const char *path;      /* from the root; may be longer than PATH_MAX */
    int dir;               /* the directory it is in: held during the call only */
    const char *name;      /* in dir; may have been replaced meanwhile: O_NOFOLLOW, fstat */
    const struct stat *st; /* of the entry itself, never of what a link points to */
    uint8_t rule;          /* what the names said */
    bool moved;            /* it did not change itself, but it may have come with a directory
                            * that was renamed to what gives it its meaning; see were */
    bool unlisted;         /* not a hit: a directory that cannot be listed */
} csn_changed;

/* Non-zero stops the scan, which returns it; but for an unlisted directory this one says that
 * it can be listed now. */
#define CSN_CHANGED_AGAIN 1
typedef int (*csn_changed_fn)(void *ctx, const csn_changed *hit);

typedef struct csn_changed_count {
    uint64_t dirs, entries; /* that were read */
    uint64_t known;         /* directories that were not read, by what is remembered */
    uint64_t closed;        /* such directories, unchanged, that cannot be entered either */
    uint64_t mounts;        /* file systems mounted below: not looked into */
} csn_changed_count;

/* What scans of one tree with the same names remember. All of it zero at first. */
typedef struct csn_changed_memory {
    csn_scan_cache known; /* directories that need not be read again */
    /* Directories whose names mean something, and what they were called: those that an earlier
     * scan found were not moved there since. In: of that scan. Out: of this one. */
    csn_scan_cache were, now;
} csn_changed_memory;
/* The scan was the last one: `now` becomes `were`. */
void csn_changed_memory_keep(csn_changed_memory *m);
void csn_changed_memory_release(csn_changed_memory *m);

/* A moment for `since`, from the clock that file systems stamp with: a finer one is ahead of
 * it, and what changes right after would look older. */
void csn_changed_now(struct timespec *ret);

/* Everything below root_fd (not O_PATH; stays the caller's) that `names` wants and whose ctime
 * is not before `since`. No link is followed, no mount is crossed.
 * memory may be NULL; it makes the next scan several times faster. count may be NULL.
 * 0, what fn returned, or -errno: -EAGAIN a directory was moved away under a deep scan,
 * -E2BIG too many directories wait at once, -ENOMEM, -EMFILE, -ENFILE ... After an error the
 * tree is not known to be clean. */
int csn_changed_scan(int root_fd, const csn_name_rules *names, const struct timespec *since,
                     csn_changed_fn fn, void *ctx, csn_changed_memory *memory,
                     csn_changed_count *count);
