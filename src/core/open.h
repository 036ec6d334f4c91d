/* open.h: between sandbox.c, which owns the life of a sandbox, and call.c. */
#pragma once
#include "caisson/caisson.h"

/* Calls the backend's open (or connect) and takes over its directories. Not locked: the caller
 * sees to it that one thread does it. */
csn_status csn_sandbox_start(csn_sandbox *sb, csn_error **err);
/* The record of a detached one, as it is now. With the lock held. */
csn_status csn_sandbox_save(csn_sandbox *sb, csn_error **err);
