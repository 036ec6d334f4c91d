/* edits_json.h: reads a list of edits from JSON. */
#pragma once
#include "base/arena.h"
#include "caisson/caisson.h"

/* Accepts [{"old_string","new_string","replace_all"?}, ...] or {"edits": [...]}. `what` names
 * the document in messages. Items and strings are allocated in the arena. An empty list is
 * CSN_INVALID. */
csn_status csn_wire_edits(const char *json, size_t len, const char *what, csn_arena *a,
                          csn_edit_item **ret, size_t *ret_count, csn_error **err);
