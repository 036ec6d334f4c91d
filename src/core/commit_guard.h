/* commit_guard.h: finds changes of a copy-on-write workspace that programs of the host would
 * run, so that csn_commit holds them back. */
#pragma once
#include "caisson/caisson.h"
#include "layers/changes.h"

typedef struct csn_commit_guard csn_commit_guard;

/* stack and changes must outlive the guard. The config's rules that name a protected file allow
 * it. */
csn_status csn_commit_guard_new(const csn_config *config, const csn_layer_stack *stack,
                                const csn_layer_changes *changes, csn_commit_guard **ret,
                                csn_error **err);
void csn_commit_guard_free(csn_commit_guard *g);
/* Why the change is held back, or NULL. The text lives as long as the program. */
const char *csn_commit_guard_rule(csn_commit_guard *g, const csn_layer_change *c);
