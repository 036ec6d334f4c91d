/* gitindex.c: check the paths in a git index, versions 2 to 4.
 *
 * An attacker controls counts, lengths and names. Invariants: no byte outside [data, data+len)
 * is read; a file that git would read differently is not harmless, so every length is checked
 * and nothing unknown is skipped. */
#include "policy/gitindex.h"

#include <stdint.h>
#include <string.h>
#include <strings.h>

#include "base/limits.h"

#define HEADER         12u
#define STAT_BYTES     40u /* times, device, inode, mode, owner, size; then hash and flags */
#define FLAG_MORE      0x4000u
#define NAME_MASK      0x0fffu
#define EXT_CAPITAL(c) ((c) >= 'A' && (c) <= 'Z')

typedef struct cursor {
    const unsigned char *at, *end;
    size_t hash_len;
    uint32_t version;
    char name[CSN_PATH_MAX]; /* of the last entry; version 4 stores only differences */
    size_t name_len, kept;   /* bytes of it shared with the entry before */
} cursor;

static uint32_t get32(const unsigned char *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

/* Components that git refuses when a path enters the index; in any case, since some file
 * systems fold it. */
static bool component_is_bad(const char *s, size_t len)
{
    if (len == 0)
        return true;
    if (len <= 2 && s[0] == '.' && s[len - 1] == '.')
        return true;
    return len >= 4 && strncasecmp(s, ".git", 4) == 0 &&
           (len == 4 || (unsigned char)s[4] >= 0x80 || s[4] == ':' || s[4] == ' ');
}

static bool path_is_fine(const char *s, size_t len, bool sparse_dir)
{
    size_t from = 0;

    if (sparse_dir && len > 0 && s[len - 1] == '/')
        len--; /* a directory outside the sparse checkout, as one entry */
    for (size_t i = 0; i <= len; i++) {
        if (i < len && s[i] != '/')
            continue;
        if (component_is_bad(s + from, i - from))
            return false;
        from = i + 1;
    }
    return true;
}

/* Version 4: how many bytes of the last name to drop, in git's variable-length form. */
static bool get_drop(cursor *c, size_t *ret)
{
    size_t value = 0;

    for (int i = 0; i < 4; i++) {
        if (c->at == c->end)
            return false;
        unsigned char byte = *c->at++;
        value = (i > 0 ? value + 1 : 0) << 7 | (byte & 0x7fu);
        if ((byte & 0x80u) == 0) {
            *ret = value;
            return true;
        }
    }
    return false;
}

/* The name up to its NUL, into c->name. */
static bool get_name(cursor *c)
{
    size_t keep = 0, drop;

    if (c->version == 4) {
        if (!get_drop(c, &drop) || drop > c->name_len)
            return false;
        keep = c->name_len - drop;
    }
    const unsigned char *nul = memchr(c->at, '\0', (size_t)(c->end - c->at));
    if (!nul || keep + (size_t)(nul - c->at) >= sizeof(c->name))
        return false;
    memcpy(c->name + keep, c->at, (size_t)(nul - c->at));
    c->name_len = keep + (size_t)(nul - c->at);
    c->kept = keep;
    c->at = nul;
    return true;
}

static bool entry_is_fine(cursor *c)
{
    const unsigned char *start = c->at;
    size_t fixed = STAT_BYTES + c->hash_len + 2;

    if ((size_t)(c->end - c->at) < fixed + 2)
        return false;
    uint32_t mode = get32(start + 24);
    unsigned flags = (unsigned)start[fixed - 2] << 8 | start[fixed - 1];
    if ((flags & FLAG_MORE) != 0 && c->version == 2)
        return false;
    c->at += fixed + ((flags & FLAG_MORE) != 0 ? 2 : 0);
    if (!get_name(c))
        return false;
    /* git uses this length if it fits, so it must be right */
    if ((flags & NAME_MASK) != (c->name_len < NAME_MASK ? c->name_len : NAME_MASK))
        return false;
    size_t used = (size_t)(c->at - start) + 1;
    if (c->version != 4)
        used = (used + 7) & ~(size_t)7; /* one to eight NULs */
    if (used > (size_t)(c->end - start))
        return false;
    c->at = start + used;
    return path_is_fine(c->name, c->name_len, mode == 040000);
}

/* IEOT: offsets of blocks of entries, with which git reads them in several threads. They must
 * agree with the entries, or git would read others than were checked here. */
static bool blocks_are_fine(cursor c, const unsigned char *data, uint32_t count,
                            const unsigned char *table, size_t size)
{
    uint32_t seen = 0;

    if (size < 4 || (size - 4) % 8 != 0 || get32(table) != 1)
        return false;
    c.at = data + HEADER;
    c.name_len = 0;
    for (size_t at = 4; at < size; at += 8) {
        if (get32(table + at) != (size_t)(c.at - data))
            return false;
        uint32_t in_block = get32(table + at + 4);
        for (uint32_t i = 0; i < in_block; i++) {
            if (seen++ == count || !entry_is_fine(&c) || (i == 0 && c.kept != 0))
                return false;
        }
    }
    return seen == count;
}

/* Extensions with a capital are optional and contain no paths to write, except two with
 * offsets; `sdir` allows directories as entries. All others are mandatory for git, such as
 * `link`, which reads entries from a second file. */
static bool extensions_are_fine(cursor *c, const unsigned char *data, uint32_t count)
{
    size_t entries_end = (size_t)(c->at - data);

    while (c->at < c->end) {
        const unsigned char *ext = c->at;
        if (c->end - ext < 8 || (!EXT_CAPITAL(ext[0]) && memcmp(ext, "sdir", 4) != 0))
            return false;
        uint32_t size = get32(ext + 4);
        c->at += 8;
        if (size > (size_t)(c->end - c->at))
            return false;
        if (memcmp(ext, "EOIE", 4) == 0 && (size < 4 || get32(c->at) != entries_end))
            return false;
        if (memcmp(ext, "IEOT", 4) == 0 && !blocks_are_fine(*c, data, count, c->at, size))
            return false;
        c->at += size;
    }
    return true;
}

bool csn_gitindex_is_harmless(const void *data, size_t len, size_t hash_len)
{
    cursor c = {.at = data, .hash_len = hash_len};

    if (len == 0)
        return true; /* git ignores an empty index */
    if ((hash_len != 20 && hash_len != 32) || len < HEADER + hash_len ||
        memcmp(data, "DIRC", 4) != 0)
        return false;
    c.end = c.at + len - hash_len; /* git ignores the checksum, too */
    c.version = get32(c.at + 4);
    uint32_t count = get32(c.at + 8);
    c.at += HEADER;
    if (c.version < 2 || c.version > 4)
        return false;
    for (uint32_t i = 0; i < count; i++)
        if (!entry_is_fine(&c))
            return false;
    return extensions_are_fine(&c, data, count);
}
