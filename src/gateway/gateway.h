/* gateway.h: the state of a running gateway, shared by its files.
 *
 *   main.c      from the first instruction to the last
 *   control.c   what the library asks
 *   confine.c   gives up what is not needed any more
 *   listener.c      listeners: who comes in, and how many
 *   flow.c      one connection: dialled, relayed, ended
 *   policy.c     what the rules say of it, and who is told
 *   inspect.c   its first bytes: is it for the host that it was opened for?
 *   proxy.c     the same for programs that speak to us as a proxy
 *   exec_rules.c    commands that may reach less than their sandbox
 *   ports.c     ports of the sandbox on the host, and of the host in the sandbox
 *   dns_stub.c      DNS
 *   dial events loop names relay resolve   as their headers say
 *
 * One thread but for the resolver's. Everything has a named ceiling. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "gateway/dial.h"
#include "gateway/events.h"
#include "gateway/http.h"
#include "gateway/loop.h"
#include "gateway/name_table.h"
#include "gateway/proto.h"
#include "gateway/relay.h"
#include "gateway/resolve.h"
#include "gateway/socks.h"
#include "gateway/tls.h"
#include "policy/netrules.h"

#define CSN_GATEWAY_DIAL_MS     30000u /* to resolve and connect */
#define CSN_GATEWAY_HEAD_MS     30000u /* for a head or hello that has begun */
#define CSN_GATEWAY_FAREWELL_MS 1000u  /* for a peer to read why it was refused */

#define CSN_LINK_LINE 256u

#define CSN_OWNER(type, member, p) ((type *)(void *)((char *)(p)-offsetof(type, member)))

typedef struct gw_gateway gw_gateway;
typedef struct gw_flow gw_flow;
typedef struct gw_exec_rules gw_exec_rules;

/* How a connection came to us. */
typedef enum gw_origin {
    CSN_WAY_REDIRECT, /* a program inside connected somewhere, and the kernel brought it here */
    CSN_WAY_PROXY,
    CSN_WAY_LENT,
    CSN_WAY_PUBLISHED, /* the other way round: somebody on the host connected */
} gw_origin;

/* How a peer is told that it is refused. */
typedef enum gw_refusal_style {
    CSN_VOICE_RESET,
    CSN_VOICE_HTTP,
    CSN_VOICE_SOCKS
} gw_refusal_style;

typedef struct gw_listener {
    gw_io io;
    gw_gateway *gate;
    gw_timer rest; /* after the system ran out of descriptors */
    gw_origin way;
    uint16_t port;               /* LENT: of the host, PUBLISHED: inside */
    int resting;                 /* the descriptor meanwhile */
    const gw_exec_rules *narrow; /* who comes in here is that command; NULL: anybody inside */
} gw_listener;

#define GW_EXEC_RULES_MAX 16u /* commands at once that may reach less */
#define GW_LISTENERS_MAX  (3u + 3u * CSN_GATEWAY_PORTS_MAX + 2u * GW_EXEC_RULES_MAX)

/* One of them. */
struct gw_exec_rules {
    gw_gateway *gate;
    gw_io lease;
    csn_netrules *rules; /* asked after the sandbox's; NULL: this slot is free */
};

/* Why a connection is refused. */
typedef struct gw_refusal {
    csn_netverdict verdict;
    csn_domain name; /* that was asked for, if not the flow's; len 0: the flow's */
} gw_refusal;

/* Where a flow is to lead: a name, or an address when that is empty. */
typedef struct gw_target {
    csn_domain name;
    csn_netaddr addr;
    uint16_t port;
} gw_target;

/* How far the bytes of a flow are understood: inspect.c and proxy.c. */
typedef struct gw_parse_state {
    gw_tls tls;
    gw_http_follow follow;
    gw_socks socks;
    bool heads; /* a request has passed */
} gw_parse_state;

struct gw_flow {
    gw_flow *prev, *next;
    gw_gateway *gate;
    gw_later later;
    gw_timer timer;
    gw_end near, far; /* who came, and whom we dialled */
    gw_pipeline there, back;
    gw_origin way;
    const gw_exec_rules *narrow; /* whose it is, or NULL */
    gw_refusal_style voice;
    uint32_t proto; /* csn_gateway_proto */
    bool aimed;     /* the target is known, and yet to be judged */
    bool dialling;
    bool judged;  /* the first bytes may pass, or need not be looked at */
    bool greeted; /* an event tells that it is connected */
    bool leaving; /* only a farewell is still to be read */
    bool alarmed; /* epoll told of an error at one of the ends */
    bool broken;  /* it cannot go on */
    uint64_t started_ns, moved_ns;
    gw_target to;
    csn_domain said; /* a name that was only seen: of a flow to an address */
    uint32_t number; /* of the name, while held; 0: none */
    csn_netaddr peer;
    char rule[CSN_NETRULE_TEXT + 16]; /* that allows it */
    gw_ask ask;
    gw_dial *dial;
    uint8_t awaits; /* PUBLISHED: a socket of this family from the keeper; 0: none */
    struct gw_parse_state
        *front;          /* what inspect.c and proxy.c need to know; free()d with the flow */
    gw_refusal *refusal; /* of a look; free()d with the flow */
    void (*connected)(gw_flow *f); /* called once, when there is a far end; or NULL */
};

struct gw_gateway {
    gw_loop loop;
    gw_relay relay;
    csn_netrules *rules;
    gw_events *events;
    gw_names *names;
    gw_resolver *resolver;
    gw_listener doors[GW_LISTENERS_MAX];
    gw_exec_rules narrows[GW_EXEC_RULES_MAX];
    gw_flow *flows;
    size_t nflows, flows_max;
    uint64_t idle_ns;
    bool six; /* connections inside may be IPv6 */
    struct gw_dns_stub *stub;
    struct gw_control *control;
    gw_io keeper;                 /* its pidfd */
    gw_io link;                   /* to the keeper */
    gw_flow *line[CSN_LINK_LINE]; /* who waits for its answers, in their order; NULL: gone */
    size_t line_at, line_len;
    csn_netaddr *own; /* addresses of the host, looked at when own_ns is over */
    size_t own_count;
    uint64_t own_ns;
};

/* ---- flow.c ---------------------------------------------------------------------------- */

/* Takes fd. NULL: too many, or no memory; then the peer gets a reset. */
gw_flow *gw_flow_new(gw_gateway *g, int fd, gw_origin way);
/* Where it is to lead; judged and dialled by the next step. */
void gw_flow_aim(gw_flow *f, const gw_target *to);
/* Dials these without asking the rules: ports.c knows. */
void gw_flow_dial(gw_flow *f, const csn_netaddr *addrs, size_t n, uint16_t port);
void gw_flow_dialled(void *flow, int fd, const csn_netaddr *addr); /* gw_dial_fn */
/* Nothing can be reached: errno says why. Ends it. */
void gw_flow_failed(gw_flow *f, int error);
/* Records it, tells the peer in its voice, ends it. Not from a look. */
void gw_flow_refuse(gw_flow *f, const gw_refusal *r);
/* Says so much and no more to the peer, reads nothing of what it sends, ends. */
void gw_flow_farewell(gw_flow *f, const void *data, size_t len);
/* Does what can be done now. f may be gone afterwards. */
void gw_flow_step(gw_flow *f);
void gw_flow_step_later(gw_flow *f);
/* Ends it with a reset on both sides. */
void gw_flow_cut(gw_flow *f);

/* ---- policy.c --------------------------------------------------------------------------- */

/* May it go where it is aimed at? Also finds the rule. */
bool gw_policy_target(gw_flow *f, csn_netverdict *ret);
/* Those of the addresses that may be dialled, to the front; how many. If none, *ret is the
 * verdict about the first. */
size_t gw_policy_addresses(gw_flow *f, csn_netaddr *addrs, size_t n, csn_netverdict *ret);
/* It is connected to f->peer: may it still be? If not, it is refused and has ended. */
bool gw_policy_peer(gw_flow *f);
/* For a look: remembers the refusal, which happens when the look has returned this. `name` is
 * what was asked for; NULL: what the flow is aimed at. */
int gw_policy_refuse_later(gw_flow *f, const csn_domain *name, const char *why);
void gw_record_refusal(gw_flow *f, const gw_refusal *r);
void gw_record_connect(gw_flow *f, const char *why); /* why: NULL, or why it failed */
void gw_record_close(gw_flow *f, const char *why);   /* why: NULL, or why it was cut */
/* Cuts the flows that the rules of now would not allow. */
void gw_policy_recheck(gw_gateway *g);
/* errno for people; static. */
const char *gw_why_errno(int error);

/* ---- inspect.c, proxy.c ---------------------------------------------------------------- */

/* The bytes that come near are looked at before they are passed on. -ENOMEM. */
int gw_inspect_begin(gw_flow *f);
int gw_proxy_begin(gw_flow *f);
/* What a peer is told that speaks HTTP or SOCKS; f->voice says which. */
void gw_proxy_refuse(gw_flow *f, const gw_refusal *r);
void gw_proxy_failed(gw_flow *f, int error);

/* ---- listener.c, ports.c, dns_stub.c
 * ----------------------------------------------------------- */

/* Connections come in here from now on. Takes fd, a socket that listens, if that worked. */
int gw_listener_open(gw_gateway *g, int fd, gw_origin way, uint16_t port,
                     const gw_exec_rules *narrow);
void gw_listeners_close(gw_gateway *g, const gw_exec_rules *narrow); /* those of a command */

/* Listens on the host's loopback; *port may be 0 and is set. -errno. */
int gw_ports_publish(gw_gateway *g, uint16_t inside, uint16_t *port);
int gw_ports_link(gw_gateway *g, int fd); /* takes fd */
void gw_ports_published(gw_flow *f, uint16_t inside);
void gw_ports_lent(gw_flow *f, uint16_t host);
/* A flow that ends no longer waits for a socket. */
void gw_ports_forget(gw_flow *f);

int gw_dns_stub_init(gw_gateway *g, uint32_t per_second);
/* Questions come in here: datagrams, or connections. Takes fd, if that worked. */
int gw_dns_stub_open(gw_gateway *g, int fd, bool tcp, const gw_exec_rules *narrow);
void gw_dns_stub_close(gw_gateway *g, const gw_exec_rules *narrow); /* those of a command */

/* ---- exec_rules.c --------------------------------------------------------------------------
 */

/* A command from now on until `lease`, which it takes if that worked, is closed elsewhere. Its
 * sockets come with the message. -errno; -EUSERS: there are too many. */
int gw_exec_rules_begin(gw_gateway *g, int lease, csn_msg *m, const csn_gateway_setup_msg *s);
/* What the sandbox's rules allow may still be refused to a command; n NULL: it may not. */
void gw_exec_rules_name(const gw_exec_rules *n, const csn_domain *name, uint16_t port,
                        csn_netverdict *v);
void gw_exec_rules_address(const gw_exec_rules *n, const csn_netaddr *a, uint16_t port,
                           csn_netverdict *v);
void gw_exec_rules_lookup(const gw_exec_rules *n, const csn_domain *name, csn_netverdict *v);

/* ---- control.c, confine.c -------------------------------------------------------------- */

/* Serves the connection that the gateway is born with. */
int gw_control_init(gw_gateway *g, int fd);
/* Gives up every right that serving does not need. -errno. */
int gw_confine(uint32_t uid, uint32_t gid, size_t flows_max);
