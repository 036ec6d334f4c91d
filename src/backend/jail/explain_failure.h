/* explain_failure.h: between explain_failure.c, which asks, and path_probe.c, which knows. */
#pragma once
#include <limits.h>

#include "backend/jail/jail.h"
#include "policy/explain.h"

/* Who asks, and the texts of the last answer. */
typedef struct csn_jail_looking {
    csn_kept *k;
    int host_root;   /* "/" of the caller, O_PATH */
    int inside_root; /* that of commands; the same where they have none of their own */
    char resolved[PATH_MAX], rule[PATH_MAX];
    char needs[256], source[48];
} csn_jail_looking;

/* csn_explain_in.look; ctx is a csn_jail_looking. */
void csn_jail_look(void *ctx, const char *path, csn_explain_fact *ret);
