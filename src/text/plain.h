/* plain.h: the text of what a program wrote to a terminal. */
#pragma once
#include <stddef.h>

/* Copies `len` bytes without carriage returns, escape sequences (colours, titles) and other
 * control bytes but tabs and line ends; `to` has room for `len`. Returns the new length, and in
 * *head (may be NULL) the new offset of what was at that offset. */
size_t csn_plain_text(const char *from, size_t len, char *to, size_t *head);
