/* path.h: paths as text. `..` is never removed: only the kernel can resolve `link/../x`. */
#pragma once
#include <stdbool.h>

#include "caisson/caisson.h"

/* Replaces `~` by home and joins a relative path to workdir. CSN_INVALID if the path is empty
 * or longer than PATH_MAX. malloc'd. */
csn_status csn_path_join(const char *workdir, const char *home, const char *path, char **ret,
                         csn_error **err);
/* Is `path` the directory `dir` or below it, by whole components? Both absolute. Returns what
 * comes after dir without leading slashes ("" for dir itself), or NULL. */
const char *csn_path_below(const char *path, const char *dir);
/* csn_path_base returns the last component with trailing slashes ("b/" of "a/b/"); csn_path_dir
 * a copy of everything before it ("." if there is nothing, malloc'd). */
const char *csn_path_base(const char *path);
char *csn_path_dir(const char *path);
/* Splits HOST[:INSIDE][:rw|ro|cow] in place: `text` becomes HOST. *ret_inside and *ret_mode
 * (each may be NULL) point to the other parts, or are NULL where the text has none. A host path
 * that exists with the colon in its name is not split there; `exists` tells. */
void csn_workspace_split(char *text, bool (*exists)(const char *path), const char **ret_inside,
                         const char **ret_mode);
/* A name for sandboxes and sessions: [A-Za-z0-9._-], not starting with . or -, at most 63. */
bool csn_name_valid(const char *name);
/* An id that we made: <backend>-<milliseconds>-<CSN_ID_RANDOM base36 digits>. */
bool csn_id_valid(const char *id);
/* For messages: quotes and escapes control and invalid bytes. malloc'd. */
char *csn_path_printable(const char *path);
