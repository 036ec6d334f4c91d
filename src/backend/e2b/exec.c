/* exec.c: runs one command through envd's process service (Connect-RPC).
 *
 * One Start request starts the process and streams its events; a thread that lives as long as
 * the command sends live stdin in separate requests. Events come from the sandbox: sizes, order
 * and JSON are checked, and an invalid event counts as a broken stream.
 *
 * Invariants: Start is sent at most once. Without an end event the exit status is unknown. If
 * the connection breaks, a Connect request attaches to the process again by its tag (pids are
 * reused, tags are not). envd stores no output: output written in between is reported as
 * lost. */
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
#include "base/base64.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/strv.h"

#define INPUT_CHUNK     32768u
#define INPUT_MS        60000u
#define REQUEST_MAX     (32u * 1024u * 1024u)
#define SERVER_EXTRA_MS 20000u /* added to the client's deadline */
#define RECONNECTS      8u

typedef struct process {
    csn_remote *r;
    csn_remote_output out;
    bool finished; /* the end frame has arrived */
    char tag[32];
    int64_t pid;
    /* live stdin: */
    pthread_t feeder;
    bool feeding;
    int stop_feeding; /* eventfd, or -1 */
} process;

/* ---- live stdin ------------------------------------------------------------------------- */

/* Sends input to the command; data NULL closes its stdin. */
static csn_status send_input(const process *p, const void *data, size_t len)
{
    csn_autobuf body;
    csn_json j;

    csn_buf_init(&body, 4 * INPUT_CHUNK);
    csn_json_begin(&j, &body);
    csn_json_object(&j);
    csn_json_key(&j, "process");
    csn_json_object(&j);
    csn_json_kint(&j, "pid", p->pid);
    csn_json_object_end(&j);
    if (data) {
        csn_json_key(&j, "input");
        csn_json_object(&j);
        csn_json_key(&j, "stdin");
        csn_json_base64(&j, data, len);
        csn_json_object_end(&j);
    }
    csn_json_object_end(&j);
    if (csn_json_end(&j) != 0)
        return CSN_NOMEM;
    return csn_e2b_call(p->r, data ? "process.Process/SendInput" : "process.Process/CloseStdin",
                        &body, INPUT_MS, NULL);
}

static void *feed(void *arg)
{
    process *p = arg;
    int input = p->out.cmd->input_fd;
    char buf[INPUT_CHUNK];

    for (;;) {
        struct pollfd fds[] = {{.fd = input, .events = POLLIN},
                               {.fd = p->stop_feeding, .events = POLLIN}};
        if (poll(fds, 2, -1) < 0 && errno == EINTR)
            continue;
        if (fds[1].revents)
            return NULL;
        ssize_t n = read(input, buf, sizeof(buf));
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            continue;
        csn_status st = send_input(p, n > 0 ? buf : NULL, n > 0 ? (size_t)n : 0);
        if (n <= 0 || st < 0)
            return NULL;
    }
}

static void start_feeding(process *p)
{
    sigset_t all, before;

    if (p->out.cmd->input_fd < 0 || p->feeding)
        return;
    sigfillset(&all); /* leave signals to the host's threads */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    p->stop_feeding = eventfd(0, EFD_CLOEXEC);
    p->feeding = p->stop_feeding >= 0 && pthread_create(&p->feeder, NULL, feed, p) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static void stop_feeding(process *p)
{
    uint64_t one = 1;

    if (p->feeding) {
        (void)!write(p->stop_feeding, &one, sizeof(one));
        pthread_join(p->feeder, NULL);
    }
    if (p->stop_feeding >= 0)
        close(p->stop_feeding);
}

/* ---- events ----------------------------------------------------------------------------- */

static int output_event(csn_remote_output *o, const csn_jval *data, const char *key, int stream)
{
    const char *text = csn_jval_string(csn_jval_get(data, key));
    size_t len = text ? strlen(text) : 0;

    if (len == 0)
        return 0;
    csn_autofree char *bytes = malloc(3 * (len / 4) + 3);
    long n = bytes ? csn_base64_decode(text, len, bytes) : -1;
    if (n < 0)
        return csn_remote_output_fail(
            o, csn_fail(&o->why, bytes ? CSN_IO : CSN_NOMEM, "output that is not base64"));
    return n > 0 ? o->cmd->on_output(o->cmd->ctx, stream, bytes, (size_t)n) : 0;
}

/* "signal: killed", as Go prints it. */
static int parse_signal(const char *status)
{
    static const struct {
        const char *text;
        int number;
    } signals[] = {
        {"hangup", SIGHUP},
        {"interrupt", SIGINT},
        {"quit", SIGQUIT},
        {"illegal instruction", SIGILL},
        {"trace/breakpoint trap", SIGTRAP},
        {"aborted", SIGABRT},
        {"bus error", SIGBUS},
        {"floating point exception", SIGFPE},
        {"killed", SIGKILL},
        {"user defined signal 1", SIGUSR1},
        {"segmentation fault", SIGSEGV},
        {"user defined signal 2", SIGUSR2},
        {"broken pipe", SIGPIPE},
        {"alarm clock", SIGALRM},
        {"terminated", SIGTERM},
        {"CPU time limit exceeded", SIGXCPU},
        {"file size limit exceeded", SIGXFSZ},
        {"bad system call", SIGSYS},
    };
    const char *name = status && csn_str_starts(status, "signal: ") ? status + 8 : NULL;
    unsigned number = 0;

    if (!name)
        return 0;
    for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
        if (csn_str_starts(name, signals[i].text))
            return signals[i].number;
    return sscanf(name, "signal %u", &number) == 1 && number < 65 ? (int)number : SIGKILL;
}

static int end_event(csn_remote_output *o, const csn_jval *end)
{
    int64_t code = 0;
    bool exited = false;

    if (csn_jget_i64(end, "exitCode", &code, &o->why) < 0 ||
        csn_jget_bool(end, "exited", &exited, &o->why) < 0)
        return csn_remote_output_fail(o, CSN_IO);
    o->exit->ended = true;
    o->exit->signal = exited ? 0 : parse_signal(csn_jval_string(csn_jval_get(end, "status")));
    o->exit->exit_code = exited && code >= 0 && code <= 255 ? (int)code : -1;
    return 0;
}

static int process_event(process *p, const csn_jval *event)
{
    const csn_jval *start = csn_jval_get(event, "start"), *data = csn_jval_get(event, "data");
    const csn_jval *end = csn_jval_get(event, "end");
    csn_remote_output *o = &p->out;
    int stop = 0;

    if (start) {
        o->exit->started = true;
        if (csn_jget_i64(start, "pid", &p->pid, &o->why) < 0)
            return csn_remote_output_fail(o, CSN_IO);
        start_feeding(p);
    }
    if (data) {
        stop = output_event(o, data, "stdout", CSN_STDOUT);
        stop = stop ? stop : output_event(o, data, "stderr", CSN_STDERR);
        stop = stop ? stop : output_event(o, data, "pty", CSN_STDOUT);
    }
    return stop || !end ? stop : end_event(o, end);
}

/* The last frame: {} or {"error":{code,message}}. */
static int end_of_stream(process *p, const csn_jval *root)
{
    const csn_jval *error = csn_jval_get(root, "error");
    const char *code = csn_jval_string(csn_jval_get(error, "code"));
    const char *message = csn_jval_string(csn_jval_get(error, "message"));
    csn_remote_exit *x = p->out.exit;

    p->finished = true;
    if (!error || x->ended)
        return 0;
    bool rejected =
        code && (strcmp(code, "invalid_argument") == 0 || strcmp(code, "not_found") == 0);
    if (!x->started && rejected)
        snprintf(x->spawn_error, sizeof(x->spawn_error), "%s", message ? message : code);
    else
        p->out.error = csn_e2b_error(p->r, 500, error, "run a command", &p->out.why);
    return 0;
}

static int on_message(void *ctx, const csn_message *m)
{
    CSN_CLEANUP(csn_jval_freep) csn_jval *root = NULL;
    process *p = ctx;
    csn_remote_output *o = &p->out;

    if (p->finished || (m->flags & CSN_CONNECT_COMPRESSED))
        return csn_remote_output_fail(o, csn_fail(&o->why, CSN_IO, "%s",
                                                  p->finished
                                                      ? "the stream continues after its end"
                                                      : "the stream has a compressed message"));
    if (csn_json_parse(m->data, m->len, "event of the sandbox", &root, &o->why) < 0)
        return csn_remote_output_fail(o, CSN_IO);
    if (m->flags & CSN_CONNECT_END)
        return end_of_stream(p, root);
    return process_event(p, csn_jval_get(root, "event"));
}

/* ---- requests --------------------------------------------------------------------------- */

static int start_body(const csn_remote_cmd *cmd, const char *tag, csn_buf *b)
{
    csn_json j;

    csn_json_begin(&j, b);
    csn_json_object(&j);
    csn_json_key(&j, "process");
    csn_json_object(&j);
    csn_json_kstr(&j, "cmd", cmd->argv[0]);
    csn_remote_json_strings(&j, "args", cmd->argv + 1);
    csn_json_key(&j, "envs");
    csn_remote_json_env(&j, cmd->env);
    csn_json_object_end(&j);
    csn_json_kstr(&j, "tag", tag);
    csn_json_kbool(&j, "stdin", cmd->input_fd >= 0);
    csn_json_object_end(&j);
    return csn_json_end(&j);
}

static csn_status request_frame(const process *p, bool reconnect, csn_buf *frame,
                                csn_error **err)
{
    csn_autobuf body;

    csn_buf_init(&body, REQUEST_MAX);
    int e = reconnect ? csn_buf_printf(&body, "{\"process\":{\"tag\":\"%s\"}}", p->tag)
                      : start_body(p->out.cmd, p->tag, &body);
    e = e ? e : csn_connect_frame(frame, 0, body.data, body.len);
    return e == 0 ? CSN_OK : csn_fail_errno(err, e, "run a command");
}

static void add_headers(csn_e2b_headers *h, const csn_remote *r, const csn_remote_cmd *cmd)
{
    csn_e2b_headers_init(h, r, "application/connect+json", cmd->as_root ? "root" : NULL);
    /* The server kills the command at this time even if this process is gone. */
    if (cmd->deadline_ns && !cmd->detached)
        csn_e2b_headers_add(h, "Connect-Timeout-Ms: %u",
                            (unsigned)csn_deadline_poll_ms(cmd->deadline_ns) + SERVER_EXTRA_MS);
}

/* Combines the status of the HTTP request with that of the event stream. */
static csn_status conclude(process *p, csn_status st, const csn_http_res *res, csn_error **err)
{
    csn_remote_output *o = &p->out;

    if (res->status != 0 && res->status / 100 != 2)
        return st;
    if (o->error < 0 || o->exit->ended) { /* ignore failures after the end event */
        csn_error_free(*err);
        *err = o->error < 0 ? CSN_STEAL(o->why) : NULL;
        return o->error;
    }
    if (st < 0 || res->stopped || o->exit->spawn_error[0])
        return st;
    return csn_fail(err, CSN_IO, "the output stream of the command broke off");
}

/* One request and its stream of events, until either ends. */
static csn_status stream_events(process *p, bool reconnect, csn_http_res *res, csn_error **err)
{
    const csn_remote_cmd *cmd = p->out.cmd;
    csn_e2b_headers h;
    csn_autobuf frame;

    csn_buf_init(&frame, REQUEST_MAX);
    csn_status st = request_frame(p, reconnect, &frame, err);
    if (st < 0)
        return st;
    csn_http_req q = {.method = "POST",
                      .body = frame.data,
                      .body_len = frame.len,
                      .retry = reconnect ? CSN_HTTP_IDEMPOTENT : CSN_HTTP_ONCE,
                      .deadline_ns = cmd->deadline_ns,
                      .cancel_fds = cmd->cancel_fds,
                      .cancel_count = 3,
                      .on_interrupt = cmd->on_interrupt ? csn_remote_output_interrupt : NULL,
                      .on_body = csn_remote_output_body,
                      .ctx = &p->out};
    add_headers(&h, p->r, cmd);
    csn_stream_parser_init(&p->out.parser, CSN_STREAM_CONNECT, CSN_E2B_MESSAGE_MAX, on_message,
                           p);
    st = csn_e2b_request(p->r, "run a command",
                         reconnect ? "process.Process/Connect" : "process.Process/Start", &h,
                         &q, res, err);
    csn_stream_parser_release(&p->out.parser);
    return conclude(p, st, res, err);
}

/* True if the connection broke while the command ran and can be restored. With live stdin it
 * cannot: input may be lost as well. */
static bool can_reconnect(const process *p, csn_status st)
{
    const csn_remote_output *o = &p->out;

    return o->exit->started && !o->exit->ended && !p->finished && o->error == CSN_OK &&
           !o->interrupted && !o->cmd->detached && o->cmd->input_fd < 0 &&
           (st == CSN_IO || st == CSN_UNAVAILABLE);
}

csn_status csn_e2b_run(csn_remote *r, const csn_remote_cmd *cmd, csn_remote_exit *ret,
                       csn_error **err)
{
    process p = {.r = r, .out = {.cmd = cmd, .exit = ret}, .stop_feeding = -1};
    csn_autores res = {0};
    csn_error *why = NULL;

    if (csn_remote_random_id(p.tag) != 0)
        return csn_fail(err, CSN_INTERNAL, "getrandom failed");
    csn_status st = stream_events(&p, false, &res, &why);
    ret->sent = res.sent;
    for (unsigned i = 0; i < RECONNECTS && can_reconnect(&p, st); i++) {
        csn_autores again = {0};
        csn_error *new_why = NULL;
        csn_status new_st = stream_events(&p, true, &again, &new_why);
        ret->output_lost = true;
        bool found =
            ret->ended || p.out.interrupted || again.stopped || can_reconnect(&p, new_st);
        csn_error_free(found ? why : new_why);
        if (!found) /* the process is gone: keep the first error */
            break;
        why = new_why;
        st = new_st;
    }
    stop_feeding(&p);
    if (err)
        *err = CSN_STEAL(why);
    csn_error_free(why);
    csn_error_free(p.out.why);
    return st;
}
