/* process.h: between process.c, which starts background processes, and process_control.c. */
#pragma once
#include "remote/remote.h"

/* The directory inside in which every process of this sandbox has one of its own. */
void csn_remote_base(const csn_remote *r, char *buf, size_t size);

/* csn_process_ops.start and release_tied. */
csn_status csn_remote_start(void *state, const csn_exec_req *req, uint64_t output_max,
                            int64_t *ret_pid, void **ret_tie, csn_error **err);
void csn_remote_release_tied(void *tie);
