/* pid.h: checks and opens the PID argument of `kill` and `logs`. */
#pragma once
#include "cli/cli.h"

/* Checks the form of c->arg[1]. 0, or an exit status after a message. */
int csn_cli_check_pid(csn_cli *c);
/* Opens the background process c->arg[1] names. 0, or an exit status after a message. */
int csn_cli_open_process(const csn_cli *c, csn_process **ret);
