/* targz.c: generates a gzipped tar with one file.
 *
 * The gzip stream consists of a header, stored deflate blocks (final bit, length and its
 * complement), the CRC-32 and the length of the tar. */
#include "backend/vercel/targz.h"

#include <errno.h>
#include <string.h>

#define SIZE_MAX_  077777777777ull /* of the file: eleven octal digits */
#define GZIP_TAIL  8u
#define STORE_HEAD 5u

static const unsigned char gzip_head[10] = {0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255};

int csn_targz_init(csn_targz *t, const csn_ustar_member *m)
{
    *t = (csn_targz){.crc = 0};
    int e = csn_ustar_init(&t->tar, m);
    return m->size > SIZE_MAX_ ? EFBIG : e;
}

void csn_targz_release(csn_targz *t)
{
    csn_ustar_release(&t->tar);
}

void csn_targz_rewind(csn_targz *t)
{
    t->tar.pos = 0;
    t->crc = 0;
    t->have = t->used = 0;
}

uint64_t csn_targz_length(const csn_targz *t)
{
    uint64_t blocks = (t->tar.length + CSN_TARGZ_BLOCK - 1) / CSN_TARGZ_BLOCK;

    return sizeof(gzip_head) + t->tar.length + blocks * STORE_HEAD + GZIP_TAIL;
}

static uint32_t crc32_of(uint32_t crc, const unsigned char *p, size_t n)
{
    static const uint32_t nibble[16] = {0x00000000, 0x1db71064, 0x3b6e20c8, 0x26d930ac,
                                        0x76dc4190, 0x6b6b51f4, 0x4db26158, 0x5005713c,
                                        0xedb88320, 0xf00f9344, 0xd6d6a3e8, 0xcb61b38c,
                                        0x9b64c2b0, 0x86d3d2d4, 0xa00ae278, 0xbdbdf21c};

    crc = ~crc;
    for (size_t i = 0; i < n; i++) {
        crc = nibble[(crc ^ p[i]) & 15] ^ (crc >> 4);
        crc = nibble[(crc ^ (p[i] >> 4)) & 15] ^ (crc >> 4);
    }
    return ~crc;
}

static void put_little_endian(unsigned char *p, uint64_t n, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++, n >>= 8)
        p[i] = (unsigned char)(n & 255);
}

/* The next stored block, with the gzip header before the first and the trailer after the last.
 */
static int next_block(csn_targz *t)
{
    bool first = t->tar.pos == 0;
    uint64_t left = t->tar.length - t->tar.pos;
    size_t n = left < CSN_TARGZ_BLOCK ? (size_t)left : CSN_TARGZ_BLOCK;
    unsigned char *p = t->block;

    if (first) {
        memcpy(p, gzip_head, sizeof(gzip_head));
        p += sizeof(gzip_head);
    }
    *p = n == left; /* final */
    put_little_endian(p + 1, n, 2);
    put_little_endian(p + 3, ~n & 0xffff, 2);
    p += STORE_HEAD;
    for (size_t done = 0; done < n;) {
        int64_t got = csn_ustar_read(&t->tar, p + done, n - done);
        if (got <= 0)
            return -1;
        done += (size_t)got;
    }
    t->crc = crc32_of(t->crc, p, n);
    p += n;
    if (n == left) {
        put_little_endian(p, t->crc, 4);
        put_little_endian(p + 4, t->tar.pos, 4);
        p += GZIP_TAIL;
    }
    t->have = (size_t)(p - t->block);
    t->used = 0;
    return 0;
}

int64_t csn_targz_read(csn_targz *t, void *buf, size_t len)
{
    if (t->used == t->have && t->tar.pos == t->tar.length)
        return 0;
    if (t->used == t->have && next_block(t) < 0)
        return -1;
    size_t n = t->have - t->used < len ? t->have - t->used : len;
    memcpy(buf, t->block + t->used, n);
    t->used += n;
    return (int64_t)n;
}
