/* fuzz_stream.c: what a server can stream to us, in any pieces.
 *
 * The first byte picks the framing, the second how the rest is cut. Fed whole and fed in pieces
 * it must give the same messages and the same verdict; no message is over the ceiling. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "remote/stream.h"

#define CEILING 512u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef struct sum {
    uint64_t hash;
    size_t count;
} sum;

static void mix(sum *s, const void *data, size_t len)
{
    const uint8_t *p = data;

    for (size_t i = 0; i < len; i++)
        s->hash = (s->hash ^ p[i]) * 1099511628211u;
    s->hash = (s->hash ^ len) * 1099511628211u;
}

static int hear(void *ctx, const csn_message *m)
{
    sum *s = ctx;

    if (m->len > CEILING || m->data[m->len] != '\0')
        abort();
    mix(s, m->data, m->len);
    mix(s, &m->flags, 1);
    if (m->event)
        mix(s, m->event, strlen(m->event));
    s->count++;
    return 0;
}

static csn_status feed(csn_stream_kind kind, const uint8_t *data, size_t size, size_t piece,
                       sum *ret)
{
    csn_stream s;
    csn_status st = CSN_OK;

    csn_stream_init(&s, kind, CEILING, hear, ret);
    for (size_t at = 0; at < size && st == CSN_OK; at += piece)
        st = csn_stream_feed(&s, data + at, size - at < piece ? size - at : piece, NULL);
    if (st == CSN_OK)
        st = csn_stream_end(&s, NULL);
    csn_stream_release(&s);
    return st;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    sum whole = {.count = 0}, cut = {.count = 0};

    if (size < 3)
        return 0;
    csn_stream_kind kind = (csn_stream_kind)(data[0] % 4);
    size_t piece = data[1] % 64 + 1u;
    csn_status a = feed(kind, data + 2, size - 2, size, &whole);
    csn_status b = feed(kind, data + 2, size - 2, piece, &cut);
    if (a != b || whole.count != cut.count || whole.hash != cut.hash)
        abort();
    return 0;
}
