/* http.h: find the host and the end of HTTP/1 requests.
 *
 * gw_http_parse reads one head. gw_http_follow_* track a whole connection, so that every
 * request is checked and not only the first. An attacker controls every byte. The bytes are
 * forwarded unchanged, so the parser refuses anything that two servers could interpret
 * differently. Slices point into the caller's buffer. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/limits.h"
#include "gateway/slice.h"

enum gw_http_result {
    GW_HTTP_NEED_MORE,
    GW_HTTP_NOT_HTTP, /* no HTTP server would accept this as a request */
    GW_HTTP_BAD,      /* see why */
    GW_HTTP_H2C,      /* HTTP/2 with prior knowledge */
    GW_HTTP_HEAD,
    /* gw_http_follow_next only */
    GW_HTTP_BODY,
    GW_HTTP_WAIT,
    GW_HTTP_OPAQUE,
};

enum gw_http_form {
    GW_HTTP_ORIGIN,    /* /path */
    GW_HTTP_ABSOLUTE,  /* http://host/path: a request to a proxy */
    GW_HTTP_AUTHORITY, /* host:port: CONNECT only */
    GW_HTTP_ASTERISK,  /* OPTIONS only */
};

enum gw_http_framing { GW_HTTP_NO_BODY, GW_HTTP_LENGTH, GW_HTTP_CHUNKED };

typedef struct gw_http_authority {
    gw_slice host; /* raw; letters, digits, `-`, `_`, `.`; an IPv6 address without brackets */
    bool is_v6;
    uint16_t port; /* 0: none given */
} gw_http_authority;

typedef struct gw_http_head {
    size_t len; /* including the empty line */
    const char *why;
    gw_slice method, target;
    enum gw_http_form form;
    gw_http_authority authority; /* of an absolute target or of CONNECT */
    gw_slice path;               /* of an absolute target, from its slash on; may be empty */
    bool has_host;               /* optional in HTTP/1.0 */
    gw_http_authority host;
    unsigned minor; /* HTTP/1.minor */
    enum gw_http_framing framing;
    uint64_t body_len;
    bool close;        /* Connection: close */
    bool upgrade, h2c; /* Upgrade; one of its protocols is h2c */
} gw_http_head;

/* Progress within a head; zeroed for each head. */
typedef struct gw_http_scan {
    int phase;
    size_t seen, line, word;
} gw_http_scan;

/* data: everything from the first byte of the request on. */
enum gw_http_result gw_http_parse(gw_http_scan *s, const void *data, size_t len,
                                  gw_http_head *ret);

/* After NEED_MORE at EOF: true if the bytes are the start of a request. Some servers accept an
 * incomplete head. */
bool gw_http_has_begun(const gw_http_scan *s, const void *data, size_t len);

/* The first line of a connection after NOT_HTTP; zeroed at its start. */
typedef struct gw_http_watch {
    bool begun;
    unsigned matched;
    size_t seen;
} gw_http_watch;

/* Some servers accept any bytes as a method, so a line whose first word is none may still be a
 * request, but it cannot be held until its end: a client of another protocol may wait for an
 * answer. Pass every byte from the first on once. BAD: the line names a version of HTTP; its
 * end has not been passed on. NOT_HTTP: it has ended, or contains a zero byte. */
enum gw_http_result gw_http_watch_line(gw_http_watch *w, const void *data, size_t len);

/* One connection; zeroed at its start. */
typedef struct gw_http_follow {
    const char *why; /* of BAD */
    /* private */
    gw_http_scan scan;
    int phase, chunk, decision;
    bool switching, connect, not_first;
    uint64_t left; /* of the body or chunk */
    unsigned line_len, extensions_len, trailer_len, name_len;
    char name[20];
    unsigned status_at, status_code, line_used, interim_count, response_len;
} gw_http_follow;

/* data: bytes from the client that have not been forwarded yet. Results:
 *
 *   HEAD       *pass bytes are a head, parsed into *head: check it, pass them on, call again
 *   BODY       pass on *pass bytes, call again with the rest
 *   OPAQUE     pass on everything from here on
 *   WAIT       pass on nothing until gw_http_follow_response has seen the server's decision
 *   NEED_MORE  pass on nothing, read more
 *   BAD, H2C, and at the start NOT_HTTP: as gw_http_parse; final */
enum gw_http_result gw_http_follow_next(gw_http_follow *f, const void *data, size_t len,
                                        size_t *pass, gw_http_head *head);
/* True until the server has accepted or declined the Upgrade or CONNECT of the first request.
 * While true, pass every byte from the server to gw_http_follow_response once, starting with
 * the first. An Upgrade or CONNECT in a later request has no effect, because its response
 * cannot be located in the stream. */
bool gw_http_follow_wants_response(const gw_http_follow *f);
void gw_http_follow_response(gw_http_follow *f, const void *data, size_t len);

bool gw_http_is_token_byte(char c);
