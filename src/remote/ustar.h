/* ustar.h: a tar stream with one regular file, generated piece by piece.
 *
 * Uploads of several providers are tar archives. The length is known in advance, the content is
 * read from a descriptor, and no library is needed. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

typedef struct csn_ustar_member {
    const char *name; /* relative; a pax record carries what ustar cannot */
    uint32_t mode;
    uint32_t uid, gid;
    int64_t mtime; /* seconds */
    int fd;        /* the content, read with pread; stays the caller's */
    uint64_t size; /* of the content */
} csn_ustar_member;

typedef struct csn_ustar {
    int fd;
    uint64_t size;
    csn_buf head;    /* the archive before the content */
    uint64_t length; /* of the archive */
    uint64_t pos;
} csn_ustar;

/* 0 or errno; release it in any case. */
int csn_ustar_init(csn_ustar *u, const csn_ustar_member *m);
void csn_ustar_release(csn_ustar *u);
/* The next bytes: their number, 0 at the end, -1 when the content is shorter or unreadable. */
int64_t csn_ustar_read(csn_ustar *u, void *buf, size_t len);
