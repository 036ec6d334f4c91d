/* http.h: for which host is an HTTP/1 request, and where does it end?
 *
 * gw_http_inspect reads one head. csn_http_follow_* go along a whole connection, so that every
 * request on it is judged and not only the first. Both only look; the bytes are passed on as
 * they are, so whatever two servers might read in two ways is refused. The bytes are the
 * attacker's. Slices point into the bytes given. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/limits.h"
#include "gateway/slice.h"

enum gw_http_result {
    CSN_HTTP_NEED_MORE,
    CSN_HTTP_NOT_HTTP, /* no HTTP server would take this for a request */
    CSN_HTTP_BAD,      /* see why */
    CSN_HTTP_H2C,      /* HTTP/2 without TLS, from its first byte on */
    CSN_HTTP_HEAD,
    /* of gw_http_follow_next alone */
    CSN_HTTP_BODY,
    CSN_HTTP_WAIT,
    CSN_HTTP_OPAQUE,
};

enum gw_http_form {
    CSN_HTTP_ORIGIN,    /* /path */
    CSN_HTTP_ABSOLUTE,  /* http://host/path, as proxies are asked */
    CSN_HTTP_AUTHORITY, /* host:port, of CONNECT and nothing else */
    CSN_HTTP_ASTERISK,  /* of OPTIONS */
};

enum gw_http_framing { CSN_HTTP_NO_BODY, CSN_HTTP_LENGTH, CSN_HTTP_CHUNKED };

typedef struct gw_http_authority {
    gw_slice host; /* raw; letters, digits, `-`, `_`, `.`; an IPv6 address without brackets */
    bool is_v6;
    uint16_t port; /* 0: none was said */
} gw_http_authority;

typedef struct gw_http_head {
    size_t len; /* with the empty line */
    const char *why;
    gw_slice method, target;
    enum gw_http_form form;
    gw_http_authority authority; /* of an absolute target or of CONNECT */
    gw_slice path;               /* of an absolute target, from its slash on; may be empty */
    bool has_host;               /* HTTP/1.0 may go without */
    gw_http_authority host;
    unsigned minor; /* of the version */
    enum gw_http_framing framing;
    uint64_t body_len;
    bool close;        /* the client wants no second request */
    bool upgrade, h2c; /* asks to go on in another protocol; one of them HTTP/2 */
} gw_http_head;

/* How far a head was looked at; zeroed for each head. */
typedef struct gw_http_scan {
    int phase;
    size_t seen, line, word;
} gw_http_scan;

/* data: everything from the first byte of the request on; may have moved since the last call.
 */
enum gw_http_result gw_http_inspect(gw_http_scan *s, const void *data, size_t len,
                                    gw_http_head *ret);

/* After NEED_MORE, when nothing more will come: is this a request whose head is not whole? Some
 * servers do not miss its end. */
bool gw_http_is_begun(const gw_http_scan *s, const void *data, size_t len);

/* One connection, zeroed at its start. */
typedef struct gw_http_follow {
    const char *why; /* of BAD */
    /* nobody else's */
    gw_http_scan scan;
    int phase, chunk, answer;
    bool switching, connect, again;
    uint64_t left;
    unsigned line_len, extensions_len, trailer_len, name_len;
    char name[20];
    unsigned answer_at, answer_code, answer_line, answer_interim, answer_len;
} gw_http_follow;

/* data: what the client sent and has not been passed on yet. Afterwards:
 *
 *   HEAD       the next *pass bytes are a head, and in *head: judge it, pass them on, call
 * again BODY       the next *pass bytes may be passed on; call again with the rest OPAQUE the
 * same, and this is so for all that follows WAIT       pass on nothing before
 * gw_http_follow_answer has said what the server made of the request to leave HTTP NEED_MORE
 * pass on nothing, read more; there is more to come if the client does not close BAD, H2C,
 * NOT_HTTP (only at the start)  as of gw_http_inspect; nothing changes any more */
enum gw_http_result gw_http_follow_next(gw_http_follow *f, const void *data, size_t len,
                                        size_t *pass, gw_http_head *head);
/* So many bytes are coming that need not be looked at (UINT64_MAX: all); skip says they went.
 */
uint64_t gw_http_follow_ahead(const gw_http_follow *f);
void gw_http_follow_skip(gw_http_follow *f, uint64_t n);
/* The first request asked to leave HTTP (Upgrade, CONNECT): the server's bytes are wanted too,
 * from its first one on and each once, until this is false. A later request that asks is
 * followed as if it had not: where its answer starts is not known here. */
bool gw_http_follow_wants_answer(const gw_http_follow *f);
void gw_http_follow_answer(gw_http_follow *f, const void *data, size_t len);
