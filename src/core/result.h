/* result.h: allocates each public result in its own arena, so that one free releases all of
 * it. */
#pragma once
#include "base/arena.h"

/* Returns a zeroed struct of `size` bytes; csn_result_arena finds its arena. NULL: out of
 * memory. */
void *csn_result_new(size_t size);
csn_arena *csn_result_arena(void *result);
void csn_result_free(void *result); /* accepts NULL */
