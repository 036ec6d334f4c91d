/* hash.c: SHA-256 as FIPS 180-4 defines it, for the audit chain and for if_hash.
 *
 * It protects against unnoticed change, not against guessing: there is no key, so constant
 * time is not required. */
#include "base/hash.h"

#include <endian.h>
#include <string.h>

static const uint32_t round_constants[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4,
    0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe,
    0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f,
    0x4a7484aa, 0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7,
    0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc,
    0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b,
    0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116,
    0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7,
    0xc67178f2};

static uint32_t rotate_right(uint32_t x, unsigned n)
{
    return x >> n | x << (32 - n);
}

/* W of section 6.2.2: the block's 16 words, extended to 64. */
static void expand(const unsigned char *block, uint32_t w[64])
{
    for (size_t i = 0; i < 16; i++) {
        uint32_t word;
        memcpy(&word, block + 4 * i, sizeof(word));
        w[i] = be32toh(word);
    }
    for (size_t i = 16; i < 64; i++) {
        uint32_t a = w[i - 15], b = w[i - 2];
        w[i] = w[i - 16] + (rotate_right(a, 7) ^ rotate_right(a, 18) ^ a >> 3) + w[i - 7] +
               (rotate_right(b, 17) ^ rotate_right(b, 19) ^ b >> 10);
    }
}

static void compress(uint32_t state[8], const unsigned char *block)
{
    uint32_t w[64];
    uint32_t a = state[0], b = state[1], c = state[2], d = state[3];
    uint32_t e = state[4], f = state[5], g = state[6], h = state[7];

    expand(block, w);
    for (size_t i = 0; i < 64; i++) {
        uint32_t t1 = h + (rotate_right(e, 6) ^ rotate_right(e, 11) ^ rotate_right(e, 25)) +
                      ((e & f) ^ (~e & g)) + round_constants[i] + w[i];
        uint32_t t2 = (rotate_right(a, 2) ^ rotate_right(a, 13) ^ rotate_right(a, 22)) +
                      ((a & b) ^ (a & c) ^ (b & c));
        h = g;
        g = f;
        f = e;
        e = d + t1;
        d = c;
        c = b;
        b = a;
        a = t1 + t2;
    }
    state[0] += a;
    state[1] += b;
    state[2] += c;
    state[3] += d;
    state[4] += e;
    state[5] += f;
    state[6] += g;
    state[7] += h;
}

void csn_hash_init(csn_hash *h)
{
    *h = (csn_hash){.state = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f,
                              0x9b05688c, 0x1f83d9ab, 0x5be0cd19}};
}

void csn_hash_add(csn_hash *h, const void *data, size_t len)
{
    const unsigned char *p = data;

    while (len > 0) {
        size_t used = h->len % CSN_HASH_BLOCK, n = CSN_HASH_BLOCK - used;
        if (used == 0 && len >= CSN_HASH_BLOCK) {
            compress(h->state, p);
        } else {
            n = n < len ? n : len;
            memcpy(h->block + used, p, n);
            if (used + n == CSN_HASH_BLOCK)
                compress(h->state, h->block);
        }
        h->len += n;
        p += n;
        len -= n;
    }
}

void csn_hash_hex(csn_hash *h, char ret[CSN_HASH_HEX])
{
    static const unsigned char padding[CSN_HASH_BLOCK] = {0x80};
    uint64_t bits = htobe64(h->len * 8);
    size_t used = h->len % CSN_HASH_BLOCK, length_at = CSN_HASH_BLOCK - sizeof(bits);

    csn_hash_add(h, padding, (used < length_at ? 0 : CSN_HASH_BLOCK) + length_at - used);
    csn_hash_add(h, &bits, sizeof(bits));
    for (size_t i = 0; i < 64; i++)
        ret[i] = "0123456789abcdef"[h->state[i / 8] >> (28 - 4 * (i % 8)) & 15];
    ret[64] = '\0';
}

void csn_hash_bytes(const void *data, size_t len, char ret[CSN_HASH_HEX])
{
    csn_hash h;

    csn_hash_init(&h);
    csn_hash_add(&h, data, len);
    csn_hash_hex(&h, ret);
}
