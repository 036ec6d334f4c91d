/* literal.h: finds one of a few strings in a buffer, with vector instructions where the
 * processor has them. Also counts lines and finds bytes outside of ASCII. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CSN_LITERAL_MAX 255u /* bytes of one string */

typedef struct csn_literal {
    unsigned char bytes[CSN_LITERAL_MAX]; /* in lower case if `nocase` */
    unsigned char len;
    unsigned char rare[2];   /* offsets of the two bytes that are rarest in text */
    unsigned char folded[2]; /* 0x20 if that byte is a letter and case is ignored, else 0 */
    bool nocase;
} csn_literal;

/* 1 to CSN_LITERAL_MAX bytes. nocase: letters of ASCII match in both cases. */
void csn_literal_init(csn_literal *l, const char *bytes, size_t len, bool nocase);
/* The first place in [text, text + len), or NULL. */
const char *csn_literal_find(const csn_literal *l, const char *text, size_t len);

uint64_t csn_count_newlines(const char *text, size_t len);
bool csn_is_ascii(const char *text, size_t len);
