/* targz.h: a gzipped tar with one file, generated piece by piece.
 *
 * The deflate blocks are stored, not compressed: the length is known before the first byte is
 * sent, and no library is needed. */
#pragma once
#include "remote/ustar.h"

#define CSN_TARGZ_BLOCK 65535u /* of a stored deflate block, at most */

typedef struct csn_targz {
    csn_ustar tar;
    uint32_t crc;
    size_t have, used; /* of block */
    unsigned char block[CSN_TARGZ_BLOCK + 32];
} csn_targz;

/* 0 or errno. Always release t. */
int csn_targz_init(csn_targz *t, const csn_ustar_member *m);
void csn_targz_release(csn_targz *t);
void csn_targz_rewind(csn_targz *t);
uint64_t csn_targz_length(const csn_targz *t);
/* As csn_ustar_read. */
int64_t csn_targz_read(csn_targz *t, void *buf, size_t len);
