/* exec_probe.h: small scripts run in a sandbox to learn or set one fact. */
#pragma once
#include <stdbool.h>

#include "core/fallback.h"

/* Where its commands start, and the HOME they have (NULL: none). malloc'd. */
csn_status csn_probe_dirs(const csn_fs *fs, char **ret_workdir, char **ret_home,
                          csn_error **err);
csn_status csn_probe_bash(const csn_fs *fs, bool *ret, csn_error **err);
csn_status csn_probe_chmod(const csn_fs *fs, const char *path, uint32_t mode, csn_error **err);
