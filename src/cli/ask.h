/* ask.h: turns the denials of a run into the smallest grants, and asks for them. */
#pragma once
#include "base/arena.h"
#include "cli/cli.h"

typedef struct csn_ask_opts {
    bool ask;         /* --ask */
    const char *file; /* --ask-file */
} csn_ask_opts;

extern const csn_opt csn_ask_opt_table[];

/* Refuses options that cannot be honoured, before anything runs: 0, or an exit status. */
int csn_ask_check(const csn_cli *c, const csn_ask_opts *o);
/* Writes the grants that `hints` (csn_denial.hint, may be NULL) offer to the file. Returns 0,
 * or an exit status. */
int csn_ask_write(const csn_cli *c, const csn_ask_opts *o, const char *const *hints);
/* Asks on the terminal for each grant. Adds what the user allows to *config; what is for the
 * project also goes into its caisson.json, which is then trusted. *ret_again: something was
 * allowed. */
int csn_ask_user(const csn_cli *c, csn_arena *a, const char *const *hints, csn_config *config,
                 bool *ret_again);
