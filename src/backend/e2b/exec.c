/* exec.c: one command through envd's stream of events.
 *
 * Called by src/remote with a command that is wrapped already. One request starts the process
 * and carries its output; live stdin goes by requests of its own, made by a thread that lives
 * as long as the command. Events are the sandbox's: sizes, order and JSON are checked, what
 * does not fit is a broken stream. Without the end event nothing is known about the end.
 *
 * If the line breaks while the command runs, the process is listened to again, found by a tag
 * of its own (numbers of processes come again, tags do not). envd keeps no output: what was
 * written meanwhile is missing, and that is told. If the process is not there any more, how it
 * ended is not known. */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
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
#include "base/json_write.h"
#include "base/strv.h"

#define INPUT_CHUNK     32768u
#define INPUT_MS        60000u
#define REQUEST_MAX     (32u * 1024u * 1024u)
#define SERVER_EXTRA_MS 20000u /* the server's own deadline comes after ours */
#define RECONNECTS      8u

typedef struct start {
    csn_remote *r;
    const csn_remote_cmd *cmd;
    csn_remote_exit *exit;
    csn_stream stream;
    csn_status broken; /* what was wrong with the stream, or CSN_OK */
    csn_error *why;
    bool finished; /* the end frame came */
    bool alarmed;  /* somebody wanted it to end */
    char tag[32];  /* of the process */
    /* live stdin */
    pthread_t feeder;
    bool feeding;
    int stop_feeding; /* eventfd */
    int64_t pid;
} start;

/* ---- live stdin ------------------------------------------------------------------------- */

static csn_status send_input(start *s, const void *data, size_t len)
{
    csn_autobuf body;
    csn_json j;

    csn_buf_init(&body, 4 * INPUT_CHUNK);
    csn_json_begin(&j, &body);
    csn_json_object(&j);
    csn_json_key(&j, "process");
    csn_json_object(&j);
    csn_json_kint(&j, "pid", s->pid);
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
    return csn_e2b_call(s->r, data ? "process.Process/SendInput" : "process.Process/CloseStdin",
                        &body, INPUT_MS, NULL, NULL);
}

static void *feed(void *arg)
{
    start *s = arg;
    char buf[INPUT_CHUNK];

    for (;;) {
        struct pollfd p[] = {{.fd = s->cmd->input_fd, .events = POLLIN},
                             {.fd = s->stop_feeding, .events = POLLIN}};
        if (poll(p, 2, -1) < 0 && errno == EINTR)
            continue;
        if (p[1].revents)
            return NULL;
        ssize_t n = read(s->cmd->input_fd, buf, sizeof(buf));
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            continue;
        if (n <= 0) {
            (void)send_input(s, NULL, 0);
            return NULL;
        }
        if (send_input(s, buf, (size_t)n) < 0)
            return NULL; /* nobody reads any more */
    }
}

static void start_feeding(start *s)
{
    sigset_t all, before;

    if (s->cmd->input_fd < 0 || s->feeding)
        return;
    sigfillset(&all); /* signals are for the host's own threads */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    s->stop_feeding = eventfd(0, EFD_CLOEXEC);
    s->feeding = s->stop_feeding >= 0 && pthread_create(&s->feeder, NULL, feed, s) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static void stop_feeding(start *s)
{
    uint64_t one = 1;

    if (s->feeding) {
        (void)!write(s->stop_feeding, &one, sizeof(one));
        pthread_join(s->feeder, NULL);
    }
    if (s->stop_feeding >= 0)
        close(s->stop_feeding);
}

/* ---- events ----------------------------------------------------------------------------- */

static int broken(start *s, csn_status st)
{
    s->broken = st;
    return 1;
}

static int output(start *s, const csn_jval *data, const char *key, int stream)
{
    const char *text = csn_jval_string(csn_jval_get(data, key));
    size_t len = text ? strlen(text) : 0;

    if (len == 0)
        return 0;
    csn_autofree char *bytes = malloc(3 * (len / 4) + 3);
    long n = bytes ? csn_base64_decode(text, len, bytes) : -1;
    if (n < 0)
        return broken(
            s, csn_fail(&s->why, bytes ? CSN_IO : CSN_NOMEM, "output that is not base64"));
    return n > 0 ? s->cmd->on_output(s->cmd->ctx, stream, bytes, (size_t)n) : 0;
}

/* "signal: killed" in Go's words. */
static int signal_of(const char *status)
{
    static const struct {
        const char *word;
        int number;
    } words[] = {
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
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (csn_str_starts(name, words[i].word))
            return words[i].number;
    return sscanf(name, "signal %u", &number) == 1 && number < 65 ? (int)number : SIGKILL;
}

static int process_end(start *s, const csn_jval *end)
{
    int64_t code = 0;
    bool exited = false;

    if (csn_jget_i64(end, "exitCode", &code, &s->why) < 0 ||
        csn_jget_bool(end, "exited", &exited, &s->why) < 0)
        return broken(s, CSN_IO);
    s->exit->ended = true;
    s->exit->signal = exited ? 0 : signal_of(csn_jval_string(csn_jval_get(end, "status")));
    s->exit->exit_code = exited && code >= 0 && code <= 255 ? (int)code : -1;
    return 0;
}

static int event(start *s, const csn_jval *e)
{
    const csn_jval *begun = csn_jval_get(e, "start"), *data = csn_jval_get(e, "data");
    const csn_jval *end = csn_jval_get(e, "end");
    int stop = 0;

    if (begun) {
        s->exit->started = true;
        if (csn_jget_i64(begun, "pid", &s->pid, &s->why) < 0)
            return broken(s, CSN_IO);
        start_feeding(s);
    }
    if (data) {
        stop = output(s, data, "stdout", CSN_STDOUT);
        stop = stop ? stop : output(s, data, "stderr", CSN_STDERR);
        stop = stop ? stop : output(s, data, "pty", CSN_STDOUT);
    }
    return stop || !end ? stop : process_end(s, end);
}

/* The last frame: {} or {"error":{code,message}}. */
static int stream_end(start *s, const csn_jval *root)
{
    const csn_jval *e = csn_jval_get(root, "error");
    const char *code = csn_jval_string(csn_jval_get(e, "code"));
    const char *words = csn_jval_string(csn_jval_get(e, "message"));

    s->finished = true;
    if (!e || s->exit->ended)
        return 0;
    bool ours =
        code && (strcmp(code, "invalid_argument") == 0 || strcmp(code, "not_found") == 0);
    if (!s->exit->started && ours) { /* it was understood, and could not be run */
        snprintf(s->exit->why, sizeof(s->exit->why), "%s", words ? words : code);
        return 0;
    }
    s->broken = csn_e2b_refused(s->r, 500, code, words, "run a command", &s->why);
    return 0;
}

static int message(void *ctx, const csn_message *m)
{
    CSN_CLEANUP(csn_jval_freep) csn_jval *root = NULL;
    start *s = ctx;

    if (s->finished)
        return broken(s, csn_fail(&s->why, CSN_IO, "the stream goes on after its end"));
    if (m->flags & CSN_CONNECT_COMPRESSED)
        return broken(s, csn_fail(&s->why, CSN_IO, "a compressed message in the stream"));
    if (csn_json_parse(m->data, m->len, "event of the sandbox", &root, &s->why) < 0)
        return broken(s, CSN_IO);
    if (m->flags & CSN_CONNECT_END)
        return stream_end(s, root);
    return event(s, csn_jval_get(root, "event"));
}

static int take(void *ctx, const void *data, size_t len)
{
    start *s = ctx;
    csn_status st = csn_stream_feed(&s->stream, data, len, &s->why);

    if (st < 0)
        s->broken = st;
    return st < 0 || s->stream.stopped;
}

static uint64_t forward_alarm(void *ctx, csn_status why)
{
    start *s = ctx;

    s->alarmed = true;
    return s->cmd->on_alarm(s->cmd->ctx, why);
}

/* ---- the request ------------------------------------------------------------------------ */

static int put_start(const csn_remote_cmd *cmd, const char *tag, csn_buf *b)
{
    csn_json j;

    csn_json_begin(&j, b);
    csn_json_object(&j);
    csn_json_key(&j, "process");
    csn_json_object(&j);
    csn_json_kstr(&j, "cmd", cmd->argv[0]);
    csn_json_key(&j, "args");
    csn_json_array(&j);
    for (size_t i = 1; cmd->argv[i]; i++)
        csn_json_str(&j, cmd->argv[i]);
    csn_json_array_end(&j);
    csn_json_key(&j, "envs");
    csn_remote_put_env(&j, cmd->env);
    csn_json_object_end(&j);
    csn_json_kstr(&j, "tag", tag);
    csn_json_kbool(&j, "stdin", cmd->input_fd >= 0);
    csn_json_object_end(&j);
    return csn_json_end(&j);
}

static int put_connect(const char *tag, csn_buf *b)
{
    csn_json j;

    csn_json_begin(&j, b);
    csn_json_object(&j);
    csn_json_key(&j, "process");
    csn_json_object(&j);
    csn_json_kstr(&j, "tag", tag);
    csn_json_object_end(&j);
    csn_json_object_end(&j);
    return csn_json_end(&j);
}

/* To start the process, or to listen to it again. */
static csn_status put_request(const start *s, bool again, csn_buf *frame, csn_error **err)
{
    csn_autobuf body;

    csn_buf_init(&body, REQUEST_MAX);
    int e = again ? put_connect(s->tag, &body) : put_start(s->cmd, s->tag, &body);
    e = e ? e : csn_connect_frame(frame, 0, body.data, body.len);
    return e == 0 ? CSN_OK : csn_fail_errno(err, e, "run a command");
}

static void put_headers(csn_e2b_headers *h, const csn_remote *r, const csn_remote_cmd *cmd)
{
    csn_e2b_headers_init(h, r, "application/connect+json", cmd->root ? "root" : NULL);
    /* If we are gone by then, the server ends it. A background process has no such limit. */
    if (cmd->deadline_ns && !cmd->let_go)
        csn_e2b_headers_add(h, "Connect-Timeout-Ms: %u",
                            (unsigned)csn_deadline_poll_ms(cmd->deadline_ns) + SERVER_EXTRA_MS);
}

/* What the transport says, and what the stream in it said. */
static csn_status conclude(start *s, csn_status st, const csn_http_res *res, csn_error **err)
{
    if (st == CSN_OK && res->status != 0 && res->status / 100 != 2)
        return csn_e2b_failed(s->r, res, "run a command", err);
    if (s->broken < 0) {
        csn_error_free(*err);
        *err = CSN_STEAL(s->why);
        return s->broken;
    }
    if (s->exit->ended) { /* the last event: what broke after it took nothing along */
        csn_error_free(*err);
        *err = NULL;
        return CSN_OK;
    }
    if (st < 0 || res->stopped || s->exit->why[0])
        return st;
    return csn_fail(err, CSN_IO, "the stream of the command broke off");
}

/* One request and its stream of events, to the end of either. */
static csn_status follow(start *s, bool again, csn_http_res *res, csn_error **err)
{
    const csn_remote_cmd *cmd = s->cmd;
    csn_autofree char *url = NULL;
    csn_e2b_headers h;
    csn_autobuf frame;

    csn_buf_init(&frame, REQUEST_MAX);
    csn_status st = put_request(s, again, &frame, err);
    if (st < 0)
        return st;
    if (asprintf(&url, "%s/process.Process/%s", csn_e2b_of(s->r)->envd_url,
                 again ? "Connect" : "Start") < 0) {
        url = NULL;
        return csn_fail(err, CSN_NOMEM, "run a command");
    }
    put_headers(&h, s->r, cmd);
    csn_stream_init(&s->stream, CSN_STREAM_CONNECT, CSN_E2B_MESSAGE_MAX, message, s);
    const csn_http_req q = {.method = "POST",
                            .url = url,
                            .headers = (const char *const *)h.list,
                            .body = frame.data,
                            .body_len = frame.len,
                            .repeat = again ? CSN_HTTP_SAFE : CSN_HTTP_ONCE,
                            .deadline_ns = cmd->deadline_ns,
                            .cancel_fds = cmd->cancel_fds,
                            .cancel_count = 3,
                            .on_alarm = cmd->on_alarm ? forward_alarm : NULL,
                            .on_body = take,
                            .ctx = s};
    st = h.failed ? csn_fail(err, CSN_NOMEM, "run a command")
                  : csn_http_do(s->r->http, &q, res, err);
    csn_stream_release(&s->stream);
    csn_e2b_headers_release(&h);
    return conclude(s, st, res, err);
}

/* Did the line break while the command ran, and is there a way to go on? What was typed may be
 * lost as well, and then nobody knows what the command got. */
static bool cut_off(const start *s, csn_status st)
{
    return s->exit->started && !s->exit->ended && !s->finished && s->broken == CSN_OK &&
           !s->alarmed && !s->cmd->let_go && s->cmd->input_fd < 0 &&
           (st == CSN_IO || st == CSN_UNAVAILABLE);
}

csn_status csn_e2b_run(csn_remote *r, const csn_remote_cmd *cmd, csn_remote_exit *ret,
                       csn_error **err)
{
    start s = {.r = r, .cmd = cmd, .exit = ret, .stop_feeding = -1};
    csn_autores res = {0};
    csn_error *why = NULL;

    if (csn_remote_mark(s.tag) != 0)
        return csn_fail(err, CSN_INTERNAL, "no random numbers");
    csn_status st = follow(&s, false, &res, &why);
    ret->sent = res.sent;
    for (unsigned i = 0; i < RECONNECTS && cut_off(&s, st); i++) {
        csn_autores more = {0};
        csn_error *now = NULL;
        csn_status then = follow(&s, true, &more, &now);
        ret->gap = true;
        if (ret->ended || s.alarmed || more.stopped || cut_off(&s, then)) {
            csn_error_free(why);
            why = now;
            st = then;
            continue;
        }
        csn_error_free(
            now); /* it is not there any more: what broke the line stays the reason */
        break;
    }
    stop_feeding(&s);
    if (err)
        *err = CSN_STEAL(why);
    csn_error_free(why);
    csn_error_free(s.why);
    return st;
}
