/* pack.c: encodes and decodes the bodies of messages.
 *
 * Linked into the library, the keeper and the gateway. Each treats the bytes of the others as
 * hostile: a length is checked before it is used, and a string must end at its length. The
 * functions have no side effects; fuzz_keeper_proto and fuzz_gateway_proto exercise them. */
#include "base/pack.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

#define NULL_STR UINT32_MAX /* the length that encodes NULL */

/* ---- encoding ---- */

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

/* Errors stick in o->error, so callers check once per body. Most bodies fit into the caller's
 * buffer and use no heap. */
static bool make_room(csn_packer *o, size_t more)
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
    if (len == 0 || !make_room(o, len))
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

/* ---- decoding ---- */

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
    /* The sender includes the NUL, so that the string can be used in place. A NUL inside is
     * refused: exec would see a shorter string than the one that was checked. */
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

/* ---- structs ---- */

static bool in_bounds(const csn_field *f, uint64_t v)
{
    return f->kind == CSN_FIELD_FLAGS ? (v & ~f->max) == 0 : v >= f->min && v <= f->max;
}

static void check_put(csn_packer *o, const csn_field *f, uint64_t v, int error)
{
    if (!in_bounds(f, v) && o->error == 0)
        o->error = v < f->min ? EINVAL : error;
}

static void check_get(csn_unpacker *in, const csn_field *f, uint64_t v)
{
    if (!in_bounds(f, v))
        in->error = EPROTO;
}

static void put_list(csn_packer *o, const csn_field *f, const char *const *v)
{
    size_t n = 0;

    while (v && v[n])
        n++;
    check_put(o, f, n, E2BIG);
    csn_put_u32(o, (uint32_t)n);
    for (size_t i = 0; i < n; i++)
        csn_put_str(o, v[i]);
}

static void put_text(csn_packer *o, const csn_field *f, const char *s)
{
    if (s)
        check_put(o, f, strlen(s), EINVAL);
    else if (f->kind != CSN_FIELD_OPTIONAL_TEXT && o->error == 0)
        o->error = EINVAL;
    csn_put_str(o, s);
}

static void put_field(csn_packer *o, const csn_field *f, const void *at)
{
    switch ((csn_field_kind)f->kind) {
    case CSN_FIELD_U32:
    case CSN_FIELD_FLAGS:
        check_put(o, f, *(const uint32_t *)at, EINVAL);
        csn_put_u32(o, *(const uint32_t *)at);
        break;
    case CSN_FIELD_U64:
        check_put(o, f, *(const uint64_t *)at, EINVAL);
        csn_put_u64(o, *(const uint64_t *)at);
        break;
    case CSN_FIELD_I64:
        csn_put_i64(o, *(const int64_t *)at);
        break;
    case CSN_FIELD_TEXT:
    case CSN_FIELD_OPTIONAL_TEXT:
        put_text(o, f, *(const char *const *)at);
        break;
    case CSN_FIELD_BYTES:
        check_put(o, f, ((const csn_bytes *)at)->len, E2BIG);
        csn_put_u32(o, ((const csn_bytes *)at)->len);
        csn_put_bytes(o, ((const csn_bytes *)at)->data, ((const csn_bytes *)at)->len);
        break;
    case CSN_FIELD_LIST:
        put_list(o, f, *(const char *const *const *)at);
        break;
    case CSN_FIELD_STRINGS:
    case CSN_FIELD_END:
        break;
    }
}

void csn_put_fields(csn_packer *o, const csn_field *fields, const void *from)
{
    for (const csn_field *f = fields; f->kind != CSN_FIELD_END; f++)
        put_field(o, f, (const uint8_t *)from + f->offset);
}

static const char *get_text(csn_unpacker *in, const csn_field *f)
{
    const char *s = csn_get_str(in, (size_t)f->max, f->kind == CSN_FIELD_OPTIONAL_TEXT);

    if (s)
        check_get(in, f, strlen(s));
    return s;
}

/* Fills slots[1..n] and the NULL after them; without slots it only checks. Returns the number
 * of slots. */
static size_t get_list(csn_unpacker *in, const csn_field *f, const char **slots)
{
    uint32_t n = csn_get_u32(in);

    check_get(in, f, n);
    for (uint32_t i = 0; i < n && in->error == 0; i++) {
        const char *s = csn_get_str(in, CSN_KEEPER_BODY_MAX, false);
        if (slots)
            slots[i + 1] = s;
    }
    if (slots)
        slots[0] = slots[n + 1] = NULL;
    return (size_t)n + 2;
}

static size_t get_field(csn_unpacker *in, const csn_field *f, void *at, const char **slots)
{
    switch ((csn_field_kind)f->kind) {
    case CSN_FIELD_U32:
    case CSN_FIELD_FLAGS:
        check_get(in, f, *(uint32_t *)at = csn_get_u32(in));
        break;
    case CSN_FIELD_U64:
        check_get(in, f, *(uint64_t *)at = csn_get_u64(in));
        break;
    case CSN_FIELD_I64:
        *(int64_t *)at = csn_get_i64(in);
        break;
    case CSN_FIELD_TEXT:
    case CSN_FIELD_OPTIONAL_TEXT:
        *(const char **)at = get_text(in, f);
        break;
    case CSN_FIELD_BYTES: {
        csn_bytes *b = at;
        check_get(in, f, b->len = csn_get_u32(in));
        b->data = csn_get_bytes(in, b->len);
        break;
    }
    case CSN_FIELD_LIST:
        *(const char ***)at = slots ? slots + 1 : NULL;
        return get_list(in, f, slots);
    case CSN_FIELD_STRINGS:
    case CSN_FIELD_END:
        break;
    }
    return 0;
}

/* Returns how many slots the lists need. */
static size_t get_all(csn_unpacker *in, const csn_field *fields, void *ret, const char **slots)
{
    size_t n = 0;

    for (const csn_field *f = fields; f->kind != CSN_FIELD_END; f++)
        n += get_field(in, f, (uint8_t *)ret + f->offset, slots ? slots + n : NULL);
    return n;
}

/* Lists need two passes: the first checks and counts, the second fills one block. */
int csn_get_fields(csn_unpacker *in, const csn_field *fields, void *ret)
{
    csn_unpacker again = *in;
    size_t slots = get_all(in, fields, ret, NULL);

    if (in->error != 0)
        return -EPROTO;
    if (slots == 0)
        return 0;
    const csn_field *f = fields;
    while (f->kind != CSN_FIELD_STRINGS)
        f++;
    csn_strings *s = (csn_strings *)((uint8_t *)ret + f->offset);
    s->heap = slots > CSN_STRINGS_FEW ? malloc(slots * sizeof(s->few[0])) : NULL;
    if (slots > CSN_STRINGS_FEW && !s->heap)
        return -ENOMEM;
    (void)get_all(&again, fields, ret, s->heap ? s->heap : s->few);
    return 0;
}

void csn_strings_release(csn_strings *s)
{
    free(CSN_STEAL(s->heap));
}
