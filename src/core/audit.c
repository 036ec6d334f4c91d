/* audit.c: appends one line per operation to the audit log.
 *
 * Threads and processes may append at the same time. Texts (paths, commands, names of
 * variables) are untrusted: they are escaped, truncated and stripped of secrets. Invariants: a
 * line is appended under flock with the hash of the line before; a damaged log is continued and
 * never repaired, so that csn_audit_verify finds the damage; a partial line is removed and
 * reported. */
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
#include "base/clock.h"
#include "base/error.h"
#include "base/json_read.h"
#include "base/json_write.h"
#include "base/limits.h"
#include "base/path.h"
#include "core/audit_chain.h"
#include "core/audit_net.h"
#include "core/redact.h"
#include "os/statedir.h"

#define TEXT_MAX  4096u /* encoded bytes of one text */
#define LIST_MAX  4096u /* of all arguments, and of all variable names, of one command */
#define SMALL_MAX 512u  /* rule, hash and other words */

struct csn_audit {
    char *id;
    csn_audit_place place;
    bool default_place;
    bool fresh;           /* the sandbox is being created: no other process uses the log */
    pthread_mutex_t lock; /* guards what follows */
    int fd, head_fd;      /* -1: not open, or (head) lost */
    csn_audit_head last;  /* last known head; the head file takes precedence */
    csn_audit_head_text written; /* text of the head file as this handle wrote it */
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
    a->fd = a->head_fd = a->place.dir = -1;
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

/* Accepts a line whose writer died before it updated the head. */
static int adopt_line(csn_audit *a, uint64_t size)
{
    char text[CSN_AUDIT_LINE_MAX + 1];
    const char *reason = NULL;
    uint64_t more = size - a->last.bytes;

    if (more > CSN_AUDIT_LINE_MAX ||
        pread(a->fd, text, (size_t)more, (off_t)a->last.bytes) != (ssize_t)more ||
        memchr(text, '\n', (size_t)more) != text + more - 1)
        return 0;
    return csn_audit_line_check(text, (size_t)more - 1, a->default_place ? a->id : NULL,
                                &a->last, &reason);
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

/* ---- one line --------------------------------------------------------------------------- */

/* Writes a JSON string of at most `max` encoded bytes; a longer text is truncated. */
static void put_cut(csn_json *j, const char *s, size_t max)
{
    size_t len = strnlen(s, max);

    if (len * 6 + 2 <= max) { /* fits even if every byte is escaped */
        csn_json_strn(j, s, len);
        return;
    }
    for (;;) {
        csn_autobuf text;
        csn_json one;
        csn_buf_init(&text, max + 2);
        csn_json_begin(&one, &text);
        csn_json_strn(&one, s, len);
        int rc = csn_json_end(&one);
        if (rc == 0)
            csn_json_raw(j, text.data, text.len);
        else if (rc == ENOSPC && len > 0) {
            len = len * 3 / 4;
            continue;
        } else
            csn_json_null(j);
        return;
    }
}

/* Redacts before truncating: a truncated secret would not be recognised. */
static void put_redacted(csn_json *j, const char *key, const char *s)
{
    csn_autofree char *clean = s ? csn_redact_line(s) : NULL;

    csn_json_key(j, key);
    if (clean)
        put_cut(j, clean, TEXT_MAX);
    else
        csn_json_null(j);
}

/* Writes one item of a list. Items share a budget in order, so the first ones (the command) are
 * always present. Returns false when the budget is used up. */
static bool put_item(csn_json *j, const char *s, size_t least, size_t *room)
{
    size_t before = j->out->len;

    if (*room < least) {
        csn_json_str(j, "...");
        return false;
    }
    put_cut(j, s, *room);
    size_t used = j->out->len - before;
    *room = used < *room ? *room - used : 0;
    return true;
}

static void put_argv(csn_json *j, const char *const *argv)
{
    size_t room = LIST_MAX;
    bool more = true;

    csn_json_key(j, "argv");
    csn_json_array(j);
    for (int i = 0; argv[i] && more; i++) {
        csn_autofree char *clean = csn_redact_arg(argv, i);
        more = put_item(j, clean ? clean : "", 16, &room);
    }
    csn_json_array_end(j);
}

/* Writes names only: values may be secrets. An entry without = is a name. */
static void put_env(csn_json *j, const char *const *env)
{
    size_t room = LIST_MAX;
    bool more = true;

    csn_json_key(j, "env");
    csn_json_array(j);
    for (; *env && more; env++) {
        char name[SMALL_MAX];
        size_t len = strcspn(*env, "=");
        snprintf(name, sizeof(name), "%.*s", (int)(len < SMALL_MAX ? len : SMALL_MAX), *env);
        more = put_item(j, name, strlen(name) + 16, &room);
    }
    csn_json_array_end(j);
}

/* Protected files that were moved, by the paths that they had. */
static void put_aside(csn_json *j, const csn_audit_event *e)
{
    size_t room = LIST_MAX, count = 0;
    bool more = true;

    for (size_t i = 0; i < e->denial_count && more; i++) {
        const csn_denial *d = &e->denials[i];
        if (!d->resolved || !d->target || !d->source ||
            strcmp(d->source, "protected by default") != 0)
            continue;
        if (count++ == 0) {
            csn_json_key(j, "aside");
            csn_json_array(j);
        }
        more = put_item(j, d->target, 16, &room);
    }
    if (count > 0)
        csn_json_array_end(j);
}

static void put_word(csn_json *j, const char *key, const char *s)
{
    csn_json_key(j, key);
    if (s)
        put_cut(j, s, SMALL_MAX);
    else
        csn_json_null(j);
}

/* Writes the fields in their documented order; prev is last, and csn_audit_line_seal adds the
 * hash. */
static int compose(const csn_audit *a, const csn_audit_event *e, csn_buf *line)
{
    char when[CSN_ISO_SIZE];
    csn_json j;
    bool denied = e->status == CSN_DENIED || e->status == CSN_OUTSIDE;

    csn_iso8601(csn_wall_ms() * 1000000, when);
    csn_json_begin(&j, line);
    csn_json_object(&j);
    csn_json_kuint(&j, "seq", a->last.lines + 1);
    csn_json_kstr(&j, "time", when);
    csn_json_kstr(&j, "sandbox", a->id);
    put_word(&j, "op", e->op);
    put_redacted(&j, "target", e->target);
    csn_json_key(&j, "args");
    csn_json_object(&j);
    if (e->argv)
        put_argv(&j, e->argv);
    if (e->env)
        put_env(&j, e->env);
    if (e->net)
        csn_audit_put_net(&j, e->net);
    csn_json_object_end(&j);
    csn_json_kstr(&j, "verdict", denied ? "deny" : "allow");
    put_word(&j, "rule", e->rule);
    csn_json_kstr(&j, "result", csn_status_name(e->status));
    if (e->has_exit_code)
        csn_json_kint(&j, "code", e->exit_code);
    if (e->killed_by)
        put_word(&j, "killed_by", e->killed_by);
    if (e->bytes)
        csn_json_kuint(&j, "bytes", e->bytes);
    if (e->hash)
        put_word(&j, "hash", e->hash);
    put_aside(&j, e);
    csn_json_key(&j, "duration_ms");
    csn_json_double(&j, (double)e->duration_ns / 1e6);
    csn_json_kstr(&j, "prev", a->last.hash);
    csn_json_object_end(&j);
    return csn_json_end(&j);
}

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

/* Writes the line, then the head. A crash in between leaves a head that is one line behind,
 * which the next writer and csn_audit_verify accept. */
static int append_locked(csn_audit *a, const csn_audit_event *e, uint64_t size)
{
    csn_autobuf line;
    char hash[CSN_HASH_HEX];
    bool same;
    int rc = catch_up(a, size, &same);

    csn_buf_init(&line, CSN_AUDIT_LINE_MAX);
    if (rc == 0)
        rc = compose(a, e, &line);
    if (rc == 0)
        rc = csn_audit_line_seal(&line, hash);
    if (rc == 0 && !same)
        rc = end_torn_line(a->fd, &size);
    if (rc == 0)
        rc = write_line(a->fd, &line, size);
    if (rc != 0)
        return rc;
    a->last.lines++;
    a->last.bytes = size + line.len;
    memcpy(a->last.hash, hash, sizeof(hash));
    return a->head_fd >= 0 ? csn_audit_head_write(a->head_fd, &a->last, &a->written) : 0;
}

void csn_audit_prepare(csn_audit *a)
{
    if (!a)
        return;
    pthread_mutex_lock(&a->lock);
    a->fresh = a->default_place;
    (void)open_files(a); /* the first event tries again and reports the error */
    pthread_mutex_unlock(&a->lock);
}

void csn_audit_forget(csn_audit *a)
{
    if (!a || !a->fresh || a->fd < 0)
        return;
    pthread_mutex_lock(&a->lock);
    if (a->last.lines == 0) {
        (void)unlinkat(a->place.dir, a->place.log, 0);
        (void)unlinkat(a->place.dir, a->place.head, 0);
        close_files(a);
    }
    pthread_mutex_unlock(&a->lock);
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

/* The message names the directory, which helps a caller without a usable home. */
static csn_status append_failed(const csn_audit *a, int rc, csn_error **err)
{
    if (a->place.dir < 0 && rc != ENOMEM)
        return csn_wrap(csn_statedir_fail(err, rc, CSN_DIR_STATE, "audit"), err,
                        "audit log of %s", a->id);
    return csn_fail(err, rc == ENOMEM ? CSN_NOMEM : CSN_IO, "audit log of %s: %s", a->id,
                    strerrordesc_np(rc));
}

/* The mutex excludes threads of this handle, flock other handles and processes. */
csn_status csn_audit_append(csn_audit *a, const csn_audit_event *e, csn_error **err)
{
    uint64_t size = 0;

    if (!a)
        return CSN_OK;
    pthread_mutex_lock(&a->lock);
    int rc = lock_log(a, &size);
    if (rc == 0) {
        rc = append_locked(a, e, size);
        flock(a->fd, LOCK_UN);
    }
    pthread_mutex_unlock(&a->lock);
    return rc == 0 ? CSN_OK : append_failed(a, rc, err);
}
