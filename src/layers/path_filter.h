/* path_filter.h: which paths a list of changes is asked for. Internal to src/layers. */
#pragma once
#include "layers/changes.h"
#include "layers/entry.h"

typedef struct csn_path_filter {
    char **v;                 /* relative, without `.`, `..` and empty components */
    const char *const *typed; /* as the caller passed them; borrowed */
    size_t count;
    bool all;
} csn_path_filter;

/* paths: NULL or empty: all. CSN_INVALID: absolute, empty, or with a component `..`. */
csn_status csn_path_filter_make(const char *const *paths, csn_path_filter *ret,
                                csn_error **err);
void csn_path_filter_release(csn_path_filter *f);

/* Is the path ("": the root) one of them, or below one? */
bool csn_path_filter_has(const csn_path_filter *f, const char *path);
/* The same, or above one. The path is that of `name` in `dir` ("": the root). */
bool csn_path_filter_leads(const csn_path_filter *f, const char *dir, const char *name);
/* CSN_NOT_FOUND if a path is neither in the base nor one of the changes. */
csn_status csn_path_filter_check(const csn_path_filter *f, const csn_entry_tree *base,
                                 const csn_layer_changes *changes, csn_error **err);
