/* json_read.c: parse requests, policies and stored state with jansson.
 *
 * The text is untrusted: its size is limited here, its depth (2048) by jansson, which also
 * refuses duplicate keys, trailing bytes, bad UTF-8, lone surrogates and NUL in strings.
 * Invariant: a getter never guesses. A key of the wrong type is an error that names the key;
 * only an absent key or null means the default. */
#include "base/json_read.h"

#include <jansson.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/path.h"
#include "base/strv.h"

/* jansson's message quotes the text near the error; only printable ASCII is kept. */
static void make_printable(char *s)
{
    for (; *s; s++)
        if (*s < ' ' || *s > '~')
            *s = '?';
}

csn_status csn_json_parse(const char *text, size_t len, const char *what, csn_jval **ret,
                          csn_error **err)
{
    json_error_t je;

    /* Checked before parsing: a value of two bytes can take a hundred in memory. */
    if (len > CSN_JSON_BYTES_MAX)
        return csn_fail(err, CSN_TOO_LARGE, "%s: %zu bytes of JSON, at most %u are read", what,
                        len, CSN_JSON_BYTES_MAX);
    json_t *root =
        json_loadb(len > 0 ? text : "", len, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &je);
    if (!root && json_error_code(&je) == json_error_out_of_memory)
        return csn_fail(err, CSN_NOMEM, "%s: out of memory", what);
    if (!root) {
        make_printable(je.text);
        return csn_fail(err, CSN_INVALID, "%s: line %d, column %d: %s", what, je.line,
                        je.column, je.text);
    }
    *ret = root;
    return CSN_OK;
}

void csn_jval_free(csn_jval *root)
{
    json_decref(root);
}

/* ---- looking ------------------------------------------------------------------------------
 */

bool csn_jval_is_object(const csn_jval *v)
{
    return json_is_object(v);
}

bool csn_jval_is_array(const csn_jval *v)
{
    return json_is_array(v);
}

bool csn_jval_is_string(const csn_jval *v)
{
    return json_is_string(v);
}

bool csn_jval_is_integer(const csn_jval *v)
{
    return json_is_integer(v);
}

bool csn_jval_is_number(const csn_jval *v)
{
    return json_is_number(v);
}

bool csn_jval_is_bool(const csn_jval *v)
{
    return json_is_boolean(v);
}

bool csn_jval_has(const csn_jval *obj, const char *key)
{
    return json_object_get(obj, key) != NULL;
}

const csn_jval *csn_jval_get(const csn_jval *obj, const char *key)
{
    const json_t *v = json_object_get(obj, key);

    return json_is_null(v) ? NULL : v;
}

size_t csn_jval_count(const csn_jval *arr)
{
    return json_array_size(arr);
}

const csn_jval *csn_jval_at(const csn_jval *arr, size_t i)
{
    return json_array_get(arr, i);
}

const char *csn_jval_string(const csn_jval *v)
{
    return json_string_value(v);
}

/* ---- getters ------------------------------------------------------------------------------
 */

/* The value of a key, NULL if absent; an error if obj is not an object (NULL is empty). */
static csn_status find(const csn_jval *obj, const char *key, const json_t **ret,
                       csn_error **err)
{
    if (obj && !json_is_object(obj))
        return csn_fail(err, CSN_INVALID, "'%s': expected an object around it", key);
    *ret = csn_jval_get(obj, key);
    return CSN_OK;
}

csn_status csn_jget_str(const csn_jval *obj, const char *key, const char **ret, csn_error **err)
{
    const json_t *v = NULL;
    csn_status st = find(obj, key, &v, err);

    if (st < 0 || !v)
        return st;
    if (!json_is_string(v))
        return csn_fail(err, CSN_INVALID, "'%s': expected a string", key);
    *ret = json_string_value(v);
    return CSN_OK;
}

csn_status csn_jget_i64(const csn_jval *obj, const char *key, int64_t *ret, csn_error **err)
{
    const json_t *v = NULL;
    csn_status st = find(obj, key, &v, err);

    if (st < 0 || !v)
        return st;
    /* 1.0 and 1e3 are reals to jansson; numbers beyond int64 are refused when parsing. */
    if (!json_is_integer(v))
        return csn_fail(err, CSN_INVALID, "'%s': expected a whole number", key);
    *ret = json_integer_value(v);
    return CSN_OK;
}

csn_status csn_jget_u64(const csn_jval *obj, const char *key, uint64_t *ret, csn_error **err)
{
    int64_t n = -1;
    const json_t *v = NULL;
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
    const json_t *v = NULL;
    csn_status st = find(obj, key, &v, err);

    if (st < 0 || !v)
        return st;
    if (!json_is_boolean(v))
        return csn_fail(err, CSN_INVALID, "'%s': expected true or false", key);
    *ret = json_is_true(v);
    return CSN_OK;
}

csn_status csn_jget_strv(const csn_jval *obj, const char *key, csn_arena *a,
                         const char *const **ret, csn_error **err)
{
    const json_t *v = NULL;
    csn_status st = find(obj, key, &v, err);

    if (st < 0 || !v)
        return st;
    if (!json_is_array(v) && !json_is_string(v))
        return csn_fail(err, CSN_INVALID, "'%s': expected a list of strings", key);
    /* A string alone is a list of one: `"read": "/data"`. */
    size_t n = json_is_array(v) ? json_array_size(v) : 1;
    const char **list = csn_arena_array(a, n + 1, sizeof(*list));
    for (size_t i = 0; list && i < n; i++) {
        const json_t *item = json_is_array(v) ? json_array_get(v, i) : v;
        if (!json_is_string(item))
            return csn_fail(err, CSN_INVALID, "'%s[%zu]': expected a string", key, i);
        list[i] = csn_arena_strdup(a, json_string_value(item));
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
    const char *key;
    json_t *value;

    if (!json_is_object(obj))
        return csn_fail(err, CSN_INVALID, "%s: expected an object", what);
    /* jansson iterates without const but changes nothing */
    json_object_foreach((json_t *)obj, key, value)
    {
        if (csn_strv_has(known, key))
            continue;
        csn_autofree char *shown = csn_path_printable(key);
        return csn_fail(err, CSN_INVALID, "%s: unknown key %s", what, shown ? shown : "");
    }
    return CSN_OK;
}

char *csn_jval_dump(const csn_jval *v)
{
    return v ? json_dumps(v, JSON_COMPACT | JSON_ENCODE_ANY) : NULL;
}
