/* place.c: the hash of a place. */
#include "search/place.h"

#include "base/hash.h"

/* 16 hex digits as a number. */
static uint64_t word(const char *hex)
{
    uint64_t out = 0;

    for (size_t i = 0; i < 16; i++)
        out = out << 4 | (uint64_t)(hex[i] <= '9' ? hex[i] - '0' : hex[i] - 'a' + 10);
    return out;
}

csn_scan_cache_dir csn_place_id(const csn_place *p, const char *name, size_t len)
{
    char hex[CSN_HASH_HEX];
    csn_hash h;

    csn_hash_init(&h);
    csn_hash_add(&h, p, sizeof(*p));
    csn_hash_add(&h, name, len);
    csn_hash_hex(&h, hex);
    return (csn_scan_cache_dir){
        .dev = word(hex), .ino = word(hex + 16), .sec = (int64_t)word(hex + 32)};
}
