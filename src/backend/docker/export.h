/* export.h: public entry point of the docker backend, for remote/module.c. */
#pragma once
#include "caisson/backend.h"

const csn_backend_ops *csn_docker_backend(void);
