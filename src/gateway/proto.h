/* proto.h: the wire between the library and the gateway of a sandbox.
 *
 * Messages are os/msg.h's, on a SEQPACKET socket: descriptor 3 of a gateway that starts, and
 * for a detached sandbox any connection to the socket it was given to listen on. As with a
 * keeper, the first descriptor of every request is one end of a SEQPACKET pair, on which the
 * one answer comes. Both sides check everything: the library does not trust a gateway that read
 * hostile bytes all day, the gateway has a bug less to fear.
 *
 *   request   body              descriptors after the channel   answer
 *   SETUP     csn_gateway_setup_msg    as its flags say                READY
 *   UPDATE    csn_gateway_rules    -                               OK, when flows are cut
 *   NARROW    csn_gateway_setup_msg,   as its flags say                OK; holds until the
 * channel is flags and rules                                   closed EVENTS    u64 since -
 * EVENTS_R; ask again while `more`
 *
 * Any may be answered by FAILED with a text. SETUP is the first and comes once. A control
 * connection that closes ends the gateway, unless CSN_GATEWAY_DETACHED; the end of the keeper
 * always does.
 *
 * The link to the keeper (CSN_GATEWAY_FD_LINK) is another SEQPACKET socket: a packet of one
 * byte, 4 or 6, is answered by one of one byte: 0 and a fresh non-blocking TCP socket of the
 * namespace inside, or an errno and none. Answers come in the order of the questions.
 *
 * Functions return 0 or -errno; what is decoded borrows from the message. */
#pragma once
#include <stdint.h>

#include "base/pack.h"
#include "os/msg.h"

#define CSN_GATEWAY_FD_CONTROL 3 /* the descriptor a gateway is born with */

#define CSN_GATEWAY_RULES_MAX   65536u /* of one kind */
#define CSN_GATEWAY_RULE_MAX    1023u  /* bytes of one */
#define CSN_GATEWAY_PORTS_MAX   32u    /* published, and as many lent */
#define CSN_GATEWAY_EVENTS_MAX  4096u  /* kept in the gateway's ring */
#define CSN_GATEWAY_BATCH_MAX   256u   /* in one answer, which is one packet: mostly fewer */
#define CSN_GATEWAY_NAME_MAX    255u
#define CSN_GATEWAY_ADDRESS_MAX 63u
#define CSN_GATEWAY_WHY_MAX     255u
#define CSN_GATEWAY_TEXT_MAX    1023u /* of FAILED */

#define CSN_GATEWAY_CONNECTIONS_DEFAULT 1024u
#define CSN_GATEWAY_CONNECTIONS_MAX     65536u
#define CSN_GATEWAY_NAMES_DEFAULT       200u /* questions a second; twice as many at once */
#define CSN_GATEWAY_NAMES_MAX           1000000u
/* An hour: ssh sessions and servers that work on one answer are silent for long, idle
 * connections cost little, and their number is bounded. Peers that vanished are noticed
 * earlier. */
#define CSN_GATEWAY_IDLE_MS_DEFAULT 3600000u
#define CSN_GATEWAY_IDLE_MS_MAX     86400000u

enum csn_gateway_type {
    CSN_GATEWAY_SETUP = 128,
    CSN_GATEWAY_UPDATE,
    CSN_GATEWAY_EVENTS,
    CSN_GATEWAY_NARROW,
    CSN_GATEWAY_READY = 160,
    CSN_GATEWAY_OK,
    CSN_GATEWAY_EVENTS_R,
    CSN_GATEWAY_FAILED,
};

enum csn_gateway_mode { CSN_GATEWAY_LISTED, CSN_GATEWAY_ALL };

typedef struct csn_gateway_rules {
    uint32_t mode;      /* csn_gateway_mode */
    const char **allow; /* NULL-terminated; after decoding in `heap` */
    const char **deny;
    const void *heap;
} csn_gateway_rules;

/* Flags of SETUP. The descriptors come in the order of the bits, then one listener inside for
 * each port that is lent. FD_DNS_* and FD_TCP_*: the stub's sockets and the ends of the
 * redirect; FD_PROXY: a listener on the loopback inside, where there is no redirect. All
 * listeners are listening; all sockets may be blocking, the gateway sees to that. */
#define CSN_GATEWAY_FD_DNS_UDP4 (1u << 0)
#define CSN_GATEWAY_FD_DNS_UDP6 (1u << 1)
#define CSN_GATEWAY_FD_DNS_TCP4 (1u << 2)
#define CSN_GATEWAY_FD_DNS_TCP6 (1u << 3)
#define CSN_GATEWAY_FD_TCP4     (1u << 4)
#define CSN_GATEWAY_FD_TCP6     (1u << 5)
#define CSN_GATEWAY_FD_PROXY    (1u << 6)
#define CSN_GATEWAY_FD_LINK     (1u << 7) /* to the keeper; needed to publish */
#define CSN_GATEWAY_FD_KEEPER   (1u << 8) /* its pidfd */
#define CSN_GATEWAY_FD_SOCKET   (1u << 9) /* listens for further control connections */
#define CSN_GATEWAY_FDS         0x3ffu
#define CSN_GATEWAY_FDS_NARROW  0x7fu /* those of NARROW: sockets of one command's network */
#define CSN_GATEWAY_DETACHED    (1u << 16)
#define CSN_GATEWAY_ALL_FLAGS   (CSN_GATEWAY_FDS | CSN_GATEWAY_DETACHED)

/* A port inside and the one on the host's loopback that stands for it. */
typedef struct csn_gateway_port {
    uint32_t inside;
    uint32_t outside; /* published: 0 lets the gateway choose */
} csn_gateway_port;

typedef struct csn_gateway_setup_msg {
    uint32_t flags;
    uint32_t uid, gid; /* to become after the set-up; 0: stay */
    csn_gateway_rules rules;
    uint32_t npublish, nlend;
    csn_gateway_port publish[CSN_GATEWAY_PORTS_MAX];
    csn_gateway_port lend[CSN_GATEWAY_PORTS_MAX]; /* inside: what its listener is bound to */
    uint32_t connections_max;                     /* 0: the default, here and below */
    uint32_t names_per_second;
    uint32_t idle_ms;
} csn_gateway_setup_msg;

void csn_put_gateway_rules(csn_packer *o, const csn_gateway_rules *r);
int csn_get_gateway_rules(const void *body, size_t len, csn_gateway_rules *ret);
void csn_gateway_rules_release(csn_gateway_rules *r); /* the lists; not the strings */
void csn_put_gateway_setup(csn_packer *o, const csn_gateway_setup_msg *s);
int csn_get_gateway_setup(const void *body, size_t len, csn_gateway_setup_msg *ret);
void csn_gateway_setup_msg_release(csn_gateway_setup_msg *s);
/* How many descriptors (without the channel) come along. */
size_t csn_gateway_setup_msg_fds(const csn_gateway_setup_msg *s);

/* READY: the published ports as they were bound, in the order of SETUP. */
typedef struct csn_gateway_ready {
    uint32_t n;
    uint32_t port[CSN_GATEWAY_PORTS_MAX];
} csn_gateway_ready;

void csn_put_gateway_ready(csn_packer *o, const csn_gateway_ready *r);
int csn_get_gateway_ready(const void *body, size_t len, csn_gateway_ready *ret);

/* What happened. NAME: a question to the stub. CONNECT: a verdict about a connection. CLOSE:
 * the end of one that was allowed. */
enum csn_gateway_kind {
    CSN_GATEWAY_NAME,
    CSN_GATEWAY_CONNECT,
    CSN_GATEWAY_CLOSE,
    CSN_GATEWAY_KINDS
};
enum csn_gateway_verdict { CSN_GATEWAY_ALLOW, CSN_GATEWAY_DENY, CSN_GATEWAY_VERDICTS };
/* What was spoken, as far as the gateway saw. */
enum csn_gateway_proto {
    CSN_GATEWAY_DNS,
    CSN_GATEWAY_TCP,
    CSN_GATEWAY_TLS,
    CSN_GATEWAY_HTTP,
    CSN_GATEWAY_CONNECT_PROXY,
    CSN_GATEWAY_SOCKS,
    CSN_GATEWAY_PUBLISHED, /* somebody on the host came in by a published port */
    CSN_GATEWAY_LENT,      /* somebody inside went out to a port of the host */
    CSN_GATEWAY_PROTOS
};

typedef struct csn_gateway_event {
    uint64_t seq;
    int64_t time_ms; /* since the epoch */
    uint32_t kind, verdict, proto;
    uint32_t port;
    uint64_t up, down; /* bytes; up is out of the sandbox */
    uint64_t ms;       /* CLOSE: how long it lived; CONNECT: how long setting up took */
    uint64_t count;    /* the same denial again is counted, not repeated; at least 1 */
    const char *name;  /* "" when there is none, here and below */
    const char *address;
    const char *rule; /* that decided */
    const char *hint; /* the smallest that would have allowed it */
    const char *why;  /* text for people */
} csn_gateway_event;

/* Answer to EVENTS: this, then so many events. Oldest first. */
typedef struct csn_gateway_batch {
    uint64_t next;    /* ask with this the next time */
    uint64_t dropped; /* events between `since` and the first here that the ring lost */
    uint32_t more;
    uint32_t count;
} csn_gateway_batch;

void csn_put_gateway_since(csn_packer *o, uint64_t since);
int csn_get_gateway_since(const void *body, size_t len, uint64_t *ret);
void csn_put_gateway_batch(csn_packer *o, const csn_gateway_batch *b);
/* Then csn_get_gateway_event `count` times, then csn_unpacker_end. */
int csn_get_gateway_batch(csn_unpacker *in, csn_gateway_batch *ret);
void csn_put_gateway_event(csn_packer *o, const csn_gateway_event *e);
int csn_get_gateway_event(csn_unpacker *in, csn_gateway_event *ret);

/* FAILED: a text for people. */
int csn_get_gateway_text(const void *body, size_t len, const char **ret);
