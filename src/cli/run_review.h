/* run_review.h: what `run --cow` does with the changes of its command. */
#pragma once
#include "cli/cli.h"

typedef struct csn_review_opts {
    const char *commit_on; /* success, always or never; NULL: ask on a terminal, else never */
    bool allow_protected;
} csn_review_opts;

extern const csn_opt csn_review_opt_table[];

/* Is the workspace of this config copy-on-write? */
bool csn_review_is_cow(const csn_config *config);
/* Refuses the options without a copy-on-write workspace: 0, or an exit status. */
int csn_review_check(const csn_cli *c, const csn_review_opts *o, const csn_config *config);
/* Commits the changes of c->sb, all or those of `paths`. Returns 0, or CSN_EXIT_BROKEN after a
 * message; the changes are then in a patch file. */
int csn_review_keep(const csn_cli *c, const csn_review_opts *o, const char *const *paths);
/* Shows the changes of c->sb on stderr, then keeps or discards them. `status` is the exit
 * status of the command. Returns it, or CSN_EXIT_BROKEN if changes could not be kept. */
int csn_review_run(csn_cli *c, const csn_review_opts *o, int status);
