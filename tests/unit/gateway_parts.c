/* gateway_parts.c: the gateway's tables and clocks, without a gateway. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "gateway/events.h"
#include "gateway/loop.h"
#include "gateway/name_table.h"
#include "gateway/relay.h"

/* ---- names ------------------------------------------------------------------------------- */

static csn_domain domain(const char *text)
{
    csn_domain d;

    assert_true(csn_domain_parse_lookup(text, strlen(text), &d, NULL));
    return d;
}

static csn_domain numbered(unsigned i)
{
    char text[64];

    snprintf(text, sizeof(text), "n%u.test", i);
    return domain(text);
}

static void a_name_keeps_its_number_and_has_one_address_a_family(void **state)
{
    gw_names *n = gw_names_new();
    csn_domain ok = domain("ok.test"), other = domain("other.test"), got;
    bool fresh;
    uint32_t back;

    (void)state;
    uint32_t a = gw_names_number(n, &ok, &fresh);
    assert_true(fresh);
    uint32_t b = gw_names_number(n, &other, &fresh);
    assert_int_not_equal(a, b);
    assert_int_equal(gw_names_number(n, &ok, &fresh), a);
    assert_false(fresh);
    for (unsigned family = 4; family <= 6; family += 2) {
        csn_netaddr addr = gw_names_address(b, family);
        assert_true(gw_names_from_address(&addr, &back));
        assert_int_equal(back, b);
    }
    assert_true(gw_names_get(n, b, &got));
    assert_string_equal(got.text, "other.test");
    assert_false(gw_names_get(n, 0, &got));
    assert_false(gw_names_get(n, 1, &got)); /* the stub itself */
    assert_false(gw_names_get(n, b + 1, &got));
    gw_names_free(n);
}

static void addresses_beyond_the_numbers_are_ours_and_nobodys(void **state)
{
    static const char *const rows[] = {"198.19.255.255", "fd63:6169:7373:1::2",
                                       "fd63:6169:7373::1:0:2"};
    gw_names *n = gw_names_new();
    csn_netaddr a;
    csn_domain got;
    uint32_t number;

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        assert_true(csn_netaddr_parse(rows[i], strlen(rows[i]), &a));
        assert_true(gw_names_from_address(&a, &number));
        assert_false(gw_names_get(n, number, &got));
    }
    assert_true(csn_netaddr_parse("198.20.0.2", 10, &a));
    assert_false(gw_names_from_address(&a, &number));
    gw_names_free(n);
}

/* The oldest that nobody holds gives its number away, and only then. */
static void a_full_table_forgets_the_oldest_that_is_free(void **state)
{
    gw_names *n = gw_names_new();
    csn_domain d, got;
    bool fresh;

    (void)state;
    for (unsigned i = GW_NAMES_FIRST; i < GW_NAMES_MAX; i++) {
        d = numbered(i);
        assert_int_equal(gw_names_number(n, &d, &fresh), i);
    }
    gw_names_hold(n, 2); /* the oldest has a connection; the next is asked for again */
    d = numbered(3);
    assert_int_equal(gw_names_number(n, &d, &fresh), 3);
    d = domain("new.test");
    assert_int_equal(gw_names_number(n, &d, &fresh), 4);
    assert_true(gw_names_get(n, 4, &got));
    assert_string_equal(got.text, "new.test");
    assert_true(gw_names_get(n, 2, &got));
    assert_string_equal(got.text, "n2.test");
    gw_names_release(n, 2);
    d = domain("newer.test");
    assert_int_equal(gw_names_number(n, &d, &fresh), 2);
    d = numbered(4); /* forgotten, so it is new */
    (void)gw_names_number(n, &d, &fresh);
    assert_true(fresh);
    gw_names_free(n);
}

/* ---- events ------------------------------------------------------------------------------ */

static csn_gateway_batch read_batch(gw_events *e, uint64_t since, csn_gateway_event *first)
{
    csn_gateway_batch b;
    csn_gateway_event ev = {0};
    csn_packer o;
    csn_unpacker in;

    csn_packer_init(&o, NULL, 0);
    gw_events_put(e, since, &o);
    assert_int_equal(o.error, 0);
    assert_true(o.len + sizeof(csn_msg_head) <= CSN_KEEPER_MSG_MAX);
    csn_unpacker_init(&in, o.data, o.len);
    assert_int_equal(csn_get_gateway_batch(&in, &b), 0);
    for (uint32_t i = 0; i < b.count; i++) {
        assert_int_equal(csn_get_gateway_event(&in, &ev), 0);
        if (i == 0 && first)
            *first = (csn_gateway_event){.seq = ev.seq, .count = ev.count};
    }
    assert_int_equal(csn_unpacker_end(&in), 0);
    csn_packer_release(&o);
    return b;
}

static void the_ring_tells_what_it_lost(void **state)
{
    char name[CSN_GATEWAY_NAME_MAX + 100], rule[CSN_GATEWAY_RULE_MAX + 100];
    csn_gateway_event ev = {
        .kind = CSN_GATEWAY_CONNECT, .name = name, .rule = rule, .why = rule};
    gw_events *e = gw_events_new();
    uint64_t since = 0, seen = 0;
    csn_gateway_batch b;

    (void)state;
    memset(name, 'n', sizeof(name) - 1); /* over every ceiling: cut, not refused */
    memset(rule, 'r', sizeof(rule) - 1);
    name[sizeof(name) - 1] = rule[sizeof(rule) - 1] = '\0';
    for (unsigned i = 0; i < CSN_GATEWAY_EVENTS_MAX + 100; i++)
        gw_events_add(e, &ev);
    b = read_batch(e, since, NULL);
    assert_int_equal(b.dropped, 100);
    for (;;) {
        seen += b.count;
        since = b.next;
        if (!b.more)
            break;
        b = read_batch(e, since, NULL);
        assert_int_equal(b.dropped, 0);
    }
    assert_int_equal(seen, CSN_GATEWAY_EVENTS_MAX);
    assert_int_equal(since, CSN_GATEWAY_EVENTS_MAX + 101);
    gw_events_free(e);
}

static void only_the_same_refusal_is_counted(void **state)
{
    csn_gateway_event ev = {
        .kind = CSN_GATEWAY_NAME, .verdict = CSN_GATEWAY_DENY, .name = "a.test"};
    gw_events *e = gw_events_new();
    csn_gateway_event first;

    (void)state;
    gw_events_add(e, &ev);
    gw_events_add(e, &ev);
    ev.port = 80;
    gw_events_add(e, &ev);
    ev.verdict = CSN_GATEWAY_ALLOW;
    gw_events_add(e, &ev);
    gw_events_add(e, &ev);
    csn_gateway_batch b = read_batch(e, 0, &first);
    assert_int_equal(b.count, 4);
    assert_int_equal(first.count, 2);
    gw_events_free(e);
}

static void count_denial(void *ctx, const csn_gateway_event *ev)
{
    assert_int_equal(ev->verdict, CSN_GATEWAY_DENY);
    assert_string_equal(ev->why, "");
    ++*(int *)ctx;
}

static void a_new_denial_is_told_at_once_and_is_not_delivered_by_that(void **state)
{
    csn_gateway_event ev = {.kind = CSN_GATEWAY_NAME, .name = "a.test"}, first;
    gw_events *e = gw_events_new();
    int told = 0;

    (void)state;
    gw_events_on_denial(e, count_denial, &told);
    gw_events_add(e, &ev);
    assert_int_equal(told, 0);
    ev.verdict = CSN_GATEWAY_DENY;
    gw_events_add(e, &ev);
    gw_events_add(e, &ev);
    assert_int_equal(told, 1);
    ev.name = "b.test";
    gw_events_add(e, &ev);
    assert_int_equal(told, 2);
    assert_int_equal(read_batch(e, 2, &first).count, 2);
    assert_int_equal(first.count, 2);
    gw_events_free(e);
}

/* ---- timers ------------------------------------------------------------------------------ */

static gw_loop loop;
static uint64_t fired[64];
static size_t nfired;

static void on_timer(gw_timer *t)
{
    fired[nfired++] = t->due_ns;
    if (loop.armed == 0)
        loop.stop = true;
}

static void timers_fire_in_their_order_and_the_disarmed_do_not(void **state)
{
    gw_timer t[64];
    uint32_t seed = 5;

    (void)state;
    assert_int_equal(gw_loop_init(&loop), 0);
    for (size_t i = 0; i < 64; i++) {
        assert_int_equal(gw_timer_reserve(&loop, &t[i], on_timer), 0);
        seed = seed * 1664525u + 1013904223u;
        gw_timer_arm(&loop, &t[i], loop.now_ns + seed % 1000000);
    }
    for (size_t i = 0; i < 64; i += 2)
        gw_timer_disarm(&loop, &t[i]);
    gw_timer_arm(&loop, &t[1], loop.now_ns + 2000000); /* set anew */
    assert_int_equal(gw_loop_run(&loop), 0);
    assert_int_equal(nfired, 32);
    for (size_t i = 1; i < nfired; i++)
        assert_true(fired[i - 1] <= fired[i]);
    assert_int_equal(fired[31], t[1].due_ns);
    for (size_t i = 0; i < 64; i++)
        gw_timer_release(&loop, &t[i]);
    assert_int_equal(loop.reserved, 0);
    close(loop.epfd);
    free(loop.heap);
}

/* ---- inspections
 * ------------------------------------------------------------------------------- */

static gw_relay relay;

/* Lines pass when they are whole; one that starts with ! is thrown away for `INS`; one that
 * starts with # ends it all. */
static int by_lines(void *ctx, const uint8_t *data, size_t len, gw_inspection *ret)
{
    const uint8_t *nl = memchr(data, '\n', len);

    (void)ctx;
    if (!nl)
        return 0;
    size_t line = (size_t)(nl - data) + 1;
    if (data[0] == '#')
        return -EACCES;
    if (data[0] == '!') {
        ret->drop = line;
        ret->insert = "INS";
        ret->insert_len = 3;
    } else {
        ret->pass = line;
    }
    gw_pipeline_resume(ctx);
    return 0;
}

static void move_text(const char *const *pieces, const char *want, int want_rc)
{
    int a[2], b[2];
    char got[256] = "";
    gw_pipeline pipeline;
    int rc = 0;

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, a), 0);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, b), 0);
    gw_endpoint from = {.io = {.fd = a[1]}}, to = {.io = {.fd = b[0]}, .writable = true};
    gw_pipeline_init(&pipeline);
    pipeline.inspect = by_lines;
    pipeline.inspect_ctx = &pipeline;
    for (; *pieces && rc >= 0; pieces++) {
        assert_int_equal(send(a[0], *pieces, strlen(*pieces), 0), strlen(*pieces));
        do {
            gw_endpoint_update(&from, EPOLLIN);
            rc = gw_pipeline_move(&relay, &pipeline, &from, &to);
        } while (rc == GW_MOVE_MORE);
    }
    if (want_rc == GW_MOVE_DONE) {
        shutdown(a[0], SHUT_WR);
        gw_endpoint_update(&from, EPOLLIN | EPOLLRDHUP);
        rc = gw_pipeline_move(&relay, &pipeline, &from, &to);
    }
    assert_int_equal(rc, want_rc);
    assert_true(recv(b[1], got, sizeof(got) - 1, MSG_DONTWAIT) >= -1);
    assert_string_equal(got, want);
    gw_pipeline_release(&relay, &pipeline);
    for (int i = 0; i < 2; i++) {
        close(a[i]);
        close(b[i]);
    }
}

static void an_inspection_passes_drops_inserts_and_holds_back(void **state)
{
    static const char *const whole[] = {"one\ntwo\n", NULL};
    static const char *const cut[] = {"o", "ne\ntw", "o\nthr", NULL};
    static const char *const swapped[] = {"a\n!gone\nb\n", "!x", "y\nc\n", NULL};
    static const char *const bad[] = {"a\n#no\nb\n", NULL};

    (void)state;
    gw_relay_init(&relay);
    move_text(whole, "one\ntwo\n", GW_MOVE_WAIT);
    move_text(cut, "one\ntwo\n", GW_MOVE_WAIT);
    move_text(cut, "one\ntwo\n", GW_MOVE_DONE); /* half a line is not passed on */
    move_text(swapped, "a\nINSb\nINSc\n", GW_MOVE_WAIT);
    move_text(bad, "a\n", -EACCES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_name_keeps_its_number_and_has_one_address_a_family),
        cmocka_unit_test(addresses_beyond_the_numbers_are_ours_and_nobodys),
        cmocka_unit_test(a_full_table_forgets_the_oldest_that_is_free),
        cmocka_unit_test(the_ring_tells_what_it_lost),
        cmocka_unit_test(only_the_same_refusal_is_counted),
        cmocka_unit_test(a_new_denial_is_told_at_once_and_is_not_delivered_by_that),
        cmocka_unit_test(timers_fire_in_their_order_and_the_disarmed_do_not),
        cmocka_unit_test(an_inspection_passes_drops_inserts_and_holds_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
