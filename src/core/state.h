/* state.h: records of detached sandboxes: one directory with a meta.json per sandbox, and one
 * symlink per name. */
#pragma once
#include <stdint.h>

#include "caisson/caisson.h"

typedef struct csn_state_meta {
    char *id;
    char *name; /* or NULL */
    int64_t created_ms;
    char *workdir;      /* NULL: the backend's default */
    char *forked_from;  /* the id of another sandbox, or NULL */
    csn_config *config; /* owned */
} csn_state_meta;

void csn_state_meta_free(csn_state_meta *m);
/* CSN_EXISTS if another sandbox has the name. */
csn_status csn_state_create(const csn_state_meta *m, csn_error **err);
/* CSN_GONE if the record was removed. */
csn_status csn_state_update(const csn_state_meta *m, csn_error **err);
/* The id that a name stands for, malloc'd; NULL: none. */
char *csn_state_name_holder(const char *name);
/* Frees the name if it stands for this id. */
void csn_state_release_name(const char *name, const char *id);
/* Frees the names of sandboxes that have no record. */
void csn_state_sweep_names(void);
/* Finds the id for an id or name; CSN_NOT_FOUND names it. */
csn_status csn_state_lookup(const char *id_or_name, char **ret_id, csn_error **err);
csn_status csn_state_load(const char *id, csn_state_meta **ret, csn_error **err);
void csn_state_remove(const char *id, const char *name);
/* Lists all ids, oldest first (ids contain their time of creation), as a malloc'd strv. */
csn_status csn_state_ids(char ***ret, csn_error **err);
