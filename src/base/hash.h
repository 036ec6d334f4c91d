/* hash.h: SHA-256 (FIPS 180-4), as hex digits. */
#pragma once
#include <stddef.h>
#include <stdint.h>

#define CSN_HASH_HEX   65 /* with the NUL */
#define CSN_HASH_BLOCK 64

typedef struct csn_hash {
    uint32_t state[8];
    uint64_t len; /* bytes added so far; the last len % CSN_HASH_BLOCK of them are in `block` */
    unsigned char block[CSN_HASH_BLOCK];
} csn_hash;

void csn_hash_init(csn_hash *h);
void csn_hash_add(csn_hash *h, const void *data, size_t len);
/* Ends the computation: call csn_hash_init before the next use. */
void csn_hash_hex(csn_hash *h, char ret[CSN_HASH_HEX]);
void csn_hash_bytes(const void *data, size_t len, char ret[CSN_HASH_HEX]);
