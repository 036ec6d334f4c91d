/* export.h: public entry point of the e2b backend, for remote/module.c. */
#pragma once
#include "caisson/backend.h"

const csn_backend_ops *csn_e2b_backend(void);
