/* network.h: connects a jail that has network rules to a gateway; for others j->net is NULL.
 *
 *   network.c         turns rules into a running gateway; the layer `net`
 *   network_events.c  passes connections and refusals to the audit log and to denials
 *   exec_network.c    a stricter network for one command
 *   gateway.c         the gateway process and its protocol */
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
    int fds[CSN_KEEPER_FDS_MAX]; /* of READY, for the gateway: link, sockets, listeners */
    size_t fd_count;
    uint32_t npublish;
    csn_gateway_port publish[CSN_GATEWAY_PORTS_MAX], host_ports[CSN_GATEWAY_PORTS_MAX];
    const char *detail;   /* text of the layer `net` */
    pthread_mutex_t lock; /* for the members below */
    bool described[2];    /* see csn_jail.net_layers */
    uint64_t audited;     /* events before this number are in the audit log */
} csn_jail_net;

/* Makes j->net if the configuration has rules or ports. Starts nothing. */
csn_status csn_jail_net_plan(csn_runtime *rt, csn_error **err);
void csn_jail_net_release(struct csn_jail *j);
/* Takes the sockets out of READY. False: they do not match the order. */
bool csn_jail_net_take(struct csn_jail *j, csn_msg *m);
/* Makes an empty j->net. */
csn_status csn_jail_net_new(struct csn_jail *j, csn_error **err);
/* The gateway: started while the keeper confines itself, set up after READY. find: connects to
 * the one of a detached jail. */
csn_status csn_jail_net_start(csn_runtime *rt, csn_error **err);
csn_status csn_jail_net_set_up(csn_runtime *rt, csn_error **err);
csn_status csn_jail_net_find(csn_runtime *rt, csn_error **err);
void csn_jail_net_ended(csn_runtime *rt);
/* Proxy variables: name, value, name, ..., NULL. NULL: no proxy is needed. */
const char *const *csn_jail_net_variables(const csn_runtime *rt);
/* The layers with the present state of `net`. Valid as long as the sandbox. */
const csn_layer *csn_jail_net_layers(const csn_runtime *rt);
/* Names the step of network setup that failed (net_step, net_detail of FAILED). NULL:
 * unknown */
const char *csn_jail_net_step_name(uint32_t step, uint32_t detail);

/* entries of the ops table */
csn_status csn_jail_network_set(void *state, const csn_net_opts *rules, csn_error **err);
csn_status csn_jail_network_events(void *state, uint64_t *since, csn_net_event_fn fn, void *ctx,
                                   uint64_t *ret_lost, csn_error **err);

/* exec_network.c. Finds out how this host can enforce network rules. */
csn_status csn_jail_net_probe(csn_ready_msg *ret, csn_error **err);

/* A network for one command: connections must be allowed by `rules` and by the sandbox's. */
typedef struct csn_exec_network {
    int sockets; /* to the helper that creates its sockets: see csn_runtime_exec_with */
    int pidfd;   /* of the helper */
    int lease;   /* the gateway serves the network until this is closed */
} csn_exec_network;
#define CSN_EXEC_NETWORK_NONE ((csn_exec_network){.sockets = -1, .pidfd = -1, .lease = -1})
csn_status csn_exec_network_begin(csn_runtime *rt, const char *const *rules,
                                  uint64_t deadline_ns, csn_exec_network *ret, csn_error **err);
void csn_exec_network_end(csn_exec_network *n);

/* network_denials.c. The option that allows `target`, a host with or without a port: the preset
 * of a package manager, or a rule; written to buf. NULL: there is none. */
const char *csn_jail_net_hint(const csn_exec_req *req, const char *target, char *buf,
                              size_t size);
/* csn_runtime.name_refused of a jail */
void csn_jail_net_name_refused(const csn_runtime *rt, const csn_exec_req *req,
                               const char *name);

/* Called before and after a command; report passes on the connections that were refused in
 * between, also if the command succeeded. After the deadline of the command, a gateway that
 * does not answer delays the result little longer. The audit log then says that it did not
 * answer. */
typedef struct csn_jail_net_since {
    uint64_t seq;
    int64_t time_ms;
} csn_jail_net_since;
/* Tells req->live_denials what the gateway refuses while the command runs. */
typedef struct csn_jail_net_watch {
    const csn_exec_req *req;
    int64_t since_ms;
    unsigned count;
} csn_jail_net_watch;
/* Fills the notice members of *ret. end: tells what is left, closes notice_fd. */
void csn_jail_net_watch_begin(const csn_runtime *rt, csn_jail_net_watch *w,
                              csn_exec_extra *ret);
void csn_jail_net_watch_end(csn_exec_extra *extra);
csn_jail_net_since csn_jail_net_begin(const csn_runtime *rt);
void csn_jail_net_report(csn_runtime *rt, csn_jail_net_since since, const csn_exec_req *req);
