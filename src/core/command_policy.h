/* command_policy.h: decides which commands a call may run, by config.commands and the exec
 * rules.
 *
 * A guard rail for honest agents, not isolation: an allowed program may start any other.
 *
 *  - With config.commands only the listed words may run; an exec rule of config.rules allows or
 *    denies a word or a pattern. The most specific one decides (a whole word before a pattern),
 *    deny wins ties. With neither, everything may run and nothing is parsed.
 *  - A name stands for the file that the sandbox's PATH finds. A word with a slash is allowed
 *    only by a rule that names that path; `**` allows both. No call may set PATH or another
 *    variable that decides what runs (policy/shell_builtin.c has the list).
 *  - A shell string is split into simple commands (policy/shell_line.h); any other construct is
 *    refused. Builtins that run nothing need no listing, though a rule may deny them. */
#pragma once
#include "caisson/caisson.h"

typedef struct csn_policy csn_policy;

csn_status csn_policy_new(const csn_config *config, csn_policy **ret, csn_error **err);
void csn_policy_free(csn_policy *p);
/* Checks one command. `command` is the shell string, or NULL for argv; `env` are the variables
 * of the call, or NULL. CSN_DENIED with a denial: op exec, target the word, rule, hint. */
csn_status csn_policy_command(const csn_policy *p, const char *command, const char *const *argv,
                              const char *const *env, csn_error **err);
