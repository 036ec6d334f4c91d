/* commit_report.h: prints the result of a commit. */
#pragma once
#include "cli/cli.h"

/* One line of stdout for each change: what was done with it (dry: what would be). */
void csn_commit_print(const csn_commit_result *r, bool dry);
/* Reports the conflicts on stderr. written: the directory with their versions, or NULL. Returns
 * CSN_EXIT_FAILED. */
int csn_commit_conflicts(const csn_cli *c, const csn_commit_result *r, const char *written);
