/* fuzz_http.c: what a client sends in plain HTTP, request after request.
 *
 * Beside not crashing: however the bytes are cut, the same requests are found at the same
 * places and the connection ends in the same way; nothing is passed on that was not given; a
 * head that is accepted has its end inside the bytes and slices of them. */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "gateway/http.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define HEADS_MAX 64u

static void must(bool ok)
{
    if (!ok)
        __builtin_trap();
}

/* What was found: where each request began, and how it ended. */
typedef struct course {
    size_t heads, at[HEADS_MAX];
    enum gw_http_result last;
    size_t passed;
} course;

static bool within(gw_slice s, const uint8_t *data, size_t len)
{
    const uint8_t *p = (const uint8_t *)s.at;

    return s.len == 0 || (p >= data && p + s.len <= data + len);
}

static void check_head(const gw_http_head *h, const uint8_t *data, size_t len)
{
    must(h->len > 0 && h->len <= len && h->len <= CSN_HTTP_HEAD_MAX);
    must(within(h->method, data, h->len) && within(h->target, data, h->len));
    must(within(h->authority.host, data, h->len) && within(h->path, data, h->len));
    must(within(h->host.host, data, h->len));
    must(memcmp(data + h->len - 2, "\r\n", 2) == 0);
    must(h->minor <= 1 && (h->has_host || h->minor == 0));
    must(h->framing == GW_HTTP_LENGTH || h->body_len == 0);
}

/* `step`: how many bytes come at a time. The server's answer to a request that asks to leave
 * HTTP comes as soon as it is waited for. */
static void follow(const uint8_t *data, size_t size, size_t step, const char *answer, course *c)
{
    gw_http_follow f = {0};
    size_t at = 0, have = 0;

    *c = (course){.last = GW_HTTP_NEED_MORE};
    while (have < size || c->last != GW_HTTP_NEED_MORE) {
        have = size - have < step ? size : have + step;
        for (;;) {
            size_t pass = 0;
            gw_http_head h;
            enum gw_http_result r = gw_http_follow_next(&f, data + at, have - at, &pass, &h);
            must(pass <= have - at);
            c->last = r;
            if (r == GW_HTTP_WAIT) {
                must(gw_http_follow_wants_response(&f));
                gw_http_follow_response(&f, answer, strlen(answer));
                must(!gw_http_follow_wants_response(&f));
                continue;
            }
            if (r == GW_HTTP_HEAD) {
                check_head(&h, data + at, have - at);
                must(pass == h.len);
                if (c->heads < HEADS_MAX)
                    c->at[c->heads] = at;
                c->heads++;
            } else if (r != GW_HTTP_BODY && r != GW_HTTP_OPAQUE) {
                must(r != GW_HTTP_BAD || f.why);
                break;
            }
            must(pass > 0 || at == have);
            at += pass;
            if (at == have) {
                c->last = r == GW_HTTP_OPAQUE ? r : GW_HTTP_NEED_MORE;
                break;
            }
        }
        c->passed = at;
        if (c->last == GW_HTTP_BAD || c->last == GW_HTTP_H2C || c->last == GW_HTTP_NOT_HTTP ||
            have == size)
            return;
    }
}

static void same(const course *a, const course *b)
{
    must(a->heads == b->heads && a->last == b->last);
    for (size_t i = 0; i < a->heads && i < HEADS_MAX; i++)
        must(a->at[i] == b->at[i]);
    /* of a body that turns out bad, more or less of what came before may have gone on */
    must(a->last == GW_HTTP_BAD || a->passed == b->passed);
}

static void inspect(const uint8_t *data, size_t size)
{
    gw_http_scan one = {0}, many = {0};
    gw_http_head a, b;
    enum gw_http_result r = gw_http_parse(&one, data, size, &a), s = GW_HTTP_NEED_MORE;

    for (size_t i = 1; i <= size && s == GW_HTTP_NEED_MORE; i++)
        s = gw_http_parse(&many, data, i, &b);
    if (size == 0)
        return;
    must(r == s);
    if (r == GW_HTTP_HEAD) {
        check_head(&a, data, size);
        must(a.len == b.len && a.form == b.form && a.framing == b.framing &&
             a.body_len == b.body_len && a.upgrade == b.upgrade && a.host.port == b.host.port);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const answers[] = {"HTTP/1.1 101 Switching Protocols\r\n\r\n",
                                          "HTTP/1.1 200 OK\r\n\r\n"};
    course whole, pieces, bytes;

    inspect(data, size);
    for (size_t i = 0; i < 2; i++) {
        follow(data, size, size > 0 ? size : 1, answers[i], &whole);
        follow(data, size, size > 0 ? 1 + data[size - 1] % 64u : 1, answers[i], &pieces);
        follow(data, size, 1, answers[i], &bytes);
        same(&whole, &pieces);
        same(&whole, &bytes);
    }
    return 0;
}
