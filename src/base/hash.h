/* hash.h: SHA-256 in hex (libmd does the work). */
#pragma once
#include <stddef.h>
#include <stdint.h>

#define CSN_HASH_HEX 65 /* with the NUL */

typedef struct csn_hash {
    uint64_t opaque[26]; /* room for libmd's SHA2_CTX, checked by a static assert */
} csn_hash;

void csn_hash_init(csn_hash *h);
void csn_hash_add(csn_hash *h, const void *data, size_t len);
void csn_hash_hex(csn_hash *h, char ret[CSN_HASH_HEX]);
void csn_hash_bytes(const void *data, size_t len, char ret[CSN_HASH_HEX]);
