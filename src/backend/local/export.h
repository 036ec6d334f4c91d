/* export.h: what the registry may know of the local backend. */
#pragma once
#include <stdbool.h>

#include "caisson/backend.h"

const csn_backend_ops *csn_local_backend(void);
/* A state for file operations below any host directory: no home, no commands, no policy. Close
 * it with the table's close. */
csn_status csn_local_host_open(const char *dir, bool make, void **ret_state, csn_error **err);
