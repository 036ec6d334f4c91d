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

/* Watches `dir`, which may be O_PATH and is duplicated. Returns 0 or -errno. */
int csn_notify_new(int dir, bool recursive, csn_notify **ret);
void csn_notify_free(csn_notify *n);
/* Returns 1 with *ret filled, 0 when the deadline (CLOCK_MONOTONIC, 0: none) has passed, or
 * -errno. */
int csn_notify_next(csn_notify *n, uint64_t deadline_ns, csn_notify_event *ret);
