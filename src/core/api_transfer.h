/* api_transfer.h: csn_export and csn_import copy a directory tree; limits and progress are
 * shared with tar transfers. */
#pragma once
#include "core/internal.h"

typedef struct csn_transfer {
    const csn_transfer_opts *opts;
    uint64_t max_entries, max_bytes;
    uint64_t entries, bytes;
} csn_transfer;

/* flags: the known ones. */
csn_status csn_transfer_begin(csn_transfer *t, const csn_transfer_opts *o, uint32_t flags,
                              csn_error **err);
/* Calls on_protected. */
void csn_transfer_protected(const csn_transfer *t, const char *path, const char *rule);
/* Adds `bytes`, reports progress, and checks limits and cancel. */
csn_status csn_transfer_count(csn_transfer *t, uint64_t bytes, csn_error **err);
/* Fails if a file of this size would exceed the limit; its holes count. */
csn_status csn_transfer_room(const csn_transfer *t, const char *path, uint64_t size,
                             csn_error **err);
/* dir/rel; dir itself for "". malloc'd. */
char *csn_transfer_join(const char *dir, const char *rel);

/* Directory modes, set after the content is written: a directory may be read-only. */
typedef struct csn_dirmodes {
    struct csn_dirmode {
        char *path;
        uint32_t mode;
    } * items;
    size_t count, cap;
} csn_dirmodes;

csn_status csn_dirmodes_add(csn_dirmodes *d, const char *path, uint32_t mode, csn_error **err);
/* Sets the modes, innermost first, if st is CSN_OK. Frees the list. Returns st or the
 * failure. */
csn_status csn_dirmodes_apply(csn_dirmodes *d, const csn_fs *fs, csn_status st,
                              csn_error **err);
