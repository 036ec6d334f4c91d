/* tls_follow.c: finds every plaintext ClientHello after the first one of a connection.
 *
 * The server may answer the first ClientHello with a HelloRetryRequest; the client then sends a
 * second one, which may name another server. Only the server's bytes tell whether a handshake
 * record of the client is that ClientHello or encrypted, so both directions are followed.
 *
 *   answer    what the server has sent      what the client may send
 *   PENDING   nothing, or alerts            change_cipher_spec, alerts, early data
 *   RETRY     HelloRetryRequest             the same, and one ClientHello: then PENDING again
 *   HELLO     ServerHello                   plaintext messages other than ClientHello; the
 * first change_cipher_spec or encrypted record ends the search OTHER     something else an
 * alert
 *
 * An attacker controls the bytes of the client. The server is one that the rules allow: it
 * follows the protocol, and what it would refuse is refused here too. Memory is constant. */
#include <string.h>

#include "gateway/tls.h"

#define RECORD_CHANGE    0x14u
#define RECORD_ALERT     0x15u
#define RECORD_HANDSHAKE 0x16u
#define RECORD_DATA      0x17u
#define CLIENT_HELLO     1u
#define SERVER_HELLO     2u
#define ENCRYPTED_MAX    (CSN_TLS_RECORD_MAX + 2048u) /* TLS 1.2 */
#define REPLY_RANDOM     6u /* offset in a ServerHello: type, length, version */

enum answer { A_PENDING, A_RETRY, A_HELLO, A_OTHER };

/* The random of a ServerHello that is a HelloRetryRequest (RFC 8446, 4.1.3). */
static const uint8_t RETRY_RANDOM[32] = {0xcf, 0x21, 0xad, 0x74, 0xe5, 0x9a, 0x61, 0x11,
                                         0xbe, 0x1d, 0x8c, 0x02, 0x1e, 0x65, 0xb8, 0x91,
                                         0xc2, 0xa2, 0x11, 0x16, 0x7a, 0xbb, 0x8c, 0x5e,
                                         0x07, 0x9e, 0x09, 0xe2, 0xc8, 0xa8, 0x33, 0x9c};

void gw_tls_follow_begin(gw_tls_follow *f)
{
    f->answer = A_PENDING;
}

static size_t record_len(const uint8_t header[5])
{
    return (size_t)header[3] << 8 | header[4];
}

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* ---- the client ------------------------------------------------------------------------ */

static const char *check_type(const gw_tls_follow *f, uint8_t type)
{
    if (f->answer == A_OTHER)
        return type == RECORD_ALERT ? NULL
                                    : "the server's answer to the ClientHello is not TLS";
    if (type == RECORD_HANDSHAKE && f->answer == A_PENDING)
        return "a handshake message before the server's answer";
    if (type < RECORD_CHANGE || type > RECORD_DATA)
        return "unknown TLS record";
    return NULL;
}

/* Plaintext records of these types have one length. */
static const char *check_header(const gw_tls_follow *f)
{
    size_t len = record_len(f->record);
    uint8_t type = f->record[0];

    if (f->record[1] != 3)
        return "unknown TLS record version";
    if (type == RECORD_ALERT ? len != 2 : type == RECORD_CHANGE && len != 1)
        return "wrong length of an alert or change_cipher_spec";
    if (len == 0 || len > (type == RECORD_DATA ? ENCRYPTED_MAX : CSN_TLS_RECORD_MAX))
        return "TLS record empty or too long";
    return NULL;
}

/* Messages of TLS 1.2 between the ServerHello and change_cipher_spec. Some servers start over
 * with a ClientHello among them. */
static const char *take_messages(gw_tls_follow *f, const uint8_t *data, size_t len)
{
    while (len > 0) {
        size_t n = 1;
        if (f->message_left > 0) {
            n = smaller(f->message_left, len);
            f->message_left -= n;
        } else {
            f->message[f->message_have++] = *data;
            if (f->message[0] == CLIENT_HELLO)
                return "a second ClientHello without a HelloRetryRequest";
        }
        if (f->message_have == sizeof(f->message)) {
            f->message_left =
                (size_t)f->message[1] << 16 | (size_t)f->message[2] << 8 | f->message[3];
            f->message_have = 0;
        }
        data += n;
        len -= n;
    }
    return NULL;
}

static enum gw_tls_follow_result set_bad(gw_tls_follow *f, const char *why)
{
    f->why = why;
    return GW_TLS_FOLLOW_BAD;
}

/* The ClientHello after a HelloRetryRequest begins at data[*pass]. */
static enum gw_tls_follow_result next_hello(gw_tls_follow *f, const uint8_t *data, size_t len,
                                            size_t *pass)
{
    switch (gw_tls_parse(&f->hello, data + *pass, len - *pass)) {
    case GW_TLS_HELLO:
        *pass += f->hello.seen;
        f->answer = A_PENDING;
        return GW_TLS_FOLLOW_HELLO;
    case GW_TLS_NEED_MORE:
        return GW_TLS_FOLLOW_PASS;
    case GW_TLS_NOT_TLS:
    case GW_TLS_BAD:
    default:
        return set_bad(f, f->hello.why ? f->hello.why : "malformed");
    }
}

/* Takes one byte of a record header. */
static const char *take_header_byte(gw_tls_follow *f, uint8_t c)
{
    const char *why = f->record_have == 0 ? check_type(f, c) : NULL;

    f->record[f->record_have++] = c;
    if (why || f->record_have < sizeof(f->record))
        return why;
    f->record_have = 0;
    f->record_left = record_len(f->record);
    return check_header(f);
}

/* The content of a record. Only handshake messages are read. */
static const char *take_content(gw_tls_follow *f, const uint8_t *data, size_t len)
{
    f->record_left -= len;
    return f->record[0] == RECORD_HANDSHAKE ? take_messages(f, data, len) : NULL;
}

/* The next byte begins a record that the server can only decrypt. */
static bool is_encrypted_from(const gw_tls_follow *f, uint8_t type)
{
    return f->answer == A_HELLO && (type == RECORD_CHANGE || type == RECORD_DATA);
}

enum gw_tls_follow_result gw_tls_follow_client(gw_tls_follow *f, const void *data, size_t len,
                                               size_t *pass)
{
    const uint8_t *bytes = data;
    const char *why = f->why;
    size_t at = 0;

    *pass = 0;
    while (at < len && !why) {
        bool begins = f->record_left == 0 && f->record_have == 0;
        if (begins && is_encrypted_from(f, bytes[at])) {
            *pass = len;
            return GW_TLS_FOLLOW_OPAQUE;
        }
        if (begins && f->answer == A_RETRY && bytes[at] == RECORD_HANDSHAKE) {
            *pass = at;
            return next_hello(f, bytes, len, pass);
        }
        if (f->record_left == 0) {
            why = take_header_byte(f, bytes[at++]);
        } else {
            size_t n = smaller(f->record_left, len - at);
            why = take_content(f, bytes + at, n);
            at += n;
        }
    }
    *pass = why ? 0 : at;
    return why ? set_bad(f, why) : GW_TLS_FOLLOW_PASS;
}

/* ---- the server ------------------------------------------------------------------------ */

bool gw_tls_follow_wants_server(const gw_tls_follow *f)
{
    return f->answer == A_PENDING || f->answer == A_RETRY;
}

/* A complete head of a handshake message, up to the random. After a HelloRetryRequest the next
 * message is the answer to the second ClientHello. */
static void take_reply(gw_tls_follow *f)
{
    size_t len = (size_t)f->reply[1] << 16 | (size_t)f->reply[2] << 8 | f->reply[3];

    f->reply_have = 0;
    if (f->reply[0] != SERVER_HELLO || len < sizeof(f->reply) - 4 || f->answer != A_PENDING) {
        f->answer = A_OTHER;
    } else if (memcmp(f->reply + REPLY_RANDOM, RETRY_RANDOM, sizeof(RETRY_RANDOM)) != 0) {
        f->answer = A_HELLO;
    } else {
        f->answer = A_RETRY;
        f->reply_left = len - (sizeof(f->reply) - 4);
        f->hello = (gw_tls){0};
    }
}

static void take_server_content(gw_tls_follow *f, const uint8_t *data, size_t len)
{
    f->server_left -= len;
    if (f->server_record[0] != RECORD_HANDSHAKE)
        return;
    while (len > 0 && gw_tls_follow_wants_server(f)) {
        size_t n = 1;
        if (f->reply_left > 0) {
            n = smaller(f->reply_left, len);
            f->reply_left -= n;
        } else {
            f->reply[f->reply_have++] = *data;
            if (f->reply_have == sizeof(f->reply))
                take_reply(f);
        }
        data += n;
        len -= n;
    }
}

static void take_server_header(gw_tls_follow *f, uint8_t c)
{
    const uint8_t *h = f->server_record;

    f->server_record[f->server_have++] = c;
    if (h[0] < RECORD_CHANGE || h[0] > RECORD_HANDSHAKE || (f->server_have > 1 && h[1] != 3))
        f->answer = A_OTHER;
    if (f->server_have < sizeof(f->server_record))
        return;
    f->server_have = 0;
    f->server_left = record_len(h);
}

void gw_tls_follow_server(gw_tls_follow *f, const void *data, size_t len)
{
    const uint8_t *bytes = data;

    for (size_t at = 0; at < len && gw_tls_follow_wants_server(f);) {
        if (f->server_left == 0) {
            take_server_header(f, bytes[at++]);
        } else {
            size_t n = smaller(f->server_left, len - at);
            take_server_content(f, bytes + at, n);
            at += n;
        }
    }
}
