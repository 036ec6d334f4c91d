/* policy_explain.h: describes a configuration in words. */
#pragma once
#include <stdbool.h>

#include "caisson/caisson.h"

typedef struct csn_lines {
    char **v;    /* free with csn_strv_free */
    bool failed; /* out of memory */
} csn_lines;

/* Appends one sentence for each thing that the configuration allows or refuses. */
/* The same for what an agent preset grants, with the reasons. */
void csn_policy_explain_agent(csn_lines *l, const char *agent);
void csn_policy_explain(csn_lines *l, const csn_config *c);
