/* policy_explain.h: describes a configuration in words. */
#pragma once
#include <stdbool.h>

#include "caisson/caisson.h"

typedef struct csn_lines {
    char **v;    /* free with csn_strv_free */
    bool failed; /* out of memory */
} csn_lines;

/* Appends one sentence for each thing that the configuration allows or refuses. */
void csn_policy_explain(csn_lines *l, const csn_config *c);
