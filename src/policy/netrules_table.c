/* netrules_table.c: hash tables that find the rules for a name or an address.
 *
 * An attacker chooses the names and addresses to look up, but not the content of the table, so
 * no input makes its chains longer. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "policy/netrules_internal.h"

#define NET_KEY_LEN 18u
#define HASH_START  0x811c9dc5u
#define HASH_STEP   0x01000193u

/* Hashes from the last byte to the first, so that one pass over a name yields the hashes of all
 * of its parents. */
static uint32_t hash_byte(uint32_t h, char c)
{
    return (h ^ (uint8_t)c) * HASH_STEP;
}

static uint32_t hash_key(const char *key, size_t len)
{
    uint32_t h = HASH_START;

    while (len > 0)
        h = hash_byte(h, key[--len]);
    return h;
}

/* Mixes the last bytes into the low bits, which choose the slot. */
static size_t slot_of(const csn_netside *s, csn_netrule_kind kind, uint32_t hash)
{
    hash ^= (uint32_t)kind * 0x9e3779b9u;
    hash ^= hash >> 15;
    return hash & (s->slot_count - 1);
}

static csn_netentry *find(const csn_netside *s, csn_netrule_kind kind, const char *key,
                          size_t len, uint32_t hash)
{
    if (s->slot_count == 0)
        return NULL;
    for (size_t i = slot_of(s, kind, hash); s->slots[i] != 0;
         i = (i + 1) & (s->slot_count - 1)) {
        csn_netentry *e = &s->entries[s->slots[i] - 1];
        if (e->hash == hash && e->kind == kind && e->len == len &&
            memcmp(e->key, key, len) == 0)
            return e;
    }
    return NULL;
}

static void place(csn_netside *s, size_t index)
{
    const csn_netentry *e = &s->entries[index];
    size_t i = slot_of(s, e->kind, e->hash);

    while (s->slots[i] != 0)
        i = (i + 1) & (s->slot_count - 1);
    s->slots[i] = (uint32_t)index + 1;
}

static int grow(csn_netside *s)
{
    size_t cap = s->cap ? s->cap * 2 : 16;
    csn_netentry *entries = reallocarray(s->entries, cap, sizeof(*entries));

    if (!entries)
        return ENOMEM;
    s->entries = entries;
    uint32_t *slots = calloc(cap * 2, sizeof(*slots));
    if (!slots)
        return ENOMEM;
    free(s->slots);
    s->slots = slots;
    s->slot_count = cap * 2;
    s->cap = cap;
    for (size_t i = 0; i < s->count; i++)
        place(s, i);
    return 0;
}

static void net_key(const csn_netcidr *net, char key[NET_KEY_LEN])
{
    key[0] = (char)net->base.family;
    key[1] = (char)net->bits;
    memcpy(key + 2, net->base.bytes, sizeof(net->base.bytes));
}

static csn_netentry *find_or_add(csn_netside *s, csn_arena *a, const csn_netrule *rule)
{
    char net[NET_KEY_LEN];
    const char *key = rule->name.text;
    size_t len = rule->name.len;

    if (rule->kind == CSN_NETRULE_NET) {
        net_key(&rule->net, net);
        key = net;
        len = sizeof(net);
    }
    uint32_t hash = hash_key(key, len);
    csn_netentry *e = find(s, rule->kind, key, len, hash);
    if (e)
        return e;
    if (s->count == s->cap && grow(s) != 0)
        return NULL;
    e = &s->entries[s->count];
    *e =
        (csn_netentry){.kind = rule->kind, .len = (uint8_t)len, .hash = hash, .net = rule->net};
    e->key = csn_arena_memdup(a, key, len);
    if (!e->key)
        return NULL;
    place(s, s->count++);
    return e;
}

static int add_port(csn_netentry *e, uint16_t port, const char *text)
{
    if (e->port_count == e->port_cap) {
        size_t cap = e->port_cap ? e->port_cap * 2 : 4;
        csn_netport_rule *grown = reallocarray(e->ports, cap, sizeof(*grown));
        if (!grown)
            return ENOMEM;
        e->ports = grown;
        e->port_cap = cap;
    }
    e->ports[e->port_count++] = (csn_netport_rule){port, text};
    return 0;
}

int csn_netside_add(csn_netside *s, csn_arena *a, const csn_netrule *rule, const char *text)
{
    csn_netentry *e = find_or_add(s, a, rule);
    int rc = e ? 0 : ENOMEM;

    if (e && rule->kind == CSN_NETRULE_NET)
        *(rule->net.base.family == 4 ? &s->has4[rule->net.bits] : &s->has6[rule->net.bits]) =
            true;
    if (e && rule->port_count == 0 && !e->every)
        e->every = text;
    for (size_t i = 0; rc == 0 && i < rule->port_count; i++)
        rc = add_port(e, rule->ports[i], text);
    return rc;
}

static int by_port(const void *a, const void *b)
{
    const csn_netport_rule *x = a, *y = b;
    return (int)x->port - (int)y->port;
}

void csn_netside_seal(csn_netside *s)
{
    for (size_t i = 0; i < s->count; i++) {
        csn_netentry *e = &s->entries[i];
        size_t kept = 0;
        if (e->port_count > 1)
            qsort(e->ports, e->port_count, sizeof(*e->ports), by_port);
        for (size_t k = 0; k < e->port_count; k++)
            if (kept == 0 || e->ports[kept - 1].port != e->ports[k].port)
                e->ports[kept++] = e->ports[k];
        e->port_count = kept;
    }
}

void csn_netside_release(csn_netside *s)
{
    for (size_t i = 0; i < s->count; i++)
        free(s->entries[i].ports);
    free(s->entries);
    free(s->slots);
    *s = (csn_netside){.count = 0};
}

/* ---- queries ---- */

static void hit(csn_nethits *h, const csn_netentry *e)
{
    if (e && h->count < CSN_NETHITS_MAX)
        h->at[h->count++] = e;
}

void csn_netside_names(const csn_netside *s, csn_netrule_kind kind, const csn_domain *name,
                       csn_nethits *ret)
{
    uint32_t hash = HASH_START;

    ret->count = 0;
    if (s->count == 0)
        return;
    for (size_t i = name->len; i > 0; i--) {
        if (name->text[i - 1] == '.')
            hit(ret, find(s, CSN_NETRULE_BELOW, name->text + i, name->len - i, hash));
        hash = hash_byte(hash, name->text[i - 1]);
    }
    hit(ret, find(s, kind, name->text, name->len, hash));
}

void csn_netside_nets(const csn_netside *s, const csn_netcidr *net, csn_nethits *ret)
{
    const bool *has = net->base.family == 4 ? s->has4 : s->has6;

    ret->count = 0;
    for (unsigned bits = 0; bits <= net->bits; bits++) {
        if (!has[bits])
            continue;
        char key[NET_KEY_LEN];
        csn_netcidr wider = csn_netcidr_of(&net->base, bits);
        net_key(&wider, key);
        hit(ret, find(s, CSN_NETRULE_NET, key, sizeof(key), hash_key(key, sizeof(key))));
    }
}

const char *csn_netentry_port(const csn_netentry *e, uint16_t port)
{
    const csn_netport_rule wanted = {.port = port};
    const csn_netport_rule *found =
        e->port_count ? bsearch(&wanted, e->ports, e->port_count, sizeof(wanted), by_port)
                      : NULL;
    return found ? found->text : e->every;
}

const char *csn_nethits_port(const csn_nethits *h, uint16_t port)
{
    const char *text = NULL;

    for (size_t i = h->count; i > 0 && !text; i--)
        text = csn_netentry_port(h->at[i - 1], port);
    return text;
}

const char *csn_nethits_every(const csn_nethits *h)
{
    for (size_t i = h->count; i > 0; i--)
        if (h->at[i - 1]->every)
            return h->at[i - 1]->every;
    return NULL;
}
