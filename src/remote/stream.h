/* stream.h: messages out of a body that comes in pieces: JSON lines, server-sent events,
 * Connect frames, the output frames of container engines.
 *
 * Feed it bytes as they come; each complete message is told once, in order, whatever the pieces
 * were. A message has a ceiling. The sender is not trusted. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "caisson/caisson.h"

typedef enum {
    CSN_STREAM_LINES, /* NDJSON: a message is a line; empty ones are heartbeats and not told */
    CSN_STREAM_SSE,   /* text/event-stream: a message is an event with data */
    CSN_STREAM_CONNECT, /* a flag byte, four bytes of length (big endian), the message */
    CSN_STREAM_ENGINE, /* a stream's number, three zero bytes, the length as above, its bytes */
} csn_stream_kind;

typedef struct csn_message {
    const char *data; /* NUL-terminated behind len */
    size_t len;
    uint8_t flags;     /* Connect: the flags; engines: the number of the stream */
    const char *event; /* SSE: its name, "message" when it has none; else NULL */
} csn_message;

/* Non-zero: enough; feed then returns at once and tells nothing more. */
typedef int (*csn_message_fn)(void *ctx, const csn_message *m);

typedef struct csn_stream {
    csn_stream_kind kind;
    csn_message_fn fn;
    void *ctx;
    size_t max;       /* bytes of one message */
    bool stopped;     /* fn said so */
    bool skip_lf;     /* SSE: the line ended with CR, an LF belongs to it */
    csn_buf part;     /* the line or frame that is not complete yet */
    csn_buf data;     /* SSE: the lines of data so far */
    char event[64];   /* SSE */
    uint8_t head[8];  /* Connect, engines */
    size_t head_have; /* bytes of it */
} csn_stream;

void csn_stream_init(csn_stream *s, csn_stream_kind kind, size_t max, csn_message_fn fn,
                     void *ctx);
void csn_stream_release(csn_stream *s);
/* CSN_TOO_LARGE: a message over the ceiling; CSN_IO: a head that cannot be one; CSN_NOMEM. */
csn_status csn_stream_feed(csn_stream *s, const void *data, size_t len, csn_error **err);
/* The body has ended: tells a last line without newline; CSN_IO when a message is cut off. */
csn_status csn_stream_end(csn_stream *s, csn_error **err);

/* One Connect frame around a message. 0 or errno. */
int csn_connect_frame(csn_buf *b, uint8_t flags, const void *data, size_t len);
#define CSN_CONNECT_COMPRESSED 0x01u
#define CSN_CONNECT_END        0x02u
