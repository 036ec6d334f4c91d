/* convert.c: structs of the library become objects of JavaScript.
 *
 * A shape (generated.c) lists the fields of a struct. Their values go to one function of
 * generated.cjs per shape, which makes the object: that is faster than setting properties one
 * by one, and all objects of a shape look the same to the engine.
 *
 * Text from a sandbox may be any bytes. A string has U+FFFD in place of what is not UTF-8, and
 * the object then has the bytes too, as a Buffer under the field's name with `Bytes` added. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "addon.h"

#define COPY_MAX 65536 /* a larger block is not copied */

/* ---- bytes ---- */

/* Length of the valid sequence at p, 0 if it is not one. */
static size_t sequence(const unsigned char *p, size_t left)
{
    size_t n = p[0] < 0x80 ? 1 : p[0] < 0xc2 ? 0 : p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : 4;

    if (n == 0 || n > left || p[0] > 0xf4)
        return 0;
    for (size_t i = 1; i < n; i++)
        if ((p[i] & 0xc0) != 0x80)
            return 0;
    if ((p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xed && p[1] > 0x9f) ||
        (p[0] == 0xf0 && p[1] < 0x90) || (p[0] == 0xf4 && p[1] > 0x8f))
        return 0;
    return n;
}

static bool is_utf8(const char *text, size_t len)
{
    const unsigned char *p = (const unsigned char *)text;
    uint64_t eight;

    for (size_t i = 0, n; i < len; i += n) {
        if (len - i >= 8 && (memcpy(&eight, p + i, 8), (eight & 0x8080808080808080u) == 0)) {
            n = 8;
            continue;
        }
        n = sequence(p + i, len - i);
        if (n == 0)
            return false;
    }
    return true;
}

static napi_value null_value(napi_env env)
{
    napi_value v = NULL;

    napi_get_null(env, &v);
    return v;
}

static napi_value text_value(napi_env env, const char *s, size_t len)
{
    napi_value v = NULL;

    if (!s)
        return null_value(env);
    napi_create_string_utf8(env, s, len, &v);
    return v;
}

napi_value convert_string(napi_env env, const char *s)
{
    return text_value(env, s, s ? strlen(s) : 0);
}

napi_value convert_buffer(napi_env env, const void *data, size_t len)
{
    napi_value v = NULL;

    if (!data && len > 0)
        return null_value(env);
    napi_create_buffer_copy(env, len, data ? data : "", NULL, &v);
    return v;
}

static void free_block(napi_env env, void *data, void *hint)
{
    (void)env;
    (void)hint;
    free(data);
}

napi_value convert_owned(napi_env env, void *data, size_t len)
{
    napi_value v = NULL;

    if (len > COPY_MAX &&
        napi_create_external_buffer(env, len, data, free_block, NULL, &v) == napi_ok)
        return v;
    v = convert_buffer(env, data, len);
    free(data);
    return v;
}

/* ---- fields ---- */

static const void *pointer_at(const char *p, size_t offset)
{
    const void *v;

    memcpy(&v, p + offset, sizeof(v));
    return v;
}

static uint64_t u64_at(const char *p, size_t offset)
{
    uint64_t v;

    memcpy(&v, p + offset, sizeof(v));
    return v;
}

static uint32_t u32_at(const char *p, size_t offset)
{
    uint32_t v;

    memcpy(&v, p + offset, sizeof(v));
    return v;
}

static napi_value strings_value(napi_env env, const char *const *list)
{
    napi_value v = NULL;

    napi_create_array(env, &v);
    for (uint32_t i = 0; v && list && list[i]; i++)
        napi_set_element(env, v, i, convert_string(env, list[i]));
    return v;
}

static napi_value number_value(napi_env env, const field *f, const char *p)
{
    napi_value v = NULL;
    uint32_t n = f->kind == K_U64 || f->kind == K_I64 ? 0 : u32_at(p, f->offset);
    double d;

    switch (f->kind) {
    case K_BOOL:
        napi_get_boolean(env, n != 0, &v);
        break;
    case K_U32:
        napi_create_uint32(env, n, &v);
        break;
    case K_I32:
        napi_create_int32(env, (int32_t)n, &v);
        break;
    case K_CODE:
        if ((int32_t)n == -1)
            return null_value(env);
        napi_create_int32(env, (int32_t)n, &v);
        break;
    case K_U64:
        napi_create_double(env, (double)u64_at(p, f->offset), &v);
        break;
    case K_I64:
        napi_create_double(env, (double)(int64_t)u64_at(p, f->offset), &v);
        break;
    case K_BIG:
        napi_create_bigint_int64(env, (int64_t)u64_at(p, f->offset), &v);
        break;
    case K_F64:
        memcpy(&d, p + f->offset, sizeof(d));
        napi_create_double(env, d, &v);
        break;
    case K_WORD:
        return convert_string(env, f->words[n]);
    default:
        napi_get_undefined(env, &v);
    }
    return v;
}

/* The text of a field, or NULL. */
static const char *text_of(const field *f, const char *p, size_t *ret_len)
{
    const char *s = f->kind == K_CHARS ? p + f->offset : pointer_at(p, f->offset);

    bool counted = f->kind == K_TEXT || f->kind == K_CONTENT;
    *ret_len = counted ? (size_t)u64_at(p, f->extra) : s ? strlen(s) : 0;
    return s;
}

static bool is_image(const char *p)
{
    return u32_at(p, offsetof(csn_read_result, is_image)) != 0;
}

/* An output that equals the one before it (stdout alone, and both together) is not converted
 * twice. */
typedef struct last_text {
    const char *s;
    size_t len;
    napi_value v;
} last_text;

static napi_value shared_text(napi_env env, const char *s, size_t len, last_text *last)
{
    if (s && last->v && len == last->len && memcmp(s, last->s, len) == 0)
        return last->v;
    napi_value v = text_value(env, s, len);
    if (s && len > 0)
        *last = (last_text){s, len, v};
    return v;
}

static napi_value field_value(instance *in, napi_env env, const field *f, const char *p,
                              last_text *last)
{
    size_t len = 0;
    const char *s;

    switch (f->kind) {
    case K_STR:
    case K_CHARS:
        s = text_of(f, p, &len);
        return text_value(env, s, len);
    case K_CONTENT:
        if (is_image(p))
            return convert_buffer(env, pointer_at(p, f->offset), (size_t)u64_at(p, f->extra));
        /* fall through */
    case K_TEXT:
        s = text_of(f, p, &len);
        return shared_text(env, s, len, last);
    case K_DATA:
        return convert_buffer(env, pointer_at(p, f->offset), (size_t)u64_at(p, f->extra));
    case K_STRV:
        return strings_value(env, pointer_at(p, f->offset));
    case K_LIST:
        return convert_list(in, env, f->of, pointer_at(p, f->offset),
                            f->narrow ? u32_at(p, f->extra) : (size_t)u64_at(p, f->extra));
    case K_SHARED:
        return shared_list_convert(in, env, f->of, pointer_at(p, f->offset),
                                   (size_t)u64_at(p, f->extra));
    case K_INNER:
        return convert_struct(in, env, f->of, p + f->offset);
    default:
        return number_value(env, f, p);
    }
}

static napi_value factory(instance *in, napi_env env, const shape *s)
{
    napi_value all = NULL, one = NULL;

    napi_get_reference_value(env, in->factories, &all);
    napi_get_element(env, all, s->index, &one);
    return one;
}

/* Adds the bytes of texts that are not UTF-8. */
static void add_bytes(napi_env env, const shape *s, const char *p, napi_value object)
{
    char name[64];
    size_t len = 0;

    for (uint32_t i = 0; i < s->count; i++) {
        const field *f = &s->fields[i];
        bool is_text = f->kind == K_STR || f->kind == K_TEXT || f->kind == K_CHARS ||
                       (f->kind == K_CONTENT && !is_image(p));
        if (!is_text)
            continue;
        const char *text = text_of(f, p, &len);
        if (!text || is_utf8(text, len))
            continue;
        snprintf(name, sizeof(name), "%sBytes", f->name);
        napi_property_descriptor d = {.utf8name = name,
                                      .value = convert_buffer(env, text, len),
                                      .attributes = napi_default_jsproperty};
        napi_define_properties(env, object, 1, &d);
    }
}

static napi_value make_object(instance *in, napi_env env, const shape *s, napi_value make,
                              const char *p)
{
    napi_value argv[SHAPE_FIELDS_MAX], undefined = NULL, object = NULL;
    last_text last = {0};

    for (uint32_t i = 0; i < s->count; i++)
        argv[i] = field_value(in, env, &s->fields[i], p, &last);
    napi_get_undefined(env, &undefined);
    if (napi_call_function(env, undefined, make, s->count, argv, &object) == napi_ok)
        add_bytes(env, s, p, object);
    return object;
}

napi_value convert_struct(instance *in, napi_env env, const shape *s, const void *p)
{
    return p ? make_object(in, env, s, factory(in, env, s), p) : null_value(env);
}

napi_value convert_list(instance *in, napi_env env, const shape *s, const void *items,
                        size_t count)
{
    napi_value list = NULL, make = count > 0 ? factory(in, env, s) : NULL;
    napi_handle_scope scope = NULL;

    napi_create_array_with_length(env, count, &list);
    for (size_t i = 0; list && i < count; i++) {
        napi_open_handle_scope(env, &scope);
        napi_value item = make_object(in, env, s, make, (const char *)items + i * s->size);
        if (item)
            napi_set_element(env, list, (uint32_t)i, item);
        napi_close_handle_scope(env, scope);
    }
    return list;
}

/* ---- errors ---- */

/* [code, message, op, path, hint, errno, denial]: error.cjs makes the Error of it, where its
 * stack is known. */
napi_value convert_error(instance *in, napi_env env, csn_status st, const csn_error *e)
{
    napi_value list = NULL, number = NULL;

    napi_create_array_with_length(env, 7, &list);
    napi_create_int32(env, csn_error_errno(e), &number);
    const char *text = e ? csn_error_message(e) : csn_status_text(st);
    napi_value parts[] = {
        convert_string(env, csn_status_name(st)),
        convert_string(env, text),
        convert_string(env, e ? csn_error_op(e) : NULL),
        convert_string(env, e ? csn_error_path(e) : NULL),
        convert_string(env, e ? csn_error_hint(e) : NULL),
        number,
        convert_struct(in, env, &shape_csn_denial, e ? csn_error_denial(e) : NULL)};
    for (uint32_t i = 0; i < 7; i++)
        napi_set_element(env, list, i, parts[i]);
    return list;
}
