/* error.c: csn_error and its public accessors.
 *
 * Invariants: setting an error always succeeds. Without memory *err becomes a static error that
 * csn_error_free ignores, and additions (wrap, note, advise, deny) that cannot be stored are
 * dropped. *err is not read before it is written, since a caller may leave it uninitialised:
 * additions read it only if their status says that it was set. Messages may contain text of an
 * attacker; the code that formats them quotes and escapes it. */
#include "base/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "caisson/backend.h"

#ifndef CSN_VERSION
#define CSN_VERSION "unknown"
#endif

struct csn_error {
    csn_status code;
    int errnum;
    char *msg; /* NULL only in the static one */
    char *op;  /* or NULL, as all below */
    char *path;
    char *hint;
    csn_denial *denial; /* one block: the struct, then its texts */
};

/* Used when memory is exhausted. */
static csn_error oom = {.code = CSN_NOMEM, .errnum = ENOMEM};

/* ---- formatting and storing ---- */

/* malloc'd text, or NULL when out of memory. */
__attribute__((format(printf, 1, 0))) static char *format(const char *fmt, va_list ap)
{
    char *text = NULL;

    return vasprintf(&text, fmt, ap) < 0 ? NULL : text;
}

#define TOO_MANY_HERE "the limit of open descriptors of this process (RLIMIT_NOFILE) is too low"
#define TOO_MANY_ALL  "the limit of open files of this system (fs.file-max) is reached"

/* The C library's texts of EMFILE and ENFILE do not say which limit to raise. */
const char *csn_errno_text(int errnum)
{
    if (errnum == EMFILE)
        return TOO_MANY_HERE;
    if (errnum == ENFILE)
        return TOO_MANY_ALL;
#ifdef __GLIBC__
    const char *text = (strerrordesc_np)(errnum);
#else
    const char *text = (strerror)(errnum); /* musl returns constants */
#endif
    return text ? text : "unknown error";
}

/* The hint for a message with one of the two texts above; NULL for every other message. */
static const char *limit_hint(const char *msg)
{
    if (strstr(msg, TOO_MANY_HERE))
        return "raise the limit: ulimit -n 256, or more";
    return strstr(msg, TOO_MANY_ALL) ? "raise the limit: sysctl fs.file-max" : NULL;
}

/* The text of errnum, except for two values to which callers give their own meaning. */
static const char *errno_text(int errnum)
{
    if (errnum == EXDEV)
        return csn_status_text(CSN_OUTSIDE);
    return errnum == EMEDIUMTYPE ? "not a regular file" : csn_errno_text(errnum);
}

/* Takes msg, which may be NULL when formatting it failed. */
static csn_status put(csn_error **err, csn_status code, int errnum, char *msg)
{
    csn_autofree char *owned = msg;

    if (!err)
        return code;
    csn_error *e = owned ? calloc(1, sizeof(*e)) : NULL;
    if (!e) {
        *err = &oom;
        return code;
    }
    *e = (csn_error){.code = code, .errnum = errnum, .msg = CSN_STEAL(owned)};
    const char *hint = limit_hint(e->msg);
    e->hint = hint ? strdup(hint) : NULL;
    *err = e;
    return code;
}

/* The error that an addition may change, or NULL. */
static csn_error *open_error(csn_status st, csn_error **err)
{
    return st < 0 && err && *err && (*err)->msg ? *err : NULL;
}

csn_status csn_fail(csn_error **err, csn_status code, const char *fmt, ...)
{
    va_list ap;

    if (!err)
        return code;
    va_start(ap, fmt);
    char *msg = format(fmt, ap);
    va_end(ap);
    return put(err, code, 0, msg);
}

csn_status csn_error_set(csn_error **err, csn_status code, const char *fmt, ...)
{
    va_list ap;

    if (!err)
        return code;
    va_start(ap, fmt);
    char *msg = format(fmt, ap);
    va_end(ap);
    return put(err, code, 0, msg);
}

csn_status csn_fail_errno(csn_error **err, int errnum, const char *fmt, ...)
{
    csn_status code = csn_status_of_errno(errnum);
    char *msg = NULL;
    va_list ap;

    if (!err)
        return code;
    va_start(ap, fmt);
    csn_autofree char *head = format(fmt, ap);
    va_end(ap);
    if (!head || asprintf(&msg, "%s: %s", head, errno_text(errnum)) < 0)
        msg = NULL;
    return put(err, code, errnum, msg);
}

/* Without memory the message stays unchanged. */
csn_status csn_wrap(csn_status st, csn_error **err, const char *fmt, ...)
{
    csn_error *e = open_error(st, err);
    char *joined = NULL;
    va_list ap;

    if (!e)
        return st;
    va_start(ap, fmt);
    csn_autofree char *head = format(fmt, ap);
    va_end(ap);
    if (!head || asprintf(&joined, "%s: %s", head, e->msg) < 0)
        return st;
    free(e->msg);
    e->msg = joined;
    e->code = st;
    return st;
}

/* ---- additions ---- */

csn_status csn_error_note(csn_status st, csn_error **err, const char *op, const char *path)
{
    csn_error *e = open_error(st, err);

    if (e && op && !e->op)
        e->op = strdup(op);
    if (e && path && !e->path)
        e->path = strdup(path);
    return st;
}

/* Unlike op and path, the latest hint wins: the outer layers know what the user can change. But
 * where a limit of descriptors is the cause, only raising it helps. */
csn_status csn_error_advise(csn_status st, csn_error **err, const char *fmt, ...)
{
    csn_error *e = open_error(st, err);
    va_list ap;

    if (!e || limit_hint(e->msg))
        return st;
    va_start(ap, fmt);
    char *hint = format(fmt, ap);
    va_end(ap);
    if (hint) {
        free(e->hint);
        e->hint = hint;
    }
    return st;
}

/* Bytes that a text takes in the block of csn_error_deny, NUL included. */
static size_t text_size(const char *s)
{
    return s ? strlen(s) + 1 : 0;
}

/* Copies s to *at and moves *at behind it. */
static const char *text_put(char **at, const char *s)
{
    char *copy = *at;

    if (!s)
        return NULL;
    *at = mempcpy(copy, s, strlen(s) + 1);
    return copy;
}

csn_status csn_error_deny(csn_status st, csn_error **err, const csn_denial *d)
{
    csn_error *e = open_error(st, err);

    if (!e || !d)
        return st;
    csn_denial *copy = malloc(sizeof(*copy) + text_size(d->op) + text_size(d->target) +
                              text_size(d->resolved) + text_size(d->rule) +
                              text_size(d->source) + text_size(d->hint));
    if (!copy)
        return st;
    char *at = (char *)(copy + 1);
    copy->op = text_put(&at, d->op);
    copy->target = text_put(&at, d->target);
    copy->resolved = text_put(&at, d->resolved);
    copy->rule = text_put(&at, d->rule);
    copy->source = text_put(&at, d->source);
    copy->hint = text_put(&at, d->hint);
    free(e->denial);
    e->denial = copy;
    return st;
}

/* malloc'd text with every `from` replaced, or NULL when there is none or no memory. */
static char *replace_all(const char *text, const char *from, const char *to)
{
    size_t from_len = strlen(from), to_len = strlen(to), hits = 0;

    for (const char *p = text; (p = strstr(p, from)) != NULL; p += from_len)
        hits++;
    char *out = hits ? malloc(strlen(text) + hits * to_len + 1) : NULL;
    if (!out)
        return NULL;
    char *at = out;
    for (const char *hit; (hit = strstr(text, from)) != NULL; text = hit + from_len) {
        at = mempcpy(at, text, (size_t)(hit - text));
        at = mempcpy(at, to, to_len);
    }
    memcpy(at, text, strlen(text) + 1);
    return out;
}

csn_status csn_error_rephrase(csn_status st, csn_error **err, const char *from, const char *to)
{
    csn_error *e = open_error(st, err);

    if (!e || !from || !to || !*from || strcmp(from, to) == 0)
        return st;
    char *msg = replace_all(e->msg, from, to);
    if (msg) {
        free(e->msg);
        e->msg = msg;
    }
    if (e->denial && e->denial->target && strcmp(e->denial->target, from) == 0) {
        csn_denial d = *e->denial;
        d.target = to;
        return csn_error_deny(st, err, &d);
    }
    return st;
}

void csn_error_replace_start(csn_error *err, size_t len, const char *to)
{
    char *msg = NULL;

    if (!err || !err->msg || strlen(err->msg) < len ||
        asprintf(&msg, "%s%s", to, err->msg + len) < 0)
        return;
    free(err->msg);
    err->msg = msg;
}

/* ---- statuses ---- */

/* Grouped by what the caller can do about it. */
csn_status csn_status_of_errno(int errnum)
{
    switch (errnum) {
    case ENOENT:
        return CSN_NOT_FOUND;
    case EXDEV: /* from openat2 with RESOLVE_BENEATH: the path leaves the root */
        return CSN_OUTSIDE;
    case EEXIST:
        return CSN_EXISTS;
    case ENOTEMPTY:
        return CSN_CONFLICT;
    case ENOTDIR:
    case EISDIR:
    case ENXIO: /* open of a fifo without a reader, or of a socket */
    case ENODEV:
    case EMEDIUMTYPE: /* set by os/: opened, but not a regular file */
    case ESPIPE:
        return CSN_WRONG_TYPE;
    case EACCES:
    case EPERM:
    case EROFS:
        return CSN_DENIED;
    case ELOOP:
    case ENAMETOOLONG:
    case EINVAL:
    case EILSEQ:
        return CSN_INVALID;
    case EFBIG:
    case E2BIG:
    case EOVERFLOW:
        return CSN_TOO_LARGE;
    case EBUSY:
    case EAGAIN:
    case ECONNREFUSED:
    case ECONNRESET:
    case EPIPE:
        return CSN_UNAVAILABLE;
    case ETIMEDOUT:
        return CSN_TIMEOUT;
    case ECANCELED:
        return CSN_CANCELLED;
    case ENOSYS:
    case EOPNOTSUPP:
        return CSN_UNSUPPORTED;
    case ENOMEM:
        return CSN_NOMEM;
    default:
        return CSN_IO;
    }
}

const char *csn_status_name(csn_status s)
{
    switch (s) {
#define CSN_X(name, num, word, http, text)                                                     \
    case CSN_##name:                                                                           \
        return word;
        CSN_STATUS_MAP(CSN_X)
#undef CSN_X
    }
    return "internal"; /* a number from a newer library */
}

const char *csn_status_text(csn_status s)
{
    switch (s) {
#define CSN_X(name, num, word, http, text)                                                     \
    case CSN_##name:                                                                           \
        return text;
        CSN_STATUS_MAP(CSN_X)
#undef CSN_X
    }
    return "unknown status";
}

int csn_status_http(csn_status s)
{
    switch (s) {
#define CSN_X(name, num, word, http, text)                                                     \
    case CSN_##name:                                                                           \
        return http;
        CSN_STATUS_MAP(CSN_X)
#undef CSN_X
    }
    return 500;
}

/* ---- accessors ---- */

const char *csn_version(void)
{
    return CSN_VERSION;
}

csn_status csn_error_code(const csn_error *e)
{
    return e ? e->code : CSN_OK;
}

const char *csn_error_message(const csn_error *e)
{
    return e && e->msg ? e->msg : csn_status_text(csn_error_code(e));
}

const char *csn_error_op(const csn_error *e)
{
    return e ? e->op : NULL;
}

const char *csn_error_path(const csn_error *e)
{
    return e ? e->path : NULL;
}

const char *csn_error_hint(const csn_error *e)
{
    return e ? e->hint : NULL;
}

int csn_error_errno(const csn_error *e)
{
    return e ? e->errnum : 0;
}

const csn_denial *csn_error_denial(const csn_error *e)
{
    return e && (e->code == CSN_DENIED || e->code == CSN_OUTSIDE) ? e->denial : NULL;
}

void csn_error_free(csn_error *e)
{
    if (!e || !e->msg) /* not by address: each module has its own static error */
        return;
    free(e->msg);
    free(e->op);
    free(e->path);
    free(e->hint);
    free(e->denial);
    free(e);
}
