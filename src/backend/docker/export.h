/* export.h: what remote/module.c may know of the docker backend. */
#pragma once
#include "caisson/backend.h"

const csn_backend_ops *csn_docker_backend(void);
