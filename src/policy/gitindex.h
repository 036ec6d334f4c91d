/* gitindex.h: check whether a git index contains a path that git itself would refuse.
 *
 * git checks paths when they enter the index, not when it reads the file: with a crafted index
 * `git checkout -- .` writes .git/hooks/post-checkout and runs it. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

/* hash_len: 20 or 32. False also for a file that is not understood and for split indexes. */
bool csn_gitindex_is_harmless(const void *data, size_t len, size_t hash_len);
