/* config_file.h: configuration files and how one configuration is laid over another. */
#pragma once
#include <stdbool.h>

#include "base/arena.h"
#include "caisson/caisson.h"

#define CSN_CONFIG_FILE_MAX (1024u * 1024u)

/* Lists of `over` are appended to those of *base, single values replace them, flags add up.
 * Copies go to the arena. */
csn_status csn_config_overlay(csn_arena *a, csn_config *base, const csn_config *over,
                              csn_error **err);
/* Reads and parses `path` ("-": stdin). Free with csn_config_free. */
csn_status csn_config_file_read(const char *path, csn_config **ret, csn_error **err);
csn_status csn_config_file_overlay(csn_arena *a, csn_config *base, const char *path,
                                   csn_error **err);
/* The same with the user's file, $XDG_CONFIG_HOME/caisson/config.json, else
 * ~/.config/caisson/config.json, if it exists. */
csn_status csn_config_file_defaults(csn_arena *a, csn_config *base, csn_error **err);
/* Also true when that cannot be determined. */
bool csn_config_file_exists(void);
