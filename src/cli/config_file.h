/* config_file.h: reads configuration files and merges one configuration into another. */
#pragma once
#include <stdbool.h>

#include "base/arena.h"
#include "caisson/caisson.h"

#define CSN_CONFIG_FILE_MAX (1024u * 1024u)

/* Appends the lists of `over` to those of *base, replaces single values, and adds flags. Copies
 * go to the arena. */
csn_status csn_config_overlay(csn_arena *a, csn_config *base, const csn_config *over,
                              csn_error **err);
/* A profile to apply: `found` is set when a file has one of this name. */
typedef struct csn_profile {
    const char *name; /* NULL: none */
    bool found;
} csn_profile;

/* Reads and parses `path` ("-": stdin). Free with csn_config_free. */
csn_status csn_config_file_read(const char *path, csn_config **ret, csn_error **err);
/* Overlays *base with a document, and then with its profile. */
csn_status csn_config_text_overlay(csn_arena *a, csn_config *base, const char *text, size_t len,
                                   const char *source, csn_profile *profile, csn_error **err);
csn_status csn_config_file_overlay(csn_arena *a, csn_config *base, const char *path,
                                   csn_profile *profile, csn_error **err);
/* csn_config_file_overlay with the user's file, if it exists:
 * $XDG_CONFIG_HOME/caisson/config.json, else ~/.config/caisson/config.json. */
csn_status csn_config_file_defaults(csn_arena *a, csn_config *base, csn_profile *profile,
                                    csn_error **err);
/* True if the user's file exists, and also if its existence cannot be determined. */
bool csn_config_file_exists(void);
