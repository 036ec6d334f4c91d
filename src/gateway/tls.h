/* tls.h: which server does a TLS client ask for? Read from the first bytes it sends.
 *
 * Nothing is decrypted and nothing answered. Give gw_tls_inspect everything that the client
 * has sent so far, from the first byte on, as often as there is more; each byte is looked at
 * once. The bytes are the attacker's.
 *
 * A name here is what the client says in clear. With ECH the server may go by another one that
 * nobody else can read; after a HelloRetryRequest the client may send a second hello, which is
 * not looked at. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/limits.h"

enum gw_tls_result {
    CSN_TLS_NEED_MORE,
    CSN_TLS_NOT_TLS, /* no TLS server would go on with these bytes */
    CSN_TLS_BAD,     /* TLS, or near to it, that we refuse to read: see why */
    CSN_TLS_HELLO,
};

#define CSN_TLS_NAME_MAX 255u

typedef struct gw_tls_hello {
    bool has_sni;
    char sni[CSN_TLS_NAME_MAX + 1]; /* letters, digits, `-`, `_`, `.`; terminated; as sent */
    size_t sni_len;
    bool ech; /* offered, or only pretended: that cannot be told apart */
    bool has_alpn, alpn_h2, alpn_http1;
} gw_tls_hello;

/* Zeroed at the start of a connection. */
typedef struct gw_tls {
    enum gw_tls_result result;
    const char *why; /* of BAD */
    gw_tls_hello hello;
    /* how far it is; nobody else's */
    size_t seen;
    uint8_t record[5];
    size_t record_have, record_left;
    bool started;
    int field; /* the part of the message that is being read */
    size_t field_left;
    uint32_t number; /* of a field that is one */
    size_t message_left, extensions_left, extension_left;
    uint16_t extension;
    uint8_t proto_len;
    char proto[8];
} gw_tls;

enum gw_tls_result gw_tls_inspect(gw_tls *t, const void *data, size_t len);
