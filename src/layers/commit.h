/* commit.h: applies changes of a copy-on-write workspace to its base on the host.
 *
 * Each file is replaced atomically: a temporary file beside it, then rename. The whole is safe
 * against a crash: all temporary files are complete and on disk before a journal in the store
 * directory takes its name, and only then does the base change. csn_commit_recover, which every
 * later use of the workspace calls first, removes the temporary files if there is no journal
 * and completes the commit if there is one. No half of a file is ever visible.
 *
 * The base belongs to the user and may change at any time; the layers are under the control of
 * commands. Paths are resolved below the base without following links: a directory that is a
 * link on the host is a conflict, never a way out. */
#pragma once
#include "base/arena.h"
#include "base/buf.h"
#include "layers/changes.h"

/* What the base had when the sandbox first saw it, for one path; see originals.h. */
typedef struct csn_original {
    bool known;           /* false: only `since` can tell whether the base has changed */
    csn_change_side side; /* mode 0: the path did not exist */
    int content;          /* descriptor of the content, or -1 if it was not kept */
} csn_original;

typedef enum csn_conflict_rule {
    CSN_CONFLICT_STOP = 0, /* nothing is written if there is a conflict */
    CSN_CONFLICT_HOST,     /* conflicting paths stay as the host has them */
    CSN_CONFLICT_SANDBOX,  /* conflicting paths become those of the sandbox. A conflict stays
                              where that would remove files of the host that are not among the
                              changes, or replace a link or mount above the path */
} csn_conflict_rule;

typedef enum csn_commit_verdict {
    CSN_COMMIT_APPLY = 1, /* as the sandbox has it */
    CSN_COMMIT_MERGE,     /* text, merged with the host's changes without conflict */
    CSN_COMMIT_SAME,      /* the host has it already, or only the host changed it */
    CSN_COMMIT_CONFLICT,  /* the host changed it since; `why` says what */
    CSN_COMMIT_KEEP,      /* stays as the host has it: a conflict decided for the host, a
                             directory that the host has filled, a socket, fifo or device */
    CSN_COMMIT_HELD,      /* a protected file: applied only if allowed */
} csn_commit_verdict;

typedef struct csn_commit_item {
    const csn_layer_change *change;
    csn_commit_verdict verdict;
    const char *why; /* static text, or of the plan's arena; NULL if there is nothing to say */
    csn_buf merged;  /* MERGE, and a resolved file */
    uint32_t mode;   /* MERGE: the permissions of the merged file */
    csn_change_side host; /* what the base has now; csn_commit_apply compares it again */
    bool stuck;           /* CONFLICT: no rule can decide it */
} csn_commit_item;

/* Content that the caller decided for one conflicting path. */
typedef struct csn_commit_resolution {
    const char *path;
    const void *data;
    size_t size;
} csn_commit_resolution;

typedef struct csn_commit_request {
    const csn_layer_stack *stack;
    const csn_layer_changes *changes;
    /* When the base was taken: a later ctime is a change of the host. For paths whose original
     * is not known. */
    struct timespec since;
    csn_conflict_rule rule;
    const csn_commit_resolution *resolved;
    size_t resolved_count;
    /* NULL: none known. May return known == false. The planner closes `content`. */
    csn_status (*original)(void *ctx, const csn_layer_change *c, csn_original *ret,
                           csn_error **err);
    /* Returns why a path is protected (static text), or NULL. NULL: nothing is. */
    const char *(*protects)(void *ctx, const csn_layer_change *c);
    void *ctx;
} csn_commit_request;

typedef struct csn_commit_plan {
    csn_commit_item *v; /* one per change, in their order */
    size_t count;
    size_t conflicts, held;
    csn_arena *arena;
} csn_commit_plan;

/* Decides for each change. Writes nothing. *ret is untouched on failure. A resolution wins over
 * the comparison with the host, but not over `protects`; CSN_INVALID: its path is not among the
 * changes.
 *
 * Text is merged (text/merge3.h) if both sides changed it, its original content is known, and
 * no version is longer than CSN_MERGE_TEXT_MAX or has a NUL. A merged file has the sandbox's
 * attributes and the time of the commit. */
csn_status csn_commit_plan_make(const csn_commit_request *r, csn_commit_plan *ret,
                                csn_error **err);
/* Applies a plan of the same request. store: a directory on any file system, private to the
 * user, for the journal. The base is locked against other commits (flock); CSN_CONFLICT if one
 * is running.
 *
 * Nothing of the base has changed after CSN_CONFLICT (the plan has conflicts; the host or the
 * sandbox changed a path since the plan), CSN_DENIED (a directory is not writable), or a failed
 * write (ENOSPC, EIO). There are two exceptions, and the message says so: a failure after the
 * commit point leaves the journal, and csn_commit_recover completes the commit when the cause
 * is gone; a path that the host changed in the instant of the commit stays as the host has it
 * (CSN_CONFLICT, the other paths are committed).
 *
 * Modes, times, hard links among the changes, sparse files, empty directories, attributes
 * user.* (without user.overlay.*) and POSIX ACLs are kept; where the base's file system has no
 * attributes, these are dropped. Set-user-ID and set-group-ID bits of files are never
 * committed. A root caller gives a file the owner of the one it replaces, a new one the owner
 * that it has in the layer; other callers own what they write. */
csn_status csn_commit_apply(const csn_commit_request *r, const csn_commit_plan *plan, int store,
                            csn_error **err);
/* Also valid on a zeroed struct. */
void csn_commit_plan_release(csn_commit_plan *p);

typedef enum csn_recovery_outcome {
    CSN_COMMIT_NONE = 0, /* no commit was interrupted */
    CSN_COMMIT_UNDONE,   /* one was, before it changed the base; its temporary files are gone */
    CSN_COMMIT_DONE,     /* one was, and is complete now */
} csn_recovery_outcome;

typedef struct csn_commit_recovery {
    csn_recovery_outcome outcome;
    /* DONE: paths that the host changed after the interruption. They stay as the host has them;
     * the layers still have the sandbox's version. */
    size_t left;
} csn_commit_recovery;

/* Finishes a commit that was interrupted, or takes it back if it had not begun to change the
 * base. Call it before any other use of store and base. CSN_CONFLICT: a commit is running.
 * After any other failure the journal is still there, and a later call tries again. */
csn_status csn_commit_recover(int store, int base, csn_commit_recovery *ret, csn_error **err);

/* Opens the directory for the journal of commits to `host`, an absolute path without links. All
 * sandboxes on it share one: a commit may have to be completed when its sandbox is gone. */
csn_status csn_commit_store_open(const char *host, int *ret, csn_error **err);
/* csn_commit_recover for `host`, which must come before the first command on it. Costs one
 * system call where there is nothing to recover. A commit that is running is not an error. */
csn_status csn_commit_recover_host(const char *host, csn_error **err);
