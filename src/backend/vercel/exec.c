/* exec.c: runs one command in a Vercel session and reads its output as JSON lines.
 *
 * One request starts a command and returns its output. A detached command is started by a
 * request that does not wait, so a broken connection cannot end it; a second request reads its
 * log until the caller stops it. Lines come from the sandbox: sizes, order and JSON are
 * checked, and an invalid line counts as a broken stream.
 *
 * Invariants: the command is sent at most once. Without a line that has an exit code, the exit
 * status is unknown. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/vercel/vercel.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"

#define REQUEST_MAX     (32u * 1024u * 1024u)
#define LINE_BYTES_MAX  (16u * 1024u * 1024u)
#define SERVER_EXTRA_MS 20000u                     /* added to the client's deadline */
#define IDLE_MS         (7u * 24u * 3600u * 1000u) /* the server sends no heartbeat */

/* ---- lines ------------------------------------------------------------------------------ */

/* The first line with a command object means that the command started; one with an exit code,
 * that it ended. */
static int command_line(csn_remote_output *o, const csn_jval *command)
{
    int64_t code = -1;

    o->exit->started = true;
    if (!csn_jval_get(command, "exitCode"))
        return 0;
    if (csn_jget_i64(command, "exitCode", &code, &o->why) < 0)
        return csn_remote_output_fail(o, CSN_IO);
    o->exit->ended = true;
    o->exit->exit_code = code >= 0 && code <= 255 ? (int)code : -1;
    return 0;
}

static int log_line(csn_remote_output *o, const char *name, const csn_jval *data)
{
    const char *text = csn_jval_string(data);
    int stream = strcmp(name, "stdout") == 0   ? CSN_STDOUT
                 : strcmp(name, "stderr") == 0 ? CSN_STDERR
                                               : 0;

    if (strcmp(name, "error") == 0) {
        const char *message = csn_jval_string(csn_jval_get(data, "message"));
        return csn_remote_output_fail(o, csn_fail(&o->why, CSN_UNAVAILABLE,
                                                  "the output stream of the command: %.200s",
                                                  message ? message : "error"));
    }
    if (!stream || !text)
        return csn_remote_output_fail(
            o, csn_fail(&o->why, CSN_IO, "the stream has a malformed log line"));
    if (o->drain || !text[0])
        return 0;
    int next = o->cmd->on_output(o->cmd->ctx, stream, text, strlen(text));
    o->drain = next == CSN_REMOTE_DONE;
    return o->drain ? 0 : next;
}

static int on_line(void *ctx, const csn_message *m)
{
    CSN_CLEANUP(csn_jval_freep) csn_jval *root = NULL;
    csn_remote_output *o = ctx;

    if (o->exit->ended)
        return csn_remote_output_fail(
            o, csn_fail(&o->why, CSN_IO, "the stream continues after its end"));
    if (csn_json_parse(m->data, m->len, "line of the sandbox", &root, &o->why) < 0)
        return csn_remote_output_fail(o, CSN_IO);
    const csn_jval *command = csn_jval_get(root, "command");
    const char *name = csn_jval_string(csn_jval_get(root, "stream"));
    if (command)
        return command_line(o, command);
    if (name && o->exit->started)
        return log_line(o, name, csn_jval_get(root, "data"));
    return csn_remote_output_fail(
        o, csn_fail(&o->why, CSN_IO, "the stream has a line of unknown kind"));
}

/* ---- requests --------------------------------------------------------------------------- */

static int command_body(const csn_remote_cmd *cmd, csn_buf *b)
{
    csn_json j;

    csn_json_begin(&j, b);
    csn_json_object(&j);
    csn_json_kstr(&j, "command", cmd->argv[0]);
    csn_remote_json_strings(&j, "args", cmd->argv + 1);
    csn_json_key(&j, "env");
    csn_remote_json_env(&j, cmd->env);
    csn_json_kbool(&j, "sudo", cmd->as_root);
    if (!cmd->detached) {
        csn_json_kbool(&j, "wait", true);
        csn_json_kbool(&j, "logs", true);
    }
    /* The server kills the command at this time even if this process is gone. */
    if (cmd->deadline_ns && !cmd->detached)
        csn_json_kuint(&j, "timeout",
                       (unsigned)csn_deadline_poll_ms(cmd->deadline_ns) + SERVER_EXTRA_MS);
    csn_json_object_end(&j);
    return csn_json_end(&j);
}

/* Combines the status of the HTTP request with that of the output stream. */
static csn_status conclude(csn_remote_output *o, csn_status st, const csn_http_res *res,
                           csn_error **err)
{
    if (st == CSN_OK && o->error == CSN_OK && !res->stopped)
        o->error = csn_stream_parser_finish(&o->parser, &o->why);
    if (o->error < 0) {
        if (st < 0 && err)
            csn_error_free(*err);
        if (err)
            *err = CSN_STEAL(o->why);
        return o->error;
    }
    if (st < 0 || res->stopped || o->exit->ended || o->cmd->detached)
        return st;
    return csn_fail(err, CSN_IO, "the output stream of the command broke off");
}

static csn_status stream_lines(csn_remote *r, csn_vercel_call c, csn_remote_output *o,
                               csn_http_res *res, csn_error **err)
{
    c.http.deadline_ns = o->cmd->deadline_ns;
    c.http.idle_ms = IDLE_MS;
    c.http.cancel_fds = o->cmd->cancel_fds;
    c.http.cancel_count = 3;
    c.http.on_interrupt = o->cmd->on_interrupt ? csn_remote_output_interrupt : NULL;
    c.http.on_body = csn_remote_output_body;
    c.http.ctx = o;
    csn_stream_parser_init(&o->parser, CSN_STREAM_LINES, LINE_BYTES_MAX, on_line, o);
    csn_status st = csn_vercel_request(r, &c, res, err);
    st = conclude(o, st, res, err);
    csn_stream_parser_release(&o->parser);
    csn_error_free(o->why);
    return st;
}

static csn_status run_detached(csn_remote *r, const csn_vercel_call *c, const csn_buf *body,
                               csn_remote_output *o, csn_error **err)
{
    CSN_CLEANUP(csn_jval_freep) csn_jval *root = NULL;
    csn_autofree char *path = NULL;
    csn_autores started = {0}, logs = {0};

    csn_status st = csn_vercel_request_json(r, *c, body, &root, &started, err);
    o->exit->sent = started.sent;
    if (st < 0)
        return st;
    const char *id = csn_jval_string(csn_jval_get(csn_jval_get(root, "command"), "id"));
    if (!csn_remote_id_valid(id))
        return csn_fail(err, CSN_IO, "the response of the Vercel API names no command");
    if (asprintf(&path, "/cmd/%s/logs", id) < 0) {
        path = NULL;
        return csn_fail(err, CSN_NOMEM, "run a command");
    }
    o->exit->started = true;
    const csn_vercel_call read = {.what = "read the log of a command",
                                  .path = path,
                                  .in_session = true,
                                  .http = {.method = "GET", .retry = CSN_HTTP_IDEMPOTENT}};
    return stream_lines(r, read, o, &logs, err);
}

/* Turns a response that the command could not be run into a result instead of an error. */
static csn_status spawn_failed(csn_remote_exit *ret, csn_error **err)
{
    snprintf(ret->spawn_error, sizeof(ret->spawn_error), "%s",
             err && *err ? csn_error_message(*err) : "the command could not be run");
    if (err) {
        csn_error_free(*err);
        *err = NULL;
    }
    return CSN_OK;
}

csn_status csn_vercel_run(csn_remote *r, const csn_remote_cmd *cmd, csn_remote_exit *ret,
                          csn_error **err)
{
    csn_remote_output o = {.cmd = cmd, .exit = ret};
    csn_autores res = {0};
    csn_autobuf body;

    csn_buf_init(&body, REQUEST_MAX);
    int e = command_body(cmd, &body);
    if (e != 0)
        return csn_fail_errno(err, e, "run a command");
    const csn_vercel_call c = {.what = "run a command",
                               .path = "/cmd",
                               .in_session = true,
                               .http = {.method = "POST",
                                        .retry = CSN_HTTP_ONCE,
                                        .body = body.data,
                                        .body_len = body.len,
                                        .deadline_ns = cmd->deadline_ns,
                                        .cancel_fds = cmd->cancel_fds,
                                        .cancel_count = 3}};
    if (cmd->detached)
        return run_detached(r, &c, &body, &o, err);
    csn_status st = stream_lines(r, c, &o, &res, err);
    ret->sent = res.sent;
    return st == CSN_INVALID && res.status == 400 ? spawn_failed(ret, err) : st;
}
