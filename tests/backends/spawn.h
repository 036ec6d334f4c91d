/* spawn.h: runs one command on the host for the test backends, as their `exec` must. */
#pragma once
#include "caisson/backend.h"

typedef struct csn_test_place {
    const char *const *env; /* NAME=value of every command */
    const char *cwd;        /* where commands start that name no directory */
    /* In the forked child, before chdir: system calls only. 0 or errno. May be NULL. */
    int (*enter)(const void *ctx);
    const void *enter_ctx;
} csn_test_place;

/* Contract of csn_backend_ops.exec. What the command leaves in the background ends with it. */
csn_status csn_test_spawn(const csn_test_place *place, const csn_exec_req *req,
                          const csn_sink *sink, csn_exec_end *ret, csn_error **err);
