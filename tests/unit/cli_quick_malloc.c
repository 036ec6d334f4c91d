/* The memory of the quick program: contents survive everything done to other blocks, from
 * several threads too; impossible sizes are refused; every misuse it promises to find ends the
 * process. Its functions have other names here, so that the test keeps malloc. */
#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../child.h"

void *quick_malloc(size_t size);
void *quick_calloc(size_t count, size_t size);
void *quick_realloc(void *p, size_t size);
void quick_free(void *p);
void *quick_aligned_alloc(size_t alignment, size_t size);
void *quick_memalign(size_t alignment, size_t size);
size_t quick_malloc_usable_size(void *p);

#define malloc             quick_malloc
#define calloc             quick_calloc
#define realloc            quick_realloc
#define free               quick_free
#define aligned_alloc      quick_aligned_alloc
#define memalign           quick_memalign
#define malloc_usable_size quick_malloc_usable_size
#include "cli/quick_malloc.c"
#undef malloc
#undef calloc
#undef realloc
#undef free
#undef aligned_alloc
#undef memalign
#undef malloc_usable_size

#define BLOCKS 300
#define ROUNDS 20000

typedef struct block {
    unsigned char *p;
    size_t size;
    unsigned char fill;
} block;

static uint32_t next_random(uint32_t *x)
{
    *x ^= *x << 13;
    *x ^= *x >> 17;
    *x ^= *x << 5;
    return *x;
}

/* Mostly small, a few on both sides of the border to mappings. */
static size_t some_size(uint32_t *x)
{
    switch (next_random(x) % 64) {
    case 0:
        return SMALL_MAX - 20 + next_random(x) % 40;
    case 1:
        return next_random(x) % (4 * SMALL_MAX);
    case 2:
        return 0;
    default:
        return next_random(x) % (16u << next_random(x) % 9);
    }
}

static bool holds(const block *b, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (b->p[i] != b->fill)
            return false;
    return true;
}

/* One step on one block; false: something is not as it was left. */
static bool step(block *b, uint32_t *x)
{
    size_t size = some_size(x), had = b->size;
    bool cleared = false;

    if (b->p && !holds(b, had))
        return false;
    if (b->p && next_random(x) % 3 == 0) {
        quick_free(b->p);
        *b = (block){0};
        return true;
    }
    if (b->p) {
        b->p = quick_realloc(b->p, size);
        if (!b->p || !holds(b, had < size ? had : size))
            return false;
    } else {
        cleared = next_random(x) % 2 == 0;
        b->p = cleared ? quick_calloc(1, size) : quick_malloc(size);
        b->fill = 0;
        if (!b->p || (cleared && !holds(b, size)))
            return false;
    }
    b->size = size;
    b->fill = (unsigned char)next_random(x);
    memset(b->p, b->fill, size);
    return (uintptr_t)b->p % 16 == 0 && quick_malloc_usable_size(b->p) >= size;
}

static void *work(void *seed)
{
    static const char wrong[] = "wrong";
    uint32_t x = *(uint32_t *)seed;
    block blocks[BLOCKS] = {0};
    bool ok = true;

    for (int i = 0; i < ROUNDS && ok; i++)
        ok = step(&blocks[next_random(&x) % BLOCKS], &x);
    for (int i = 0; i < BLOCKS; i++) {
        ok = ok && holds(&blocks[i], blocks[i].size);
        quick_free(blocks[i].p);
    }
    return ok ? NULL : (void *)(uintptr_t)wrong;
}

static void contents_survive_in_four_threads(void **state)
{
    (void)state;
    uint32_t seeds[4] = {1, 77, 4711, 123456789};
    pthread_t t[4];

    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&t[i], NULL, work, &seeds[i]), 0);
    for (int i = 0; i < 4; i++) {
        void *result;
        assert_int_equal(pthread_join(t[i], &result), 0);
        assert_null(result);
    }
}

static void what_was_freed_is_used_again(void **state)
{
    (void)state;
    void *p = quick_malloc(1000);
    quick_free(p);
    assert_ptr_equal(quick_malloc(900), p);
    quick_free(p);
    unsigned char *c = quick_calloc(90, 10);
    assert_ptr_equal(c, p);
    for (size_t i = 0; i < 900; i++)
        assert_int_equal(c[i], 0);
    quick_free(c);
}

static void impossible_sizes_are_refused(void **state)
{
    (void)state;
    char *p = quick_malloc(1);
    char *large = quick_malloc(2 * SMALL_MAX);

    assert_null(quick_malloc(SIZE_MAX));
    assert_null(quick_malloc((size_t)PTRDIFF_MAX + 1));
    assert_null(quick_calloc(SIZE_MAX / 2, 3));
    assert_null(quick_realloc(p, SIZE_MAX - 8));
    assert_null(quick_realloc(large, SIZE_MAX - 8));
    assert_null(quick_aligned_alloc(64, 64));
    assert_int_equal(errno, ENOMEM);
    quick_free(p);
    quick_free(large);
    quick_free(NULL);
    assert_int_equal(quick_malloc_usable_size(NULL), 0);
}

/* ---- misuse --------------------------------------------------------------------------------
 */

static int twice(void *size)
{
    char *p = quick_malloc(*(size_t *)size);
    quick_free(p);
    quick_free(p);
    return 0;
}

static int never_given(void *unused)
{
    char *p = quick_malloc(4000);
    (void)unused;
    quick_free(p + 64);
    return 0;
}

/* Two blocks of which one ends where the other starts. */
static void neighbours(size_t size, char **ret_p, char **ret_q)
{
    char *p, *q = quick_malloc(size);

    do {
        p = q;
        q = quick_malloc(size);
    } while (q != p + quick_malloc_usable_size(p) + sizeof(head));
    *ret_p = p;
    *ret_q = q;
}

static int too_far(void *unused)
{
    char *p, *q;
    (void)unused;
    neighbours(100, &p, &q);
    memset(p, 'x', quick_malloc_usable_size(p) + 16);
    quick_free(q);
    return 0;
}

static int into_a_free_one(void *unused)
{
    char *p, *q;
    (void)unused;
    neighbours(200, &p, &q);
    quick_free(q);
    memset(p, 'x', quick_malloc_usable_size(p) + 16);
    return quick_malloc(200) == NULL;
}

static void misuse_ends_the_process(void **state)
{
    (void)state;
    size_t small = 40;
    int (*const body[])(void *) = {twice, never_given, too_far, into_a_free_one};

    for (size_t i = 0; i < sizeof(body) / sizeof(body[0]); i++) {
        csn_child_end end = csn_child_run(body[i], &small, -1, 60000);
        assert_int_equal(end.signal, SIGABRT);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(contents_survive_in_four_threads),
        cmocka_unit_test(what_was_freed_is_used_again),
        cmocka_unit_test(impossible_sizes_are_refused),
        cmocka_unit_test(misuse_ends_the_process),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
