/* agent.h: what the command line says about the option `agent` (base/agent_presets.h). */
#pragma once
#include "cli/cli.h"

/* Prints one line on stderr if the agent in the sandbox c->sb has neither a login in its home
 * nor an API key in the environment. */
void csn_cli_agent_note(const csn_cli *c, const csn_config *config, const char *home);
