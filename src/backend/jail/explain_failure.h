/* explain_failure.h: finds out why a command failed: the path probe that policy/explain.h
 * calls. */
#pragma once
#include <limits.h>

#include "backend/jail/jail.h"
#include "policy/explain.h"

/* The sandbox, and buffers for the strings of the last result. */
typedef struct csn_path_probe_ctx {
    csn_runtime *rt;
    int host_root;   /* "/" of the caller, O_PATH */
    int inside_root; /* "/" of commands; landlock_only: equal to host_root */
    char resolved[PATH_MAX], rule[PATH_MAX];
    char needs[256], source[48];
} csn_path_probe_ctx;

/* csn_explain_in.probe; ctx is a csn_path_probe_ctx. */
void csn_path_probe(void *ctx, const char *path, csn_explain_fact *ret);
