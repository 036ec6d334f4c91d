/* Domain names: one form for each, and the reason for each that is none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "child.h"
#include "policy/domain.h"

#define L63 "a23456789012345678901234567890123456789012345678901234567890123"

static void good(const char *text, const char *want)
{
    csn_domain d;
    const char *why = "";

    if (!csn_domain_parse(text, strlen(text), &d, &why))
        fail_msg("%s: refused: %s", text, why);
    assert_string_equal(d.text, want);
    assert_int_equal(d.len, strlen(want));
}

static void bad_bytes(const char *text, size_t len, const char *want)
{
    csn_domain d;
    const char *why = NULL;

    if (csn_domain_parse(text, len, &d, &why))
        fail_msg("%s: taken as %s", text, d.text);
    assert_non_null(why);
    if (!strstr(why, want))
        fail_msg("%s: says '%s', wanted '%s'", text, why, want);
    assert_int_equal(d.len, 0);
    assert_false(csn_domain_parse(text, len, &d, NULL));
}

static void bad(const char *text, const char *want)
{
    bad_bytes(text, strlen(text), want);
}

static void names_have_one_form(void **state)
{
    (void)state;
    good("ok.test", "ok.test");
    good("OK.Test.", "ok.test");
    good("db", "db");
    good("a-b.c1.test", "a-b.c1.test");
    good("1and1.test", "1and1.test");
    good("3.test", "3.test");
    good("127.0.0.1.test", "127.0.0.1.test");
    good("r3---sn-x.test", "r3---sn-x.test");
    good("0xbeef.test", "0xbeef.test");
    good("x.0xyz", "x.0xyz");
    good("x.0xg", "x.0xg");
    good("A.Z.test", "a.z.test");
    good(L63 ".test", L63 ".test");
}

static void malformed_names_are_refused(void **state)
{
    (void)state;
    bad("", "empty");
    bad(".", "empty");
    bad("..", "empty label");
    bad("ok.test..", "empty label");
    bad(".ok.test", "empty label");
    bad("ok..test", "empty label");
    bad("-ok.test", "hyphen");
    bad("ok-.test", "hyphen");
    bad("ok.-", "hyphen");
    bad("a b.test", "only letters");
    bad("ok.test\n", "only letters");
    bad("*.ok.test", "only letters");
    bad("ok.test:443", "only letters");
    bad("ok%2etest", "only letters");
    bad("ok.test/", "only letters");
    bad("user@ok.test", "only letters");
    bad("[::1]", "only letters");
    bad("a\x7f.test", "only letters");
    bad("_srv.ok.test", "underscore");
    bad_bytes("ok\0.test", 8, "NUL");
    bad_bytes("ok.test\0", 8, "NUL");
    bad("b\xc3\xbc"
        "cher.test",
        "xn--");
    bad("ok\xe3\x80\x82test", "xn--"); /* the ideographic full stop */
    bad("\xff.test", "xn--");
    bad("\x80.test", "xn--");
    bad("a" L63 ".test", "63");
}

static void lengths_are_exact(void **state)
{
    char text[300];

    (void)state;
    for (size_t len = 250; len <= 256; len++) {
        csn_domain d;
        memset(text, 'a', sizeof(text));
        for (size_t i = 50; i < len - 1; i += 51)
            text[i] = '.';
        assert_int_equal(csn_domain_parse(text, len, &d, NULL), len <= 253);
        text[len] = '.';
        assert_int_equal(csn_domain_parse(text, len + 1, &d, NULL), len <= 253);
    }
    memset(text, 'a', sizeof(text));
    for (size_t i = 1; i < 253; i += 2)
        text[i] = '.';
    csn_domain d;
    assert_true(csn_domain_parse(text, 253, &d, NULL));
}

static void what_a_resolver_takes_for_an_address_is_no_name(void **state)
{
    static const char *const tricks[] = {
        "127.0.0.1",  "127.1",    "127.0.1",      "2130706433", "0177.0.0.1", "017700000001",
        "0x7f.1",     "0x7f.0x1", "0x7f000001",   "0X7F000001", "1.2.3.4.",   "1.2.3.4.5",
        "256.1.1.1",  "foo.0x",   "foo.0x7F",     "a.b.1",      "1.2.3.0x4",  "0",
        "00.00.00.0", "x.08",     "169.254.43518"};

    (void)state;
    for (size_t i = 0; i < sizeof(tricks) / sizeof(tricks[0]); i++)
        bad(tricks[i], "number");
}

static void a_labels_must_decode(void **state)
{
    (void)state;
    good("xn--bcher-kva.test", "xn--bcher-kva.test");
    good("XN--BCHER-KVA.test", "xn--bcher-kva.test");
    good("xn--nxasmq6b.test", "xn--nxasmq6b.test");
    good("test.xn--p1ai", "test.xn--p1ai");
    good("xn--ls8h.test", "xn--ls8h.test"); /* a pile, U+1F4A9 */
    bad("xn--.test", "hyphen");
    bad("xn--a-.test", "hyphen");
    bad("xn--99999999.test", "A-label");
    bad("xn--a.test", "A-label");
    bad("xn--zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz.test", "A-label");
    bad("xn--0000h.test", "A-label");
    bad("xn--", "hyphen");
    bad("xn--a-b", "A-label");
}

/* ---- punycode: an encoder of RFC 3492, to hold the decoder against ---- */

typedef struct encoder {
    uint32_t n, delta, bias;
    size_t done; /* code points written so far */
    char *out;
} encoder;

static uint32_t adapted(uint32_t delta, size_t points, bool first)
{
    uint32_t k = 0;

    delta = first ? delta / 700 : delta / 2;
    for (delta += delta / (uint32_t)points; delta > 455; k += 36)
        delta /= 35;
    return k + 36 * delta / (delta + 38);
}

static void put_delta(encoder *e, bool first)
{
    static const char digits[] = "abcdefghijklmnopqrstuvwxyz0123456789";
    uint32_t q = e->delta;

    for (uint32_t k = 36;; k += 36) {
        uint32_t t = k <= e->bias ? 1 : k >= e->bias + 26 ? 26 : k - e->bias;
        if (q < t)
            break;
        *e->out++ = digits[t + (q - t) % (36 - t)];
        q = (q - t) / (36 - t);
    }
    *e->out++ = digits[q];
    e->bias = adapted(e->delta, ++e->done, first);
    e->delta = 0;
}

/* "xn--..." of the code points, of which at least one is not ASCII. */
static void encode(const uint32_t *points, size_t count, char *label)
{
    encoder e = {.n = 0x80, .bias = 72, .out = stpcpy(label, "xn--")};
    size_t basic = 0;

    for (size_t i = 0; i < count; i++)
        if (points[i] < 0x80) {
            *e.out++ = (char)points[i];
            basic++;
        }
    if (basic > 0)
        *e.out++ = '-';
    for (e.done = basic; e.done < count; e.delta++, e.n++) {
        uint32_t next = UINT32_MAX;
        for (size_t i = 0; i < count; i++)
            if (points[i] >= e.n && points[i] < next)
                next = points[i];
        e.delta += (next - e.n) * (uint32_t)(e.done + 1);
        e.n = next;
        for (size_t i = 0; i < count; i++) {
            e.delta += points[i] < e.n;
            if (points[i] == e.n)
                put_delta(&e, e.done == basic);
        }
    }
    *e.out = '\0';
}

static uint32_t next_random(uint32_t *seed)
{
    return (*seed = *seed * 1664525u + 1013904223u) >> 8;
}

/* The code points around every bound of what is a name, in many surroundings: a decoder that is
 * off by one takes one of them for its neighbour. */
static void a_labels_are_decoded_exactly(void **state)
{
    static const struct {
        uint32_t point;
        bool good;
    } edges[] = {{0x80, false},  {0x9f, false},   {0xa0, true},     {0xff, true},
                 {0xd7ff, true}, {0xd800, false}, {0xdfff, false},  {0xe000, true},
                 {0xffff, true}, {0x10000, true}, {0x10ffff, true}, {0x110000, false}};
    uint32_t seed = 1;

    (void)state;
    for (unsigned round = 0; round < 4000; round++) {
        size_t edge = round % (sizeof(edges) / sizeof(edges[0])), count = 1 + round % 7;
        uint32_t points[8];
        csn_domain d;
        char label[128];
        for (size_t i = 0; i < count; i++) {
            uint32_t r = next_random(&seed);
            points[i] = r % 3 == 0   ? 'a' + r / 3 % 26
                        : r % 3 == 1 ? 0xa0 + r / 3 % 0x400
                                     : 0xe000 + r / 3 % 0x1000;
        }
        points[next_random(&seed) % count] = edges[edge].point;
        encode(points, count, label);
        assert_true(strlen(label) <= 63);
        if (csn_domain_parse(label, strlen(label), &d, NULL) != edges[edge].good)
            fail_msg("%s: U+%04X", label, edges[edge].point);
        if (count == 1 && strlen(label) > 5) /* the number is not complete */
            assert_false(csn_domain_parse(label, strlen(label) - 1, &d, NULL));
    }
}

static void lookups_may_have_underscores(void **state)
{
    csn_domain d;
    const char *why = NULL;

    (void)state;
    assert_true(csn_domain_parse_lookup("_Srv._tcp.ok.test.", 18, &d, &why));
    assert_string_equal(d.text, "_srv._tcp.ok.test");
    assert_false(csn_domain_parse_lookup("a b", 3, &d, &why));
    assert_false(csn_domain_parse_lookup("127.1", 5, &d, &why));
}

static bool below(const char *name, const char *parent)
{
    csn_domain a, b;

    assert_true(csn_domain_parse(name, strlen(name), &a, NULL));
    assert_true(csn_domain_parse(parent, strlen(parent), &b, NULL));
    assert_int_equal(csn_domain_equal(&a, &b), strcmp(a.text, b.text) == 0);
    return csn_domain_below(&a, &b);
}

static void below_is_by_whole_labels(void **state)
{
    (void)state;
    assert_true(below("a.ok.test", "ok.test"));
    assert_true(below("a.b.c.ok.test", "OK.test."));
    assert_false(below("ok.test", "ok.test"));
    assert_false(below("evil-ok.test", "ok.test"));
    assert_false(below("ok.test.evil.test", "ok.test"));
    assert_false(below("test", "ok.test"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_have_one_form),
        cmocka_unit_test(malformed_names_are_refused),
        cmocka_unit_test(lengths_are_exact),
        cmocka_unit_test(what_a_resolver_takes_for_an_address_is_no_name),
        cmocka_unit_test(a_labels_must_decode),
        cmocka_unit_test(a_labels_are_decoded_exactly),
        cmocka_unit_test(lookups_may_have_underscores),
        cmocka_unit_test(below_is_by_whole_labels),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
