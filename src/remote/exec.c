/* exec.c: one command in a remote sandbox, from the request to how it ended.
 *
 * Called by the core through the provider's ops table, and by this directory for scripts of its
 * own. What the sandbox says is hostile and the line to it may break at any byte. What must
 * hold: a command is sent once; when the answer breaks off its end is unknown, never a success;
 * at the deadline or a cancel the tree is killed inside while its last output is still listened
 * to, and nobody waits longer than LINGER_MS for that. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/limits.h"
#include "remote/remote.h"

#define SMALL_INPUT (16u * 1024u) /* carried in the wrapper: one request instead of two */
#define KILL_MS     10000u        /* for the request that kills */
#define LINGER_MS   5000u         /* after it, for the end of the command */

typedef struct running {
    csn_remote *r;
    const csn_sink *sink;
    const char *mark;
    uint32_t how; /* CSN_END_TIMEOUT or CSN_END_CANCEL once the alarm was raised */
    bool count_only[3];
    bool enough; /* the sink said stop */
    bool
        always; /* a script of ours that nothing disturbs: not killed, for that is what kills */
    csn_remote_coded *coded; /* or NULL */
} running;

/* ---- ending a tree ---------------------------------------------------------------------- */

/* Twice KILL: the second finds what was born while the first looked. */
static const char kill_script[] =
    "m=" CSN_REMOTE_MARK "=$1\n"
    "all() { for f in $(grep -ls \"$m\" /proc/[0-9]*/environ); do\n"
    "  p=${f#/proc/}; p=${p%/environ}; [ \"$p\" = $$ ] || kill -s \"$1\" \"$p\" && n=1; done; "
    "}\n"
    "n=; all TERM; [ -n \"$n\" ] || exit 0\n"
    "i=0; while [ $i -lt 4 ]; do sleep 0.05 || sleep 1; n=; all 0; [ -n \"$n\" ] || exit 0\n"
    "  i=$((i + 1)); done\n"
    "i=0; while [ $i -lt 20 ]; do n=; all KILL; [ -n \"$n\" ] || exit 0; i=$((i + 1)); done\n";

void csn_remote_kill(csn_remote *r, const char *mark)
{
    const char *const args[] = {mark, NULL};
    const csn_remote_script s = {.text = kill_script,
                                 .args = args,
                                 .deadline_ns = csn_deadline_in(KILL_MS),
                                 .always = true};
    csn_autobuf out;
    int code = -1;

    csn_buf_init(&out, 4096);
    if (!(r->kind->flags & CSN_REMOTE_ALONE))
        (void)csn_remote_ask(r, &s, &out, &code, NULL);
}

/* A sandbox that ends takes its commands along: nothing to kill. */
static bool ending(const csn_remote *r)
{
    struct pollfd p = {.fd = r->stop_fd, .events = POLLIN};

    return r->stop_fd >= 0 && !r->found && !(r->config->flags & CSN_OPEN_DETACHED) &&
           poll(&p, 1, 0) > 0;
}

static uint64_t raise_alarm(void *ctx, csn_status why)
{
    running *run = ctx;

    run->how = why == CSN_TIMEOUT ? CSN_END_TIMEOUT : CSN_END_CANCEL;
    if (ending(run->r))
        return 0;
    if ((run->r->kind->flags & CSN_REMOTE_ALONE) && why != CSN_TIMEOUT)
        return 0;
    csn_remote_kill(run->r, run->mark);
    return csn_deadline_in(LINGER_MS);
}

/* ---- output ----------------------------------------------------------------------------- */

static int pass_on(void *ctx, int stream, const void *data, size_t len)
{
    running *run = ctx;

    if (run->enough)
        return 1;
    int next =
        run->sink->write(run->sink->ctx, stream, run->count_only[stream] ? NULL : data, len);
    if (next == CSN_SINK_COUNT)
        run->count_only[stream] = true;
    run->enough = next == CSN_SINK_STOP;
    return run->enough ? CSN_REMOTE_ENOUGH : 0;
}

static int take(void *ctx, int stream, const void *data, size_t len)
{
    running *run = ctx;

    return run->coded ? csn_remote_coded_take(run->coded, stream, data, len)
                      : pass_on(run, stream, data, len);
}

static bool wants_more(void *ctx, int stream)
{
    const running *run = ctx;

    return !run->count_only[stream] && !run->enough;
}

/* ---- stdin ------------------------------------------------------------------------------ */

typedef struct spool {
    const csn_exec_req *req;
    int32_t stop_fd;
    const csn_buf *first; /* read already */
    size_t first_pos;
    uint32_t how;
} spool;

/* From the caller's source or descriptor; the descriptor may be a pipe that says nothing for
 * long. */
static int64_t next_input(spool *s, void *buf, size_t len)
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

static int64_t spooled(void *ctx, void *buf, size_t len)
{
    spool *s = ctx;
    size_t left = s->first->len - s->first_pos;
    size_t n = left < len ? left : len;

    if (n == 0)
        return next_input(s, buf, len);
    memcpy(buf, s->first->data + s->first_pos, n);
    s->first_pos += n;
    return (int64_t)n;
}

/* Reads up to what the wrapper carries; *ret_more: there is, or may be, more. */
static csn_status read_small(spool *s, csn_buf *first, bool *ret_more, csn_error **err)
{
    char buf[4096];

    while (first->len <= SMALL_INPUT) {
        int64_t n = next_input(s, buf, sizeof(buf));
        if (n < 0 || n > (int64_t)sizeof(buf))
            return csn_fail(err, CSN_IO, "stdin could not be read");
        if (n == 0) {
            *ret_more = false;
            return CSN_OK;
        }
        if (csn_buf_append(first, buf, (size_t)n) != 0)
            return csn_fail(err, CSN_NOMEM, "stdin");
    }
    *ret_more = true;
    return CSN_OK;
}

/* Gets stdin to where the wrapper finds it. */
static csn_status prepare_input(csn_remote *r, spool *s, csn_buf *first, csn_remote_shell *sh,
                                bool *ret_small, csn_error **err)
{
    const csn_source source = {.read = spooled, .ctx = s};
    bool more = false;

    csn_status st = read_small(s, first, &more, err);
    *ret_small = !more;
    if (st < 0 || !more)
        return st;
    if (csn_remote_mark(sh->mark) != 0)
        return csn_fail(err, CSN_INTERNAL, "no random numbers");
    snprintf(sh->input, sizeof(sh->input), "/tmp/.caisson-%s", sh->mark);
    return csn_wrap(r->kind->put(r, sh->input, &source, err), err, "send stdin");
}

/* ---- one command ------------------------------------------------------------------------ */

static void tell_lost(const csn_error *why, csn_exec_end *ret)
{
    ret->how = CSN_END_LOST;
    snprintf(ret->message, sizeof(ret->message),
             "caisson: %.180s; how the command ended is not known\n",
             why ? csn_error_message(why) : "the connection broke");
}

/* How it ended is known, but not all that it wrote. */
static void tell_gap(csn_exec_end *ret)
{
    ret->how = CSN_END_LOST;
    snprintf(ret->message, sizeof(ret->message),
             "caisson: the connection broke for a while; output of that time is missing\n");
}

/* The provider's word, which knows how it ended. */
static void tell_end(const csn_remote_exit *x, csn_exec_end *ret)
{
    ret->exit_code = x->signal ? -1 : x->exit_code;
    ret->signal = x->signal;
}

/* What came of it: data when the command ran, an error when it cannot have. */
static csn_status conclude(running *run, csn_status st, const csn_remote_exit *x,
                           csn_exec_end *ret, csn_error *why, csn_error **err)
{
    if (run->enough && run->how == CSN_END_EXITED && !run->always) {
        csn_remote_kill(run->r, run->mark);
        run->how = CSN_END_CANCEL;
    }
    if (x->ended)
        tell_end(x, ret);
    if (x->late && run->how == CSN_END_EXITED)
        run->how = CSN_END_TIMEOUT;
    /* Killed before it had started, it may have started since. */
    if (run->how != CSN_END_EXITED && !x->ended && x->sent && !run->enough && !ending(run->r))
        csn_remote_kill(run->r, run->mark);
    if (run->how != CSN_END_EXITED) { /* the alarm, whatever came after */
        ret->how = run->how;
        return CSN_OK;
    }
    if (st == CSN_OK && x->ended) {
        if (x->gap)
            tell_gap(ret);
        return CSN_OK;
    }
    if (st == CSN_OK && x->why[0] && !x->started) {
        ret->how = CSN_END_SPAWN;
        ret->exit_code = 1;
        snprintf(ret->message, sizeof(ret->message), "Error: %s", x->why);
        return CSN_OK;
    }
    if (x->started) {
        if (st != CSN_GONE && !run->always)
            csn_remote_kill(run->r, run->mark);
        tell_lost(why, ret);
        return CSN_OK;
    }
    if (st == CSN_OK)
        return csn_fail(err, CSN_UNAVAILABLE, "the sandbox did not start the command");
    if (err)
        *err = why;
    if (x->sent && (st == CSN_UNAVAILABLE || st == CSN_IO))
        csn_error_advise(st, err, "the command may have started: look before you repeat it");
    return st;
}

/* always: neither the end of the sandbox nor an alarm of its own disturbs it. */
static csn_status run_wrapped(csn_remote *r, const csn_exec_req *req,
                              const csn_remote_shell *sh, bool always, const csn_sink *sink,
                              csn_exec_end *ret, csn_error **err)
{
    bool live = req->input_fd >= 0 && (r->kind->flags & CSN_REMOTE_STDIN);
    csn_remote_coded coded;
    running run = {
        .r = r, .sink = sink, .mark = sh->mark, .how = CSN_END_EXITED, .always = always};
    csn_remote_exit x = {.exit_code = -1};
    csn_error *why = NULL;
    const csn_remote_cmd cmd = {
        .argv = (const char *const *)sh->argv,
        .env = sh->env,
        .root = (req->flags & CSN_EXEC_SUDO) != 0,
        .reads = (req->flags & CSN_EXEC_READS) != 0,
        .input_fd = live ? req->input_fd : -1,
        .deadline_ns = req->deadline_ns,
        .cancel_fds = {req->cancel_fds[0], req->cancel_fds[1], always ? -1 : r->stop_fd},
        .mark = sh->mark,
        .on_alarm = always ? NULL : raise_alarm,
        .on_output = take,
        .wants = wants_more,
        .ctx = &run,
    };

    csn_remote_coded_init(&coded, sh->mark, pass_on, &run);
    run.coded = sh->coded ? &coded : NULL;
    csn_status st = r->kind->run(r, &cmd, &x, &why);
    if (sh->coded)
        csn_remote_coded_end(&coded, &x);
    csn_remote_coded_release(&coded);
    st = x.ended ? CSN_OK : st; /* it has told its end, whatever came of the line since */
    csn_status told = conclude(&run, st, &x, ret, why, err);
    if (told == CSN_OK || !err || *err != why)
        csn_error_free(why);
    return told;
}

/* Is there a reason not even to begin? CSN_END_EXITED: none. */
static uint32_t over_already(const csn_exec_req *req)
{
    struct pollfd p[] = {{.fd = req->cancel_fds[0], .events = POLLIN},
                         {.fd = req->cancel_fds[1], .events = POLLIN}};

    if (poll(p, 2, 0) > 0)
        return CSN_END_CANCEL;
    return req->deadline_ns && csn_deadline_poll_ms(req->deadline_ns) == 0 ? CSN_END_TIMEOUT
                                                                           : CSN_END_EXITED;
}

static csn_status exec_in(csn_remote *r, const csn_exec_req *req, const csn_sink *sink,
                          bool always, csn_exec_end *ret, csn_error **err)
{
    csn_remote_shell sh = {.coded = (r->kind->flags & CSN_REMOTE_TEXT) != 0};
    bool live = req->input_fd >= 0 && (r->kind->flags & CSN_REMOTE_STDIN);
    bool small = false;
    csn_autobuf first;
    spool s = {.req = req, .first = &first, .how = CSN_END_EXITED};
    csn_status st = CSN_OK;

    csn_buf_init(&first, SMALL_INPUT + 8192u);
    if (req->session || (req->flags & (CSN_EXEC_PTY | CSN_EXEC_RESTART)))
        return csn_fail(err, CSN_UNSUPPORTED, "backend '%s' runs plain commands only",
                        r->kind->name);
    ret->how = over_already(req);
    if (ret->how != CSN_END_EXITED)
        return CSN_OK;
    if (!live && (req->input || req->input_fd >= 0))
        st = prepare_input(r, &s, &first, &sh, &small, err);
    if (st < 0 && s.how != CSN_END_EXITED) { /* time was up before there was all of stdin */
        if (err)
            csn_error_free(*err);
        ret->how = s.how;
        return CSN_OK;
    }
    if (st == CSN_OK)
        st = csn_remote_wrap(&sh, req, small ? &first : NULL, err);
    if (st == CSN_OK)
        st = run_wrapped(r, req, &sh, always, sink, ret, err);
    csn_remote_shell_release(&sh);
    return st;
}

csn_status csn_remote_exec(void *state, const csn_exec_req *req, const csn_sink *sink,
                           csn_exec_end *ret, csn_error **err)
{
    return exec_in(state, req, sink, false, ret, err);
}

/* ---- scripts of our own ----------------------------------------------------------------- */

static int keep_output(void *ctx, int stream, const void *data, size_t len)
{
    if (stream != CSN_STDOUT || !data)
        return CSN_SINK_MORE;
    return csn_buf_append(ctx, data, len) == 0 ? CSN_SINK_MORE : CSN_SINK_STOP;
}

csn_status csn_remote_ask(csn_remote *r, const csn_remote_script *script, csn_buf *out,
                          int *ret_code, csn_error **err)
{
    const char *argv[12] = {"sh", "-c", script->text, "sh"};
    const csn_sink sink = {.write = keep_output, .ctx = out};
    csn_exec_end end = {.size = sizeof(end), .exit_code = -1};
    csn_exec_req req = {.size = sizeof(req),
                        .flags = script->reads ? CSN_EXEC_READS : 0,
                        .argv = argv,
                        .input = script->input,
                        .input_fd = -1,
                        .cancel_fds = {-1, -1},
                        .deadline_ns = script->deadline_ns};

    for (size_t i = 0; script->args && script->args[i] && i < 7; i++)
        argv[4 + i] = script->args[i];
    csn_status st = exec_in(r, &req, &sink, script->always, &end, err);
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
