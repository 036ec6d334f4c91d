/* targz.c: one file as a gzip'd tar of known length, produced piece by piece.
 *
 * Called by files.c as the source of an upload. Name and content are the caller's, any bytes.
 * The tar is three stretches (head, content, zeros) addressed by offset; gzip is wrapped around
 * blocks of it as they are asked for. */
#include "backend/vercel/targz.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define TAR_BLOCK 512u
#define NAME_MAX_ 100u
#define SIZE_MAX_ 077777777777ull /* eleven octal digits */

typedef struct header { /* ustar */
    char name[100], mode[8], uid[8], gid[8], size[12], mtime[12], sum[8], type, link[100];
    char magic[8], owner[32], group[32], major[8], minor[8], prefix[155], pad[12];
} header;
_Static_assert(sizeof(header) == TAR_BLOCK, "a tar header is one block");

/* ---- tar -------------------------------------------------------------------------------- */

/* All of a field but its last byte, which stays NUL. */
static void octal(char *field, size_t size, uint64_t n)
{
    for (size_t i = size - 1; i-- > 0; n /= 8)
        field[i] = (char)('0' + n % 8);
}

static int put_header(csn_buf *b, const char *name, uint32_t mode, uint64_t size, char type)
{
    header h = {.type = type, .magic = "ustar"};
    const unsigned char *p = (const unsigned char *)&h;
    unsigned sum = 0;

    memcpy(h.magic + 6, "00", 2);
    memcpy(h.name, name, strnlen(name, sizeof(h.name)));
    octal(h.mode, sizeof(h.mode), mode);
    octal(h.uid, sizeof(h.uid), 0);
    octal(h.gid, sizeof(h.gid), 0);
    octal(h.size, sizeof(h.size), size);
    octal(h.mtime, sizeof(h.mtime), 0);
    memset(h.sum, ' ', sizeof(h.sum));
    for (size_t i = 0; i < sizeof(h); i++)
        sum += p[i];
    octal(h.sum, sizeof(h.sum) - 1, sum);
    return csn_buf_append(b, &h, sizeof(h));
}

static int pad(csn_buf *b)
{
    static const char zeros[TAR_BLOCK];

    return b->len % TAR_BLOCK == 0 ? 0
                                   : csn_buf_append(b, zeros, TAR_BLOCK - b->len % TAR_BLOCK);
}

/* "LEN path=NAME\n", where LEN counts itself. */
static int put_pax(csn_buf *b, const char *name)
{
    size_t rest = strlen(" path=\n") + strlen(name), len = rest, before = 0;
    char digits[24];

    while (len != before) {
        before = len;
        len = rest + (size_t)snprintf(digits, sizeof(digits), "%zu", before);
    }
    int e = put_header(b, "PaxHeader", 0644, len, 'x');
    e = e ? e : csn_buf_printf(b, "%zu path=%s\n", len, name);
    return e ? e : pad(b);
}

static bool is_plain(const char *name)
{
    for (const char *p = name; *p; p++)
        if (*p & 0x80)
            return false;
    return strlen(name) <= NAME_MAX_;
}

/* Of the whole tar: the content is padded, and two empty blocks follow. */
static uint64_t tar_length(const csn_targz *t)
{
    uint64_t padded = (t->size + TAR_BLOCK - 1) / TAR_BLOCK * TAR_BLOCK;

    return t->head.len + padded + 2 * (uint64_t)TAR_BLOCK;
}

/* n bytes of the tar from t->at on. */
static int tar_read(csn_targz *t, unsigned char *to, size_t n)
{
    while (n > 0) {
        uint64_t content = t->at - t->head.len; /* meaningful behind the head */
        size_t take = n;
        if (t->at < t->head.len) {
            take = t->head.len - t->at < n ? (size_t)(t->head.len - t->at) : n;
            memcpy(to, t->head.data + t->at, take);
        } else if (content < t->size) {
            take = t->size - content < n ? (size_t)(t->size - content) : n;
            ssize_t got = pread(t->fd, to, take, (off_t)content);
            if (got <= 0 && !(got < 0 && errno == EINTR))
                return -1;
            take = got > 0 ? (size_t)got : 0;
        } else {
            memset(to, 0, take);
        }
        t->at += take;
        to += take;
        n -= take;
    }
    return 0;
}

int csn_targz_init(csn_targz *t, const char *name, uint32_t mode, int fd, uint64_t size)
{
    *t = (csn_targz){.fd = fd, .size = size};
    csn_buf_init(&t->head, 65536);
    if (size > SIZE_MAX_)
        return EFBIG;
    int e = is_plain(name) ? 0 : put_pax(&t->head, name);
    return e ? e : put_header(&t->head, is_plain(name) ? name : "PaxHeader", mode, size, '0');
}

void csn_targz_release(csn_targz *t)
{
    csn_buf_release(&t->head);
}

/* ---- gzip ------------------------------------------------------------------------------- */

static const unsigned char gzip_head[10] = {0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255};
#define GZIP_TAIL  8u
#define STORE_HEAD 5u

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

static void little(unsigned char *p, uint64_t n, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++, n >>= 8)
        p[i] = (unsigned char)(n & 255);
}

uint64_t csn_targz_length(const csn_targz *t)
{
    uint64_t tar = tar_length(t), blocks = (tar + CSN_TARGZ_BLOCK - 1) / CSN_TARGZ_BLOCK;

    return sizeof(gzip_head) + tar + blocks * STORE_HEAD + GZIP_TAIL;
}

void csn_targz_rewind(csn_targz *t)
{
    t->at = 0;
    t->crc = 0;
    t->have = t->used = 0;
}

/* The next stored block, with what stands before the first and behind the last. */
static int next_block(csn_targz *t)
{
    uint64_t left = tar_length(t) - t->at;
    size_t n = left < CSN_TARGZ_BLOCK ? (size_t)left : CSN_TARGZ_BLOCK;
    unsigned char *p = t->block;

    if (t->at == 0) {
        memcpy(p, gzip_head, sizeof(gzip_head));
        p += sizeof(gzip_head);
    }
    *p = n == left; /* the last one */
    little(p + 1, n, 2);
    little(p + 3, ~n & 0xffff, 2);
    p += STORE_HEAD;
    if (tar_read(t, p, n) < 0)
        return -1;
    t->crc = crc32_of(t->crc, p, n);
    p += n;
    if (n == left) {
        little(p, t->crc, 4);
        little(p + 4, t->at, 4);
        p += GZIP_TAIL;
    }
    t->have = (size_t)(p - t->block);
    t->used = 0;
    return 0;
}

int64_t csn_targz_read(csn_targz *t, void *buf, size_t len)
{
    if (t->used == t->have && t->at == tar_length(t))
        return 0;
    if (t->used == t->have && next_block(t) < 0)
        return -1;
    size_t n = t->have - t->used < len ? t->have - t->used : len;
    memcpy(buf, t->block + t->used, n);
    t->used += n;
    return (int64_t)n;
}
