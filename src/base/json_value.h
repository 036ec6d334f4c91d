/* json_value.h: a JSON value as json_parse.c builds it and json_read.c reads it. */
#pragma once
#include "base/json_read.h"

typedef enum csn_jtype {
    CSN_JSON_NULL,
    CSN_JSON_BOOL,
    CSN_JSON_INTEGER,
    CSN_JSON_REAL,
    CSN_JSON_STRING,
    CSN_JSON_ARRAY,
    CSN_JSON_OBJECT
} csn_jtype;

struct csn_jval {
    csn_jtype type;
    const char *key;  /* of a member of an object */
    const char *text; /* the value as it was written, len bytes of the document */
    size_t len;
    union {
        bool boolean;
        int64_t integer;
        const char *string;
        struct {
            const csn_jval *items; /* in the order of the document */
            size_t count;
            const csn_jval **by_key; /* sorted; NULL where a search from the start is faster */
        };
    };
};

/* The root of a document, which owns everything below it. */
typedef struct csn_jdoc {
    csn_jval root; /* first: the csn_jval * given out is a csn_jdoc * */
    csn_arena *arena;
} csn_jdoc;
