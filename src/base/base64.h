/* base64.h: standard alphabet, padded. */
#pragma once
#include <stddef.h>

size_t csn_base64_size(size_t len);                              /* encoded size without NUL */
void csn_base64_encode(const void *data, size_t len, char *out); /* writes a NUL */
/* Bytes decoded into out (room for 3 * (len / 4) + 3), or -1 when it is not base64. Newlines
 * and spaces are skipped. */
long csn_base64_decode(const char *s, size_t len, void *out);
