/* export.h: public entry point of the vercel backend, for remote/module.c. */
#pragma once
#include "caisson/backend.h"

const csn_backend_ops *csn_vercel_backend(void);
