/* exec_rules.c: applies additional network rules to single commands.
 *
 * An exec request may list the domains that its command needs. The command's sockets are
 * created in a separate network namespace (os/socket_divert.h) with its own DNS and redirect
 * listeners, so every connection through these listeners belongs to that command. The sandbox's
 * rules apply first; the command's rules can only refuse more. The sandbox's rules alone decide
 * whether a resolved address may be dialled.
 *
 * Invariants: the rules and listeners of a command are removed when its lease, the reply
 * channel of the request, closes; a failed request leaves neither. */
#include <errno.h>
#include <stdio.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "gateway/gateway.h"

/* ---- verdicts -------------------------------------------------------------------------- */

static void refuse(csn_netverdict *v)
{
    *v = (csn_netverdict){.rule = NULL}; /* no hint: no sandbox rule would allow it */
    snprintf(v->why, sizeof(v->why), "not in the allowed_domains of this command");
}

void gw_exec_rules_name(const gw_exec_rules *e, const csn_domain *name, uint16_t port,
                        csn_netverdict *v)
{
    csn_netverdict own;

    if (!e || !v->allowed)
        return;
    csn_netrules_name(e->rules, name, port, &own);
    if (!own.allowed)
        refuse(v);
}

void gw_exec_rules_address(const gw_exec_rules *e, const csn_netaddr *a, uint16_t port,
                           csn_netverdict *v)
{
    csn_netverdict own;

    if (!e || !v->allowed)
        return;
    csn_netrules_address(e->rules, a, port, &own);
    if (!own.allowed)
        refuse(v);
}

void gw_exec_rules_lookup(const gw_exec_rules *e, const csn_domain *name, csn_netverdict *v)
{
    csn_netverdict own;

    if (!e || !v->allowed)
        return;
    csn_netrules_lookup(e->rules, name, &own);
    if (!own.allowed)
        refuse(v);
}

/* ---- begin and end --------------------------------------------------------------------- */

static void end(gw_exec_rules *e)
{
    gw_gateway *g = e->gateway;

    gw_listeners_close(g, e);
    gw_dns_stub_close(g, e);
    for (gw_flow *f = g->flows, *next; f; f = next) {
        next = f->next;
        if (f->exec_rules != e)
            continue;
        if (f->server.io.fd >= 0)
            gw_record_close(f, "the command has ended");
        gw_flow_reset(f);
    }
    gw_loop_close(&e->lease);
    csn_netrules_free(e->rules);
    e->rules = NULL;
}

/* The peer never sends on a lease, so any event means that it closed its end. */
static void on_lease(gw_io *io, uint32_t events)
{
    (void)events;
    end(GW_CONTAINER_OF(gw_exec_rules, lease, io));
}

static int adopt_fds(gw_exec_rules *e, csn_msg *m, uint32_t bits)
{
    size_t at = 1;

    for (uint32_t bit = 1; bit <= CSN_GATEWAY_FD_PROXY; bit <<= 1) {
        if (!(bits & bit))
            continue;
        csn_autofd int fd = csn_msg_take_fd(m, at++);
        int rc = gw_listener_adopt(e->gateway, fd, bit, e);
        if (rc < 0)
            return rc;
        (void)csn_steal_fd(&fd);
    }
    return 0;
}

static gw_exec_rules *free_slot(gw_gateway *g)
{
    for (size_t i = 0; i < GW_EXEC_RULES_MAX; i++)
        if (!g->exec_rules[i].rules)
            return &g->exec_rules[i];
    return NULL;
}

int gw_exec_rules_begin(gw_gateway *g, int lease, csn_msg *m, const csn_gateway_setup_msg *s)
{
    gw_exec_rules *e = free_slot(g);
    int rc = 0;

    if ((s->flags & ~CSN_GATEWAY_FDS_EXEC) != 0 || s->nhost_ports != 0 || s->npublish != 0 ||
        s->rules.mode != CSN_GATEWAY_LISTED || m->nfds != 1 + csn_gateway_setup_msg_fds(s))
        return -EPROTO;
    if (!e)
        return -EUSERS;
    *e = (gw_exec_rules){.gateway = g, .lease.fd = -1};
    csn_error *err = NULL;
    if (csn_netrules_new(NULL, s->rules.allow, s->rules.deny, &e->rules, &err) != CSN_OK) {
        rc = csn_error_code(err) == CSN_NOMEM ? -ENOMEM : -EINVAL;
        csn_error_free(err);
        return rc;
    }
    rc = adopt_fds(e, m, s->flags);
    if (rc == 0)
        rc = gw_loop_add_level(&g->loop, &e->lease, lease, on_lease);
    if (rc < 0) {
        e->lease.fd = -1;
        end(e);
    }
    return rc;
}
