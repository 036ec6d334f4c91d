/* ustar.c: generates a tar stream with one file or directory.
 *
 * The archive has three parts: headers, content, zeros (padding to a block and two empty
 * blocks). Each read returns bytes of one part. */
#include "remote/ustar.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define BLOCK    512u
#define HEAD_MAX 65536u

typedef struct header {
    char name[100], mode[8], uid[8], gid[8], size[12], mtime[12], checksum[8], type, link[100];
    char magic[8], owner[32], group[32], major[8], minor[8], prefix[155], pad[12];
} header;
_Static_assert(sizeof(header) == BLOCK, "a tar header is one block");

/* Octal digits and NUL; larger values in base 256, the GNU extension. */
static void put_number(char *field, size_t width, uint64_t value)
{
    bool octal = value >> 3 * (width - 1) == 0;
    size_t last = octal ? width - 2 : width - 1;

    memset(field, octal ? '0' : 0, width);
    for (size_t i = 0; i <= last && value > 0; i++, value >>= octal ? 3 : 8)
        field[last - i] = (char)(octal ? '0' + (value & 7) : value & 0xff);
    if (octal)
        field[width - 1] = '\0';
    else
        field[0] = (char)(field[0] | 0x80);
}

static int add_header(csn_buf *b, const csn_ustar_member *m, const char *name, uint64_t size,
                      char type)
{
    header h = {.type = type, .magic = "ustar"};
    const unsigned char *p = (const unsigned char *)&h;
    unsigned sum = 0;

    memcpy(h.magic + 6, "00", 2);
    memcpy(h.name, name, strnlen(name, sizeof(h.name)));
    put_number(h.mode, sizeof(h.mode), m->mode);
    put_number(h.uid, sizeof(h.uid), m->uid);
    put_number(h.gid, sizeof(h.gid), m->gid);
    put_number(h.size, sizeof(h.size), size);
    put_number(h.mtime, sizeof(h.mtime), (uint64_t)m->mtime);
    memset(h.checksum, ' ', sizeof(h.checksum));
    for (size_t i = 0; i < sizeof(h); i++)
        sum += p[i];
    put_number(h.checksum, sizeof(h.checksum) - 1, sum);
    return csn_buf_append(b, &h, sizeof(h));
}

/* "LEN path=NAME\n", where LEN counts itself. */
static int add_pax_path(csn_buf *b, const csn_ustar_member *m)
{
    static const char zeros[BLOCK];
    csn_ustar_member pax = {.mode = 0644};
    size_t rest = strlen(" path=\n") + strlen(m->name), len = rest, before = 0;
    char digits[24];

    while (len != before) {
        before = len;
        len = rest + (size_t)snprintf(digits, sizeof(digits), "%zu", before);
    }
    int e = add_header(b, &pax, "PaxHeader", len, 'x');
    e = e ? e : csn_buf_printf(b, "%zu path=%s\n", len, m->name);
    return e || len % BLOCK == 0 ? e : csn_buf_append(b, zeros, BLOCK - len % BLOCK);
}

static bool fits_ustar(const char *name)
{
    for (const char *p = name; *p; p++)
        if (*p & 0x80)
            return false;
    return strlen(name) <= sizeof(((header *)0)->name);
}

int csn_ustar_init(csn_ustar *u, const csn_ustar_member *m)
{
    bool plain = fits_ustar(m->name);

    *u = (csn_ustar){.fd = m->fd, .size = m->size};
    csn_buf_init(&u->head, HEAD_MAX);
    int e = plain ? 0 : add_pax_path(&u->head, m);
    e = e ? e
          : add_header(&u->head, m, plain ? m->name : "PaxHeader", m->size,
                       m->is_dir ? '5' : '0');
    u->length = u->head.len + (m->size + BLOCK - 1) / BLOCK * BLOCK + 2ull * BLOCK;
    return e;
}

void csn_ustar_release(csn_ustar *u)
{
    csn_buf_release(&u->head);
}

int64_t csn_ustar_read(csn_ustar *u, void *buf, size_t len)
{
    uint64_t end_of_content = u->head.len + u->size;
    uint64_t end = u->pos < u->head.len      ? u->head.len
                   : u->pos < end_of_content ? end_of_content
                                             : u->length;
    size_t n = end - u->pos < len ? (size_t)(end - u->pos) : len;

    if (u->pos < u->head.len) {
        memcpy(buf, u->head.data + u->pos, n);
    } else if (u->pos < end_of_content) {
        ssize_t got;
        do
            got = pread(u->fd, buf, n, (off_t)(u->pos - u->head.len));
        while (got < 0 && errno == EINTR);
        if (got <= 0)
            return -1;
        n = (size_t)got;
    } else {
        memset(buf, 0, n);
    }
    u->pos += n;
    return (int64_t)n;
}
