/* audit.h: appends one hash-chained JSON line per operation to a log outside the sandbox.
 *
 * audit/<id>.jsonl holds the lines, audit/<id>.head the number of lines and the hash of the
 * last one, so that a truncated log is detected too. Each line is
 *
 *     {"seq","time","sandbox","op","target","args","verdict","rule","result",
 *      "code"?,"bytes"?,"hash"?,"aside"?,"duration_ms","prev","sha256"}
 *
 * where aside lists protected files that were moved out of the way after a command, sha256 is
 * the hash of the line without that field, and prev is the sha256 of the line before ("" at
 * first). Several processes may append to one log: each takes flock and reads the head again if
 * it changed. */
#pragma once
#include <stdint.h>

#include "caisson/caisson.h"

typedef struct csn_audit csn_audit;

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
    uint64_t duration_ns;
} csn_audit_event;

/* place: NULL: the default directory; "none": no log (*ret is NULL); else a file. The first
 * event creates the file, so an unused sandbox leaves none. */
csn_status csn_audit_open(const char *id, const char *place, csn_audit **ret, csn_error **err);
void csn_audit_close(csn_audit *a);
/* For a sandbox that is being created: csn_audit_prepare creates the files while the backend
 * starts; csn_audit_forget removes them if the start fails. Both accept NULL. */
void csn_audit_prepare(csn_audit *a);
void csn_audit_forget(csn_audit *a);
/* NULL audit: CSN_OK. If the log cannot be written, the caller's operation fails with
 * CSN_IO. */
csn_status csn_audit_append(csn_audit *a, const csn_audit_event *e, csn_error **err);
/* Removes logs in the default directory that were not written for 30 days and whose sandbox is
 * gone. */
void csn_audit_sweep(void);
