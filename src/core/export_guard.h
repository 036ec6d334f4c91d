/* export_guard.h: finds files of an export that programs of the host would run. */
#pragma once
#include "core/internal.h"

/* Directories with entries that a git repository has; see base/name_rules.h. */
typedef struct csn_export_guard {
    const csn_fs *fs;
    const char *root; /* of the export, inside */
    char *place;      /* the host directory, absolute; "" for a tar */
    struct csn_export_marks {
        char *dir;
        uint8_t marks;
    } * dirs;
    size_t count, cap;
    bool failed; /* out of memory */
} csn_export_guard;

/* Examines the whole tree below `root`. host_dir: where it will be written; NULL: a tar. */
csn_status csn_export_guard_begin(csn_export_guard *g, const csn_fs *fs, const char *root,
                                  const char *host_dir, csn_error **err);
/* The reason why `rel` is protected, static; NULL: it is not. written: NULL, or the host
 * directory, to examine the content that was written there. */
const char *csn_export_guard_rule(const csn_export_guard *g, const csn_fs *written,
                                  const char *rel, const csn_file_stat *fst);
void csn_export_guard_end(csn_export_guard *g);
