/* changes_view.h: prints the changes of a copy-on-write workspace for people. */
#pragma once
#include <stdbool.h>

#include "base/buf.h"
#include "caisson/caisson.h"

/* One letter: A added, D deleted, M modified, T another type, m only mode, time or attributes.
 */
char csn_view_letter(csn_change_kind kind);
/* Appends one line for each change (letter, path, lines) and a last one with the totals.
 * escape: paths in visible form, for a terminal. */
void csn_view_stat(csn_buf *to, const csn_change *changes, size_t count, bool escape);
/* Appends "3 files, +12 -4". */
void csn_view_totals(csn_buf *to, const csn_change *changes, size_t count);
/* The number of changes that commit holds back. */
size_t csn_view_held(const csn_change *changes, size_t count);
