/* Arenas: alignment, zeroing, large blocks, refusals. */
#include <setjmp.h>
#include <stdalign.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/arena.h"

static void alloc_is_zeroed_aligned_and_apart(void **state)
{
    (void)state;
    CSN_CLEANUP(csn_arena_freep) csn_arena *a = csn_arena_new();
    enum { N = 3000 };
    unsigned char *p[N];

    for (size_t i = 0; i < N; i++) {
        size_t size = i * 37 % 300 + (i % 500 == 0 ? 100000 : 0);
        p[i] = csn_arena_alloc(a, size);
        assert_non_null(p[i]);
        assert_int_equal((uintptr_t)p[i] % alignof(max_align_t), 0);
        for (size_t k = 0; k < size; k++)
            assert_int_equal(p[i][k], 0);
        memset(p[i], (int)(i % 255 + 1), size);
    }
    for (size_t i = 0; i < N; i++) {
        size_t size = i * 37 % 300 + (i % 500 == 0 ? 100000 : 0);
        for (size_t k = 0; k < size; k++)
            assert_int_equal(p[i][k], i % 255 + 1);
    }
}

static void impossible_sizes_are_refused(void **state)
{
    (void)state;
    CSN_CLEANUP(csn_arena_freep) csn_arena *a = csn_arena_new();

    assert_null(csn_arena_alloc(a, SIZE_MAX));
    assert_null(csn_arena_alloc(a, SIZE_MAX - 20));
    assert_null(csn_arena_array(a, SIZE_MAX / 2, 3));
    assert_null(csn_arena_memdup(a, "x", SIZE_MAX));
    assert_non_null(csn_arena_alloc(a, 0));
    assert_string_equal(csn_arena_strdup(a, "still works"), "still works");
}

static void copies_are_deep_and_terminated(void **state)
{
    (void)state;
    CSN_CLEANUP(csn_arena_freep) csn_arena *a = csn_arena_new();
    char one[] = "one";
    const char *const v[] = {one, "two", NULL};
    char **copy = csn_arena_strv(a, v);

    one[0] = 'X';
    assert_string_equal(copy[0], "one");
    assert_string_equal(copy[1], "two");
    assert_null(copy[2]);
    assert_null(csn_arena_strv(a, NULL));
    assert_null(csn_arena_strdup(a, NULL));
    assert_memory_equal(csn_arena_memdup(a, "a\0b", 3), "a\0b", 4);
    assert_string_equal(csn_arena_memdup(a, NULL, 0), "");
}

static void printf_handles_short_and_long_texts(void **state)
{
    (void)state;
    CSN_CLEANUP(csn_arena_freep) csn_arena *a = csn_arena_new();

    assert_string_equal(csn_arena_printf(a, "%d-%s", 7, "x"), "7-x");
    for (int n = 250; n < 260; n++)
        assert_int_equal(strlen(csn_arena_printf(a, "%*d", n, 1)), n);
    assert_int_equal(strlen(csn_arena_printf(a, "%70000d", 1)), 70000);
}

static void freeing_nothing_is_fine(void **state)
{
    (void)state;
    csn_arena_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(alloc_is_zeroed_aligned_and_apart),
        cmocka_unit_test(impossible_sizes_are_refused),
        cmocka_unit_test(copies_are_deep_and_terminated),
        cmocka_unit_test(printf_handles_short_and_long_texts),
        cmocka_unit_test(freeing_nothing_is_fine),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
