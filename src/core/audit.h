/* audit.h: one hash-chained JSON line per operation, written outside the sandbox.
 *
 * audit/<id>.jsonl holds the lines, audit/<id>.head the number of lines and the hash of the
 * last one, so that a cut at the end shows too. Each line:
 * {"seq","time","sandbox","op","target",
 * "args","verdict","rule","result","code"?,"bytes"?,"hash"?,"duration_ms","prev","sha256"}
 * where sha256 is over the line without that field and prev is the one before ("" at first).
 * Several processes may append to one log: flock, and the head is read again when it moved. */
#pragma once
#include <stdint.h>

#include "caisson/caisson.h"

typedef struct csn_audit csn_audit;

/* Everything but op may be empty. Secrets are redacted here: values of env assignments, and
 * options like --password=x, token=..., Authorization headers in command lines. */
typedef struct csn_audit_event {
    const char *op;
    const char *target;       /* path, command line or host; escaped, cut to 4 KiB */
    const char *const *argv;  /* for exec, instead of target */
    const char *const *env;   /* names are logged, values never */
    const csn_net_event *net; /* a connection: its details, or NULL */
    const char *rule;         /* of a refusal */
    csn_status status;
    int has_exit_code, exit_code;
    const char *killed_by;
    uint64_t bytes;
    const char *hash; /* of written content */
    uint64_t duration_ns;
} csn_audit_event;

/* place: NULL for the default, "none" for off (*ret is NULL then), else a file. The file is
 * created at the first event, so an unused sandbox leaves none. */
csn_status csn_audit_open(const char *id, const char *place, csn_audit **ret, csn_error **err);
void csn_audit_close(csn_audit *a);
/* For a sandbox that is being created: creates the files while the backend starts, and removes
 * them if the start fails. NULL is allowed. */
void csn_audit_prepare(csn_audit *a);
void csn_audit_forget(csn_audit *a);
/* NULL audit: CSN_OK. A log that cannot be written fails the operation's caller (CSN_IO). */
csn_status csn_audit_append(csn_audit *a, const csn_audit_event *e, csn_error **err);
/* Removes logs in the default directory that are 30 days old and whose sandbox is gone. */
void csn_audit_sweep(void);
