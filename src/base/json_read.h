/* json_read.h: strict JSON in. Duplicate keys, trailing bytes, invalid UTF-8 and NUL in strings
 * are refused. Getters check types: a wrong type is CSN_INVALID that names the key. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "caisson/caisson.h"

typedef struct csn_jval csn_jval; /* borrowed from its document, except the root */

/* `what` names the document in messages. The root must be freed. */
csn_status csn_json_parse(const char *text, size_t len, const char *what, csn_jval **ret,
                          csn_error **err);
void csn_jval_free(csn_jval *root);
CSN_DEFINE_CLEANUP(csn_jval, csn_jval_free)

bool csn_jval_is_object(const csn_jval *v);
bool csn_jval_is_array(const csn_jval *v);
bool csn_jval_is_string(const csn_jval *v);
bool csn_jval_is_integer(const csn_jval *v);
bool csn_jval_is_number(const csn_jval *v);
bool csn_jval_is_bool(const csn_jval *v);
bool csn_jval_has(const csn_jval *obj, const char *key);            /* present, even if null */
const csn_jval *csn_jval_get(const csn_jval *obj, const char *key); /* NULL: absent or null */
size_t csn_jval_count(const csn_jval *arr);
const csn_jval *csn_jval_at(const csn_jval *arr, size_t i);
const char *csn_jval_string(const csn_jval *v); /* NULL: not a string */
/* Member i of an object in the order of the document, with its key; NULL after the last. */
const csn_jval *csn_jval_member(const csn_jval *obj, size_t i, const char **ret_key);

/* Absent keys leave *ret untouched and are CSN_OK. */
csn_status csn_jget_str(const csn_jval *obj, const char *key, const char **ret,
                        csn_error **err);
csn_status csn_jget_u64(const csn_jval *obj, const char *key, uint64_t *ret, csn_error **err);
csn_status csn_jget_i64(const csn_jval *obj, const char *key, int64_t *ret, csn_error **err);
csn_status csn_jget_bool(const csn_jval *obj, const char *key, bool *ret, csn_error **err);
/* A list of strings (or one string), copied into the arena, NULL-terminated. */
csn_status csn_jget_strv(const csn_jval *obj, const char *key, csn_arena *a,
                         const char *const **ret, csn_error **err);
/* CSN_INVALID naming the first key of obj that is not in `known` (NULL-terminated). */
csn_status csn_jval_only(const csn_jval *obj, const char *const *known, const char *what,
                         csn_error **err);
/* The value as JSON text again, malloc'd; NULL for NULL or when out of memory. */
char *csn_jval_dump(const csn_jval *v);
