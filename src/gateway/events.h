/* events.h: what the gateway allowed and refused, for the audit log and `denials`.
 *
 * A ring buffer: processes inside can cause any number of events, and the newest explain what
 * just failed. A repeated denial is counted instead of stored until the first is delivered. */
#pragma once
#include "gateway/protocol.h"

typedef struct gw_events gw_events;

/* NULL without memory. */
gw_events *gw_events_new(void);
void gw_events_free(gw_events *e);
/* Copies the strings; NULL becomes "". Sets seq, time and count. Without memory the event
 * counts as dropped. */
void gw_events_add(gw_events *e, const csn_gateway_event *ev);
/* The reply to EVENTS: events from `since` on that fit into one packet. */
void gw_events_put(gw_events *e, uint64_t since, csn_packer *o);
