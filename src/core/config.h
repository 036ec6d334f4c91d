/* config.h: copies, checks, parses and encodes a csn_config. */
#pragma once
#include <stdbool.h>

#include "base/arena.h"
#include "base/buf.h"
#include "caisson/caisson.h"

/* A deep copy with the backend's name filled in (see csn_config.backend), after all checks that
 * need no backend. Free with csn_config_free. */
csn_status csn_config_take(const csn_config *config, csn_config **ret, csn_error **err);
/* As csn_config_take, with what the preset of `agent` grants (core/agent.h); for a new sandbox.
 */
csn_status csn_config_take_new(const csn_config *config, csn_config **ret, csn_error **err);
/* Checks network rules, presets and ports; CSN_INVALID names the first wrong one. */
csn_status csn_config_check_net(const csn_config *c, csn_error **err);
/* Rules with the operation net are network rules. csn_config_check_host checks one of them;
 * csn_config_move_net moves all to net_allow and net_deny, adds the ports of localhost:PORT to
 * host_ports, and returns false if out of memory. */
csn_status csn_config_check_host(const char *host, size_t i, csn_error **err);
bool csn_config_move_net(csn_arena *a, csn_config *c);
/* For rules that replace those of a sandbox: CSN_UNSUPPORTED names the first port of loopback
 * in `allow` that its configuration does not lend. */
csn_status csn_config_lends(const csn_config *c, const char *const *allow, csn_error **err);
bool csn_config_lends_port(const csn_config *c, uint16_t port); /* is it in host_ports? */
/* Writes the JSON that csn_config_parse reads back. 0 or errno. */
int csn_config_encode(const csn_config *c, csn_buf *out);
/* Makes relative host paths absolute, so that another process can connect later. cwd_default: a
 * missing workspace becomes the current directory. */
csn_status csn_config_resolve(csn_config *c, bool cwd_default, csn_error **err);
