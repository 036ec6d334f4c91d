/* files.h: resolution of agent paths and policy checks, shared by the file operations. */
#pragma once
#include <stdbool.h>

#include "os/parent.h"
#include "runtime/runtime.h"

typedef struct csn_target {
    const csn_runtime *rt;
    uint32_t op;       /* CSN_OP_* to check against the policy */
    uint32_t tree;     /* CSN_OP_TREE or 0 */
    const char *asked; /* for messages */
    const csn_grant *grant;
    const char *rest; /* below the grant */
    unsigned how;     /* CSN_BENEATH_* */
} csn_target;

/* op may include CSN_OP_TREE. Of flags only CSN_FILE_NOFOLLOW is used; the sandbox's
 * CSN_OPEN_NOFOLLOW has the same effect. */
csn_target csn_target_of(const csn_runtime *rt, uint32_t op, const char *path, uint32_t flags);
/* The status, message and denial for a failed system call (errnum > 0) on the target. */
csn_status csn_target_fail(const csn_target *t, int errnum, csn_error **err);
/* Opens the target, then checks the policy for what was opened. flags as in
 * csn_beneath_open. */
csn_status csn_target_open(const csn_target *t, int flags, int *ret_fd, csn_error **err);
/* The same; *ret_path, malloc'd: the path that was checked, NULL if no check was needed. */
csn_status csn_target_open_path(const csn_target *t, int flags, int *ret_fd, char **ret_path,
                                csn_error **err);
/* Finds the directory that contains the target (how: CSN_PARENT_FOLLOW or 0), then checks the
 * policy. */
csn_status csn_target_parent(const csn_target *t, unsigned how, csn_parent *ret,
                             csn_error **err);
/* True if the rules must be checked by path; false if being below the grant is enough. */
bool csn_target_checked(const csn_target *t);
/* The path that the rules use for an open descriptor, with `more` (may be "") appended.
 * malloc'd, NULL if the kernel reports no path. */
char *csn_target_path(const csn_target *t, int fd, const char *more);
