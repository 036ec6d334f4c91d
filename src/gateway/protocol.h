/* protocol.h: the protocol between the library and the gateway of a sandbox.
 *
 * Messages are those of os/msg.h on a SEQPACKET socket: descriptor 3 of a new gateway, and for
 * a detached sandbox any connection to its listening socket. The first descriptor of a request
 * is one end of a SEQPACKET pair, the channel on which the reply comes. Each side validates
 * every message: the gateway handles hostile bytes and may be compromised.
 *
 *   request     body                   descriptors after the channel   reply
 *   SETUP       csn_gateway_setup_msg  those of its flags              READY
 *   UPDATE      csn_gateway_rules      -                               OK, after flows were cut
 *   EXEC_RULES  csn_gateway_setup_msg  those of its flags              OK; valid until the
 *               (flags and rules)                                      channel closes
 *   EVENTS      u64 since              -                               EVENTS_R; repeat while
 *                                                                      `more` is set
 *   WATCH       -                      -                               DENIED for each new
 * denial, until the channel closes
 *
 * The reply to any request may be FAILED with an error message. SETUP is the first request and
 * is sent once. The gateway exits when its keeper exits, and when the inherited control
 * connection closes unless CSN_GATEWAY_DETACHED is set.
 *
 * The link to the keeper (CSN_GATEWAY_FD_LINK) is another SEQPACKET socket. A one-byte packet,
 * 4 or 6, requests a TCP socket of that family inside; the reply is one byte: 0 with a
 * non-blocking socket, or an errno. Replies come in the order of the requests.
 *
 * Functions return 0 or -errno. Decoded strings point into the message. */
#pragma once
#include <stdint.h>

#include "base/pack.h"
#include "os/msg.h"

#define CSN_GATEWAY_FD_CONTROL 3 /* inherited control connection */

#define CSN_GATEWAY_RULES_MAX   65536u /* allow rules; as many deny rules */
#define CSN_GATEWAY_RULE_MAX    1023u  /* bytes of a rule */
#define CSN_GATEWAY_PORTS_MAX   32u    /* published ports; as many host ports */
#define CSN_GATEWAY_EVENTS_MAX  4096u  /* in the ring buffer */
#define CSN_GATEWAY_BATCH_MAX   256u   /* events in one reply */
#define CSN_GATEWAY_NAME_MAX    255u
#define CSN_GATEWAY_ADDRESS_MAX 63u
#define CSN_GATEWAY_WHY_MAX     255u
#define CSN_GATEWAY_TEXT_MAX    1023u /* of FAILED */

#define CSN_GATEWAY_CONNECTIONS_DEFAULT 1024u
#define CSN_GATEWAY_CONNECTIONS_MAX     65536u
#define CSN_GATEWAY_NAMES_DEFAULT       200u /* DNS queries a second; burst: twice that */
#define CSN_GATEWAY_NAMES_MAX           1000000u
/* One hour: ssh sessions and slow servers may be silent for long; idle connections are cheap
 * and their number is limited. TCP keep-alive detects dead peers earlier. */
#define CSN_GATEWAY_IDLE_MS_DEFAULT 3600000u
#define CSN_GATEWAY_IDLE_MS_MAX     86400000u

enum csn_gateway_type {
    CSN_GATEWAY_SETUP = 128,
    CSN_GATEWAY_UPDATE,
    CSN_GATEWAY_EVENTS,
    CSN_GATEWAY_EXEC_RULES,
    CSN_GATEWAY_WATCH,
    CSN_GATEWAY_READY = 160,
    CSN_GATEWAY_OK,
    CSN_GATEWAY_EVENTS_R,
    CSN_GATEWAY_FAILED,
    CSN_GATEWAY_DENIED, /* one csn_gateway_event */
};

enum csn_gateway_mode { CSN_GATEWAY_LISTED, CSN_GATEWAY_ALL };

typedef struct csn_gateway_rules {
    uint32_t mode;      /* csn_gateway_mode */
    const char **allow; /* NULL-terminated */
    const char **deny;
    csn_strings strings;
} csn_gateway_rules;

/* Flags of SETUP. The descriptors come in the order of the bits, then one listener inside for
 * each host port. FD_DNS_* and FD_TCP_*: sockets of the DNS stub and of the redirect. FD_PROXY:
 * a listener on the sandbox's loopback, for sandboxes without a redirect. TCP sockets are
 * listening; the gateway makes all sockets non-blocking. */
#define CSN_GATEWAY_FD_DNS_UDP4 (1u << 0)
#define CSN_GATEWAY_FD_DNS_UDP6 (1u << 1)
#define CSN_GATEWAY_FD_DNS_TCP4 (1u << 2)
#define CSN_GATEWAY_FD_DNS_TCP6 (1u << 3)
#define CSN_GATEWAY_FD_TCP4     (1u << 4)
#define CSN_GATEWAY_FD_TCP6     (1u << 5)
#define CSN_GATEWAY_FD_PROXY    (1u << 6)
#define CSN_GATEWAY_FD_LINK     (1u << 7) /* to the keeper; required for published ports */
#define CSN_GATEWAY_FD_KEEPER   (1u << 8) /* the keeper's pidfd */
#define CSN_GATEWAY_FD_SOCKET   (1u << 9) /* listener for more control connections */
#define CSN_GATEWAY_FDS         0x3ffu
#define CSN_GATEWAY_FDS_EXEC    0x7fu /* those of EXEC_RULES */
#define CSN_GATEWAY_DETACHED    (1u << 16)
#define CSN_GATEWAY_ALL_FLAGS   (CSN_GATEWAY_FDS | CSN_GATEWAY_DETACHED)

/* A port inside and its counterpart on the host's loopback. */
typedef struct csn_gateway_port {
    uint32_t inside;
    uint32_t outside; /* published: 0 means any free port */
} csn_gateway_port;

typedef struct csn_gateway_setup_msg {
    uint32_t flags;
    uint32_t uid, gid; /* to switch to after set-up; 0: keep */
    csn_gateway_rules rules;
    uint32_t npublish, nhost_ports;
    csn_gateway_port publish[CSN_GATEWAY_PORTS_MAX];
    csn_gateway_port host_ports[CSN_GATEWAY_PORTS_MAX]; /* inside: the port of its listener */
    uint32_t connections_max;                           /* 0: default, here and below */
    uint32_t names_per_second;
    uint32_t idle_ms;
} csn_gateway_setup_msg;

void csn_put_gateway_rules(csn_packer *o, const csn_gateway_rules *r);
/* Do not copy a decoded struct: short lists are stored inside it. Release it with
 * csn_gateway_rules_release. */
int csn_get_gateway_rules(const void *body, size_t len, csn_gateway_rules *ret);
void csn_gateway_rules_release(csn_gateway_rules *r); /* frees the lists, not the strings */
void csn_put_gateway_setup(csn_packer *o, const csn_gateway_setup_msg *s);
int csn_get_gateway_setup(const void *body, size_t len, csn_gateway_setup_msg *ret);
/* Number of descriptors, without the channel. */
size_t csn_gateway_setup_msg_fds(const csn_gateway_setup_msg *s);

/* READY: the published ports as bound, in the order of SETUP. */
typedef struct csn_gateway_ready {
    uint32_t n;
    uint32_t port[CSN_GATEWAY_PORTS_MAX];
} csn_gateway_ready;

void csn_put_gateway_ready(csn_packer *o, const csn_gateway_ready *r);
int csn_get_gateway_ready(const void *body, size_t len, csn_gateway_ready *ret);

/* NAME: a DNS query. CONNECT: a decision about a connection. CLOSE: the end of an allowed
 * connection. */
enum csn_gateway_kind {
    CSN_GATEWAY_NAME,
    CSN_GATEWAY_CONNECT,
    CSN_GATEWAY_CLOSE,
    CSN_GATEWAY_KINDS
};
enum csn_gateway_verdict { CSN_GATEWAY_ALLOW, CSN_GATEWAY_DENY, CSN_GATEWAY_VERDICTS };
/* The protocol that the gateway recognised. */
enum csn_gateway_proto {
    CSN_GATEWAY_DNS,
    CSN_GATEWAY_TCP,
    CSN_GATEWAY_TLS,
    CSN_GATEWAY_HTTP,
    CSN_GATEWAY_CONNECT_PROXY,
    CSN_GATEWAY_SOCKS,
    CSN_GATEWAY_PUBLISHED, /* from the host to a published port */
    CSN_GATEWAY_HOST_PORT, /* from inside to a host port */
    CSN_GATEWAY_PROTOS
};

typedef struct csn_gateway_event {
    uint64_t seq;
    int64_t time_ms; /* since the epoch */
    uint32_t kind, verdict, proto;
    uint32_t port;
    uint64_t up, down; /* bytes; up: out of the sandbox */
    uint64_t ms;       /* CLOSE: duration; CONNECT: time to connect */
    uint64_t count;    /* at least 1; repeated denials are counted */
    const char *name;  /* "" if there is none, here and below */
    const char *address;
    const char *rule; /* deciding rule */
    const char *hint; /* smallest rule that would allow it */
    const char *why;  /* reason, as text */
} csn_gateway_event;

/* Reply to EVENTS: this header, then `count` events, oldest first. */
typedef struct csn_gateway_batch {
    uint64_t next;    /* `since` of the next request */
    uint64_t dropped; /* events after `since` that the ring lost */
    uint32_t more;
    uint32_t count;
} csn_gateway_batch;

void csn_put_gateway_since(csn_packer *o, uint64_t since);
int csn_get_gateway_since(const void *body, size_t len, uint64_t *ret);
void csn_put_gateway_batch(csn_packer *o, const csn_gateway_batch *b);
/* Afterwards call csn_get_gateway_event `count` times, then csn_unpacker_end. */
int csn_get_gateway_batch(csn_unpacker *in, csn_gateway_batch *ret);
void csn_put_gateway_event(csn_packer *o, const csn_gateway_event *e);
int csn_get_gateway_event(csn_unpacker *in, csn_gateway_event *ret);

/* FAILED: an error message. */
int csn_get_gateway_text(const void *body, size_t len, const char **ret);
