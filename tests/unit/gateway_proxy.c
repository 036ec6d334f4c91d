/* gateway_proxy.c: rules, names, first bytes and refusals, through the gateway as a proxy.
 *
 * In a host of its own (gateway_world.h). What is judged here is judged by the same code when
 * connections are redirected; gateway_redirect.c has what only exists there. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "unit/gateway_world.h"

#define HOSTS                                                                                  \
    "127.0.0.1 ok.test deep.sub.ok.test evil.test private.test\n"                              \
    "169.254.169.254 meta.test\n"                                                              \
    "10.1.2.3 lan.test\n"

static const char *const ALLOW[] = {"ok.test:80,443",   "*.ok.test", "meta.test", "lan.test",
                                    "127.0.0.1:80,443", "[::1]:81",  NULL};
static const char *const DENY[] = {"bad.ok.test", NULL};

typedef struct room {
    gw gw;
    int server; /* 127.0.0.1:80 */
    uint16_t proxy;
} room;

static const char *refused; /* why there is no world */

static int start(void **state)
{
    csn_gateway_setup_msg s = {.flags = CSN_GATEWAY_FD_PROXY,
                               .rules = {.allow = (const char **)(uintptr_t)ALLOW,
                                         .deny = (const char **)(uintptr_t)DENY}};
    room *r = calloc(1, sizeof(*r));
    uint16_t http = 80;

    if (refused && world_excuse(refused)) {
        free(r);
        *state = NULL;
        return 0;
    }
    r->server = gwt_listen(&http);
    int listener = gwt_listen(&r->proxy);
    gwt_spawn(&r->gw, gwt_program());
    if (!gwt_setup(&r->gw, &s, &listener, 1))
        fail_msg("set-up: %s", r->gw.failed);
    close(listener);
    *state = r;
    return 0;
}

static int stop(void **state)
{
    room *r = *state;

    if (!r)
        return 0;
    assert_int_equal(gwt_end(&r->gw), 0);
    close(r->server);
    free(r);
    return 0;
}

#define ROOM(r)                                                                                \
    room *r = *state;                                                                          \
    if (!r)                                                                                    \
    skip()

static int to_proxy(room *r)
{
    int fd = gwt_patient(gwt_connect("127.0.0.1", r->proxy));

    assert_true(fd >= 0);
    return fd;
}

/* Reads an answer's head; its status. */
static int status_of(int fd)
{
    char head[2048];
    size_t len = 0;

    while (len < sizeof(head) - 1 && gwt_recv(fd, head + len, 1) == 1) {
        head[++len] = '\0';
        if (len >= 4 && strcmp(head + len - 4, "\r\n\r\n") == 0)
            return (int)strtol(head + 9, NULL, 10);
    }
    return -1;
}

/* CONNECT; both ends, if it was granted. */
static int tunnel(room *r, const char *target, int *server)
{
    char head[512];
    int c = to_proxy(r);

    snprintf(head, sizeof(head), "CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n", target, target);
    assert_true(gwt_say(c, head));
    assert_int_equal(status_of(c), 200);
    *server = gwt_accept(r->server);
    assert_true(*server >= 0);
    return c;
}

static void ask(room *r, const char *request, char *answer, size_t size)
{
    int c = to_proxy(r);

    assert_true(gwt_say(c, request));
    assert_true(gwt_rest(c, answer, size) > 0);
    close(c);
}

/* ---- CONNECT ----------------------------------------------------------------------------- */

static void a_tunnel_to_an_allowed_name_carries_anything(void **state)
{
    int s;
    gwt_seen e;
    ROOM(r);

    int c = tunnel(r, "ok.test:80", &s);
    assert_true(gwt_say(s, "server first\n"));
    assert_true(gwt_hears(c, "server first\n"));
    assert_true(gwt_send(c, "\0\1raw", 5));
    char got[5];
    assert_true(gwt_read(s, got, 5));
    assert_memory_equal(got, "\0\1raw", 5);
    close(c);
    assert_true(gwt_is_ended(s));
    close(s);
    assert_true(gwt_event(&r->gw, CSN_GATEWAY_CLOSE, CSN_GATEWAY_ALLOW, "ok.test", &e));
    assert_string_equal(e.rule, "allow ok.test:80,443");
    assert_string_equal(e.address, "127.0.0.1");
    assert_int_equal(e.e.up, 5);
}

static void spelling_does_not_matter_and_wildcards_go_deep(void **state)
{
    int s;
    ROOM(r);

    static const char *const targets[] = {"OK.Test:80", "ok.test.:80", "deep.sub.ok.test:80"};
    for (size_t i = 0; i < 3; i++) {
        int c = tunnel(r, targets[i], &s);
        close(c);
        close(s);
    }
}

static void what_no_rule_names_is_refused_with_a_hint(void **state)
{
    static const struct {
        const char *target, *name, *hint;
    } rows[] = {
        {"evil.test:80", "evil.test", "evil.test:80"},
        {"ok.test:8080", "ok.test", "ok.test:8080"},
        {"evil-ok.test:80", "evil-ok.test", "evil-ok.test:80"},
        {"ok.test.evil.test:443", "ok.test.evil.test", "ok.test.evil.test:443"},
        {"bad.ok.test:80", "bad.ok.test", ""}, /* denied: no rule would help */
    };
    char request[256], answer[4096];
    gwt_seen e;
    ROOM(r);

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        snprintf(request, sizeof(request), "CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n",
                 rows[i].target, rows[i].target);
        ask(r, request, answer, sizeof(answer));
        assert_non_null(strstr(answer, "HTTP/1.1 403 "));
        assert_non_null(strstr(answer, rows[i].hint));
        assert_true(gwt_event(&r->gw, CSN_GATEWAY_CONNECT, CSN_GATEWAY_DENY, rows[i].name, &e));
        assert_string_equal(e.hint, rows[i].hint);
        assert_true(strlen(e.why) > 0);
    }
}

/* A rule for a name opens no range: each needs one of its own. */
static void names_do_not_open_private_ranges(void **state)
{
    char answer[4096];
    gwt_seen e;
    ROOM(r);

    ask(r, "CONNECT meta.test:80 HTTP/1.1\r\nHost: meta.test\r\n\r\n", answer, sizeof(answer));
    assert_non_null(strstr(answer, "HTTP/1.1 403 "));
    assert_true(gwt_event(&r->gw, CSN_GATEWAY_CONNECT, CSN_GATEWAY_DENY, "meta.test", &e));
    assert_string_equal(e.address, "169.254.169.254");
    assert_string_equal(e.hint, "");
    ask(r, "CONNECT lan.test:80 HTTP/1.1\r\nHost: lan.test\r\n\r\n", answer, sizeof(answer));
    assert_non_null(strstr(answer, "HTTP/1.1 403 "));
    assert_true(gwt_event(&r->gw, CSN_GATEWAY_CONNECT, CSN_GATEWAY_DENY, "lan.test", &e));
    assert_string_equal(e.address, "10.1.2.3");
    /* 127.0.0.1 is open on 80 and 443 only, whatever name leads there */
    ask(r, "CONNECT deep.sub.ok.test:82 HTTP/1.1\r\nHost: x.test\r\n\r\n", answer,
        sizeof(answer));
    assert_non_null(strstr(answer, "HTTP/1.1 403 "));
}

static void addresses_are_reached_by_address_rules_only(void **state)
{
    char answer[4096];
    int s;
    ROOM(r);

    int c = tunnel(r, "127.0.0.1:80", &s);
    /* no name was opened, so none is held against it */
    assert_true(gwt_say(c, "GET / HTTP/1.1\r\nHost: evil.test\r\n\r\n"));
    assert_true(gwt_hears(s, "GET / HTTP/1.1\r\nHost: evil.test\r\n\r\n"));
    close(c);
    close(s);
    static const char *const others[] = {"127.0.0.2:80", "10.1.2.3:80", "8.8.8.8:443",
                                         "[::1]:80", "[::ffff:10.0.0.1]:80"};
    for (size_t i = 0; i < 5; i++) {
        char request[256];
        snprintf(request, sizeof(request), "CONNECT %s HTTP/1.1\r\nHost: x.test\r\n\r\n",
                 others[i]);
        ask(r, request, answer, sizeof(answer));
        assert_non_null(strstr(answer, "HTTP/1.1 403 "));
    }
}

static void who_is_not_there_is_a_bad_gateway(void **state)
{
    char answer[4096];
    ROOM(r);

    ask(r, "CONNECT ok.test:443 HTTP/1.1\r\nHost: ok.test\r\n\r\n", answer, sizeof(answer));
    assert_non_null(strstr(answer, "HTTP/1.1 502 "));
    assert_non_null(strstr(answer, "connection refused"));
    ask(r, "CONNECT nowhere.ok.test:443 HTTP/1.1\r\nHost: x.test\r\n\r\n", answer,
        sizeof(answer));
    assert_non_null(strstr(answer, "HTTP/1.1 502 "));
}

static void nonsense_is_refused(void **state)
{
    static const char *const rows[] = {
        "CONNECT ok.test HTTP/1.1\r\nHost: ok.test\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: ok.test\r\n\r\n",
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        "hello world\r\n\r\n",
        "GET http://ok.test/ HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        "GET ftp://ok.test/ HTTP/1.1\r\nHost: ok.test\r\n\r\n",
    };
    char answer[4096];
    ROOM(r);

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        ask(r, rows[i], answer, sizeof(answer));
        assert_non_null(strstr(answer, "HTTP/1.1 403 "));
    }
}

/* ---- what goes through a tunnel -----------------------------------------------------------
 */

static void tls_must_name_the_host_it_was_opened_for(void **state)
{
    uint8_t hello[600];
    char got[600];
    gwt_seen e;
    int s;
    ROOM(r);

    size_t n = world_hello(hello, "OK.test");
    int c = tunnel(r, "ok.test:80", &s);
    for (size_t i = 0; i < n; i++) /* however it is cut */
        assert_true(gwt_send(c, hello + i, 1));
    assert_true(gwt_read(s, got, n));
    assert_memory_equal(got, hello, n);
    close(c);
    close(s);
    n = world_hello(hello, "evil.test");
    c = tunnel(r, "ok.test:80", &s);
    assert_true(gwt_send(c, hello, n));
    assert_true(gwt_is_reset(c));
    assert_true(gwt_is_reset(s)); /* and not a byte came: a reset is the first thing seen */
    close(c);
    close(s);
    assert_true(gwt_event(&r->gw, CSN_GATEWAY_CONNECT, CSN_GATEWAY_DENY, "evil.test", &e));
    assert_int_equal(e.e.proto, CSN_GATEWAY_TLS);
    assert_string_equal(e.hint, "evil.test:80");
    n = world_hello(hello, NULL);
    c = tunnel(r, "ok.test:80", &s);
    assert_true(gwt_send(c, hello, n));
    assert_true(gwt_is_reset(c));
    close(c);
    close(s);
}

static void a_first_request_for_another_host_is_answered(void **state)
{
    char answer[4096], got[16];
    gwt_seen e;
    int s;
    ROOM(r);

    int c = tunnel(r, "ok.test:80", &s);
    assert_true(gwt_say(c, "GET / HTTP/1.1\r\nHost: evil.test\r\n\r\n"));
    assert_true(gwt_rest(c, answer, sizeof(answer)) > 0);
    assert_non_null(strstr(answer, "HTTP/1.1 403 "));
    assert_non_null(strstr(answer, "evil.test:80"));
    assert_true(gwt_recv(s, got, sizeof(got)) <= 0); /* nothing left */
    close(c);
    close(s);
    assert_true(gwt_event(&r->gw, CSN_GATEWAY_CONNECT, CSN_GATEWAY_DENY, "evil.test", &e));
    assert_int_equal(e.e.proto, CSN_GATEWAY_HTTP);
}

/* Some servers take the end of the stream for the end of the head. */
static void a_request_that_ends_within_its_head_is_refused(void **state)
{
    static const char *const rows[] = {
        "GET / HTTP/1.1\r\nHost: evil.test\r\n",
        "GET / HTTP/1.1\r\nHost: evil.test",
        "GET http://evil.test/ HTTP/1.1",
        "MKCOL http://evil.test/ HTTP/1.1",
    };
    char answer[4096], got[16];
    int s;
    ROOM(r);

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        int c = tunnel(r, "ok.test:80", &s);
        assert_true(gwt_say(c, rows[i]));
        shutdown(c, SHUT_WR);
        assert_true(gwt_rest(c, answer, sizeof(answer)) > 0);
        assert_non_null(strstr(answer, "HTTP/1.1 403 "));
        assert_true(gwt_recv(s, got, sizeof(got)) <= 0);
        close(c);
        close(s);
    }
    /* what is no request may end as it likes */
    int c = tunnel(r, "ok.test:80", &s);
    assert_true(gwt_say(c, "stats items"));
    shutdown(c, SHUT_WR);
    assert_true(gwt_hears(s, "stats items"));
    close(c);
    close(s);
}

static void a_later_request_for_another_host_is_cut(void **state)
{
    static const char good[] =
        "POST /a HTTP/1.1\r\nHost: ok.test\r\nContent-Length: 5\r\n\r\n12345";
    static const char bad[] = "GET / HTTP/1.1\r\nHost: evil.test\r\n\r\n";
    char got[256];
    ssize_t n;
    int s;
    ROOM(r);

    int c = tunnel(r, "ok.test:80", &s);
    for (int i = 0; i < 3; i++) {
        assert_true(gwt_say(c, good));
        assert_true(gwt_hears(s, good));
        assert_true(gwt_say(s, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"));
        assert_int_equal(status_of(c), 200);
    }
    assert_true(gwt_say(c, bad));
    assert_true(gwt_is_reset(c));
    n = gwt_recv(s, got, sizeof(got));
    assert_true(n < 0 && errno == ECONNRESET);
    close(c);
    close(s);
    /* in one piece with a good one; cut in the middle; hidden behind a body */
    static const char *const rows[][2] = {
        {"GET / HTTP/1.1\r\nHost: ok.test\r\n\r\nGET / HTTP/1.1\r\nHost: evil.test\r\n\r\n",
         ""},
        {"GET / HTTP/1.1\r\nHost: ok.test\r\n\r\nGET / HTTP/1.1\r\nHost: ev",
         "il.test\r\n\r\n"},
        {"POST / HTTP/1.1\r\nHost: ok.test\r\nTransfer-Encoding: "
         "chunked\r\n\r\n1\r\nx\r\n0\r\n",
         "\r\nGET / HTTP/1.1\r\nHost: evil.test\r\n\r\n"},
        {"GET http://evil.test/ HTTP/1.1\r\nHost: ok.test\r\n\r\n", ""},
        {"GET / HTTP/1.1\r\nHost: ok.test\r\nUpgrade: h2c\r\nConnection: Upgrade, "
         "HTTP2-Settings"
         "\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n\r\n",
         ""},
        {"CONNECT evil.test:443 HTTP/1.1\r\nHost: ok.test\r\n\r\n", ""},
        {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", ""},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char all[512];
        size_t len = 0;
        c = tunnel(r, "ok.test:80", &s);
        assert_true(gwt_say(c, rows[i][0]));
        (void)poll(NULL, 0, 20);
        (void)gwt_say(c, rows[i][1]);
        while ((n = gwt_recv(s, all + len, sizeof(all) - 1 - len)) > 0)
            len += (size_t)n;
        all[len] = '\0';
        assert_null(strstr(all, "evil"));
        close(c);
        close(s);
    }
}

static void an_upgrade_counts_when_the_server_agrees(void **state)
{
    static const char up[] = "GET /ws HTTP/1.1\r\nHost: ok.test\r\nUpgrade: websocket\r\n"
                             "Connection: Upgrade\r\n\r\n";
    static const char bad[] = "GET / HTTP/1.1\r\nHost: evil.test\r\n\r\n";
    int s;
    ROOM(r);

    int c = tunnel(r, "ok.test:80", &s);
    assert_true(gwt_say(c, up));
    assert_true(gwt_hears(s, up));
    assert_true(gwt_say(s, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n"
                           "Connection: Upgrade\r\n\r\n"));
    assert_int_equal(status_of(c), 101);
    assert_true(gwt_say(c, "\x81\x05hello"));
    assert_true(gwt_hears(s, "\x81\x05hello"));
    close(c);
    close(s);
    c = tunnel(r, "ok.test:80", &s);
    assert_true(gwt_say(c, up));
    assert_true(gwt_hears(s, up));
    assert_true(gwt_say(c, bad)); /* waits for the server's word */
    assert_true(gwt_say(s, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"));
    assert_true(gwt_is_reset(c));
    assert_true(gwt_is_reset(s));
    close(c);
    close(s);
}

/* ---- plain requests ------------------------------------------------------------------------
 */

static void a_plain_request_is_sent_on_in_origin_form(void **state)
{
    static const char want[] = "POST /a?b HTTP/1.1\r\nHost: ok.test\r\nConnection: close\r\n"
                               "Accept: x\r\nContent-Length: 4\r\n\r\nbody";
    int s;
    gwt_seen e;
    ROOM(r);

    int c = to_proxy(r);
    assert_true(gwt_say(c,
                        "POST http://ok.test/a?b HTTP/1.1\r\nHost: evil.test\r\nAccept: x\r\n"
                        "Proxy-Connection: keep-alive\r\nContent-Length: 4\r\n\r\n"));
    s = gwt_accept(r->server);
    assert_true(gwt_say(c, "bodyGET http://evil.test/ HTTP/1.1\r\n\r\n"));
    char got[512];
    assert_true(gwt_read(s, got, sizeof(want) - 1));
    assert_memory_equal(got, want, sizeof(want) - 1);
    assert_true(gwt_say(s, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nyes"));
    close(s);
    assert_true(gwt_rest(c, got, sizeof(got)) > 0);
    assert_non_null(strstr(got, "\r\n\r\nyes"));
    close(c);
    assert_true(gwt_event(&r->gw, CSN_GATEWAY_CONNECT, CSN_GATEWAY_ALLOW, "ok.test", &e));
    assert_int_equal(e.e.proto, CSN_GATEWAY_HTTP);
    char answer[4096];
    ask(r, "GET http://evil.test/ HTTP/1.1\r\nHost: ok.test\r\n\r\n", answer, sizeof(answer));
    assert_non_null(strstr(answer, "HTTP/1.1 403 "));
}

/* ---- SOCKS ---------------------------------------------------------------------------------
 */

static int socks_ask(room *r, const char *name, uint16_t port, uint8_t *code)
{
    uint8_t ask_bytes[300] = {5, 1, 0, 3, (uint8_t)strlen(name)}, reply[10];
    size_t n = strlen(name);
    int c = to_proxy(r);

    memcpy(ask_bytes + 5, name, n);
    ask_bytes[3] = 3;
    ask_bytes[5 + n] = (uint8_t)(port >> 8);
    ask_bytes[6 + n] = (uint8_t)port;
    assert_true(gwt_send(c, "\5\1\0", 3));
    assert_true(gwt_read(c, reply, 2));
    assert_memory_equal(reply, "\5\0", 2);
    assert_true(gwt_send(c, ask_bytes, 7 + n));
    assert_true(gwt_read(c, reply, 10));
    *code = reply[1];
    return c;
}

static void socks_obeys_the_same_rules(void **state)
{
    uint8_t code;
    char rest[16];
    int s;
    ROOM(r);

    int c = socks_ask(r, "ok.test", 80, &code);
    assert_int_equal(code, 0);
    s = gwt_accept(r->server);
    assert_true(gwt_say(c, "GET / HTTP/1.0\r\nHost: ok.test\r\n\r\n"));
    assert_true(gwt_hears(s, "GET / HTTP/1.0\r\nHost: ok.test\r\n\r\n"));
    close(c);
    close(s);
    c = socks_ask(r, "evil.test", 80, &code);
    assert_int_equal(code, 2);
    assert_int_equal(gwt_rest(c, rest, sizeof(rest)), 0);
    close(c);
    c = socks_ask(r, "ok.test", 443, &code);
    assert_int_equal(code, 5);
    close(c);
}

static void what_socks_cannot_do_is_told_in_its_words(void **state)
{
    static const struct {
        const char *first, *then;
        size_t len, then_len;
        const char *reply;
        size_t reply_len;
    } rows[] = {
        {"\5\1\1", "", 3, 0, "\5\xff", 2}, /* no login that we know */
        {"\4\1\0\x50\0\0\0\1\0ok.test\0", "", 17, 0, "\0\x5b\0\0\0\0\0\0", 8},
        {"\5\1\0", "\5\3\0\1\0\0\0\0\0\x35", 3, 10, "\5\7\0\1\0\0\0\0\0\0", 10}, /* UDP */
        {"\5\1\0", "\5\1\0\2\0\0\0\0\0\x50", 3, 10, "\5\x8\0\1\0\0\0\0\0\0", 10},
    };
    char reply[64];
    ROOM(r);

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        int c = to_proxy(r);
        assert_true(gwt_send(c, rows[i].first, rows[i].len));
        if (rows[i].then_len > 0) {
            assert_true(gwt_read(c, reply, 2));
            assert_true(gwt_send(c, rows[i].then, rows[i].then_len));
        }
        assert_int_equal(gwt_rest(c, reply, sizeof(reply)), rows[i].reply_len);
        assert_memory_equal(reply, rows[i].reply, rows[i].reply_len);
        close(c);
    }
}

/* ---- while it runs -------------------------------------------------------------------------
 */

static void removed_rules_cut_connections(void **state)
{
    static const char *const less[] = {"deep.sub.ok.test", "127.0.0.1:80", NULL};
    static const char *const no_address[] = {"deep.sub.ok.test", NULL};
    int s, s2;
    gwt_seen e;
    ROOM(r);

    int c = tunnel(r, "ok.test:80", &s);
    int c2 = tunnel(r, "deep.sub.ok.test:80", &s2);
    assert_true(gwt_update(&r->gw, CSN_GATEWAY_LISTED, less, NULL));
    assert_true(gwt_is_reset(c));
    assert_true(gwt_is_reset(s));
    assert_true(gwt_say(c2, "\1here"));
    assert_true(gwt_hears(s2, "\1here"));
    assert_true(gwt_event(&r->gw, CSN_GATEWAY_CLOSE, CSN_GATEWAY_ALLOW, "ok.test", &e));
    assert_string_equal(e.why, "the rules changed");
    assert_true(gwt_update(&r->gw, CSN_GATEWAY_LISTED, no_address, NULL));
    assert_true(gwt_is_reset(c2));
    close(c);
    close(s);
    close(c2);
    close(s2);
    /* rules that are none change nothing */
    static const char *const wrong[] = {"*.", NULL};
    assert_false(gwt_update(&r->gw, CSN_GATEWAY_LISTED, wrong, NULL));
    assert_true(strlen(r->gw.failed) > 0);
    assert_true(gwt_update(&r->gw, CSN_GATEWAY_LISTED, ALLOW, DENY));
    c = tunnel(r, "ok.test:80", &s);
    close(c);
    close(s);
}

static void mode_all_still_refuses_private_ranges(void **state)
{
    char answer[4096];
    ROOM(r);

    assert_true(gwt_update(&r->gw, CSN_GATEWAY_ALL, NULL, DENY));
    ask(r, "CONNECT evil.test:80 HTTP/1.1\r\nHost: x.test\r\n\r\n", answer, sizeof(answer));
    assert_non_null(strstr(answer, "HTTP/1.1 403 ")); /* it is 127.0.0.1 */
    ask(r, "CONNECT bad.ok.test:80 HTTP/1.1\r\nHost: x.test\r\n\r\n", answer, sizeof(answer));
    assert_non_null(strstr(answer, "HTTP/1.1 403 "));
    ask(r, "CONNECT 8.8.8.8:80 HTTP/1.1\r\nHost: x.test\r\n\r\n", answer, sizeof(answer));
    assert_non_null(strstr(answer, "HTTP/1.1 502 ")); /* allowed; there is no way from here */
}

static void refusals_are_counted_until_they_are_read(void **state)
{
    char answer[4096];
    gwt_seen v[8];
    csn_gateway_batch b;
    ROOM(r);

    for (int i = 0; i < 3; i++)
        ask(r, "CONNECT evil.test:80 HTTP/1.1\r\nHost: x.test\r\n\r\n", answer, sizeof(answer));
    assert_int_equal(gwt_events(&r->gw, 0, v, 8, &b), 1);
    assert_int_equal(v[0].e.count, 3);
    assert_int_equal(b.dropped, 0);
    ask(r, "CONNECT evil.test:80 HTTP/1.1\r\nHost: x.test\r\n\r\n", answer, sizeof(answer));
    assert_int_equal(gwt_events(&r->gw, b.next, v, 8, &b), 1);
    assert_int_equal(v[0].e.count, 1);
    assert_int_equal(gwt_events(&r->gw, b.next, v, 8, &b), 0);
    assert_int_equal(gwt_events(&r->gw, UINT64_MAX, v, 8, &b), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, start, stop)
        T(a_tunnel_to_an_allowed_name_carries_anything),
        T(spelling_does_not_matter_and_wildcards_go_deep),
        T(what_no_rule_names_is_refused_with_a_hint),
        T(names_do_not_open_private_ranges),
        T(addresses_are_reached_by_address_rules_only),
        T(who_is_not_there_is_a_bad_gateway),
        T(nonsense_is_refused),
        T(tls_must_name_the_host_it_was_opened_for),
        T(a_first_request_for_another_host_is_answered),
        T(a_request_that_ends_within_its_head_is_refused),
        T(a_later_request_for_another_host_is_cut),
        T(an_upgrade_counts_when_the_server_agrees),
        T(a_plain_request_is_sent_on_in_origin_form),
        T(socks_obeys_the_same_rules),
        T(what_socks_cannot_do_is_told_in_its_words),
        T(removed_rules_cut_connections),
        T(mode_all_still_refuses_private_ranges),
        T(refusals_are_counted_until_they_are_read),
    };
    refused = world_enter(HOSTS);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
