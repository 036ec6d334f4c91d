/* path.h: lexical work on agent paths. It joins; it never removes `..` by text: `link/../x` is
 * the kernel's to resolve. */
#pragma once
#include <stdbool.h>

#include "caisson/caisson.h"

/* The path a backend gets: `~` and `~/x` become home, relative ones are joined to workdir.
 * Refuses the empty path and one longer than PATH_MAX (CSN_INVALID naming it). malloc'd. */
csn_status csn_path_join(const char *workdir, const char *home, const char *path, char **ret,
                         csn_error **err);
/* Is `path` the directory `dir` or below it, by whole components? Both absolute. Returns what
 * comes after dir without leading slashes ("" for dir itself), or NULL. */
const char *csn_path_below(const char *path, const char *dir);
/* The last component, with the slashes that end it ("a/b/" has "b/"); and a copy of all before
 * it
 * ("." when there is none, malloc'd). */
const char *csn_path_base(const char *path);
char *csn_path_dir(const char *path);
/* A name for sandboxes and sessions: [A-Za-z0-9._-], not starting with . or -, at most 63. */
bool csn_name_valid(const char *name);
/* For messages: quotes and escapes control and invalid bytes. malloc'd. */
char *csn_path_printable(const char *path);
