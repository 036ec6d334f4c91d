/* capture.h: keeps the start, the end, or both of a stream within a limit, and counts all
 * bytes. A stream of exactly max bytes is not truncated. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum { CSN_KEEP_HEAD, CSN_KEEP_TAIL, CSN_KEEP_BOTH } csn_keep;

typedef struct csn_capture {
    csn_keep keep;
    size_t max;      /* bytes kept at most */
    size_t head_max; /* part of max kept from the start */
    char *head;      /* grows up to head_max */
    size_t head_len, head_cap;
    char *ring; /* max - head_max bytes, allocated when first needed */
    size_t ring_cap, ring_len, ring_pos;
    uint64_t total;
    bool failed; /* out of memory: the rest is only counted */
} csn_capture;

void csn_capture_init(csn_capture *c, size_t max, csn_keep keep);
void csn_capture_release(csn_capture *c);
/* With data NULL, `len` bytes were dropped at this point of the stream. Returns CSN_SINK_MORE,
 * or CSN_SINK_COUNT if further bytes would only be counted. */
int csn_capture_write(csn_capture *c, const void *data, size_t len);
bool csn_capture_truncated(const csn_capture *c);
size_t csn_capture_size(const csn_capture *c); /* bytes kept */
/* Copies the kept bytes in order to out (csn_capture_size bytes). Returns the length of the
 * head; all bytes if nothing was dropped. */
size_t csn_capture_copy(const csn_capture *c, char *out);
