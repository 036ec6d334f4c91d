/* export.h: what remote/module.c may know of the dagger backend. */
#pragma once
#include "caisson/backend.h"

const csn_backend_ops *csn_dagger_backend(void);
