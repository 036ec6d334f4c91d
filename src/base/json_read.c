/* json_read.c: typed access to a parsed JSON document.
 *
 * Invariant: a getter converts no type. A key of the wrong type is an error that names it; only
 * an absent key or null means "the default". */
#include "base/json_read.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/json_value.h"
#include "base/path.h"
#include "base/strv.h"

/* ---- lookup ---- */

static bool is(const csn_jval *v, csn_jtype type)
{
    return v && v->type == type;
}

bool csn_jval_is_object(const csn_jval *v)
{
    return is(v, CSN_JSON_OBJECT);
}

bool csn_jval_is_array(const csn_jval *v)
{
    return is(v, CSN_JSON_ARRAY);
}

bool csn_jval_is_string(const csn_jval *v)
{
    return is(v, CSN_JSON_STRING);
}

bool csn_jval_is_integer(const csn_jval *v)
{
    return is(v, CSN_JSON_INTEGER);
}

bool csn_jval_is_number(const csn_jval *v)
{
    return is(v, CSN_JSON_INTEGER) || is(v, CSN_JSON_REAL);
}

bool csn_jval_is_bool(const csn_jval *v)
{
    return is(v, CSN_JSON_BOOL);
}

static int compare_key(const void *key, const void *member)
{
    return strcmp(key, (*(const csn_jval *const *)member)->key);
}

static const csn_jval *find_member(const csn_jval *obj, const char *key)
{
    if (!csn_jval_is_object(obj))
        return NULL;
    if (obj->by_key) {
        const csn_jval *const *found =
            bsearch(key, obj->by_key, obj->count, sizeof(*obj->by_key), compare_key);
        return found ? *found : NULL;
    }
    for (size_t i = 0; i < obj->count; i++)
        if (strcmp(obj->items[i].key, key) == 0)
            return &obj->items[i];
    return NULL;
}

bool csn_jval_has(const csn_jval *obj, const char *key)
{
    return find_member(obj, key) != NULL;
}

const csn_jval *csn_jval_get(const csn_jval *obj, const char *key)
{
    const csn_jval *v = find_member(obj, key);

    return is(v, CSN_JSON_NULL) ? NULL : v;
}

size_t csn_jval_count(const csn_jval *arr)
{
    return csn_jval_is_array(arr) ? arr->count : 0;
}

const csn_jval *csn_jval_at(const csn_jval *arr, size_t i)
{
    return i < csn_jval_count(arr) ? &arr->items[i] : NULL;
}

const csn_jval *csn_jval_member(const csn_jval *obj, size_t i, const char **ret_key)
{
    if (!csn_jval_is_object(obj) || i >= obj->count)
        return NULL;
    *ret_key = obj->items[i].key;
    return &obj->items[i];
}

const char *csn_jval_string(const csn_jval *v)
{
    return csn_jval_is_string(v) ? v->string : NULL;
}

/* ---- getters ---- */

/* The value of a key, NULL if absent; an error if obj is not an object (NULL is empty). */
static csn_status find(const csn_jval *obj, const char *key, const csn_jval **ret,
                       csn_error **err)
{
    if (obj && !csn_jval_is_object(obj))
        return csn_fail(err, CSN_INVALID, "'%s': expected an object around it", key);
    *ret = csn_jval_get(obj, key);
    return CSN_OK;
}

csn_status csn_jget_str(const csn_jval *obj, const char *key, const char **ret, csn_error **err)
{
    const csn_jval *v = NULL;
    csn_status st = find(obj, key, &v, err);

    if (st < 0 || !v)
        return st;
    if (!csn_jval_is_string(v))
        return csn_fail(err, CSN_INVALID, "'%s': expected a string", key);
    *ret = v->string;
    return CSN_OK;
}

csn_status csn_jget_i64(const csn_jval *obj, const char *key, int64_t *ret, csn_error **err)
{
    const csn_jval *v = NULL;
    csn_status st = find(obj, key, &v, err);

    if (st < 0 || !v)
        return st;
    /* 1.0 and 1e3 are reals; the parser has refused integers outside int64_t. */
    if (!csn_jval_is_integer(v))
        return csn_fail(err, CSN_INVALID, "'%s': expected a whole number", key);
    *ret = v->integer;
    return CSN_OK;
}

csn_status csn_jget_u64(const csn_jval *obj, const char *key, uint64_t *ret, csn_error **err)
{
    int64_t n = -1;
    const csn_jval *v = NULL;
    csn_status st = find(obj, key, &v, err);

    if (st < 0 || !v)
        return st;
    st = csn_jget_i64(obj, key, &n, err);
    if (st < 0)
        return st;
    if (n < 0)
        return csn_fail(err, CSN_INVALID, "'%s': must not be negative", key);
    *ret = (uint64_t)n;
    return CSN_OK;
}

csn_status csn_jget_bool(const csn_jval *obj, const char *key, bool *ret, csn_error **err)
{
    const csn_jval *v = NULL;
    csn_status st = find(obj, key, &v, err);

    if (st < 0 || !v)
        return st;
    if (!csn_jval_is_bool(v))
        return csn_fail(err, CSN_INVALID, "'%s': expected true or false", key);
    *ret = v->boolean;
    return CSN_OK;
}

csn_status csn_jget_strv(const csn_jval *obj, const char *key, csn_arena *a,
                         const char *const **ret, csn_error **err)
{
    const csn_jval *v = NULL;
    csn_status st = find(obj, key, &v, err);

    if (st < 0 || !v)
        return st;
    if (!csn_jval_is_array(v) && !csn_jval_is_string(v))
        return csn_fail(err, CSN_INVALID, "'%s': expected a list of strings", key);
    /* A string alone is a list of one: `"read": "/data"`. */
    size_t n = csn_jval_is_array(v) ? csn_jval_count(v) : 1;
    const char **list = csn_arena_array(a, n + 1, sizeof(*list));
    for (size_t i = 0; list && i < n; i++) {
        const csn_jval *item = csn_jval_is_array(v) ? csn_jval_at(v, i) : v;
        if (!csn_jval_is_string(item))
            return csn_fail(err, CSN_INVALID, "'%s[%zu]': expected a string", key, i);
        list[i] = csn_arena_strdup(a, item->string);
        if (!list[i])
            list = NULL;
    }
    if (!list)
        return csn_fail(err, CSN_NOMEM, "'%s': out of memory", key);
    *ret = list;
    return CSN_OK;
}

csn_status csn_jval_only(const csn_jval *obj, const char *const *known, const char *what,
                         csn_error **err)
{
    if (!csn_jval_is_object(obj))
        return csn_fail(err, CSN_INVALID, "%s: expected an object", what);
    for (size_t i = 0; i < obj->count; i++) {
        if (csn_strv_has(known, obj->items[i].key))
            continue;
        csn_autofree char *shown = csn_path_printable(obj->items[i].key);
        return csn_fail(err, CSN_INVALID, "%s: unknown key %s", what, shown ? shown : "");
    }
    return CSN_OK;
}

/* The text of the document without the space between tokens. */
char *csn_jval_dump(const csn_jval *v)
{
    char *out = v ? malloc(v->len + 1) : NULL, *to = out;
    bool in_string = false;

    for (size_t i = 0; out && i < v->len; i++) {
        char c = v->text[i];
        if (!in_string && memchr(" \t\n\r", c, 4))
            continue;
        *to++ = c;
        if (in_string && c == '\\')
            *to++ = v->text[++i];
        in_string ^= c == '"';
    }
    if (out)
        *to = '\0';
    return out;
}
