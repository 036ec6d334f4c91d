/* gateway_redirect.c: programs that know of no proxy: DNS, redirected connections, fail closed.
 *
 * The network of a jail is built by the same code that the keeper uses (os/netin), in a host of
 * the test's own. Sockets made in it stay in it, so this process is the program inside too. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "os/gateway_net.h"
#include "unit/gateway_world.h"

#define HOSTS "127.0.0.1 ok.test a.many.test b.many.test\n"
#define HERE  "198.51.100.7" /* an address of the host */

static const char *const ALLOW[] = {"ok.test:80,22", "*.many.test", "127.0.0.1:80,22",
                                    "198.51.100.7:80", NULL};

typedef struct room {
    gw gw;
    int server;
    int jail, world; /* network namespaces */
    bool six;
} room;

static const char *refused;

/* ---- the two networks -------------------------------------------------------------------- */

static void enter(int ns)
{
    if (setns(ns, CLONE_NEWNET) < 0)
        gwt_die("setns");
}

static int inside_socket(room *r, int family, int type)
{
    enter(r->jail);
    int fd = gwt_patient(socket(family, type | SOCK_CLOEXEC, 0));
    enter(r->world);
    return fd;
}

static bool add_address(const char *text)
{
    struct ifreq ifr = {.ifr_name = "lo:0"};
    struct sockaddr_in in = gwt_addr(text, 0);
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    memcpy(&ifr.ifr_addr, &in, sizeof(in));
    bool good = ioctl(fd, SIOCSIFADDR, &ifr) == 0;
    close(fd);
    return good;
}

static int build(room *r, csn_gateway_net *net)
{
    csn_gateway_net_order order = {.mode = CSN_GATEWAY_NET_TRANSPARENT};

    r->world = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
    if (unshare(CLONE_NEWNET) < 0)
        return -errno;
    r->jail = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
    int rc = world_loopback_up() ? csn_gateway_net_build(&order, net) : -EPERM;
    enter(r->world);
    return rc;
}

static room *start_with(csn_gateway_setup_msg *s)
{
    room *r = calloc(1, sizeof(*r));
    int fds[CSN_GATEWAY_NET_SOCKETS];
    size_t n = 0;
    csn_gateway_net net;

    int rc = build(r, &net);
    if (rc < 0) {
        (void)world_excuse("the kernel has no packet rules for us");
        free(r);
        return NULL;
    }
    /* the flags of SETUP are in the order of the sockets */
    for (unsigned i = 0; i < CSN_GATEWAY_NET_LISTENER; i++)
        if (net.fds[i] >= 0) {
            fds[n++] = net.fds[i];
            s->flags |= 1u << i;
        }
    r->six = net.fds[CSN_GATEWAY_NET_TCP6] >= 0;
    s->rules.allow = (const char **)(uintptr_t)ALLOW;
    gwt_spawn(&r->gw, gwt_program());
    if (!gwt_setup(&r->gw, s, fds, n))
        fail_msg("set-up: %s", r->gw.failed);
    csn_gateway_net_close(&net);
    r->server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in in = gwt_addr("0.0.0.0", 80);
    int on = 1;
    (void)setsockopt(r->server, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (bind(r->server, (void *)&in, sizeof(in)) < 0 || listen(r->server, 1024) < 0)
        gwt_die("server");
    return r;
}

static int start(void **state)
{
    csn_gateway_setup_msg s = {0};

    *state = refused ? NULL : start_with(&s);
    if (refused)
        (void)world_excuse(refused);
    return 0;
}

static void stop_room(room *r)
{
    if (r->gw.pid > 0)
        assert_int_equal(gwt_end(&r->gw), 0);
    close(r->server);
    close(r->jail);
    close(r->world);
    free(r);
}

static int stop(void **state)
{
    if (*state)
        stop_room(*state);
    return 0;
}

#define ROOM(r)                                                                                \
    room *r = *state;                                                                          \
    if (!r)                                                                                    \
    skip()

/* ---- DNS --------------------------------------------------------------------------------- */

static size_t question(uint8_t *out, const char *name, uint16_t type)
{
    static const uint8_t head[12] = {0x12, 0x34, 1, 0, 0, 1};
    size_t at = sizeof(head);

    memcpy(out, head, sizeof(head));
    while (*name) {
        size_t n = strcspn(name, ".");
        out[at++] = (uint8_t)n;
        memcpy(out + at, name, n);
        at += n;
        name += n + (name[n] == '.');
    }
    uint8_t tail[] = {0, (uint8_t)(type >> 8), (uint8_t)type, 0, 1};
    memcpy(out + at, tail, sizeof(tail));
    return at + sizeof(tail);
}

/* rcode, or -1 when nothing came. *addr: the address of one answer, as text; "": none. */
static int read_answer(const uint8_t *a, ssize_t n, size_t asked, int family, char *addr)
{
    addr[0] = '\0';
    if (n < 12 || a[0] != 0x12 || a[1] != 0x34)
        return -1;
    if ((a[3] & 15) == 0 && a[7] == 1)
        inet_ntop(family, a + asked + 12, addr, INET6_ADDRSTRLEN);
    return a[3] & 15;
}

static int ask_udp(room *r, const char *name, uint16_t type, char *addr)
{
    uint8_t q[300], a[600];
    size_t n = question(q, name, type);
    struct sockaddr_in to = gwt_addr("198.18.0.1", 53);
    int fd = inside_socket(r, AF_INET, SOCK_DGRAM);

    assert_int_equal(sendto(fd, q, n, 0, (void *)&to, sizeof(to)), n);
    ssize_t got = gwt_recv(fd, a, sizeof(a));
    close(fd);
    return read_answer(a, got, n, type == 28 ? AF_INET6 : AF_INET, addr);
}

static void allowed_names_have_addresses_and_others_do_not_exist(void **state)
{
    char addr[INET6_ADDRSTRLEN], again[INET6_ADDRSTRLEN], six[INET6_ADDRSTRLEN];
    gwt_seen e;
    ROOM(r);

    assert_int_equal(ask_udp(r, "ok.test", 1, addr), 0);
    assert_string_equal(addr, "198.18.0.2");
    assert_int_equal(ask_udp(r, "OK.TEST", 1, again), 0);
    assert_string_equal(again, addr);
    assert_int_equal(ask_udp(r, "ok.test", 28, six), 0);
    assert_string_equal(six, r->six ? "fd63:6169:7373::2" : "");
    assert_int_equal(ask_udp(r, "x.many.test", 1, addr), 0);
    assert_string_equal(addr, "198.18.0.3");
    assert_int_equal(ask_udp(r, "ok.test", 16, addr), 0); /* TXT: nothing of that kind */
    assert_string_equal(addr, "");
    assert_int_equal(ask_udp(r, "secret-in-a-label.evil.test", 1, addr), 3);
    assert_int_equal(ask_udp(r, "ok.test.evil.test", 28, addr), 3);
    assert_int_equal(ask_udp(r, "localhost", 1, addr), 0);
    assert_string_equal(addr, "127.0.0.1");
    assert_true(gwt_event(&r->gw, CSN_GATEWAY_NAME, CSN_GATEWAY_DENY,
                          "secret-in-a-label.evil.test", &e));
    assert_string_equal(e.hint, "secret-in-a-label.evil.test");
    assert_true(gwt_event(&r->gw, CSN_GATEWAY_NAME, CSN_GATEWAY_ALLOW, "ok.test", &e));
}

static void questions_come_by_connection_too(void **state)
{
    uint8_t q[600] = {0}, a[600];
    char addr[INET6_ADDRSTRLEN];
    struct sockaddr_in to = gwt_addr("198.18.0.1", 53);
    ROOM(r);

    int fd = inside_socket(r, AF_INET, SOCK_STREAM);
    assert_int_equal(connect(fd, (void *)&to, sizeof(to)), 0);
    size_t n = question(q + 2, "ok.test", 1);
    q[1] = (uint8_t)n;
    size_t m = question(q + 2 + n + 2, "no.test", 1);
    q[2 + n + 1] = (uint8_t)m;
    for (size_t i = 0; i < 4 + n + m; i++)
        assert_true(gwt_send(fd, q + i, 1));
    for (int i = 0; i < 2; i++) {
        assert_true(gwt_read(fd, a, 2));
        size_t len = (size_t)a[0] << 8 | a[1];
        assert_in_range(len, 12, sizeof(a));
        assert_true(gwt_read(fd, a, len));
        assert_int_equal(read_answer(a, (ssize_t)len, n, AF_INET, addr), i == 0 ? 0 : 3);
        assert_string_equal(addr, i == 0 ? "198.18.0.2" : "");
    }
    close(fd);
}

static void a_flood_of_questions_is_refused(void **state)
{
    csn_gateway_setup_msg s = {.names_per_second = 1};
    char addr[INET6_ADDRSTRLEN];
    int refusals = 0;
    gwt_seen e;

    (void)state;
    room *r = refused ? NULL : start_with(&s);
    if (!r)
        skip();
    for (int i = 0; i < 20; i++)
        refusals += ask_udp(r, "ok.test", 1, addr) == 5;
    assert_true(refusals > 0);
    assert_true(gwt_event(&r->gw, CSN_GATEWAY_NAME, CSN_GATEWAY_DENY, "", &e));
    assert_string_equal(e.why, "DNS query rate limit exceeded");
    stop_room(r);
}

/* ---- connections ------------------------------------------------------------------------- */

static int go(room *r, const char *ip, uint16_t port)
{
    struct sockaddr_in to = gwt_addr(ip, port);
    int fd = inside_socket(r, AF_INET, SOCK_STREAM);

    if (connect(fd, (void *)&to, sizeof(to)) < 0) {
        close(fd);
        return -1;
    }
    return fd;
}

static void lookup(room *r, const char *name, const char *want)
{
    char addr[INET6_ADDRSTRLEN];

    assert_int_equal(ask_udp(r, name, 1, addr), 0);
    assert_string_equal(addr, want);
}

static void a_plain_connection_reaches_the_host_of_its_name(void **state)
{
    gwt_seen e;
    ROOM(r);

    lookup(r, "ok.test", "198.18.0.2");
    int c = go(r, "198.18.0.2", 80);
    assert_true(c >= 0);
    int s = gwt_accept(r->server); /* before a byte was said */
    assert_true(s >= 0);
    assert_true(gwt_say(s, "SSH-2.0-server first\r\n"));
    assert_true(gwt_hears(c, "SSH-2.0-server first\r\n"));
    assert_true(gwt_say(c, "SSH-2.0-client\r\n"));
    assert_true(gwt_hears(s, "SSH-2.0-client\r\n"));
    close(c);
    assert_true(gwt_is_ended(s));
    close(s);
    assert_true(gwt_event(&r->gw, CSN_GATEWAY_CLOSE, CSN_GATEWAY_ALLOW, "ok.test", &e));
    assert_string_equal(e.rule, "allow ok.test:80,22");
    assert_int_equal(e.e.proto, CSN_GATEWAY_TCP);
}

static void the_other_family_leads_there_too(void **state)
{
    struct sockaddr_in6 to = {.sin6_family = AF_INET6, .sin6_port = htons(80)};
    ROOM(r);

    if (!r->six) {
        printf("# skipped: no IPv6 here\n");
        skip();
    }
    lookup(r, "ok.test", "198.18.0.2");
    inet_pton(AF_INET6, "fd63:6169:7373::2", &to.sin6_addr);
    int c = inside_socket(r, AF_INET6, SOCK_STREAM);
    assert_int_equal(connect(c, (void *)&to, sizeof(to)), 0);
    int s = gwt_accept(r->server);
    assert_true(gwt_say(c, "GET / HTTP/1.1\r\nHost: ok.test\r\n\r\n"));
    assert_true(gwt_hears(s, "GET / HTTP/1.1\r\nHost: ok.test\r\n\r\n"));
    close(c);
    close(s);
}

static void another_name_in_the_bytes_is_refused(void **state)
{
    char answer[4096];
    uint8_t hello[600];
    ROOM(r);

    lookup(r, "ok.test", "198.18.0.2");
    int c = go(r, "198.18.0.2", 80);
    assert_true(gwt_say(c, "GET / HTTP/1.1\r\nHost: evil.test\r\n\r\n"));
    assert_true(gwt_rest(c, answer, sizeof(answer)) > 0);
    assert_non_null(strstr(answer, "HTTP/1.1 403 "));
    close(c);
    c = go(r, "198.18.0.2", 80);
    size_t n = world_hello(hello, "evil.test");
    assert_true(gwt_send(c, hello, n));
    assert_true(gwt_is_reset(c));
    close(c);
    /* waiting first does not help */
    c = go(r, "198.18.0.2", 80);
    (void)poll(NULL, 0, 400);
    assert_true(gwt_send(c, hello, n));
    assert_true(gwt_is_reset(c));
    close(c);
    /* of all these the server may have seen connections, but not a byte */
    while (gwt_poll(r->server, POLLIN, 100)) {
        int s = gwt_accept(r->server);
        assert_true(s >= 0);
        assert_true(gwt_recv(s, answer, sizeof(answer)) <= 0);
        close(s);
    }
}

static void what_leads_nowhere_is_reset(void **state)
{
    static const struct {
        const char *ip;
        uint16_t port;
    } rows[] = {
        {"198.18.0.2", 8080},                     /* another port */
        {"198.18.7.7", 80},                       /* nobody's address */
        {"198.19.255.255", 80}, {"8.8.8.8", 443}, /* no rule for addresses */
        {"10.0.0.1", 80},       {"169.254.169.254", 80},
    };
    gwt_seen e;
    ROOM(r);

    lookup(r, "ok.test", "198.18.0.2");
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        int c = go(r, rows[i].ip, rows[i].port);
        assert_true(c < 0 || gwt_is_reset(c));
        if (c >= 0)
            close(c);
    }
    assert_true(gwt_event(&r->gw, CSN_GATEWAY_CONNECT, CSN_GATEWAY_DENY, "ok.test", &e));
    assert_string_equal(e.hint, "ok.test:8080");
}

static void an_address_with_a_rule_is_reached(void **state)
{
    gwt_seen e;
    ROOM(r);

    int c = go(r, HERE, 80);
    assert_true(c >= 0);
    int s = gwt_accept(r->server);
    assert_true(gwt_say(c, "GET / HTTP/1.1\r\nHost: Any.test\r\n\r\n"));
    assert_true(gwt_hears(s, "GET / HTTP/1.1\r\nHost: Any.test\r\n\r\n"));
    close(c);
    close(s);
    assert_true(gwt_event(&r->gw, CSN_GATEWAY_CLOSE, CSN_GATEWAY_ALLOW, "any.test", &e));
    assert_string_equal(e.address, HERE);
}

static void many_at_once(void **state)
{
    enum { N = 200 };
    int c[N], s;
    char text[32];
    ROOM(r);

    lookup(r, "a.many.test", "198.18.0.2");
    lookup(r, "b.many.test", "198.18.0.3");
    for (int i = 0; i < N; i++) {
        c[i] = go(r, i % 2 ? "198.18.0.3" : "198.18.0.2", 80);
        assert_true(c[i] >= 0);
        snprintf(text, sizeof(text), "\1%03d", i);
        assert_true(gwt_say(c[i], text));
    }
    for (int i = 0; i < N; i++) { /* each is answered what it said */
        s = gwt_accept(r->server);
        assert_true(s >= 0 && gwt_read(s, text, 4) && gwt_send(s, text, 4));
        close(s);
    }
    for (int i = 0; i < N; i++) {
        snprintf(text, sizeof(text), "\1%03d", i);
        assert_true(gwt_hears(c[i], text));
        assert_true(gwt_is_ended(c[i]));
        close(c[i]);
    }
}

static void no_gateway_is_no_network(void **state)
{
    ROOM(r);

    lookup(r, "ok.test", "198.18.0.2");
    int c = go(r, "198.18.0.2", 80);
    int s = gwt_accept(r->server);
    assert_true(c >= 0 && s >= 0);
    kill(r->gw.pid, SIGKILL);
    (void)gwt_end(&r->gw);
    char byte;
    assert_true(gwt_recv(c, &byte, 1) <= 0);
    close(c);
    close(s);
    c = go(r, "198.18.0.2", 80);
    assert_true(c < 0);
    assert_int_equal(errno, ECONNREFUSED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, start, stop)
        T(allowed_names_have_addresses_and_others_do_not_exist),
        T(questions_come_by_connection_too),
        cmocka_unit_test(a_flood_of_questions_is_refused),
        T(a_plain_connection_reaches_the_host_of_its_name),
        T(the_other_family_leads_there_too),
        T(another_name_in_the_bytes_is_refused),
        T(what_leads_nowhere_is_reset),
        T(an_address_with_a_rule_is_reached),
        T(many_at_once),
        T(no_gateway_is_no_network),
    };
    refused = world_enter(HOSTS);
    if (!refused && !add_address(HERE))
        refused = "no address can be added";
    return cmocka_run_group_tests(tests, NULL, NULL);
}
