/* dns_stub.c: the resolver of programs inside.
 *
 * Answers a name that the rules allow with an address that stands for it, and says of every
 * other that it does not exist. It asks nobody: not a byte of a question leaves, so names
 * cannot carry anything out. Questions come by datagram and by connection from any process
 * inside, as fast as it likes; a bucket of tokens bounds how many are looked at. */
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "gateway/dns.h"
#include "gateway/gateway.h"

#define AT_ONCE    32 /* datagrams read before others have their turn */
#define DESKS      (4u + 4u * GW_EXEC_RULES_MAX)
#define CALLS_MAX  32u            /* connections at once */
#define CALL_NS    10000000000ull /* one that says nothing for so long is closed */
#define SAVED_NS   2000000000ull
#define TTL        60u
#define TTL_ABSENT 5u /* a rule may be added at any time */

/* A connection that asks. */
typedef struct call {
    gw_io io;
    gw_timer timer;
    struct gw_dns_stub *stub;
    const gw_exec_rules *narrow;
    size_t len;
    uint8_t in[2 + CSN_DNS_QUERY_MAX];
} call;

/* A socket on which it is asked. */
typedef struct desk {
    gw_io io;
    struct gw_dns_stub *stub; /* NULL: there is none */
    const gw_exec_rules *narrow;
} desk;

typedef struct gw_dns_stub {
    gw_gateway *gate;
    desk desks[DESKS];
    call calls[CALLS_MAX];
    uint64_t per_second;
    uint64_t saved_ns, filled_ns; /* time saved up; a question costs its share of a second */
} gw_dns_stub;

/* ---- answers --------------------------------------------------------------------------- */

/* Two seconds' worth at once, then so many a second. */
static bool may_ask(gw_dns_stub *s)
{
    uint64_t now = s->gate->loop.now_ns, cost = 1000000000ull / s->per_second;

    s->saved_ns += now - s->filled_ns;
    s->filled_ns = now;
    if (s->saved_ns > SAVED_NS)
        s->saved_ns = SAVED_NS;
    if (s->saved_ns < cost)
        return false;
    s->saved_ns -= cost;
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

    gw_events_add(s->gate->events, &e);
}

/* Programs look up addresses backwards without meaning to reach anything. */
static bool is_reverse(const csn_domain *name)
{
    return name->len > 5 && strcmp(name->text + name->len - 5, ".arpa") == 0;
}

static enum gw_dns_rcode give(gw_dns_stub *s, const csn_domain *name, uint16_t type,
                              const csn_netverdict *v, csn_netaddr *ret)
{
    bool fresh;

    if (type != CSN_DNS_TYPE_A && type != CSN_DNS_TYPE_AAAA)
        return CSN_DNS_NOERROR;
    uint32_t number = gw_names_number(s->gate->names, name, &fresh);
    if (number == 0)
        return CSN_DNS_SERVFAIL;
    if (fresh)
        record(s, name->text, v, NULL);
    if (type == CSN_DNS_TYPE_AAAA && !s->gate->six)
        return CSN_DNS_NOERROR; /* nothing would listen there */
    *ret = gw_names_address(number, type == CSN_DNS_TYPE_A ? 4 : 6);
    return CSN_DNS_NOERROR;
}

static enum gw_dns_rcode answer(gw_dns_stub *s, const gw_exec_rules *narrow,
                                const gw_dns_query *q, csn_netaddr *ret)
{
    static const uint8_t self4[4] = {127, 0, 0, 1}, self6[16] = {[15] = 1};
    csn_netverdict v;
    csn_domain name;

    if (!may_ask(s)) {
        record(s, "", NULL, "too many questions a second");
        return CSN_DNS_REFUSED;
    }
    if (!csn_domain_parse_lookup(q->name, q->name_len, &name, NULL))
        return CSN_DNS_NXDOMAIN;
    if (strcmp(name.text, "localhost") == 0) { /* as every resolver must (RFC 6761) */
        if (q->type == CSN_DNS_TYPE_A)
            *ret = csn_netaddr_v4(self4);
        else if (q->type == CSN_DNS_TYPE_AAAA)
            *ret = csn_netaddr_v6(self6);
        return CSN_DNS_NOERROR;
    }
    csn_netrules_lookup(s->gate->rules, &name, &v);
    gw_exec_rules_lookup(narrow, &name, &v);
    if (v.allowed)
        return give(s, &name, q->type, &v, ret);
    if (!is_reverse(&name))
        record(s, name.text, &v, v.why);
    return CSN_DNS_NXDOMAIN;
}

/* How long the answer in out is; 0: none. */
static size_t reply(gw_dns_stub *s, const gw_exec_rules *narrow, const void *data, size_t len,
                    bool udp, uint8_t out[CSN_DNS_REPLY_MAX])
{
    csn_netaddr addr = {0};
    gw_dns_answer a = {0};
    gw_dns_query q;

    switch (gw_dns_parse(data, len, &q)) {
    case CSN_DNS_QUERY:
        a.rcode = answer(s, narrow, &q, &addr);
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
    a.ttl = addr.family != 0 ? TTL : TTL_ABSENT;
    size_t room = udp ? gw_dns_udp_limit(&q) : CSN_DNS_REPLY_MAX;
    return gw_dns_reply(&q, &a, out, room < CSN_DNS_REPLY_MAX ? room : CSN_DNS_REPLY_MAX);
}

/* ---- datagrams ------------------------------------------------------------------------- */

static void on_datagrams(gw_io *io, uint32_t events)
{
    uint8_t in[CSN_DNS_UDP_MAX + 1], out[CSN_DNS_REPLY_MAX];
    const desk *d = CSN_OWNER(desk, io, io);

    (void)events;
    for (int i = 0; i < AT_ONCE; i++) {
        struct sockaddr_storage from;
        socklen_t from_len = sizeof(from);
        ssize_t n = recvfrom(io->fd, in, sizeof(in), MSG_DONTWAIT, (void *)&from, &from_len);
        if (n < 0)
            return;
        size_t len = reply(d->stub, d->narrow, in, (size_t)n, true, out);
        if (len > 0)
            (void)!sendto(io->fd, out, len, MSG_DONTWAIT | MSG_NOSIGNAL, (void *)&from,
                          from_len);
    }
}

/* ---- connections ----------------------------------------------------------------------- */

static void hang_up(call *c)
{
    gw_loop_close(&c->io);
    gw_timer_release(&c->stub->gate->loop, &c->timer);
}

static void on_silence(gw_timer *t)
{
    hang_up(CSN_OWNER(call, timer, t));
}

/* Answers every whole question that is there. false: this connection is no good. */
static bool answer_call(call *c)
{
    uint8_t out[2 + CSN_DNS_REPLY_MAX];
    size_t len, used = 0;
    int rc;

    while ((rc = gw_dns_tcp_next(c->in + used, c->len - used, &len)) == 1) {
        size_t n = reply(c->stub, c->narrow, c->in + used + 2, len, false, out + 2);
        used += 2 + len;
        if (n == 0)
            return false;
        gw_dns_tcp_length(out, n);
        /* Who does not read its answers is not waited for. */
        if (send(c->io.fd, out, n + 2, MSG_DONTWAIT | MSG_NOSIGNAL) != (ssize_t)(n + 2))
            return false;
    }
    memmove(c->in, c->in + used, c->len - used);
    c->len -= used;
    return rc == 0;
}

static void on_call(gw_io *io, uint32_t events)
{
    call *c = CSN_OWNER(call, io, io);
    gw_loop *loop = &c->stub->gate->loop;
    ssize_t n = recv(io->fd, c->in + c->len, sizeof(c->in) - c->len, MSG_DONTWAIT);

    (void)events;
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n > 0)
        c->len += (size_t)n;
    if (n <= 0 || !answer_call(c))
        hang_up(c);
    else
        gw_timer_arm(loop, &c->timer, loop->now_ns + CALL_NS);
}

static void on_caller(gw_io *io, uint32_t events)
{
    const desk *d = CSN_OWNER(desk, io, io);
    gw_dns_stub *s = d->stub;
    gw_loop *loop = &s->gate->loop;
    csn_autofd int fd = accept4(io->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    call *c = s->calls;

    (void)events;
    while (c < s->calls + CALLS_MAX && c->io.fd >= 0)
        c++;
    if (fd < 0 || c == s->calls + CALLS_MAX || gw_timer_reserve(loop, &c->timer, on_silence))
        return;
    c->stub = s;
    c->narrow = d->narrow;
    c->len = 0;
    if (gw_loop_listen(loop, &c->io, fd, on_call) < 0) {
        c->io.fd = -1;
        gw_timer_release(loop, &c->timer);
        return;
    }
    (void)csn_steal_fd(&fd);
    gw_timer_arm(loop, &c->timer, loop->now_ns + CALL_NS);
}

/* ---- set-up ---------------------------------------------------------------------------- */

int gw_dns_stub_init(gw_gateway *g, uint32_t per_second)
{
    g->stub = calloc(1, sizeof(*g->stub));
    if (!g->stub)
        return -ENOMEM;
    g->stub->gate = g;
    g->stub->per_second = per_second;
    g->stub->saved_ns = SAVED_NS;
    g->stub->filled_ns = g->loop.now_ns;
    for (size_t i = 0; i < CALLS_MAX; i++)
        g->stub->calls[i].io.fd = -1;
    return 0;
}

int gw_dns_stub_open(gw_gateway *g, int fd, bool tcp, const gw_exec_rules *narrow)
{
    gw_dns_stub *s = g->stub;
    desk *d = s->desks;

    while (d < s->desks + DESKS && d->stub)
        d++;
    if (d == s->desks + DESKS)
        return -E2BIG;
    int rc = gw_loop_listen(&g->loop, &d->io, fd, tcp ? on_caller : on_datagrams);
    if (rc == 0) {
        d->stub = s;
        d->narrow = narrow;
    }
    return rc;
}

void gw_dns_stub_close(gw_gateway *g, const gw_exec_rules *narrow)
{
    gw_dns_stub *s = g->stub;

    for (size_t i = 0; i < CALLS_MAX; i++)
        if (s->calls[i].io.fd >= 0 && s->calls[i].narrow == narrow)
            hang_up(&s->calls[i]);
    for (desk *d = s->desks; d < s->desks + DESKS; d++)
        if (d->stub && d->narrow == narrow) {
            gw_loop_close(&d->io);
            d->stub = NULL;
        }
}
