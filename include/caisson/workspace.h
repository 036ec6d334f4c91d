/* workspace.h: workspaces that can be compared, kept, thrown away and forked.
 * SPDX-License-Identifier: Apache-2.0
 *
 * A workspace of the mode `cow` (HOST:cow) keeps the changes of a sandbox in layers above the
 * host's directory, which stays as it is until csn_commit; the backend local copies the
 * directory. Snapshots and forks work on some
 * other backends too. Where a call does not work it returns CSN_UNSUPPORTED.
 *
 * A part of caisson.h, which includes it; the rules for calls are explained there. */
#ifndef CAISSON_WORKSPACE_H
#define CAISSON_WORKSPACE_H

#include "caisson/caisson.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- snapshots and forks (capabilities: snapshot, rollback, fork) ---- */

typedef struct csn_snapshot_result {
    uint32_t size;
    const char *snapshot; /* opaque, and valid as `image` of a config of the same backend */
    const char *name;     /* of csn_snapshot_as, or NULL */
    const char *how;      /* as in csn_snapshot_entry, or NULL */
} csn_snapshot_result;

/* Saves the present files. If a provider has to stop the machine for this, running commands and
 * processes end. */
CSN_API csn_status csn_snapshot(csn_sandbox *sb, csn_snapshot_result **ret, csn_error **err);
CSN_API void csn_snapshot_result_free(csn_snapshot_result *r);
/* Replaces the sandbox's files with those of one of its snapshots. On a copy-on-write workspace
 * NULL means the newest, or the host's files if there is none; it is CSN_CONFLICT while a
 * command or a background process runs, and sessions keep their directory and variables. */
CSN_API csn_status csn_rollback(csn_sandbox *sb, const char *snapshot, csn_error **err);
/* Opens another sandbox with the same files and configuration; `name` may be NULL. It is
 * detached if this one is. */
CSN_API csn_status csn_fork(csn_sandbox *sb, const char *name, csn_sandbox **ret,
                            csn_error **err);

typedef struct csn_snapshot_entry {
    const char *name;
    const char *snapshot; /* valid as `image` of a config, as in csn_snapshot_result */
    int64_t created_ms;
    const char *how;    /* "frozen": nothing was copied; "copied": a command was running, or the
                           workspace is a copy */
    uint32_t automatic; /* made before a command because of CSN_OPEN_UNDO */
} csn_snapshot_entry;

typedef struct csn_snapshot_list {
    const csn_snapshot_entry *items; /* the oldest first */
    size_t count;
} csn_snapshot_list;

/* Saves the present files under a name (NULL: one is made up). CSN_EXISTS if the name is taken.
 * Takes the same time for any number of files if no command runs. */
CSN_API csn_status csn_snapshot_as(csn_sandbox *sb, const char *name, csn_snapshot_result **ret,
                                   csn_error **err);
CSN_API csn_status csn_snapshots(csn_sandbox *sb, csn_snapshot_list **ret, csn_error **err);
CSN_API void csn_snapshot_list_free(csn_snapshot_list *l);
/* Goes back to the snapshot before the last command (CSN_OPEN_UNDO), and removes it. */
CSN_API csn_status csn_undo(csn_sandbox *sb, csn_error **err);
/* Throws all changes and snapshots away: the workspace is the host's directory again. */
CSN_API csn_status csn_discard(csn_sandbox *sb, csn_error **err);

/* ---- changes ---- */

typedef enum csn_change_kind {
    CSN_CHANGE_ADDED = 1,
    CSN_CHANGE_DELETED,
    CSN_CHANGE_MODIFIED, /* content, or the text of a link */
    CSN_CHANGE_META,     /* mode, attributes or time of modification only */
    CSN_CHANGE_TYPE,     /* a file became a directory, a link ... */
} csn_change_kind;

/* What csn_commit did, or would do, with a change. */
typedef enum csn_commit_outcome {
    CSN_OUTCOME_NONE = 0, /* csn_diff: not asked */
    CSN_OUTCOME_APPLIED,  /* as the sandbox has it */
    CSN_OUTCOME_MERGED,   /* text: the host's changes and the sandbox's */
    CSN_OUTCOME_SAME,     /* the host has it already */
    CSN_OUTCOME_CONFLICT, /* the host changed it too; nothing is written */
    CSN_OUTCOME_KEPT,     /* a conflict decided for the host, or of no use there (a socket) */
    CSN_OUTCOME_HELD,     /* a protected file: needs CSN_COMMIT_PROTECTED */
} csn_commit_outcome;

typedef struct csn_change {
    const char *path; /* relative to the workspace */
    csn_change_kind kind;
    uint32_t mode_before, mode_after; /* st_mode; 0: absent */
    uint64_t size_before, size_after;
    uint32_t binary;
    uint32_t host_changed;                /* the host changed it since the sandbox was opened */
    uint64_t lines_added, lines_removed;  /* CSN_DIFF_COUNTS; text only */
    const char *hash_before, *hash_after; /* CSN_DIFF_HASHES: SHA-256 in hex; or NULL */
    const char *held;                     /* why commit holds it back, or NULL */
    csn_commit_outcome outcome;
    const char *why; /* of the outcome, or NULL */
} csn_change;

#define CSN_DIFF_PATCH  (1u << 0) /* also a patch that `git apply` takes */
#define CSN_DIFF_COUNTS (1u << 1)
#define CSN_DIFF_HASHES (1u << 2)

typedef struct csn_diff_opts {
    uint32_t size;
    uint32_t flags;           /* CSN_DIFF_* */
    const char *const *paths; /* only these and what is below them; NULL: all */
} csn_diff_opts;

typedef struct csn_diff_result {
    uint32_t size;
    const csn_change *changes; /* sorted by path */
    size_t count;
    const char *patch; /* or NULL; may contain any byte */
    size_t patch_len;
} csn_diff_result;

/* Compares the workspace with the host's directory. O(changes). */
CSN_API csn_status csn_diff(csn_sandbox *sb, const csn_diff_opts *opts, csn_diff_result **ret,
                            csn_error **err);
CSN_API void csn_diff_result_free(csn_diff_result *r);

/* ---- commit ---- */

#define CSN_COMMIT_DRY_RUN   (1u << 0) /* decide, write nothing */
#define CSN_COMMIT_PROTECTED (1u << 1) /* protected files too */
#define CSN_COMMIT_MINE      (1u << 2) /* conflicts: keep the host's files */
#define CSN_COMMIT_THEIRS    (1u << 3) /* conflicts: take the sandbox's files */

/* Content for one path with a conflict. */
typedef struct csn_resolution {
    const char *path;
    const void *data;
    size_t size;
} csn_resolution;

typedef struct csn_commit_opts {
    uint32_t size;
    uint32_t flags;           /* CSN_COMMIT_* */
    const char *const *paths; /* only these and what is below them; NULL: all */
    const csn_resolution *resolved;
    size_t resolved_count;
} csn_commit_opts;

/* The versions of a file with a conflict; text NULL: absent, too large, or not known. */
typedef struct csn_conflict {
    const char *path;
    const char *why;
    const char *base, *host, *sandbox;
    size_t base_len, host_len, sandbox_len;
    const char *merged; /* with conflict markers, or NULL */
    size_t merged_len;
} csn_conflict;

typedef struct csn_commit_result {
    uint32_t size;
    uint32_t written; /* 0: dry run, or conflicts: nothing was written */
    const csn_change *changes;
    size_t count;
    size_t applied, merged, held; /* numbers of these outcomes */
    const csn_conflict *conflicts;
    size_t conflict_count;
} csn_commit_result;

/* Writes changes to the host's directory: atomically per file. If the process is killed, the
 * next csn_open or csn_connect on the directory completes the commit or takes it back. If there
 * are conflicts nothing is written and the call is CSN_OK with `conflicts`: check `written`. */
CSN_API csn_status csn_commit(csn_sandbox *sb, const csn_commit_opts *opts,
                              csn_commit_result **ret, csn_error **err);
CSN_API void csn_commit_result_free(csn_commit_result *r);

#ifdef __cplusplus
}
#endif
#endif
