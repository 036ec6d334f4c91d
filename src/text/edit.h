/* edit.h: replaces exact strings in the bytes of a file. */
#pragma once
#include "base/buf.h"
#include "caisson/caisson.h"

/* Applies all edits in order to `text` and leaves the result in *out (already initialised).
 * `path` is for messages. CSN_INVALID: no edits, an empty old_string, or old equals new.
 * CSN_NO_MATCH "String not found in file: '<old>'" with a hint that shows the nearest line and
 * its number (also when only white space or line endings differ). CSN_AMBIGUOUS "String '<old>'
 * appears multiple times. Use replaceAll=true to replace all occurrences." with a hint that
 * lists the first lines with the string. Long strings are shortened in messages. */
csn_status csn_edit_apply(const char *path, const char *text, size_t len,
                          const csn_edit_item *edits, size_t count, csn_buf *out,
                          uint64_t *ret_occurrences, csn_error **err);
