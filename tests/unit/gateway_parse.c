/* gateway_parse.c: what programs inside say, byte by byte: DNS, ClientHello, HTTP, SOCKS.
 *
 * What is found in plain examples, and what is refused. That cutting the bytes makes no
 * difference, and that nothing crashes, is the fuzz targets' (tests/fuzz). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/dns.h"
#include "gateway/http.h"
#include "gateway/socks.h"
#include "gateway/tls.h"

#define BYTES(text) (text), sizeof(text) - 1
#define QUESTION    "\x12\x34\1\0\0\1\0\0\0\0\0\0\2oK\4Test\0\0\1\0\1"

/* ---- DNS ---- */

static void a_question_is_read_as_it_was_sent(void **state)
{
    csn_dns_query q;

    (void)state;
    assert_int_equal(csn_dns_parse(BYTES(QUESTION), &q), CSN_DNS_QUERY);
    assert_int_equal(q.id, 0x1234);
    assert_int_equal(q.type, CSN_DNS_TYPE_A);
    assert_string_equal(q.name, "oK.Test");
    assert_true(q.recursion_desired && !q.edns);
    assert_int_equal(csn_dns_udp_limit(&q), 512);
}

static void the_answer_has_the_address_and_the_question(void **state)
{
    static const uint8_t address[4] = {198, 18, 0, 2};
    const csn_dns_answer a = {.address = address, .address_len = 4, .ttl = 60};
    uint8_t out[CSN_DNS_REPLY_MAX];
    csn_dns_query q;

    (void)state;
    assert_int_equal(csn_dns_parse(BYTES(QUESTION), &q), CSN_DNS_QUERY);
    size_t n = csn_dns_reply(&q, &a, out, sizeof(out));
    assert_true(n > 12 + q.question_len + 4);
    assert_memory_equal(out, "\x12\x34", 2);
    assert_true((out[2] & 0x80) && (out[3] & 0x0f) == CSN_DNS_NOERROR);
    assert_memory_equal(out + 4, "\0\1\0\1", 4);
    assert_memory_equal(out + 12, q.question, q.question_len);
    assert_memory_equal(out + n - 4, address, 4);
}

static void what_is_no_question_is_dropped_or_told(void **state)
{
    static const struct {
        const char *bytes;
        size_t len;
        enum csn_dns_result want;
    } cases[] = {
        {BYTES(""), CSN_DNS_DROP},
        {BYTES("\x12\x34\1"), CSN_DNS_DROP},
        {BYTES("\x12\x34\x81\x80\0\1\0\0\0\0\0\0\2ok\4test\0\0\1\0\1"),
         CSN_DNS_DROP}, /* answer */
        {BYTES("\x12\x34\1\0\0\2\0\0\0\0\0\0\1a\0\0\1\0\1\1b\0\0\1\0\1"), CSN_DNS_ERROR},
        {BYTES("\x12\x34\1\0\0\1\0\0\0\0\0\0\xc0\x0c\0\1\0\1"), CSN_DNS_ERROR}, /* a pointer */
        {BYTES("\x12\x34\1\0\0\1\0\0\0\0\0\0\2ok\4test\0\0\1"), CSN_DNS_ERROR}, /* cut */
        {BYTES("\x12\x34\x20\0\0\1\0\0\0\0\0\0\2ok\4test\0\0\1\0\1"),
         CSN_DNS_ERROR}, /* opcode */
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        csn_dns_query q;
        assert_int_equal(csn_dns_parse(cases[i].bytes, cases[i].len, &q), cases[i].want);
    }
}

static void a_dot_inside_a_label_is_no_name(void **state)
{
    csn_dns_query q;

    (void)state;
    assert_int_equal(
        csn_dns_parse(BYTES("\x12\x34\1\0\0\1\0\0\0\0\0\0\7ok.test\0\0\1\0\1"), &q),
        CSN_DNS_QUERY);
    assert_int_equal(q.name_len, 0);
}

/* ---- TLS ---- */

/* A ClientHello of TLS 1.2 with these extensions, in one record. */
static size_t hello(uint8_t out[512], const char *extensions, size_t len)
{
    static const char start[] = "\3\3rrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrr\0\0\2\x13\1\1\0";
    size_t body = sizeof(start) - 1 + 2 + len;
    const uint8_t head[] = {22,
                            3,
                            1,
                            (uint8_t)((body + 4) >> 8),
                            (uint8_t)(body + 4),
                            1,
                            0,
                            (uint8_t)(body >> 8),
                            (uint8_t)body};

    memcpy(out, head, sizeof(head));
    memcpy(out + sizeof(head), start, sizeof(start) - 1);
    size_t n = sizeof(head) + sizeof(start) - 1;
    out[n++] = (uint8_t)(len >> 8);
    out[n++] = (uint8_t)len;
    memcpy(out + n, extensions, len);
    return n + len;
}

#define OK_TEST "\0\0\0\x0c\0\x0a\0\0\7ok.test"

static void the_name_of_a_hello_is_found(void **state)
{
    uint8_t bytes[512];
    gw_tls t = {0};
    size_t n = hello(bytes, BYTES(OK_TEST "\0\x10\0\5\0\3\2h2"));

    (void)state;
    assert_int_equal(gw_tls_parse(&t, bytes, n - 1), GW_TLS_NEED_MORE);
    assert_int_equal(gw_tls_parse(&t, bytes, n), GW_TLS_HELLO);
    assert_true(t.hello.has_sni && !t.hello.ech);
    assert_string_equal(t.hello.sni, "ok.test");
}

static void hellos_that_could_be_read_in_two_ways_are_bad(void **state)
{
    static const struct {
        const char *extensions;
        size_t len;
        enum gw_tls_result want;
        bool sni, ech;
    } cases[] = {
        {BYTES(""), GW_TLS_HELLO, false, false},
        {BYTES(OK_TEST OK_TEST), GW_TLS_BAD, false, false},                  /* twice */
        {BYTES("\0\0\0\x0c\0\x0a\0\0\7ok\0test"), GW_TLS_BAD, false, false}, /* a NUL */
        {BYTES("\0\0\0\5\0\3\0\0\0"), GW_TLS_BAD, false, false},             /* empty */
        {BYTES("\0\0\0\x0c\0\x0b\0\0\7ok.test"), GW_TLS_BAD, false, false},  /* too long */
        {BYTES(OK_TEST "\xfe\x0d\0\2xx"), GW_TLS_HELLO, true, true},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        uint8_t bytes[512];
        gw_tls t = {0};
        size_t n = hello(bytes, cases[i].extensions, cases[i].len);
        assert_int_equal(gw_tls_parse(&t, bytes, n), cases[i].want);
        if (cases[i].want == GW_TLS_HELLO)
            assert_true(t.hello.has_sni == cases[i].sni && t.hello.ech == cases[i].ech);
    }
    gw_tls other = {0};
    assert_int_equal(gw_tls_parse(&other, BYTES("SSH-2.0-x\r\n")), GW_TLS_NOT_TLS);
}

/* ---- HTTP ---- */

static enum gw_http_result head_of(const char *text, gw_http_head *h)
{
    gw_http_scan s = {0};

    return gw_http_parse(&s, text, strlen(text), h);
}

static void the_host_of_a_request_is_found(void **state)
{
    gw_http_head h;

    (void)state;
    assert_int_equal(head_of("GET /x HTTP/1.1\r\nhOsT: ok.test:8080\r\n\r\nrest", &h),
                     GW_HTTP_HEAD);
    assert_true(h.has_host && h.host.port == 8080 && h.form == GW_HTTP_ORIGIN);
    assert_int_equal(h.host.host.len, 7);
    assert_memory_equal(h.host.host.at, "ok.test", 7);
    assert_int_equal(head_of("CONNECT ok.test:443 HTTP/1.1\r\nHost: x\r\n\r\n", &h),
                     GW_HTTP_HEAD);
    assert_true(h.form == GW_HTTP_AUTHORITY && h.authority.port == 443);
    assert_int_equal(head_of("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 12\r\n\r\n", &h),
                     GW_HTTP_HEAD);
    assert_true(h.framing == GW_HTTP_LENGTH && h.body_len == 12);
}

static void heads_that_servers_read_differently_are_bad(void **state)
{
    static const char *const bad[] = {
        "GET / HTTP/1.1\r\n\r\n",                       /* no host */
        "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", /* two */
        "GET / HTTP/1.1\r\nHost : a\r\n\r\n",           /* a space before the colon */
        "GET / HTTP/1.1\r\nHost: a\r\n b\r\n\r\n",      /* folded */
        "GET / HTTP/1.1\nHost: a\n\n",                  /* bare line feeds */
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked, chunked\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: +1\r\n\r\n",
    };
    gw_http_head h;

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        if (head_of(bad[i], &h) != GW_HTTP_BAD)
            fail_msg("not refused: %s", bad[i]);
        assert_non_null(h.why);
    }
    assert_int_equal(head_of("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", &h), GW_HTTP_H2C);
    assert_int_equal(head_of("SSH-2.0-OpenSSH\r\n", &h), GW_HTTP_NOT_HTTP);
}

/* A zero byte behind a first word tells what is no request, unless that word may be a method:
 * there are servers that take it for a part of the path. */
static void a_zero_byte_hides_no_request(void **state)
{
    static const char git[] = "0033git-upload-pack /a.git\0host=ok.test\0",
                      ldap[] = "0\x0c\2\1\1\x60\7\2\1\3\4\0\x80\0",
                      words[] = "MKCOL /\0 HTTP/1.1\r\nHost: a\r\n\r\n";
    gw_http_head h;
    gw_http_scan scan = {0};

    (void)state;
    assert_int_equal(gw_http_parse(&scan, BYTES(git), &h), GW_HTTP_NOT_HTTP);
    scan = (gw_http_scan){0};
    assert_int_equal(gw_http_parse(&scan, BYTES(ldap), &h), GW_HTTP_NOT_HTTP);
    scan = (gw_http_scan){0};
    assert_int_equal(gw_http_parse(&scan, BYTES(words), &h), GW_HTTP_BAD);
}

static void a_request_needs_a_version(void **state)
{
    static const struct {
        const char *text;
        enum gw_http_result want;
    } cases[] = {
        {"FOO /x\r\n", GW_HTTP_BAD},
        {"get /x\r\n", GW_HTTP_BAD},
        {"FOO\t/x\r\n", GW_HTTP_BAD},
        {"FOO  /x\n", GW_HTTP_BAD},
        {"FOO http://a/\r\n", GW_HTTP_BAD},
        {"FOO / HTTP 1.1\r\n", GW_HTTP_BAD},
        {"PROPFIND / HTTP/1.1\r\nHost: a\r\n\r\n", GW_HTTP_HEAD},
        {"GET / HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\n\r\n", GW_HTTP_HEAD},
        {"GET / HTTP/1.1\r\nHost: a\r\nUpgrade: x, TLS/1.2\r\n\r\n", GW_HTTP_BAD},
        {"GET / HTTP/1.1\r\nHost: a\r\nUpgrade: HTTP/2.0\r\n\r\n", GW_HTTP_BAD},
        {"EHLO ok.test\r\n", GW_HTTP_NOT_HTTP},
        {"get key\r\n", GW_HTTP_NOT_HTTP},
        {"a1 LOGIN u p\r\n", GW_HTTP_NOT_HTTP},
        {"PING\r\n", GW_HTTP_NOT_HTTP},
        {"/file\r\n", GW_HTTP_NOT_HTTP},
    };
    gw_http_head h;

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        if (head_of(cases[i].text, &h) != cases[i].want)
            fail_msg("wrong: %s", cases[i].text);
}

/* Whole and byte by byte; in pieces the verdict comes before the end of the line. */
static void the_first_line_of_another_protocol_is_watched(void **state)
{
    static const struct {
        const char *text;
        size_t len;
        enum gw_http_result want;
    } cases[] = {
        {BYTES("(FOO / HTTP/1.1\r\n"), GW_HTTP_BAD},
        {BYTES("\r\n \1 / hTTp/1.1"), GW_HTTP_BAD},
        {BYTES("{ HTHHTTP/"), GW_HTTP_BAD},
        {BYTES("{ HTTTP/\n"), GW_HTTP_NOT_HTTP},
        {BYTES("{}\nGET / HTTP/1.1\r\n"), GW_HTTP_NOT_HTTP},
        {BYTES("\5\1\0GET / HTTP/1.1\r\n"), GW_HTTP_NOT_HTTP},
        {BYTES("( 2 ( edit-pipeline ) )"), GW_HTTP_NEED_MORE},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        gw_http_watch whole = {0}, bytes = {0};
        enum gw_http_result r = GW_HTTP_NEED_MORE;
        assert_int_equal(gw_http_watch_line(&whole, cases[i].text, cases[i].len),
                         cases[i].want);
        for (size_t n = 0; n < cases[i].len && r == GW_HTTP_NEED_MORE; n++)
            r = gw_http_watch_line(&bytes, cases[i].text + n, 1);
        assert_int_equal(r, cases[i].want);
    }
}

/* ---- SOCKS ---- */

static void a_socks_client_says_where_to(void **state)
{
    static const char greeting[] = "\5\1\0", wish[] = "\5\1\0\3\7ok.test\1\xbb";
    gw_socks s = {0};

    (void)state;
    assert_int_equal(gw_socks_next(&s, BYTES(greeting)), GW_SOCKS_SEND);
    assert_int_equal(s.used, 3);
    assert_memory_equal(s.reply, "\5\0", 2);
    assert_int_equal(gw_socks_next(&s, BYTES(wish)), GW_SOCKS_CONNECT);
    assert_int_equal(s.port, 443);
    assert_int_equal(s.name.len, 7);
    assert_memory_equal(s.name.at, "ok.test", 7);
}

static void what_socks_offers_beside_is_refused(void **state)
{
    static const struct {
        const char *bytes;
        size_t len;
        enum gw_socks_code code;
    } cases[] = {
        {BYTES("\5\2\0\1\1\2\3\4\0\x50"), GW_SOCKS_NO_COMMAND}, /* BIND */
        {BYTES("\5\3\0\1\1\2\3\4\0\x50"), GW_SOCKS_NO_COMMAND}, /* UDP */
        {BYTES("\5\1\0\2\1\2\3\4\0\x50"), GW_SOCKS_NO_ADDRESS_TYPE},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        gw_socks s = {0};
        assert_int_equal(gw_socks_next(&s, BYTES("\5\1\0")), GW_SOCKS_SEND);
        assert_int_equal(gw_socks_next(&s, cases[i].bytes, cases[i].len), GW_SOCKS_REFUSE);
        assert_int_equal(s.reply[1], cases[i].code);
    }
    gw_socks none = {0}, four = {0}, other = {0};
    assert_int_equal(gw_socks_next(&none, BYTES("\5\1\x80")), GW_SOCKS_REFUSE);
    assert_int_equal(gw_socks_next(&four, BYTES("\4\1\0\x50\1\2\3\4\0")), GW_SOCKS_REFUSE);
    assert_int_equal(gw_socks_next(&other, BYTES("GET / HTTP/1.1")), GW_SOCKS_NOT_SOCKS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_question_is_read_as_it_was_sent),
        cmocka_unit_test(the_answer_has_the_address_and_the_question),
        cmocka_unit_test(what_is_no_question_is_dropped_or_told),
        cmocka_unit_test(a_dot_inside_a_label_is_no_name),
        cmocka_unit_test(the_name_of_a_hello_is_found),
        cmocka_unit_test(hellos_that_could_be_read_in_two_ways_are_bad),
        cmocka_unit_test(the_host_of_a_request_is_found),
        cmocka_unit_test(heads_that_servers_read_differently_are_bad),
        cmocka_unit_test(a_zero_byte_hides_no_request),
        cmocka_unit_test(a_request_needs_a_version),
        cmocka_unit_test(the_first_line_of_another_protocol_is_watched),
        cmocka_unit_test(a_socks_client_says_where_to),
        cmocka_unit_test(what_socks_offers_beside_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
