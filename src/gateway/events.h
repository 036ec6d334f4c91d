/* events.h: what the gateway allowed and refused, for the audit log and for `denials`.
 *
 * A ring: a process inside can make any number of events, and the newest are the ones that
 * explain what just failed. The same refusal again, before anybody read of it, is counted. */
#pragma once
#include "gateway/proto.h"

typedef struct gw_events gw_events;

/* NULL without memory. */
gw_events *gw_events_new(void);
void gw_events_free(gw_events *e);
/* Copies the strings, of which NULL is "". seq, time and count are set here. Without memory the
 * event counts as dropped. */
void gw_events_add(gw_events *e, const csn_gateway_event *ev);
/* The answer to EVENTS: from `since` on, as many as fit into one packet. */
void gw_events_put(gw_events *e, uint64_t since, csn_packer *o);
