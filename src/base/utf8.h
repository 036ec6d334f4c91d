/* utf8.h: validation of UTF-8. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

/* Length in bytes of the valid character at s (1-4), or 0 when it is none. Rejects overlong
 * forms, surrogates and anything above U+10FFFF. */
size_t csn_utf8_char(const unsigned char *s, size_t len);
bool csn_utf8_valid(const char *s, size_t len);
/* Returns the length (0-3) of an incomplete character at the end of s. */
size_t csn_utf8_cut_tail(const char *s, size_t len);
