/* change_rows.h: builds the rows of csn_diff and csn_commit from a list of changes. */
#pragma once
#include "base/arena.h"
#include "core/commit_guard.h"
#include "core/layer_access.h"

/* One csn_change for each change, in the arena, with `held` of the guard. want: CSN_DIFF_COUNTS
 * and CSN_DIFF_HASHES. CSN_UNAVAILABLE: a command has changed a file meanwhile. */
csn_status csn_change_rows(csn_arena *arena, const csn_layer_access *access,
                           const csn_layer_changes *changes, csn_commit_guard *guard,
                           uint32_t want, csn_change **ret, csn_error **err);
