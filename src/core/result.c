/* result.c: allocates public results, each in its own arena.
 *
 * The address of the arena is stored just before the public struct, so the struct needs no
 * private field for it. */
#include "core/result.h"

#include <stddef.h>
#include <string.h>

#define HEADER _Alignof(max_align_t)

_Static_assert(HEADER >= sizeof(csn_arena *), "the arena's address fits before the result");

void *csn_result_new(size_t size)
{
    csn_arena *a = csn_arena_new();
    char *block = a ? csn_arena_alloc(a, HEADER + size) : NULL;

    if (!block) {
        csn_arena_free(a);
        return NULL;
    }
    memcpy(block, &a, sizeof(a));
    return block + HEADER;
}

csn_arena *csn_result_arena(void *result)
{
    csn_arena *a;

    memcpy(&a, (char *)result - HEADER, sizeof(a));
    return a;
}

void csn_result_free(void *result)
{
    if (result)
        csn_arena_free(csn_result_arena(result));
}
