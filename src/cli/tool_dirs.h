/* tool_dirs.h: shares the tools that a version manager installed in the caller's home. */
#pragma once
#include "base/arena.h"
#include "cli/cli.h"

/* Adds to `read` of the config what the command needs that the caller's PATH would start, if it
 * is in a directory of a known version manager below HOME. argv0: a name, or NULL for every
 * such directory of PATH, for a shell or a sandbox whose commands are not known yet. Prints one
 * line if another program of that name would start inside, or none. Does nothing for other
 * backends than jail. Everything added is in the arena. */
csn_status csn_tool_dirs_add(const csn_cli *c, csn_arena *a, csn_config *config,
                             const char *argv0, csn_error **err);
/* True for programs that start others by their names: sh, make, a script of the project. */
bool csn_tool_starts_others(const char *argv0);
