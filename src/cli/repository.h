/* repository.h: the git repository of a directory. */
#pragma once
#include <stdbool.h>

#include "base/limits.h"

/* Finds the top directory of the git repository that contains `cwd` (absolute, resolved). Looks
 * only at directories that belong to this user, up to a mount point, and never as far as the
 * home directory or /. False: there is none. */
bool csn_repository_find(const char *cwd, char ret[CSN_PATH_MAX]);
