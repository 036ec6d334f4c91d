/* glob.h: patterns over relative paths: ** * ? [a-z] [!a] {a,b} and backslash.
 *
 * A star or ? never matches a slash; ** as a whole component matches any number of components
 * (also none); dotfiles are ordinary; braces nest. Bytes, not characters. Matching time is
 * bounded (no exponential backtracking): braces expand to at most 256 alternatives, matching is
 * O(pattern x path) each. */
#pragma once
#include <stdbool.h>

#include "caisson/caisson.h"

typedef struct csn_glob_set csn_glob_set;

csn_status csn_glob_compile(const char *pattern, csn_glob_set **ret, csn_error **err);
void csn_glob_free(csn_glob_set *g);
bool csn_glob_match(const csn_glob_set *g, const char *path);
/* Could any path below directory `dir` (relative, "" for the start) match? To prune walks. */
bool csn_glob_may_descend(const csn_glob_set *g, const char *dir);
bool csn_glob_has_magic(const char *pattern);
