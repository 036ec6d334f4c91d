/* fuzz_socks.c: what a client of the SOCKS proxy sends.
 *
 * Beside not crashing: however the bytes are cut, the same is asked for; nothing is used up
 * that did not come; no message needs more bytes than are kept. */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "gateway/socks.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool ok)
{
    if (!ok)
        __builtin_trap();
}

typedef struct wish {
    enum gw_socks_step step;
    size_t used;
    uint8_t said[64]; /* what it was answered so far */
    size_t said_len;
    char name[256];
    uint8_t address[16];
    size_t address_len;
    uint16_t port;
} wish;

static void take(wish *w, const gw_socks *s, enum gw_socks_step step)
{
    w->step = step;
    if (step == GW_SOCKS_SEND || step == GW_SOCKS_REFUSE) {
        must(s->reply_len > 0 && s->reply_len <= sizeof(s->reply));
        must(w->said_len + s->reply_len <= sizeof(w->said));
        memcpy(w->said + w->said_len, s->reply, s->reply_len);
        w->said_len += s->reply_len;
    }
    must((step == GW_SOCKS_REFUSE) == (s->why != NULL) || step != GW_SOCKS_REFUSE);
    if (step != GW_SOCKS_CONNECT)
        return;
    must((s->name.len > 0) != (s->address_len > 0) && s->name.len <= 255);
    must(s->address_len == 0 || s->address_len == 4 || s->address_len == 16);
    if (s->name.len > 0)
        memcpy(w->name, s->name.at, s->name.len);
    memcpy(w->address, s->address, s->address_len);
    w->address_len = s->address_len;
    w->port = s->port;
}

static void talk(const uint8_t *data, size_t size, size_t step, wish *w)
{
    gw_socks s = {0};
    size_t have = 0;

    *w = (wish){.step = GW_SOCKS_NEED_MORE};
    while (have < size) {
        have = size - have < step ? size : have + step;
        do {
            enum gw_socks_step r = gw_socks_next(&s, data + w->used, have - w->used);
            take(w, &s, r);
            if (r == GW_SOCKS_SEND || r == GW_SOCKS_CONNECT) {
                must(s.used > 0 && s.used <= have - w->used);
                w->used += s.used;
            }
        } while (w->step == GW_SOCKS_SEND);
        must(w->step != GW_SOCKS_NEED_MORE || have - w->used < GW_SOCKS_INPUT_MAX);
        if (w->step != GW_SOCKS_NEED_MORE)
            return;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    wish whole, pieces;
    size_t steps[] = {1, size > 0 ? 1 + data[size - 1] % 16u : 1};

    talk(data, size, size > 0 ? size : 1, &whole);
    for (size_t i = 0; i < 2; i++) {
        talk(data, size, steps[i], &pieces);
        must(memcmp(&whole, &pieces, sizeof(whole)) == 0);
    }
    return 0;
}
