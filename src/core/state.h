/* state.h: what is known of detached sandboxes between processes: one directory each with a
 * meta.json, and a link per name. */
#pragma once
#include <stdint.h>

#include "caisson/caisson.h"

typedef struct csn_state_meta {
    char *id;
    char *name; /* or NULL */
    int64_t created_ms;
    char *workdir;      /* or NULL: the backend's first */
    csn_config *config; /* owned */
} csn_state_meta;

void csn_state_meta_free(csn_state_meta *m);
/* Takes the name first: CSN_EXISTS when another living sandbox has it. */
csn_status csn_state_create(const csn_state_meta *m, csn_error **err);
csn_status csn_state_update(const csn_state_meta *m, csn_error **err);
/* By id or name; CSN_NOT_FOUND naming it. */
csn_status csn_state_lookup(const char *id_or_name, char **ret_id, csn_error **err);
csn_status csn_state_load(const char *id, csn_state_meta **ret, csn_error **err);
void csn_state_remove(const char *id, const char *name);
/* All ids, sorted (oldest first: ids begin with their time). malloc'd strv. */
csn_status csn_state_ids(char ***ret, csn_error **err);
