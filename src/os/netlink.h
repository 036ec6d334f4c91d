/* netlink.h: several requests to the kernel's netlink, as one datagram. Nothing is allocated;
 * static programs link it. Requests that do not fit are noticed once, when they are sent. */
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
    size_t message;                     /* where the last one begins */
    uint8_t steps[CSN_NL_MESSAGES_MAX]; /* what each is for, by its number: the caller's */
    uint32_t count;
    bool full;
} csn_nl;

/* Begins a message: its own fixed head follows the common one. */
void csn_nl_begin(csn_nl *b, uint16_t type, uint16_t flags, uint8_t step, const void *head,
                  size_t len);
void csn_nl_end(csn_nl *b);
void csn_nl_put(csn_nl *b, uint16_t type, const void *data, size_t len);
void csn_nl_put_text(csn_nl *b, uint16_t type, const char *text);
void csn_nl_put_be32(csn_nl *b, uint16_t type, uint32_t v);
size_t csn_nl_open(csn_nl *b, uint16_t type); /* attributes up to close are in this one */
void csn_nl_close(csn_nl *b, size_t at);

/* Sends all. A socket in the caller's network; -errno. */
int csn_nl_send(csn_nl *b, int protocol);
/* The next answer; the kernel has worked by then, so it is there or will never be. 0: there is
 * none left. 1: *ret_error is 0 or -errno, for the message of number *ret_seq. -errno. */
int csn_nl_answer(int fd, uint32_t *ret_seq, int *ret_error);
