/* events.h: what the gateway allowed and refused, for the audit log and for `denials`.
 *
 * A ring: a process inside can make any number of events, and the newest are the ones that
 * explain what just failed. The same refusal again, before anybody read of it, is counted. */
#pragma once
#include "gateway/proto.h"

typedef struct csn_events csn_events;

/* NULL without memory. */
csn_events *csn_events_new(void);
void csn_events_free(csn_events *e);
/* Copies the strings, of which NULL is "". seq, time and count are set here. Without memory the
 * event counts as dropped. */
void csn_events_add(csn_events *e, const csn_gate_event *ev);
/* The answer to EVENTS: from `since` on, as many as fit into one packet. */
void csn_events_put(csn_events *e, uint64_t since, csn_wire_out *o);
