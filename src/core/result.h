/* result.h: a result is one struct in its own arena; freeing the arena frees everything. */
#pragma once
#include "base/arena.h"

/* A zeroed struct of `size` bytes whose arena is found again from its address. NULL: no memory.
 */
void *csn_result_new(size_t size);
csn_arena *csn_result_arena(void *result);
void csn_result_free(void *result); /* NULL is fine */
