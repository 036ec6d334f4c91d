/* watch.c: reports changes in a directory from envd's stream of file events.
 *
 * Each watch has a thread that reads the stream and queues events until watch_next takes them.
 * Invariant: no event is lost silently. A full queue or a reopened stream is reported as one
 * overflow event. Events come from the sandbox: sizes, names and JSON are checked.
 *
 * envd reports a rename as RENAME of the old name followed by CREATE of the new one; a CREATE
 * within PAIR_NS of a RENAME is reported as the rename. envd does not report whether a removed
 * name was a directory. */
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
#define PAIR_NS      1000000000ull /* maximum time between the two events of a rename */
#define RESOLVE_MS   60000u
#define RETRY_MS     500u
#define RETRY_MS_MAX 30000u

typedef struct queued_event {
    struct queued_event *next;
    uint32_t kind;
    bool is_dir;
    char path[];
} queued_event;

typedef struct watch {
    csn_remote *r;
    csn_buf frame; /* the request */
    /* used by the thread only: */
    csn_stream_parser parser;
    csn_status refused; /* negative: envd rejected the watch */
    csn_error *refused_why;
    uint64_t renamed_ns; /* time of the last RENAME; 0: none */
    pthread_t thread;
    int stop;             /* eventfd */
    pthread_mutex_t lock; /* guards the fields below */
    pthread_cond_t changed;
    queued_event *first, **last;
    size_t count;
    bool started;
    bool overflow;
    csn_status ended; /* negative: the watch has ended for good */
    csn_error *ended_why;
} watch;

/* ---- events ----------------------------------------------------------------------------- */

/* With the lock held. */
static void enqueue(watch *w, uint32_t kind, const char *path, bool is_dir)
{
    size_t len = strlen(path) + 1;
    queued_event *n = w->count < EVENTS_MAX ? malloc(sizeof(*n) + len) : NULL;

    if (!n) {
        w->overflow = true;
        return;
    }
    *n = (queued_event){.kind = kind, .is_dir = is_dir};
    memcpy(n->path, path, len);
    *w->last = n;
    w->last = &n->next;
    w->count++;
}

/* A temporary file of the core's derived write: ".csn-" and 16 hex digits. */
static bool is_temporary(const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;

    return strncmp(name, ".csn-", 5) == 0 && strspn(name + 5, "0123456789abcdef") == 16;
}

static uint32_t event_kind(watch *w, const char *type)
{
    bool paired = w->renamed_ns && csn_now_ns() - w->renamed_ns < PAIR_NS;

    w->renamed_ns = 0;
    if (strcmp(type, "EVENT_TYPE_CREATE") == 0)
        return paired ? CSN_EVENT_RENAME : CSN_EVENT_CREATE;
    if (strcmp(type, "EVENT_TYPE_WRITE") == 0)
        return CSN_EVENT_MODIFY;
    if (strcmp(type, "EVENT_TYPE_REMOVE") == 0)
        return CSN_EVENT_DELETE;
    if (strcmp(type, "EVENT_TYPE_RENAME") != 0)
        return 0; /* mode changes are not reported */
    w->renamed_ns = csn_now_ns();
    return CSN_EVENT_DELETE;
}

static void file_event(watch *w, const csn_jval *e)
{
    const char *name = csn_jval_string(csn_jval_get(e, "name"));
    const char *type = csn_jval_string(csn_jval_get(e, "type"));
    const char *what = csn_jval_string(csn_jval_get(csn_jval_get(e, "entry"), "type"));
    uint32_t kind = type ? event_kind(w, type) : 0;

    if (!name || !*name || strlen(name) >= sizeof(((csn_event *)0)->path) || kind == 0 ||
        is_temporary(name))
        return;
    pthread_mutex_lock(&w->lock);
    enqueue(w, kind, name, what && strcmp(what, "FILE_TYPE_DIRECTORY") == 0);
    pthread_cond_signal(&w->changed);
    pthread_mutex_unlock(&w->lock);
}

static void start_event(watch *w)
{
    pthread_mutex_lock(&w->lock);
    w->overflow |= w->started; /* reopened: events may be missing */
    w->started = true;
    pthread_cond_signal(&w->changed);
    pthread_mutex_unlock(&w->lock);
}

/* Reads the end frame, possibly {"error":{...}}. After an internal error of envd the stream is
 * reopened. */
static int end_of_stream(watch *w, const csn_jval *root)
{
    const csn_jval *error = csn_jval_get(root, "error");
    const char *code = csn_jval_string(csn_jval_get(error, "code"));

    if (code && strcmp(code, "internal") != 0 && strcmp(code, "unknown") != 0)
        w->refused = csn_e2b_error(w->r, 500, error, "watch", &w->refused_why);
    return 1;
}

static int on_message(void *ctx, const csn_message *m)
{
    CSN_CLEANUP(csn_jval_freep) csn_jval *root = NULL;
    watch *w = ctx;

    if (m->flags & CSN_CONNECT_COMPRESSED ||
        csn_json_parse(m->data, m->len, "event of the sandbox", &root, NULL) < 0)
        return 1;
    if (m->flags & CSN_CONNECT_END)
        return end_of_stream(w, root);
    if (csn_jval_get(root, "start"))
        start_event(w);
    if (csn_jval_get(root, "filesystem"))
        file_event(w, csn_jval_get(root, "filesystem"));
    return 0;
}

static int receive(void *ctx, const void *data, size_t len)
{
    watch *w = ctx;

    return csn_stream_parser_feed(&w->parser, data, len, NULL) < 0 || w->parser.stopped;
}

/* ---- the stream ------------------------------------------------------------------------- */

/* Returns when the stream has ended. */
static csn_status read_stream(watch *w, csn_error **err)
{
    const int32_t stop[] = {w->stop, w->r->stop_fd};
    csn_autores res = {0};
    csn_e2b_headers h;
    csn_http_req q = {.method = "POST",
                      .body = w->frame.data,
                      .body_len = w->frame.len,
                      .retry = CSN_HTTP_IDEMPOTENT,
                      .cancel_fds = stop,
                      .cancel_count = 2,
                      .on_body = receive,
                      .ctx = w};

    csn_e2b_headers_init(&h, w->r, "application/connect+json", NULL);
    csn_stream_parser_init(&w->parser, CSN_STREAM_CONNECT, CSN_E2B_MESSAGE_MAX, on_message, w);
    csn_status st =
        csn_e2b_request(w->r, "watch", "filesystem.Filesystem/WatchDir", &h, &q, &res, err);
    csn_stream_parser_release(&w->parser);
    if (w->refused == CSN_OK)
        return st;
    csn_error_free(*err);
    *err = CSN_STEAL(w->refused_why);
    return w->refused;
}

static bool should_reopen(const watch *w, csn_status st)
{
    return w->started && w->refused == CSN_OK &&
           (st == CSN_OK || st == CSN_IO || st == CSN_UNAVAILABLE);
}

static bool stopped_within(const watch *w, uint64_t ms)
{
    struct pollfd p[] = {{.fd = w->stop, .events = POLLIN},
                         {.fd = w->r->stop_fd, .events = POLLIN}};

    return poll(p, 2, (int)ms) > 0;
}

static void *watch_thread(void *arg)
{
    watch *w = arg;
    csn_error *err = NULL;
    csn_status st;

    for (uint64_t ms = RETRY_MS;; ms = 2 * ms < RETRY_MS_MAX ? 2 * ms : RETRY_MS_MAX) {
        uint64_t since = csn_now_ns();
        st = read_stream(w, &err);
        if (!should_reopen(w, st))
            break;
        csn_error_free(err);
        err = NULL;
        if (csn_now_ns() - since > RETRY_MS_MAX * 1000000ull)
            ms = RETRY_MS; /* the stream had worked: reset the back-off */
        if (stopped_within(w, ms)) {
            st = CSN_CANCELLED;
            break;
        }
    }
    pthread_mutex_lock(&w->lock);
    w->ended = st == CSN_OK ? CSN_IO : st; /* CSN_OK: the stream ended before it started */
    w->ended_why = err;
    pthread_cond_signal(&w->changed);
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

/* ---- operations ------------------------------------------------------------------------- */

/* Prints the canonical path, because envd removes `..` textually. */
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

    csn_status st = csn_remote_run_script(r, &s, out, &code, err);
    if (st < 0)
        return st;
    if (code == 101)
        return csn_fail(err, CSN_NOT_FOUND, "File %s not found", name);
    if (code == 102)
        return csn_fail(err, CSN_WRONG_TYPE, "%s is not a directory", name);
    if (code == 103)
        return csn_fail(err, CSN_DENIED, "%s: permission denied", name);
    if (code != 0 || out->len < 3 || memcmp(out->data + out->len - 2, "\n.", 2) != 0)
        return csn_fail(err, CSN_IO, "%s cannot be resolved in the sandbox", name);
    out->data[out->len -= 2] = '\0';
    if (strlen(out->data) != out->len || !csn_utf8_valid(out->data, out->len))
        return csn_fail(err, CSN_UNSUPPORTED, "%s: only names in UTF-8 can be watched", name);
    return CSN_OK;
}

static csn_status build_request(watch *w, const char *dir, bool recursive, csn_error **err)
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
    sigfillset(&all); /* leave signals to the host's threads */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int e = pthread_create(&w->thread, NULL, watch_thread, w);
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
    pthread_cond_init(&w->changed, &attr);
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
        queued_event *n = w->first;
        w->first = n->next;
        free(n);
    }
    csn_error_free(w->ended_why);
    csn_buf_release(&w->frame);
    pthread_cond_destroy(&w->changed);
    pthread_mutex_destroy(&w->lock);
    free(w);
}

static csn_status await_start(watch *w, csn_error **err)
{
    csn_status st = CSN_OK;

    pthread_mutex_lock(&w->lock);
    while (!w->started && w->ended == CSN_OK)
        pthread_cond_wait(&w->changed, &w->lock);
    if (!w->started) {
        st = w->ended;
        if (err)
            *err = CSN_STEAL(w->ended_why);
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
        return csn_fail(err, CSN_UNSUPPORTED, "backend 'e2b' cannot watch with nofollow");
    csn_status st = resolve(state, path, &dir, err);
    if (st < 0)
        return st;
    watch *w = watch_new(state);
    if (!w)
        return csn_fail(err, CSN_NOMEM, "watch");
    st = build_request(w, dir.data, (flags & CSN_FILE_RECURSIVE) != 0, err);
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

/* With the lock held: returns the oldest event, or a pending overflow once the queue is
 * empty. */
static bool dequeue(watch *w, csn_event *ret)
{
    queued_event *n = w->first;

    if (!n && !w->overflow)
        return false;
    *ret = (csn_event){.kind = CSN_EVENT_OVERFLOW};
    if (!n) {
        w->overflow = false;
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
    while (st == CSN_OK && !dequeue(w, ret)) {
        if (w->ended < 0)
            st = csn_fail(err, w->ended, "the watch has ended: %s",
                          w->ended_why ? csn_error_message(w->ended_why)
                                       : "the sandbox is being closed");
        else if (deadline == 0)
            pthread_cond_wait(&w->changed, &w->lock);
        else if (pthread_cond_timedwait(&w->changed, &w->lock, &until) == ETIMEDOUT)
            st = csn_fail(err, CSN_TIMEOUT, "nothing changed");
    }
    pthread_mutex_unlock(&w->lock);
    return st;
}
