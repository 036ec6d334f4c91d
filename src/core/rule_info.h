/* rule_info.h: says what enforces each rule of a config, and refuses a rule that binds nothing
 * but file calls without saying so. */
#pragma once
#include "base/arena.h"
#include "caisson/backend.h"

/* Fills rules and rule_count of *r: those of the config, then those that the backend added by
 * itself (`from`). 0 or ENOMEM. */
int csn_rule_info_list(csn_arena *a, const csn_backend_ops *ops, const csn_config *c,
                       const csn_info_result *from, csn_info_result *r);
/* What enforces the rule with this source ("config.deny[0]") for commands; NULL: none has it.
 */
const char *csn_rule_info_enforced(const csn_backend_ops *ops, const csn_config *c,
                                   const char *source);
/* Refuses a rule that the backend cannot enforce for commands and that lacks CSN_RULE_FILES. */
csn_status csn_rule_info_check(const csn_backend_ops *ops, const csn_config *c,
                               csn_error **err);
