/* audit.h: appends one hash-chained JSON line per operation to a log outside the sandbox.
 *
 * audit/<id>.jsonl holds the lines, audit/<id>.head the number of lines and the hash of the
 * last one, so that a truncated log is detected too. Each line is
 *
 *     {"seq","time","sandbox","op","target","args","verdict","rule","result","count"?,
 *      "code"?,"bytes"?,"hash"?,"aside"?,"changes"?,"changes_total"?,"duration_ms","prev",
 *      "sha256"}
 *
 * where aside lists protected files that were moved out of the way after a command, changes the
 * files that it changed (csn_audit_change; changes_total is their number if some are left out,
 * and null if they could not be determined), sha256 is
 * the hash of the line without that field, and prev is the sha256 of the line before ("" at
 * first). Several processes may append to one log: each takes flock and reads the head again if
 * it changed.
 *
 * An operation with an effect begins in the log before it acts (csn_audit_begin): the log can
 * be written, the disk has room for the line, and the head file counts the operation. If its
 * line is never written, because the caller was killed or the disk failed, the next writer
 * appends a line with the op "gap" and the number of such operations as "count". */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "caisson/caisson.h"

typedef struct csn_audit csn_audit;

#define CSN_AUDIT_GAP "gap" /* op of the line for operations whose own lines are missing */

/* One file that a command changed. */
typedef struct csn_audit_change {
    const char *path;
    bool existed, exists;       /* before and after the command */
    const char *before, *after; /* SHA-256; NULL: not known, or no regular file */
} csn_audit_change;
#define CSN_AUDIT_CHANGES_MAX 1000u /* of one line; its length is bounded, too */

/* Every field except op may be empty. The writer redacts secrets: values of env assignments,
 * options like --password=x, token=..., Authorization headers in command lines. */
typedef struct csn_audit_event {
    const char *op;
    const char *target;       /* path, command line or host; escaped, truncated to 4 KiB */
    const char *const *argv;  /* for exec, instead of target */
    const char *const *env;   /* names are logged, values never */
    const csn_net_event *net; /* a connection: its details, or NULL */
    const char *rule;         /* of a refusal */
    csn_status status;
    int has_exit_code, exit_code;
    const char *killed_by;
    uint64_t bytes;
    const char *hash;          /* of written content */
    const csn_denial *denials; /* of these, protected files that were moved are logged */
    size_t denial_count;
    const csn_audit_change *changes; /* NULL: not recorded */
    size_t change_count;
    uint64_t change_total; /* more than change_count: the others are left out */
    bool changes_unknown;
    uint64_t duration_ns;
    uint64_t count; /* of a gap line */
    bool begun;     /* csn_audit_begin has counted it; the line ends it */
    bool done;      /* it has happened: if the line cannot be written, it is counted as a gap */
} csn_audit_event;

/* place: NULL: the default directory; "none": no log (*ret is NULL); else a file. The first
 * event creates the file, so an unused sandbox leaves none. */
csn_status csn_audit_open(const char *id, const char *place, csn_audit **ret, csn_error **err);
void csn_audit_close(csn_audit *a);
/* For a sandbox that is being created: csn_audit_prepare creates the files and begins the
 * operation `open`; csn_audit_forget takes both back if the start fails. Both accept NULL. */
csn_status csn_audit_prepare(csn_audit *a, csn_error **err);
void csn_audit_forget(csn_audit *a);
/* Call it before an operation with an effect (csn_audit_has_effect). On failure the operation
 * must not be done: it could not be recorded. Each success needs one csn_audit_append with
 * event.begun, or one csn_audit_cancel if nothing was done. NULL audit: CSN_OK. */
csn_status csn_audit_begin(csn_audit *a, csn_error **err);
void csn_audit_cancel(csn_audit *a);
/* NULL audit: CSN_OK. On failure a read must not return what it has read; an operation that has
 * begun or is done is counted as a gap. */
csn_status csn_audit_append(csn_audit *a, const csn_audit_event *e, csn_error **err);
/* Notes that a sandbox was opened today. On the first opening of a day it removes logs of ended
 * sandboxes from the default directory: those with `keep` days of use after their last line,
 * then the oldest ones until all logs have at most `max` bytes. 0: the default; CSN_NO_LIMIT:
 * none. Failures are retried on the next day. NULL, or a log at another place: nothing. */
void csn_audit_retain(csn_audit *a, uint64_t keep, uint64_t max);
/* audit_retain.c: the same for an open directory. */
void csn_audit_retain_in(int audit_dir, uint64_t keep, uint64_t max);
/* Removes the log of `id` if its sandbox has certainly ended. False: it stays. */
bool csn_audit_remove_in(int audit_dir, const char *id);
