/* Network rules: what they say, who wins, what a refusal tells. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/arena.h"
#include "child.h"
#include "policy/netrules.h"

#define LIST(...) ((const char *const[]){__VA_ARGS__, NULL})

static csn_netrules *rules(const char *mode, const char *const *allow, const char *const *deny)
{
    csn_netrules *r = NULL;
    csn_error *err = NULL;

    if (csn_netrules_new(mode, allow, deny, &r, &err) != CSN_OK)
        fail_msg("%s", csn_error_message(err));
    return r;
}

static csn_domain domain(const char *text)
{
    csn_domain d;

    if (!csn_domain_parse_lookup(text, strlen(text), &d, NULL))
        fail_msg("%s is no name", text);
    return d;
}

static csn_netaddr addr(const char *text)
{
    csn_netaddr a = {.family = 0};

    if (!csn_netaddr_parse(text, strlen(text), &a))
        fail_msg("%s is no address", text);
    return a;
}

/* A refusal has a reason, an allowed one has neither reason nor hint. */
static void check(const csn_netverdict *v, const char *what, bool want)
{
    if (v->allowed != want)
        fail_msg("%s: %s (%s, %s)", what, v->allowed ? "allowed" : "refused",
                 v->rule ? v->rule : "-", v->why);
    assert_int_equal(v->why[0] == '\0', want);
    assert_true(!want || v->hint[0] == '\0');
}

static csn_netverdict name(const csn_netrules *r, const char *text, uint16_t port, bool want)
{
    csn_netverdict v;
    csn_domain d = domain(text);

    csn_netrules_name(r, &d, port, &v);
    check(&v, text, want);
    return v;
}

static csn_netverdict lookup(const csn_netrules *r, const char *text, bool want)
{
    csn_netverdict v;
    csn_domain d = domain(text);

    csn_netrules_lookup(r, &d, &v);
    check(&v, text, want);
    return v;
}

static csn_netverdict literal(const csn_netrules *r, const char *text, uint16_t port, bool want)
{
    csn_netverdict v;
    csn_netaddr a = addr(text);

    csn_netrules_address(r, &a, port, &v);
    check(&v, text, want);
    return v;
}

static csn_netverdict dial(const csn_netrules *r, const char *text, const char *own, bool want)
{
    csn_netverdict v;
    csn_netaddr a = addr(text);

    csn_netrules_dial(r, NULL, &a, 443, own, &v);
    check(&v, text, want);
    return v;
}

static csn_netverdict dial_name(const csn_netrules *r, const char *name, const char *text,
                                uint16_t port, const char *own, bool want)
{
    csn_netverdict v;
    csn_netaddr a = addr(text);
    csn_domain d;

    assert_true(csn_domain_parse(name, strlen(name), &d, NULL));
    csn_netrules_dial(r, &d, &a, port, own, &v);
    check(&v, text, want);
    return v;
}

static void nothing_is_allowed_without_a_rule(void **state)
{
    csn_netrules *r = rules(NULL, NULL, NULL);
    csn_netverdict v = name(r, "ok.test", 443, false);

    (void)state;
    assert_string_equal(v.rule, "network none");
    assert_string_equal(v.hint, "ok.test:443");
    lookup(r, "ok.test", false);
    literal(r, "8.8.8.8", 443, false);
    assert_true(csn_netrules_is_closed(r));
    csn_netrules_free(r);
    r = rules("none", LIST("ok.test"), NULL);
    assert_false(csn_netrules_is_closed(r));
    csn_netrules_free(r);
}

static void names_match_whole(void **state)
{
    csn_netrules *r = rules("none", LIST("OK.test.:443,80", "*.wild.test:443"), NULL);
    csn_netverdict v;

    (void)state;
    v = name(r, "ok.test", 443, true);
    assert_string_equal(v.rule, "allow OK.test.:443,80");
    name(r, "OK.TEST.", 80, true);
    v = name(r, "ok.test", 8443, false);
    assert_string_equal(v.hint, "ok.test:8443");
    assert_non_null(strstr(v.why, "port"));
    name(r, "ok.test.evil.test", 443, false);
    name(r, "evil-ok.test", 443, false);
    name(r, "okxtest", 443, false);
    name(r, "a.ok.test", 443, false);
    name(r, "test", 443, false);
    name(r, "a.wild.test", 443, true);
    v = name(r, "a.b.c.wild.test", 443, true);
    assert_string_equal(v.rule, "allow *.wild.test:443");
    name(r, "_dmarc.wild.test", 443, true);
    name(r, "wild.test", 443, false);
    name(r, "xwild.test", 443, false);
    name(r, "a.wild.test.evil.test", 443, false);
    literal(r, "8.8.8.8", 443, false);
    csn_netrules_free(r);
}

static void lookups_ask_for_any_port(void **state)
{
    csn_netrules *r =
        rules(NULL, LIST("ok.test:443", "half.test:80,443", "open.test", "shut.test:1,2"),
              LIST("half.test:80", "open.test:25", "shut.test:1", "*.test:2", "gone.test"));
    csn_netverdict v;

    (void)state;
    lookup(r, "ok.test", true);
    lookup(r, "half.test", true);
    lookup(r, "open.test", true);
    v = lookup(r, "shut.test", false);
    assert_non_null(strstr(v.rule, "deny "));
    assert_string_equal(v.hint, "");
    v = lookup(r, "gone.test", false);
    assert_string_equal(v.rule, "deny gone.test");
    v = lookup(r, "other.test", false);
    assert_string_equal(v.hint, "other.test");
    csn_netrules_free(r);
}

static void deny_wins(void **state)
{
    csn_netrules *r = rules("all", LIST("a.ok.test:443"), LIST("*.ok.test", "x.test:25"));
    csn_netverdict v = name(r, "a.ok.test", 443, false);

    (void)state;
    assert_string_equal(v.rule, "deny *.ok.test");
    assert_string_equal(v.hint, "");
    name(r, "ok.test", 443, true);
    name(r, "x.test", 25, false);
    v = name(r, "x.test", 443, true);
    assert_string_equal(v.rule, "network all");
    csn_netrules_free(r);
}

static void all_is_all_that_is_public(void **state)
{
    csn_netrules *r = rules("all", NULL, LIST("9.9.9.0/24", "8.8.4.4:53"));
    csn_netverdict v;

    (void)state;
    name(r, "any.test", 1, true);
    lookup(r, "any.test", true);
    literal(r, "8.8.8.8", 443, true);
    literal(r, "2606:4700::1", 443, true);
    v = literal(r, "10.0.0.5", 5432, false);
    assert_string_equal(v.range, "private");
    assert_string_equal(v.hint, "10.0.0.5:5432");
    v = literal(r, "fd00::5", 5432, false);
    assert_string_equal(v.hint, "[fd00::5]:5432");
    v = literal(r, "169.254.169.254", 80, false);
    assert_string_equal(v.range, "metadata");
    assert_string_equal(v.hint, "");
    literal(r, "127.0.0.1", 80, false);
    literal(r, "9.9.9.9", 443, false);
    literal(r, "64:ff9b::9.9.9.9", 443, false);
    literal(r, "2002:909:909::1", 443, false);
    literal(r, "8.8.4.4", 443, true);
    literal(r, "8.8.4.4", 53, false);
    csn_netrules_free(r);
}

/* Case 17: an allowed name, an answer that leads elsewhere. */
static void names_do_not_open_ranges(void **state)
{
    static const char *const answers[] = {"127.0.0.1",
                                          "::1",
                                          "::ffff:127.0.0.1",
                                          "0.0.0.0",
                                          "169.254.169.254",
                                          "fd00:ec2::254",
                                          "100.100.100.200",
                                          "192.168.1.7",
                                          "64:ff9b::7f00:1",
                                          "10.1.2.3",
                                          "fe80::1",
                                          "224.0.0.1",
                                          "ff02::1",
                                          "100.64.0.1",
                                          "64:ff9b:1::7f00:1",
                                          "::127.0.0.1",
                                          "2002:7f00:1::",
                                          "255.255.255.255",
                                          "::",
                                          "198.18.0.1"};
    csn_netrules *r = rules(NULL, LIST("ok.test"), NULL);
    csn_netrules *open = rules("all", LIST("0.0.0.0/0", "[::/0]"), NULL);

    (void)state;
    for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
        csn_netverdict v = dial(r, answers[i], NULL, false);
        assert_non_null(v.range);
        dial(open, answers[i], NULL, false);
    }
    dial(r, "8.8.8.8", NULL, true);
    dial(r, "64:ff9b::8.8.8.8", NULL, true);
    csn_netverdict v = dial(r, "8.8.8.8", "this host", false);
    assert_string_equal(v.range, "this host");
    assert_string_equal(v.hint, "8.8.8.8:443");
    csn_netrules_free(r);
    csn_netrules_free(open);
}

static void address_rules_open_what_they_name(void **state)
{
    csn_netrules *r =
        rules(NULL,
              LIST("10.0.0.0/8:443", "169.254.0.0/16", "[fd00::/8]:443", "100.0.0.0/8",
                   "[::ffff:192.168.1.1]", "127.0.0.5", "93.184.216.0/24"),
              LIST("10.6.6.6"));

    (void)state;
    dial(r, "10.1.2.3", NULL, true);
    dial(r, "::ffff:10.1.2.3", NULL, true);
    dial(r, "64:ff9b::10.1.2.3", NULL, true);
    dial(r, "64:ff9b:1::10.1.2.3", NULL, false);
    dial(r, "2002:a01:203::1", NULL, false);
    dial(r, "10.6.6.6", NULL, false);
    dial(r, "64:ff9b::10.6.6.6", NULL, false);
    literal(r, "10.1.2.3", 80, false);
    literal(r, "10.1.2.3", 443, true);
    dial(r, "169.254.1.1", NULL, true);
    dial(r, "169.254.169.254", NULL, false); /* needs its own name */
    dial(r, "fd00::1", NULL, true);
    dial(r, "fd00:ec2::254", NULL, false);
    dial(r, "100.64.0.1", NULL, false);
    literal(r, "100.1.1.1", 1, true);
    dial(r, "192.168.1.1", NULL, true);
    dial(r, "127.0.0.5", NULL, true);
    dial(r, "127.0.0.1", NULL, false);
    dial(r, "93.184.216.34", "this host", false);
    dial(r, "10.1.2.3", "this host", false);
    dial(r, "127.0.0.5", "this host", true);
    csn_netrules_free(r);
    r = rules(NULL, LIST("169.254.169.254:80", "[64:ff9b:1::10.1.2.3]"), NULL);
    literal(r, "169.254.169.254", 80, true);
    literal(r, "169.254.169.254", 81, false);
    dial(r, "64:ff9b:1::10.1.2.3", NULL, true);
    csn_netrules_free(r);
}

static void bad_rules_are_named(void **state)
{
    static const char *const rows[][2] = {
        {"ok test", "only letters"},
        {"", "empty"},
        {"*", "mode"},
        {"*.", "empty"},
        {"*ok.test", "wildcard"},
        {"a.*.test", "wildcard"},
        {"*.*.test", "wildcard"},
        {"https://ok.test/", "URL"},
        {"user:pw@ok.test", "user"},
        {"ok.test/x", "neither"},
        {"ok.test/8", "neither"},
        {"ok.test:443/udp", "udp"},
        {"ok.test/udp", "udp"},
        {"ok.test:443/sctp", "port"},
        {"ok.test:", "port"},
        {"ok.test:0", "port"},
        {"ok.test:65536", "port"},
        {"ok.test:080", "port"},
        {"ok.test:443,", "port"},
        {"ok.test:,443", "port"},
        {"ok.test:80, 443", "port"},
        {"ok.test:1-2", "ranges"},
        {"ok.test:http", "port"},
        {"ok.test:1:2", "brackets"},
        {"fd00::1", "brackets"},
        {"fd00::/8", "brackets"},
        {"[fd00::1", "closed"},
        {"[fd00::1]443", "follow"},
        {"[fd00::1]:", "port"},
        {"[10.0.0.1]", "IPv6"},
        {"[fe80::1%lo]", "address"},
        {"[]", "IPv6"},
        {"10.0.0.1/8", "bits"},
        {"10.0.0.0/40", "prefix"},
        {"10/8", "neither"},
        {"127.1", "number"},
        {"0x7f.1", "number"},
        {"1.2.3.4.5", "number"},
        {"_srv.ok.test", "underscore"},
        {"b\xc3\xbc.test", "A-label"},
        {"localhost", "private to the sandbox"},
        {"a.localhost:80", "private to the sandbox"},
        {"/tcp", "empty"},
        {"/private", "empty"},
        {"10.0.0.0/8:443/private", "for names"},
        {"[fd00::1]/private", "for names"},
        {"ok.test/private/tcp", "neither"},
        {"localhost:80-90", "list them"},
        {":443", "empty"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        csn_netrules *r = NULL;
        csn_error *err = NULL;
        csn_status st = csn_netrules_new(NULL, LIST("ok.test", rows[i][0]), NULL, &r, &err);
        if (st != CSN_INVALID)
            fail_msg("'%s' was taken for a rule", rows[i][0]);
        assert_null(r);
        if (!strstr(csn_error_message(err), rows[i][1]) ||
            !strstr(csn_error_message(err), "network.allow[1]: "))
            fail_msg("'%s': %s", rows[i][0], csn_error_message(err));
        csn_error_free(err);
    }
    csn_netrules *r = NULL;
    csn_error *err = NULL;
    assert_int_equal(csn_netrules_new("some", NULL, NULL, &r, &err), CSN_INVALID);
    csn_error_free(err);
    err = NULL;
    assert_int_equal(csn_netrules_new(NULL, NULL, LIST("x y"), &r, &err), CSN_INVALID);
    assert_non_null(strstr(csn_error_message(err), "network.deny[0]: "));
    csn_error_free(err);
}

static void odd_but_right_rules(void **state)
{
    csn_netrules *r = rules(NULL,
                            LIST("ok.test/tcp", "a.test:443/tcp", "10.0.0.0/8/tcp",
                                 "[fd00::/8]:1,2/tcp", "b.test:1,1,1", "b.test:2", "b.test"),
                            LIST("localhost"));

    (void)state;
    name(r, "ok.test", 1, true);
    name(r, "a.test", 443, true);
    name(r, "a.test", 1, false);
    literal(r, "10.0.0.1", 9, true);
    literal(r, "fd00::1", 2, true);
    literal(r, "fd00::1", 3, false);
    name(r, "b.test", 2, true);
    name(r, "b.test", 3, true);
    csn_netrules_free(r);
}

static void hints_are_rules_that_would_do(void **state)
{
    csn_netrules *r = rules(NULL, LIST("x.test"), NULL);
    static const char *const names[] = {"ok.test", "a_b.ok.test", "db", "xn--bcher-kva.test"};

    (void)state;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        csn_netverdict v = name(r, names[i], 443, false);
        csn_netrules *with = rules(NULL, LIST(v.hint), NULL);
        name(with, names[i], 443, true);
        name(with, names[i], 444, false);
        csn_netrules_free(with);
    }
    csn_netverdict v = name(r, "_x", 443, false);
    assert_string_equal(v.hint, "");
    v = name(r, "localhost", 443, false); /* no rule would help */
    assert_string_equal(v.hint, "");
    csn_netrules_free(r);
}

static void private_names_open_private_addresses_only(void **state)
{
    static const char *const never[] = {
        "127.0.0.1",       "::1",        "169.254.169.254",   "169.254.1.1",
        "100.100.100.200", "100.64.0.1", "fd00:ec2::254",     "fe80::1",
        "0.0.0.0",         "192.0.2.1",  "64:ff9b::10.1.2.3", "2002:a01:203::1"};
    csn_netrules *r = rules(
        NULL,
        LIST("mirror.test:8081/private", "plain.test:8081", "*.corp.test:443/tcp/private"),
        LIST("10.6.6.6"));

    (void)state;
    name(r, "mirror.test", 8081, true);
    name(r, "mirror.test", 8082, false);
    dial_name(r, "mirror.test", "10.1.2.3", 8081, NULL, true);
    dial_name(r, "mirror.test", "172.16.0.9", 8081, NULL, true);
    dial_name(r, "mirror.test", "192.168.7.1", 8081, NULL, true);
    dial_name(r, "mirror.test", "fd00::1", 8081, NULL, true);
    dial_name(r, "mirror.test", "8.8.8.8", 8081, NULL, true);
    dial_name(r, "a.corp.test", "10.1.2.3", 443, NULL, true);
    dial_name(r, "mirror.test", "10.1.2.3", 80, NULL, false);
    dial_name(r, "plain.test", "10.1.2.3", 8081, NULL, false);
    dial_name(r, "corp.test", "10.1.2.3", 443, NULL, false);
    dial_name(r, "mirror.test", "10.6.6.6", 8081, NULL, false);
    dial_name(r, "mirror.test", "10.1.2.3", 8081, "this host", false);
    literal(r, "10.1.2.3", 8081, false);
    dial(r, "10.1.2.3", NULL, false);
    for (size_t i = 0; i < sizeof(never) / sizeof(never[0]); i++)
        dial_name(r, "mirror.test", never[i], 8081, NULL, false);
    csn_netrules_free(r);
}

static void loopback_with_a_port_is_no_rule_of_the_gateway(void **state)
{
    csn_netrules *r = rules(NULL, LIST("localhost:5432", "LOCALHOST:80,81"), NULL);
    static const struct {
        const char *text;
        bool want;
    } rows[] = {{"localhost", true},      {"localhost:80", true},  {"127.0.0.1:80", true},
                {"[::1]:80", true},       {"127.0.0.2:80", false}, {"127.0.0.0/8", false},
                {"a.localhost:1", false}, {"[::]:80", false},      {"*.localhost", false}};

    (void)state;
    assert_true(csn_netrules_is_closed(r));
    csn_netrules_free(r);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        csn_netrule rule;
        assert_true(csn_netrule_parse(rows[i].text, &rule, NULL));
        if (csn_netrule_is_loopback(&rule) != rows[i].want)
            fail_msg("%s", rows[i].text);
    }
}

static void within(const csn_netrules *r, csn_status want, const char *rule)
{
    csn_error *err = NULL;
    csn_status st = csn_netrules_subset(r, "allowed_domains", LIST(rule), &err);

    if (st != want)
        fail_msg("%s: %d %s", rule, st, err ? csn_error_message(err) : "");
    if (st != CSN_OK)
        assert_non_null(strstr(csn_error_message(err), "allowed_domains[0]: "));
    csn_error_free(err);
}

static void lists_of_one_call_stay_within(void **state)
{
    csn_netrules *r = rules(NULL, LIST("ok.test:443,80", "*.wild.test", "10.0.0.0/8:5432"),
                            LIST("bad.wild.test", "*.worse.wild.test"));

    (void)state;
    within(r, CSN_OK, "ok.test");
    within(r, CSN_OK, "OK.test:443");
    within(r, CSN_DENIED, "ok.test:443,8443");
    within(r, CSN_DENIED, "*.ok.test");
    within(r, CSN_OK, "*.wild.test");
    within(r, CSN_OK, "*.a.wild.test:22");
    within(r, CSN_OK, "a.wild.test");
    within(r, CSN_DENIED, "wild.test");
    within(r, CSN_DENIED, "bad.wild.test");
    within(r, CSN_DENIED, "a.worse.wild.test");
    within(r, CSN_DENIED, "*.worse.wild.test");
    within(r, CSN_DENIED, "*.test");
    within(r, CSN_OK, "10.1.0.0/16");
    within(r, CSN_OK, "10.1.2.3:5432");
    within(r, CSN_DENIED, "10.1.2.3:80");
    within(r, CSN_DENIED, "0.0.0.0/0");
    within(r, CSN_DENIED, "8.8.8.8");
    within(r, CSN_INVALID, "not a rule");
    assert_int_equal(csn_netrules_subset(r, "x", NULL, NULL), CSN_OK);
    csn_netrules_free(r);
    r = rules("all", NULL, LIST("x.test:25"));
    within(r, CSN_OK, "any.test");
    within(r, CSN_OK, "*.any.test:443");
    within(r, CSN_OK, "x.test");
    within(r, CSN_DENIED, "x.test:25");
    within(r, CSN_OK, "8.8.8.8:53");
    within(r, CSN_DENIED, "10.0.0.1");
    csn_netrules_free(r);
}

/* The table must find each of many, whatever collides, and nothing else. */
static void ten_thousand_rules(void **state)
{
    enum { MANY = 10000 };
    csn_arena *a = csn_arena_new();
    const char **list = csn_arena_array(a, MANY + 1, sizeof(*list));
    csn_domain longest;
    char text[300];

    (void)state;
    for (int i = 0; i < MANY; i++)
        list[i] = i % 4 == 0   ? csn_arena_printf(a, "n%d.test:443", i)
                  : i % 4 == 1 ? csn_arena_printf(a, "*.n%d.test", i)
                  : i % 4 == 2 ? csn_arena_printf(a, "10.%d.%d.0/24", i / 256, i % 256)
                               : csn_arena_printf(a, "same.test:%d", i + 1);
    csn_netrules *r = rules(NULL, list, NULL);
    for (int i = 0; i < MANY; i++) {
        if (i % 4 == 2) {
            (void)snprintf(text, sizeof(text), "10.%d.%d.9", i / 256, i % 256);
            literal(r, text, 1, true);
            continue;
        }
        (void)snprintf(text, sizeof(text), "%sn%d.test", i % 4 == 1 ? "deep.er." : "", i);
        name(r, text, 443, i % 4 != 3);
        name(r, "same.test", (uint16_t)(i + 1), i % 4 == 3);
    }
    /* the worst a name can be: as many parents as fit */
    memset(text, 'a', sizeof(text));
    for (size_t i = 1; i < 253; i += 2)
        text[i] = '.';
    assert_true(csn_domain_parse(text, 253, &longest, NULL));
    csn_netverdict v;
    csn_netrules_name(r, &longest, 65535, &v);
    check(&v, "the longest name", false);
    assert_int_equal(strlen(v.hint), 253 + strlen(":65535"));
    csn_netrules_free(r);
    csn_arena_free(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_allowed_without_a_rule),
        cmocka_unit_test(names_match_whole),
        cmocka_unit_test(lookups_ask_for_any_port),
        cmocka_unit_test(deny_wins),
        cmocka_unit_test(all_is_all_that_is_public),
        cmocka_unit_test(names_do_not_open_ranges),
        cmocka_unit_test(address_rules_open_what_they_name),
        cmocka_unit_test(bad_rules_are_named),
        cmocka_unit_test(odd_but_right_rules),
        cmocka_unit_test(hints_are_rules_that_would_do),
        cmocka_unit_test(private_names_open_private_addresses_only),
        cmocka_unit_test(loopback_with_a_port_is_no_rule_of_the_gateway),
        cmocka_unit_test(lists_of_one_call_stay_within),
        cmocka_unit_test(ten_thousand_rules),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
