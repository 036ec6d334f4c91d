/* tls.h: find the server name in every TLS ClientHello of a connection.
 *
 * gw_tls_parse reads one ClientHello. gw_tls_follow_* find the ClientHello that answers a
 * HelloRetryRequest and decide from which byte on no other can follow in plaintext. An attacker
 * controls every byte of the client.
 *
 * With ECH the server uses an encrypted name instead of the one found here. The ClientHello of
 * a renegotiation (TLS 1.2) is encrypted and not seen. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/limits.h"

enum gw_tls_result {
    GW_TLS_NEED_MORE,
    GW_TLS_NOT_TLS, /* no TLS server would accept these bytes */
    GW_TLS_BAD,     /* TLS, or close to it, but not acceptable: see why */
    GW_TLS_HELLO,
};

#define GW_TLS_NAME_MAX 255u

typedef struct gw_tls_hello {
    bool has_sni;
    char sni[GW_TLS_NAME_MAX + 1]; /* letters, digits, `-`, `_`, `.`; terminated; as sent */
    size_t sni_len;
    bool ech; /* real or GREASE: indistinguishable */
} gw_tls_hello;

/* Zeroed for each ClientHello. */
typedef struct gw_tls {
    enum gw_tls_result result;
    const char *why; /* of BAD */
    gw_tls_hello hello;
    /* private */
    size_t seen; /* with HELLO: the length of its records */
    uint8_t record[5];
    size_t record_have, record_left;
    bool started;
    int field; /* being read */
    size_t field_left;
    uint32_t number; /* value of a numeric field */
    size_t message_left, extensions_left, extension_left;
    uint16_t extension;
    bool alpn_seen;
} gw_tls;

/* data: everything from the first byte of the ClientHello on; each byte is parsed once. */
enum gw_tls_result gw_tls_parse(gw_tls *t, const void *data, size_t len);

/* One connection from its first ClientHello on; zeroed at its start. */
typedef struct gw_tls_follow {
    const char *why; /* of BAD */
    gw_tls hello;    /* the latest ClientHello */
    /* private */
    int answer;
    uint8_t record[5], reply[38]; /* headers: of the client's record; of the server's message */
    size_t record_have, record_left;
    uint8_t message[4]; /* header of the client's handshake message */
    size_t message_have, message_left;
    uint8_t server_record[5];
    size_t server_have, server_left, reply_have, reply_left;
} gw_tls_follow;

enum gw_tls_follow_result {
    GW_TLS_FOLLOW_PASS,   /* pass on *pass bytes; if that is 0, read more */
    GW_TLS_FOLLOW_HELLO,  /* *pass bytes end with f->hello: check it, pass them on */
    GW_TLS_FOLLOW_OPAQUE, /* pass on everything from here on */
    GW_TLS_FOLLOW_BAD,    /* see why; final */
};

/* Call once f->hello is the accepted first ClientHello. */
void gw_tls_follow_begin(gw_tls_follow *f);
/* data: bytes from the client that have not been forwarded yet. */
enum gw_tls_follow_result gw_tls_follow_client(gw_tls_follow *f, const void *data, size_t len,
                                               size_t *pass);
/* True until the server has chosen its parameters. While true, pass every byte from the server
 * to gw_tls_follow_server once, before it is forwarded. */
bool gw_tls_follow_wants_server(const gw_tls_follow *f);
void gw_tls_follow_server(gw_tls_follow *f, const void *data, size_t len);
