/* match.h: finds lines in bytes: literally (memmem) or by regular expression (PCRE2, JIT). The
 * only door to PCRE2. A matcher may be used by one thread at a time. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

#include "base/cleanup.h"
#include "caisson/caisson.h"

typedef struct csn_matcher csn_matcher;

/* flags: CSN_GREP_REGEX, CSN_GREP_IGNORE_CASE. A bad expression is CSN_INVALID and says where.
 * Matching has step limits: a hostile pattern ends with CSN_TOO_LARGE, never a hang. */
csn_status csn_matcher_new(const char *pattern, uint32_t flags, csn_matcher **ret,
                           csn_error **err);
void csn_matcher_free(csn_matcher *m);
CSN_DEFINE_CLEANUP(csn_matcher, csn_matcher_free)
/* First match in text: 1 and its place, 0 none, negative csn_status. Invalid UTF-8 is fine. */
int csn_matcher_find(csn_matcher *m, const char *text, size_t len, size_t start,
                     size_t *ret_from, size_t *ret_to);
