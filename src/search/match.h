/* match.h: searches bytes literally or by regular expression (PCRE2, JIT). A matcher may be
 * used by one thread at a time. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

#include "base/cleanup.h"
#include "caisson/caisson.h"

typedef struct csn_matcher csn_matcher;

/* flags: CSN_GREP_REGEX, CSN_GREP_IGNORE_CASE. A bad expression is CSN_INVALID and names the
 * position. Matching has step limits: a hostile pattern ends with CSN_TOO_LARGE. */
csn_status csn_matcher_new(const char *pattern, uint32_t flags, csn_matcher **ret,
                           csn_error **err);
void csn_matcher_free(csn_matcher *m);
CSN_DEFINE_CLEANUP(csn_matcher, csn_matcher_free)
/* For another thread; `m` must outlive it. NULL: out of memory. */
csn_matcher *csn_matcher_copy(const csn_matcher *m);
/* Announces the text in which the next calls search, which makes them faster. */
void csn_matcher_window(csn_matcher *m, const char *text, size_t len);
/* Finds the first match from `start` on. Returns 1 and its place, 0 if there is none, or a
 * negative csn_status. */
int csn_matcher_find(csn_matcher *m, const char *text, size_t len, size_t start,
                     size_t *ret_from, size_t *ret_to);

/* For tests: memmem and PCRE2 alone, on all of the text. */
void csn_matcher_force_simple(csn_matcher *m);
