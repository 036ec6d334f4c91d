/* msg.h: whole messages with descriptors over SEQPACKET sockets, between our own programs.
 *
 * A fixed head, a body, descriptors by SCM_RIGHTS. A body that does not fit into one packet
 * travels in a sealed memfd, passed as the last descriptor. What the types and bodies mean is
 * keeper/protocol.h and gateway/protocol.h. Functions return 0 (or as said) or -errno. */
#pragma once
#include <stddef.h>
#include <stdint.h>

#include "base/limits.h"

#define CSN_MSG_MAGIC   0x4b4e5343u /* "CSNK" */
#define CSN_MSG_VERSION 2u          /* of every wire of ours: the programs come together */

#define CSN_MSG_BODY_FD (1u << 0) /* head.flags: the body is in the last descriptor */

typedef struct csn_msg_head {
    uint32_t magic;
    uint16_t version;
    uint16_t type;
    uint32_t flags;
    uint32_t length; /* of the body */
} csn_msg_head;

typedef struct csn_msg {
    uint16_t type;
    const uint8_t *body; /* in the caller's buffer, or in heap */
    size_t len;
    int fds[CSN_KEEPER_FDS_MAX];
    size_t nfds;
    void *heap;
} csn_msg;

/* A memfd with these bytes that nobody can change any more. */
int csn_sealed_memfd(const char *name, const void *data, size_t len);
/* Sends one message. Waits for room until deadline_ns (0: forever; 1: not at all). */
int csn_msg_send(int sock, uint16_t type, const void *body, size_t len, const int *fds,
                 size_t nfds, uint64_t deadline_ns);
/* Receives one message without waiting; body and descriptors are the caller's to release. 1: a
 * message, 0: the other side hung up, -EAGAIN: nothing there, -EPROTO: malformed. */
int csn_msg_recv(int sock, void *buf, size_t size, csn_msg *ret);
/* A request whose answers come on a channel of its own: one end of a pair goes along as the
 * first descriptor, the other is *ret_channel. A peer that is gone is -EPIPE, one that takes
 * nothing until the deadline -ETIMEDOUT. */
int csn_msg_ask(int sock, uint16_t type, const void *body, size_t len, const int *fds,
                size_t nfds, uint64_t deadline_ns, int *ret_channel);
/* As csn_msg_recv, but waits: -ETIMEDOUT. */
int csn_msg_await(int sock, uint64_t deadline_ns, void *buf, size_t size, csn_msg *ret);
void csn_msg_release(csn_msg *m); /* closes descriptors that were not taken, frees the heap */
int csn_msg_take_fd(csn_msg *m, size_t i); /* the caller owns it now; -1: there is none */
/* The pure part of recv: checks a packet of n bytes that came with nfds descriptors. */
int csn_msg_check(const void *packet, size_t n, size_t nfds, csn_msg_head *ret);
