/* audit.c: appends one line per operation to the audit log.
 *
 * Threads and processes may append at the same time. Invariants: a line is appended under flock
 * with the hash of the line before; a damaged log is continued and never repaired, so that
 * csn_audit_verify finds the damage; a partial line is removed and reported. */
#include "core/audit.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/json_read.h"
#include "base/limits.h"
#include "base/path.h"
#include "core/audit_chain.h"
#include "core/audit_in_flight.h"
#include "core/audit_space.h"
#include "os/statedir.h"

struct csn_audit {
    char *id;
    csn_audit_place place;
    bool default_place;
    bool fresh;           /* the sandbox is being created: no other process uses the log */
    pthread_mutex_t lock; /* guards what follows */
    int fd, head_fd;      /* -1: not open, or (head) lost */
    csn_audit_head last;  /* last known head; the head file takes precedence */
    csn_audit_head_text written; /* text of the head file as this handle wrote it */
    csn_audit_in_flight in_flight;
    csn_audit_space space;
};

static bool is_default(const char *place)
{
    return !place || !place[0];
}

/* Opens the directory of a log at a path of the caller; it stays open. */
static csn_status open_custom(csn_audit *a, const char *place, csn_error **err)
{
    csn_autofree char *dir = csn_path_dir(place);
    csn_autofree char *shown = csn_path_printable(place);

    if (!dir)
        return csn_fail(err, CSN_NOMEM, "audit log");
    int fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return csn_fail_errno(err, errno, "audit log %s", shown ? shown : "");
    int rc = csn_audit_place_set(&a->place, fd, csn_path_base(place));
    if (rc != 0) {
        close(fd);
        return csn_fail_errno(err, rc, "audit log %s", shown ? shown : "");
    }
    return CSN_OK;
}

/* Creates no file: the first event creates it. */
csn_status csn_audit_open(const char *id, const char *place, csn_audit **ret, csn_error **err)
{
    if (place && strcmp(place, "none") == 0) {
        *ret = NULL;
        return CSN_OK;
    }
    if (!csn_name_valid(id))
        return csn_fail(err, CSN_INVALID, "audit log: not the id of a sandbox");
    csn_audit *a = calloc(1, sizeof(*a));
    if (!a)
        return csn_fail(err, CSN_NOMEM, "audit log");
    a->fd = a->head_fd = a->place.dir = a->space.fd = -1;
    a->default_place = is_default(place);
    pthread_mutex_init(&a->lock, NULL);
    a->id = strdup(id);
    csn_status st = a->id ? CSN_OK : csn_fail(err, CSN_NOMEM, "audit log");
    if (st == CSN_OK && !a->default_place)
        st = open_custom(a, place, err);
    if (st < 0) {
        csn_audit_close(a);
        return st;
    }
    *ret = a;
    return CSN_OK;
}

static void close_files(csn_audit *a)
{
    csn_audit_space_close(&a->space);
    if (a->fd >= 0)
        close(a->fd);
    if (a->head_fd >= 0)
        close(a->head_fd);
    a->fd = a->head_fd = -1;
}

void csn_audit_close(csn_audit *a)
{
    if (!a)
        return;
    close_files(a);
    csn_audit_place_close(&a->place);
    pthread_mutex_destroy(&a->lock);
    free(a->id);
    free(a);
}

/* ---- files ------------------------------------------------------------------------------ */

/* Opens the directory and sets the names, once. */
static int open_place(csn_audit *a)
{
    char file[CSN_AUDIT_NAME_MAX];

    if (a->place.dir >= 0)
        return 0;
    int dir = csn_statedir_open(CSN_DIR_STATE, "audit", NULL);
    if (dir < 0)
        return -dir;
    snprintf(file, sizeof(file), "%s.jsonl", a->id);
    int rc = csn_audit_place_set(&a->place, dir, file);
    if (rc != 0) {
        close(dir);
        a->place.dir = -1;
    }
    return rc;
}

/* Creates the head before the log, so a log without head was tampered with. link(2) publishes
 * it complete: another process may read it and append at once. */
static int make_head(csn_audit *a)
{
    char tmp[CSN_AUDIT_NAME_MAX];

    if (a->fresh) { /* no other process knows this sandbox yet */
        csn_autofd int fd =
            csn_audit_open_at(&a->place, a->place.head, O_RDWR | O_CREAT | O_EXCL);
        int rc = fd < 0 ? -fd : csn_audit_head_write(fd, &a->last, &a->written);
        if (rc == 0)
            a->head_fd = csn_steal_fd(&fd);
        if (rc != EEXIST)
            return rc;
    }
    snprintf(tmp, sizeof(tmp), ".%ld.%ld.head", (long)getpid(), (long)gettid());
    (void)unlinkat(a->place.dir, tmp, 0); /* left by an earlier process with this pid */
    int fd = csn_audit_open_at(&a->place, tmp, O_RDWR | O_CREAT | O_EXCL);
    if (fd < 0)
        return -fd;
    int rc = csn_audit_head_write(fd, &a->last, &a->written);
    close(fd);
    if (rc == 0 && linkat(a->place.dir, tmp, a->place.dir, a->place.head, 0) < 0)
        rc = errno == EEXIST ? 0 : errno;
    (void)unlinkat(a->place.dir, tmp, 0);
    return rc;
}

static int open_files(csn_audit *a)
{
    if (a->fd >= 0)
        return 0;
    int rc = open_place(a);
    if (rc != 0)
        return rc;
    int fd = a->fresh && a->last.lines == 0 /* no log exists yet */
                 ? -ENOENT
                 : csn_audit_open_at(&a->place, a->place.log, O_RDWR | O_APPEND);
    if (fd == -ENOENT) {
        rc = make_head(a);
        if (rc != 0)
            return rc;
        fd = csn_audit_open_at(&a->place, a->place.log, O_RDWR | O_APPEND | O_CREAT);
    }
    if (fd < 0)
        return -fd;
    a->fd = fd;
    if (a->head_fd < 0)
        a->head_fd = csn_audit_open_at(&a->place, a->place.head, O_RDWR);
    csn_audit_use_mark(a->head_fd);
    csn_audit_in_flight_renew(&a->in_flight, a->head_fd);
    return 0;
}

/* Continues after the last line of a log without head. Creates no new head. */
static int recover_tail(csn_audit *a, uint64_t size)
{
    char text[CSN_AUDIT_LINE_MAX + 1];
    CSN_CLEANUP(csn_jval_freep) csn_jval *v = NULL;
    size_t want = size < CSN_AUDIT_LINE_MAX ? (size_t)size : CSN_AUDIT_LINE_MAX;
    ssize_t n = pread(a->fd, text, want, (off_t)(size - want));
    const char *hash = NULL;

    if (n <= 1 || text[n - 1] != '\n')
        return 0;
    const char *start = memrchr(text, '\n', (size_t)n - 1);
    start = start ? start + 1 : text;
    csn_status st = csn_json_parse(start, (size_t)(text + n - 1 - start), "line", &v, NULL);
    if (st == CSN_NOMEM)
        return ENOMEM;
    if (st < 0 || csn_jget_str(v, "sha256", &hash, NULL) < 0 || !hash ||
        strlen(hash) != CSN_HASH_HEX - 1)
        return 0;
    (void)csn_jget_u64(v, "seq", &a->last.lines, NULL);
    memcpy(a->last.hash, hash, CSN_HASH_HEX);
    return 0;
}

/* Accepts a line whose writer died before it updated the head. The operation has its line, so
 * it is not in flight any more. */
static int adopt_line(csn_audit *a, uint64_t size)
{
    char text[CSN_AUDIT_LINE_MAX + 1];
    const char *reason = NULL;
    csn_audit_line_info info = {.effect = false};
    uint64_t more = size - a->last.bytes;

    if (more > CSN_AUDIT_LINE_MAX ||
        pread(a->fd, text, (size_t)more, (off_t)a->last.bytes) != (ssize_t)more ||
        memchr(text, '\n', (size_t)more) != text + more - 1)
        return 0;
    int rc = csn_audit_line_check(text, (size_t)more - 1, a->default_place ? a->id : NULL,
                                  &a->last, &info, &reason);
    if (rc != 0 || reason)
        return rc;
    csn_audit_head_ends(&a->last, &info);
    return csn_audit_head_write(a->head_fd, &a->last, &a->written);
}

/* With the lock held: sets a->last to the last line of the log. *ret_same: no other handle has
 * appended since. */
static int catch_up(csn_audit *a, uint64_t size, bool *ret_same)
{
    csn_audit_head head;

    *ret_same =
        size == a->last.bytes && a->head_fd >= 0 && csn_audit_head_is(a->head_fd, &a->written);
    if (*ret_same)
        return 0;
    int rc = a->head_fd >= 0 ? csn_audit_head_read(a->head_fd, &head) : ENOENT;
    if (rc == 0) {
        /* An old head that was restored must not lead to repeated sequence numbers. */
        if (head.lines >= a->last.lines)
            a->last = head;
        else if ((rc = csn_audit_head_write(a->head_fd, &a->last, &a->written)) != 0)
            return rc; /* with another line it would be two behind */
        return size > a->last.bytes ? adopt_line(a, size) : 0;
    }
    if (rc == ENOENT || rc == EBADMSG) {
        if (a->head_fd >= 0)
            close(a->head_fd);
        a->head_fd = -1;
        return recover_tail(a, size);
    }
    return rc;
}

/* ---- appending --------------------------------------------------------------------------- */

/* Ends a partial line of another writer. */
static int end_torn_line(int fd, uint64_t *size)
{
    char last = '\n';

    if (*size == 0 || pread(fd, &last, 1, (off_t)*size - 1) != 1 || last == '\n')
        return 0;
    if (write(fd, "\n", 1) != 1)
        return errno;
    ++*size;
    return 0;
}

/* Writes the whole line, or truncates the log to its previous size. */
static int write_line(int fd, const csn_buf *line, uint64_t size)
{
    ssize_t n = write(fd, line->data, line->len);
    int rc = n < 0 ? errno : ENOSPC;

    if (n == (ssize_t)line->len)
        return 0;
    if (n > 0 && ftruncate(fd, (off_t)size) < 0)
        rc = errno;
    return rc;
}

/* The same, with the space that was kept free if the disk is full. */
static int write_line_anyway(csn_audit *a, const csn_buf *line, uint64_t size)
{
    int rc = write_line(a->fd, line, size);

    if ((rc == ENOSPC || rc == EDQUOT) && csn_audit_space_release(&a->space))
        rc = write_line(a->fd, line, size);
    return rc;
}

/* Writes the line, then the head. A crash in between leaves a head that is one line behind,
 * which the next writer and csn_audit_verify accept. */
static int put_line(csn_audit *a, const csn_audit_event *e, uint64_t *size)
{
    csn_autobuf line;
    char hash[CSN_HASH_HEX];

    csn_buf_init(&line, CSN_AUDIT_LINE_MAX);
    int rc = csn_audit_line_compose(a->id, &a->last, e, &line);
    if (rc == 0)
        rc = csn_audit_line_seal(&line, hash);
    if (rc == 0)
        rc = e->begun || e->done ? write_line_anyway(a, &line, *size)
                                 : write_line(a->fd, &line, *size);
    if (rc != 0)
        return rc;
    *size += line.len;
    a->last.lines++;
    a->last.bytes = *size;
    memcpy(a->last.hash, hash, sizeof(hash));
    csn_audit_head_ends(&a->last, &(csn_audit_line_info){.effect = e->begun, .gap = e->count});
    return a->head_fd >= 0 ? csn_audit_head_write(a->head_fd, &a->last, &a->written) : 0;
}

/* Sets a->last to the end of the log, and appends a gap line for operations that are lost. If
 * that line does not fit, they stay counted for the next writer. */
static int bring_up_to_date(csn_audit *a, uint64_t *size)
{
    bool same;
    int rc = catch_up(a, *size, &same);

    if (rc == 0 && !same)
        rc = end_torn_line(a->fd, size);
    if (rc != 0 || a->last.open == a->in_flight.count)
        return rc;
    uint64_t lost = csn_audit_in_flight_lost(a->head_fd, a->last.open, a->in_flight.count);
    const csn_audit_event gap = {
        .op = CSN_AUDIT_GAP, .count = lost, .status = CSN_IO, .done = true};
    if (lost > 0)
        (void)put_line(a, &gap, size);
    return 0;
}

static int append_locked(csn_audit *a, const csn_audit_event *e, uint64_t size)
{
    int rc = bring_up_to_date(a, &size);

    if (rc == 0)
        rc = put_line(a, e, &size);
    if (rc != 0 && e->done && !e->begun && a->head_fd >= 0) {
        a->last.open++; /* without a lock: lost */
        (void)csn_audit_head_write(a->head_fd, &a->last, &a->written);
    }
    return rc;
}

static int begin_locked(csn_audit *a, const csn_audit_event *e, uint64_t size)
{
    (void)e;
    int rc = bring_up_to_date(a, &size);

    if (rc == 0)
        rc = csn_audit_space_reserve(&a->space, &a->place, a->default_place, a->head_fd);
    if (rc != 0)
        return rc;
    csn_audit_in_flight_add(&a->in_flight, a->head_fd);
    a->last.open++;
    if (a->head_fd >= 0)
        rc = csn_audit_head_write(a->head_fd, &a->last, &a->written);
    if (rc != 0) {
        a->last.open--;
        csn_audit_in_flight_drop(&a->in_flight, a->head_fd);
    }
    return rc;
}

static int cancel_locked(csn_audit *a, const csn_audit_event *e, uint64_t size)
{
    (void)e;
    int rc = bring_up_to_date(a, &size);

    if (rc != 0 || a->last.open == 0)
        return rc;
    a->last.open--;
    return a->head_fd >= 0 ? csn_audit_head_write(a->head_fd, &a->last, &a->written) : 0;
}

/* Opens and locks the log; returns its size. Times are not requested: the kernel would have to
 * update the inode at the next write (multigrain timestamps). */
static int lock_log(csn_audit *a, uint64_t *ret_size)
{
    struct statx st;

    for (bool again = false;; again = true) {
        int rc = open_files(a);
        if (rc != 0)
            return rc;
        while (flock(a->fd, LOCK_EX) < 0)
            if (errno != EINTR)
                return errno;
        if (statx(a->fd, "", AT_EMPTY_PATH, STATX_SIZE | STATX_NLINK, &st) < 0) {
            rc = errno;
            flock(a->fd, LOCK_UN);
            return rc;
        }
        if (st.stx_nlink > 0 || again)
            break;
        close_files(a); /* removed: the next try creates a log in which verify finds the gap */
    }
    *ret_size = st.stx_size;
    return 0;
}

/* What the caller can do about it. A log that is not the default one has been chosen. */
static csn_status advise(csn_status st, const csn_audit *a, int rc, csn_error **err)
{
    const char *what = rc == ENOSPC || rc == EDQUOT ? "free space there" : "make it writable";

    if (!a->fresh)
        return csn_error_advise(st, err, "%s", what);
    return csn_error_advise(st, err,
                            "%s, set XDG_STATE_HOME to another directory, or start without a "
                            "log: --audit none",
                            what);
}

/* The message names the directory, which helps a caller without a usable home. */
static csn_status log_failed(const csn_audit *a, int rc, csn_error **err)
{
    csn_autofree char *dir =
        a->default_place ? csn_statedir_path(CSN_DIR_STATE, "audit") : NULL;

    if (rc == ENOMEM)
        return csn_fail(err, CSN_NOMEM, "audit log of %s", a->id);
    if (a->place.dir < 0 && rc != ENOSPC && rc != EDQUOT && rc != EROFS)
        return csn_wrap(csn_statedir_fail(err, rc, CSN_DIR_STATE, "audit"), err,
                        "audit log of %s", a->id);
    csn_status st = csn_fail(err, CSN_IO, "audit log of %s: %s: %s", a->id,
                             dir ? dir : a->place.log, strerrordesc_np(rc));
    return rc == ENOSPC || rc == EDQUOT || rc == EROFS || rc == EACCES ? advise(st, a, rc, err)
                                                                       : st;
}

/* Calls fn with the log open, locked and measured. The mutex excludes threads of this handle,
 * flock other handles and processes. */
static int with_log(csn_audit *a, const csn_audit_event *e,
                    int (*fn)(csn_audit *a, const csn_audit_event *e, uint64_t size))
{
    uint64_t size = 0;
    int rc = lock_log(a, &size);

    if (rc != 0)
        return rc;
    rc = fn(a, e, size);
    flock(a->fd, LOCK_UN);
    return rc;
}

csn_status csn_audit_begin(csn_audit *a, csn_error **err)
{
    if (!a)
        return CSN_OK;
    pthread_mutex_lock(&a->lock);
    int rc = with_log(a, NULL, begin_locked);
    pthread_mutex_unlock(&a->lock);
    return rc == 0 ? CSN_OK : log_failed(a, rc, err);
}

csn_status csn_audit_append(csn_audit *a, const csn_audit_event *e, csn_error **err)
{
    if (!a)
        return CSN_OK;
    pthread_mutex_lock(&a->lock);
    int rc = with_log(a, e, append_locked);
    if (e->begun)
        csn_audit_in_flight_drop(&a->in_flight, a->head_fd);
    pthread_mutex_unlock(&a->lock);
    return rc == 0 ? CSN_OK : log_failed(a, rc, err);
}

void csn_audit_cancel(csn_audit *a)
{
    if (!a)
        return;
    pthread_mutex_lock(&a->lock);
    (void)with_log(a, NULL, cancel_locked);
    csn_audit_in_flight_drop(&a->in_flight, a->head_fd);
    pthread_mutex_unlock(&a->lock);
}

csn_status csn_audit_prepare(csn_audit *a, csn_error **err)
{
    if (a)
        a->fresh = a->default_place;
    return csn_audit_begin(a, err);
}

void csn_audit_forget(csn_audit *a)
{
    if (!a || a->place.dir < 0)
        return;
    if (!a->fresh || a->last.lines > 0) {
        if (a->in_flight.count > 0)
            csn_audit_cancel(a);
        return;
    }
    pthread_mutex_lock(&a->lock);
    (void)unlinkat(a->place.dir, a->place.log, 0);
    (void)unlinkat(a->place.dir, a->place.head, 0);
    a->in_flight.count = 0;
    a->last = (csn_audit_head){.lines = 0};
    close_files(a);
    pthread_mutex_unlock(&a->lock);
}

void csn_audit_retain(csn_audit *a, uint64_t keep, uint64_t max)
{
    if (a && a->default_place && a->place.dir >= 0)
        csn_audit_retain_in(a->place.dir, keep, max);
}
