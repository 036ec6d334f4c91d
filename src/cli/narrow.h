/* narrow.h: what a configuration grants beyond the one that holds without it. */
#pragma once
#include <stdbool.h>

#include "base/options.h"
#include "caisson/caisson.h"

/* What holds without the file in question. */
typedef struct csn_narrow_base {
    const csn_config *config;    /* of the user; `backend` is the one that would be used */
    const char *const *commands; /* of the user's files and options; NULL: all */
    bool own_workspace;          /* the workspace is the directory of the file */
} csn_narrow_base;

/* True if the value of `o` in `c` is one that grants nothing. `o` is set in `c`. */
bool csn_option_narrows(const csn_option *o, const csn_config *c, const csn_narrow_base *base);
/* Stores the names of the options of `c` that grant something: at most CSN_OPTION_COUNT, then
 * NULL. Returns how many there are. */
size_t csn_config_widening(const csn_config *c, const csn_narrow_base *base,
                           const char *ret_names[CSN_OPTION_COUNT + 1]);
