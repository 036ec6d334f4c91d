/* jail_gateway.c: what the library does when the gateway does not answer. This program is the
 * gateway: it counts the requests and answers when the test says so. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "backend/jail/gateway.h"
#include "base/clock.h"
#include "base/error.h"

typedef struct peer {
    csn_gateway gateway;
    int theirs;
} peer;

static peer peer_new(void)
{
    peer p = {.gateway = CSN_GATEWAY_NONE};
    int pair[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
    p.gateway.control = pair[0];
    p.theirs = pair[1];
    return p;
}

static void peer_free(peer *p)
{
    csn_gateway_release(&p->gateway);
    close(p->theirs);
}

/* The channel of the next request; -1: there is none. */
static int next_request(const peer *p)
{
    uint8_t buf[512];
    csn_msg m;

    if (csn_msg_recv(p->theirs, buf, sizeof(buf), &m) != 1)
        return -1;
    int channel = csn_msg_take_fd(&m, 0);
    csn_msg_release(&m);
    return channel;
}

static int no_event(void *ctx, const csn_gateway_event *e)
{
    (void)ctx;
    (void)e;
    fail_msg("there is no event");
    return 0;
}

/* As after a command whose deadline has just passed. */
static csn_status ask_events(peer *p)
{
    uint64_t seq = 0, lost = 0;

    return csn_gateway_events(&p->gateway, csn_gateway_patience(1), &seq, no_event, NULL, &lost,
                              NULL);
}

static void silent_gateway_is_asked_once(void **state)
{
    peer p = peer_new();

    (void)state;
    assert_int_equal(ask_events(&p), CSN_UNAVAILABLE);
    int first = next_request(&p);
    assert_true(first >= 0);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(ask_events(&p), CSN_UNAVAILABLE);
        assert_int_equal(next_request(&p), -1);
    }
    const csn_gateway_rules rules = {.mode = CSN_GATEWAY_ALL};
    assert_int_equal(csn_gateway_update(&p.gateway, &rules, NULL), CSN_UNAVAILABLE);
    assert_int_equal(next_request(&p), -1);
    assert_true(csn_gateway_is_alive(&p.gateway));
    close(first);
    peer_free(&p);
}

/* Its answer arrives after it was continued. */
static void gateway_that_answers_late_is_asked_again(void **state)
{
    peer p = peer_new();

    (void)state;
    assert_int_equal(ask_events(&p), CSN_UNAVAILABLE);
    int first = next_request(&p);
    assert_int_equal(csn_msg_send(first, CSN_GATEWAY_OK, NULL, 0, NULL, 0, 1), 0);
    close(first);
    assert_int_equal(ask_events(&p), CSN_UNAVAILABLE);
    int second = next_request(&p);
    assert_true(second >= 0);
    close(second);
    peer_free(&p);
}

static void patience_ends_with_the_deadline_of_the_command(void **state)
{
    uint64_t now = csn_now_ns(), soon = now + 1000000000u, far = now + 3600000000000u;

    (void)state;
    assert_true(csn_gateway_patience(0) > soon);
    assert_int_equal(csn_gateway_patience(soon), soon);
    assert_true(csn_gateway_patience(far) < far);
    assert_true(csn_gateway_patience(1) >= now && csn_gateway_patience(1) <= csn_now_ns());
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(silent_gateway_is_asked_once),
        cmocka_unit_test(gateway_that_answers_late_is_asked_again),
        cmocka_unit_test(patience_ends_with_the_deadline_of_the_command),
    };

    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
