/* gateway.h: state and internal interface of the gateway program.
 *
 *   main.c        start-up
 *   control.c     requests of the library
 *   confine.c     drops privileges once set up
 *   listener.c    accepts connections
 *   flow.c        one proxied connection, from accept to close
 *   policy.c      rule decisions about a flow, and the events that record them
 *   inspect.c     compares the host named in TLS and HTTP with the host connected to
 *   proxy.c       HTTP proxy and SOCKS 5 server
 *   exec_rules.c  additional rules of single commands
 *   ports.c       published ports and host ports
 *   dns_stub.c    answers DNS queries
 *
 * Everything but the resolver's threads runs in one event loop. Every table has a fixed maximum
 * size, because processes inside the sandbox can fill it at any rate. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "gateway/dial.h"
#include "gateway/events.h"
#include "gateway/http.h"
#include "gateway/loop.h"
#include "gateway/name_table.h"
#include "gateway/protocol.h"
#include "gateway/relay.h"
#include "gateway/resolve.h"
#include "gateway/socks.h"
#include "gateway/tls.h"
#include "policy/netrules.h"

#define GW_DIAL_TIMEOUT_MS 30000u /* to resolve and connect */
#define GW_HEAD_TIMEOUT_MS 30000u /* to complete a request head or ClientHello */
#define GW_LINGER_MS       1000u  /* for a client to read the refusal */
#define GW_LINK_QUEUE_MAX  256u   /* socket requests waiting for the keeper */
#define GW_EXEC_RULES_MAX  16u    /* concurrent commands with additional rules */
#define GW_LISTENERS_MAX   (3u + 3u * CSN_GATEWAY_PORTS_MAX + 2u * GW_EXEC_RULES_MAX)

typedef struct gw_gateway gw_gateway;
typedef struct gw_flow gw_flow;
typedef struct gw_exec_rules gw_exec_rules;

/* How a connection reached the gateway. */
typedef enum gw_origin {
    GW_ORIGIN_REDIRECT,  /* the kernel redirected an outgoing connection */
    GW_ORIGIN_PROXY,     /* a program inside uses the gateway as its proxy */
    GW_ORIGIN_HOST_PORT, /* a program inside connects to a port of the host */
    GW_ORIGIN_PUBLISHED, /* a program on the host connects to a port inside */
} gw_origin;

/* How the gateway reports a refusal to the client. */
typedef enum gw_refusal_style {
    GW_REFUSE_RESET,
    GW_REFUSE_HTTP,
    GW_REFUSE_SOCKS
} gw_refusal_style;

typedef struct gw_listener {
    gw_io io;
    gw_gateway *gateway;  /* NULL: the slot is free */
    gw_timer retry_timer; /* ends a pause */
    int paused_fd;        /* the socket during a pause, else -1 */
    gw_origin origin;
    uint16_t port;                   /* HOST_PORT: on the host; PUBLISHED: inside */
    const gw_exec_rules *exec_rules; /* of the command that owns the socket, or NULL */
} gw_listener;

/* The rules of one command, applied after the sandbox's rules. */
struct gw_exec_rules {
    gw_gateway *gateway;
    gw_io lease;
    csn_netrules *rules; /* NULL: the slot is free */
};

typedef struct gw_refusal {
    csn_netverdict verdict;
    csn_domain name; /* the refused host if it differs from the flow's target; else len 0 */
} gw_refusal;

/* A host name, or an address if the name is empty. */
typedef struct gw_target {
    csn_domain name;
    csn_netaddr addr;
    uint16_t port;
} gw_target;

/* Parsers of the client's bytes, for inspect.c and proxy.c. */
typedef struct gw_parse_state {
    gw_tls_follow tls;
    gw_http_follow follow;
    gw_http_watch watch;
    gw_socks socks;
    bool request_seen; /* a request head was accepted */
} gw_parse_state;

struct gw_flow {
    gw_flow *prev, *next;
    gw_gateway *gateway;
    gw_deferred deferred;
    gw_timer timer;
    gw_endpoint client, server; /* the accepted and the dialled connection */
    gw_pipeline to_server, to_client;
    gw_origin origin;
    const gw_exec_rules *exec_rules; /* or NULL */
    gw_refusal_style refusal_style;
    uint32_t proto;      /* csn_gateway_proto */
    bool target_pending; /* the target is set; the next step checks and dials it */
    bool dialling;
    bool inspected; /* the first bytes were accepted, or need no inspection */
    bool connect_recorded;
    bool lingering;  /* a final reply is being sent; input is discarded */
    bool poll_error; /* epoll reported an error on either endpoint */
    bool broken;     /* to be reset by the next step */
    uint64_t started_ns, active_ns;
    gw_target target;
    csn_domain observed_name;         /* host named by a flow whose target is an address */
    uint32_t name_number;             /* held in the name table; 0: none */
    csn_netaddr peer;                 /* address dialled */
    char rule[CSN_NETRULE_TEXT + 16]; /* rule that allows the flow */
    gw_lookup lookup;
    gw_dial *dial;
    uint8_t awaited_family;           /* of a socket requested from the keeper; 0: none */
    gw_parse_state *parse;            /* owned */
    gw_refusal *refusal;              /* owned; set by gw_policy_refuse_later */
    void (*on_connected)(gw_flow *f); /* called once, or NULL */
};

struct gw_gateway {
    gw_loop loop;
    gw_relay relay;
    csn_netrules *rules;
    gw_events *events;
    gw_names *names;
    gw_resolver *resolver;
    gw_listener listeners[GW_LISTENERS_MAX];
    gw_exec_rules exec_rules[GW_EXEC_RULES_MAX];
    gw_flow *flows;
    size_t nflows, flows_max;
    uint64_t idle_ns;
    bool has_ipv6; /* IPv6 connections inside are redirected too */
    struct gw_dns_stub *dns_stub;
    struct gw_control *control;
    gw_io keeper;                           /* its pidfd */
    gw_io link;                             /* socket requests to the keeper */
    gw_flow *link_queue[GW_LINK_QUEUE_MAX]; /* in order of the requests; NULL: cancelled */
    size_t link_head, link_len;
    csn_netaddr *host_addrs;
    size_t host_addr_count;
    uint64_t host_addrs_until_ns; /* when the cached addresses expire */
};

/* ---- flow.c ---------------------------------------------------------------------------- */

/* Owns fd. NULL: too many flows, or no memory; fd was reset. */
gw_flow *gw_flow_new(gw_gateway *g, int fd, gw_origin origin);
/* The next step checks the target and dials it. */
void gw_flow_set_target(gw_flow *f, const gw_target *target);
/* Dials without consulting the rules. */
void gw_flow_dial(gw_flow *f, const csn_netaddr *addrs, size_t n, uint16_t port);
void gw_flow_on_dialled(void *flow, int fd, const csn_netaddr *addr); /* gw_dial_fn */
/* Handles a failed connection to the target: records it, reports it to the client, ends the
 * flow. */
void gw_flow_failed(gw_flow *f, int error);
/* Records the refusal, reports it to the client, ends the flow. Inspect callbacks must use
 * gw_policy_refuse_later instead. */
void gw_flow_refuse(gw_flow *f, const gw_refusal *r);
/* Sends these bytes as the last ones to the client, discards its input, ends the flow. */
void gw_flow_reply_and_close(gw_flow *f, const void *data, size_t len);
/* Advances the flow until it must wait for an event. May end the flow: do not use f after the
 * call. */
void gw_flow_step(gw_flow *f);
void gw_flow_defer_step(gw_flow *f);
/* Ends the flow with a reset to both sides. */
void gw_flow_reset(gw_flow *f);

/* ---- policy.c -------------------------------------------------------------------------- */

/* Checks the flow's target and stores the rule that allows it. */
bool gw_policy_target(gw_flow *f, csn_netverdict *ret);
/* Moves the addresses that may be dialled to the front and returns their number. If it is 0,
 * *ret is the verdict on the first address. */
size_t gw_policy_addresses(gw_flow *f, csn_netaddr *addrs, size_t n, csn_netverdict *ret);
/* Checks f->peer after connecting, as the rules may have changed meanwhile. false: the flow was
 * refused and has ended. */
bool gw_policy_peer(gw_flow *f);
/* For inspect callbacks: stores the refusal and returns the error that the callback must
 * return; flow.c then refuses the flow. name: the requested host; NULL: the flow's target. */
int gw_policy_refuse_later(gw_flow *f, const csn_domain *name, const char *why);
void gw_record_refusal(gw_flow *f, const gw_refusal *r);
void gw_record_connect(gw_flow *f, const char *why); /* why: NULL, or why it failed */
void gw_record_close(gw_flow *f, const char *why);   /* why: NULL, or why it was cut off */
/* Resets the flows that the current rules do not allow. */
void gw_policy_recheck(gw_gateway *g);
const char *gw_errno_text(int error);

/* ---- inspect.c, proxy.c ---------------------------------------------------------------- */

/* Installs the callback that inspects the client's bytes before they are forwarded. -ENOMEM. */
int gw_inspect_begin(gw_flow *f);
int gw_proxy_begin(gw_flow *f);
/* Send the client an HTTP or SOCKS error reply, as f->refusal_style selects. */
void gw_proxy_refuse(gw_flow *f, const gw_refusal *r);
void gw_proxy_failed(gw_flow *f, int error);

/* ---- listener.c, ports.c, dns_stub.c --------------------------------------------------- */

/* Owns fd, a listening socket, on success. */
int gw_listener_open(gw_gateway *g, int fd, gw_origin origin, uint16_t port,
                     const gw_exec_rules *exec_rules);
void gw_listeners_close(gw_gateway *g, const gw_exec_rules *exec_rules);
/* Serves the socket that CSN_GATEWAY_FD_* `bit` of CSN_GATEWAY_FDS_EXEC announces. Owns fd on
 * success. */
int gw_listener_adopt(gw_gateway *g, int fd, uint32_t bit, const gw_exec_rules *exec_rules);

/* Listens on the host's loopback; *port may be 0 and is set. -errno. */
int gw_ports_publish(gw_gateway *g, uint16_t inside, uint16_t *port);
int gw_ports_link(gw_gateway *g, int fd); /* owns fd on success */
void gw_ports_connect_inside(gw_flow *f, uint16_t inside);
void gw_ports_connect_host(gw_flow *f, uint16_t host);
/* Withdraws the flow's pending socket request. */
void gw_ports_cancel(gw_flow *f);

int gw_dns_stub_init(gw_gateway *g, uint32_t per_second);
/* Answers queries on a UDP or listening TCP socket. Owns fd on success. */
int gw_dns_stub_open(gw_gateway *g, int fd, bool tcp, const gw_exec_rules *exec_rules);
void gw_dns_stub_close(gw_gateway *g, const gw_exec_rules *exec_rules);

/* ---- exec_rules.c ---------------------------------------------------------------------- */

/* Applies the rules of one command to the sockets of the message until the peer of `lease`
 * closes. Owns lease on success. -EUSERS: too many commands. */
int gw_exec_rules_begin(gw_gateway *g, int lease, csn_msg *m, const csn_gateway_setup_msg *s);
/* Change *v from allowed to refused if the command's rules do not allow the name or address. e
 * NULL: no change. */
void gw_exec_rules_name(const gw_exec_rules *e, const csn_domain *name, uint16_t port,
                        csn_netverdict *v);
void gw_exec_rules_address(const gw_exec_rules *e, const csn_netaddr *a, uint16_t port,
                           csn_netverdict *v);
void gw_exec_rules_lookup(const gw_exec_rules *e, const csn_domain *name, csn_netverdict *v);

/* ---- control.c, confine.c -------------------------------------------------------------- */

/* Serves requests on the inherited control connection. */
int gw_control_init(gw_gateway *g, int fd);
/* Drops the privileges that serving does not need. -errno. */
int gw_confine(uint32_t uid, uint32_t gid, size_t flows_max);
