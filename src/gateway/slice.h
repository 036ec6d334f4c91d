/* slice.h: a pointer and a length into another buffer, without a terminating NUL. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <strings.h>

typedef struct gw_slice {
    const char *at;
    size_t len;
} gw_slice;

static inline bool gw_slice_equals(gw_slice s, const char *text)
{
    return s.len == strlen(text) && memcmp(s.at, text, s.len) == 0;
}

static inline bool gw_slice_equals_nocase(gw_slice s, const char *text)
{
    return s.len == strlen(text) && strncasecmp(s.at, text, s.len) == 0;
}
