/* api_network.h: what happens on a sandbox's network, on record. */
#pragma once
#include "caisson/caisson.h"

/* What the backend is to be opened with: presets of package managers become rules, where it has
 * rules at all. */
csn_status csn_network_expand(csn_sandbox *sb, csn_error **err);
/* exec_network.c. The rules of one call, out of allowed_domains and package_managers; malloc'd.
 * NULL: it names none, and has the sandbox's network. CSN_INVALID, CSN_DENIED: what it asks for
 * is not to be had. */
csn_status csn_network_restrict(csn_sandbox *sb, const csn_exec_opts *o, char ***ret,
                                csn_error **err);
/* Do the rules allow HOST or HOST:PORT? CSN_OK, or CSN_DENIED with the denial. */
csn_status csn_network_would_allow(csn_sandbox *sb, const char *target, csn_error **err);
/* Writes every connection that is not in the audit log yet into it. Cheap, and nothing, where
 * there is no network. For the end of a command, and of the sandbox. */
csn_status csn_network_log(csn_sandbox *sb, csn_error **err);
