/* export.h: what the registry may know of the jail backend. */
#pragma once
#include "caisson/backend.h"

const csn_backend_ops *csn_jail_backend(void);
