/* bash.h: a backend of nothing but exec: commands on this host, GNU tools and all. */
#pragma once
#include "caisson/backend.h"

/* Registers backend "bash", whose commands start in root_dir (an existing directory; copied).
 * 0, or -1 with a reason from csn_test_backend_why(). Once in a process. SIGPIPE is ignored
 * after. */
int csn_test_register_bash(const char *root_dir);
/* Why the last registration of a test backend failed; good as the text of a skip. */
const char *csn_test_backend_why(void);
/* The same without registering it: the table and a state to free, or NULL. */
const csn_backend_ops *csn_test_bash_ops(const char *root_dir, void **ret_state);
void csn_test_bash_free(void *state);
