/* export.h: what remote/module.c may know of the vercel backend. */
#pragma once
#include "caisson/backend.h"

const csn_backend_ops *csn_vercel_backend(void);
