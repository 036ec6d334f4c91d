/* control.c: serves the library's requests and decides when the gateway exits.
 *
 * The library sets the rules, but its messages are not trusted: any process of the user may
 * connect to the socket of a detached sandbox. protocol.c checks every body, and descriptors
 * that a message does not announce are closed. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "caisson/caisson.h"
#include "gateway/gateway.h"
#include "gateway/socket.h"

#define CONNS_MAX           64u
#define REQUESTS_PER_WAKEUP 8
#define WATCHERS_MAX        64u /* commands that run at the same time */

typedef struct control_conn {
    gw_io io;
    struct gw_control *control;
    bool inherited; /* the connection the gateway was started with */
} control_conn;

typedef struct gw_control {
    gw_gateway *gateway;
    gw_io listener;
    control_conn conns[CONNS_MAX];
    gw_io watchers[WATCHERS_MAX]; /* channels of WATCH */
    bool set_up, detached;
    uint8_t packet[CSN_KEEPER_MSG_MAX];
} gw_control;

/* ---- replies --------------------------------------------------------------------------- */

/* Does not block: a library that does not read its replies must not stall traffic. */
static void reply(int channel, uint16_t type, csn_packer *o)
{
    if (o->error == 0)
        (void)csn_msg_send(channel, type, o->data, o->len, NULL, 0, 1);
    csn_packer_release(o);
}

static void reply_ok(int channel)
{
    (void)csn_msg_send(channel, CSN_GATEWAY_OK, NULL, 0, NULL, 0, 1);
}

static void reply_failed(int channel, const char *text)
{
    char cut[CSN_GATEWAY_TEXT_MAX + 1];
    uint8_t buf[CSN_GATEWAY_TEXT_MAX + 64];
    csn_packer o;

    snprintf(cut, sizeof(cut), "%s", text);
    csn_packer_init(&o, buf, sizeof(buf));
    csn_put_str(&o, cut);
    reply(channel, CSN_GATEWAY_FAILED, &o);
}

static void reply_errno(int channel, const char *what, int rc)
{
    char text[256], buf[128];

    snprintf(text, sizeof(text), "%s: %s", what, strerror_r(-rc, buf, sizeof(buf)));
    reply_failed(channel, text);
}

/* ---- rules ----------------------------------------------------------------------------- */

/* Invalid rules leave the old ones in force. */
static bool replace_rules(gw_gateway *g, int channel, const csn_gateway_rules *r)
{
    csn_netrules *rules = NULL;
    csn_error *err = NULL;

    if (csn_netrules_new(r->mode == CSN_GATEWAY_ALL ? "all" : NULL, r->allow, r->deny, &rules,
                         &err) != CSN_OK) {
        reply_failed(channel, csn_error_message(err));
        csn_error_free(err);
        return false;
    }
    csn_netrules_free(g->rules);
    g->rules = rules;
    return true;
}

/* Replies after resetting the flows that are no longer allowed: when the caller has the reply,
 * no connection uses a removed rule. */
static void update_rules(gw_control *c, int channel, const csn_msg *m)
{
    csn_gateway_rules r;
    int rc = csn_get_gateway_rules(m->body, m->len, &r);

    if (rc < 0) {
        reply_errno(channel, "rules", rc);
        return;
    }
    if (replace_rules(c->gateway, channel, &r)) {
        gw_policy_recheck(c->gateway);
        reply_ok(channel);
    }
    csn_gateway_rules_release(&r);
}

/* The channel becomes the lease of the command. */
static void begin_exec_rules(gw_control *c, int *channel, csn_msg *m)
{
    csn_gateway_setup_msg s;
    int rc = csn_get_gateway_setup(m->body, m->len, &s);

    if (rc == 0) {
        rc = gw_exec_rules_begin(c->gateway, *channel, m, &s);
        csn_gateway_rules_release(&s.rules);
    }
    if (rc == -EUSERS) {
        reply_failed(*channel,
                     "too many running commands have allowed_domains; wait for one to end");
    } else if (rc < 0) {
        reply_errno(*channel, "allowed_domains", rc);
    } else {
        reply_ok(csn_steal_fd(channel));
    }
}

static void send_events(gw_control *c, int channel, const csn_msg *m)
{
    csn_packer o;
    uint64_t since;

    if (csn_get_gateway_since(m->body, m->len, &since) < 0) {
        reply_failed(channel, "malformed request");
        return;
    }
    csn_packer_init(&o, NULL, 0);
    gw_events_put(c->gateway->events, since, &o);
    reply(channel, CSN_GATEWAY_EVENTS_R, &o);
}

/* Does not block: a watcher that does not read misses denials, which EVENTS still has. */
static void tell_watchers(void *ctx, const csn_gateway_event *ev)
{
    gw_control *c = ctx;
    csn_packer o;

    csn_packer_init(&o, NULL, 0);
    for (size_t i = 0; i < WATCHERS_MAX; i++) {
        if (c->watchers[i].fd < 0)
            continue;
        if (o.len == 0)
            csn_put_gateway_event(&o, ev);
        if (o.error == 0)
            (void)csn_msg_send(c->watchers[i].fd, CSN_GATEWAY_DENIED, o.data, o.len, NULL, 0,
                               1);
    }
    csn_packer_release(&o);
}

/* The peer never sends on this channel, so any event means that it closed its end. */
static void on_watcher(gw_io *io, uint32_t ready)
{
    (void)ready;
    gw_loop_close(io);
}

static void add_watcher(gw_control *c, int *channel)
{
    gw_io *w = c->watchers;

    while (w < c->watchers + WATCHERS_MAX && w->fd >= 0)
        w++;
    if (w == c->watchers + WATCHERS_MAX)
        return; /* the channel closes */
    if (gw_loop_add_level(&c->gateway->loop, w, *channel, on_watcher) == 0)
        (void)csn_steal_fd(channel);
    else
        w->fd = -1;
}

/* ---- set-up ---------------------------------------------------------------------------- */

static void on_request(gw_io *io, uint32_t events_ready);

static bool add_conn(gw_control *c, int fd, bool inherited)
{
    for (size_t i = 0; i < CONNS_MAX; i++) {
        control_conn *n = &c->conns[i];
        if (n->io.fd >= 0)
            continue;
        n->control = c;
        n->inherited = inherited;
        if (gw_loop_add_level(&c->gateway->loop, &n->io, fd, on_request) == 0)
            return true;
        n->io.fd = -1;
        return false;
    }
    return false;
}

static void on_accept(gw_io *io, uint32_t ready)
{
    gw_control *c = GW_CONTAINER_OF(gw_control, listener, io);
    csn_autofd int fd = accept4(io->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

    (void)ready;
    if (fd >= 0 && add_conn(c, fd, false))
        (void)csn_steal_fd(&fd);
}

static void on_keeper(gw_io *io, uint32_t ready)
{
    (void)ready;
    GW_CONTAINER_OF(gw_gateway, keeper, io)->loop.stop = true;
}

static int adopt_fd(gw_control *c, uint32_t bit, int fd)
{
    gw_gateway *g = c->gateway;

    switch (bit) {
    case CSN_GATEWAY_FD_KEEPER:
        return gw_loop_add_level(&g->loop, &g->keeper, fd, on_keeper);
    case CSN_GATEWAY_FD_LINK:
        return gw_ports_link(g, fd);
    case CSN_GATEWAY_FD_SOCKET:
        return gw_loop_add_level(&g->loop, &c->listener, fd, on_accept);
    default:
        return gw_listener_adopt(g, fd, bit, NULL);
    }
}

static int adopt_fds(gw_control *c, csn_msg *m, const csn_gateway_setup_msg *s)
{
    size_t at = 1;

    for (uint32_t bit = 1; bit <= CSN_GATEWAY_FDS; bit <<= 1) {
        if (!(s->flags & bit))
            continue;
        csn_autofd int fd = csn_msg_take_fd(m, at++);
        int rc = bit & (CSN_GATEWAY_FD_LINK | CSN_GATEWAY_FD_SOCKET)
                     ? gw_socket_set_nonblock(fd)
                     : 0;
        if (rc == 0)
            rc = adopt_fd(c, bit, fd);
        if (rc < 0)
            return rc;
        (void)csn_steal_fd(&fd);
    }
    for (uint32_t i = 0; i < s->nhost_ports; i++) {
        csn_autofd int fd = csn_msg_take_fd(m, at++);
        int rc = gw_socket_set_nonblock(fd);
        if (rc == 0)
            rc = gw_listener_open(c->gateway, fd, GW_ORIGIN_HOST_PORT,
                                  (uint16_t)s->host_ports[i].outside, NULL);
        if (rc < 0)
            return rc;
        (void)csn_steal_fd(&fd);
    }
    return 0;
}

/* Called before privileges are dropped: root may publish port 80. */
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
            reply_errno(channel, what, rc);
            return false;
        }
        ret->port[i] = port;
    }
    return true;
}

static bool apply_setup(gw_control *c, int channel, csn_msg *m, const csn_gateway_setup_msg *s,
                        csn_gateway_ready *ready)
{
    gw_gateway *g = c->gateway;

    if (m->nfds != 1 + csn_gateway_setup_msg_fds(s)) {
        reply_failed(channel, "descriptors are missing");
        return false;
    }
    if (s->npublish > 0 && !(s->flags & CSN_GATEWAY_FD_LINK)) {
        reply_failed(channel, "published ports need a link to the keeper");
        return false;
    }
    if ((s->flags & CSN_GATEWAY_DETACHED) && !(s->flags & CSN_GATEWAY_FD_KEEPER)) {
        reply_failed(channel, "a detached gateway needs the pidfd of its keeper");
        return false;
    }
    g->flows_max = s->connections_max ? s->connections_max : CSN_GATEWAY_CONNECTIONS_DEFAULT;
    g->idle_ns = (s->idle_ms ? s->idle_ms : CSN_GATEWAY_IDLE_MS_DEFAULT) * 1000000ull;
    g->has_ipv6 = s->flags & CSN_GATEWAY_FD_TCP6;
    c->detached = s->flags & CSN_GATEWAY_DETACHED;
    if (!replace_rules(g, channel, &s->rules))
        return false;
    int rc = gw_dns_stub_init(g, s->names_per_second ? s->names_per_second
                                                     : CSN_GATEWAY_NAMES_DEFAULT);
    if (rc == 0)
        rc = adopt_fds(c, m, s);
    if (rc < 0) {
        reply_errno(channel, "sockets", rc);
        return false;
    }
    if (!publish(g, channel, s, ready))
        return false;
    rc = gw_confine(s->uid, s->gid, g->flows_max);
    if (rc < 0)
        reply_errno(channel, "dropping privileges", rc);
    return rc == 0;
}

static void set_up(gw_control *c, int channel, csn_msg *m)
{
    csn_gateway_ready ready;
    csn_gateway_setup_msg s;
    csn_packer o;
    int rc = c->set_up ? -EALREADY : csn_get_gateway_setup(m->body, m->len, &s);

    if (rc < 0) {
        reply_errno(channel, "set-up", rc);
        return;
    }
    c->set_up = apply_setup(c, channel, m, &s, &ready);
    if (c->set_up) {
        csn_packer_init(&o, NULL, 0);
        csn_put_gateway_ready(&o, &ready);
        reply(channel, CSN_GATEWAY_READY, &o);
    } else {
        c->gateway->loop.stop = true;
    }
    csn_gateway_rules_release(&s.rules);
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
        reply_failed(channel, "not set up yet");
    else if (m->type == CSN_GATEWAY_UPDATE)
        update_rules(c, channel, m);
    else if (m->type == CSN_GATEWAY_EVENTS)
        send_events(c, channel, m);
    else if (m->type == CSN_GATEWAY_EXEC_RULES)
        begin_exec_rules(c, &channel, m);
    else if (m->type == CSN_GATEWAY_WATCH)
        add_watcher(c, &channel);
    else
        reply_failed(channel, "unknown request");
}

/* A malformed message closes the connection. On the inherited connection it ends the gateway,
 * and the sandbox has no network. */
static void on_request(gw_io *io, uint32_t ready)
{
    control_conn *n = GW_CONTAINER_OF(control_conn, io, io);
    gw_control *c = n->control;

    (void)ready;
    for (int i = 0; i < REQUESTS_PER_WAKEUP; i++) {
        csn_msg m;
        int rc = csn_msg_recv(io->fd, c->packet, sizeof(c->packet), &m);
        if (rc == -EAGAIN)
            return;
        if (rc <= 0) {
            gw_loop_close(io);
            if (n->inherited && !c->detached)
                c->gateway->loop.stop = true;
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
    c->gateway = g;
    c->listener.fd = -1;
    for (size_t i = 0; i < CONNS_MAX; i++)
        c->conns[i].io.fd = -1;
    for (size_t i = 0; i < WATCHERS_MAX; i++)
        c->watchers[i].fd = -1;
    gw_events_on_denial(g->events, tell_watchers, c);
    return add_conn(c, fd, true) ? 0 : -EINVAL;
}
