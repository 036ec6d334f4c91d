/* records.h: what caisson keeps outside of sandboxes: audit logs, and protected files that were
 * moved out of a workspace.
 * SPDX-License-Identifier: Apache-2.0
 *
 * A part of caisson.h, which includes it; the rules for calls are explained there. */
#ifndef CAISSON_RECORDS_H
#define CAISSON_RECORDS_H

#include "caisson/caisson.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- audit logs ---- */

/* Calls fn for every line (JSON, without the newline) of a sandbox's audit log. Takes an id or
 * name, also after the sandbox has ended. */
typedef int (*csn_line_fn)(void *ctx, const char *line, size_t len);
CSN_API csn_status csn_audit_read(const char *id, csn_line_fn fn, void *ctx, csn_error **err);

typedef struct csn_audit_report {
    uint32_t ok;
    uint64_t lines;     /* number of lines checked */
    uint64_t bad_line;  /* 1-based; 0: none */
    const char *reason; /* NULL when ok */
    uint64_t gaps;      /* operations that began and have no recorded result; 0 when ok */
} csn_audit_report;

/* Recomputes the hash chain, which detects changed, removed and reordered lines. An operation
 * that runs is not a gap; one whose caller was killed is. */
CSN_API csn_status csn_audit_verify(const char *id, csn_audit_report **ret, csn_error **err);
CSN_API void csn_audit_report_free(csn_audit_report *r);

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

/* ---- files that were moved away ---- */

typedef struct csn_aside_entry {
    const char *id;      /* SANDBOX/NUMBER */
    const char *sandbox; /* id of the sandbox that made or changed it */
    const char *path;    /* where it was; NULL: not known */
    const char *reason;  /* why it was moved; NULL: not known */
    const char *kept;    /* where it is now */
    const char *type;    /* "file", "directory", "symlink" or "other" */
    uint64_t bytes;
    int64_t moved_ms;
} csn_aside_entry;

typedef struct csn_aside_list_result {
    const csn_aside_entry *items; /* the last moved one last */
    size_t count;
} csn_aside_list_result;

/* Lists the protected files that were moved out of workspaces of this user. */
CSN_API csn_status csn_aside_list(csn_aside_list_result **ret, csn_error **err);
CSN_API void csn_aside_list_free(csn_aside_list_result *r);

#define CSN_ASIDE_REPLACE (1u << 0) /* replace a file that is at its place by now */

/* Moves one back to where it was, and removes the entry. Programs of the host may run it from
 * then on, so the caller must trust it. No symlink on the path is followed. CSN_EXISTS: there
 * is something at its place; CSN_NOT_FOUND: no such entry, or its directory is gone. */
CSN_API csn_status csn_aside_restore(const char *id, uint32_t flags, csn_error **err);
/* Deletes one. */
CSN_API csn_status csn_aside_remove(const char *id, csn_error **err);

#ifdef __cplusplus
}
#endif
#endif
