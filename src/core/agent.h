/* agent.h: applies the option `agent` (base/agent_presets.h). */
#pragma once
#include "base/arena.h"
#include "caisson/caisson.h"

/* CSN_INVALID for an agent without preset; the hint names the nearest one. */
csn_status csn_agent_check(const char *name, csn_error **err);
/* Adds what the preset of c->agent grants. Lists grow at their start; a home that is set stays.
 * Once for a sandbox: its record has the result. */
csn_status csn_agent_expand(csn_arena *a, csn_config *c, csn_error **err);
/* Makes the home that csn_agent_expand has chosen, if it is missing. */
csn_status csn_agent_make_home(const csn_config *c, csn_error **err);
