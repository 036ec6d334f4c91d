/* events.h: the record of allowed and refused connections, for the audit log and `denials`.
 *
 * Events are kept in a ring buffer: processes inside can cause any number of them, and the
 * newest explain the latest failure. Until a denial has been delivered, a repetition increments
 * its count instead of adding an event. */
#pragma once
#include "gateway/protocol.h"

typedef struct gw_events gw_events;

/* NULL: out of memory. */
gw_events *gw_events_new(void);
void gw_events_free(gw_events *e);
/* Calls fn for each new denial, not for repetitions. */
void gw_events_on_denial(gw_events *e, void (*fn)(void *ctx, const csn_gateway_event *ev),
                         void *ctx);
/* Copies the strings; NULL becomes "". Sets seq, time and count. Out of memory, the event
 * counts as dropped. */
void gw_events_add(gw_events *e, const csn_gateway_event *ev);
/* The reply to EVENTS: events from `since` on that fit into one packet. */
void gw_events_put(gw_events *e, uint64_t since, csn_packer *o);
