/* export.h: the jail backend's entry for the backend registry. */
#pragma once
#include "caisson/backend.h"

const csn_backend_ops *csn_jail_backend(void);
