/* proto.c: encode and decode the messages of gateway/proto.h.
 *
 * Used by library and gateway. Decoded bytes come from the other process, which may be
 * compromised: numbers have ceilings, unknown flags are refused, and an accepted message
 * encodes to the same bytes again. No system calls; fuzzed by fuzz_gateway_proto. */
#include "gateway/proto.h"

#include <errno.h>
#include <stdlib.h>

/* ---- field tables ---------------------------------------------------------------------- */

/* X(type, field, ceiling): the encoding order, and the largest accepted number or length. */
#define SETUP_IDS(X)                                                                           \
    X(u32, flags, CSN_GATEWAY_ALL_FLAGS)                                                       \
    X(u32, uid, UINT32_MAX)                                                                    \
    X(u32, gid, UINT32_MAX)
#define SETUP_LIMITS(X)                                                                        \
    X(u32, connections_max, CSN_GATEWAY_CONNECTIONS_MAX)                                       \
    X(u32, names_per_second, CSN_GATEWAY_NAMES_MAX)                                            \
    X(u32, idle_ms, CSN_GATEWAY_IDLE_MS_MAX)
#define PORT_FIELDS(X)                                                                         \
    X(u32, inside, UINT16_MAX)                                                                 \
    X(u32, outside, UINT16_MAX)
#define BATCH_FIELDS(X)                                                                        \
    X(u64, next, UINT64_MAX)                                                                   \
    X(u64, dropped, UINT64_MAX)                                                                \
    X(u32, more, 1)                                                                            \
    X(u32, count, CSN_GATEWAY_BATCH_MAX)
#define EVENT_FIELDS(X)                                                                        \
    X(u64, seq, UINT64_MAX)                                                                    \
    X(i64, time_ms, 0)                                                                         \
    X(u32, kind, CSN_GATEWAY_KINDS - 1)                                                        \
    X(u32, verdict, CSN_GATEWAY_VERDICTS - 1)                                                  \
    X(u32, proto, CSN_GATEWAY_PROTOS - 1)                                                      \
    X(u32, port, UINT16_MAX)                                                                   \
    X(u64, up, UINT64_MAX)                                                                     \
    X(u64, down, UINT64_MAX)                                                                   \
    X(u64, ms, UINT64_MAX)                                                                     \
    X(u64, count, UINT64_MAX)                                                                  \
    X(str, name, CSN_GATEWAY_NAME_MAX)                                                         \
    X(str, address, CSN_GATEWAY_ADDRESS_MAX)                                                   \
    X(str, rule, CSN_GATEWAY_RULE_MAX)                                                         \
    X(str, hint, CSN_GATEWAY_RULE_MAX)                                                         \
    X(str, why, CSN_GATEWAY_WHY_MAX)

#define PUT(type, field, max) csn_put_##type(o, m->field);
#define GET(type, field, max) m->field = get_##type(in, max);

static void set_error(int *error, int value)
{
    if (*error == 0)
        *error = value;
}

static uint64_t get_u64(csn_unpacker *in, uint64_t max)
{
    uint64_t v = csn_get_u64(in);

    if (v > max)
        set_error(&in->error, EPROTO);
    return v;
}

static uint32_t get_u32(csn_unpacker *in, uint32_t max)
{
    uint32_t v = csn_get_u32(in);

    if (v > max)
        set_error(&in->error, EPROTO);
    return v;
}

static int64_t get_i64(csn_unpacker *in, int64_t unused)
{
    (void)unused;
    return csn_get_i64(in);
}

static const char *get_str(csn_unpacker *in, size_t max)
{
    return csn_get_str(in, max, false);
}

static int end_of(const csn_unpacker *in)
{
    return csn_unpacker_end(in) < 0 ? -EPROTO : 0;
}

/* ---- rules ----------------------------------------------------------------------------- */

static void put_list(csn_packer *o, const char *const *v)
{
    uint32_t n = 0;

    while (v && v[n] && n <= CSN_GATEWAY_RULES_MAX)
        n++;
    if (n > CSN_GATEWAY_RULES_MAX) {
        set_error(&o->error, E2BIG);
        return;
    }
    csn_put_u32(o, n);
    for (uint32_t i = 0; i < n; i++)
        csn_put_str(o, v[i]);
}

/* Stores the strings unless v is NULL. Returns their number. */
static size_t get_list(csn_unpacker *in, const char **v)
{
    uint32_t n = get_u32(in, CSN_GATEWAY_RULES_MAX);

    for (uint32_t i = 0; i < n && in->error == 0; i++) {
        const char *s = get_str(in, CSN_GATEWAY_RULE_MAX);
        if (v)
            v[i] = s;
    }
    return n;
}

void csn_put_gateway_rules(csn_packer *o, const csn_gateway_rules *r)
{
    csn_put_u32(o, r->mode);
    put_list(o, r->allow);
    put_list(o, r->deny);
}

/* Reads the lists twice: to check and count them, then to fill one block of the right size. */
static int get_rules(csn_unpacker *in, csn_gateway_rules *ret)
{
    csn_gateway_rules r = {.mode = get_u32(in, CSN_GATEWAY_ALL)};
    csn_unpacker again = *in;
    size_t allow = get_list(in, NULL), deny = get_list(in, NULL);

    if (in->error != 0)
        return -EPROTO;
    const char **v = calloc(allow + deny + 2, sizeof(*v));
    if (!v)
        return -ENOMEM;
    r.heap = v;
    r.allow = v;
    r.deny = v + allow + 1;
    (void)get_list(&again, r.allow);
    (void)get_list(&again, r.deny);
    *ret = r;
    return 0;
}

int csn_get_gateway_rules(const void *body, size_t len, csn_gateway_rules *ret)
{
    csn_unpacker in;

    csn_unpacker_init(&in, body, len);
    int rc = get_rules(&in, ret);
    if (rc == 0 && end_of(&in) < 0) {
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

static void put_ports(csn_packer *o, const csn_gateway_port *ports, uint32_t n)
{
    if (n > CSN_GATEWAY_PORTS_MAX) {
        set_error(&o->error, E2BIG);
        return;
    }
    csn_put_u32(o, n);
    for (const csn_gateway_port *m = ports; m < ports + n; m++) {
        PORT_FIELDS(PUT)
    }
}

static uint32_t get_ports(csn_unpacker *in, csn_gateway_port *ports, bool outside_may_be_0)
{
    uint32_t n = get_u32(in, CSN_GATEWAY_PORTS_MAX);

    for (csn_gateway_port *m = ports; in->error == 0 && m < ports + n; m++) {
        PORT_FIELDS(GET)
        if (m->inside == 0 || (m->outside == 0 && !outside_may_be_0))
            set_error(&in->error, EPROTO);
    }
    return n;
}

void csn_put_gateway_setup(csn_packer *o, const csn_gateway_setup_msg *m)
{
    SETUP_IDS(PUT)
    csn_put_gateway_rules(o, &m->rules);
    put_ports(o, m->publish, m->npublish);
    put_ports(o, m->host_ports, m->nhost_ports);
    SETUP_LIMITS(PUT)
}

int csn_get_gateway_setup(const void *body, size_t len, csn_gateway_setup_msg *ret)
{
    csn_gateway_setup_msg msg = {0}, *m = &msg;
    csn_unpacker unpacker, *in = &unpacker;

    csn_unpacker_init(in, body, len);
    SETUP_IDS(GET)
    int rc = get_rules(in, &m->rules);
    if (rc < 0)
        return rc;
    m->npublish = get_ports(in, m->publish, true);
    m->nhost_ports = get_ports(in, m->host_ports, false);
    SETUP_LIMITS(GET)
    if (end_of(in) < 0 || (m->flags & ~CSN_GATEWAY_ALL_FLAGS) != 0) {
        csn_gateway_setup_msg_release(m);
        return -EPROTO;
    }
    *ret = *m;
    return 0;
}

void csn_gateway_setup_msg_release(csn_gateway_setup_msg *s)
{
    csn_gateway_rules_release(&s->rules);
    *s = (csn_gateway_setup_msg){0};
}

size_t csn_gateway_setup_msg_fds(const csn_gateway_setup_msg *s)
{
    return (size_t)__builtin_popcount(s->flags & CSN_GATEWAY_FDS) + s->nhost_ports;
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
    r.n = get_u32(&in, CSN_GATEWAY_PORTS_MAX);
    for (uint32_t i = 0; in.error == 0 && i < r.n; i++) {
        r.port[i] = get_u32(&in, UINT16_MAX);
        if (r.port[i] == 0)
            return -EPROTO;
    }
    *ret = r;
    return end_of(&in);
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
    *ret = csn_get_u64(&in);
    return end_of(&in);
}

void csn_put_gateway_batch(csn_packer *o, const csn_gateway_batch *m)
{
    BATCH_FIELDS(PUT)
}

int csn_get_gateway_batch(csn_unpacker *in, csn_gateway_batch *m)
{
    BATCH_FIELDS(GET)
    /* A reader would repeat for ever a request that says `more` but advances nothing. */
    return in->error != 0 || (m->more && m->count == 0) ? -EPROTO : 0;
}

void csn_put_gateway_event(csn_packer *o, const csn_gateway_event *m)
{
    EVENT_FIELDS(PUT)
}

int csn_get_gateway_event(csn_unpacker *in, csn_gateway_event *m)
{
    EVENT_FIELDS(GET)
    return in->error != 0 || m->count == 0 ? -EPROTO : 0;
}

int csn_get_gateway_text(const void *body, size_t len, const char **ret)
{
    csn_unpacker in;

    csn_unpacker_init(&in, body, len);
    *ret = get_str(&in, CSN_GATEWAY_TEXT_MAX);
    return end_of(&in);
}
