/* open.h: opens the backend of a sandbox and saves the record of a detached one (sandbox.c). */
#pragma once
#include "caisson/caisson.h"

/* csn_open. forked_from: the id of the sandbox whose snapshot is the image, or NULL. */
csn_status csn_sandbox_open(const csn_config *config, const char *forked_from,
                            csn_sandbox **ret, csn_error **err);
/* Calls the backend's open or connect and reads its directories. The lock is not held: the
 * caller ensures that only one thread does this. */
csn_status csn_sandbox_start(csn_sandbox *sb, csn_error **err);
/* Writes the present record of a detached sandbox. With the lock held. */
csn_status csn_sandbox_save(csn_sandbox *sb, csn_error **err);
