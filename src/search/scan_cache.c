/* scan_cache.c: an open-addressing hash set with a bounded size.
 *
 * The owner of the tree has some influence on inode numbers, so the number of probes is
 * bounded: if no slot is free within PROBES, the new entry replaces another one. A lost entry
 * costs one directory read. */
#include "search/scan_cache.h"

#include <stdlib.h>

#define FIRST_ROOM 16u        /* entries; small, because a process may have thousands of sets */
#define ROOM_MAX   (1u << 20) /* 32 MiB */
#define PROBES     16u

static size_t slot_of(const csn_scan_cache_dir *d, size_t room)
{
    uint64_t h = (d->ino ^ (d->dev << 40)) * UINT64_C(0x9e3779b97f4a7c15);

    return (size_t)(h >> 32) & (room - 1);
}

static bool same_dir(const csn_scan_cache_dir *a, const csn_scan_cache_dir *b)
{
    return a->ino == b->ino && a->dev == b->dev;
}

bool csn_scan_cache_has(const csn_scan_cache *b, const csn_scan_cache_dir *d)
{
    for (size_t i = 0; b->room > 0 && i < PROBES; i++) {
        const csn_scan_cache_dir *s = &b->slots[(slot_of(d, b->room) + i) & (b->room - 1)];
        if (!s->used)
            return false;
        if (same_dir(s, d))
            return s->sec == d->sec && s->nsec == d->nsec;
    }
    return false;
}

/* Stores the entry in the slot of the same directory or a free one; if PROBES slots are taken,
 * in the first. */
static void put(csn_scan_cache *b, const csn_scan_cache_dir *d)
{
    size_t first = slot_of(d, b->room);
    csn_scan_cache_dir *to = &b->slots[first];

    for (size_t i = 0; i < PROBES; i++) {
        csn_scan_cache_dir *s = &b->slots[(first + i) & (b->room - 1)];
        if (s->used && !same_dir(s, d))
            continue;
        to = s;
        break;
    }
    b->count += !to->used;
    *to = *d;
    to->used = 1;
}

static bool grow(csn_scan_cache *b)
{
    csn_scan_cache next = {.room = b->room ? b->room * 2 : FIRST_ROOM, .added = b->added};

    if (next.room > ROOM_MAX || !(next.slots = calloc(next.room, sizeof(*next.slots))))
        return false;
    for (size_t i = 0; i < b->room; i++)
        if (b->slots[i].used)
            put(&next, &b->slots[i]);
    free(b->slots);
    *b = next;
    return true;
}

void csn_scan_cache_add(csn_scan_cache *b, const csn_scan_cache_dir *d)
{
    if (b->count * 2 >= b->room && !grow(b) && b->room == 0)
        return;
    put(b, d);
    b->added++;
}

bool csn_scan_cache_same(const csn_scan_cache *a, const csn_scan_cache *b)
{
    if (a->count != b->count)
        return false;
    for (size_t i = 0; i < a->room; i++)
        if (a->slots[i].used && !csn_scan_cache_has(b, &a->slots[i]))
            return false;
    return true;
}

void csn_scan_cache_release(csn_scan_cache *b)
{
    free(b->slots);
    *b = (csn_scan_cache){0};
}
