/* backend.c: backends that are written in JavaScript.
 *
 * The library calls exec on a thread of the pool. That thread sends the request to JavaScript
 * and then serves it: it writes to the sink and reads the input on behalf of JavaScript, and
 * watches the cancel descriptors and the deadline. After a cancel JavaScript has GRACE_MS to
 * end; a request that does not is abandoned, so that no call hangs. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "addon.h"

#define GRACE_MS    5000
#define INPUT_MAX   65536
#define MESSAGE_MAX 256

typedef struct backend {
    instance *in;
    napi_ref exec;
    csn_backend_ops ops;
    char name[64];
} backend;

/* Members after `wake` are protected by the lock of the instance. */
typedef struct request {
    message start, abort, written, was_read; /* each is sent once at a time */
    backend *of;
    const csn_exec_req *req; /* the library's: not after the request is abandoned */
    int wake;                /* eventfd: JavaScript has done something */
    unsigned refs;
    bool abandoned, ended, wants_write, wants_read;
    int stream;
    void *data; /* to write, or what was read */
    size_t len;
    int64_t answer;
    napi_deferred write_done, read_done;
    napi_ref on_abort;
    csn_status st;
    uint32_t how;
    int32_t exit_code, signal;
    char text[MESSAGE_MAX];
} request;

/* ---- references ---- */

static void request_unref(request *r)
{
    if (__atomic_sub_fetch(&r->refs, 1, __ATOMIC_ACQ_REL) > 0)
        return;
    close(r->wake);
    free(r->data);
    free(r);
}

static void request_finalize(napi_env env, void *data, void *hint)
{
    request *r = data;

    (void)hint;
    if (r->on_abort)
        napi_delete_reference(env, r->on_abort);
    request_unref(r);
}

/* A message holds a reference while it is on its way. */
static void send(request *r, message *m)
{
    __atomic_add_fetch(&r->refs, 1, __ATOMIC_RELAXED);
    if (!instance_send(r->of->in, m)) /* the caller has one too */
        __atomic_sub_fetch(&r->refs, 1, __ATOMIC_ACQ_REL);
}

static void notify(request *r)
{
    uint64_t one = 1;

    (void)!write(r->wake, &one, sizeof(one));
}

/* ---- messages to JavaScript ---- */

static napi_value strings(napi_env env, const char *const *list)
{
    napi_value v = NULL;

    napi_create_array(env, &v);
    for (uint32_t i = 0; list && list[i]; i++)
        napi_set_element(env, v, i, convert_string(env, list[i]));
    return v;
}

static double left_ms(uint64_t deadline_ns)
{
    struct timespec t;

    if (deadline_ns == 0)
        return -1;
    clock_gettime(CLOCK_MONOTONIC, &t);
    uint64_t now = (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
    return deadline_ns > now ? (double)(deadline_ns - now) / 1e6 : 0;
}

/* (request, argv, env, cwd, command, session, flags, has input, ms until the deadline) */
static void start_args(napi_env env, const csn_exec_req *q, napi_value argv[9])
{
    argv[1] = strings(env, q->argv);
    argv[2] = strings(env, q->env);
    argv[3] = convert_string(env, q->cwd);
    argv[4] = convert_string(env, q->command);
    argv[5] = convert_string(env, q->session);
    napi_create_uint32(env, q->flags & ~(CSN_EXEC_STAY | CSN_EXEC_READS), &argv[6]);
    napi_get_boolean(env, q->input || q->input_fd >= 0, &argv[7]);
    napi_create_double(env, left_ms(q->deadline_ns), &argv[8]);
}

static void fail_start(request *r, napi_env env)
{
    napi_value thrown = NULL;

    napi_get_and_clear_last_exception(env, &thrown);
    r->st = CSN_INTERNAL;
    r->ended = true;
    notify(r);
}

static void deliver_start(message *m, instance *in, napi_env env)
{
    request *r = (request *)((char *)m - offsetof(request, start));
    napi_value argv[9], function = NULL, undefined = NULL, on_abort = NULL;
    bool go = false;

    pthread_mutex_lock(&in->lock);
    if (env && !r->abandoned) {
        start_args(env, r->req, argv);
        go = true;
    }
    pthread_mutex_unlock(&in->lock);
    /* The object takes over the reference of the message. */
    if (!go || napi_create_external(env, r, request_finalize, NULL, &argv[0]) != napi_ok) {
        request_unref(r);
        return;
    }
    napi_get_reference_value(env, r->of->exec, &function);
    napi_get_undefined(env, &undefined);
    if (napi_call_function(env, undefined, function, 9, argv, &on_abort) != napi_ok)
        fail_start(r, env);
    else
        napi_create_reference(env, on_abort, 1, &r->on_abort);
}

static void deliver_abort(message *m, instance *in, napi_env env)
{
    request *r = (request *)((char *)m - offsetof(request, abort));
    napi_value function = NULL, undefined = NULL;

    (void)in;
    if (env && r->on_abort &&
        napi_get_reference_value(env, r->on_abort, &function) == napi_ok) {
        napi_get_undefined(env, &undefined);
        napi_call_function(env, undefined, function, 0, NULL, NULL);
    }
    request_unref(r);
}

static void deliver_written(message *m, instance *in, napi_env env)
{
    request *r = (request *)((char *)m - offsetof(request, written));
    napi_value v = NULL;

    (void)in;
    if (env) {
        napi_create_int64(env, r->answer, &v);
        napi_resolve_deferred(env, r->write_done, v);
    }
    request_unref(r);
}

static void deliver_read(message *m, instance *in, napi_env env)
{
    request *r = (request *)((char *)m - offsetof(request, was_read));
    napi_value v = NULL;

    (void)in;
    if (env) {
        if (r->answer > 0)
            v = convert_buffer(env, r->data, (size_t)r->answer);
        else
            napi_get_null(env, &v);
        napi_resolve_deferred(env, r->read_done, v);
    }
    request_unref(r);
}

/* ---- the thread of exec ---- */

static int64_t read_input(const csn_exec_req *q, void *buf)
{
    if (q->input)
        return q->input->read(q->input->ctx, buf, INPUT_MAX);
    ssize_t n = q->input_fd >= 0 ? read(q->input_fd, buf, INPUT_MAX) : 0;
    return n < 0 && errno == EAGAIN ? 0 : n;
}

/* With the lock held, which is released meanwhile. */
static void serve_write(request *r, const csn_sink *sink)
{
    pthread_mutex_unlock(&r->of->in->lock);
    int rc = sink->write(sink->ctx, r->stream, r->data, r->len);
    pthread_mutex_lock(&r->of->in->lock);
    free(r->data);
    r->data = NULL;
    r->answer = rc;
    r->wants_write = false;
}

static void serve_read(request *r)
{
    pthread_mutex_unlock(&r->of->in->lock);
    void *buf = malloc(INPUT_MAX);
    int64_t n = buf ? read_input(r->req, buf) : -1;
    pthread_mutex_lock(&r->of->in->lock);
    free(r->data);
    r->data = buf;
    r->answer = n;
    r->wants_read = false;
}

/* True when the request has ended. */
static bool serve(request *r, const csn_sink *sink)
{
    instance *in = r->of->in;
    message *reply = NULL;

    pthread_mutex_lock(&in->lock);
    if (r->wants_write) {
        serve_write(r, sink);
        reply = &r->written;
    } else if (r->wants_read) {
        serve_read(r);
        reply = &r->was_read;
    }
    bool ended = (r->ended && !reply) || in->closing;
    pthread_mutex_unlock(&in->lock);
    if (reply) {
        send(r, reply);
        notify(r); /* look again */
    }
    return ended;
}

/* Waits for JavaScript, a cancel or the deadline; returns CSN_END_*, 0 for JavaScript. */
static uint32_t wait_for(request *r, bool cancelled, int timeout)
{
    const csn_exec_req *q = r->req;
    struct pollfd fds[3] = {{.fd = r->wake, .events = POLLIN},
                            {.fd = cancelled ? -1 : q->cancel_fds[0], .events = POLLIN},
                            {.fd = cancelled ? -1 : q->cancel_fds[1], .events = POLLIN}};
    uint64_t count;
    int n = poll(fds, 3, timeout);

    if (n == 0)
        return CSN_END_TIMEOUT;
    if (fds[0].revents)
        (void)!read(r->wake, &count, sizeof(count));
    return fds[1].revents || fds[2].revents ? CSN_END_CANCEL : 0;
}

static int poll_timeout(const csn_exec_req *q)
{
    double left = left_ms(q->deadline_ns);

    return left < 0 ? -1 : left > 1e9 ? 1000000000 : (int)left + 1;
}

/* Serves the request until JavaScript has ended it. Returns why it was stopped, or 0. */
static uint32_t serve_to_end(request *r, const csn_sink *sink)
{
    uint32_t stopped = 0;

    while (!serve(r, sink)) {
        uint32_t why = wait_for(r, stopped != 0, stopped ? GRACE_MS : poll_timeout(r->req));
        if (why && stopped)
            break; /* JavaScript did not end in time */
        if (why) {
            stopped = why;
            send(r, &r->abort);
        }
    }
    return stopped;
}

static csn_status finish(request *r, uint32_t stopped, csn_exec_end *ret, csn_error **err)
{
    if (r->of->in->closing)
        return csn_error_set(err, CSN_UNAVAILABLE, "the program of this backend is ending");
    ret->how = stopped ? stopped : r->how;
    ret->exit_code = r->ended ? r->exit_code : -1;
    ret->signal = r->signal;
    memcpy(ret->message, r->text, sizeof(r->text));
    if (r->ended && r->st < 0 && !stopped)
        return csn_error_set(err, r->st, "%s", r->text);
    return CSN_OK;
}

static csn_status backend_exec(void *state, const csn_exec_req *req, const csn_sink *sink,
                               csn_exec_end *ret, csn_error **err)
{
    backend *b = state;
    request *r = calloc(1, sizeof(*r));

    if (!r || (r->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) < 0) {
        free(r);
        return csn_error_set(err, CSN_NOMEM, "out of memory or descriptors");
    }
    r->start.deliver = deliver_start;
    r->abort.deliver = deliver_abort;
    r->written.deliver = deliver_written;
    r->was_read.deliver = deliver_read;
    r->of = b;
    r->req = req;
    r->refs = 1;
    r->exit_code = -1;
    send(r, &r->start);
    pool_blocked(1);
    uint32_t stopped = serve_to_end(r, sink);
    pool_blocked(-1);
    pthread_mutex_lock(&b->in->lock);
    r->abandoned = true;
    csn_status st = finish(r, stopped, ret, err);
    pthread_mutex_unlock(&b->in->lock);
    request_unref(r);
    return st;
}

/* ---- functions for JavaScript ---- */

static request *request_arg(napi_env env, napi_callback_info info, size_t argc,
                            napi_value *argv)
{
    void *p = NULL;
    size_t n = argc;

    if (napi_get_cb_info(env, info, &n, argv, NULL, NULL) != napi_ok || n < argc ||
        napi_get_value_external(env, argv[0], &p) != napi_ok)
        return NULL;
    return p;
}

static napi_value gone(napi_env env)
{
    napi_throw_error(env, "gone", "the command has ended");
    return NULL;
}

/* backendWrite(request, stream, Buffer): resolves with CSN_SINK_*. One at a time. */
napi_value backend_write(napi_env env, napi_callback_info info)
{
    napi_value argv[3], promise = NULL;
    request *r = request_arg(env, info, 3, argv);
    void *data = NULL, *copy = NULL;
    size_t len = 0;
    int32_t stream = CSN_STDOUT;

    if (!r || napi_get_value_int32(env, argv[1], &stream) != napi_ok ||
        napi_get_buffer_info(env, argv[2], &data, &len) != napi_ok || !(copy = malloc(len + 1)))
        return gone(env);
    memcpy(copy, data, len);
    pthread_mutex_lock(&r->of->in->lock);
    bool open = !r->abandoned && !r->ended;
    if (open) {
        napi_create_promise(env, &r->write_done, &promise);
        free(r->data);
        r->data = copy;
        r->len = len;
        r->stream = stream;
        r->wants_write = true;
        notify(r);
    }
    pthread_mutex_unlock(&r->of->in->lock);
    if (open)
        return promise;
    free(copy);
    return gone(env);
}

/* backendRead(request): resolves with a Buffer, null at the end. One at a time. */
napi_value backend_read(napi_env env, napi_callback_info info)
{
    napi_value argv[1], promise = NULL;
    request *r = request_arg(env, info, 1, argv);

    if (!r)
        return gone(env);
    pthread_mutex_lock(&r->of->in->lock);
    bool open = !r->abandoned && !r->ended;
    if (open) {
        napi_create_promise(env, &r->read_done, &promise);
        r->wants_read = true;
        notify(r);
    }
    pthread_mutex_unlock(&r->of->in->lock);
    return open ? promise : gone(env);
}

/* backendEnd(request, status, how, exit code, signal, message) */
napi_value backend_end(napi_env env, napi_callback_info info)
{
    napi_value argv[6];
    request *r = request_arg(env, info, 6, argv);
    int32_t st = 0, how = 0, exit_code = -1, signal = 0;
    char text[MESSAGE_MAX] = "";
    size_t len = 0;

    if (!r)
        return NULL;
    napi_get_value_int32(env, argv[1], &st);
    napi_get_value_int32(env, argv[2], &how);
    napi_get_value_int32(env, argv[3], &exit_code);
    napi_get_value_int32(env, argv[4], &signal);
    napi_get_value_string_utf8(env, argv[5], text, sizeof(text), &len);
    pthread_mutex_lock(&r->of->in->lock);
    if (!r->abandoned && !r->ended) {
        r->st = (csn_status)st;
        r->how = (uint32_t)how;
        r->exit_code = exit_code;
        r->signal = signal;
        memcpy(r->text, text, sizeof(text));
        r->ended = true;
        notify(r);
    }
    pthread_mutex_unlock(&r->of->in->lock);
    return NULL;
}

/* registerBackend(name, function): it stays registered as long as the process lives. Returns
 * undefined, or an error as convert_error makes it. */
napi_value backend_register(napi_env env, napi_callback_info info)
{
    size_t argc = 2, len = 0;
    napi_value argv[2], failure = NULL;
    csn_error *err = NULL;
    backend *b = calloc(1, sizeof(*b));

    if (!b || napi_get_cb_info(env, info, &argc, argv, NULL, NULL) != napi_ok ||
        napi_get_value_string_utf8(env, argv[0], b->name, sizeof(b->name), &len) != napi_ok) {
        free(b);
        return NULL;
    }
    b->ops = (csn_backend_ops){
        .size = sizeof(b->ops), .name = b->name, .isolation = "custom", .exec = backend_exec};
    b->in = instance_ref(instance_of(env));
    napi_create_reference(env, argv[1], 1, &b->exec);
    csn_status st = csn_register_backend(&b->ops, b, &err);
    if (st == CSN_OK)
        return NULL;
    failure = convert_error(b->in, env, st, err);
    csn_error_free(err);
    napi_delete_reference(env, b->exec);
    instance_unref(b->in);
    free(b);
    return failure;
}
