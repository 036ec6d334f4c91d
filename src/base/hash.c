/* hash.c: SHA-256, for the audit chain and to detect changed files.
 *
 * Wraps libmd so that no other file includes its header; the context is opaque storage whose
 * size is checked at compile time. */
#include "base/hash.h"

#include <assert.h>
#include <sha2.h>

static_assert(sizeof(csn_hash) >= sizeof(SHA2_CTX), "csn_hash has room for libmd's context");
static_assert(_Alignof(csn_hash) >= _Alignof(SHA2_CTX), "and is aligned for it");
static_assert(CSN_HASH_HEX == SHA256_DIGEST_STRING_LENGTH, "hex digits and a NUL");

void csn_hash_init(csn_hash *h)
{
    SHA256Init((SHA2_CTX *)h);
}

void csn_hash_add(csn_hash *h, const void *data, size_t len)
{
    if (len > 0)
        SHA256Update((SHA2_CTX *)h, data, len);
}

void csn_hash_hex(csn_hash *h, char ret[CSN_HASH_HEX])
{
    SHA256End((SHA2_CTX *)h, ret);
}

void csn_hash_bytes(const void *data, size_t len, char ret[CSN_HASH_HEX])
{
    csn_hash h;

    csn_hash_init(&h);
    csn_hash_add(&h, data, len);
    csn_hash_hex(&h, ret);
}
