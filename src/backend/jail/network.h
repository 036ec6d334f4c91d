/* network.h: the network of a jail whose policy has network rules.
 *
 *   network.c         from rules to a running gateway, and in words what there is
 *   network_events.c  what happened on it: for the audit log, and why a command failed
 *   exec_network.c       a network for one command that may reach less
 *   gateway.c     the process and its wire
 *
 * A jail without such rules has none of this: j->net is NULL, and nothing here is called for
 * more than to see that. */
#pragma once
#include <pthread.h>
#include <stdbool.h>

#include "backend/jail/gateway.h"
#include "os/gateway_net.h"
#include "runtime/link.h"

struct csn_jail;

typedef struct csn_jail_net {
    csn_gateway gateway;
    csn_gateway_net_order order;
    int fds[CSN_KEEPER_FDS_MAX]; /* from READY until the gateway has them: link, sockets, lent
                                  */
    size_t fd_count;
    uint32_t npublish;
    csn_gateway_port publish[CSN_GATEWAY_PORTS_MAX], lend[CSN_GATEWAY_PORTS_MAX];
    const char *detail;   /* of the layer */
    pthread_mutex_t lock; /* guards what follows */
    bool described[2];    /* see csn_jail.net_layers */
    uint64_t taken;       /* events up to here were taken for the audit log */
} csn_jail_net;

/* From the configuration; makes j->net, or leaves it NULL. Nothing is started. */
csn_status csn_jail_net_plan(csn_runtime *rt, csn_error **err);
void csn_jail_net_release(struct csn_jail *j);
/* The sockets that READY brought. False: not what was ordered. */
bool csn_jail_net_take(struct csn_jail *j, csn_msg *m);
/* j->net, empty. */
csn_status csn_jail_net_new(struct csn_jail *j, csn_error **err);
/* The gateway: started while the keeper confines itself, set up after READY. find: connects to
 * the one of a detached jail. */
csn_status csn_jail_net_start(csn_runtime *rt, csn_error **err);
csn_status csn_jail_net_set_up(csn_runtime *rt, csn_error **err);
csn_status csn_jail_net_find(csn_runtime *rt, csn_error **err);
void csn_jail_net_ended(csn_runtime *rt);
/* Variables of a sandbox whose programs must ask a proxy; NAME and value in turns, NULL at the
 * end; NULL: none. */
const char *const *csn_jail_net_variables(const csn_runtime *rt);
/* The sandbox's layers with what `net` is just now. They stay as they are. */
const csn_layer *csn_jail_net_layers(const csn_runtime *rt);
/* The part of the network that a FAILED keeper could not build (net_step, net_detail); NULL:
 * not known. */
const char *csn_jail_net_why(uint32_t step, uint32_t detail);

/* entries of the ops table */
csn_status csn_jail_network_set(void *state, const csn_net_opts *rules, csn_error **err);
csn_status csn_jail_network_events(void *state, uint64_t *since, csn_net_event_fn fn, void *ctx,
                                   uint64_t *ret_lost, csn_error **err);

/* exec_network.c. What a network with rules would become here. */
csn_status csn_jail_net_try(csn_ready_msg *ret, csn_error **err);

/* A network for one command, which may reach no more than `rules` and the sandbox's. */
typedef struct csn_exec_network {
    int sockets; /* to who makes its sockets: see csn_runtime_exec_with */
    int pidfd;   /* of that */
    int lease;   /* with the gateway */
} csn_exec_network;
#define CSN_EXEC_NETWORK_NONE ((csn_exec_network){.sockets = -1, .pidfd = -1, .lease = -1})
csn_status csn_exec_network_begin(csn_runtime *rt, const char *const *rules,
                                  csn_exec_network *ret, csn_error **err);
void csn_exec_network_end(csn_exec_network *a);

/* A command begins; it has ended, in whatever way: tells what it was refused meanwhile. That is
 * no guess, so whoever could do without is told as well. */
typedef struct csn_jail_net_since {
    uint64_t seq;
    int64_t time_ms;
} csn_jail_net_since;
csn_jail_net_since csn_jail_net_begin(const csn_runtime *rt);
void csn_jail_net_tell(csn_runtime *rt, csn_jail_net_since since, const csn_deny_sink *denials);
