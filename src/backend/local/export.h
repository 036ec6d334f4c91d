/* export.h: what the registry may know of the local backend. */
#pragma once
#include "caisson/backend.h"

const csn_backend_ops *csn_local_backend(void);
