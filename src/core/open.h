/* open.h: opening a backend and saving the record of a sandbox (sandbox.c). */
#pragma once
#include "caisson/caisson.h"

/* Calls open (or connect) of the backend and reads its directories. Without lock: the caller
 * ensures that only one thread does this. */
csn_status csn_sandbox_start(csn_sandbox *sb, csn_error **err);
/* The record of a detached one, as it is now. With the lock held. */
csn_status csn_sandbox_save(csn_sandbox *sb, csn_error **err);
