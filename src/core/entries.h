/* entries.h: collects the entries that list and walk report into a sorted result. */
#pragma once
#include <stdbool.h>

#include "base/arena.h"
#include "core/internal.h"

typedef struct csn_entries {
    csn_arena *arena;
    csn_file_info *items;
    size_t count, cap, max;
    bool truncated;
    int err;
} csn_entries;

/* Adds one entry. Returns 0, or 1 to stop (then truncated or err is set). */
int csn_entries_add(csn_entries *e, const char *path, const csn_file_stat *st,
                    const char *target);
void csn_entries_sort(csn_entries *e); /* by bytes of the path */
/* Sorts the entries into the result that owns the arena and frees the collection. Returns a
 * failed `st` unchanged. */
csn_status csn_entries_finish(csn_entries *e, csn_status st, csn_file_list *l, csn_error **err);
