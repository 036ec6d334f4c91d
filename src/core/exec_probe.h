/* exec_probe.h: probes the sandbox of a backend that has only exec, with one short script
 * each. */
#pragma once
#include <stdbool.h>

#include "core/fallback.h"

/* The directory in which commands start, and their HOME (NULL: unset). Both malloc'd. */
csn_status csn_probe_dirs(const csn_fs *fs, char **ret_workdir, char **ret_home,
                          csn_error **err);
csn_status csn_probe_bash(const csn_fs *fs, bool *ret, csn_error **err);
csn_status csn_probe_chmod(const csn_fs *fs, const char *path, uint32_t mode, csn_error **err);
