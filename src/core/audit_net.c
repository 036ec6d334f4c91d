/* audit_net.c: writes the fields of one connection into a line of the audit log.
 *
 * Host and rule are untrusted; the gateway bounds them and the JSON writer escapes them. */
#include "core/audit_net.h"

#include "base/clock.h"

static void put(csn_json *j, const char *key, const char *s)
{
    if (s)
        csn_json_kstr(j, key, s);
}

void csn_audit_put_net(csn_json *j, const csn_net_event *e)
{
    char when[CSN_ISO_SIZE];

    csn_iso8601(e->time_ms * 1000000, when);
    csn_json_kstr(j, "at", when); /* the line may be written later */
    put(j, "kind", e->kind);
    put(j, "protocol", e->protocol);
    put(j, "host", e->host);
    put(j, "address", e->address);
    if (e->port)
        csn_json_kuint(j, "port", e->port);
    csn_json_kuint(j, "up", e->up);
    csn_json_kuint(j, "down", e->down);
    if (e->count > 1)
        csn_json_kuint(j, "count", e->count);
    put(j, "why", e->why);
    put(j, "hint", e->hint);
}
