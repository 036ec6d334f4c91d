/* exec_rules.c: commands that may reach less than their sandbox.
 *
 * Asked for by the library when a call names the domains it needs. The command has sockets of a
 * network of its own (os/socket_divert.h), whose resolver and listeners are handed over here,
 * so what comes in by them is that command's and nobody else's. The rules of the sandbox hold
 * for it as for all; these are asked in addition, and can only refuse. Whether an address may
 * be dialled that an allowed name leads to stays a question to the sandbox's rules alone. What
 * must hold: nothing of a command outlives its lease, the channel of the request; a request
 * that cannot be carried out in full leaves nothing behind. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "gateway/gateway.h"

#define NOT_ASKED_FOR "the command was started for other hosts only (allowed_domains)"

/* ---- verdicts ---- */

static void also(const gw_exec_rules *n, const csn_netverdict *by_narrow, csn_netverdict *v)
{
    if (!n || !v->allowed || by_narrow->allowed)
        return;
    *v = (csn_netverdict){.rule = NULL}; /* no rule of the sandbox would change it */
    snprintf(v->why, sizeof(v->why), "%s", NOT_ASKED_FOR);
}

void gw_exec_rules_name(const gw_exec_rules *n, const csn_domain *name, uint16_t port,
                        csn_netverdict *v)
{
    csn_netverdict own = {0};

    if (n)
        csn_netrules_name(n->rules, name, port, &own);
    also(n, &own, v);
}

void gw_exec_rules_address(const gw_exec_rules *n, const csn_netaddr *a, uint16_t port,
                           csn_netverdict *v)
{
    csn_netverdict own = {0};

    if (n)
        csn_netrules_address(n->rules, a, port, &own);
    also(n, &own, v);
}

void gw_exec_rules_lookup(const gw_exec_rules *n, const csn_domain *name, csn_netverdict *v)
{
    csn_netverdict own = {0};

    if (n)
        csn_netrules_lookup(n->rules, name, &own);
    also(n, &own, v);
}

/* ---- life ---- */

static void end(gw_exec_rules *n)
{
    gw_gateway *g = n->gate;

    gw_listeners_close(g, n);
    gw_dns_stub_close(g, n);
    for (gw_flow *f = g->flows, *next; f; f = next) {
        next = f->next;
        if (f->narrow != n)
            continue;
        if (f->far.io.fd >= 0)
            gw_record_close(f, "the command has ended");
        gw_flow_cut(f);
    }
    gw_loop_close(&n->lease);
    csn_netrules_free(n->rules);
    n->rules = NULL;
}

/* Whoever holds the other end has nothing to say: that something is there is the end of it. */
static void on_lease(gw_io *io, uint32_t events)
{
    (void)events;
    end(CSN_OWNER(gw_exec_rules, lease, io));
}

static int take_socket(gw_exec_rules *n, uint32_t bit, int fd)
{
    int flags = fcntl(fd, F_GETFL);

    if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0)
        return -errno;
    if (bit & (CSN_GATEWAY_FD_DNS_UDP4 | CSN_GATEWAY_FD_DNS_UDP6))
        return gw_dns_stub_open(n->gate, fd, false, n);
    if (bit & (CSN_GATEWAY_FD_DNS_TCP4 | CSN_GATEWAY_FD_DNS_TCP6))
        return gw_dns_stub_open(n->gate, fd, true, n);
    return gw_listener_open(
        n->gate, fd, bit == CSN_GATEWAY_FD_PROXY ? CSN_WAY_PROXY : CSN_WAY_REDIRECT, 0, n);
}

static int take_sockets(gw_exec_rules *n, csn_msg *m, uint32_t bits)
{
    size_t at = 1;

    for (uint32_t bit = 1; bit <= CSN_GATEWAY_FD_PROXY; bit <<= 1) {
        if (!(bits & bit))
            continue;
        csn_autofd int fd = csn_msg_take_fd(m, at++);
        int rc = take_socket(n, bit, fd);
        if (rc < 0)
            return rc;
        (void)csn_steal_fd(&fd);
    }
    return 0;
}

static gw_exec_rules *free_slot(gw_gateway *g)
{
    for (size_t i = 0; i < GW_EXEC_RULES_MAX; i++)
        if (!g->narrows[i].rules)
            return &g->narrows[i];
    return NULL;
}

int gw_exec_rules_begin(gw_gateway *g, int lease, csn_msg *m, const csn_gateway_setup_msg *s)
{
    gw_exec_rules *n = free_slot(g);
    int rc = 0;

    if ((s->flags & ~CSN_GATEWAY_FDS_NARROW) != 0 || s->nlend != 0 || s->npublish != 0 ||
        s->rules.mode != CSN_GATEWAY_LISTED || m->nfds != 1 + csn_gateway_setup_msg_fds(s))
        return -EPROTO;
    if (!n)
        return -EUSERS;
    *n = (gw_exec_rules){.gate = g, .lease.fd = -1};
    csn_error *err = NULL;
    if (csn_netrules_new(NULL, s->rules.allow, s->rules.deny, &n->rules, &err) != CSN_OK) {
        rc = csn_error_code(err) == CSN_NOMEM ? -ENOMEM : -EINVAL;
        csn_error_free(err);
        return rc;
    }
    rc = take_sockets(n, m, s->flags);
    if (rc == 0)
        rc = gw_loop_listen(&g->loop, &n->lease, lease, on_lease);
    if (rc < 0) {
        n->lease.fd = -1;
        end(n);
    }
    return rc;
}
