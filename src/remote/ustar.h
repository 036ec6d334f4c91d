/* ustar.h: a tar stream with one file or directory, generated piece by piece.
 *
 * Several providers accept uploads as tar archives. The length is known before the first byte
 * is sent, and the content is read from a descriptor. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

typedef struct csn_ustar_member {
    const char *name; /* relative; in a pax record if ustar cannot hold it */
    uint32_t mode;
    uint32_t uid, gid;
    int64_t mtime; /* seconds */
    int fd;        /* the content, read with pread; not owned */
    uint64_t size; /* of the content */
    bool is_dir;   /* without content */
} csn_ustar_member;

typedef struct csn_ustar {
    int fd;
    uint64_t size;
    csn_buf head;    /* the archive before the content */
    uint64_t length; /* of the archive */
    uint64_t pos;
} csn_ustar;

/* 0 or errno. Always release u. */
int csn_ustar_init(csn_ustar *u, const csn_ustar_member *m);
void csn_ustar_release(csn_ustar *u);
/* Reads the next bytes of the archive. Returns their number, 0 at the end, -1 if the content is
 * unreadable or shorter than `size`. */
int64_t csn_ustar_read(csn_ustar *u, void *buf, size_t len);
