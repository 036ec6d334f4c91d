/* api_network.h: network rules of a sandbox, of one call, and the audit of connections. */
#pragma once
#include "caisson/caisson.h"

/* Sets sb->expanded: presets of package managers become rules, if the backend has rules. */
csn_status csn_network_expand(csn_sandbox *sb, csn_error **err);
/* exec_network.c. The rules of one call, from allowed_domains and package_managers; malloc'd.
 * NULL: the call names none and has the network of the sandbox. CSN_DENIED: the sandbox does
 * not allow one of them. */
csn_status csn_network_restrict(csn_sandbox *sb, const csn_exec_opts *o, char ***ret,
                                csn_error **err);
/* Do the rules allow HOST or HOST:PORT? CSN_OK, or CSN_DENIED with the denial. */
csn_status csn_network_would_allow(csn_sandbox *sb, const char *target, csn_error **err);
/* Writes new connections to the audit log; called at the end of a command and of the sandbox.
 */
csn_status csn_network_log(csn_sandbox *sb, csn_error **err);
