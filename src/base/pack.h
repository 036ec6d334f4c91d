/* pack.h: numbers and strings of the messages between our own programs, one after another.
 *
 * Used by the wires of keeper and gateway (keeper/proto.h, gateway/proto.h). Numbers are in
 * host order: both ends are on one machine. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/limits.h"

/* Grows from the caller's buffer to the heap; never beyond CSN_KEEPER_BODY_MAX. Errors stick.
 */
typedef struct csn_packer {
    uint8_t *data;
    size_t len, cap;
    int error; /* 0 or errno */
    bool owned;
} csn_packer;

void csn_packer_init(csn_packer *o, void *buf, size_t size);
void csn_packer_release(csn_packer *o);
void csn_put_bytes(csn_packer *o, const void *data, size_t len);
void csn_put_u32(csn_packer *o, uint32_t v);
void csn_put_u64(csn_packer *o, uint64_t v);
void csn_put_i64(csn_packer *o, int64_t v);
/* Length, bytes, NUL: the receiver uses it in place. NULL is kept apart from "". */
void csn_put_str(csn_packer *o, const char *s);

/* Reads never pass `end`; after an error everything reads as zero. Errors stick. */
typedef struct csn_unpacker {
    const uint8_t *p, *end;
    int error;
} csn_unpacker;

void csn_unpacker_init(csn_unpacker *in, const void *data, size_t len);
uint32_t csn_get_u32(csn_unpacker *in);
uint64_t csn_get_u64(csn_unpacker *in);
int64_t csn_get_i64(csn_unpacker *in);
/* Points into the message. NULL when NULL was sent (only if may_be_null) or on error. */
const char *csn_get_str(csn_unpacker *in, size_t max, bool may_be_null);
const uint8_t *csn_get_bytes(csn_unpacker *in, size_t len);
/* 0 when all of it was read and nothing failed. */
int csn_unpacker_end(const csn_unpacker *in);
