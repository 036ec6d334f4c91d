/* msg.h: whole messages with descriptors over SEQPACKET sockets, between caisson's own
 * programs.
 *
 * A fixed head, a body, descriptors by SCM_RIGHTS. A body that does not fit into one packet
 * travels in a sealed memfd, passed as the last descriptor. The types and bodies are defined
 * in keeper/protocol.h and gateway/protocol.h. Functions return 0 or -errno unless stated. */
#pragma once
#include <stddef.h>
#include <stdint.h>

#include "base/limits.h"

#define CSN_MSG_MAGIC   0x4b4e5343u /* "CSNK" */
#define CSN_MSG_VERSION 6u          /* of every protocol: all programs are installed together */

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
    const uint8_t *body; /* points into the caller's buffer or into `heap` */
    size_t len;
    int fds[CSN_KEEPER_FDS_MAX];
    size_t nfds;
    void *heap;
} csn_msg;

/* Returns a memfd with these bytes, sealed against any change, or -errno. */
int csn_sealed_memfd(const char *name, const void *data, size_t len);
/* Sends one message. Waits for buffer space until deadline_ns (0: forever; 1: does not
 * wait). */
int csn_msg_send(int sock, uint16_t type, const void *body, size_t len, const int *fds,
                 size_t nfds, uint64_t deadline_ns);
/* Receives one message without waiting; the caller releases it. Returns 1, 0 when the peer hung
 * up, -EAGAIN when there is none, -EPROTO when it is malformed. */
int csn_msg_recv(int sock, void *buf, size_t size, csn_msg *ret);
/* The type of the message that csn_msg_recv would return; -1: there is none. */
int csn_msg_next_type(int sock);
/* Sends a request whose answers come on a channel of its own: one end of a socket pair is sent
 * as the first descriptor, the other is *ret_channel. -EPIPE: the peer is gone. -ETIMEDOUT: it
 * read nothing until the deadline. */
int csn_msg_request(int sock, uint16_t type, const void *body, size_t len, const int *fds,
                    size_t nfds, uint64_t deadline_ns, int *ret_channel);
/* As csn_msg_recv, but waits; -ETIMEDOUT. */
int csn_msg_await(int sock, uint64_t deadline_ns, void *buf, size_t size, csn_msg *ret);
/* Closes the descriptors that were not taken and frees the body. */
void csn_msg_release(csn_msg *m);
int csn_msg_take_fd(csn_msg *m, size_t i); /* the caller then owns it; -1: none */
/* Checks the header of a packet of n bytes that came with nfds descriptors. */
int csn_msg_check(const void *packet, size_t n, size_t nfds, csn_msg_head *ret);
