/* api_network.h: reads and replaces the network rules of a sandbox, restricts those of one
 * call, and writes connections to the audit log. */
#pragma once
#include "caisson/caisson.h"

/* Sets sb->expanded, in which presets are replaced by rules, and by variables that name the
 * configured index, if the backend has network rules. */
csn_status csn_network_expand(csn_sandbox *sb, csn_error **err);
/* exec_network.c. Builds the malloc'd rules of one call from allowed_domains and
 * package_managers. *ret is NULL if the call has neither: it uses the sandbox's network.
 * CSN_DENIED: the sandbox's rules do not allow one of them. */
csn_status csn_network_restrict(csn_sandbox *sb, const csn_exec_opts *o, char ***ret,
                                csn_error **err);
/* Do the rules allow HOST or HOST:PORT? CSN_OK, or CSN_DENIED with the denial. */
csn_status csn_network_would_allow(csn_sandbox *sb, const char *target, csn_error **err);
/* Writes new connections to the audit log; called at the end of a command and of the sandbox.
 */
csn_status csn_network_log(csn_sandbox *sb, csn_error **err);
