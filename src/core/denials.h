/* denials.h: what a command was refused, from all who know something of it.
 *
 * The backend tells while the command runs and when it is asked why it failed; the core adds
 * what it knows itself. Everything ends in the result of the command. */
#pragma once
#include <stdbool.h>

#include "base/arena.h"
#include "caisson/backend.h"

#define CSN_DENIALS_MAX 64u

/* Zero but for the arena. Costs nothing until there is a first one. */
typedef struct csn_denials {
    csn_arena *arena; /* the result's: owns the list and all texts */
    csn_denial *items;
    size_t count;
    bool failed; /* out of memory */
} csn_denials;

/* 0 or ENOMEM. */
int csn_denial_copy(csn_arena *a, const csn_denial *from, csn_denial *to);
/* A csn_deny_sink's tell: ctx is a csn_denials. Keeps a copy. What was told already, and what
 * is beyond the ceiling, is dropped. */
void csn_denials_tell(void *ctx, const csn_denial *d);
/* The limit that ended a command; its backend has said which one, and how large it is. */
void csn_denials_tell_limit(csn_denials *ds, const csn_exec_end *end);
/* Variables of a call that it cannot have. */
void csn_denials_tell_env(csn_denials *ds, const char *const *env);
