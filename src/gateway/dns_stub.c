/* dns_stub.c: answers the DNS queries of the sandbox.
 *
 * The reply for an allowed name is its address in the name table; every other name gets
 * NXDOMAIN. The stub forwards no query, so names cannot carry data out of the sandbox.
 * Processes inside may send queries at any rate; a token bucket limits how many are
 * processed. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "base/dns.h"
#include "gateway/gateway.h"
#include "gateway/socket.h"

#define DATAGRAMS_PER_WAKEUP 32
#define SOCKETS_MAX          (4u + 4u * GW_EXEC_RULES_MAX)
#define CLIENTS_MAX          32u            /* TCP connections */
#define IDLE_NS              10000000000ull /* after which a silent TCP client is closed */
#define BURST_NS             2000000000ull
#define TTL                  60u
#define TTL_NEGATIVE         5u /* short: a rule may be added at any time */

typedef struct tcp_client {
    gw_io io;
    gw_timer timer;
    struct gw_dns_stub *stub;
    const gw_exec_rules *exec_rules;
    size_t len;
    uint8_t in[2 + CSN_DNS_QUERY_MAX];
} tcp_client;

/* A UDP or listening TCP socket. */
typedef struct dns_socket {
    gw_io io;
    struct gw_dns_stub *stub; /* NULL: the slot is free */
    const gw_exec_rules *exec_rules;
} dns_socket;

typedef struct gw_dns_stub {
    gw_gateway *gateway;
    dns_socket sockets[SOCKETS_MAX];
    tcp_client clients[CLIENTS_MAX];
    uint64_t per_second;
    uint64_t credit_ns, refilled_ns; /* bucket: a query costs 1/per_second of a second */
} gw_dns_stub;

/* ---- answers --------------------------------------------------------------------------- */

static bool take_token(gw_dns_stub *s)
{
    uint64_t now = s->gateway->loop.now_ns, cost = 1000000000ull / s->per_second;

    s->credit_ns += now - s->refilled_ns;
    s->refilled_ns = now;
    if (s->credit_ns > BURST_NS)
        s->credit_ns = BURST_NS;
    if (s->credit_ns < cost)
        return false;
    s->credit_ns -= cost;
    return true;
}

static void record(gw_dns_stub *s, const char *name, const csn_netverdict *v, const char *why)
{
    csn_gateway_event e = {.kind = CSN_GATEWAY_NAME,
                           .verdict = v && v->allowed ? CSN_GATEWAY_ALLOW : CSN_GATEWAY_DENY,
                           .proto = CSN_GATEWAY_DNS,
                           .name = name,
                           .rule = v ? v->rule : NULL,
                           .hint = v ? v->hint : NULL,
                           .why = why};

    gw_events_add(s->gateway->events, &e);
}

/* Refused reverse lookups are not recorded: many programs make them routinely. */
static bool is_reverse(const csn_domain *name)
{
    return name->len > 5 && strcmp(name->text + name->len - 5, ".arpa") == 0;
}

static enum csn_dns_rcode allocate_address(gw_dns_stub *s, const csn_domain *name,
                                           uint16_t type, const csn_netverdict *v,
                                           csn_netaddr *ret)
{
    bool is_new;

    if (type != CSN_DNS_TYPE_A && type != CSN_DNS_TYPE_AAAA)
        return CSN_DNS_NOERROR;
    uint32_t number = gw_names_number(s->gateway->names, name, &is_new);
    if (number == 0)
        return CSN_DNS_SERVFAIL;
    if (is_new)
        record(s, name->text, v, NULL);
    if (type == CSN_DNS_TYPE_AAAA && !s->gateway->has_ipv6)
        return CSN_DNS_NOERROR; /* IPv6 is not redirected */
    *ret = gw_names_address(number, type == CSN_DNS_TYPE_A ? 4 : 6);
    return CSN_DNS_NOERROR;
}

static enum csn_dns_rcode answer(gw_dns_stub *s, const gw_exec_rules *exec_rules,
                                 const csn_dns_query *q, csn_netaddr *ret)
{
    csn_netverdict v;
    csn_domain name;

    if (!take_token(s)) {
        record(s, "", NULL, "DNS query rate limit exceeded");
        return CSN_DNS_REFUSED;
    }
    if (!csn_domain_parse_lookup(q->name, q->name_len, &name, NULL))
        return CSN_DNS_NXDOMAIN;
    if (strcmp(name.text, "localhost") == 0) { /* RFC 6761 */
        if (q->type == CSN_DNS_TYPE_A || q->type == CSN_DNS_TYPE_AAAA)
            *ret = gw_loopback(q->type == CSN_DNS_TYPE_A ? 4 : 6);
        return CSN_DNS_NOERROR;
    }
    csn_netrules_lookup(s->gateway->rules, &name, &v);
    gw_exec_rules_lookup(exec_rules, &name, &v);
    if (v.allowed)
        return allocate_address(s, &name, q->type, &v, ret);
    if (!is_reverse(&name))
        record(s, name.text, &v, v.why);
    return CSN_DNS_NXDOMAIN;
}

/* Writes the reply to out and returns its length; 0: send no reply. */
static size_t reply(gw_dns_stub *s, const gw_exec_rules *exec_rules, const void *data,
                    size_t len, bool udp, uint8_t out[CSN_DNS_REPLY_MAX])
{
    csn_netaddr addr = {0};
    csn_dns_answer a = {0};
    csn_dns_query q;

    switch (csn_dns_parse(data, len, &q)) {
    case CSN_DNS_QUERY:
        a.rcode = answer(s, exec_rules, &q, &addr);
        break;
    case CSN_DNS_ERROR:
        a.rcode = q.rcode;
        break;
    case CSN_DNS_DROP:
    default:
        return 0;
    }
    if (addr.family != 0) {
        a.address = addr.bytes;
        a.address_len = addr.family == 4 ? 4 : 16;
    }
    a.ttl = addr.family != 0 ? TTL : TTL_NEGATIVE;
    size_t room = udp ? csn_dns_udp_limit(&q) : CSN_DNS_REPLY_MAX;
    return csn_dns_reply(&q, &a, out, room < CSN_DNS_REPLY_MAX ? room : CSN_DNS_REPLY_MAX);
}

/* ---- UDP ------------------------------------------------------------------------------- */

static void on_datagrams(gw_io *io, uint32_t events)
{
    uint8_t in[CSN_DNS_UDP_MAX + 1], out[CSN_DNS_REPLY_MAX];
    const dns_socket *d = GW_CONTAINER_OF(dns_socket, io, io);

    (void)events;
    for (int i = 0; i < DATAGRAMS_PER_WAKEUP; i++) {
        struct sockaddr_storage from;
        socklen_t from_len = sizeof(from);
        ssize_t n = recvfrom(io->fd, in, sizeof(in), MSG_DONTWAIT, (void *)&from, &from_len);
        if (n < 0)
            return;
        size_t len = reply(d->stub, d->exec_rules, in, (size_t)n, true, out);
        if (len > 0)
            (void)!sendto(io->fd, out, len, MSG_DONTWAIT | MSG_NOSIGNAL, (void *)&from,
                          from_len);
    }
}

/* ---- TCP ------------------------------------------------------------------------------- */

static void close_client(tcp_client *c)
{
    gw_loop_close(&c->io);
    gw_timer_release(&c->stub->gateway->loop, &c->timer);
}

static void on_idle(gw_timer *t)
{
    close_client(GW_CONTAINER_OF(tcp_client, timer, t));
}

/* Answers every complete query. false: close the connection. */
static bool serve_client(tcp_client *c)
{
    uint8_t out[2 + CSN_DNS_REPLY_MAX];
    size_t len, used = 0;
    int rc;

    while ((rc = csn_dns_tcp_message(c->in + used, c->len - used, &len)) == 1) {
        size_t n = reply(c->stub, c->exec_rules, c->in + used + 2, len, false, out + 2);
        used += 2 + len;
        if (n == 0)
            return false;
        csn_dns_tcp_length(out, n);
        /* Disconnect a client that does not read its replies. */
        if (send(c->io.fd, out, n + 2, MSG_DONTWAIT | MSG_NOSIGNAL) != (ssize_t)(n + 2))
            return false;
    }
    memmove(c->in, c->in + used, c->len - used);
    c->len -= used;
    return rc == 0;
}

static void on_client(gw_io *io, uint32_t events)
{
    tcp_client *c = GW_CONTAINER_OF(tcp_client, io, io);
    gw_loop *loop = &c->stub->gateway->loop;
    ssize_t n = recv(io->fd, c->in + c->len, sizeof(c->in) - c->len, MSG_DONTWAIT);

    (void)events;
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n > 0)
        c->len += (size_t)n;
    if (n <= 0 || !serve_client(c))
        close_client(c);
    else
        gw_timer_arm(loop, &c->timer, loop->now_ns + IDLE_NS);
}

static void on_accept(gw_io *io, uint32_t events)
{
    const dns_socket *d = GW_CONTAINER_OF(dns_socket, io, io);
    gw_dns_stub *s = d->stub;
    gw_loop *loop = &s->gateway->loop;
    csn_autofd int fd = accept4(io->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    tcp_client *c = s->clients;

    (void)events;
    while (c < s->clients + CLIENTS_MAX && c->io.fd >= 0)
        c++;
    if (fd < 0 || c == s->clients + CLIENTS_MAX || gw_timer_reserve(loop, &c->timer, on_idle))
        return;
    c->stub = s;
    c->exec_rules = d->exec_rules;
    c->len = 0;
    if (gw_loop_add_level(loop, &c->io, fd, on_client) < 0) {
        c->io.fd = -1;
        gw_timer_release(loop, &c->timer);
        return;
    }
    (void)csn_steal_fd(&fd);
    gw_timer_arm(loop, &c->timer, loop->now_ns + IDLE_NS);
}

/* ---- set-up ---------------------------------------------------------------------------- */

int gw_dns_stub_init(gw_gateway *g, uint32_t per_second)
{
    gw_dns_stub *s = calloc(1, sizeof(*s));

    if (!s)
        return -ENOMEM;
    s->gateway = g;
    s->per_second = per_second;
    s->credit_ns = BURST_NS;
    s->refilled_ns = g->loop.now_ns;
    for (size_t i = 0; i < CLIENTS_MAX; i++)
        s->clients[i].io.fd = -1;
    g->dns_stub = s;
    return 0;
}

int gw_dns_stub_open(gw_gateway *g, int fd, bool tcp, const gw_exec_rules *exec_rules)
{
    gw_dns_stub *s = g->dns_stub;
    dns_socket *d = s->sockets;

    while (d < s->sockets + SOCKETS_MAX && d->stub)
        d++;
    if (d == s->sockets + SOCKETS_MAX)
        return -E2BIG;
    int rc = gw_loop_add_level(&g->loop, &d->io, fd, tcp ? on_accept : on_datagrams);
    if (rc == 0) {
        d->stub = s;
        d->exec_rules = exec_rules;
    }
    return rc;
}

void gw_dns_stub_close(gw_gateway *g, const gw_exec_rules *exec_rules)
{
    gw_dns_stub *s = g->dns_stub;

    for (size_t i = 0; i < CLIENTS_MAX; i++)
        if (s->clients[i].io.fd >= 0 && s->clients[i].exec_rules == exec_rules)
            close_client(&s->clients[i]);
    for (dns_socket *d = s->sockets; d < s->sockets + SOCKETS_MAX; d++)
        if (d->stub && d->exec_rules == exec_rules) {
            gw_loop_close(&d->io);
            d->stub = NULL;
        }
}
