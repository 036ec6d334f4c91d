/* exec.c: runs one command in a remote sandbox and reports its exit status.
 *
 * Output comes from the sandbox and is not trusted; the connection may break at any byte.
 * Invariants: a command is sent at most once. If the response breaks off, the exit status is
 * reported as unknown, never as success. At the deadline or on cancellation the process tree is
 * killed inside the sandbox, and its last output is read for at most DRAIN_MS. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "remote/base64_stream.h"
#include "remote/internal.h"

#define SMALL_INPUT (16u * 1024u) /* embedded in the wrapper: one request instead of two */
#define KILL_MS     10000u        /* for the request that kills */
#define DRAIN_MS    5000u         /* after the kill, for the last output */

typedef struct running {
    csn_remote *r;
    const csn_sink *sink;
    const char *exec_id;
    uint32_t how; /* CSN_END_TIMEOUT or CSN_END_CANCEL after an interrupt */
    bool count_only[3];
    bool sink_stopped;
    bool ignore_stop;          /* an internal script, such as kill_script: never killed */
    csn_base64_stream *base64; /* or NULL */
} running;

/* ---- killing a tree --------------------------------------------------------------------- */

/* EXEC_ID. SIGKILL is repeated: processes may be forked while /proc is read. */
static const char kill_script[] =
    "m=" CSN_REMOTE_ID_VAR "=$1\n"
    "all() { for f in $(grep -ls \"$m\" /proc/[0-9]*/environ); do\n"
    "  p=${f#/proc/}; p=${p%/environ}; [ \"$p\" = $$ ] || kill -s \"$1\" \"$p\" && n=1; done; "
    "}\n"
    "n=; all TERM; [ -n \"$n\" ] || exit 0\n"
    "i=0; while [ $i -lt 4 ]; do sleep 0.05 || sleep 1; n=; all 0; [ -n \"$n\" ] || exit 0\n"
    "  i=$((i + 1)); done\n"
    "i=0; while [ $i -lt 20 ]; do n=; all KILL; [ -n \"$n\" ] || exit 0; i=$((i + 1)); done\n";

void csn_remote_kill(csn_remote *r, const char *exec_id)
{
    const char *const args[] = {exec_id, NULL};
    const csn_remote_script s = {.text = kill_script,
                                 .args = args,
                                 .deadline_ns = csn_deadline_in(KILL_MS),
                                 .ignore_stop = true};
    csn_autobuf out;
    int code = -1;

    csn_buf_init(&out, 4096);
    if (!(r->provider->flags & CSN_REMOTE_EXEC_ISOLATED))
        (void)csn_remote_run_script(r, &s, &out, &code, NULL);
}

/* True while the sandbox is being destroyed, which ends its commands: no kill request is
 * needed. */
static bool is_closing(const csn_remote *r)
{
    struct pollfd p = {.fd = r->stop_fd, .events = POLLIN};

    return r->stop_fd >= 0 && !csn_remote_shared(r) && poll(&p, 1, 0) > 0;
}

static uint64_t interrupt_command(void *ctx, csn_status why)
{
    running *run = ctx;

    run->how = why == CSN_TIMEOUT ? CSN_END_TIMEOUT : CSN_END_CANCEL;
    if (is_closing(run->r))
        return 0;
    if ((run->r->provider->flags & CSN_REMOTE_EXEC_ISOLATED) && why != CSN_TIMEOUT)
        return 0;
    csn_remote_kill(run->r, run->exec_id);
    return csn_deadline_in(DRAIN_MS);
}

/* ---- output ----------------------------------------------------------------------------- */

static int pass_on(void *ctx, int stream, const void *data, size_t len)
{
    running *run = ctx;

    if (run->sink_stopped)
        return 1;
    int next =
        run->sink->write(run->sink->ctx, stream, run->count_only[stream] ? NULL : data, len);
    if (next == CSN_SINK_COUNT)
        run->count_only[stream] = true;
    run->sink_stopped = next == CSN_SINK_STOP;
    return run->sink_stopped ? CSN_REMOTE_STOP : 0;
}

static int take_output(void *ctx, int stream, const void *data, size_t len)
{
    running *run = ctx;

    return run->base64 ? csn_base64_stream_feed(run->base64, stream, data, len)
                       : pass_on(run, stream, data, len);
}

static bool wants_more(void *ctx, int stream)
{
    const running *run = ctx;

    return !run->count_only[stream] && !run->sink_stopped;
}

/* ---- stdin ------------------------------------------------------------------------------ */

typedef struct spool {
    const csn_exec_req *req;
    const csn_buf *head; /* bytes that were read already */
    size_t head_pos;
    uint32_t how;
} spool;

/* Reads from the source or the descriptor. A descriptor may have no data for a long time, so
 * the wait also ends at the deadline or on cancellation. */
static int64_t read_input(spool *s, void *buf, size_t len)
{
    const csn_exec_req *q = s->req;
    struct pollfd p[] = {{.fd = q->input_fd, .events = POLLIN},
                         {.fd = q->cancel_fds[0], .events = POLLIN},
                         {.fd = q->cancel_fds[1], .events = POLLIN}};

    if (q->input_fd < 0)
        return q->input->read(q->input->ctx, buf, len);
    for (;;) {
        int ready = poll(p, 3, csn_deadline_poll_ms(q->deadline_ns));
        if (ready == 0)
            s->how = CSN_END_TIMEOUT;
        else if (ready > 0 && (p[1].revents || p[2].revents))
            s->how = CSN_END_CANCEL;
        if (s->how != CSN_END_EXITED)
            return -1;
        if (ready < 0)
            continue;
        ssize_t n = read(q->input_fd, buf, len);
        if (n >= 0 || (errno != EAGAIN && errno != EINTR))
            return n;
    }
}

static int64_t read_spooled(void *ctx, void *buf, size_t len)
{
    spool *s = ctx;
    size_t left = s->head->len - s->head_pos;
    size_t n = left < len ? left : len;

    if (n == 0)
        return read_input(s, buf, len);
    memcpy(buf, s->head->data + s->head_pos, n);
    s->head_pos += n;
    return (int64_t)n;
}

/* Reads as much as the wrapper can embed. *ret_more: there may be more. */
static csn_status read_small(spool *s, csn_buf *head, bool *ret_more, csn_error **err)
{
    char buf[4096];

    while (head->len <= SMALL_INPUT) {
        int64_t n = read_input(s, buf, sizeof(buf));
        if (n < 0 || n > (int64_t)sizeof(buf))
            return csn_fail(err, CSN_IO, "stdin cannot be read");
        if (n == 0) {
            *ret_more = false;
            return CSN_OK;
        }
        if (csn_buf_append(head, buf, (size_t)n) != 0)
            return csn_fail(err, CSN_NOMEM, "stdin");
    }
    *ret_more = true;
    return CSN_OK;
}

/* Small input is embedded in the wrapper; the rest is uploaded to a file. */
static csn_status prepare_input(csn_remote *r, spool *s, csn_buf *head, csn_remote_wrapper *w,
                                bool *ret_small, csn_error **err)
{
    const csn_source source = {.read = read_spooled, .ctx = s};
    bool more = false;

    csn_status st = read_small(s, head, &more, err);
    *ret_small = !more;
    if (st < 0 || !more)
        return st;
    if (csn_remote_random_id(w->exec_id) != 0)
        return csn_fail(err, CSN_INTERNAL, "no random numbers: getrandom failed");
    snprintf(w->input, sizeof(w->input), "/tmp/.caisson-%s", w->exec_id);
    return csn_wrap(r->provider->upload(r, w->input, &source, err), err, "send stdin");
}

/* ---- one command ------------------------------------------------------------------------ */

static void set_lost(csn_exec_end *ret, const char *text, const char *reason)
{
    ret->how = CSN_END_LOST;
    snprintf(ret->message, sizeof(ret->message), "caisson: %.180s; %s\n", reason, text);
}

/* Returns a result if the command started, was interrupted or could not be spawned; otherwise
 * an error. */
static csn_status conclude(running *run, csn_status st, const csn_remote_exit *x,
                           csn_exec_end *ret, csn_error *why, csn_error **err)
{
    if (run->sink_stopped && run->how == CSN_END_EXITED && !run->ignore_stop) {
        csn_remote_kill(run->r, run->exec_id);
        run->how = CSN_END_CANCEL;
    }
    if (x->ended) {
        ret->exit_code = x->signal ? -1 : x->exit_code;
        ret->signal = x->signal;
    }
    if (x->timed_out && run->how == CSN_END_EXITED)
        run->how = CSN_END_TIMEOUT;
    /* Kill again: the first kill may have preceded the start of the command. */
    if (run->how != CSN_END_EXITED && !x->ended && x->sent && !run->sink_stopped &&
        !is_closing(run->r))
        csn_remote_kill(run->r, run->exec_id);
    if (run->how != CSN_END_EXITED) {
        ret->how = run->how;
        return CSN_OK;
    }
    if (st == CSN_OK && x->ended) {
        if (x->output_lost)
            set_lost(ret, "output of that time is missing", "the connection broke for a while");
        return CSN_OK;
    }
    if (st == CSN_OK && x->spawn_error[0] && !x->started) {
        ret->how = CSN_END_SPAWN;
        ret->exit_code = 1;
        snprintf(ret->message, sizeof(ret->message), "Error: %s", x->spawn_error);
        return CSN_OK;
    }
    if (x->started) {
        if (st != CSN_GONE && !run->ignore_stop)
            csn_remote_kill(run->r, run->exec_id);
        set_lost(ret, "how the command ended is not known",
                 why ? csn_error_message(why) : "the connection broke");
        return CSN_OK;
    }
    if (st == CSN_OK)
        return csn_fail(err, CSN_UNAVAILABLE, "the sandbox did not start the command");
    if (err)
        *err = why;
    if (x->sent && (st == CSN_UNAVAILABLE || st == CSN_IO))
        csn_error_advise(st, err, "the command may have started: check before you repeat it");
    return st;
}

static csn_status run_wrapped(csn_remote *r, const csn_exec_req *req,
                              const csn_remote_wrapper *w, bool ignore_stop,
                              const csn_sink *sink, csn_exec_end *ret, csn_error **err)
{
    bool live = req->input_fd >= 0 && (r->provider->flags & CSN_REMOTE_STDIN);
    csn_base64_stream base64;
    running run = {.r = r,
                   .sink = sink,
                   .exec_id = w->exec_id,
                   .how = CSN_END_EXITED,
                   .ignore_stop = ignore_stop};
    csn_remote_exit x = {.exit_code = -1};
    csn_error *why = NULL;
    const csn_remote_cmd cmd = {
        .argv = (const char *const *)w->argv,
        .env = w->env,
        .as_root = (req->flags & CSN_EXEC_SUDO) != 0,
        .read_only = (req->flags & CSN_EXEC_READS) != 0,
        .input_fd = live ? req->input_fd : -1,
        .deadline_ns = req->deadline_ns,
        .cancel_fds = {req->cancel_fds[0], req->cancel_fds[1], ignore_stop ? -1 : r->stop_fd},
        .exec_id = w->exec_id,
        .on_interrupt = ignore_stop ? NULL : interrupt_command,
        .on_output = take_output,
        .wants = wants_more,
        .ctx = &run,
    };

    csn_base64_stream_init(&base64, w->exec_id, pass_on, &run);
    run.base64 = w->base64 ? &base64 : NULL;
    csn_status st = r->provider->run(r, &cmd, &x, &why);
    if (w->base64)
        csn_base64_stream_finish(&base64, &x);
    csn_base64_stream_release(&base64);
    st = x.ended ? CSN_OK : st; /* the connection broke after the end */
    csn_status result = conclude(&run, st, &x, ret, why, err);
    if (result == CSN_OK || !err || *err != why)
        csn_error_free(why);
    return result;
}

/* CSN_END_CANCEL or CSN_END_TIMEOUT if the request was cancelled or expired before the start;
 * otherwise CSN_END_EXITED. */
static uint32_t ended_before_start(const csn_exec_req *req)
{
    struct pollfd p[] = {{.fd = req->cancel_fds[0], .events = POLLIN},
                         {.fd = req->cancel_fds[1], .events = POLLIN}};

    if (poll(p, 2, 0) > 0)
        return CSN_END_CANCEL;
    return req->deadline_ns && csn_deadline_poll_ms(req->deadline_ns) == 0 ? CSN_END_TIMEOUT
                                                                           : CSN_END_EXITED;
}

static csn_status exec_in(csn_remote *r, const csn_exec_req *req, const csn_sink *sink,
                          bool ignore_stop, csn_exec_end *ret, csn_error **err)
{
    csn_remote_wrapper w = {.base64 = (r->provider->flags & CSN_REMOTE_TEXT_ONLY) != 0};
    bool live = req->input_fd >= 0 && (r->provider->flags & CSN_REMOTE_STDIN);
    bool small = false;
    csn_autobuf head;
    spool s = {.req = req, .head = &head, .how = CSN_END_EXITED};
    csn_status st = CSN_OK;

    csn_buf_init(&head, SMALL_INPUT + 8192u);
    if (req->session || (req->flags & (CSN_EXEC_PTY | CSN_EXEC_RESTART)))
        return csn_fail(err, CSN_UNSUPPORTED, "backend '%s' runs plain commands only",
                        r->provider->name);
    ret->how = ended_before_start(req);
    if (ret->how != CSN_END_EXITED)
        return CSN_OK;
    if (!live && (req->input || req->input_fd >= 0))
        st = prepare_input(r, &s, &head, &w, &small, err);
    if (st < 0 && s.how != CSN_END_EXITED) { /* interrupted while stdin was read */
        if (err)
            csn_error_free(*err);
        ret->how = s.how;
        return CSN_OK;
    }
    if (st == CSN_OK)
        st = csn_remote_wrapper_build(&w, req, small ? &head : NULL, err);
    if (st == CSN_OK)
        st = run_wrapped(r, req, &w, ignore_stop, sink, ret, err);
    csn_remote_wrapper_release(&w);
    return st;
}

csn_status csn_remote_exec(void *state, const csn_exec_req *req, const csn_sink *sink,
                           csn_exec_end *ret, csn_error **err)
{
    return exec_in(state, req, sink, false, ret, err);
}

/* ---- scripts ---------------------------------------------------------------------------- */

static int keep_output(void *ctx, int stream, const void *data, size_t len)
{
    if (stream != CSN_STDOUT || !data)
        return CSN_SINK_MORE;
    return csn_buf_append(ctx, data, len) == 0 ? CSN_SINK_MORE : CSN_SINK_STOP;
}

csn_status csn_remote_run_script(csn_remote *r, const csn_remote_script *script, csn_buf *out,
                                 int *ret_code, csn_error **err)
{
    const char *argv[12] = {"sh", "-c", script->text, "sh"};
    const csn_sink sink = {.write = keep_output, .ctx = out};
    csn_exec_end end = {.size = sizeof(end), .exit_code = -1};
    csn_exec_req req = {.size = sizeof(req),
                        .flags = script->read_only ? CSN_EXEC_READS : 0,
                        .argv = argv,
                        .input = script->input,
                        .input_fd = -1,
                        .cancel_fds = {-1, -1},
                        .deadline_ns = script->deadline_ns};

    for (size_t i = 0; script->args && script->args[i] && i < 7; i++)
        argv[4 + i] = script->args[i];
    csn_status st = exec_in(r, &req, &sink, script->ignore_stop, &end, err);
    if (st < 0)
        return st;
    if (end.how == CSN_END_TIMEOUT)
        return csn_fail(err, CSN_TIMEOUT, "the sandbox did not answer in time");
    if (end.how == CSN_END_CANCEL)
        return csn_fail(err, CSN_CANCELLED, "the sandbox is being closed");
    if (end.how == CSN_END_LOST)
        return csn_fail(err, CSN_UNAVAILABLE, "the connection to the sandbox broke");
    if (end.how != CSN_END_EXITED || end.exit_code < 0)
        return csn_fail(err, CSN_IO, "the sandbox cannot run sh: %.200s", end.message);
    *ret_code = end.exit_code;
    return CSN_OK;
}
