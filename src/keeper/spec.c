/* spec.c: the serialised form of a keeper's orders.
 *
 * Written by the library, read once by the keeper before anything else happens. The memfd is
 * sealed, so what was checked is what is used. A spec of another version is refused: library
 * and keeper are installed together and must match. What an attacker could control: nothing
 * here as long as the library is sound; it is checked and fuzzed (fuzz_keeper_spec) all the
 * same, because the paths it lists are removed with our rights. */
#include "keeper/spec.h"

#include <errno.h>
#include <string.h>

uint64_t csn_spec_tag_base(const char *id)
{
    uint64_t h = 0xcbf29ce484222325ull; /* FNV-1a, then a finaliser for the high bits */

    for (const unsigned char *p = (const unsigned char *)id; *p; p++)
        h = (h ^ *p) * 0x100000001b3ull;
    h ^= h >> 33;
    h *= 0xff51afd7ed558ccdull;
    h ^= h >> 33;
    return CSN_TAG_MARK | (h & (CSN_TAG_MARK - 1) & ~CSN_TAG_SEQ_MASK);
}

void csn_spec_put(csn_wire_out *o, const csn_keeper_spec *spec)
{
    uint32_t n = 0;

    while (n < CSN_KEEPER_REMOVE_MAX && spec->remove[n])
        n++;
    csn_put_u32(o, CSN_SPEC_MAGIC);
    csn_put_u32(o, CSN_SPEC_VERSION);
    csn_put_u32(o, spec->flags);
    csn_put_u64(o, spec->lifetime_ms);
    csn_put_u64(o, spec->tag_base);
    csn_put_str(o, spec->id);
    csn_put_str(o, spec->socket);
    csn_put_u32(o, n);
    for (uint32_t i = 0; i < n; i++)
        csn_put_str(o, spec->remove[i]);
}

/* Absolute, not the root, and no step back: it will be removed. */
static bool removable(const char *path)
{
    size_t len = strlen(path);

    if (path[0] != '/' || path[strspn(path, "/")] == '\0')
        return false;
    return !strstr(path, "/../") && !(len >= 3 && strcmp(path + len - 3, "/..") == 0);
}

int csn_spec_get(const void *data, size_t len, csn_keeper_spec *ret)
{
    csn_keeper_spec s = {0};
    csn_wire_in in;

    csn_wire_in_init(&in, data, len);
    if (csn_get_u32(&in) != CSN_SPEC_MAGIC || csn_get_u32(&in) != CSN_SPEC_VERSION)
        return -EPROTO;
    s.flags = csn_get_u32(&in);
    s.lifetime_ms = csn_get_u64(&in);
    s.tag_base = csn_get_u64(&in);
    s.id = csn_get_str(&in, CSN_SPEC_ID_MAX, false);
    s.socket = csn_get_str(&in, CSN_PATH_MAX, true);
    uint32_t n = csn_get_u32(&in);
    if (n > CSN_KEEPER_REMOVE_MAX)
        return -EPROTO;
    for (uint32_t i = 0; i < n; i++)
        s.remove[i] = csn_get_str(&in, CSN_PATH_MAX, false);
    if (csn_wire_in_end(&in) < 0)
        return -EPROTO;
    for (uint32_t i = 0; i < n; i++)
        if (!removable(s.remove[i]))
            return -EPROTO;
    if ((s.flags & ~CSN_SPEC_ALL) != 0 || (s.socket && s.socket[0] != '/'))
        return -EPROTO;
    if ((s.tag_base & CSN_TAG_SEQ_MASK) != 0 || s.tag_base < CSN_TAG_MARK ||
        s.tag_base >= 2 * CSN_TAG_MARK)
        return -EPROTO;
    *ret = s;
    return 0;
}
