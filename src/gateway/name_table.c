/* name_table.c: numbers for names, and back.
 *
 * Names come from the questions of programs inside, after the rules have allowed them; with a
 * wildcard or mode `all` a program can make up any number, so the table is bounded and the
 * chains of its hash cannot be aimed at. */
#include "gateway/name_table.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define BUCKETS 16384u

typedef struct slot {
    char *text;
    uint32_t chain;        /* next of the same bucket */
    uint32_t older, newer; /* by last question */
    uint32_t held;
} slot;

struct gw_names {
    slot *slots;
    uint32_t used, room; /* slots[used]: the first never given */
    uint32_t oldest, newest;
    uint64_t seed;
    uint32_t buckets[BUCKETS];
};

gw_names *gw_names_new(void)
{
    gw_names *n = calloc(1, sizeof(*n));

    if (!n)
        return NULL;
    n->used = CSN_NAMES_FIRST;
    if (getrandom(&n->seed, sizeof(n->seed), 0) != sizeof(n->seed))
        n->seed = (uintptr_t)n;
    return n;
}

void gw_names_free(gw_names *n)
{
    for (uint32_t i = CSN_NAMES_FIRST; n && i < n->used; i++)
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

/* ---- the order of questions ------------------------------------------------------------ */

static void take_out(gw_names *n, uint32_t i)
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

static void put_newest(gw_names *n, uint32_t i)
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

static uint32_t never_given(gw_names *n)
{
    if (n->used == n->room || n->room == 0) {
        uint32_t room = n->room ? 2 * n->room : 64;
        slot *grown = realloc(n->slots, room * sizeof(*grown));
        if (!grown)
            return 0;
        memset(grown + n->room, 0, (room - n->room) * sizeof(*grown));
        n->slots = grown;
        n->room = room;
    }
    return n->used++;
}

static void forget(gw_names *n, uint32_t i)
{
    uint32_t *at = bucket(n, n->slots[i].text);

    while (*at != i)
        at = &n->slots[*at].chain;
    *at = n->slots[i].chain;
    take_out(n, i);
    free(n->slots[i].text);
    n->slots[i] = (slot){0};
}

/* Held ones are few (there are fewer connections than numbers), so this ends soon. */
static uint32_t given_back(gw_names *n)
{
    uint32_t i = n->oldest;

    while (i && n->slots[i].held > 0)
        i = n->slots[i].newer;
    if (i)
        forget(n, i);
    return i;
}

uint32_t gw_names_number(gw_names *n, const csn_domain *name, bool *fresh)
{
    uint32_t *at = bucket(n, name->text);

    *fresh = false;
    for (uint32_t i = *at; i; i = n->slots[i].chain)
        if (strcmp(n->slots[i].text, name->text) == 0) {
            take_out(n, i);
            put_newest(n, i);
            return i;
        }
    char *text = strdup(name->text);
    uint32_t i = !text ? 0 : n->used < CSN_NAMES_MAX ? never_given(n) : given_back(n);
    if (i == 0) {
        free(text);
        return 0;
    }
    *fresh = true;
    n->slots[i].text = text;
    n->slots[i].chain = *at;
    *at = i;
    put_newest(n, i);
    return i;
}

bool gw_names_get(const gw_names *n, uint32_t number, csn_domain *ret)
{
    if (number < CSN_NAMES_FIRST || number >= n->used || !n->slots[number].text)
        return false;
    const char *text = n->slots[number].text;
    return csn_domain_parse_lookup(text, strlen(text), ret, NULL);
}

void gw_names_hold(gw_names *n, uint32_t number)
{
    if (number >= CSN_NAMES_FIRST && number < n->used)
        n->slots[number].held++;
}

void gw_names_drop(gw_names *n, uint32_t number)
{
    if (number >= CSN_NAMES_FIRST && number < n->used && n->slots[number].held > 0)
        n->slots[number].held--;
}

/* ---- addresses ------------------------------------------------------------------------- */

static const uint8_t RANGE4[2] = {198, 18}; /* /15: for benchmarks, never routed (RFC 2544) */
static const uint8_t RANGE6[12] = {0xfd, 0x63, 0x61, 0x69, 0x73, 0x73}; /* a /48 of our own */

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

bool gw_names_is_ours(const csn_netaddr *a, uint32_t *ret)
{
    const uint8_t *b = a->bytes;

    if (a->family == 4 && b[0] == RANGE4[0] && (b[1] & 0xfe) == RANGE4[1]) {
        *ret = (uint32_t)(b[1] & 1) << 16 | (uint32_t)b[2] << 8 | b[3];
        return true;
    }
    if (a->family == 6 && memcmp(b, RANGE6, 6) == 0) {
        /* what is set above the number is nobody's */
        bool high = memcmp(b + 6, RANGE6 + 6, 6) != 0 || b[12] != 0;
        *ret = high ? 0 : (uint32_t)b[13] << 16 | (uint32_t)b[14] << 8 | b[15];
        return true;
    }
    return false;
}
