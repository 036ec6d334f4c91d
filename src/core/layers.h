/* layers.h: copies the layers of isolation into a result. */
#pragma once
#include "base/arena.h"
#include "caisson/caisson.h"

/* `from` may be NULL if count is 0. 0 or ENOMEM. */
int csn_layers_copy(csn_arena *a, const csn_layer *from, size_t count, const csn_layer **ret);
