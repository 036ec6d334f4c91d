/* originals_internal.h: what the files of csn_original_* share. */
#pragma once
#include "base/hash.h"
#include "layers/originals.h"

/* Is there a record? `name` is that of csn_original_name. */
bool csn_original_has(int dir, const char *name);
void csn_original_name(const char *path, char ret[CSN_HASH_HEX]);

/* Keeps what the directory `base_dir` has under `last`. limit: a later ctime, or the same one,
 * is "unknown"; NULL: none is. fresh: an existing record stays. */
int csn_original_save(int dir, const char *record, int base_dir, const char *last,
                      const struct timespec *limit, bool fresh);
