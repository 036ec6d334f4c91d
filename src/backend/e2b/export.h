/* export.h: what remote/module.c may know of the e2b backend. */
#pragma once
#include "caisson/backend.h"

const csn_backend_ops *csn_e2b_backend(void);
