/* api_exec.h: csn_exec and csn_sh run one command; their option checks and requests, shared
 * with csn_start. */
#pragma once
#include "core/internal.h"

/* Either argv or command is set. */
typedef struct csn_exec_call {
    const char *op;
    uint32_t flags; /* CSN_EXEC_* that this operation accepts */
    const char *const *argv;
    const char *command;
} csn_exec_call;

/* Checks the options and begins the call, with its audit line filled in. */
csn_status csn_exec_begin(csn_call *c, csn_sandbox *sb, const csn_exec_call *what,
                          const csn_exec_opts *opts, csn_exec_opts *ret_opts, csn_error **err);
csn_status csn_exec_check(const csn_sandbox *sb, const csn_exec_opts *o, const char *command,
                          csn_error **err);
csn_status csn_exec_environ(const csn_sandbox *sb, const char *const *call, const char ***ret,
                            csn_error **err);
/* "bash" or "sh"; the backend is probed once. */
csn_status csn_exec_shell(csn_call *c, const char **ret, csn_error **err);
uint64_t csn_exec_output_max(const csn_sandbox *sb, const csn_exec_opts *o);
/* Fills in the fields that csn_exec and csn_start have in common; flags must be set. Free
 * *ret_workdir after the last use of the request. */
csn_status csn_exec_request(csn_call *c, const csn_exec_opts *o, csn_exec_req *req,
                            char **ret_workdir, csn_error **err);
