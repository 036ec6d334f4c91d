/* error.h: set and extend a csn_error. */
#pragma once
#include "caisson/caisson.h"

/* The text of an errno for a message. It names the limit behind EMFILE and ENFILE; an error
 * whose message contains it has the hint to raise that limit, and csn_error_advise does not
 * replace that hint. */
const char *csn_errno_text(int errnum);
#undef strerrordesc_np
#define strerrordesc_np(errnum) csn_errno_text(errnum)

/* Set *err (when err is not NULL) and return `code`. */
csn_status csn_fail(csn_error **err, csn_status code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4), warn_unused_result));

/* As csn_fail, with the status of errnum (csn_status_of_errno) and ": <errno text>". */
csn_status csn_fail_errno(csn_error **err, int errnum, const char *fmt, ...)
    __attribute__((format(printf, 3, 4), warn_unused_result));

/* Prefix the message in *err with "<text>: ", set its code to `st` and return it. */
csn_status csn_wrap(csn_status st, csn_error **err, const char *fmt, ...)
    __attribute__((format(printf, 3, 4), warn_unused_result));

csn_status csn_status_of_errno(int errnum);

/* Add to an error that is already set; no-ops on NULL. They return `st`. Texts are copied. An
 * op or path that is already set stays. */
csn_status csn_error_note(csn_status st, csn_error **err, const char *op, const char *path);
csn_status csn_error_advise(csn_status st, csn_error **err, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* Copies all texts of the denial. */
csn_status csn_error_deny(csn_status st, csn_error **err, const csn_denial *d);
/* Replaces every `from` by `to` in the message and the denial's target: a backend reports the
 * resolved path, the caller expects the one it passed. */
csn_status csn_error_rephrase(csn_status st, csn_error **err, const char *from, const char *to);
/* Replaces the first `len` bytes of the message. */
void csn_error_replace_start(csn_error *err, size_t len, const char *to);
