/* arena.h: bump allocation with one free. A result struct lives in its own arena and keeps the
 * pointer to it. */
#pragma once
#include <stdarg.h>
#include <stddef.h>

#include "base/cleanup.h"

typedef struct csn_arena csn_arena;

csn_arena *csn_arena_new(void); /* NULL: out of memory */
void csn_arena_free(csn_arena *a);
CSN_DEFINE_CLEANUP(csn_arena, csn_arena_free)

/* Makes the memory of `other`, which ends, part of `a`. */
void csn_arena_adopt(csn_arena *a, csn_arena *other);

/* Zeroed, aligned for any type. NULL when out of memory. */
void *csn_arena_alloc(csn_arena *a, size_t size);
void *csn_arena_array(csn_arena *a, size_t count, size_t size);  /* checks the product */
char *csn_arena_strdup(csn_arena *a, const char *s);             /* NULL in, NULL out */
char *csn_arena_memdup(csn_arena *a, const void *p, size_t len); /* adds a NUL */
char *csn_arena_printf(csn_arena *a, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* A copy of a NULL-terminated list of strings; NULL in, NULL out. */
char **csn_arena_strv(csn_arena *a, const char *const *v);
