/* name_table.c: maps allowed names to numbers, and numbers to addresses.
 *
 * With a wildcard rule or mode `all`, a program inside can invent any number of names. The
 * table therefore has a maximum size, and its hash is seeded so that collisions cannot be
 * constructed. */
#include "gateway/name_table.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define BUCKETS 16384u

typedef struct slot {
    char *text;
    uint32_t chain;        /* next slot of the bucket */
    uint32_t older, newer; /* by last lookup */
    uint32_t refs;
} slot;

struct gw_names {
    slot *slots;
    uint32_t used, capacity; /* slots[used] was never used */
    uint32_t oldest, newest;
    uint64_t seed;
    uint32_t buckets[BUCKETS];
};

gw_names *gw_names_new(void)
{
    gw_names *n = calloc(1, sizeof(*n));

    if (!n)
        return NULL;
    n->used = GW_NAMES_FIRST;
    if (getrandom(&n->seed, sizeof(n->seed), 0) != sizeof(n->seed))
        n->seed = (uintptr_t)n;
    return n;
}

void gw_names_free(gw_names *n)
{
    for (uint32_t i = GW_NAMES_FIRST; n && i < n->used; i++)
        free(n->slots[i].text);
    if (n)
        free(n->slots);
    free(n);
}

static uint32_t *bucket(gw_names *n, const char *text)
{
    uint64_t h = n->seed;

    for (; *text; text++) {
        h = (h ^ (unsigned char)*text) * 0x9e3779b97f4a7c15u;
        h ^= h >> 29;
    }
    return &n->buckets[h % BUCKETS];
}

/* ---- LRU list -------------------------------------------------------------------------- */

static void lru_unlink(gw_names *n, uint32_t i)
{
    slot *s = &n->slots[i];

    if (s->older)
        n->slots[s->older].newer = s->newer;
    else
        n->oldest = s->newer;
    if (s->newer)
        n->slots[s->newer].older = s->older;
    else
        n->newest = s->older;
    s->older = s->newer = 0;
}

static void lru_append(gw_names *n, uint32_t i)
{
    slot *s = &n->slots[i];

    s->older = n->newest;
    if (n->newest)
        n->slots[n->newest].newer = i;
    else
        n->oldest = i;
    n->newest = i;
}

/* ---- numbers --------------------------------------------------------------------------- */

static uint32_t grow_table(gw_names *n)
{
    if (n->used == n->capacity || n->capacity == 0) {
        uint32_t capacity = n->capacity ? 2 * n->capacity : 64;
        slot *grown = realloc(n->slots, capacity * sizeof(*grown));
        if (!grown)
            return 0;
        memset(grown + n->capacity, 0, (capacity - n->capacity) * sizeof(*grown));
        n->slots = grown;
        n->capacity = capacity;
    }
    return n->used++;
}

static void remove_name(gw_names *n, uint32_t i)
{
    uint32_t *at = bucket(n, n->slots[i].text);

    while (*at != i)
        at = &n->slots[*at].chain;
    *at = n->slots[i].chain;
    lru_unlink(n, i);
    free(n->slots[i].text);
    n->slots[i] = (slot){0};
}

/* Skips names that flows hold. There are fewer flows than numbers, so the loop ends soon. */
static uint32_t evict_oldest(gw_names *n)
{
    uint32_t i = n->oldest;

    while (i && n->slots[i].refs > 0)
        i = n->slots[i].newer;
    if (i)
        remove_name(n, i);
    return i;
}

uint32_t gw_names_number(gw_names *n, const csn_domain *name, bool *is_new)
{
    uint32_t *at = bucket(n, name->text);

    *is_new = false;
    for (uint32_t i = *at; i; i = n->slots[i].chain)
        if (strcmp(n->slots[i].text, name->text) == 0) {
            lru_unlink(n, i);
            lru_append(n, i);
            return i;
        }
    char *text = strdup(name->text);
    uint32_t i = !text ? 0 : n->used < GW_NAMES_MAX ? grow_table(n) : evict_oldest(n);
    if (i == 0) {
        free(text);
        return 0;
    }
    *is_new = true;
    n->slots[i].text = text;
    n->slots[i].chain = *at;
    *at = i;
    lru_append(n, i);
    return i;
}

bool gw_names_get(const gw_names *n, uint32_t number, csn_domain *ret)
{
    if (number < GW_NAMES_FIRST || number >= n->used || !n->slots[number].text)
        return false;
    const char *text = n->slots[number].text;
    return csn_domain_parse_lookup(text, strlen(text), ret, NULL);
}

void gw_names_hold(gw_names *n, uint32_t number)
{
    if (number >= GW_NAMES_FIRST && number < n->used)
        n->slots[number].refs++;
}

void gw_names_release(gw_names *n, uint32_t number)
{
    if (number >= GW_NAMES_FIRST && number < n->used && n->slots[number].refs > 0)
        n->slots[number].refs--;
}

/* ---- addresses ------------------------------------------------------------------------- */

static const uint8_t RANGE4[2] = {198, 18}; /* /15, reserved for benchmarks (RFC 2544) */
static const uint8_t RANGE6[12] = {0xfd, 0x63, 0x61, 0x69, 0x73, 0x73}; /* unique local /48 */

csn_netaddr gw_names_address(uint32_t number, unsigned family)
{
    uint8_t b[16] = {0};

    if (family == 4) {
        b[0] = RANGE4[0];
        b[1] = (uint8_t)(RANGE4[1] | ((number >> 16) & 1));
        b[2] = (uint8_t)(number >> 8);
        b[3] = (uint8_t)number;
        return csn_netaddr_v4(b);
    }
    memcpy(b, RANGE6, sizeof(RANGE6));
    b[13] = (uint8_t)(number >> 16);
    b[14] = (uint8_t)(number >> 8);
    b[15] = (uint8_t)number;
    return csn_netaddr_v6(b);
}

bool gw_names_from_address(const csn_netaddr *a, uint32_t *ret)
{
    const uint8_t *b = a->bytes;

    if (a->family == 4 && b[0] == RANGE4[0] && (b[1] & 0xfe) == RANGE4[1]) {
        *ret = (uint32_t)(b[1] & 1) << 16 | (uint32_t)b[2] << 8 | b[3];
        return true;
    }
    if (a->family == 6 && memcmp(b, RANGE6, 6) == 0) {
        /* in the range, but with bits set above the number: not assigned */
        bool high = memcmp(b + 6, RANGE6 + 6, 6) != 0 || b[12] != 0;
        *ret = high ? 0 : (uint32_t)b[13] << 16 | (uint32_t)b[14] << 8 | b[15];
        return true;
    }
    return false;
}
