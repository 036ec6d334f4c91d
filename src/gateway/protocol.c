/* protocol.c: encodes and decodes the messages of protocol.h.
 *
 * Field tables describe most messages; functions handle lists. Linked into the library and the
 * gateway. Decoded bytes come from the other process, which may be compromised: every value is
 * checked, and encoding an accepted message yields the same bytes. Decoding has no side effects
 * and is fuzzed (fuzz_gateway_proto). */
#include "gateway/protocol.h"

#include <errno.h>
#include <string.h>

/* ---- tables ---------------------------------------------------------------------------- */

#define RULES_FIELDS(T, prefix)                                                                \
    CSN_FIELD(T, U32, prefix mode, 0, CSN_GATEWAY_ALL),                                        \
        CSN_FIELD(T, LIST, prefix allow, 0, CSN_GATEWAY_RULES_MAX),                            \
        CSN_FIELD(T, LIST, prefix deny, 0, CSN_GATEWAY_RULES_MAX),                             \
        CSN_FIELD(T, STRINGS, prefix strings, 0, 0)

static const csn_field rules_fields[] = {RULES_FIELDS(csn_gateway_rules, ), {0}};

/* SETUP consists of these fields, the two lists of ports, and the limits. */
static const csn_field setup_fields[] = {
    CSN_FIELD(csn_gateway_setup_msg, FLAGS, flags, 0, CSN_GATEWAY_ALL_FLAGS),
    CSN_FIELD(csn_gateway_setup_msg, U32, uid, 0, UINT32_MAX),
    CSN_FIELD(csn_gateway_setup_msg, U32, gid, 0, UINT32_MAX),
    RULES_FIELDS(csn_gateway_setup_msg, rules.),
    {0},
};
static const csn_field published_fields[] = {
    CSN_FIELD(csn_gateway_port, U32, inside, 1, UINT16_MAX),
    CSN_FIELD(csn_gateway_port, U32, outside, 0, UINT16_MAX),
    {0},
};
static const csn_field host_port_fields[] = {
    CSN_FIELD(csn_gateway_port, U32, inside, 1, UINT16_MAX),
    CSN_FIELD(csn_gateway_port, U32, outside, 1, UINT16_MAX),
    {0},
};
static const csn_field limits_fields[] = {
    CSN_FIELD(csn_gateway_setup_msg, U32, connections_max, 0, CSN_GATEWAY_CONNECTIONS_MAX),
    CSN_FIELD(csn_gateway_setup_msg, U32, names_per_second, 0, CSN_GATEWAY_NAMES_MAX),
    CSN_FIELD(csn_gateway_setup_msg, U32, idle_ms, 0, CSN_GATEWAY_IDLE_MS_MAX),
    {0},
};
static const csn_field batch_fields[] = {
    CSN_FIELD(csn_gateway_batch, U64, next, 0, UINT64_MAX),
    CSN_FIELD(csn_gateway_batch, U64, dropped, 0, UINT64_MAX),
    CSN_FIELD(csn_gateway_batch, U32, more, 0, 1),
    CSN_FIELD(csn_gateway_batch, U32, count, 0, CSN_GATEWAY_BATCH_MAX),
    {0},
};
static const csn_field event_fields[] = {
    CSN_FIELD(csn_gateway_event, U64, seq, 0, UINT64_MAX),
    CSN_FIELD(csn_gateway_event, I64, time_ms, 0, 0),
    CSN_FIELD(csn_gateway_event, U32, kind, 0, CSN_GATEWAY_KINDS - 1),
    CSN_FIELD(csn_gateway_event, U32, verdict, 0, CSN_GATEWAY_VERDICTS - 1),
    CSN_FIELD(csn_gateway_event, U32, proto, 0, CSN_GATEWAY_PROTOS - 1),
    CSN_FIELD(csn_gateway_event, U32, port, 0, UINT16_MAX),
    CSN_FIELD(csn_gateway_event, U64, up, 0, UINT64_MAX),
    CSN_FIELD(csn_gateway_event, U64, down, 0, UINT64_MAX),
    CSN_FIELD(csn_gateway_event, U64, ms, 0, UINT64_MAX),
    CSN_FIELD(csn_gateway_event, U64, count, 1, UINT64_MAX),
    CSN_FIELD(csn_gateway_event, TEXT, name, 0, CSN_GATEWAY_NAME_MAX),
    CSN_FIELD(csn_gateway_event, TEXT, address, 0, CSN_GATEWAY_ADDRESS_MAX),
    CSN_FIELD(csn_gateway_event, TEXT, rule, 0, CSN_GATEWAY_RULE_MAX),
    CSN_FIELD(csn_gateway_event, TEXT, hint, 0, CSN_GATEWAY_RULE_MAX),
    CSN_FIELD(csn_gateway_event, TEXT, why, 0, CSN_GATEWAY_WHY_MAX),
    {0},
};

/* ---- rules ----------------------------------------------------------------------------- */

static bool are_short(const char *const *rules)
{
    for (; *rules; rules++)
        if (strlen(*rules) > CSN_GATEWAY_RULE_MAX)
            return false;
    return true;
}

void csn_put_gateway_rules(csn_packer *o, const csn_gateway_rules *r)
{
    csn_put_fields(o, rules_fields, r);
}

int csn_get_gateway_rules(const void *body, size_t len, csn_gateway_rules *ret)
{
    csn_unpacker in;

    csn_unpacker_init(&in, body, len);
    int rc = csn_get_fields(&in, rules_fields, ret);
    if (rc < 0)
        return rc;
    if (csn_unpacker_end(&in) == 0 && are_short(ret->allow) && are_short(ret->deny))
        return 0;
    csn_gateway_rules_release(ret);
    return -EPROTO;
}

void csn_gateway_rules_release(csn_gateway_rules *r)
{
    csn_strings_release(&r->strings);
}

/* ---- set-up ---------------------------------------------------------------------------- */

static void put_ports(csn_packer *o, const csn_field *fields, const csn_gateway_port *p,
                      uint32_t n)
{
    if (n > CSN_GATEWAY_PORTS_MAX) {
        o->error = o->error ? o->error : E2BIG;
        return;
    }
    csn_put_u32(o, n);
    for (uint32_t i = 0; i < n; i++)
        csn_put_fields(o, fields, &p[i]);
}

static uint32_t get_ports(csn_unpacker *in, const csn_field *fields, csn_gateway_port *p)
{
    uint32_t n = csn_get_u32(in);

    if (n > CSN_GATEWAY_PORTS_MAX)
        in->error = EPROTO;
    for (uint32_t i = 0; i < n && in->error == 0; i++)
        (void)csn_get_fields(in, fields, &p[i]);
    return n;
}

void csn_put_gateway_setup(csn_packer *o, const csn_gateway_setup_msg *s)
{
    csn_put_fields(o, setup_fields, s);
    put_ports(o, published_fields, s->publish, s->npublish);
    put_ports(o, host_port_fields, s->host_ports, s->nhost_ports);
    csn_put_fields(o, limits_fields, s);
}

int csn_get_gateway_setup(const void *body, size_t len, csn_gateway_setup_msg *ret)
{
    csn_unpacker in;

    csn_unpacker_init(&in, body, len);
    int rc = csn_get_fields(&in, setup_fields, ret);
    if (rc < 0)
        return rc;
    ret->npublish = get_ports(&in, published_fields, ret->publish);
    ret->nhost_ports = get_ports(&in, host_port_fields, ret->host_ports);
    (void)csn_get_fields(&in, limits_fields, ret);
    if (csn_unpacker_end(&in) == 0 && are_short(ret->rules.allow) && are_short(ret->rules.deny))
        return 0;
    csn_gateway_rules_release(&ret->rules);
    return -EPROTO;
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
    csn_unpacker in;

    csn_unpacker_init(&in, body, len);
    ret->n = csn_get_u32(&in);
    if (ret->n > CSN_GATEWAY_PORTS_MAX)
        return -EPROTO;
    for (uint32_t i = 0; i < ret->n; i++) {
        ret->port[i] = csn_get_u32(&in);
        if (ret->port[i] == 0 || ret->port[i] > UINT16_MAX)
            return -EPROTO;
    }
    return csn_unpacker_end(&in);
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
    return csn_unpacker_end(&in);
}

void csn_put_gateway_batch(csn_packer *o, const csn_gateway_batch *b)
{
    csn_put_fields(o, batch_fields, b);
}

/* Rejects a batch with `more` but no events: the reader would repeat its request forever. */
int csn_get_gateway_batch(csn_unpacker *in, csn_gateway_batch *ret)
{
    int rc = csn_get_fields(in, batch_fields, ret);

    return rc == 0 && ret->more && ret->count == 0 ? -EPROTO : rc;
}

void csn_put_gateway_event(csn_packer *o, const csn_gateway_event *e)
{
    csn_put_fields(o, event_fields, e);
}

int csn_get_gateway_event(csn_unpacker *in, csn_gateway_event *ret)
{
    return csn_get_fields(in, event_fields, ret);
}

int csn_get_gateway_text(const void *body, size_t len, const char **ret)
{
    csn_unpacker in;

    csn_unpacker_init(&in, body, len);
    *ret = csn_get_str(&in, CSN_GATEWAY_TEXT_MAX, false);
    return csn_unpacker_end(&in);
}
