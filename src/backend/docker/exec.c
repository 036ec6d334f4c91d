/* exec.c: runs one command in a container with the engine's exec API.
 *
 * Requests: create (nothing runs yet), start (the connection becomes the command's streams),
 * and inspect if the streams do not contain the exit code. The engine's stream has no end
 * marker: a broken connection looks like a command without further output. The command is
 * therefore run by a shell that prints a trailer on both streams: the byte 036, a random token
 * and the exit code. Without a trailer the exit status is unknown, unless the engine reports
 * that the shell itself was killed. The trailer also ends the request while children of the
 * command hold its output open. A command that forges a trailer falsifies only its own result.
 *
 * An engine reports exit codes only: signal n is 128 + n, as in a shell. caisson reports such a
 * code as a signal only if it sent the signal.
 *
 * Invariant: start is sent at most once. */
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "backend/docker/docker.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "remote/hijack.h"

#define WHAT        "run a command"
#define REQUEST_MAX (32u * 1024u * 1024u)
#define FRAME_MAX   (16u * 1024u * 1024u)
#define INSPECT_MS  10000u
#define EXIT_WAIT_MS                                                                           \
    2000u /* from the end of the stream until the engine knows the exit code                   \
           */
#define POLL_MS      20
#define ARG_MAX_     (128u * 1024u) /* MAX_ARG_STRLEN */
#define TOKEN_LEN    20u
#define CODE_DIGITS  3u
#define TRAILER_BYTE '\036'

typedef struct exec {
    csn_remote *r;
    csn_remote_output out;
    char id[65];
    char trailer[33]; /* TRAILER_BYTE, which occurs once, and the token */
    struct {
        size_t matched; /* bytes of the trailer, with the digits, at the end of the output */
        bool complete;
        int code;
    } streams[3];
} exec;

/* TOKEN ARGV...: the shell survives signals to the process group, which are meant for the
 * command; its message about a killed command is discarded. */
static const char shell_script[] = "trap : HUP INT QUIT TERM PIPE ALRM USR1 USR2\n"
                                   "exec 3>&2 2>/dev/null\n"
                                   "(exec 2>&3 3>&-; exec \"$@\")\n"
                                   "c=$?; printf '\\036%s%03d' \"$0\" $c\n"
                                   "printf '\\036%s%03d' \"$0\" $c >&3; exit $c\n";

/* 404 and 409: the container does not exist or does not run. If no command has run in it yet,
 * the image is the cause. */
static csn_status exec_error(const exec *x, const csn_http_res *res, csn_error **err)
{
    bool gone = res->status == 404 || res->status == 409;

    if (gone && !x->r->workdir && !x->r->connected) {
        csn_status st = csn_fail(err, CSN_UNAVAILABLE, "the container ended at once");
        return csn_error_advise(st, err, "an image needs /bin/sh and sleep");
    }
    return gone ? csn_remote_gone(x->r, err) : csn_remote_response_error(x->r, res, WHAT, err);
}

/* Checked in advance: the engine reports a longer string as a failure of the command. */
static bool all_fit(const char *const *list)
{
    for (size_t i = 0; list && list[i]; i++)
        if (strlen(list[i]) >= ARG_MAX_)
            return false;
    return true;
}

/* ---- create ----------------------------------------------------------------------------- */

static int create_body(const exec *x, const char *user, csn_buf *b)
{
    const csn_remote_cmd *cmd = x->out.cmd;
    const char *const shell[] = {"/bin/sh", "-c", shell_script, x->trailer + 1, NULL};
    csn_json j;

    csn_json_begin(&j, b);
    csn_json_object(&j);
    csn_json_key(&j, "Cmd");
    csn_json_array(&j);
    for (size_t i = 0; !cmd->detached && shell[i]; i++)
        csn_json_str(&j, shell[i]);
    for (size_t i = 0; cmd->argv[i]; i++)
        csn_json_str(&j, cmd->argv[i]);
    csn_json_array_end(&j);
    csn_remote_json_strings(&j, "Env", cmd->env);
    csn_json_kstr(&j, "User", user);
    csn_json_kbool(&j, "AttachStdin", cmd->input_fd >= 0);
    csn_json_kbool(&j, "AttachStdout", true);
    csn_json_kbool(&j, "AttachStderr", true);
    csn_json_object_end(&j);
    return csn_json_end(&j);
}

static csn_status read_id(exec *x, const csn_http_res *res, csn_error **err)
{
    CSN_CLEANUP(csn_jval_freep) csn_jval *root = NULL;
    csn_status st = csn_remote_parse(res, WHAT, &root, err);
    const char *id = csn_jval_string(csn_jval_get(root, "Id"));

    if (st == CSN_OK && !csn_docker_id_valid(id))
        st = csn_fail(err, CSN_IO, "the engine returned no exec id");
    if (st == CSN_OK)
        snprintf(x->id, sizeof(x->id), "%s", id);
    return st;
}

static csn_status create(exec *x, const char *user, csn_error **err)
{
    const csn_remote_cmd *cmd = x->out.cmd;
    csn_autores res = {0};
    csn_autobuf body;
    const csn_docker_call c = {
        .what = WHAT,
        .method = "POST",
        .path = "/containers",
        .id = csn_docker_of(x->r)->container,
        .action = "/exec",
        .body = &body,
        .retry = CSN_HTTP_IDEMPOTENT, /* an exec that is never started does nothing */
        .deadline_ns = cmd->deadline_ns,
        .cancel_fds = cmd->cancel_fds,
        .on_interrupt = cmd->on_interrupt ? csn_remote_output_interrupt : NULL,
        .ctx = &x->out};

    csn_buf_init(&body, REQUEST_MAX);
    int e = create_body(x, user, &body);
    if (e != 0)
        return csn_fail_errno(err, e, WHAT);
    csn_status st = csn_docker_request(x->r, &c, &res, err);
    if (st == CSN_OK && res.status / 100 != 2)
        st = exec_error(x, &res, err);
    return st == CSN_OK ? read_id(x, &res, err) : st;
}

/* ---- start ------------------------------------------------------------------------------ */

static int emit(exec *x, int stream, const char *data, size_t len)
{
    const csn_remote_cmd *cmd = x->out.cmd;

    return len > 0 ? cmd->on_output(cmd->ctx, stream, data, len) : 0;
}

/* True if the byte continues the trailer: the token, then three digits. */
static bool match_trailer(exec *x, int stream, char c)
{
    size_t matched = x->streams[stream].matched;

    if (matched <= TOKEN_LEN && (matched == 0 || c != x->trailer[matched]))
        return false;
    if (matched > TOKEN_LEN && (c < '0' || c > '9'))
        return false;
    if (matched > TOKEN_LEN)
        x->streams[stream].code = x->streams[stream].code * 10 + (c - '0');
    x->streams[stream].matched = ++matched;
    x->streams[stream].complete = matched == 1 + TOKEN_LEN + CODE_DIGITS;
    return true;
}

/* Delivers the matched bytes, which turned out to be output; digits after a token are
 * dropped. */
static int emit_matched(exec *x, int stream)
{
    size_t matched = x->streams[stream].matched;

    x->streams[stream].matched = 0;
    x->streams[stream].code = 0;
    return emit(x, stream, x->trailer, matched < 1 + TOKEN_LEN ? matched : 1 + TOKEN_LEN);
}

/* Delivers everything up to the trailer; bytes that may be its beginning are held back. */
static int emit_output(exec *x, int stream, const char *p, size_t len)
{
    const char *end = p + len;
    int stop = 0;

    while (p < end && !stop && !x->streams[stream].complete) {
        if (match_trailer(x, stream, *p)) {
            p++;
        } else if (x->streams[stream].matched > 0) {
            stop = emit_matched(x, stream);
        } else {
            const char *first = memchr(p, TRAILER_BYTE, (size_t)(end - p));
            stop = emit(x, stream, p, (size_t)((first ? first : end) - p));
            x->streams[stream].matched = first ? 1 : 0;
            p = first ? first + 1 : end;
        }
    }
    return stop;
}

static bool has_trailers(const exec *x)
{
    return x->streams[CSN_STDOUT].complete && x->streams[CSN_STDERR].complete;
}

static int on_frame(void *ctx, const csn_message *m)
{
    exec *x = ctx;
    int stream = m->flags == 2 ? CSN_STDERR : CSN_STDOUT;

    if (m->len == 0)
        return 0;
    if (m->flags == 3) /* an error of the engine */
        return csn_remote_output_fail(
            &x->out, csn_fail(&x->out.why, CSN_IO, "the engine reports: %.200s", m->data));
    if (x->out.cmd->detached)
        return emit(x, stream, m->data, m->len);
    return emit_output(x, stream, m->data, m->len) || has_trailers(x);
}

/* *ret_ended: the stream ended by itself. */
static csn_status start(exec *x, bool *ret_ended, csn_error **err)
{
    static const char body[] = "{\"Detach\":false,\"Tty\":false}";
    const csn_remote_cmd *cmd = x->out.cmd;
    csn_remote_output *o = &x->out;
    csn_autores res = {0};
    char path[128];
    const csn_hijack_req q = {.unix_path = csn_docker_of(x->r)->socket,
                              .path = path,
                              .body = body,
                              .body_len = sizeof(body) - 1,
                              .input_fd = cmd->input_fd,
                              .deadline_ns = cmd->deadline_ns,
                              .cancel_fds = cmd->cancel_fds,
                              .cancel_count = 3,
                              .on_interrupt =
                                  cmd->on_interrupt ? csn_remote_output_interrupt : NULL,
                              .on_body = csn_remote_output_body,
                              .ctx = o};

    snprintf(path, sizeof(path), "/exec/%s/start", x->id);
    csn_status st = csn_hijack_do(&q, &res, err);
    o->exit->sent = res.sent;
    o->exit->started = res.status == 101 || res.status == 200;
    if (st < 0)
        return st;
    if (!o->exit->started)
        return exec_error(x, &res, err);
    if (o->error == CSN_OK && !res.stopped)
        o->error = csn_stream_parser_finish(&o->parser, &o->why);
    if (o->error < 0 && err)
        *err = CSN_STEAL(o->why);
    *ret_ended = !res.stopped || has_trailers(x);
    if (!res.stopped) {
        (void)emit_matched(x, CSN_STDOUT);
        (void)emit_matched(x, CSN_STDERR);
    }
    return o->error;
}

/* ---- inspect ---------------------------------------------------------------------------- */

static void set_exit(exec *x, int64_t code)
{
    csn_remote_exit *ret = x->out.exit;
    bool killed = x->out.interrupted && (code == 128 + SIGTERM || code == 128 + SIGKILL);

    ret->ended = true;
    ret->signal = killed ? (int)code - 128 : 0;
    ret->exit_code = killed || code < 0 || code > 255 ? -1 : (int)code;
}

static csn_status inspect(exec *x, csn_error **err)
{
    CSN_CLEANUP(csn_jval_freep) csn_jval *root = NULL;
    csn_autores res = {0};
    bool running = true;
    int64_t code = -1;
    const csn_docker_call c = {.what = "inspect a command",
                               .method = "GET",
                               .path = "/exec",
                               .id = x->id,
                               .action = "/json",
                               .retry = CSN_HTTP_IDEMPOTENT,
                               .ignore_stop = true,
                               .deadline_ns = csn_deadline_in(INSPECT_MS)};

    csn_status st = csn_docker_request(x->r, &c, &res, err);
    if (st == CSN_OK && res.status != 200)
        st = exec_error(x, &res, err);
    if (st == CSN_OK)
        st = csn_remote_parse(&res, c.what, &root, err);
    if (st == CSN_OK)
        st = csn_jget_bool(root, "Running", &running, err);
    if (st == CSN_OK && !running)
        st = csn_jget_i64(root, "ExitCode", &code, err);
    if (st == CSN_OK && !running)
        set_exit(x, code);
    return st;
}

/* Reads the exit code from the trailer or, without one, from the engine, which may store it
 * shortly after closing the stream. */
static csn_status read_exit(exec *x, csn_error **err)
{
    uint64_t until = csn_deadline_in(EXIT_WAIT_MS);
    csn_remote_exit *ret = x->out.exit;

    if (has_trailers(x)) {
        set_exit(x, x->streams[CSN_STDOUT].code);
        return CSN_OK;
    }
    csn_status st = inspect(x, err);
    while (st == CSN_OK && !ret->ended && csn_deadline_poll_ms(until) > 0) {
        (void)poll(NULL, 0, POLL_MS);
        st = inspect(x, err);
    }
    /* No trailer: the shell was killed, or output is missing. */
    if (st == CSN_OK && !x->out.cmd->detached && ret->exit_code != 128 + SIGKILL)
        ret->ended = false;
    if (st == CSN_OK && !ret->ended)
        st = csn_fail(err, CSN_IO, "the output stream of the command broke off");
    return st;
}

csn_status csn_docker_run_as(csn_remote *r, const char *user, const csn_remote_cmd *cmd,
                             csn_remote_exit *ret, csn_error **err)
{
    exec x = {.r = r, .out = {.cmd = cmd, .exit = ret}, .trailer = {TRAILER_BYTE}};
    bool ended = false;

    if (!all_fit(cmd->argv) || !all_fit(cmd->env)) {
        snprintf(ret->spawn_error, sizeof(ret->spawn_error), "Argument list too long");
        return CSN_OK;
    }
    if (csn_remote_random_id(x.trailer + 1) != 0)
        return csn_fail(err, CSN_INTERNAL, "getrandom failed");
    csn_status st = create(&x, user, err);
    if (st < 0 || x.out.interrupted)
        return st;
    csn_stream_parser_init(&x.out.parser, CSN_STREAM_DOCKER, FRAME_MAX, on_frame, &x);
    st = start(&x, &ended, err);
    if (st == CSN_OK && ended)
        st = read_exit(&x, err);
    csn_stream_parser_release(&x.out.parser);
    csn_error_free(x.out.why);
    return st;
}

csn_status csn_docker_run(csn_remote *r, const csn_remote_cmd *cmd, csn_remote_exit *ret,
                          csn_error **err)
{
    csn_error *why = NULL;
    csn_status st = csn_docker_run_as(r, csn_docker_of(r)->user, cmd, ret, &why);
    bool not_started = !ret->started && !ret->ended && !ret->spawn_error[0];

    /* While a container is ending, the engine answers a start with an error or closes the
     * connection. Before the first command the cause may be the image: keep the error in
     * `why`. */
    if ((st == CSN_OK || st == CSN_UNAVAILABLE) && not_started &&
        (r->workdir || r->connected) && csn_docker_has_ended(r)) {
        csn_error_free(why);
        return csn_remote_gone(r, err);
    }
    if (err)
        *err = CSN_STEAL(why);
    csn_error_free(why);
    return st;
}
