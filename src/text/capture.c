/* capture.c: keeps command output within its limit, for every backend.
 *
 * The command controls the number of bytes and the size of chunks. Invariants: kept bytes never
 * exceed max; total counts every byte, also dropped ones; the head is contiguous from the start
 * of the stream and the ring contiguous to its end. Not thread-safe. */
#include "text/capture.h"

#include <string.h>

#include "base/cleanup.h"
#include "caisson/backend.h"

#define FIRST_CAPACITY 4096u

/* Allocates nothing: most commands print little. */
void csn_capture_init(csn_capture *c, size_t max, csn_keep keep)
{
    *c = (csn_capture){.keep = keep, .max = max};
    if (keep == CSN_KEEP_HEAD)
        c->head_max = max;
    else if (keep == CSN_KEEP_BOTH)
        c->head_max = max - max / 2;
    c->ring_cap = max - c->head_max;
}

void csn_capture_release(csn_capture *c)
{
    free(c->head);
    free(c->ring);
    *c = (csn_capture){.keep = c->keep};
}

/* Doubles the head's buffer, up to head_max. */
static bool head_reserve(csn_capture *c, size_t need)
{
    size_t cap = c->head_cap ? c->head_cap : FIRST_CAPACITY;

    if (need <= c->head_cap)
        return true;
    while (cap < need)
        cap = cap > SIZE_MAX / 2 ? need : cap * 2;
    if (cap > c->head_max)
        cap = c->head_max;
    char *grown = realloc(c->head, cap);
    if (!grown)
        return false;
    c->head = grown;
    c->head_cap = cap;
    return true;
}

/* Fills the head; returns how many bytes it took. */
static size_t head_write(csn_capture *c, const char *data, size_t len)
{
    size_t take = c->head_max - c->head_len;

    if (take > len)
        take = len;
    if (take == 0)
        return 0;
    if (!head_reserve(c, c->head_len + take)) {
        c->failed = true;
        return 0;
    }
    memcpy(c->head + c->head_len, data, take);
    c->head_len += take;
    return take;
}

/* A chunk larger than the ring replaces it; else it is written in at most two pieces. */
static void ring_write(csn_capture *c, const char *data, size_t len)
{
    if (len == 0 || c->ring_cap == 0)
        return;
    if (!c->ring && !(c->ring = malloc(c->ring_cap))) {
        c->failed = true;
        return;
    }
    if (len >= c->ring_cap) {
        memcpy(c->ring, data + (len - c->ring_cap), c->ring_cap);
        c->ring_len = c->ring_cap;
        c->ring_pos = 0;
        return;
    }
    size_t first = c->ring_cap - c->ring_pos;
    if (first > len)
        first = len;
    memcpy(c->ring + c->ring_pos, data, first);
    memcpy(c->ring, data + first, len - first);
    c->ring_pos = (c->ring_pos + len) % c->ring_cap;
    c->ring_len = c->ring_len + len > c->ring_cap ? c->ring_cap : c->ring_len + len;
}

/* Records that bytes were dropped: the head ends before them, the ring starts after them. */
static void note_gap(csn_capture *c)
{
    c->head_max = c->head_len;
    c->ring_len = 0;
    c->ring_pos = 0;
}

static bool only_counts(const csn_capture *c)
{
    return c->failed || (c->head_len == c->head_max && c->ring_cap == 0);
}

int csn_capture_write(csn_capture *c, const void *data, size_t len)
{
    c->total = c->total > UINT64_MAX - len ? UINT64_MAX : c->total + len;
    if (!data && len > 0)
        note_gap(c);
    if (data && len > 0 && !c->failed) {
        size_t taken = head_write(c, data, len);
        if (!c->failed)
            ring_write(c, (const char *)data + taken, len - taken);
    }
    return only_counts(c) ? CSN_SINK_COUNT : CSN_SINK_MORE;
}

bool csn_capture_truncated(const csn_capture *c)
{
    return c->total > csn_capture_size(c);
}

size_t csn_capture_size(const csn_capture *c)
{
    return c->head_len + c->ring_len;
}

size_t csn_capture_copy(const csn_capture *c, char *out)
{
    if (c->head_len > 0)
        memcpy(out, c->head, c->head_len);
    if (c->ring_len > 0) {
        /* The oldest byte of a full ring is at the next write position. */
        size_t start = c->ring_len < c->ring_cap ? 0 : c->ring_pos;
        size_t first = c->ring_len - start;
        memcpy(out + c->head_len, c->ring + start, first);
        memcpy(out + c->head_len + first, c->ring, start);
    }
    return csn_capture_truncated(c) ? c->head_len : csn_capture_size(c);
}
