/* watch.h: reports changes in a directory, and below it, from inotify.
 *
 * Paths are relative to the directory. New directories are watched as well, and entries created
 * in them before that are reported too. Memory is bounded: beyond a number of directories the
 * watch reports one overflow and continues with those it has. Temporary files of atomic writes
 * (os/atomic.h) are not reported. One thread at a time. */
#pragma once
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct csn_notify csn_notify;

#define CSN_NOTIFY_CREATE   1u
#define CSN_NOTIFY_MODIFY   2u
#define CSN_NOTIFY_DELETE   3u
#define CSN_NOTIFY_RENAME   4u /* moved to this path */
#define CSN_NOTIFY_OVERFLOW 5u

typedef struct csn_notify_event {
    uint32_t kind;
    bool is_dir;
    char path[PATH_MAX];
} csn_notify_event;

/* Watches `dir`, which may be O_PATH and is duplicated. Returns 0 or -errno; -EUSERS: the user
 * has no inotify instance left. */
int csn_notify_new(int dir, bool recursive, csn_notify **ret);
void csn_notify_free(csn_notify *n);
/* What ends a wait for the next event. */
typedef struct csn_notify_wait {
    uint64_t deadline_ns; /* CLOCK_MONOTONIC; 0: none */
    int end_fd;           /* readable: no event after this moment is of interest; -1: none */
    int stop_fd;          /* readable: return at once; -1: none */
} csn_notify_wait;

/* Returns 1 with *ret filled, 0 when the deadline has passed, or -errno. -ECANCELED: stop_fd is
 * readable. -ESHUTDOWN: end_fd is readable, and every event before it was returned. -ENOENT:
 * the directory was removed, and every event before that was returned; a directory that was
 * moved is still watched. */
int csn_notify_next(csn_notify *n, const csn_notify_wait *wait, csn_notify_event *ret);
