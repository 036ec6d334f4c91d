/* layer_access.h: the layers of a sandbox's copy-on-write workspace, opened for one call. */
#pragma once
#include <time.h>

#include "core/internal.h"
#include "layers/changes.h"

typedef struct csn_layer_access {
    csn_layer_stack stack;
    int store;             /* of the journal; -1 when closed */
    int originals;         /* layers/originals.h; -1: the backend keeps none */
    struct timespec since; /* when the base was taken */
    bool running;          /* commands may change the first layer now */
} csn_layer_access;

/* CSN_UNSUPPORTED if the workspace is not copy-on-write. */
csn_status csn_layer_access_open(csn_sandbox *sb, csn_layer_access *ret, csn_error **err);
/* The same, after a commit that was interrupted has been completed or taken back. */
csn_status csn_layer_access_recover(csn_sandbox *sb, csn_layer_access *ret, csn_error **err);
/* Also valid after a failed open. */
void csn_layer_access_close(csn_layer_access *a);
