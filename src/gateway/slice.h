/* slice.h: bytes that belong to somebody else's buffer; not terminated. */
#pragma once
#include <stddef.h>

typedef struct gw_slice {
    const char *at;
    size_t len;
} gw_slice;
