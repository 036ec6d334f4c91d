/* proto.c: bodies of the messages between the library and a gateway.
 *
 * Linked into both. Whatever is decoded was written by the other process, which may be taken
 * over: numbers have ceilings, flags that mean nothing are refused, and what is accepted means
 * one thing only (it encodes to the same bytes again). Pure; fuzzed by fuzz_gateway_proto. */
#include "gateway/proto.h"

#include <errno.h>
#include <stdlib.h>

/* ---- rules ----------------------------------------------------------------------------- */

static void put_list(csn_packer *o, const char *const *v)
{
    uint32_t n = 0;

    while (v && v[n] && n <= CSN_GATEWAY_RULES_MAX)
        n++;
    if (n > CSN_GATEWAY_RULES_MAX) {
        o->error = o->error ? o->error : E2BIG;
        return;
    }
    csn_put_u32(o, n);
    for (uint32_t i = 0; i < n; i++)
        csn_put_str(o, v[i]);
}

/* Steps over a list; how many strings it has. */
static size_t skip_list(csn_unpacker *in)
{
    uint32_t n = csn_get_u32(in);

    if (n > CSN_GATEWAY_RULES_MAX)
        in->error = EPROTO;
    for (uint32_t i = 0; i < n && in->error == 0; i++)
        (void)csn_get_str(in, CSN_GATEWAY_RULE_MAX, false);
    return n;
}

/* Only after skip_list found nothing wrong. */
static void fill_list(csn_unpacker *in, const char **v)
{
    uint32_t n = csn_get_u32(in);

    for (uint32_t i = 0; i < n; i++)
        v[i] = csn_get_str(in, CSN_GATEWAY_RULE_MAX, false);
    v[n] = NULL;
}

void csn_put_gateway_rules(csn_packer *o, const csn_gateway_rules *r)
{
    csn_put_u32(o, r->mode);
    put_list(o, r->allow);
    put_list(o, r->deny);
}

/* Twice over the lists: first to check and count, then to fill one block of the right size. */
static int get_rules(csn_unpacker *in, csn_gateway_rules *ret)
{
    csn_gateway_rules r = {.mode = csn_get_u32(in)};
    csn_unpacker lists = *in;
    size_t allow = skip_list(in), deny = skip_list(in);

    if (in->error != 0 || r.mode > CSN_GATEWAY_ALL)
        return -EPROTO;
    const char **v = malloc((allow + deny + 2) * sizeof(*v));
    if (!v)
        return -ENOMEM;
    r.heap = v;
    r.allow = v;
    r.deny = v + allow + 1;
    fill_list(&lists, r.allow);
    fill_list(&lists, r.deny);
    *ret = r;
    return 0;
}

int csn_get_gateway_rules(const void *body, size_t len, csn_gateway_rules *ret)
{
    csn_unpacker in;

    csn_unpacker_init(&in, body, len);
    int rc = get_rules(&in, ret);
    if (rc == 0 && csn_unpacker_end(&in) < 0) {
        csn_gateway_rules_release(ret);
        rc = -EPROTO;
    }
    return rc;
}

void csn_gateway_rules_release(csn_gateway_rules *r)
{
    free((void *)(uintptr_t)r->heap);
    *r = (csn_gateway_rules){0};
}

/* ---- set-up ---------------------------------------------------------------------------- */

static void put_ports(csn_packer *o, const csn_gateway_port *p, uint32_t n)
{
    if (n > CSN_GATEWAY_PORTS_MAX) {
        o->error = o->error ? o->error : E2BIG;
        return;
    }
    csn_put_u32(o, n);
    for (uint32_t i = 0; i < n; i++) {
        csn_put_u32(o, p[i].inside);
        csn_put_u32(o, p[i].outside);
    }
}

static uint32_t get_ports(csn_unpacker *in, csn_gateway_port *p, bool any_outside)
{
    uint32_t n = csn_get_u32(in);

    if (n > CSN_GATEWAY_PORTS_MAX) {
        in->error = EPROTO;
        return 0;
    }
    for (uint32_t i = 0; i < n && in->error == 0; i++) {
        p[i].inside = csn_get_u32(in);
        p[i].outside = csn_get_u32(in);
        if (p[i].inside == 0 || p[i].inside > UINT16_MAX || p[i].outside > UINT16_MAX ||
            (p[i].outside == 0 && !any_outside))
            in->error = EPROTO;
    }
    return n;
}

void csn_put_gateway_setup(csn_packer *o, const csn_gateway_setup_msg *s)
{
    csn_put_u32(o, s->flags);
    csn_put_u32(o, s->uid);
    csn_put_u32(o, s->gid);
    csn_put_gateway_rules(o, &s->rules);
    put_ports(o, s->publish, s->npublish);
    put_ports(o, s->lend, s->nlend);
    csn_put_u32(o, s->connections_max);
    csn_put_u32(o, s->names_per_second);
    csn_put_u32(o, s->idle_ms);
}

int csn_get_gateway_setup(const void *body, size_t len, csn_gateway_setup_msg *ret)
{
    csn_gateway_setup_msg s = {0};
    csn_unpacker in;

    csn_unpacker_init(&in, body, len);
    s.flags = csn_get_u32(&in);
    s.uid = csn_get_u32(&in);
    s.gid = csn_get_u32(&in);
    int rc = get_rules(&in, &s.rules);
    if (rc < 0)
        return rc;
    s.npublish = get_ports(&in, s.publish, true);
    s.nlend = get_ports(&in, s.lend, false);
    s.connections_max = csn_get_u32(&in);
    s.names_per_second = csn_get_u32(&in);
    s.idle_ms = csn_get_u32(&in);
    if (csn_unpacker_end(&in) < 0 || (s.flags & ~CSN_GATEWAY_ALL_FLAGS) != 0 ||
        s.connections_max > CSN_GATEWAY_CONNECTIONS_MAX ||
        s.names_per_second > CSN_GATEWAY_NAMES_MAX || s.idle_ms > CSN_GATEWAY_IDLE_MS_MAX) {
        csn_gateway_setup_msg_release(&s);
        return -EPROTO;
    }
    *ret = s;
    return 0;
}

void csn_gateway_setup_msg_release(csn_gateway_setup_msg *s)
{
    csn_gateway_rules_release(&s->rules);
    *s = (csn_gateway_setup_msg){0};
}

size_t csn_gateway_setup_msg_fds(const csn_gateway_setup_msg *s)
{
    return (size_t)__builtin_popcount(s->flags & CSN_GATEWAY_FDS) + s->nlend;
}

void csn_put_gateway_ready(csn_packer *o, const csn_gateway_ready *r)
{
    csn_put_u32(o, r->n);
    for (uint32_t i = 0; i < r->n && i < CSN_GATEWAY_PORTS_MAX; i++)
        csn_put_u32(o, r->port[i]);
}

int csn_get_gateway_ready(const void *body, size_t len, csn_gateway_ready *ret)
{
    csn_gateway_ready r = {0};
    csn_unpacker in;

    csn_unpacker_init(&in, body, len);
    r.n = csn_get_u32(&in);
    if (r.n > CSN_GATEWAY_PORTS_MAX)
        return -EPROTO;
    for (uint32_t i = 0; i < r.n; i++) {
        r.port[i] = csn_get_u32(&in);
        if (r.port[i] == 0 || r.port[i] > UINT16_MAX)
            return -EPROTO;
    }
    if (csn_unpacker_end(&in) < 0)
        return -EPROTO;
    *ret = r;
    return 0;
}

/* ---- events ---------------------------------------------------------------------------- */

void csn_put_gateway_since(csn_packer *o, uint64_t since)
{
    csn_put_u64(o, since);
}

int csn_get_gateway_since(const void *body, size_t len, uint64_t *ret)
{
    csn_unpacker in;

    csn_unpacker_init(&in, body, len);
    uint64_t since = csn_get_u64(&in);
    if (csn_unpacker_end(&in) < 0)
        return -EPROTO;
    *ret = since;
    return 0;
}

void csn_put_gateway_batch(csn_packer *o, const csn_gateway_batch *b)
{
    csn_put_u64(o, b->next);
    csn_put_u64(o, b->dropped);
    csn_put_u32(o, b->more);
    csn_put_u32(o, b->count);
}

int csn_get_gateway_batch(csn_unpacker *in, csn_gateway_batch *ret)
{
    csn_gateway_batch b;

    b.next = csn_get_u64(in);
    b.dropped = csn_get_u64(in);
    b.more = csn_get_u32(in);
    b.count = csn_get_u32(in);
    /* One that has more to say but moves nothing forward would be asked for ever. */
    if (in->error != 0 || b.more > 1 || b.count > CSN_GATEWAY_BATCH_MAX ||
        (b.more && b.count == 0))
        return -EPROTO;
    *ret = b;
    return 0;
}

void csn_put_gateway_event(csn_packer *o, const csn_gateway_event *e)
{
    csn_put_u64(o, e->seq);
    csn_put_i64(o, e->time_ms);
    csn_put_u32(o, e->kind);
    csn_put_u32(o, e->verdict);
    csn_put_u32(o, e->proto);
    csn_put_u32(o, e->port);
    csn_put_u64(o, e->up);
    csn_put_u64(o, e->down);
    csn_put_u64(o, e->ms);
    csn_put_u64(o, e->count);
    csn_put_str(o, e->name);
    csn_put_str(o, e->address);
    csn_put_str(o, e->rule);
    csn_put_str(o, e->hint);
    csn_put_str(o, e->why);
}

int csn_get_gateway_event(csn_unpacker *in, csn_gateway_event *ret)
{
    csn_gateway_event e;

    e.seq = csn_get_u64(in);
    e.time_ms = csn_get_i64(in);
    e.kind = csn_get_u32(in);
    e.verdict = csn_get_u32(in);
    e.proto = csn_get_u32(in);
    e.port = csn_get_u32(in);
    e.up = csn_get_u64(in);
    e.down = csn_get_u64(in);
    e.ms = csn_get_u64(in);
    e.count = csn_get_u64(in);
    e.name = csn_get_str(in, CSN_GATEWAY_NAME_MAX, false);
    e.address = csn_get_str(in, CSN_GATEWAY_ADDRESS_MAX, false);
    e.rule = csn_get_str(in, CSN_GATEWAY_RULE_MAX, false);
    e.hint = csn_get_str(in, CSN_GATEWAY_RULE_MAX, false);
    e.why = csn_get_str(in, CSN_GATEWAY_WHY_MAX, false);
    if (in->error != 0 || e.kind >= CSN_GATEWAY_KINDS || e.verdict >= CSN_GATEWAY_VERDICTS ||
        e.proto >= CSN_GATEWAY_PROTOS || e.port > UINT16_MAX || e.count == 0)
        return -EPROTO;
    *ret = e;
    return 0;
}

int csn_get_gateway_text(const void *body, size_t len, const char **ret)
{
    csn_unpacker in;

    csn_unpacker_init(&in, body, len);
    const char *text = csn_get_str(&in, CSN_GATEWAY_TEXT_MAX, false);
    if (csn_unpacker_end(&in) < 0)
        return -EPROTO;
    *ret = text;
    return 0;
}
