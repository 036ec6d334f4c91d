/* watch.c: changes in a directory, by envd's stream of file events.
 *
 * Entries of the ops table. Each watch has a thread that listens to its stream and keeps what
 * came until watch_next takes it, up to a ceiling; beyond it, and whenever the stream broke and
 * was opened again, one overflow is told: nothing is lost in silence. Events are the sandbox's:
 * sizes, names and JSON are checked.
 *
 * envd tells a rename as two events: the old name went away (RENAME), a new one is there
 * (CREATE). The two follow each other, so a CREATE right behind a RENAME is told as the rename
 * that it is. Whether a name that is gone was a directory it does not tell. */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "backend/e2b/e2b.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/path.h"
#include "base/utf8.h"

#define EVENTS_MAX   32768u
#define PAIR_NS      1000000000ull /* the two halves of a rename are not further apart */
#define RESOLVE_MS   60000u
#define AGAIN_MS     500u
#define AGAIN_MS_MAX 30000u

typedef struct noted {
    struct noted *next;
    uint32_t kind;
    bool is_dir;
    char path[];
} noted;

typedef struct watch {
    csn_remote *r;
    csn_buf frame;     /* the request */
    csn_stream stream; /* of the connection that is open; only the thread's */
    csn_status said;   /* that envd refuses it, and why; only the thread's */
    csn_error *said_why;
    uint64_t moved_ns; /* when a name went away by renaming; only the thread's */
    pthread_t thread;
    int stop;             /* eventfd */
    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t news;
    noted *first, **last;
    size_t count;
    bool begun, lost;
    csn_status over; /* it has ended for good, and why */
    csn_error *why;
} watch;

/* ---- events ----------------------------------------------------------------------------- */

/* With the lock held. */
static void note(watch *w, uint32_t kind, const char *path, bool is_dir)
{
    size_t len = strlen(path) + 1;
    noted *n = w->count < EVENTS_MAX ? malloc(sizeof(*n) + len) : NULL;

    if (!n) {
        w->lost = true;
        return;
    }
    *n = (noted){.kind = kind, .is_dir = is_dir};
    memcpy(n->path, path, len);
    *w->last = n;
    w->last = &n->next;
    w->count++;
}

/* A temporary file of a derived write: ".csn-" and sixteen digits. */
static bool is_temporary(const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;

    return strncmp(name, ".csn-", 5) == 0 && strspn(name + 5, "0123456789abcdef") == 16;
}

static uint32_t kind_of(watch *w, const char *type)
{
    bool paired = w->moved_ns && csn_now_ns() - w->moved_ns < PAIR_NS;

    w->moved_ns = 0;
    if (strcmp(type, "EVENT_TYPE_CREATE") == 0)
        return paired ? CSN_EVENT_RENAME : CSN_EVENT_CREATE;
    if (strcmp(type, "EVENT_TYPE_WRITE") == 0)
        return CSN_EVENT_MODIFY;
    if (strcmp(type, "EVENT_TYPE_REMOVE") == 0)
        return CSN_EVENT_DELETE;
    if (strcmp(type, "EVENT_TYPE_RENAME") != 0)
        return 0; /* changes of the mode are not told */
    w->moved_ns = csn_now_ns();
    return CSN_EVENT_DELETE;
}

static void changed(watch *w, const csn_jval *e)
{
    const char *name = csn_jval_string(csn_jval_get(e, "name"));
    const char *type = csn_jval_string(csn_jval_get(e, "type"));
    const char *what = csn_jval_string(csn_jval_get(csn_jval_get(e, "entry"), "type"));
    uint32_t kind = type ? kind_of(w, type) : 0;

    if (!name || !*name || strlen(name) >= sizeof(((csn_event *)0)->path) || kind == 0 ||
        is_temporary(name))
        return;
    pthread_mutex_lock(&w->lock);
    note(w, kind, name, what && strcmp(what, "FILE_TYPE_DIRECTORY") == 0);
    pthread_cond_signal(&w->news);
    pthread_mutex_unlock(&w->lock);
}

static void begun(watch *w)
{
    pthread_mutex_lock(&w->lock);
    w->lost |= w->begun; /* a second time: who knows what happened in between */
    w->begun = true;
    pthread_cond_signal(&w->news);
    pthread_mutex_unlock(&w->lock);
}

/* {"error":{...}}: envd gives the watch up. Not for good, unless the directory is not there. */
static int ended(watch *w, const csn_jval *root)
{
    const csn_jval *e = csn_jval_get(root, "error");
    const char *code = csn_jval_string(csn_jval_get(e, "code"));

    if (!e || !code || strcmp(code, "internal") == 0 || strcmp(code, "unknown") == 0)
        return 1;
    w->said = csn_e2b_refused(w->r, 500, code, csn_jval_string(csn_jval_get(e, "message")),
                              "watch", &w->said_why);
    return 1;
}

static int message(void *ctx, const csn_message *m)
{
    CSN_CLEANUP(csn_jval_freep) csn_jval *root = NULL;
    watch *w = ctx;

    if (m->flags & CSN_CONNECT_COMPRESSED ||
        csn_json_parse(m->data, m->len, "event of the sandbox", &root, NULL) < 0)
        return 1;
    if (m->flags & CSN_CONNECT_END)
        return ended(w, root);
    if (csn_jval_get(root, "start"))
        begun(w);
    if (csn_jval_get(root, "filesystem"))
        changed(w, csn_jval_get(root, "filesystem"));
    return 0;
}

static int take(void *ctx, const void *data, size_t len)
{
    watch *w = ctx;

    return csn_stream_feed(&w->stream, data, len, NULL) < 0 || w->stream.stopped;
}

/* ---- the stream ------------------------------------------------------------------------- */

/* Until it ends. CSN_OK: try again. */
static csn_status listen_once(watch *w, csn_error **err)
{
    const int32_t stop[] = {w->stop, w->r->stop_fd};
    csn_autores res = {0};
    csn_autofree char *url = NULL;
    csn_e2b_headers h;

    if (asprintf(&url, "%s/filesystem.Filesystem/WatchDir", csn_e2b_of(w->r)->envd_url) < 0) {
        url = NULL;
        return csn_fail(err, CSN_NOMEM, "watch");
    }
    csn_e2b_headers_init(&h, w->r, "application/connect+json", NULL);
    csn_stream_init(&w->stream, CSN_STREAM_CONNECT, CSN_E2B_MESSAGE_MAX, message, w);
    const csn_http_req q = {.method = "POST",
                            .url = url,
                            .headers = (const char *const *)h.list,
                            .body = w->frame.data,
                            .body_len = w->frame.len,
                            .repeat = CSN_HTTP_SAFE,
                            .cancel_fds = stop,
                            .cancel_count = 2,
                            .on_body = take,
                            .ctx = w};
    csn_status st =
        h.failed ? csn_fail(err, CSN_NOMEM, "watch") : csn_http_do(w->r->http, &q, &res, err);
    csn_stream_release(&w->stream);
    csn_e2b_headers_release(&h);
    if (w->said < 0) {
        csn_error_free(*err);
        *err = CSN_STEAL(w->said_why);
        return w->said;
    }
    if (st == CSN_OK && res.status / 100 != 2)
        st = csn_e2b_failed(w->r, &res, "watch", err);
    return st;
}

/* Is it worth opening the stream again? */
static bool may_come_back(const watch *w, csn_status st)
{
    return w->begun && w->said == CSN_OK &&
           (st == CSN_OK || st == CSN_IO || st == CSN_UNAVAILABLE);
}

static bool stopped_within(const watch *w, uint64_t ms)
{
    struct pollfd p[] = {{.fd = w->stop, .events = POLLIN},
                         {.fd = w->r->stop_fd, .events = POLLIN}};

    return poll(p, 2, (int)ms) > 0;
}

static void *follow(void *arg)
{
    watch *w = arg;
    csn_error *err = NULL;
    csn_status st;

    for (uint64_t ms = AGAIN_MS;; ms = 2 * ms < AGAIN_MS_MAX ? 2 * ms : AGAIN_MS_MAX) {
        uint64_t since = csn_now_ns();
        st = listen_once(w, &err);
        if (!may_come_back(w, st))
            break;
        csn_error_free(err);
        err = NULL;
        if (csn_now_ns() - since > AGAIN_MS_MAX * 1000000ull)
            ms = AGAIN_MS; /* it was good for a while */
        if (stopped_within(w, ms)) {
            st = CSN_CANCELLED;
            break;
        }
    }
    pthread_mutex_lock(&w->lock);
    w->over = st == CSN_OK ? CSN_IO : st; /* ended before it began */
    w->why = err;
    pthread_cond_signal(&w->news);
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

/* ---- the ops ---------------------------------------------------------------------------- */

/* The directory as it is called without links: envd takes `..` away by text. */
static const char resolve_script[] = "[ -e \"$1\" ] || [ -L \"$1\" ] || exit 101\n"
                                     "[ -d \"$1\" ] || exit 102\n"
                                     "cd -P \"$1\" && [ -r . ] || exit 103\n"
                                     "pwd -P; printf .\n";

static csn_status resolve(csn_remote *r, const char *path, csn_buf *out, csn_error **err)
{
    const char *const args[] = {path, NULL};
    const csn_remote_script s = {
        .text = resolve_script, .args = args, .deadline_ns = csn_deadline_in(RESOLVE_MS)};
    csn_autofree char *shown = csn_path_printable(path);
    const char *name = shown ? shown : "";
    int code = -1;

    csn_status st = csn_remote_ask(r, &s, out, &code, err);
    if (st < 0)
        return st;
    if (code == 101)
        return csn_fail(err, CSN_NOT_FOUND, "File %s not found", name);
    if (code == 102)
        return csn_fail(err, CSN_WRONG_TYPE, "%s is not a directory", name);
    if (code == 103)
        return csn_fail(err, CSN_DENIED, "%s may not be read", name);
    if (code != 0 || out->len < 3 || memcmp(out->data + out->len - 2, "\n.", 2) != 0)
        return csn_fail(err, CSN_IO, "the sandbox does not tell where %s is", name);
    out->data[out->len -= 2] = '\0';
    if (strlen(out->data) != out->len || !csn_utf8_valid(out->data, out->len))
        return csn_fail(err, CSN_UNSUPPORTED, "%s has a name that cannot be watched", name);
    return CSN_OK;
}

static csn_status put_request(watch *w, const char *dir, bool recursive, csn_error **err)
{
    csn_autobuf body;
    csn_json j;

    csn_buf_init(&body, 8 * (size_t)CSN_PATH_MAX);
    csn_json_begin(&j, &body);
    csn_json_object(&j);
    csn_json_kstr(&j, "path", dir);
    csn_json_kbool(&j, "recursive", recursive);
    csn_json_kbool(&j, "includeEntry", true);
    csn_json_object_end(&j);
    int e = csn_json_end(&j);
    e = e ? e : csn_connect_frame(&w->frame, 0, body.data, body.len);
    return e == 0 ? CSN_OK : csn_fail_errno(err, e, "watch");
}

static csn_status start_thread(watch *w, csn_error **err)
{
    sigset_t all, before;

    w->stop = eventfd(0, EFD_CLOEXEC);
    if (w->stop < 0)
        return csn_fail_errno(err, errno, "watch");
    sigfillset(&all); /* signals are for the host's own threads */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int e = pthread_create(&w->thread, NULL, follow, w);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (e == 0)
        return CSN_OK;
    close(w->stop);
    w->stop = -1;
    return csn_fail_errno(err, e, "watch");
}

static watch *watch_new(csn_remote *r)
{
    watch *w = calloc(1, sizeof(*w));
    pthread_condattr_t attr;

    if (!w)
        return NULL;
    w->r = r;
    w->stop = -1;
    w->last = &w->first;
    csn_buf_init(&w->frame, 16 * (size_t)CSN_PATH_MAX);
    pthread_mutex_init(&w->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&w->news, &attr);
    pthread_condattr_destroy(&attr);
    return w;
}

void csn_e2b_watch_free(void *handle)
{
    watch *w = handle;
    uint64_t one = 1;

    if (!w)
        return;
    if (w->stop >= 0) {
        (void)!write(w->stop, &one, sizeof(one));
        pthread_join(w->thread, NULL);
        close(w->stop);
    }
    while (w->first) {
        noted *n = w->first;
        w->first = n->next;
        free(n);
    }
    csn_error_free(w->why);
    csn_buf_release(&w->frame);
    pthread_cond_destroy(&w->news);
    pthread_mutex_destroy(&w->lock);
    free(w);
}

/* It stands, or it does not. */
static csn_status await_start(watch *w, csn_error **err)
{
    csn_status st = CSN_OK;

    pthread_mutex_lock(&w->lock);
    while (!w->begun && w->over == CSN_OK)
        pthread_cond_wait(&w->news, &w->lock);
    if (!w->begun) {
        st = w->over;
        if (err)
            *err = CSN_STEAL(w->why);
    }
    pthread_mutex_unlock(&w->lock);
    return st;
}

csn_status csn_e2b_watch(void *state, const char *path, uint32_t flags, void **ret_watch,
                         csn_error **err)
{
    csn_autobuf dir;

    csn_buf_init(&dir, 2 * (size_t)CSN_PATH_MAX);
    if (flags & CSN_FILE_NOFOLLOW)
        return csn_fail(err, CSN_UNSUPPORTED,
                        "backend 'e2b' cannot watch without following links");
    csn_status st = resolve(state, path, &dir, err);
    if (st < 0)
        return st;
    watch *w = watch_new(state);
    if (!w)
        return csn_fail(err, CSN_NOMEM, "watch");
    st = put_request(w, dir.data, (flags & CSN_FILE_RECURSIVE) != 0, err);
    if (st == CSN_OK)
        st = start_thread(w, err);
    if (st == CSN_OK)
        st = await_start(w, err);
    if (st < 0)
        csn_e2b_watch_free(w);
    else
        *ret_watch = w;
    return st;
}

/* With the lock held: the oldest that is there, then that some are missing. */
static bool next(watch *w, csn_event *ret)
{
    noted *n = w->first;

    if (!n && !w->lost)
        return false;
    *ret = (csn_event){.kind = CSN_EVENT_OVERFLOW};
    if (!n) {
        w->lost = false;
        return true;
    }
    ret->kind = n->kind;
    ret->is_dir = n->is_dir;
    snprintf(ret->path, sizeof(ret->path), "%s", n->path);
    w->first = n->next;
    w->last = w->first ? w->last : &w->first;
    w->count--;
    free(n);
    return true;
}

csn_status csn_e2b_watch_next(void *handle, uint64_t timeout_ms, csn_event *ret,
                              csn_error **err)
{
    watch *w = handle;
    uint64_t deadline = csn_deadline_in(timeout_ms);
    const struct timespec until = {.tv_sec = (time_t)(deadline / 1000000000u),
                                   .tv_nsec = (long)(deadline % 1000000000u)};
    csn_status st = CSN_OK;

    pthread_mutex_lock(&w->lock);
    while (st == CSN_OK && !next(w, ret)) {
        if (w->over < 0)
            st = csn_fail(err, w->over, "the watch has ended: %s",
                          w->why ? csn_error_message(w->why) : "the sandbox is being closed");
        else if (deadline == 0)
            pthread_cond_wait(&w->news, &w->lock);
        else if (pthread_cond_timedwait(&w->news, &w->lock, &until) == ETIMEDOUT)
            st = csn_fail(err, CSN_TIMEOUT, "nothing changed");
    }
    pthread_mutex_unlock(&w->lock);
    return st;
}
