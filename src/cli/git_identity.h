/* git_identity.h: the caller's name and address for commits in a sandbox. */
#pragma once
#include "cli/cli.h"

/* Gives a new jail with a private home (config->home is NULL) the user.name and user.email of
 * the caller's git configuration. Best effort: without them git asks for them. */
void csn_cli_git_identity(const csn_cli *c, const csn_config *config);
