/* stream.h: splits a response body that arrives in pieces into messages.
 *
 * The parser delivers each complete message once and in order, in whatever pieces the body
 * arrives. A message has a maximum size. The sender is not trusted. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "caisson/caisson.h"

typedef enum {
    CSN_STREAM_LINES,   /* NDJSON: one message a line; empty lines are heartbeats */
    CSN_STREAM_CONNECT, /* Connect-RPC: flags byte, 32-bit big-endian length, message */
    CSN_STREAM_DOCKER,  /* Docker attach: stream number, 3 zero bytes, length as above, bytes */
} csn_stream_format;

typedef struct csn_message {
    const char *data; /* NUL-terminated after len bytes */
    size_t len;
    uint8_t flags; /* Connect: flags; Docker: stream number */
} csn_message;

/* A non-zero result stops the parser. */
typedef int (*csn_message_fn)(void *ctx, const csn_message *m);

typedef struct csn_stream_parser {
    csn_stream_format format;
    csn_message_fn fn;
    void *ctx;
    size_t max; /* bytes of one message */
    bool stopped;
    csn_buf part;    /* the incomplete line or frame */
    uint8_t head[8]; /* of the frame */
    size_t head_len;
} csn_stream_parser;

void csn_stream_parser_init(csn_stream_parser *s, csn_stream_format format, size_t max,
                            csn_message_fn fn, void *ctx);
void csn_stream_parser_release(csn_stream_parser *s);
/* CSN_TOO_LARGE: a message over the maximum; CSN_IO: a malformed frame header; CSN_NOMEM. */
csn_status csn_stream_parser_feed(csn_stream_parser *s, const void *data, size_t len,
                                  csn_error **err);
/* Call at the end of the body. Delivers a last line without newline; CSN_IO for an incomplete
 * frame. */
csn_status csn_stream_parser_finish(csn_stream_parser *s, csn_error **err);

/* Appends one Connect frame. 0 or errno. */
int csn_connect_frame(csn_buf *b, uint8_t flags, const void *data, size_t len);
#define CSN_CONNECT_COMPRESSED 0x01u
#define CSN_CONNECT_END        0x02u
