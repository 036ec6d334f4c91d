/* socks.c: parses the client's side of a SOCKS 5 handshake (RFC 1928, 1929).
 *
 * An attacker controls every byte. Invariants: the parser reads only [data, data+len). It
 * refuses a message only after the whole message has arrived: closing with unread input would
 * send a reset, and the client could lose the reply. */
#include "gateway/socks.h"

#include <string.h>

#define VERSION       5u
#define AUTH_VERSION  1u
#define METHOD_NONE   0u
#define METHOD_USER   2u
#define METHOD_NO     0xffu
#define CMD_CONNECT   1u
#define CMD_LAST      3u
#define ATYP_V4       1u
#define ATYP_NAME     3u
#define ATYP_V6       4u
#define SOCKS4        4u
#define SOCKS4_LEN    8u
#define SOCKS4_REFUSE 91u

enum phase { P_GREETING, P_AUTH, P_REQUEST, P_DONE };

static enum gw_socks_step reply2(gw_socks *s, uint8_t a, uint8_t b, enum gw_socks_step step)
{
    s->reply[0] = a;
    s->reply[1] = b;
    s->reply_len = 2;
    return step;
}

static enum gw_socks_step refuse(gw_socks *s, enum gw_socks_code code, const char *why)
{
    gw_socks_reply(code, s->reply);
    s->reply_len = GW_SOCKS_REPLY_LEN;
    s->why = why;
    return GW_SOCKS_REFUSE;
}

static enum gw_socks_step refuse_socks4(gw_socks *s, size_t len)
{
    if (len < SOCKS4_LEN)
        return GW_SOCKS_NEED_MORE;
    memset(s->reply, 0, sizeof(s->reply));
    s->reply[1] = SOCKS4_REFUSE;
    s->reply_len = SOCKS4_LEN;
    s->used = len;
    s->why = "SOCKS 4 is not supported; use SOCKS 5";
    return GW_SOCKS_REFUSE;
}

static enum gw_socks_step greeting(gw_socks *s, const uint8_t *b, size_t len)
{
    if (b[0] == SOCKS4)
        return refuse_socks4(s, len);
    if (b[0] != VERSION)
        return GW_SOCKS_NOT_SOCKS;
    if (len < 2 || len < 2u + b[1])
        return GW_SOCKS_NEED_MORE;
    s->used = 2u + b[1];
    if (memchr(b + 2, METHOD_NONE, b[1])) {
        s->phase = P_REQUEST;
        return reply2(s, VERSION, METHOD_NONE, GW_SOCKS_SEND);
    }
    if (memchr(b + 2, METHOD_USER, b[1])) {
        s->phase = P_AUTH;
        return reply2(s, VERSION, METHOD_USER, GW_SOCKS_SEND);
    }
    s->why = "no supported SOCKS authentication method";
    return reply2(s, VERSION, METHOD_NO, GW_SOCKS_REFUSE);
}

static enum gw_socks_step auth(gw_socks *s, const uint8_t *b, size_t len)
{
    if (b[0] != AUTH_VERSION) {
        s->why = "unknown SOCKS authentication version";
        return reply2(s, AUTH_VERSION, 1, GW_SOCKS_REFUSE);
    }
    if (len < 2 || len < 3u + b[1] || len < 3u + b[1] + b[2u + b[1]])
        return GW_SOCKS_NEED_MORE;
    s->used = 3u + b[1] + b[2u + b[1]];
    s->phase = P_REQUEST;
    return reply2(s, AUTH_VERSION, 0, GW_SOCKS_SEND);
}

static enum gw_socks_step take_target(gw_socks *s, const uint8_t *b, size_t at, size_t n)
{
    if (b[3] == ATYP_NAME) {
        s->name = (gw_slice){.at = (const char *)b + at, .len = n};
    } else {
        memcpy(s->address, b + at, n);
        s->address_len = n;
    }
    s->port = (uint16_t)(b[at + n] << 8 | b[at + n + 1]);
    s->used = at + n + 2;
    if (b[1] != CMD_CONNECT)
        return refuse(s, GW_SOCKS_NO_COMMAND, "only the SOCKS command CONNECT is supported");
    if (n == 0 || s->port == 0)
        return refuse(s, GW_SOCKS_FAILED, "SOCKS target without host or port");
    s->phase = P_DONE;
    return GW_SOCKS_CONNECT;
}

static enum gw_socks_step request(gw_socks *s, const uint8_t *b, size_t len)
{
    size_t at = 4, n;

    if (b[0] != VERSION)
        return refuse(s, GW_SOCKS_FAILED, "wrong version in the SOCKS request");
    if (len < 5)
        return GW_SOCKS_NEED_MORE;
    if (b[1] == 0 || b[1] > CMD_LAST)
        return refuse(s, GW_SOCKS_NO_COMMAND, "unknown SOCKS command");
    if (b[2] != 0)
        return refuse(s, GW_SOCKS_FAILED, "reserved byte of the SOCKS request is not 0");
    if (b[3] == ATYP_V4) {
        n = 4;
    } else if (b[3] == ATYP_V6) {
        n = 16;
    } else if (b[3] == ATYP_NAME) {
        n = b[at++];
    } else {
        return refuse(s, GW_SOCKS_NO_ADDRESS_TYPE, "unknown SOCKS address type");
    }
    return len < at + n + 2 ? GW_SOCKS_NEED_MORE : take_target(s, b, at, n);
}

enum gw_socks_step gw_socks_next(gw_socks *s, const void *data, size_t len)
{
    s->used = 0;
    s->reply_len = 0;
    if (len == 0)
        return GW_SOCKS_NEED_MORE;
    switch ((enum phase)s->phase) {
    case P_GREETING:
        return greeting(s, data, len);
    case P_AUTH:
        return auth(s, data, len);
    case P_REQUEST:
        return request(s, data, len);
    case P_DONE:
        break;
    }
    return GW_SOCKS_CONNECT;
}

void gw_socks_reply(enum gw_socks_code code, uint8_t out[GW_SOCKS_REPLY_LEN])
{
    memset(out, 0, GW_SOCKS_REPLY_LEN);
    out[0] = VERSION;
    out[1] = (uint8_t)code;
    out[3] = ATYP_V4;
}
