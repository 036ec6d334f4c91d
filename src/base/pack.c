/* pack.c: writes and reads the parts of a message.
 *
 * Linked into the library, the keeper and the gateway. Everything that is decoded here was
 * written by the other side, which may be taken over: lengths are checked before they are used,
 * strings end where they say. Pure, and fuzzed through the bodies made of it
 * (fuzz_keeper_proto, fuzz_gateway_proto). */
#include "base/pack.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define NULL_STR UINT32_MAX /* the length that stands for NULL */

/* ---- encoding -------------------------------------------------------------------------- */

void csn_packer_init(csn_packer *o, void *buf, size_t size)
{
    *o = (csn_packer){.data = buf, .cap = size};
}

void csn_packer_release(csn_packer *o)
{
    if (o->owned)
        free(o->data);
    *o = (csn_packer){.error = EINVAL};
}

/* Makes room, or sets the error that sticks: callers put a whole body and look once at the end.
 * Most bodies fit the caller's buffer on the stack and never see the heap. */
static bool wire_room(csn_packer *o, size_t more)
{
    if (o->error != 0)
        return false;
    if (more <= o->cap - o->len)
        return true;
    if (more > CSN_KEEPER_BODY_MAX - o->len) {
        o->error = E2BIG;
        return false;
    }
    size_t cap = o->cap < 1024 ? 1024 : o->cap;
    while (cap < o->len + more)
        cap *= 2;
    uint8_t *grown = realloc(o->owned ? o->data : NULL, cap);
    if (!grown) {
        o->error = ENOMEM;
        return false;
    }
    if (!o->owned && o->len > 0)
        memcpy(grown, o->data, o->len);
    o->data = grown;
    o->cap = cap;
    o->owned = true;
    return true;
}

void csn_put_bytes(csn_packer *o, const void *data, size_t len)
{
    if (len == 0 || !wire_room(o, len))
        return;
    memcpy(o->data + o->len, data, len);
    o->len += len;
}

void csn_put_u32(csn_packer *o, uint32_t v)
{
    csn_put_bytes(o, &v, sizeof(v));
}

void csn_put_u64(csn_packer *o, uint64_t v)
{
    csn_put_bytes(o, &v, sizeof(v));
}

void csn_put_i64(csn_packer *o, int64_t v)
{
    csn_put_bytes(o, &v, sizeof(v));
}

void csn_put_str(csn_packer *o, const char *s)
{
    /* "" and NULL mean different things in a request (an empty argument, no cwd). */
    if (!s) {
        csn_put_u32(o, NULL_STR);
        return;
    }
    size_t len = strlen(s);
    if (len >= CSN_KEEPER_BODY_MAX) {
        o->error = o->error ? o->error : E2BIG;
        return;
    }
    csn_put_u32(o, (uint32_t)len);
    csn_put_bytes(o, s, len + 1);
}

/* ---- decoding -------------------------------------------------------------------------- */

void csn_unpacker_init(csn_unpacker *in, const void *data, size_t len)
{
    const uint8_t *p = data;

    *in = (csn_unpacker){.p = p, .end = p ? p + len : p};
}

const uint8_t *csn_get_bytes(csn_unpacker *in, size_t len)
{
    if (in->error != 0 || len > (size_t)(in->end - in->p)) {
        in->error = EPROTO;
        return NULL;
    }
    const uint8_t *at = in->p;
    in->p += len;
    return at;
}

uint32_t csn_get_u32(csn_unpacker *in)
{
    uint32_t v = 0;
    const uint8_t *at = csn_get_bytes(in, sizeof(v));

    if (at)
        memcpy(&v, at, sizeof(v));
    return v;
}

uint64_t csn_get_u64(csn_unpacker *in)
{
    uint64_t v = 0;
    const uint8_t *at = csn_get_bytes(in, sizeof(v));

    if (at)
        memcpy(&v, at, sizeof(v));
    return v;
}

int64_t csn_get_i64(csn_unpacker *in)
{
    return (int64_t)csn_get_u64(in);
}

const char *csn_get_str(csn_unpacker *in, size_t max, bool may_be_null)
{
    uint32_t len = csn_get_u32(in);

    if (in->error == 0 && len == NULL_STR && may_be_null)
        return NULL;
    if (len > max) {
        in->error = EPROTO;
        return NULL;
    }
    /* The NUL is part of what was sent, so that strings can be used where they lie; one inside
     * would make the string another one for exec than it was for us. */
    const char *s = (const char *)csn_get_bytes(in, (size_t)len + 1);
    if (s && (s[len] != '\0' || memchr(s, '\0', len))) {
        in->error = EPROTO;
        return NULL;
    }
    return s;
}

int csn_unpacker_end(const csn_unpacker *in)
{
    return in->error != 0 || in->p != in->end ? -EPROTO : 0;
}
