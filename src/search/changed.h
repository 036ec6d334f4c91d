/* changed.h: finds files with certain names that were created, changed or moved since a given
 * time. */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <time.h>

#include "base/name_rules.h"
#include "search/scan_cache.h"

typedef struct csn_changed {
    const char *path; /* relative to the root; may be longer than PATH_MAX */
    int dir;          /* its directory; open during the call only */
    const char *name; /* in dir; may be replaced meanwhile: open with O_NOFOLLOW, then fstat */
    const struct stat *st; /* of the entry itself, not of a link's target */
    uint8_t rule;          /* from csn_name_rules_step */
    bool moved;    /* the file did not change, but its directory, or one above it, may have been
                    moved, and was not seen there before; see csn_changed_memory.were */
    bool old;      /* neither changed nor moved, but it refers to other files */
    bool unlisted; /* not a file: a directory that cannot be listed */
} csn_changed;

/* A result other than 0 stops the scan, which returns it. For an unlisted directory,
 * CSN_CHANGED_AGAIN instead means that fn made it listable: the scan opens it again. */
#define CSN_CHANGED_AGAIN 1
typedef int (*csn_changed_fn)(void *ctx, const csn_changed *hit);

typedef struct csn_changed_count {
    uint64_t dirs, entries; /* that were read */
    uint64_t known;         /* directories skipped by the cache */
    uint64_t closed;        /* unchanged directories that can be neither listed nor searched */
    uint64_t mounts;        /* mount points, not entered */
} csn_changed_count;

/* State that the caller keeps between scans of one tree with the same rules; zeroed at
 * first. */
typedef struct csn_changed_memory {
    csn_scan_cache known; /* directories in which a scan found nothing */
    /* Places (search/place.h) of the directories in a state other than 0 and of those with a
     * wanted name: `were` from the last kept scan, `now` from this one. A directory in `were`
     * has not been moved to its place since; its files were seen in the same state. */
    csn_scan_cache were, now;
    /* How long a walk may take if the tree is changed meanwhile; 0: the default. Others take as
     * long as necessary. */
    int64_t patience_ms;
} csn_changed_memory;
/* Call it after a completed scan: `now` becomes `were`. */
void csn_changed_memory_keep(csn_changed_memory *m);
void csn_changed_memory_release(csn_changed_memory *m);

/* Returns the current time for `since`, from the coarse clock that file systems use. A finer
 * clock is ahead of it: a change made after the call could get an older ctime. */
void csn_changed_now(struct timespec *ret);

/* Reports every entry below root_fd (not O_PATH; stays open) that `names` wants and whose ctime
 * is not before `since`. Follows no link and crosses no mount. memory and count may be NULL;
 * memory makes the next scan several times faster. Returns 0, the value of fn, or -errno:
 * -EAGAIN if a directory was moved during a deep scan, or if the tree is changed all the time.
 * After an error the tree must be treated as changed. */
int csn_changed_scan(int root_fd, const csn_name_rules *names, const struct timespec *since,
                     csn_changed_fn fn, void *ctx, csn_changed_memory *memory,
                     csn_changed_count *count);
