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

#define CSN_GATE_DIAL_MS     30000u /* to resolve and connect */
#define CSN_GATE_HEAD_MS     30000u /* for a head or hello that has begun */
#define CSN_GATE_FAREWELL_MS 1000u  /* for a peer to read why it was refused */

#define CSN_LINK_LINE 256u

#define CSN_OWNER(type, member, p) ((type *)(void *)((char *)(p)-offsetof(type, member)))

typedef struct csn_gate csn_gate;
typedef struct csn_flow csn_flow;
typedef struct csn_narrow csn_narrow;

/* How a connection came to us. */
typedef enum csn_way {
    CSN_WAY_REDIRECT, /* a program inside connected somewhere, and the kernel brought it here */
    CSN_WAY_PROXY,
    CSN_WAY_LENT,
    CSN_WAY_PUBLISHED, /* the other way round: somebody on the host connected */
} csn_way;

/* How a peer is told that it is refused. */
typedef enum csn_voice { CSN_VOICE_RESET, CSN_VOICE_HTTP, CSN_VOICE_SOCKS } csn_voice;

typedef struct csn_door {
    csn_io io;
    csn_gate *gate;
    csn_timer rest; /* after the system ran out of descriptors */
    csn_way way;
    uint16_t port;            /* LENT: of the host, PUBLISHED: inside */
    int resting;              /* the descriptor meanwhile */
    const csn_narrow *narrow; /* who comes in here is that command; NULL: anybody inside */
} csn_door;

#define CSN_NARROWS_MAX 16u /* commands at once that may reach less */
#define CSN_DOORS_MAX   (3u + 3u * CSN_GATE_PORTS_MAX + 2u * CSN_NARROWS_MAX)

/* One of them. */
struct csn_narrow {
    csn_gate *gate;
    csn_io lease;
    csn_netrules *rules; /* asked after the sandbox's; NULL: this slot is free */
};

/* Why a connection is refused. */
typedef struct csn_refusal {
    csn_netverdict verdict;
    csn_domain name; /* that was asked for, if not the flow's; len 0: the flow's */
} csn_refusal;

/* Where a flow is to lead: a name, or an address when that is empty. */
typedef struct csn_target {
    csn_domain name;
    csn_netaddr addr;
    uint16_t port;
} csn_target;

/* How far the bytes of a flow are understood: inspect.c and proxy.c. */
typedef struct csn_front {
    csn_tls tls;
    csn_http_follow follow;
    csn_socks socks;
    bool heads; /* a request has passed */
} csn_front;

struct csn_flow {
    csn_flow *prev, *next;
    csn_gate *gate;
    csn_later later;
    csn_timer timer;
    csn_end near, far; /* who came, and whom we dialled */
    csn_lane there, back;
    csn_way way;
    const csn_narrow *narrow; /* whose it is, or NULL */
    csn_voice voice;
    uint32_t proto; /* csn_gate_proto */
    bool aimed;     /* the target is known, and yet to be judged */
    bool dialling;
    bool judged;  /* the first bytes may pass, or need not be looked at */
    bool greeted; /* an event tells that it is connected */
    bool leaving; /* only a farewell is still to be read */
    bool alarmed; /* epoll told of an error at one of the ends */
    bool broken;  /* it cannot go on */
    uint64_t started_ns, moved_ns;
    csn_target to;
    csn_domain said; /* a name that was only seen: of a flow to an address */
    uint32_t number; /* of the name, while held; 0: none */
    csn_netaddr peer;
    char rule[CSN_NETRULE_TEXT + 16]; /* that allows it */
    csn_ask ask;
    csn_dial *dial;
    uint8_t awaits; /* PUBLISHED: a socket of this family from the keeper; 0: none */
    struct csn_front
        *front;           /* what inspect.c and proxy.c need to know; free()d with the flow */
    csn_refusal *refusal; /* of a look; free()d with the flow */
    void (*connected)(csn_flow *f); /* called once, when there is a far end; or NULL */
};

struct csn_gate {
    csn_loop loop;
    csn_relay relay;
    csn_netrules *rules;
    csn_events *events;
    csn_names *names;
    csn_resolver *resolver;
    csn_door doors[CSN_DOORS_MAX];
    csn_narrow narrows[CSN_NARROWS_MAX];
    csn_flow *flows;
    size_t nflows, flows_max;
    uint64_t idle_ns;
    bool six; /* connections inside may be IPv6 */
    struct csn_stub *stub;
    struct csn_control *control;
    csn_io keeper;                 /* its pidfd */
    csn_io link;                   /* to the keeper */
    csn_flow *line[CSN_LINK_LINE]; /* who waits for its answers, in their order; NULL: gone */
    size_t line_at, line_len;
    csn_netaddr *own; /* addresses of the host, looked at when own_ns is over */
    size_t own_count;
    uint64_t own_ns;
};

/* ---- flow.c ---------------------------------------------------------------------------- */

/* Takes fd. NULL: too many, or no memory; then the peer gets a reset. */
csn_flow *csn_flow_new(csn_gate *g, int fd, csn_way way);
/* Where it is to lead; judged and dialled by the next step. */
void csn_flow_aim(csn_flow *f, const csn_target *to);
/* Dials these without asking the rules: ports.c knows. */
void csn_flow_dial(csn_flow *f, const csn_netaddr *addrs, size_t n, uint16_t port);
void csn_flow_dialled(void *flow, int fd, const csn_netaddr *addr); /* csn_dial_fn */
/* Nothing can be reached: errno says why. Ends it. */
void csn_flow_failed(csn_flow *f, int error);
/* Records it, tells the peer in its voice, ends it. Not from a look. */
void csn_flow_refuse(csn_flow *f, const csn_refusal *r);
/* Says so much and no more to the peer, reads nothing of what it sends, ends. */
void csn_flow_farewell(csn_flow *f, const void *data, size_t len);
/* Does what can be done now. f may be gone afterwards. */
void csn_flow_step(csn_flow *f);
void csn_flow_step_later(csn_flow *f);
/* Ends it with a reset on both sides. */
void csn_flow_cut(csn_flow *f);

/* ---- policy.c --------------------------------------------------------------------------- */

/* May it go where it is aimed at? Also finds the rule. */
bool csn_judge_target(csn_flow *f, csn_netverdict *ret);
/* Those of the addresses that may be dialled, to the front; how many. If none, *ret is the
 * verdict about the first. */
size_t csn_judge_addresses(csn_flow *f, csn_netaddr *addrs, size_t n, csn_netverdict *ret);
/* It is connected to f->peer: may it still be? If not, it is refused and has ended. */
bool csn_judge_peer(csn_flow *f);
/* For a look: remembers the refusal, which happens when the look has returned this. `name` is
 * what was asked for; NULL: what the flow is aimed at. */
int csn_judge_object(csn_flow *f, const csn_domain *name, const char *why);
void csn_record_refusal(csn_flow *f, const csn_refusal *r);
void csn_record_connect(csn_flow *f, const char *why); /* why: NULL, or why it failed */
void csn_record_close(csn_flow *f, const char *why);   /* why: NULL, or why it was cut */
/* Cuts the flows that the rules of now would not allow. */
void csn_judge_again(csn_gate *g);
/* errno for people; static. */
const char *csn_why_errno(int error);

/* ---- inspect.c, proxy.c ---------------------------------------------------------------- */

/* The bytes that come near are looked at before they are passed on. -ENOMEM. */
int csn_inspect_begin(csn_flow *f);
int csn_proxy_begin(csn_flow *f);
/* What a peer is told that speaks HTTP or SOCKS; f->voice says which. */
void csn_proxy_refuse(csn_flow *f, const csn_refusal *r);
void csn_proxy_failed(csn_flow *f, int error);

/* ---- listener.c, ports.c, dns_stub.c ----------------------------------------------------------- */

/* Connections come in here from now on. Takes fd, a socket that listens, if that worked. */
int csn_door_open(csn_gate *g, int fd, csn_way way, uint16_t port, const csn_narrow *narrow);
void csn_doors_close(csn_gate *g, const csn_narrow *narrow); /* those of a command */

/* Listens on the host's loopback; *port may be 0 and is set. -errno. */
int csn_ports_publish(csn_gate *g, uint16_t inside, uint16_t *port);
int csn_ports_link(csn_gate *g, int fd); /* takes fd */
void csn_ports_published(csn_flow *f, uint16_t inside);
void csn_ports_lent(csn_flow *f, uint16_t host);
/* A flow that ends no longer waits for a socket. */
void csn_ports_forget(csn_flow *f);

int csn_stub_init(csn_gate *g, uint32_t per_second);
/* Questions come in here: datagrams, or connections. Takes fd, if that worked. */
int csn_stub_open(csn_gate *g, int fd, bool tcp, const csn_narrow *narrow);
void csn_stub_close(csn_gate *g, const csn_narrow *narrow); /* those of a command */

/* ---- exec_rules.c -------------------------------------------------------------------------- */

/* A command from now on until `lease`, which it takes if that worked, is closed elsewhere. Its
 * sockets come with the message. -errno; -EUSERS: there are too many. */
int csn_narrow_begin(csn_gate *g, int lease, csn_msg *m, const csn_gate_setup *s);
/* What the sandbox's rules allow may still be refused to a command; n NULL: it may not. */
void csn_narrow_name(const csn_narrow *n, const csn_domain *name, uint16_t port,
                     csn_netverdict *v);
void csn_narrow_address(const csn_narrow *n, const csn_netaddr *a, uint16_t port,
                        csn_netverdict *v);
void csn_narrow_lookup(const csn_narrow *n, const csn_domain *name, csn_netverdict *v);

/* ---- control.c, confine.c -------------------------------------------------------------- */

/* Serves the connection that the gateway is born with. */
int csn_control_init(csn_gate *g, int fd);
/* Gives up every right that serving does not need. -errno. */
int csn_confine(uint32_t uid, uint32_t gid, size_t flows_max);
