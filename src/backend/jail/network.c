/* network.c: turns network rules into a running gateway, and describes the layer `net`.
 *
 * The rules are compiled here once, so that an invalid rule is an error of open, and again by
 * the gateway, which enforces them. The keeper creates the sockets inside the jail; READY
 * carries them to the library, which passes them to the gateway.
 *
 * Invariants: rules that cannot be enforced are refused; the sandbox is opened only with a
 * gateway that is set up; when the gateway ends, the sandbox loses its network and nothing
 * else. */
#include "backend/jail/network.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "backend/jail/jail.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/strv.h"
#include "os/nft.h"
#include "policy/netport.h"
#include "policy/netrules.h"

/* Subtracted from the uid of a root caller's jail: the result has no account and belongs to no
 * jail. */
#define GATEWAY_USER_STEP 0x10000000u

/* ---- rules ---- */

/* Compiles the rules once to validate them. *ret_closed: they allow nothing. */
static csn_status check_rules(const csn_net_opts *o, bool *ret_closed, csn_error **err)
{
    csn_netrules *compiled = NULL;

    if (o->packages && o->packages[0])
        return csn_fail(err, CSN_UNSUPPORTED, "backend 'jail' cannot honour packages");
    csn_status st = csn_netrules_new(o->network, o->net_allow, o->net_deny, &compiled, err);
    if (st < 0)
        return st;
    *ret_closed = csn_netrules_is_closed(compiled);
    csn_netrules_free(compiled);
    return CSN_OK;
}

static csn_gateway_rules wire_rules(const csn_net_opts *o)
{
    bool all = o->network && strcmp(o->network, "all") == 0;

    return (csn_gateway_rules){.mode = all ? CSN_GATEWAY_ALL : CSN_GATEWAY_LISTED,
                               .allow = (const char **)(uintptr_t)o->net_allow,
                               .deny = (const char **)(uintptr_t)o->net_deny};
}

static csn_net_opts config_rules(const csn_config *c)
{
    return (csn_net_opts){.size = sizeof(csn_net_opts),
                          .network = c->network,
                          .net_allow = c->net_allow,
                          .net_deny = c->net_deny,
                          .packages = c->packages};
}

/* ---- ports ---- */

static csn_status parse_ports(const char *const *v, const char *what, bool may_choose,
                              csn_gateway_port *ret, uint32_t *ret_count, csn_error **err)
{
    *ret_count = 0;
    for (size_t i = 0; v && v[i]; i++) {
        const char *why = NULL;
        csn_netport p;
        if (i == CSN_GATEWAY_PORTS_MAX)
            return csn_fail(err, CSN_TOO_LARGE, "network.%s: more than %u ports", what,
                            CSN_GATEWAY_PORTS_MAX);
        if (!csn_netport_parse(v[i], may_choose, &p, &why))
            return csn_fail(err, CSN_INVALID, "network.%s %s: not a valid port%s%s", what, v[i],
                            why ? ": " : "", why ? why : "");
        for (size_t n = 0; n < i; n++)
            if (ret[n].inside == p.inside && !may_choose)
                return csn_fail(err, CSN_INVALID, "network.%s: port %u is used twice inside",
                                what, p.inside);
        ret[i] = (csn_gateway_port){.inside = p.inside, .outside = p.host};
        *ret_count = (uint32_t)i + 1;
    }
    return CSN_OK;
}
_Static_assert(CSN_GATEWAY_PORTS_MAX == CSN_GATEWAY_NET_HOST_PORTS_MAX,
               "one listener inside for each");

static csn_status plan_ports(const csn_config *c, csn_jail_net *n, csn_error **err)
{
    csn_status st = parse_ports(c->publish, "publish", true, n->publish, &n->npublish, err);

    if (st == CSN_OK)
        st = parse_ports(c->host_ports, "host_ports", false, n->host_ports,
                         &n->order.host_port_count, err);
    for (uint32_t i = 0; st == CSN_OK && i < n->order.host_port_count; i++)
        n->order.host_ports[i] = (uint16_t)n->host_ports[i].inside;
    return st;
}

csn_status csn_jail_net_new(csn_jail *j, csn_error **err)
{
    csn_jail_net *n = csn_arena_alloc(j->arena, sizeof(*n));

    if (!n)
        return csn_fail(err, CSN_NOMEM, "network rules");
    *n = (csn_jail_net){.gateway = CSN_GATEWAY_NONE, .order.mode = CSN_GATEWAY_NET_EITHER};
    pthread_mutex_init(&n->lock, NULL);
    j->net = n;
    return CSN_OK;
}

csn_status csn_jail_net_plan(csn_runtime *rt, csn_error **err)
{
    const csn_config *c = rt->config;
    csn_jail *j = rt->jail;
    const csn_net_opts o = config_rules(c);
    bool closed = true;

    if (!c->network && !c->net_allow && !c->net_deny && !c->packages && !c->publish &&
        !c->host_ports)
        return CSN_OK;
    csn_status st = check_rules(&o, &closed, err);
    bool none = closed && !csn_strv_len(c->publish) && !csn_strv_len(c->host_ports);
    if (st < 0 || none)
        return st;
    if (rt->level == CSN_LEVEL_LANDLOCK_ONLY)
        return csn_fail(err, CSN_UNSUPPORTED,
                        "network rules need namespaces, which this host refuses");
    st = csn_jail_net_new(j, err);
    return st < 0 ? st : plan_ports(c, j->net, err);
}

static void close_fds(csn_jail_net *n)
{
    for (size_t i = 0; i < n->fd_count; i++)
        close(n->fds[i]);
    n->fd_count = 0;
}

void csn_jail_net_release(csn_jail *j)
{
    if (!j->net)
        return;
    close_fds(j->net);
    csn_gateway_release(&j->net->gateway);
    pthread_mutex_destroy(&j->net->lock);
    j->net = NULL;
}

/* ---- sockets from READY ---- */

bool csn_jail_net_take(csn_jail *j, csn_msg *m)
{
    csn_jail_net *n = j->net;
    uint32_t mode = j->ready.net_mode;

    if (!n)
        return mode == CSN_GATEWAY_NET_NONE && m->nfds == 1;
    size_t want =
        1 + (size_t)__builtin_popcount(j->ready.net_sockets) + n->order.host_port_count;
    if (mode == CSN_GATEWAY_NET_NONE || m->nfds != 1 + want)
        return false;
    if (mode != n->order.mode && n->order.mode != CSN_GATEWAY_NET_EITHER)
        return false;
    for (size_t i = 0; i < want; i++)
        n->fds[i] = csn_msg_take_fd(m, i + 1);
    n->fd_count = want;
    return true;
}

const char *csn_jail_net_step_name(uint32_t step, uint32_t detail)
{
    if (step == 0 && detail == 0)
        return NULL;
    if (step == CSN_GATEWAY_NET_STEP_RULES)
        return csn_nft_step_name(detail);
    return step == CSN_GATEWAY_NET_STEP_ROUTES       ? "routes"
           : step == CSN_GATEWAY_NET_STEP_HOST_PORTS ? "listener for a host port"
                                                     : "sockets";
}

/* ---- the gateway ---- */

csn_status csn_jail_net_start(csn_runtime *rt, csn_error **err)
{
    csn_jail *j = rt->jail;

    return j->net ? csn_gateway_start(rt, &j->net->gateway, err) : CSN_OK;
}

/* Descriptors in the order of the bits of `flags`, then the listeners for host ports. */
static csn_status pass_sockets(csn_runtime *rt, csn_gateway_setup_msg *s, csn_error **err)
{
    const csn_jail *j = rt->jail;
    csn_jail_net *n = j->net;
    csn_autofd int listening = -1;
    int fds[CSN_KEEPER_FDS_MAX];
    size_t sockets = n->fd_count - 1 - n->order.host_port_count, count = 0;
    csn_gateway_ready ready = {0};

    _Static_assert((int)CSN_GATEWAY_FD_DNS_UDP4 == 1 << CSN_GATEWAY_NET_DNS_UDP4 &&
                       (int)CSN_GATEWAY_FD_TCP6 == 1 << CSN_GATEWAY_NET_TCP6 &&
                       (int)CSN_GATEWAY_FD_PROXY == 1 << CSN_GATEWAY_NET_LISTENER,
                   "the keeper's sockets have the gateway's bits");
    s->flags = j->ready.net_sockets | CSN_GATEWAY_FD_LINK | CSN_GATEWAY_FD_KEEPER;
    memcpy(fds, n->fds + 1, sockets * sizeof(*fds));
    count = sockets;
    fds[count++] = n->fds[0];
    fds[count++] = rt->keeper_pidfd;
    if (rt->detached) {
        csn_status st = csn_gateway_listen(rt, &listening, err);
        if (st < 0)
            return st;
        s->flags |= CSN_GATEWAY_FD_SOCKET | CSN_GATEWAY_DETACHED;
        fds[count++] = listening;
    }
    memcpy(fds + count, n->fds + 1 + sockets, n->order.host_port_count * sizeof(*fds));
    count += n->order.host_port_count;
    csn_status st = csn_gateway_setup(&n->gateway, s, fds, count, &ready, err);
    close_fds(n);
    for (uint32_t i = 0; st == CSN_OK && i < ready.n; i++)
        n->publish[i].outside = ready.port[i];
    return st;
}

static csn_status set_up_gateway(csn_runtime *rt, csn_error **err)
{
    const csn_jail *j = rt->jail;
    const csn_jail_net *n = j->net;
    const csn_net_opts o = config_rules(rt->config);
    csn_gateway_setup_msg s = {.npublish = n->npublish,
                               .nhost_ports = n->order.host_port_count};

    s.rules = wire_rules(&o);
    if (j->spare_uid != 0)
        s.uid = s.gid = j->spare_uid - GATEWAY_USER_STEP;
    memcpy(s.publish, n->publish, sizeof(s.publish));
    memcpy(s.host_ports, n->host_ports, sizeof(s.host_ports));
    return pass_sockets(rt, &s, err);
}

static const char *published_text(const csn_jail *j)
{
    const char *text = "";

    for (uint32_t i = 0; text && i < j->net->npublish; i++)
        text = csn_arena_printf(j->arena, "%s; port %u inside is 127.0.0.1:%u", text,
                                j->net->publish[i].inside, j->net->publish[i].outside);
    return text;
}

static csn_status describe(csn_jail *j, csn_error **err)
{
    csn_jail_net *n = j->net;
    const char *ports = published_text(j);

    if (j->ready.net_mode == CSN_GATEWAY_NET_TRANSPARENT)
        n->detail = csn_arena_printf(j->arena, "TCP to allowed hosts through a gateway%s",
                                     ports ? ports : "");
    else
        n->detail = csn_arena_printf(
            j->arena,
            "this kernel lacks nf_tables (%s): only programs that use the proxy at "
            "127.0.0.1:%u "
            "reach allowed hosts%s",
            j->ready.net_lacking ? strerrordesc_np((int)j->ready.net_lacking) : "not asked",
            j->ready.proxy_port, ports ? ports : "");
    return n->detail ? CSN_OK : csn_fail(err, CSN_NOMEM, "network");
}

csn_status csn_jail_net_set_up(csn_runtime *rt, csn_error **err)
{
    if (!rt->jail->net)
        return CSN_OK;
    csn_status st = set_up_gateway(rt, err);
    return st < 0 ? st : describe(rt->jail, err);
}

csn_status csn_jail_net_find(csn_runtime *rt, csn_error **err)
{
    csn_jail *j = rt->jail;

    if (!j->net)
        return CSN_OK;
    csn_gateway_find(rt, &j->net->gateway);
    return describe(j, err);
}

void csn_jail_net_ended(csn_runtime *rt)
{
    if (rt->jail->net)
        csn_gateway_end(rt, &rt->jail->net->gateway);
}

/* ---- variables and layers ---- */

const char *const *csn_jail_net_variables(const csn_runtime *rt)
{
    const csn_jail *j = rt->jail;

    if (!j->net || j->ready.net_mode != CSN_GATEWAY_NET_PROXY)
        return NULL;
    const char *http = csn_arena_printf(j->arena, "http://127.0.0.1:%u", j->ready.proxy_port);
    const char *socks =
        csn_arena_printf(j->arena, "socks5h://127.0.0.1:%u", j->ready.proxy_port);
    static const char none[] = "localhost,127.0.0.0/8,127.0.0.1,::1";
    const char *const list[] = {"http_proxy", http,  "https_proxy", http, "all_proxy",   socks,
                                "no_proxy",   none,  "HTTP_PROXY",  http, "HTTPS_PROXY", http,
                                "ALL_PROXY",  socks, "NO_PROXY",    none, NULL};
    const char **copy =
        csn_arena_array(j->arena, sizeof(list) / sizeof(list[0]), sizeof(*list));
    if (!http || !socks || !copy)
        return NULL;
    memcpy(copy, list, sizeof(list));
    return copy;
}

static void describe_layer(const csn_jail *j, bool alive, csn_layer *layer)
{
    if (!alive) {
        layer->status = "off";
        layer->detail = "the gateway has ended: the sandbox has no network";
        return;
    }
    layer->status = j->ready.net_mode == CSN_GATEWAY_NET_PROXY ? "proxy" : "transparent";
    layer->detail = j->net->detail;
}

const csn_layer *csn_jail_net_layers(const csn_runtime *rt)
{
    csn_jail *j = rt->jail;
    csn_jail_net *n = j->net;

    if (!n)
        return j->layers;
    bool alive = csn_gateway_is_alive(&n->gateway);
    csn_layer *list = j->net_layers[alive ? 0 : 1];
    pthread_mutex_lock(&n->lock);
    for (size_t i = 0; !n->described[alive] && i < j->layer_count; i++) {
        list[i] = j->layers[i];
        if (strcmp(list[i].name, "net") == 0)
            describe_layer(j, alive, &list[i]);
    }
    n->described[alive] = true;
    pthread_mutex_unlock(&n->lock);
    return list;
}

csn_status csn_jail_network_set(void *state, const csn_net_opts *rules, csn_error **err)
{
    csn_runtime *rt = state;
    const csn_jail *j = rt->jail;
    bool closed;

    if (!j->net) {
        csn_status st = csn_fail(err, CSN_UNSUPPORTED,
                                 "sandbox '%s' was opened without network rules", rt->id);
        return csn_error_advise(st, err, "open one with --allow or --net all");
    }
    csn_status st = check_rules(rules, &closed, err);
    if (st < 0)
        return st;
    const csn_gateway_rules wire = wire_rules(rules);
    return csn_gateway_update(&j->net->gateway, &wire, err);
}
