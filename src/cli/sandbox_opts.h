/* sandbox_opts.h: turns the SANDBOX OPTIONS of run, create and mcp into a csn_config. */
#pragma once
#include "base/arena.h"
#include "base/options.h"
#include "caisson/caisson.h"
#include "cli/args.h"
#include "cli/cli.h"

typedef struct csn_sandbox_opts {
    csn_config values;         /* set by the parser, which owns the strings and lists */
    bool on[CSN_OPTION_COUNT]; /* likewise, for rows of CSN_TYPE_FLAG */
    char **workspace;          /* each --workspace */
    char **policy;
    const char *profile;
    bool no_project;
    uint64_t timeout_ms; /* set by the command: its default on this machine; 0: the library's */
    csn_config given;    /* set by csn_sandbox_opts_config: the command line alone */
} csn_sandbox_opts;

/* The rows of base/options.h that have a flag, and --policy. Filled by csn_sandbox_opts_init,
 * which main() calls before it parses anything. */
extern csn_opt csn_sandbox_opt_table[];
void csn_sandbox_opts_init(void);

/* Merges the user's config.json, the project's caisson.json, each --policy file and the
 * options, in this order; lists append, single values override. Everything in *ret lives in the
 * arena. */
csn_status csn_sandbox_opts_config(csn_sandbox_opts *o, csn_arena *a, csn_config *ret,
                                   csn_error **err);
/* Sets o->given: the command line alone. */
csn_status csn_sandbox_opts_given(csn_sandbox_opts *o, csn_arena *a, csn_error **err);
/* As csn_cli_fail, for an error of csn_open. The message names an option of the command line as
 * the user typed it (--memory), any other one by its JSON name (limits.memory). */
int csn_sandbox_opts_fail(csn_cli *c, const csn_sandbox_opts *o, const csn_config *config,
                          csn_error *err);
/* Prints one line on stderr if no workspace was given and the current directory is a
 * subdirectory of a git repository, whose top is then not in the sandbox. */
void csn_sandbox_opts_hint_repository(const csn_cli *c, const csn_config *config);
/* Prints one line on stderr when the sandbox has less isolation than its backend promises. */
void csn_sandbox_opts_warn(const csn_cli *c, const csn_config *config);
