/* json_write.h: write JSON into a csn_buf. Escapes, and repairs UTF-8 (a bad byte becomes
 * U+FFFD). The writer places commas; depth is at most 32. Errors stick: check csn_json_end. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

typedef struct csn_json {
    csn_buf *out;
    int err; /* first errno */
    int depth;
    uint32_t has_item; /* one bit a level */
    bool after_key;
    bool omit_null; /* set after csn_json_begin: members that are null are omitted */
    size_t key_at;  /* before the last key: length of out, and has_item */
    uint32_t had_item;
} csn_json;

void csn_json_begin(csn_json *j, csn_buf *out);
int csn_json_end(csn_json *j); /* 0 or errno; EINVAL: a container is still open */

void csn_json_object(csn_json *j);
void csn_json_object_end(csn_json *j);
void csn_json_array(csn_json *j);
void csn_json_array_end(csn_json *j);
void csn_json_key(csn_json *j, const char *key);
void csn_json_str(csn_json *j, const char *s); /* NULL: null */
void csn_json_strn(csn_json *j, const char *s, size_t len);
void csn_json_base64(csn_json *j, const void *p, size_t len);
void csn_json_int(csn_json *j, int64_t v);
void csn_json_uint(csn_json *j, uint64_t v);
void csn_json_double(csn_json *j, double v); /* at most 3 decimals; null if not finite */
void csn_json_bool(csn_json *j, bool v);
void csn_json_null(csn_json *j);
void csn_json_raw(csn_json *j, const char *json, size_t len); /* a value that is already JSON */
/* key and value at once */
void csn_json_kstr(csn_json *j, const char *key, const char *s);
void csn_json_kint(csn_json *j, const char *key, int64_t v);
void csn_json_kuint(csn_json *j, const char *key, uint64_t v);
void csn_json_kbool(csn_json *j, const char *key, bool v);
