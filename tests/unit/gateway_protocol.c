/* gateway_protocol.c: the protocol between library and gateway, without a gateway. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "gateway/protocol.h"

static const char *const ALLOW[] = {"ok.test:443,80", "*.ok.test", NULL};
static const char *const DENY[] = {"bad.ok.test", NULL};

static csn_gateway_setup_msg example(void)
{
    return (csn_gateway_setup_msg){.flags = CSN_GATEWAY_FD_PROXY | CSN_GATEWAY_FD_LINK |
                                            CSN_GATEWAY_DETACHED,
                                   .uid = 7,
                                   .gid = 8,
                                   .rules = {.mode = CSN_GATEWAY_LISTED,
                                             .allow = (const char **)(uintptr_t)ALLOW,
                                             .deny = (const char **)(uintptr_t)DENY},
                                   .npublish = 1,
                                   .publish = {{8080, 0}},
                                   .nhost_ports = 2,
                                   .host_ports = {{5432, 5432}, {6379, 7000}},
                                   .idle_ms = 1000};
}

static void setup_comes_back(void **state)
{
    csn_gateway_setup_msg s = example(), got;
    csn_packer o;

    (void)state;
    csn_packer_init(&o, NULL, 0);
    csn_put_gateway_setup(&o, &s);
    assert_int_equal(o.error, 0);
    assert_int_equal(csn_get_gateway_setup(o.data, o.len, &got), 0);
    assert_int_equal(got.flags, s.flags);
    assert_string_equal(got.rules.allow[1], "*.ok.test");
    assert_null(got.rules.allow[2]);
    assert_string_equal(got.rules.deny[0], "bad.ok.test");
    assert_int_equal(got.host_ports[1].outside, 7000);
    assert_int_equal(got.idle_ms, 1000);
    assert_int_equal(csn_gateway_setup_msg_fds(&got), 4);
    csn_gateway_rules_release(&got.rules);
    /* cut anywhere, it is refused */
    for (size_t n = 0; n < o.len; n++)
        assert_int_equal(csn_get_gateway_setup(o.data, n, &got), -EPROTO);
    csn_packer_release(&o);
}

static void refused(const csn_gateway_setup_msg *s)
{
    csn_gateway_setup_msg got;
    csn_packer o;

    csn_packer_init(&o, NULL, 0);
    csn_put_gateway_setup(&o, s);
    assert_true(o.error != 0 || csn_get_gateway_setup(o.data, o.len, &got) == -EPROTO);
    csn_packer_release(&o);
}

static void setups_that_mean_nothing_are_refused(void **state)
{
    (void)state;
    csn_gateway_setup_msg s = example();
    s.flags |= 1u << 12;
    refused(&s);
    s = example();
    s.rules.mode = 9;
    refused(&s);
    s = example();
    s.publish[0].inside = 0;
    refused(&s);
    s = example();
    s.host_ports[0].outside = 0; /* only a published port may be any */
    refused(&s);
    s = example();
    s.host_ports[0].outside = 65536;
    refused(&s);
    s = example();
    s.npublish = CSN_GATEWAY_PORTS_MAX + 1;
    refused(&s);
    s = example();
    s.connections_max = CSN_GATEWAY_CONNECTIONS_MAX + 1;
    refused(&s);
}

static void too_many_rules_are_not_sent(void **state)
{
    const char **many = calloc(CSN_GATEWAY_RULES_MAX + 2, sizeof(*many));
    csn_gateway_rules r = {.allow = many};
    csn_packer o;

    (void)state;
    for (size_t i = 0; i <= CSN_GATEWAY_RULES_MAX; i++)
        many[i] = "x";
    csn_packer_init(&o, NULL, 0);
    csn_put_gateway_rules(&o, &r);
    assert_int_equal(o.error, E2BIG);
    csn_packer_release(&o);
    free(many);
}

static void events_come_back(void **state)
{
    csn_gateway_event e = {.seq = 9,
                           .kind = CSN_GATEWAY_CONNECT,
                           .verdict = CSN_GATEWAY_DENY,
                           .proto = CSN_GATEWAY_TLS,
                           .port = 443,
                           .count = 2,
                           .name = "evil.test",
                           .address = "",
                           .rule = "",
                           .hint = "evil.test:443",
                           .why = "no rule"},
                      got;
    csn_gateway_batch b = {.next = 10, .count = 1}, gotb;
    csn_packer o;
    csn_unpacker in;

    (void)state;
    csn_packer_init(&o, NULL, 0);
    csn_put_gateway_batch(&o, &b);
    csn_put_gateway_event(&o, &e);
    csn_unpacker_init(&in, o.data, o.len);
    assert_int_equal(csn_get_gateway_batch(&in, &gotb), 0);
    assert_int_equal(csn_get_gateway_event(&in, &got), 0);
    assert_int_equal(csn_unpacker_end(&in), 0);
    assert_int_equal(gotb.next, 10);
    assert_string_equal(got.hint, "evil.test:443");
    assert_int_equal(got.count, 2);
    csn_packer_release(&o);
}

static void a_batch_that_never_ends_is_refused(void **state)
{
    csn_gateway_batch b = {.next = 10, .more = 1}, got;
    csn_packer o;
    csn_unpacker in;

    (void)state;
    csn_packer_init(&o, NULL, 0);
    csn_put_gateway_batch(&o, &b);
    csn_unpacker_init(&in, o.data, o.len);
    assert_int_equal(csn_get_gateway_batch(&in, &got), -EPROTO);
    csn_packer_release(&o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(setup_comes_back),
        cmocka_unit_test(setups_that_mean_nothing_are_refused),
        cmocka_unit_test(too_many_rules_are_not_sent),
        cmocka_unit_test(events_come_back),
        cmocka_unit_test(a_batch_that_never_ends_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
