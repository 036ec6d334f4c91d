/* explain_failure.h: between explain_failure.c, which asks, and path_probe.c, which knows. */
#pragma once
#include <limits.h>

#include "backend/jail/jail.h"
#include "policy/explain.h"

/* Who asks, and the texts of the last answer. */
typedef struct csn_path_probe_ctx {
    csn_runtime *rt;
    int host_root;   /* "/" of the caller, O_PATH */
    int inside_root; /* that of commands; the same where they have none of their own */
    char resolved[PATH_MAX], rule[PATH_MAX];
    char needs[256], source[48];
} csn_path_probe_ctx;

/* csn_explain_in.look; ctx is a csn_path_probe_ctx. */
void csn_path_probe(void *ctx, const char *path, csn_explain_fact *ret);
