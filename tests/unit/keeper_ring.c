/* keeper_ring.c: the ring of a background process's output. It is part of the keeper alone, so
 * the test takes it in whole. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include <cmocka.h>

#include "keeper/ring.c"

static void ring_keeps_the_newest_bytes(void **state)
{
    kp_ring r;
    char buf[64];
    uint64_t at = 0;
    int p[2];

    (void)state;
    assert_int_equal(pipe2(p, O_CLOEXEC | O_NONBLOCK), 0);
    kp_ring_init(&r, 10);
    assert_int_equal(kp_ring_fill(&r, p[0]), -EAGAIN);
    assert_int_equal(kp_ring_copy(&r, 0, buf, sizeof(buf), &at), 0);
    for (int i = 0; i < 26; i++) { /* one by one over the edge */
        char c = (char)('a' + i);
        assert_int_equal(write(p[1], &c, 1), 1);
        assert_int_equal(kp_ring_fill(&r, p[0]), 1);
    }
    assert_int_equal(r.total, 26);
    assert_int_equal(kp_ring_kept(&r), 10);
    assert_int_equal(kp_ring_copy(&r, 0, buf, sizeof(buf), &at), 10);
    assert_int_equal(at, 16);
    assert_memory_equal(buf, "qrstuvwxyz", 10);
    assert_int_equal(kp_ring_copy(&r, 20, buf, 3, &at), 3);
    assert_memory_equal(buf, "uvw", 3);
    assert_int_equal(kp_ring_copy(&r, 99, buf, 3, &at), 0);
    assert_int_equal(at, 26);
    assert_int_equal(write(p[1], "0123456789ABCDEF", 16), 16); /* more than all of it */
    while (kp_ring_fill(&r, p[0]) > 0)
        ;
    assert_int_equal(kp_ring_copy(&r, 0, buf, sizeof(buf), &at), 10);
    assert_memory_equal(buf, "6789ABCDEF", 10);
    kp_ring_release(&r);
    assert_int_equal(r.total, 42); /* still counted */
    close(p[0]);
    close(p[1]);
}

/* A terminal has one stream: asking for the other once divided by nothing and ended the keeper.
 */
static void ring_that_was_never_opened_is_empty(void **state)
{
    kp_ring r = {0};
    char buf[8];
    uint64_t at = 99;

    (void)state;
    assert_int_equal(kp_ring_copy(&r, 5, buf, sizeof(buf), &at), 0);
    assert_int_equal(at, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ring_keeps_the_newest_bytes),
        cmocka_unit_test(ring_that_was_never_opened_is_empty),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
