/* fuzz_base64_stream.c: any output of a sandbox over a transport for text, cut anywhere.
 *
 * The first byte is the size of the pieces, the second picks the stream. Fed whole and in
 * pieces, the output must give the same bytes and the same exit status. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "remote/base64_stream.h"

#define EXEC_ID "0123456789abcdefghij"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef struct sum {
    uint64_t hash;
    csn_remote_exit x;
    int last;
} sum;

static int hear(void *ctx, int stream, const void *data, size_t len)
{
    sum *s = ctx;
    const uint8_t *p = data;

    if (len == 0)
        abort();
    for (size_t i = 0; i < len; i++)
        s->hash = (s->hash ^ p[i] ^ (uint64_t)stream << 8) * 1099511628211u;
    return 0;
}

static void feed(int stream, const uint8_t *data, size_t size, size_t piece, sum *ret)
{
    static const char end[] = "HjAxMjM0NTY3ODlhYmNkZWZnaGlqIDAK\n"; /* of the other stream */
    csn_base64_stream c;

    ret->x.exit_code = -1;
    csn_base64_stream_init(&c, EXEC_ID, hear, ret);
    (void)csn_base64_stream_feed(&c, 3 - stream, end, strlen(end));
    for (size_t at = 0; at < size && ret->last == 0; at += piece)
        ret->last = csn_base64_stream_feed(&c, stream, data + at,
                                           size - at < piece ? size - at : piece);
    csn_base64_stream_finish(&c, &ret->x);
    csn_base64_stream_release(&c);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    sum whole = {.hash = 1}, cut = {.hash = 1};

    if (size < 3)
        return 0;
    int stream = data[1] & 1 ? CSN_STDERR : CSN_STDOUT;
    feed(stream, data + 2, size - 2, size, &whole);
    feed(stream, data + 2, size - 2, 1u + data[0], &cut);
    if (whole.hash != cut.hash || whole.last != cut.last || whole.x.ended != cut.x.ended ||
        whole.x.exit_code != cut.x.exit_code || whole.x.signal != cut.x.signal)
        abort();
    return 0;
}
