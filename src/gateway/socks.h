/* socks.h: parse the client's side of a SOCKS 5 handshake, up to the target address.
 *
 * One zeroed gw_socks per connection. Call gw_socks_next with the unconsumed bytes whenever
 * there are more, and act on the result:
 *
 *   NEED_MORE  read more
 *   SEND       send .reply, drop .used bytes, call again
 *   CONNECT    drop .used bytes, dial the target, send gw_socks_reply; what follows belongs to
 *              the target
 *   REFUSE     send .reply and close
 *   NOT_SOCKS  another protocol
 *
 * The parser accepts any user name and password and ignores them: only processes inside the
 * sandbox can connect. */
#pragma once
#include <stddef.h>
#include <stdint.h>

#include "gateway/slice.h"

enum gw_socks_step {
    GW_SOCKS_NEED_MORE,
    GW_SOCKS_SEND,
    GW_SOCKS_CONNECT,
    GW_SOCKS_REFUSE,
    GW_SOCKS_NOT_SOCKS,
};

enum gw_socks_code {
    GW_SOCKS_OK = 0,
    GW_SOCKS_FAILED = 1,
    GW_SOCKS_NOT_ALLOWED = 2,
    GW_SOCKS_NET_UNREACHABLE = 3,
    GW_SOCKS_HOST_UNREACHABLE = 4,
    GW_SOCKS_REFUSED = 5,
    GW_SOCKS_NO_COMMAND = 7,
    GW_SOCKS_NO_ADDRESS_TYPE = 8,
};

#define GW_SOCKS_REPLY_LEN 10u  /* of gw_socks_reply */
#define GW_SOCKS_INPUT_MAX 513u /* longest message of a client */

typedef struct gw_socks {
    int phase; /* private */
    size_t used;
    uint8_t reply[GW_SOCKS_REPLY_LEN];
    size_t reply_len;
    const char *why; /* of REFUSE */
    /* the target: a name (a slice of the bytes given, raw) or an address of 4 or 16 bytes */
    gw_slice name;
    uint8_t address[16];
    size_t address_len;
    uint16_t port;
} gw_socks;

enum gw_socks_step gw_socks_next(gw_socks *s, const void *data, size_t len);
/* The reply to CONNECT, with address 0.0.0.0:0. */
void gw_socks_reply(enum gw_socks_code code, uint8_t out[GW_SOCKS_REPLY_LEN]);
