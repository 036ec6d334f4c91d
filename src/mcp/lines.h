/* lines.h: messages as lines, out of a stream and into one. */
#pragma once
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

/* ---- in ---- */
#define CSN_LINE_FEED_MAX (1024u * 1024u) /* bytes given at once */

typedef struct csn_line_in {
    csn_buf buf;
    size_t max;        /* of one line */
    size_t from, seen; /* of the line that is next; bytes of it looked through */
    bool skipping;     /* in a line that is too long */
} csn_line_in;

typedef enum csn_line_state {
    CSN_LINE_NONE,     /* no whole line yet */
    CSN_LINE_GIVEN,    /* valid until the next call */
    CSN_LINE_TOO_LONG, /* one was, and is dropped */
} csn_line_state;

void csn_line_in_init(csn_line_in *l, size_t max);
void csn_line_in_release(csn_line_in *l);
/* Take every line there is before the next feed. 0 or errno. */
int csn_line_in_feed(csn_line_in *l, const char *data, size_t len);
csn_line_state csn_line_in_next(csn_line_in *l, const char **ret, size_t *ret_len);

/* ---- out ---- */
typedef struct csn_line_out {
    pthread_mutex_t lock;
    int fd, in;        /* the input of the same client: when that hangs up, we hurry */
    bool socket;       /* send works on fd */
    bool broken;       /* nobody reads any more */
    uint64_t hurry_ms; /* how long a reader that hung up may keep us */
} csn_line_out;

void csn_line_out_init(csn_line_out *o, int fd, int in, uint64_t hurry_ms);
/* The text and a newline, in one piece among those of other threads. false: it is broken. */
bool csn_line_out_send(csn_line_out *o, const char *text, size_t len);
