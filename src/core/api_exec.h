/* api_exec.h: what foreground and background commands share. */
#pragma once
#include "core/internal.h"

csn_status csn_exec_check(const csn_sandbox *sb, const csn_exec_opts *o, const char *command,
                          csn_error **err);
csn_status csn_exec_environ(const csn_sandbox *sb, const char *const *call, const char ***ret,
                            csn_error **err);
/* "bash" or "sh", asked of the backend once. */
csn_status csn_exec_shell(csn_call *c, const char **ret, csn_error **err);
uint64_t csn_exec_output_max(const csn_sandbox *sb, const csn_exec_opts *o);
/* The joined path of a call's cwd, checked where the backend cannot do it itself. */
csn_status csn_exec_cwd(csn_call *c, const char *asked, const char **ret, csn_error **err);
