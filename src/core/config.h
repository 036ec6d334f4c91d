/* config.h: csn_config as an owned object: copied, checked, read from JSON, written to JSON. */
#pragma once
#include <stdbool.h>

#include "base/arena.h"
#include "base/buf.h"
#include "caisson/caisson.h"

/* A complete deep copy (backend name filled in from the environment, see csn_config.backend).
 * Checks what can be checked without a backend: names, env entries, rules. Free with
 * csn_config_free. */
csn_status csn_config_take(const csn_config *config, csn_config **ret, csn_error **err);
/* Network rules, presets and ports: CSN_INVALID names the first that is wrong. */
csn_status csn_config_check_net(const csn_config *c, csn_error **err);
/* Rules for the operation net are network rules: checks one, and moves all of a checked config
 * to where those are. false: no memory. */
csn_status csn_config_check_host(const char *host, size_t i, csn_error **err);
bool csn_config_move_net(csn_arena *a, csn_config *c);
/* The JSON that csn_config_parse reads back. 0 or errno. */
int csn_config_encode(const csn_config *c, csn_buf *out);
/* Makes the host paths of a config of ours absolute: what is relative is relative to this
 * process, and another one may connect later. No workspace means the current directory. */
csn_status csn_config_resolve_host(csn_config *c, csn_error **err);
/* The same for a backend that shares only the workspaces that are given. */
csn_status csn_config_resolve_given(csn_config *c, csn_error **err);
