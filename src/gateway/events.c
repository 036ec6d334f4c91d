/* events.c: ring buffer of network events.
 *
 * Processes inside choose the names. A name is a valid domain name or is truncated to the
 * limits of the protocol. */
#include "gateway/events.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

#define DENIAL_SLOTS 1024u         /* hash slots to find a repeated denial */
#define PACKET_ROOM  (60u * 1024u) /* of a reply, with room for one more event */

struct gw_events {
    csn_gateway_event *ring[CSN_GATEWAY_EVENTS_MAX]; /* by seq; strings follow the struct */
    uint64_t next;                                   /* seq of the next event, from 1 */
    uint64_t read;                                   /* events before this seq were delivered */
    uint64_t denials[DENIAL_SLOTS]; /* seq of a denial, by hash of its subject */
    void (*on_denial)(void *ctx, const csn_gateway_event *ev); /* or NULL */
    void *on_denial_ctx;
};

gw_events *gw_events_new(void)
{
    gw_events *e = calloc(1, sizeof(*e));

    if (e)
        e->next = 1;
    return e;
}

void gw_events_free(gw_events *e)
{
    for (size_t i = 0; e && i < CSN_GATEWAY_EVENTS_MAX; i++)
        free(e->ring[i]);
    free(e);
}

void gw_events_on_denial(gw_events *e, void (*fn)(void *ctx, const csn_gateway_event *ev),
                         void *ctx)
{
    e->on_denial = fn;
    e->on_denial_ctx = ctx;
}

static csn_gateway_event **slot(gw_events *e, uint64_t seq)
{
    return &e->ring[seq % CSN_GATEWAY_EVENTS_MAX];
}

/* FNV-1a. After a collision a repeated denial is stored as a new event instead of counted. */
static uint64_t hash_string(uint64_t h, const char *s)
{
    for (; *s; s++)
        h = (h ^ (unsigned char)*s) * 1099511628211u;
    return (h ^ 255) * 1099511628211u;
}

static uint64_t *denial_slot(gw_events *e, const csn_gateway_event *ev)
{
    uint64_t h = hash_string(hash_string(14695981039346656037u, ev->name), ev->address) +
                 ev->port + ev->kind;

    return &e->denials[h % DENIAL_SLOTS];
}

static bool same(const csn_gateway_event *a, const csn_gateway_event *b)
{
    return a->kind == b->kind && a->verdict == b->verdict && a->proto == b->proto &&
           a->port == b->port && strcmp(a->name, b->name) == 0 &&
           strcmp(a->address, b->address) == 0 && strcmp(a->why, b->why) == 0;
}

/* Increments the count of an undelivered denial. The reader of a delivered one would not see
 * the change. */
static bool count_repeat(gw_events *e, const csn_gateway_event *ev)
{
    uint64_t seq = *denial_slot(e, ev);

    if (seq == 0 || seq < e->read || seq + CSN_GATEWAY_EVENTS_MAX < e->next)
        return false;
    csn_gateway_event *old = *slot(e, seq);
    if (!old || old->seq != seq || !same(old, ev))
        return false;
    old->count++;
    return true;
}

static const struct {
    size_t offset, max;
} strings[] = {
    {offsetof(csn_gateway_event, name), CSN_GATEWAY_NAME_MAX},
    {offsetof(csn_gateway_event, address), CSN_GATEWAY_ADDRESS_MAX},
    {offsetof(csn_gateway_event, rule), CSN_GATEWAY_RULE_MAX},
    {offsetof(csn_gateway_event, hint), CSN_GATEWAY_RULE_MAX},
    {offsetof(csn_gateway_event, why), CSN_GATEWAY_WHY_MAX},
};
#define STRINGS (sizeof(strings) / sizeof(strings[0]))

static const char **string_at(csn_gateway_event *ev, size_t i)
{
    return (const char **)(void *)((char *)ev + strings[i].offset);
}

/* Copies the event and its strings, each truncated to the limit of the protocol, into one
 * allocation. */
static csn_gateway_event *copy(csn_gateway_event *ev)
{
    size_t size = sizeof(*ev);

    for (size_t i = 0; i < STRINGS; i++)
        size += strnlen(*string_at(ev, i), strings[i].max) + 1;
    csn_gateway_event *c = malloc(size);
    if (!c)
        return NULL;
    char *end = (char *)(c + 1);
    *c = *ev;
    for (size_t i = 0; i < STRINGS; i++) {
        size_t len = strnlen(*string_at(ev, i), strings[i].max);
        memcpy(end, *string_at(ev, i), len);
        end[len] = '\0';
        *string_at(c, i) = end;
        end += len + 1;
    }
    return c;
}

void gw_events_add(gw_events *e, const csn_gateway_event *ev)
{
    csn_gateway_event full = *ev;

    for (size_t i = 0; i < STRINGS; i++)
        if (!*string_at(&full, i))
            *string_at(&full, i) = "";
    if (full.verdict == CSN_GATEWAY_DENY && count_repeat(e, &full))
        return;
    full.seq = e->next++;
    full.time_ms = csn_wall_ms();
    full.count = 1;
    free(*slot(e, full.seq));
    *slot(e, full.seq) = copy(&full);
    if (full.verdict == CSN_GATEWAY_DENY)
        *denial_slot(e, &full) = full.seq;
    const csn_gateway_event *kept = *slot(e, full.seq);
    if (kept && kept->verdict == CSN_GATEWAY_DENY && e->on_denial)
        e->on_denial(e->on_denial_ctx, kept);
}

void gw_events_put(gw_events *e, uint64_t since, csn_packer *o)
{
    uint64_t oldest = e->next > CSN_GATEWAY_EVENTS_MAX ? e->next - CSN_GATEWAY_EVENTS_MAX : 1;
    uint64_t from = since < 1 ? 1 : since;
    csn_gateway_batch b = {0};
    csn_packer body;

    if (from > e->next)
        from = e->next;
    if (from < oldest) {
        b.dropped = oldest - from;
        from = oldest;
    }
    csn_packer_init(&body, NULL, 0);
    for (; from < e->next && b.count < CSN_GATEWAY_BATCH_MAX && body.len < PACKET_ROOM - 4096;
         from++) {
        const csn_gateway_event *ev = *slot(e, from);
        if (ev) {
            csn_put_gateway_event(&body, ev);
            b.count++;
        } else {
            b.dropped++;
        }
    }
    b.next = from;
    b.more = from < e->next && b.count > 0;
    if (from > e->read)
        e->read = from;
    csn_put_gateway_batch(o, &b);
    csn_put_bytes(o, body.data, body.len);
    o->error = o->error ? o->error : body.error;
    csn_packer_release(&body);
}
