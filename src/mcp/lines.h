/* lines.h: reads and writes newline-delimited messages. */
#pragma once
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

/* ---- in ---- */
#define CSN_LINE_FEED_MAX (1024u * 1024u) /* largest `len` of one feed */

typedef struct csn_line_in {
    csn_buf buf;
    size_t max;        /* of one line */
    size_t from, seen; /* start of the next line; how much of it was searched */
    bool skipping;     /* dropping the rest of a line that is too long */
} csn_line_in;

typedef enum csn_line_state {
    CSN_LINE_NONE,     /* no complete line yet */
    CSN_LINE_GIVEN,    /* *ret is valid until the next call */
    CSN_LINE_TOO_LONG, /* a line was dropped */
} csn_line_state;

void csn_line_in_init(csn_line_in *l, size_t max);
void csn_line_in_release(csn_line_in *l);
/* Take all lines before the next feed. Returns 0 or errno. */
int csn_line_in_feed(csn_line_in *l, const char *data, size_t len);
csn_line_state csn_line_in_next(csn_line_in *l, const char **ret, size_t *ret_len);

/* ---- out ---- */
typedef struct csn_line_out {
    pthread_mutex_t lock;
    int fd, in;         /* `in`: input from the client; after its hangup, linger_ms applies */
    bool socket;        /* fd is a socket */
    bool broken;        /* a write failed: send nothing more */
    uint64_t linger_ms; /* longest wait for a client that closed the input */
} csn_line_out;

void csn_line_out_init(csn_line_out *o, int fd, int in, uint64_t linger_ms);
/* Writes text and newline without interleaving. Returns false if the client no longer reads. */
bool csn_line_out_send(csn_line_out *o, const char *text, size_t len);
