/* netlink.h: several netlink requests in one datagram. Nothing is allocated; a batch that does
 * not fit fails when it is sent. Static programs link this. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CSN_NL_BYTES_MAX    8192u
#define CSN_NL_MESSAGES_MAX 64u

#define CSN_NL_REQUEST 0x1u
#define CSN_NL_ACK     0x4u
#define CSN_NL_EXCL    0x200u
#define CSN_NL_CREATE  0x400u
#define CSN_NL_APPEND  0x800u

typedef struct csn_nl {
    uint8_t data[CSN_NL_BYTES_MAX];
    size_t len;
    size_t message;                     /* offset of the last message */
    uint8_t steps[CSN_NL_MESSAGES_MAX]; /* by sequence number; the caller's meaning */
    uint32_t count;
    bool full;
} csn_nl;

/* Begins a message. `head`: the fixed header of its family, after struct nlmsghdr. */
void csn_nl_begin(csn_nl *b, uint16_t type, uint16_t flags, uint8_t step, const void *head,
                  size_t len);
void csn_nl_end(csn_nl *b);
void csn_nl_put(csn_nl *b, uint16_t type, const void *data, size_t len);
void csn_nl_put_text(csn_nl *b, uint16_t type, const char *text);
void csn_nl_put_be32(csn_nl *b, uint16_t type, uint32_t v);
/* Opens a nested attribute; returns what csn_nl_close needs. */
size_t csn_nl_open(csn_nl *b, uint16_t type);
void csn_nl_close(csn_nl *b, size_t at);

/* Sends the batch. Returns a socket in the caller's network namespace, or -errno. */
int csn_nl_send(csn_nl *b, int protocol);
/* Reads the next answer without waiting: the kernel answers before the send returns. 1: the
 * message of number *ret_seq ended with *ret_error, 0 or -errno. 0: no answer is left. */
int csn_nl_answer(int fd, uint32_t *ret_seq, int *ret_error);
