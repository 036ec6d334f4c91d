/* fuzz_stream.c: any response body, cut anywhere.
 *
 * The first byte picks the format, the second the size of the pieces. Fed whole and in pieces,
 * the body must give the same messages and status; no message is over the maximum. */
#include <stdint.h>
#include <stdlib.h>

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
    s->count++;
    return 0;
}

static csn_status feed(csn_stream_format format, const uint8_t *data, size_t size, size_t piece,
                       sum *ret)
{
    csn_stream_parser s;
    csn_status st = CSN_OK;

    csn_stream_parser_init(&s, format, CEILING, hear, ret);
    for (size_t at = 0; at < size && st == CSN_OK; at += piece)
        st = csn_stream_parser_feed(&s, data + at, size - at < piece ? size - at : piece, NULL);
    if (st == CSN_OK)
        st = csn_stream_parser_finish(&s, NULL);
    csn_stream_parser_release(&s);
    return st;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    sum whole = {.count = 0}, cut = {.count = 0};

    if (size < 3)
        return 0;
    csn_stream_format format = (csn_stream_format)(data[0] % 3);
    size_t piece = data[1] % 64 + 1u;
    csn_status a = feed(format, data + 2, size - 2, size, &whole);
    csn_status b = feed(format, data + 2, size - 2, piece, &cut);
    if (a != b || whole.count != cut.count || whole.hash != cut.hash)
        abort();
    return 0;
}
