/* agent_presets.h: what the option `agent` grants to a coding agent that runs in a sandbox.
 *
 * A preset is a list of rows, each one option with one value and its reason. core/agent.c adds
 * them to a configuration; `caisson policy agent NAME` prints them. In base, because the
 * library and the command line both use them. */
#pragma once
#include <stdbool.h>

/* The presets, as choices of the option. */
#define CSN_AGENT_NAMES "claude|codex|gemini"
/* Not an option: the file in the agent's home that holds its login. */
#define CSN_AGENT_LOGIN "login"

typedef struct csn_agent_row {
    const char *agent;
    const char *option; /* JSON name (base/options.h), or CSN_AGENT_LOGIN */
    const char *value;  /* of "home": below caisson's data directory (os/statedir.h) */
    const char *why;
} csn_agent_row;

extern const csn_agent_row csn_agent_rows[]; /* ends with an agent of NULL */
bool csn_agent_known(const char *name);
