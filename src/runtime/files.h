/* files.h: what the file operations of this directory share: a path of an agent, on its way to
 * the kernel and through the policy. */
#pragma once
#include <stdbool.h>

#include "os/parent.h"
#include "runtime/runtime.h"

typedef struct csn_target {
    const csn_runtime *rt;
    uint32_t op;       /* CSN_OP_*: what the policy is asked */
    uint32_t tree;     /* CSN_OP_TREE or 0 */
    const char *asked; /* for messages */
    const csn_grant *grant;
    const char *rest; /* below the grant */
    unsigned how;     /* CSN_BENEATH_* */
} csn_target;

/* op may have CSN_OP_TREE. flags: CSN_FILE_NOFOLLOW matters here, and the sandbox's own
 * CSN_OPEN_NOFOLLOW. */
csn_target csn_target_of(const csn_runtime *rt, uint32_t op, const char *path, uint32_t flags);
/* The status, message and denial for a failed system call (errnum > 0) on the target. */
csn_status csn_target_fail(const csn_target *t, int errnum, csn_error **err);
/* Opens it, then asks the policy about what was opened. flags as in csn_beneath_open. */
csn_status csn_target_open(const csn_target *t, int flags, int *ret_fd, csn_error **err);
/* The same; *ret_path, malloc'd, is what the policy was asked about, or NULL if it was not. */
csn_status csn_target_open_path(const csn_target *t, int flags, int *ret_fd, char **ret_path,
                                csn_error **err);
/* Finds the directory it is in (how: CSN_PARENT_FOLLOW or 0), then asks the policy. */
csn_status csn_target_parent(const csn_target *t, unsigned how, csn_parent *ret,
                             csn_error **err);
/* Has the policy anything to say beyond "it is below the grant"? */
bool csn_target_checked(const csn_target *t);
/* The path the rules know a held descriptor by, with `more` (may be "") below it. malloc'd,
 * NULL when the kernel does not tell. */
char *csn_target_path(const csn_target *t, int fd, const char *more);
