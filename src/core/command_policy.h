/* command_policy.h: what the core itself decides: command words and per-operation exec rules.
 * Paths are judged by policy/rules where the kernel has resolved them.
 *
 * Words, not files: `git` in the list allows whatever the shell finds as git. A guard rail for
 * honest agents, not isolation; the backend's walls are that.
 *  - With config.commands only the listed words may run; an exec rule of config.rules allows or
 *    denies a word or a glob over words. The most specific one decides (a whole word before a
 *    glob), deny wins ties. With neither, everything may run and nothing is parsed.
 *  - In a shell string every command word counts, also in substitutions, here-documents,
 * function bodies, and what exec, command, builtin, eval and trap are given. What cannot be
 * known before it runs ($cmd, globs, unbalanced quotes) is refused.
 *  - Reserved words are no commands. Builtins that cannot run another program are allowed
 * without being listed (a rule may still deny them): : [ break cd continue declare dirs echo
 * exit export false getopts jobs let local popd printf pushd pwd read readonly return set shift
 * test times trap true type typeset ulimit umask unset wait. All others must be listed to be
 * used, so eval exec command builtin source . alias hash enable env xargs sudo ... too.
 *  - A function that the same line defined before, at its top, may be called. */
#pragma once
#include "caisson/caisson.h"

typedef struct csn_policy csn_policy;

csn_status csn_policy_new(const csn_config *config, csn_policy **ret, csn_error **err);
void csn_policy_free(csn_policy *p);
/* May this run? `command` is the shell string, or NULL for plain argv (then argv[0]'s last
 * component is the word; a path with a slash must itself be in the list or end in a listed
 * word). CSN_DENIED with a denial: op exec, target the word, rule, hint "--allow-command WORD".
 */
csn_status csn_policy_command(const csn_policy *p, const char *command, const char *const *argv,
                              csn_error **err);
