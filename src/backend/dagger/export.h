/* export.h: public entry point of the dagger backend, for remote/module.c. */
#pragma once
#include "caisson/backend.h"

const csn_backend_ops *csn_dagger_backend(void);
