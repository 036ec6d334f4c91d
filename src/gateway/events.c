/* events.c: the ring of events.
 *
 * Filled by whoever judges a name or a connection, read by control.c. Names in it were chosen
 * by processes inside; they are valid domain names by then, or cut to the wire's ceilings. */
#include "gateway/events.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"

#define SLOTS       1024u         /* refusals that are looked at to find the same again */
#define PACKET_ROOM (60u * 1024u) /* leaves room for the head, and for the longest event */

struct gw_events {
    csn_gateway_event *ring[CSN_GATEWAY_EVENTS_MAX]; /* by seq; the strings follow each */
    uint64_t next;                                   /* of the event to come; the first is 1 */
    uint64_t read;                                   /* all before were given to somebody */
    uint64_t slots[SLOTS];                           /* seq of a refusal, by what it is about */
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

static csn_gateway_event **at(gw_events *e, uint64_t seq)
{
    return &e->ring[seq % CSN_GATEWAY_EVENTS_MAX];
}

/* FNV-1a. Who makes names collide gains a repeated event. */
static uint64_t mix(uint64_t h, const char *s)
{
    for (; *s; s++)
        h = (h ^ (unsigned char)*s) * 1099511628211u;
    return (h ^ 255) * 1099511628211u;
}

static uint64_t *slot_of(gw_events *e, const csn_gateway_event *ev)
{
    uint64_t h = mix(mix(14695981039346656037u, ev->name), ev->address) + ev->port + ev->kind;

    return &e->slots[h % SLOTS];
}

static bool same(const csn_gateway_event *a, const csn_gateway_event *b)
{
    return a->kind == b->kind && a->verdict == b->verdict && a->proto == b->proto &&
           a->port == b->port && strcmp(a->name, b->name) == 0 &&
           strcmp(a->address, b->address) == 0 && strcmp(a->why, b->why) == 0;
}

/* Counts a refusal that is in the ring and that nobody has read of yet. Somebody who did would
 * never learn that it happened again. */
static bool count_again(gw_events *e, const csn_gateway_event *ev)
{
    uint64_t seq = *slot_of(e, ev);

    if (seq == 0 || seq < e->read || seq + CSN_GATEWAY_EVENTS_MAX < e->next)
        return false;
    csn_gateway_event *old = *at(e, seq);
    if (!old || old->seq != seq || !same(old, ev))
        return false;
    old->count++;
    return true;
}

static const char *keep(char **end, const char *s, size_t len)
{
    char *to = *end;

    memcpy(to, s, len);
    to[len] = '\0';
    *end += len + 1;
    return to;
}

/* One block: the event, then its strings, each within the ceiling of the wire. */
static csn_gateway_event *copy(const csn_gateway_event *ev)
{
    size_t name = strnlen(ev->name, CSN_GATEWAY_NAME_MAX);
    size_t address = strnlen(ev->address, CSN_GATEWAY_ADDRESS_MAX);
    size_t rule = strnlen(ev->rule, CSN_GATEWAY_RULE_MAX);
    size_t hint = strnlen(ev->hint, CSN_GATEWAY_RULE_MAX);
    size_t why = strnlen(ev->why, CSN_GATEWAY_WHY_MAX);
    csn_gateway_event *c = malloc(sizeof(*c) + name + address + rule + hint + why + 5);

    if (!c)
        return NULL;
    char *end = (char *)(c + 1);
    *c = *ev;
    c->name = keep(&end, ev->name, name);
    c->address = keep(&end, ev->address, address);
    c->rule = keep(&end, ev->rule, rule);
    c->hint = keep(&end, ev->hint, hint);
    c->why = keep(&end, ev->why, why);
    return c;
}

void gw_events_add(gw_events *e, const csn_gateway_event *ev)
{
    csn_gateway_event full = *ev;

    full.name = ev->name ? ev->name : "";
    full.address = ev->address ? ev->address : "";
    full.rule = ev->rule ? ev->rule : "";
    full.hint = ev->hint ? ev->hint : "";
    full.why = ev->why ? ev->why : "";
    if (full.verdict == CSN_GATEWAY_DENY && count_again(e, &full))
        return;
    full.seq = e->next++;
    full.time_ms = csn_wall_ms();
    full.count = 1;
    free(*at(e, full.seq));
    *at(e, full.seq) = copy(&full);
    if (full.verdict == CSN_GATEWAY_DENY)
        *slot_of(e, &full) = full.seq;
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
        const csn_gateway_event *ev = *at(e, from);
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
