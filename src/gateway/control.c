/* control.c: what the library asks of the gateway, and when the gateway ends.
 *
 * The library is trusted with rules, not with our memory: bodies are checked by proto.c, and
 * descriptors that were not announced are closed. A detached sandbox's socket may be connected
 * to by any process of the user. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "caisson/caisson.h"
#include "gateway/gateway.h"

#define CONNS_MAX 64u
#define AT_ONCE   8

typedef struct conn {
    gw_io io;
    struct gw_control *control;
    bool first; /* the one we were born with */
} conn;

typedef struct gw_control {
    gw_gateway *gate;
    gw_io socket;
    conn conns[CONNS_MAX];
    bool set_up, detached;
    uint8_t packet[CSN_KEEPER_MSG_MAX];
} gw_control;

/* ---- answers --------------------------------------------------------------------------- */

/* Never waits: a library that does not read its answer must not hold up a sandbox's traffic. */
static void answer(int channel, uint16_t type, csn_packer *o)
{
    if (o->error == 0)
        (void)csn_msg_send(channel, type, o->data, o->len, NULL, 0, 1);
    csn_packer_release(o);
}

static void fail(int channel, const char *text)
{
    char cut[CSN_GATEWAY_TEXT_MAX + 1];
    uint8_t buf[CSN_GATEWAY_TEXT_MAX + 64];
    csn_packer o;

    snprintf(cut, sizeof(cut), "%s", text);
    csn_packer_init(&o, buf, sizeof(buf));
    csn_put_str(&o, cut);
    answer(channel, CSN_GATEWAY_FAILED, &o);
}

static void fail_errno(int channel, const char *what, int rc)
{
    char text[256], buf[128];

    snprintf(text, sizeof(text), "%s: %s", what, strerror_r(-rc, buf, sizeof(buf)));
    fail(channel, text);
}

/* ---- rules ----------------------------------------------------------------------------- */

/* The old rules stay in force when the new ones are wrong. */
static bool take_rules(gw_gateway *g, int channel, const csn_gateway_rules *r)
{
    csn_netrules *rules = NULL;
    csn_error *err = NULL;

    if (csn_netrules_new(r->mode == CSN_GATEWAY_ALL ? "all" : NULL, r->allow, r->deny, &rules,
                         &err) != CSN_OK) {
        fail(channel, csn_error_message(err));
        csn_error_free(err);
        return false;
    }
    csn_netrules_free(g->rules);
    g->rules = rules;
    return true;
}

/* Answered after the flows are cut: whoever removed a rule can rely on it from then on. */
static void update(gw_control *c, int channel, const csn_msg *m)
{
    csn_gateway_rules r;
    csn_packer o;
    int rc = csn_get_gateway_rules(m->body, m->len, &r);

    if (rc < 0) {
        fail_errno(channel, "rules", rc);
        return;
    }
    if (take_rules(c->gate, channel, &r)) {
        gw_policy_recheck(c->gate);
        csn_packer_init(&o, NULL, 0);
        answer(channel, CSN_GATEWAY_OK, &o);
    }
    csn_gateway_rules_release(&r);
}

/* The channel is the lease: it stays open for as long as the command may use its sockets. */
static void narrow(gw_control *c, int *channel, csn_msg *m)
{
    csn_gateway_setup_msg s;
    csn_packer o;
    int rc = csn_get_gateway_setup(m->body, m->len, &s);

    if (rc == 0) {
        rc = gw_exec_rules_begin(c->gate, *channel, m, &s);
        csn_gateway_setup_msg_release(&s);
    }
    if (rc == -EUSERS) {
        fail(*channel, "too many commands at once have allowed_domains of their own");
    } else if (rc < 0) {
        fail_errno(*channel, "allowed_domains", rc);
    } else {
        csn_packer_init(&o, NULL, 0);
        answer(csn_steal_fd(channel), CSN_GATEWAY_OK, &o);
    }
}

static void events(gw_control *c, int channel, const csn_msg *m)
{
    csn_packer o;
    uint64_t since;

    if (csn_get_gateway_since(m->body, m->len, &since) < 0) {
        fail(channel, "a malformed question");
        return;
    }
    csn_packer_init(&o, NULL, 0);
    gw_events_put(c->gate->events, since, &o);
    answer(channel, CSN_GATEWAY_EVENTS_R, &o);
}

/* ---- set-up ---------------------------------------------------------------------------- */

static void on_conn(gw_io *io, uint32_t events_ready);

static bool add_conn(gw_control *c, int fd, bool first)
{
    for (size_t i = 0; i < CONNS_MAX; i++) {
        conn *n = &c->conns[i];
        if (n->io.fd >= 0)
            continue;
        n->control = c;
        n->first = first;
        if (gw_loop_listen(&c->gate->loop, &n->io, fd, on_conn) == 0)
            return true;
        n->io.fd = -1;
        return false;
    }
    return false;
}

static void on_socket(gw_io *io, uint32_t ready)
{
    gw_control *c = CSN_OWNER(gw_control, socket, io);
    csn_autofd int fd = accept4(io->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

    (void)ready;
    if (fd >= 0 && add_conn(c, fd, false))
        (void)csn_steal_fd(&fd);
}

static void on_keeper(gw_io *io, uint32_t ready)
{
    (void)ready;
    CSN_OWNER(gw_gateway, keeper, io)->loop.stop = true;
}

/* What each descriptor of SETUP is for. Takes fd, if that worked. */
static int take_socket(gw_control *c, uint32_t bit, int fd)
{
    gw_gateway *g = c->gate;
    int flags = fcntl(fd, F_GETFL);

    if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0)
        return bit == CSN_GATEWAY_FD_KEEPER
                   ? gw_loop_listen(&g->loop, &g->keeper, fd, on_keeper)
                   : -errno;
    switch (bit) {
    case CSN_GATEWAY_FD_DNS_UDP4:
    case CSN_GATEWAY_FD_DNS_UDP6:
        return gw_dns_stub_open(g, fd, false, NULL);
    case CSN_GATEWAY_FD_DNS_TCP4:
    case CSN_GATEWAY_FD_DNS_TCP6:
        return gw_dns_stub_open(g, fd, true, NULL);
    case CSN_GATEWAY_FD_TCP4:
    case CSN_GATEWAY_FD_TCP6:
        return gw_listener_open(g, fd, CSN_WAY_REDIRECT, 0, NULL);
    case CSN_GATEWAY_FD_PROXY:
        return gw_listener_open(g, fd, CSN_WAY_PROXY, 0, NULL);
    case CSN_GATEWAY_FD_LINK:
        return gw_ports_link(g, fd);
    case CSN_GATEWAY_FD_KEEPER:
        return gw_loop_listen(&g->loop, &g->keeper, fd, on_keeper);
    case CSN_GATEWAY_FD_SOCKET:
        return gw_loop_listen(&g->loop, &c->socket, fd, on_socket);
    default:
        return -EINVAL;
    }
}

/* Blocking would stop everything: another process may have made a socket so, and may still hold
 * it. */
static int take_sockets(gw_control *c, csn_msg *m, const csn_gateway_setup_msg *s)
{
    size_t at = 1;

    for (uint32_t bit = 1; bit <= CSN_GATEWAY_FDS; bit <<= 1) {
        if (!(s->flags & bit))
            continue;
        csn_autofd int fd = csn_msg_take_fd(m, at++);
        int rc = take_socket(c, bit, fd);
        if (rc < 0)
            return rc;
        (void)csn_steal_fd(&fd);
    }
    for (uint32_t i = 0; i < s->nlend; i++) {
        csn_autofd int fd = csn_msg_take_fd(m, at++);
        int flags = fcntl(fd, F_GETFL);
        if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0)
            return -errno;
        int rc =
            gw_listener_open(c->gate, fd, CSN_WAY_LENT, (uint16_t)s->lend[i].outside, NULL);
        if (rc < 0)
            return rc;
        (void)csn_steal_fd(&fd);
    }
    return 0;
}

/* Before rights are given up: a root caller may publish port 80. */
static bool publish(gw_gateway *g, int channel, const csn_gateway_setup_msg *s,
                    csn_gateway_ready *ret)
{
    *ret = (csn_gateway_ready){.n = s->npublish};
    for (uint32_t i = 0; i < s->npublish; i++) {
        uint16_t port = (uint16_t)s->publish[i].outside;
        int rc = gw_ports_publish(g, (uint16_t)s->publish[i].inside, &port);
        if (rc < 0) {
            char what[64];
            snprintf(what, sizeof(what), "port %u of 127.0.0.1", s->publish[i].outside);
            fail_errno(channel, what, rc);
            return false;
        }
        ret->port[i] = port;
    }
    return true;
}

/* All or nothing: who cannot be set up ends. */
static bool build(gw_control *c, int channel, csn_msg *m, const csn_gateway_setup_msg *s,
                  csn_gateway_ready *ready)
{
    gw_gateway *g = c->gate;

    if (m->nfds != 1 + csn_gateway_setup_msg_fds(s)) {
        fail(channel, "descriptors are missing");
        return false;
    }
    if (s->npublish > 0 && !(s->flags & CSN_GATEWAY_FD_LINK)) {
        fail(channel, "ports cannot be published without a link to the keeper");
        return false;
    }
    if ((s->flags & CSN_GATEWAY_DETACHED) && !(s->flags & CSN_GATEWAY_FD_KEEPER)) {
        fail(channel, "a detached gateway must know its keeper");
        return false;
    }
    g->flows_max = s->connections_max ? s->connections_max : CSN_GATEWAY_CONNECTIONS_DEFAULT;
    g->idle_ns = (s->idle_ms ? s->idle_ms : CSN_GATEWAY_IDLE_MS_DEFAULT) * 1000000ull;
    g->six = s->flags & CSN_GATEWAY_FD_TCP6;
    c->detached = s->flags & CSN_GATEWAY_DETACHED;
    if (!take_rules(g, channel, &s->rules))
        return false;
    int rc = gw_dns_stub_init(g, s->names_per_second ? s->names_per_second
                                                     : CSN_GATEWAY_NAMES_DEFAULT);
    if (rc == 0)
        rc = take_sockets(c, m, s);
    if (rc < 0) {
        fail_errno(channel, "sockets", rc);
        return false;
    }
    if (!publish(g, channel, s, ready))
        return false;
    rc = gw_confine(s->uid, s->gid, g->flows_max);
    if (rc < 0)
        fail_errno(channel, "giving up rights", rc);
    return rc == 0;
}

static void set_up(gw_control *c, int channel, csn_msg *m)
{
    csn_gateway_ready ready;
    csn_gateway_setup_msg s;
    csn_packer o;
    int rc = c->set_up ? -EALREADY : csn_get_gateway_setup(m->body, m->len, &s);

    if (rc < 0) {
        fail_errno(channel, "set-up", rc);
        return;
    }
    c->set_up = build(c, channel, m, &s, &ready);
    if (c->set_up) {
        csn_packer_init(&o, NULL, 0);
        csn_put_gateway_ready(&o, &ready);
        answer(channel, CSN_GATEWAY_READY, &o);
    } else {
        c->gate->loop.stop = true;
    }
    csn_gateway_setup_msg_release(&s);
}

/* ---- requests -------------------------------------------------------------------------- */

static void serve(gw_control *c, csn_msg *m)
{
    csn_autofd int channel = csn_msg_take_fd(m, 0);

    if (channel < 0)
        return;
    if (m->type == CSN_GATEWAY_SETUP)
        set_up(c, channel, m);
    else if (!c->set_up)
        fail(channel, "not set up yet");
    else if (m->type == CSN_GATEWAY_UPDATE)
        update(c, channel, m);
    else if (m->type == CSN_GATEWAY_EVENTS)
        events(c, channel, m);
    else if (m->type == CSN_GATEWAY_NARROW)
        narrow(c, &channel, m);
    else
        fail(channel, "an unknown request");
}

/* A message that breaks the protocol costs the connection, and the first one its gateway: no
 * network is the safe side of not understanding. */
static void on_conn(gw_io *io, uint32_t ready)
{
    conn *n = CSN_OWNER(conn, io, io);
    gw_control *c = n->control;

    (void)ready;
    for (int i = 0; i < AT_ONCE; i++) {
        csn_msg m;
        int rc = csn_msg_recv(io->fd, c->packet, sizeof(c->packet), &m);
        if (rc == -EAGAIN)
            return;
        if (rc <= 0) {
            gw_loop_close(io);
            if (n->first && !c->detached)
                c->gate->loop.stop = true;
            return;
        }
        serve(c, &m);
        csn_msg_release(&m);
    }
}

int gw_control_init(gw_gateway *g, int fd)
{
    gw_control *c = calloc(1, sizeof(*c));

    if (!c)
        return -ENOMEM;
    g->control = c;
    c->gate = g;
    c->socket.fd = -1;
    for (size_t i = 0; i < CONNS_MAX; i++)
        c->conns[i].io.fd = -1;
    return add_conn(c, fd, true) ? 0 : -EINVAL;
}
