/* args.c: values of JavaScript become arguments of the library.
 *
 * Everything is copied into the memory of the call, since JavaScript may change a Buffer while
 * the call runs. A string or Buffer is taken as bytes; a path may thus contain any byte but
 * NUL. Letters of verb.args:
 *
 *   H h  handle (h: it may be closed)     s  string        v  list of strings   b  bytes
 *   u  uint32_t   U  uint64_t   i  int    I  int64_t       w  uint16_t
 *   o  options: an array of its fields    l  list of such arrays
 *   S R L  callbacks: sink, source, lines */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "addon.h"

static bool refuse(napi_env env, const char *name, const char *wanted)
{
    char text[160];

    snprintf(text, sizeof(text), "%s: must be %s", name, wanted);
    napi_throw_type_error(env, "invalid", text);
    return false;
}

static bool out_of_memory(napi_env env)
{
    napi_throw_error(env, "nomem", "out of memory");
    return false;
}

static bool is_absent(napi_valuetype type)
{
    return type == napi_undefined || type == napi_null;
}

/* ---- strings and bytes ---- */

static bool read_text(napi_env env, call *c, napi_value v, char **ret, size_t *ret_len)
{
    char small[512];
    size_t len = 0;

    /* One call is enough for a short string. A full buffer may have cut a character. */
    napi_get_value_string_utf8(env, v, small, sizeof(small), &len);
    bool whole = len + 4 < sizeof(small);
    if (!whole && napi_get_value_string_utf8(env, v, NULL, 0, &len) != napi_ok)
        return false;
    char *copy = call_alloc(c, len + 1);
    if (!copy)
        return out_of_memory(env);
    if (whole)
        memcpy(copy, small, len + 1);
    else
        napi_get_value_string_utf8(env, v, copy, len + 1, &len);
    *ret = copy;
    *ret_len = len;
    return true;
}

/* The bytes of a Buffer, another Uint8Array, or an ArrayBuffer view. */
static bool view_of(napi_env env, napi_value v, void **ret, size_t *ret_len)
{
    bool is = false;

    return napi_is_buffer(env, v, &is) == napi_ok && is &&
           napi_get_buffer_info(env, v, ret, ret_len) == napi_ok;
}

static bool read_bytes(napi_env env, call *c, napi_value v, const char *name, void **ret,
                       size_t *ret_len)
{
    napi_valuetype type = napi_undefined;
    void *data = NULL;
    char *copy = NULL;
    size_t len = 0;

    napi_typeof(env, v, &type);
    if (is_absent(type))
        return true;
    if (type == napi_string)
        return read_text(env, c, v, (char **)ret, ret_len);
    if (!view_of(env, v, &data, &len))
        return refuse(env, name, "a string or Uint8Array");
    copy = call_alloc(c, len + 1);
    if (!copy)
        return out_of_memory(env);
    if (len > 0)
        memcpy(copy, data, len);
    copy[len] = '\0';
    *ret = copy;
    *ret_len = len;
    return true;
}

static bool read_string(napi_env env, call *c, napi_value v, const char *name, const char **ret)
{
    void *copy = NULL;
    size_t len = 0;

    if (!read_bytes(env, c, v, name, &copy, &len))
        return false;
    if (copy && memchr(copy, '\0', len))
        return refuse(env, name, "without NUL bytes");
    *ret = copy;
    return true;
}

static bool read_strings(napi_env env, call *c, napi_value v, const char *name,
                         const char *const **ret)
{
    napi_valuetype type = napi_undefined;
    bool is_array = false;
    uint32_t count = 0;

    napi_typeof(env, v, &type);
    if (is_absent(type))
        return true;
    if (napi_is_array(env, v, &is_array) != napi_ok || !is_array ||
        napi_get_array_length(env, v, &count) != napi_ok)
        return refuse(env, name, "an array of strings");
    const char **list = call_alloc(c, (count + 1ul) * sizeof(*list));
    if (!list)
        return out_of_memory(env);
    memset(list, 0, (count + 1ul) * sizeof(*list));
    for (uint32_t i = 0; i < count; i++) {
        napi_value item = NULL;
        napi_get_element(env, v, i, &item);
        if (!read_string(env, c, item, name, &list[i]))
            return false;
        if (!list[i])
            return refuse(env, name, "an array of strings");
    }
    *ret = list;
    return true;
}

/* ---- numbers ---- */

static bool read_whole(napi_env env, napi_value v, const char *name, double min, double max,
                       double *ret)
{
    double d = 0;

    if (napi_get_value_double(env, v, &d) != napi_ok || d != d || d < min || d > max ||
        d != floor(d))
        return refuse(env, name, "a whole number in range");
    *ret = d;
    return true;
}

/* Infinity is CSN_NO_LIMIT. */
static bool read_u64(napi_env env, napi_value v, const char *name, uint64_t *ret)
{
    napi_valuetype type = napi_undefined;
    bool lossless = false;
    double d = 0;

    napi_typeof(env, v, &type);
    if (is_absent(type))
        return true;
    if (type == napi_bigint)
        return (napi_get_value_bigint_uint64(env, v, ret, &lossless) == napi_ok && lossless) ||
               refuse(env, name, "a whole number in range");
    if (type == napi_number && napi_get_value_double(env, v, &d) == napi_ok && isinf(d) &&
        d > 0)
        *ret = CSN_NO_LIMIT;
    else if (!read_whole(env, v, name, 0, 9007199254740992.0, &d))
        return false;
    else
        *ret = (uint64_t)d;
    return true;
}

static bool read_small(napi_env env, napi_value v, const char *name, double min, double max,
                       int64_t *ret)
{
    napi_valuetype type = napi_undefined;
    double d = 0;

    napi_typeof(env, v, &type);
    if (is_absent(type))
        return true;
    if (!read_whole(env, v, name, min, max, &d))
        return false;
    *ret = (int64_t)d;
    return true;
}

static bool read_bool(napi_env env, napi_value v, uint32_t *ret)
{
    napi_value coerced = NULL;
    bool b = false;

    if (napi_coerce_to_bool(env, v, &coerced) == napi_ok)
        napi_get_value_bool(env, coerced, &b);
    *ret = b;
    return true;
}

/* ---- callbacks ---- */

static bool read_callback(napi_env env, call *c, napi_value v, const char *name,
                          callback_ctx **ret)
{
    napi_valuetype type = napi_undefined;

    napi_typeof(env, v, &type);
    if (is_absent(type))
        return true;
    if (type != napi_function || c->callback_count == CALLBACKS_MAX)
        return refuse(env, name, "a function");
    callback_ctx *ctx = call_alloc(c, sizeof(*ctx));
    if (!ctx)
        return out_of_memory(env);
    napi_ref function = NULL;
    napi_create_reference(env, v, 1, &function);
    c->callbacks[c->callback_count++] = function;
    *ctx = (callback_ctx){.call = c, .function = function};
    *ret = ctx;
    return true;
}

/* ---- structs ---- */

static bool read_list(napi_env env, call *c, napi_value v, const char *name, const shape *s,
                      void **ret, size_t *ret_count);

static bool read_callback_field(napi_env env, call *c, napi_value v, const field *f, char *p)
{
    callback_ctx *ctx = NULL;

    if (!read_callback(env, c, v, f->name, &ctx))
        return false;
    if (ctx) {
        memcpy(p + f->offset, &f->callback, sizeof(f->callback));
        memcpy(p + f->extra, &ctx, sizeof(ctx));
    }
    return true;
}

static bool read_number_field(napi_env env, napi_value v, const field *f, char *p)
{
    int64_t n = 0;

    switch (f->kind) {
    case K_U16:
        if (!read_small(env, v, f->name, 0, UINT16_MAX, &n))
            return false;
        *(uint16_t *)(void *)(p + f->offset) = (uint16_t)n;
        return true;
    case K_U32:
        if (!read_small(env, v, f->name, 0, UINT32_MAX, &n))
            return false;
        *(uint32_t *)(void *)(p + f->offset) = (uint32_t)n;
        return true;
    case K_I32:
        if (!read_small(env, v, f->name, INT32_MIN, INT32_MAX, &n))
            return false;
        *(int32_t *)(void *)(p + f->offset) = (int32_t)n;
        return true;
    case K_U64:
        return read_u64(env, v, f->name, (uint64_t *)(void *)(p + f->offset));
    case K_BOOL:
        return read_bool(env, v, (uint32_t *)(void *)(p + f->offset));
    default:
        return true;
    }
}

static bool read_field(napi_env env, call *c, napi_value v, const field *f, char *p)
{
    void *at = p + f->offset, *extra = p + f->extra;

    switch (f->kind) {
    case K_STR:
        return read_string(env, c, v, f->name, at);
    case K_STRV:
        return read_strings(env, c, v, f->name, at);
    case K_TEXT:
    case K_DATA:
        return read_bytes(env, c, v, f->name, at, extra);
    case K_LIST:
        return read_list(env, c, v, f->name, f->of, at, extra);
    case K_CANCEL:
        *(csn_cancel **)at = c->cancel;
        return true;
    case K_CALLBACK:
        return read_callback_field(env, c, v, f, p);
    default:
        return read_number_field(env, v, f, p);
    }
}

/* v is an array with a value for each field that JavaScript gives. */
static bool read_struct(napi_env env, call *c, napi_value v, const shape *s, void *p)
{
    memset(p, 0, s->size);
    if (s->sized)
        *(uint32_t *)p = s->size;
    for (uint32_t i = 0; i < s->count; i++) {
        napi_value item = NULL;
        if (napi_get_element(env, v, i, &item) != napi_ok ||
            !read_field(env, c, item, &s->fields[i], p))
            return false;
    }
    return true;
}

static bool read_list(napi_env env, call *c, napi_value v, const char *name, const shape *s,
                      void **ret, size_t *ret_count)
{
    napi_valuetype type = napi_undefined;
    uint32_t count = 0;

    napi_typeof(env, v, &type);
    if (is_absent(type))
        return true;
    if (napi_get_array_length(env, v, &count) != napi_ok)
        return refuse(env, name, "an array");
    char *items = call_alloc(c, (count + 1ul) * s->size);
    if (!items)
        return out_of_memory(env);
    for (uint32_t i = 0; i < count; i++) {
        napi_value item = NULL;
        if (napi_get_element(env, v, i, &item) != napi_ok ||
            !read_struct(env, c, item, s, items + i * (size_t)s->size))
            return false;
    }
    *ret = items;
    *ret_count = count;
    return true;
}

/* ---- arguments of a verb ---- */

/* Options that were not given still have the cancel handle. */
static void default_options(call *c, const shape *s, char *p)
{
    memset(p, 0, s->size);
    memcpy(p, &s->size, sizeof(s->size));
    for (uint32_t i = 0; i < s->count; i++)
        if (s->fields[i].kind == K_CANCEL)
            memcpy(p + s->fields[i].offset, &c->cancel, sizeof(c->cancel));
}

static bool read_options(napi_env env, call *c, napi_value v, const shape *s, value *ret)
{
    napi_valuetype type = napi_undefined;

    ret->o = call_alloc(c, s->size);
    if (!ret->o)
        return out_of_memory(env);
    napi_typeof(env, v, &type);
    if (!is_absent(type))
        return read_struct(env, c, v, s, ret->o);
    default_options(c, s, ret->o);
    return true;
}

static bool read_arg(napi_env env, call *c, char letter, napi_value v, const char *name,
                     const shape *s, value *ret)
{
    callback_ctx *ctx = NULL;

    switch (letter) {
    case 's':
        return read_string(env, c, v, name, &ret->s);
    case 'v':
        return read_strings(env, c, v, name, &ret->v);
    case 'b':
        return read_bytes(env, c, v, name, &ret->b.p, &ret->b.n);
    case 'u':
        return read_small(env, v, name, 0, UINT32_MAX, &ret->i);
    case 'w':
        return read_small(env, v, name, 0, UINT16_MAX, &ret->i);
    case 'i':
        return read_small(env, v, name, INT32_MIN, INT32_MAX, &ret->i);
    case 'I':
        return read_small(env, v, name, -9007199254740992.0, 9007199254740992.0, &ret->i);
    case 'U':
        return read_u64(env, v, name, &ret->u);
    case 'o':
        return read_options(env, c, v, s, ret);
    case 'l':
        return read_list(env, c, v, name, s, &ret->b.p, &ret->b.n);
    default:
        if (!read_callback(env, c, v, name, &ctx))
            return false;
        ret->o = ctx;
        return true;
    }
}

bool args_read(napi_env env, call *c, const napi_value *argv)
{
    const verb *v = c->verb;
    const char *letters = v->args;

    if (*letters == 'H' || *letters == 'h') {
        if (!c->h || c->h->kind != v->target)
            return refuse(env, v->name, "called on an open handle");
        letters++;
    }
    for (size_t i = 0; letters[i]; i++)
        if (!read_arg(env, c, letters[i], argv[i], v->names[i], v->shapes[i], &c->a[i]))
            return false;
    return true;
}
