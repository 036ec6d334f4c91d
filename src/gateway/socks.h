/* socks.h: where does a SOCKS 5 client want to connect to?
 *
 * One gw_socks, zeroed, per connection. Give gw_socks_next the bytes that are not used up
 * yet, as often as there are more, and do what it says:
 *
 *   NEED_MORE  read more
 *   SEND       send .reply, drop .used bytes, call again
 *   CONNECT    drop .used bytes; the target is known: dial, then gw_socks_answer; what follows
 *              belongs to the target
 *   REFUSE     send .reply and close
 *   NOT_SOCKS  the first byte is another protocol's
 *
 * A user name and password are taken and mean nothing: whoever reaches the socket is inside. */
#pragma once
#include <stddef.h>
#include <stdint.h>

#include "gateway/slice.h"

enum gw_socks_step {
    CSN_SOCKS_NEED_MORE,
    CSN_SOCKS_SEND,
    CSN_SOCKS_CONNECT,
    CSN_SOCKS_REFUSE,
    CSN_SOCKS_NOT_SOCKS,
};

enum gw_socks_code {
    CSN_SOCKS_OK = 0,
    CSN_SOCKS_FAILED = 1,
    CSN_SOCKS_NOT_ALLOWED = 2,
    CSN_SOCKS_NET_UNREACHABLE = 3,
    CSN_SOCKS_HOST_UNREACHABLE = 4,
    CSN_SOCKS_REFUSED = 5,
    CSN_SOCKS_TTL_EXPIRED = 6,
    CSN_SOCKS_NO_COMMAND = 7,
    CSN_SOCKS_NO_ADDRESS_TYPE = 8,
};

#define CSN_SOCKS_REPLY_LEN 10u  /* of gw_socks_answer */
#define CSN_SOCKS_INPUT_MAX 513u /* no message of a client is longer */

typedef struct gw_socks {
    int phase; /* nobody else's */
    size_t used;
    uint8_t reply[CSN_SOCKS_REPLY_LEN];
    size_t reply_len;
    const char *why; /* of REFUSE */
    /* the target: a name (a slice of the bytes given, raw) or an address of 4 or 16 bytes */
    gw_slice name;
    uint8_t address[16];
    size_t address_len;
    uint16_t port;
} gw_socks;

enum gw_socks_step gw_socks_next(gw_socks *s, const void *data, size_t len);
/* The answer to CONNECT; the address in it is always 0.0.0.0:0. */
void gw_socks_answer(enum gw_socks_code code, uint8_t out[CSN_SOCKS_REPLY_LEN]);
