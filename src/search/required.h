/* required.h: strings of which every match of a regular expression has at least one. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

#include "search/literal.h"

#define CSN_REQUIRED_MAX 12u

typedef struct csn_required {
    csn_literal items[CSN_REQUIRED_MAX];
    size_t count;  /* 0: none is known */
    bool one_line; /* no match has a newline, and none depends on other lines */
} csn_required;

/* Reads the expression `pattern`. Whatever this does not know gives no strings: then every
 * place is searched. Never fails. nocase: in text of any kind, also outside of ASCII. */
void csn_required_find(const char *pattern, size_t len, bool nocase, csn_required *ret);
/* The same for plain text of ASCII characters. */
void csn_required_text(const char *text, size_t len, bool nocase, csn_required *ret);
