/* audit_verify.c: csn_audit_read and csn_audit_verify read and check the log of a sandbox.
 *
 * The id or name is checked before it becomes a file name. The content of a log is untrusted:
 * lines are bounded, and the hash chain covers every byte. Invariants: verify reports the first
 * wrong line; a head that is exactly one line behind passes, because an interrupted writer
 * leaves it; a head that is missing, unreadable, ahead or further behind does not pass; an
 * operation that began and has no line is a gap, unless a process is still doing it. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/path.h"
#include "caisson/records.h"
#include "core/audit.h"
#include "core/audit_chain.h"
#include "core/audit_in_flight.h"
#include "core/result.h"
#include "core/state.h"
#include "os/statedir.h"

#define CHUNK    65536u
#define SUFFIX   ".jsonl"
#define LOST     "the caller was killed, or the log could not be written"
#define HEADLESS "the head file is missing or damaged, so a cut at the end would not show"

/* A log that was found, open for reading. */
typedef struct found {
    csn_audit_place place;
    char id[CSN_AUDIT_NAME_MAX];
    bool custom; /* at a path chosen by the owner; may contain lines of other sandboxes */
    int fd;      /* -1: only the head exists */
} found;

static void found_release(found *f)
{
    if (f->fd >= 0)
        close(f->fd);
    csn_audit_place_close(&f->place);
}

/* ---- finding ---------------------------------------------------------------------------- */

/* Opens the log (or at least its head) of `id` in the default directory. 0 or errno. */
static int find_default(const char *id, found *ret)
{
    char file[CSN_AUDIT_NAME_MAX];
    int dir = csn_statedir_find(CSN_DIR_STATE, "audit", NULL);

    if (dir < 0)
        return -dir;
    snprintf(file, sizeof(file), "%s" SUFFIX, id);
    found f = {.fd = -1};
    int rc = csn_audit_place_set(&f.place, dir, file);
    if (rc != 0) {
        close(dir);
        return rc;
    }
    f.fd = csn_audit_open_at(&f.place, f.place.log, O_RDONLY);
    if (f.fd < 0) {
        rc = -f.fd;
        if (rc != ENOENT ||
            faccessat(f.place.dir, f.place.head, F_OK, AT_SYMLINK_NOFOLLOW) < 0) {
            csn_audit_place_close(&f.place);
            return rc;
        }
        f.fd = -1;
    }
    snprintf(f.id, sizeof(f.id), "%s", id);
    *ret = f;
    return 0;
}

/* Opens the log at a path. 0 or errno. */
static int find_path(const char *path, found *ret)
{
    csn_autofree char *dir = csn_path_dir(path);
    found f = {.fd = -1, .custom = true};
    int dirfd = dir ? open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;

    if (dirfd < 0)
        return dir ? errno : ENOMEM;
    int rc = csn_audit_place_set(&f.place, dirfd, csn_path_base(path));
    if (rc == 0) {
        f.fd = csn_audit_open_at(&f.place, f.place.log, O_RDONLY);
        rc = f.fd < 0 ? -f.fd : 0;
    }
    if (rc == 0)
        *ret = f;
    else
        close(dirfd);
    return rc;
}

/* Opens the log at the path in the record of a detached sandbox. 0 or errno. */
static int find_custom(const char *id, found *ret)
{
    csn_state_meta *meta = NULL;
    int rc = ENOENT;

    if (csn_state_load(id, &meta, NULL) < 0)
        return ENOENT;
    const char *place = meta->config ? meta->config->audit : NULL;
    if (place && place[0] && strcmp(place, "none") != 0)
        rc = find_path(place, ret);
    if (rc == 0)
        snprintf(ret->id, sizeof(ret->id), "%s", id);
    csn_state_meta_free(meta);
    return rc;
}

/* Tries the text as an id first: logs outlive their sandboxes, and a name must not shadow an
 * id. */
static csn_status find_log(const char *id, found *ret, csn_error **err)
{
    if (!id || !csn_name_valid(id)) {
        csn_autofree char *shown = csn_path_printable(id ? id : "");
        return csn_fail(err, CSN_INVALID, "%s is not the id or name of a sandbox",
                        shown ? shown : "it");
    }
    int rc = find_default(id, ret);
    if (rc == 0)
        return CSN_OK;
    if (rc != ENOENT)
        return csn_wrap(csn_statedir_fail(err, rc, CSN_DIR_STATE, "audit"), err,
                        "audit log of %s", id);
    csn_autofree char *real = NULL;
    csn_status st = csn_state_lookup(id, &real, NULL);
    if (st == CSN_OK && csn_name_valid(real)) {
        rc = find_default(real, ret);
        if (rc == ENOENT)
            rc = find_custom(real, ret);
        if (rc == 0)
            return CSN_OK;
    }
    return csn_fail(err, CSN_NOT_FOUND, "there is no audit log of '%s'", id);
}

static csn_status find_file(const char *path, found *ret, csn_error **err)
{
    if (!path || !path[0])
        return csn_fail(err, CSN_INVALID, "audit log: no path given");
    int rc = find_path(path, ret);
    return rc == 0 ? CSN_OK : csn_fail_errno(err, rc, "audit log '%s'", path);
}

/* ---- lines ------------------------------------------------------------------------------ */

/* Receives a line without its newline; `whole` is false for a last line without newline and for
 * a line that is too long. Non-zero stops. */
typedef int (*line_fn)(void *ctx, const char *line, size_t len, bool whole);

/* Holds one chunk and one line in memory. */
static int each_line(int fd, line_fn fn, void *ctx)
{
    csn_autofree char *chunk = malloc(CHUNK);
    csn_autobuf line;
    off_t at = 0;
    int rc = chunk ? 0 : ENOMEM, stop = 0;

    csn_buf_init(&line, CSN_AUDIT_LINE_MAX);
    while (rc == 0 && !stop) {
        ssize_t n = pread(fd, chunk, CHUNK, at);
        if (n <= 0) {
            rc = n < 0 ? errno : 0;
            break;
        }
        at += n;
        for (const char *p = chunk, *end = chunk + n; p < end && rc == 0 && !stop;) {
            const char *nl = memchr(p, '\n', (size_t)(end - p));
            size_t len = (size_t)((nl ? nl : end) - p);
            rc = csn_buf_append(&line, p, len);
            if (rc == ENOSPC) { /* csn_audit_append writes no line that long */
                fn(ctx, line.data, line.len, false);
                return 0;
            }
            p += len + (nl != NULL);
            if (nl && rc == 0) {
                stop = fn(ctx, line.data ? line.data : "", line.len, true);
                line.len = 0;
            }
        }
    }
    if (rc == 0 && !stop && line.len > 0)
        fn(ctx, line.data, line.len, false);
    return rc;
}

typedef struct reader {
    csn_line_fn fn;
    void *ctx;
} reader;

static int read_one(void *ctx, const char *line, size_t len, bool whole)
{
    const reader *r = ctx;

    (void)whole;
    return r->fn(r->ctx, line, len);
}

static void lock_shared(int fd)
{
    while (flock(fd, LOCK_SH) < 0 && errno == EINTR)
        ;
}

/* Releases `f`. Without the lock: the callback may be slow, and appends never change old
 * bytes. */
static csn_status read_found(found *f, const char *what, csn_line_fn fn, void *ctx,
                             csn_error **err)
{
    reader r = {.fn = fn, .ctx = ctx};

    int rc = f->fd >= 0 ? each_line(f->fd, read_one, &r) : 0;
    found_release(f);
    return rc == 0 ? CSN_OK : csn_fail_errno(err, rc, "read the audit log of %s", what);
}

csn_status csn_audit_read(const char *id, csn_line_fn fn, void *ctx, csn_error **err)
{
    found f = {0};

    if (!fn)
        return csn_fail(err, CSN_INVALID, "audit: no function to give the lines to");
    csn_status st = find_log(id, &f, err);
    return st < 0 ? st : read_found(&f, id, fn, ctx, err);
}

csn_status csn_audit_read_file(const char *path, csn_line_fn fn, void *ctx, csn_error **err)
{
    found f = {0};

    if (!fn)
        return csn_fail(err, CSN_INVALID, "audit: no function to give the lines to");
    csn_status st = find_file(path, &f, err);
    return st < 0 ? st : read_found(&f, path, fn, ctx, err);
}

/* ---- verify ----------------------------------------------------------------------------- */

typedef struct checker {
    const char *sandbox;
    csn_audit_head now;        /* after the last good line */
    char before[CSN_HASH_HEX]; /* hash of the line before that */
    csn_audit_line_info last;  /* what that line says */
    uint64_t gaps, gap_line;   /* operations without a line, and the first line that says so */
    const char *reason;
    int error; /* errno: the log could not be checked */
} checker;

/* Stops at the first bad line: every later line would fail too. */
static int check_one(void *ctx, const char *line, size_t len, bool whole)
{
    checker *c = ctx;
    csn_audit_head last = c->now;

    if (whole)
        c->error = csn_audit_line_check(line, len, c->sandbox, &c->now, &c->last, &c->reason);
    else
        c->reason = "the line has no end: it was cut, or is longer than any line of ours";
    if (c->error == 0 && !c->reason) {
        memcpy(c->before, last.hash, sizeof(c->before));
        if (c->last.gap > 0 && c->gaps == 0)
            c->gap_line = c->now.lines;
        c->gaps += c->last.gap;
    }
    return c->error != 0 || c->reason != NULL;
}

/* Adds the operations that the head counts and that no process is doing. A head that is one
 * line behind still counts the operation of that line. */
static void count_lost(checker *c, int fd, csn_audit_head *head)
{
    if (head->lines < c->now.lines)
        csn_audit_head_ends(head, &c->last);
    c->gaps += csn_audit_in_flight_lost(fd, head->open, 0);
}

/* Compares the head with the lines read. If they differ, sets the reason and the bad line. */
static void check_head(checker *c, const found *f, uint64_t *bad)
{
    csn_audit_head head;
    csn_autofd int fd = csn_audit_open_at(&f->place, f->place.head, O_RDONLY);

    *bad = c->now.lines > 0 ? c->now.lines : 1;
    int rc = fd < 0 ? EBADMSG : csn_audit_head_read(fd, &head);
    if (rc == ENOMEM) {
        c->error = rc;
    } else if (rc != 0) {
        c->reason = HEADLESS;
    } else if (head.lines > c->now.lines) {
        *bad = c->now.lines + 1;
        c->reason = "lines were cut from the end: the head file knows of more";
    } else if (head.lines == c->now.lines) {
        if (strcmp(head.hash, c->now.hash) != 0 || head.bytes != c->now.bytes)
            c->reason = "the head file names another last line";
    } else if (head.lines + 1 != c->now.lines || strcmp(head.hash, c->before) != 0) {
        *bad = head.lines + 1;
        c->reason = "lines were added that the head file does not know";
    }
    if (rc == 0 && !c->reason)
        count_lost(c, fd, &head);
}

static csn_status make_report(const checker *c, uint64_t bad, csn_audit_report **ret,
                              csn_error **err)
{
    csn_audit_report *r = csn_result_new(sizeof(*r));

    if (!r)
        return csn_fail(err, CSN_NOMEM, "audit report");
    r->lines = c->now.lines;
    r->bad_line = c->reason ? bad : c->gap_line;
    r->reason = c->reason; /* a string literal */
    r->gaps = c->gaps;
    if (!c->reason && c->gaps > 0)
        r->reason = csn_arena_printf(csn_result_arena(r),
                                     "%" PRIu64 " operation%s no recorded result: " LOST,
                                     c->gaps, c->gaps == 1 ? " has" : "s have");
    if (c->gaps > 0 && !r->reason) {
        csn_result_free(r);
        return csn_fail(err, CSN_NOMEM, "audit report");
    }
    r->ok = r->reason == NULL;
    *ret = r;
    return CSN_OK;
}

/* Releases `f`. Takes a shared lock: a log between the writes of a line and its head would look
 * damaged. */
static csn_status verify_found(found *f, const char *what, csn_audit_report **ret,
                               csn_error **err)
{
    checker c = {.sandbox = f->custom ? NULL : f->id};
    uint64_t bad = 0;
    int rc = 0;

    if (f->fd >= 0) {
        lock_shared(f->fd);
        rc = each_line(f->fd, check_one, &c);
    }
    if (c.reason)
        bad = c.now.lines + 1;
    else if (rc == 0 && c.error == 0)
        check_head(&c, f, &bad);
    rc = c.error != 0 ? c.error : rc;
    csn_status st = rc != 0 ? csn_fail_errno(err, rc, "read the audit log of %s", what)
                            : make_report(&c, bad, ret, err);
    found_release(f);
    return st;
}

csn_status csn_audit_verify(const char *id, csn_audit_report **ret, csn_error **err)
{
    found f = {0};

    if (!ret)
        return csn_fail(err, CSN_INVALID, "audit: no place for the report");
    csn_status st = find_log(id, &f, err);
    return st < 0 ? st : verify_found(&f, id, ret, err);
}

csn_status csn_audit_verify_file(const char *path, csn_audit_report **ret, csn_error **err)
{
    found f = {0};

    if (!ret)
        return csn_fail(err, CSN_INVALID, "audit: no place for the report");
    csn_status st = find_file(path, &f, err);
    return st < 0 ? st : verify_found(&f, path, ret, err);
}

void csn_audit_report_free(csn_audit_report *r)
{
    csn_result_free(r);
}
