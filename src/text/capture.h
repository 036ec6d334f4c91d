/* capture.h: keeps the start, the end, or both of a stream within a ceiling, and counts all of
 * it.
 *
 * Output limits live here, once, for every backend. Exact at the byte: a stream of max bytes is
 * not truncated, one more is. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum { CSN_KEEP_HEAD, CSN_KEEP_TAIL, CSN_KEEP_BOTH } csn_keep;

typedef struct csn_capture {
    csn_keep keep;
    size_t max;      /* kept at most */
    size_t head_max; /* of which from the start */
    char *head;      /* grows up to head_max */
    size_t head_len, head_cap;
    char *ring; /* max - head_max bytes, made when first needed */
    size_t ring_cap, ring_len, ring_pos;
    uint64_t total;
    bool failed; /* out of memory: the rest is only counted */
} csn_capture;

void csn_capture_init(csn_capture *c, size_t max, csn_keep keep);
void csn_capture_release(csn_capture *c);
/* data NULL: `len` bytes that nobody kept. Returns CSN_SINK_MORE, or CSN_SINK_COUNT when
 * further bytes would only be counted. */
int csn_capture_write(csn_capture *c, const void *data, size_t len);
bool csn_capture_truncated(const csn_capture *c);
size_t csn_capture_size(const csn_capture *c); /* bytes kept */
/* Copies what is kept, in order, to out (csn_capture_size bytes); returns the length of the
 * part that is the start of the stream. */
size_t csn_capture_copy(const csn_capture *c, char *out);
