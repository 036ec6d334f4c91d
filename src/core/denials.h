/* denials.h: collects the denials of one command from the backend and the core.
 *
 * The backend adds denials while the command runs and when it explains a failure. They become
 * part of the result. */
#pragma once
#include <stdbool.h>

#include "base/arena.h"
#include "caisson/backend.h"

#define CSN_DENIALS_MAX 64u

/* Initialise with zeros and the arena. */
typedef struct csn_denials {
    csn_arena *arena; /* the result's: owns the list and all texts */
    csn_denial *items;
    size_t count;
    bool failed; /* out of memory */
} csn_denials;

/* 0 or ENOMEM. */
int csn_denial_copy(csn_arena *a, const csn_denial *from, csn_denial *to);
/* The function of a csn_deny_sink; ctx is a csn_denials. Copies d. Duplicates, and denials
 * beyond the maximum, are dropped. */
void csn_denials_add(void *ctx, const csn_denial *d);
/* For csn_exec_req.live_denials; ctx is a csn_live_denials: adds it and passes a new one on. */
typedef struct csn_live_denials {
    csn_denials *found;
    csn_denial_fn fn; /* or NULL */
    void *ctx;
} csn_live_denials;
void csn_denials_add_live(void *ctx, const csn_denial *d);
/* Adds the refused connection to an unknown address (end->unrouted), unless another denial of
 * the network is known. */
void csn_denials_add_unrouted(csn_denials *ds, const csn_exec_end *end);
/* Adds the limit that ended the command (end->how, end->message). */
void csn_denials_add_limit(csn_denials *ds, const csn_exec_end *end);
/* Adds variables that a call cannot set. */
void csn_denials_add_env(csn_denials *ds, const char *const *env);
