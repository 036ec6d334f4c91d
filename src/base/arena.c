/* arena.c: bump allocation with one free.
 *
 * Blocks double in size, so a list of a million entries costs a few dozen mallocs; a large
 * allocation gets a block of its own. The arena lives in its first block. Invariants: pointers
 * are aligned for any type and stay valid until csn_arena_free; every sum and product of sizes
 * is checked, since counts and lengths come from outside. Not thread-safe. */
#include "base/arena.h"

#include <stdalign.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/strv.h"

/* The first block fits a result with a path and a few numbers, and shares a page with others:
 * musl's malloc maps and unmaps larger ones one by one. The largest block stays below malloc's
 * mmap threshold. */
#define FIRST_BLOCK 1024u
#define LAST_BLOCK  (256u * 1024u)
#define ALIGN       alignof(max_align_t)

/* A list, newest first; the last block contains the arena. */
typedef struct block {
    struct block *next;
    size_t used, size; /* of data */
    alignas(max_align_t) unsigned char data[];
} block;

struct csn_arena {
    block *current;
    size_t next_size;
};

static block *block_new(size_t size)
{
    block *b = size <= SIZE_MAX - sizeof(*b) ? malloc(sizeof(*b) + size) : NULL;

    if (b)
        *b = (block){.size = size};
    return b;
}

csn_arena *csn_arena_new(void)
{
    block *b = block_new(FIRST_BLOCK - sizeof(block));

    if (!b)
        return NULL;
    csn_arena *a = (csn_arena *)b->data;
    *a = (csn_arena){.current = b, .next_size = 2 * FIRST_BLOCK};
    b->used = (sizeof(*a) + ALIGN - 1) / ALIGN * ALIGN;
    return a;
}

void csn_arena_free(csn_arena *a)
{
    block *b = a ? a->current : NULL;

    while (b) {
        block *next = b->next;
        free(b); /* the last one holds `a` */
        b = next;
    }
}

/* The blocks go behind the current one of `a`, so its first block stays the last. */
void csn_arena_adopt(csn_arena *a, csn_arena *other)
{
    block *first = other->current, *last = first;

    while (last->next)
        last = last->next;
    last->next = a->current->next;
    a->current->next = first;
}

/* Aligned, not cleared. */
static void *take(csn_arena *a, size_t size)
{
    block *b = a->current;

    if (size > SIZE_MAX - ALIGN)
        return NULL;
    size = (size + ALIGN - 1) / ALIGN * ALIGN;
    if (size <= b->size - b->used) {
        void *p = b->data + b->used;
        b->used += size;
        return p;
    }
    /* A large allocation gets a block of its own; the current block stays in use. */
    size_t room = a->next_size - sizeof(block);
    block *fresh = block_new(size > room / 4 ? size : room);
    if (!fresh)
        return NULL;
    fresh->used = size;
    if (size > room / 4) {
        fresh->next = b->next;
        b->next = fresh;
    } else {
        fresh->next = b;
        a->current = fresh;
        if (a->next_size < LAST_BLOCK)
            a->next_size *= 2;
    }
    return fresh->data;
}

void *csn_arena_alloc(csn_arena *a, size_t size)
{
    void *p = take(a, size);

    return p ? memset(p, 0, size) : NULL;
}

void *csn_arena_array(csn_arena *a, size_t count, size_t size)
{
    size_t total;

    return __builtin_mul_overflow(count, size, &total) ? NULL : csn_arena_alloc(a, total);
}

char *csn_arena_memdup(csn_arena *a, const void *p, size_t len)
{
    char *copy = len < SIZE_MAX ? take(a, len + 1) : NULL;

    if (!copy)
        return NULL;
    if (len > 0)
        memcpy(copy, p, len);
    copy[len] = '\0';
    return copy;
}

char *csn_arena_strdup(csn_arena *a, const char *s)
{
    return s ? csn_arena_memdup(a, s, strlen(s)) : NULL;
}

char *csn_arena_printf(csn_arena *a, const char *fmt, ...)
{
    char local[256]; /* long texts are formatted twice */
    va_list ap;

    va_start(ap, fmt);
    int n = vsnprintf(local, sizeof(local), fmt, ap);
    va_end(ap);
    if (n < 0)
        return NULL;
    if ((size_t)n < sizeof(local))
        return csn_arena_memdup(a, local, (size_t)n);
    char *text = take(a, (size_t)n + 1);
    if (!text)
        return NULL;
    va_start(ap, fmt);
    vsnprintf(text, (size_t)n + 1, fmt, ap);
    va_end(ap);
    return text;
}

char **csn_arena_strv(csn_arena *a, const char *const *v)
{
    size_t n = csn_strv_len(v);
    char **copy = v ? csn_arena_array(a, n + 1, sizeof(*copy)) : NULL;

    for (size_t i = 0; copy && i < n; i++) {
        copy[i] = csn_arena_strdup(a, v[i]);
        if (!copy[i])
            return NULL;
    }
    return copy;
}
