/* Addresses: strict text, networks, v4 inside v6, and which ranges are refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "child.h"
#include "policy/netaddr.h"
#include "policy/netport.h"

static csn_netaddr addr(const char *text)
{
    csn_netaddr a = {.family = 0};

    if (!csn_netaddr_parse(text, strlen(text), &a))
        fail_msg("%s is no address", text);
    return a;
}

static void text_is_strict(void **state)
{
    static const char *const bad[] = {
        "",          "1.2.3",           "1.2.3.4.5", "01.2.3.4", "1.2.3.04",
        "256.1.1.1", "0x7f.0.0.1",      "127.1",     "1.2.3.4 ", " 1.2.3.4",
        "1.2.3.-4",  "::1%lo",          "[::1]",     "1::2::3",  "12345::",
        ":::",       "1:2:3:4:5:6:7",   "fe80::1%1", "::1.2.3",  "1:2:3:4:5:6:7:8:9",
        "g::",       "::ffff:1.2.3.256"};
    csn_netaddr a;

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        if (csn_netaddr_parse(bad[i], strlen(bad[i]), &a))
            fail_msg("%s was taken for an address", bad[i]);
    assert_false(csn_netaddr_parse("1.2.3.4\0", 8, &a));
}

static void shown(const char *text, const char *want)
{
    char buf[CSN_NETADDR_TEXT];
    csn_netaddr a = addr(text);

    assert_string_equal(csn_netaddr_text(&a, buf), want);
}

static void one_text_for_each(void **state)
{
    (void)state;
    shown("1.2.3.4", "1.2.3.4");
    shown("2001:DB8:0:0:0:0:0:1", "2001:db8::1");
    shown("0:0:0:0:0:0:0:0", "::");
    shown("::ffff:1.2.3.4", "1.2.3.4");
    shown("::ffff:7f00:1", "127.0.0.1");
    shown("ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255",
          "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff");
}

static const char *net_why(const char *text, csn_netcidr *ret)
{
    const char *why = "";
    return csn_netcidr_parse(text, strlen(text), ret, &why) ? NULL : why;
}

static bool in(const char *net, const char *a)
{
    csn_netcidr n;
    csn_netaddr x = addr(a);
    const char *why = net_why(net, &n);

    if (why)
        fail_msg("%s: %s", net, why);
    return csn_netcidr_has(&n, &x);
}

static void networks_end_where_they_end(void **state)
{
    csn_netcidr n;

    (void)state;
    assert_true(in("10.0.0.0/8", "10.255.255.255"));
    assert_false(in("10.0.0.0/8", "11.0.0.0"));
    assert_true(in("172.16.0.0/12", "172.31.255.255"));
    assert_false(in("172.16.0.0/12", "172.32.0.0"));
    assert_true(in("1.2.3.4", "1.2.3.4"));
    assert_false(in("1.2.3.4", "1.2.3.5"));
    assert_true(in("0.0.0.0/0", "255.1.2.3"));
    assert_false(in("0.0.0.0/0", "::1"));
    assert_true(in("1.2.3.4/31", "1.2.3.5"));
    assert_true(in("fd00::/8", "fdff::1"));
    assert_false(in("fd00::/8", "fe00::1"));
    assert_true(in("::/0", "2001::1"));
    assert_true(in("2001:db8::8000:0/97", "2001:db8::ffff:1"));
    assert_non_null(net_why("10.0.0.1/8", &n));
    assert_non_null(net_why("10.0.0.0/33", &n));
    assert_non_null(net_why("10.0.0.0/", &n));
    assert_non_null(net_why("10.0.0.0/08", &n));
    assert_non_null(net_why("10.0.0.0/+8", &n));
    assert_non_null(net_why("10.0.0.0/8/8", &n));
    assert_non_null(net_why("10/8", &n));
    assert_non_null(net_why("fd00::/129", &n));
    assert_non_null(net_why("fd00::1/64", &n));
    assert_non_null(net_why("::ffff:10.0.0.0/104", &n));
    assert_non_null(net_why("/8", &n));
}

static void covers_is_by_whole_networks(void **state)
{
    csn_netcidr wide, narrow;

    (void)state;
    assert_null(net_why("10.0.0.0/8", &wide));
    assert_null(net_why("10.1.0.0/16", &narrow));
    assert_true(csn_netcidr_covers(&wide, &narrow));
    assert_true(csn_netcidr_covers(&wide, &wide));
    assert_false(csn_netcidr_covers(&narrow, &wide));
}

static void embedded(const char *text, const char *want)
{
    csn_netaddr a = addr(text), inner;
    char buf[CSN_NETADDR_TEXT];
    bool got = csn_netaddr_embedded(&a, &inner);

    if (got != (want != NULL))
        fail_msg("%s: %s", text, got ? csn_netaddr_text(&inner, buf) : "none");
    if (got)
        assert_string_equal(csn_netaddr_text(&inner, buf), want);
}

static void v4_inside_v6_is_found(void **state)
{
    (void)state;
    embedded("64:ff9b::7f00:1", "127.0.0.1");
    embedded("64:ff9b:1::a00:1", "10.0.0.1");
    embedded("64:ff9b:1:ffff::169.254.169.254", "169.254.169.254");
    embedded("::127.0.0.1", "127.0.0.1");
    embedded("::ffff:0:127.0.0.1", "127.0.0.1");
    embedded("2002:7f00:1::", "127.0.0.1");
    embedded("2002:c0a8:101:1::1", "192.168.1.1");
    embedded("2001:0:4136:e378:8000:63bf:3fff:fdd2", "192.0.2.45");
    embedded("2001:470::5efe:10.0.0.1", "10.0.0.1");
    embedded("2001:470::200:5efe:10.0.0.1", "10.0.0.1");
    embedded("::", NULL);
    embedded("::1", NULL);
    embedded("2001:470::1", NULL);
    embedded("64:ff9b:2::1", NULL);
    embedded("10.0.0.1", NULL);
}

static void refused(const char *text, const char *want)
{
    csn_netaddr a = addr(text);
    const csn_netrange *r = csn_netaddr_refused(&a);

    if (!want && r)
        fail_msg("%s is %s", text, r->name);
    if (want && (!r || strcmp(r->name, want) != 0))
        fail_msg("%s is %s, wanted %s", text, r ? r->name : "public", want);
}

static void refused_ranges(void **state)
{
    static const char *const rows[][2] = {
        {"127.0.0.1", "loopback"},
        {"127.255.255.255", "loopback"},
        {"::1", "loopback"},
        {"::ffff:127.0.0.1", "loopback"},
        {"::127.0.0.1", "loopback"},
        {"64:ff9b::7f00:1", "loopback"},
        {"64:ff9b:1::7f00:1", "loopback"},
        {"64:ff9b:1::8.8.8.8", "local-use NAT64"},
        {"2002:7f00:1::1", "loopback"},
        {"2001:0:1::80ff:fffe", "loopback"},
        {"::ffff:0:127.0.0.1", "loopback"},
        {"0.0.0.0", "unspecified"},
        {"::", "unspecified"},
        {"0.1.2.3", "this network"},
        {"::2", "this network"},
        {"169.254.169.254", "metadata"},
        {"::ffff:169.254.169.254", "metadata"},
        {"64:ff9b::169.254.169.254", "metadata"},
        {"fd00:ec2::254", "metadata"},
        {"100.100.100.200", "metadata"},
        {"168.63.129.16", "metadata"},
        {"169.254.1.1", "link-local"},
        {"fe80::1", "link-local"},
        {"febf::1", "link-local"},
        {"fec0::1", "private"},
        {"10.0.0.1", "private"},
        {"172.16.0.1", "private"},
        {"172.31.255.255", "private"},
        {"192.168.1.1", "private"},
        {"fd12:3456::1", "private"},
        {"fc00::1", "private"},
        {"fd63:6169:7373::5", "private"},
        {"100.64.0.1", "carrier-grade NAT"},
        {"100.127.255.255", "carrier-grade NAT"},
        {"198.18.0.1", "benchmarking"},
        {"198.19.255.255", "benchmarking"},
        {"2001:2::1", "benchmarking"},
        {"192.0.0.8", "protocol assignments"},
        {"192.0.2.1", "documentation"},
        {"198.51.100.1", "documentation"},
        {"203.0.113.1", "documentation"},
        {"2001:db8::1", "documentation"},
        {"3fff::1", "documentation"},
        {"224.0.0.1", "multicast"},
        {"239.255.255.255", "multicast"},
        {"ff02::1", "multicast"},
        {"240.0.0.1", "reserved"},
        {"255.255.255.255", "broadcast"},
        {"100::1", "discard-only"},
        {"5f00::1", "segment routing"},
        {"4000::1", "reserved"},
        {"1::1", "reserved"},
        {"64:ff9b:2::1", "reserved"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        refused(rows[i][0], rows[i][1]);
}

static void the_rest_is_public(void **state)
{
    static const char *const open[] = {"8.8.8.8",          "1.1.1.1",         "9.255.255.255",
                                       "11.0.0.0",         "126.255.255.255", "128.0.0.1",
                                       "172.15.0.1",       "172.32.0.1",      "192.167.1.1",
                                       "192.169.1.1",      "100.63.0.1",      "100.128.0.1",
                                       "169.253.1.1",      "198.17.1.1",      "198.20.1.1",
                                       "223.255.255.255",  "2606:4700::1",    "2a00::1",
                                       "64:ff9b::8.8.8.8", "2002:808:808::1", "::ffff:8.8.8.8"};

    (void)state;
    for (size_t i = 0; i < sizeof(open) / sizeof(open[0]); i++)
        refused(open[i], NULL);
}

static void ports(void **state)
{
    static const char *const bad[] = {
        "",     "0",   "00", "080", "65536", "99999", "-1",      "+1",      " 1",  "1 ",
        "0x50", "8e1", "1:", ":1",  "1:0",   "1:2:3", "70000:1", "1:70000", "a:1", "1/tcp"};
    csn_netport p;
    const char *why = NULL;

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        if (csn_netport_parse(bad[i], true, &p, &why))
            fail_msg("%s was taken for ports", bad[i]);
        assert_non_null(why);
    }
    assert_true(csn_netport_parse("8080", false, &p, NULL));
    assert_true(p.host == 8080 && p.inside == 8080);
    assert_true(csn_netport_parse("65535:1", false, &p, NULL));
    assert_true(p.host == 65535 && p.inside == 1);
    assert_true(csn_netport_parse("0:80", true, &p, NULL));
    assert_true(p.host == 0 && p.inside == 80);
    assert_false(csn_netport_parse("0:80", false, &p, &why));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_is_strict),
        cmocka_unit_test(one_text_for_each),
        cmocka_unit_test(networks_end_where_they_end),
        cmocka_unit_test(covers_is_by_whole_networks),
        cmocka_unit_test(v4_inside_v6_is_found),
        cmocka_unit_test(refused_ranges),
        cmocka_unit_test(the_rest_is_public),
        cmocka_unit_test(ports),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
