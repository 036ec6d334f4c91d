/* packages.h: expands the names of package managers to network rules: the domains of the public
 * services and the hosts that the caller's tools are configured for. */
#pragma once
#include "caisson/caisson.h"

/* CSN_INVALID if a name is not a preset; `what` names the list in the message. */
csn_status csn_packages_check(const char *const *names, const char *what, csn_error **err);
/* Appends the rules of the presets `names` (csn_config.packages, or package_managers of a call)
 * to *rules, each once. Reads variables of this process, and files of the user and the system.
 * Files that the sandbox of `config` can write are not read. */
csn_status csn_packages_rules(const csn_config *config, const char *const *names, char ***rules,
                              csn_error **err);
/* Appends variables (NAME=value) to *env that give the tools inside the index of the same
 * variables and files, without credentials. A variable that config->env names is left out. */
csn_status csn_packages_env(const csn_config *config, const char *const *names, char ***env,
                            csn_error **err);
