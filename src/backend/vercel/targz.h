/* targz.h: one file as a gzip'd tar of known length, produced piece by piece.
 *
 * Blocks are stored, not compressed: so the length is known before the first byte is sent, and
 * no library is needed. The name is relative; what ustar cannot hold goes into a pax record. */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"

#define CSN_TARGZ_BLOCK 65535u

typedef struct csn_targz {
    int fd;        /* the content, read with pread */
    uint64_t size; /* of the content */
    csn_buf head;  /* the tar before the content */
    uint64_t at;   /* in the tar */
    uint32_t crc;
    size_t have, used; /* of block */
    unsigned char block[CSN_TARGZ_BLOCK + 32];
} csn_targz;

/* 0 or errno; release it in any case. fd stays the caller's. */
int csn_targz_init(csn_targz *t, const char *name, uint32_t mode, int fd, uint64_t size);
void csn_targz_release(csn_targz *t);
void csn_targz_rewind(csn_targz *t);
uint64_t csn_targz_length(const csn_targz *t);
/* The next bytes: how many, 0 at the end, -1 when the content cannot be read or is shorter. */
int64_t csn_targz_read(csn_targz *t, void *buf, size_t len);
