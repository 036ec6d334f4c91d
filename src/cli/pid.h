/* pid.h: the argument PID, shared by kill and logs. */
#pragma once
#include "cli/cli.h"

/* Is c->arg[1] a pid at all? 0, or an exit status after a message. */
int csn_cli_check_pid(csn_cli *c);
/* Opens the background process c->arg[1] names. 0, or an exit status after a message. */
int csn_cli_open_process(const csn_cli *c, csn_process **ret);
