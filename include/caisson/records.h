/* records.h: what caisson keeps outside of sandboxes: the list of audit logs.
 * SPDX-License-Identifier: Apache-2.0
 *
 * The rules for calls are those of caisson.h. A log is read with csn_audit_read. */
#ifndef CAISSON_RECORDS_H
#define CAISSON_RECORDS_H

#include "caisson/caisson.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct csn_audit_log {
    const char *id;     /* of the sandbox */
    uint64_t bytes;     /* on disk */
    int64_t written_ms; /* time of the last line */
    uint32_t in_use;    /* a process has the sandbox open */
} csn_audit_log;

typedef struct csn_audit_logs_result {
    const csn_audit_log *items; /* the last written one last */
    size_t count;
} csn_audit_logs_result;

/* As csn_audit_read and csn_audit_verify, for the log at a path (csn_config.audit). */
CSN_API csn_status csn_audit_read_file(const char *path, csn_line_fn fn, void *ctx,
                                       csn_error **err);
CSN_API csn_status csn_audit_verify_file(const char *path, csn_audit_report **ret,
                                         csn_error **err);
/* Lists the audit logs of this user at the default place. */
CSN_API csn_status csn_audit_logs(csn_audit_logs_result **ret, csn_error **err);
CSN_API void csn_audit_logs_free(csn_audit_logs_result *r);
/* Removes the log of a sandbox that has ended; CSN_CONFLICT: it has not. */
CSN_API csn_status csn_audit_remove(const char *id, csn_error **err);

#ifdef __cplusplus
}
#endif
#endif
