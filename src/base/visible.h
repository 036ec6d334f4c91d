/* visible.h: a visible form for characters that must not reach a terminal.
 *
 * Escape sequences move the cursor, retitle the window or answer for the user; direction and
 * other invisible characters make text look like another one. */
#pragma once
#include <stddef.h>

typedef enum csn_visible_kind {
    CSN_VISIBLE_NAME,  /* one line: no control character is kept */
    CSN_VISIBLE_TEXT,  /* one line: tabs are kept */
    CSN_VISIBLE_LINES, /* LF, CR LF and tabs are kept */
    CSN_VISIBLE_JSON,  /* a JSON document: LF is kept, other forms are escapes of JSON */
} csn_visible_kind;

#define CSN_VISIBLE_SIZE 24

/* Returns the length of the character at s, or 1 for a byte that is none; len > 0. If it must
 * not reach a terminal, writes its visible form to `ret`, else "". The forms are \xNN for
 * control characters and bytes that are not UTF-8, <U+NNNN> for the others. */
size_t csn_visible_next(const unsigned char *s, size_t len, csn_visible_kind kind,
                        char ret[CSN_VISIBLE_SIZE]);
/* Bytes at the end of a chunk that must be shown together with what follows them (0 to 3). */
size_t csn_visible_tail(const char *s, size_t len);
