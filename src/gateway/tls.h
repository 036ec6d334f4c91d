/* tls.h: find the server name in a TLS ClientHello.
 *
 * Call gw_tls_parse with everything the client has sent so far, from the first byte on,
 * whenever more bytes arrive; each byte is parsed once. An attacker controls every byte.
 *
 * With ECH the server uses an encrypted name instead of the one found here. A second
 * ClientHello after a HelloRetryRequest is not read. */
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

/* Zeroed at the start of a connection. */
typedef struct gw_tls {
    enum gw_tls_result result;
    const char *why; /* of BAD */
    gw_tls_hello hello;
    /* private */
    size_t seen;
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

enum gw_tls_result gw_tls_parse(gw_tls *t, const void *data, size_t len);
