/* exec.c: one command through a stream of JSON lines.
 *
 * Called by src/remote with a command that is wrapped already. One request starts the command
 * and carries its output; one that is let go is started detached, so that nothing which happens
 * to the request can end it, and its log is read until we have heard enough. Lines are the
 * sandbox's: sizes, order and JSON are checked, what does not fit is a broken stream. Without
 * the line that has an exit code nothing is known about the end. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/vercel/vercel.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"

#define REQUEST_MAX     (32u * 1024u * 1024u)
#define MESSAGE_MAX     (16u * 1024u * 1024u)
#define SERVER_EXTRA_MS 20000u /* the server's own deadline comes after ours */
#define QUIET_MS        (7u * 24u * 3600u * 1000u) /* no heartbeat is promised */

typedef struct stream {
    const csn_remote_cmd *cmd;
    csn_remote_exit *exit;
    csn_stream lines;
    csn_status broken; /* what was wrong with the stream, or CSN_OK */
    csn_error *why;
    bool done; /* by CSN_REMOTE_DONE: what else comes is of no interest */
} stream;

/* ---- lines ------------------------------------------------------------------------------ */

static int broken(stream *s, csn_status st)
{
    s->broken = st;
    return 1;
}

/* The first one says that it began, one with an exit code that it ended. */
static int command_line(stream *s, const csn_jval *command)
{
    int64_t code = -1;

    s->exit->started = true;
    if (!csn_jval_get(command, "exitCode"))
        return 0;
    if (csn_jget_i64(command, "exitCode", &code, &s->why) < 0)
        return broken(s, CSN_IO);
    s->exit->ended = true;
    s->exit->exit_code = code >= 0 && code <= 255 ? (int)code : -1;
    return 0;
}

static int log_line(stream *s, const char *name, const csn_jval *data)
{
    const char *text = csn_jval_string(data);
    int which = strcmp(name, "stdout") == 0   ? CSN_STDOUT
                : strcmp(name, "stderr") == 0 ? CSN_STDERR
                                              : 0;

    if (strcmp(name, "error") == 0) {
        const char *words = csn_jval_string(csn_jval_get(data, "message"));
        return broken(s, csn_fail(&s->why, CSN_UNAVAILABLE, "the stream of the command: %.200s",
                                  words ? words : "error"));
    }
    if (!which || !text)
        return broken(s, csn_fail(&s->why, CSN_IO, "a line of the stream is no log"));
    if (s->done || !text[0])
        return 0;
    int next = s->cmd->on_output(s->cmd->ctx, which, text, strlen(text));
    s->done = next == CSN_REMOTE_DONE;
    return s->done ? 0 : next;
}

static int message(void *ctx, const csn_message *m)
{
    CSN_CLEANUP(csn_jval_freep) csn_jval *root = NULL;
    stream *s = ctx;

    if (s->exit->ended)
        return broken(s, csn_fail(&s->why, CSN_IO, "the stream goes on after its end"));
    if (csn_json_parse(m->data, m->len, "line of the sandbox", &root, &s->why) < 0)
        return broken(s, CSN_IO);
    const csn_jval *command = csn_jval_get(root, "command");
    const char *name = csn_jval_string(csn_jval_get(root, "stream"));
    if (command)
        return command_line(s, command);
    if (name && s->exit->started)
        return log_line(s, name, csn_jval_get(root, "data"));
    return broken(s, csn_fail(&s->why, CSN_IO, "a line of the stream is none of a command"));
}

static int take(void *ctx, const void *data, size_t len)
{
    stream *s = ctx;
    csn_status st = csn_stream_feed(&s->lines, data, len, &s->why);

    if (st < 0)
        s->broken = st;
    if (st < 0 || s->lines.stopped)
        return CSN_HTTP_ENOUGH;
    return s->done && !s->exit->ended ? CSN_HTTP_LINGER : 0;
}

static uint64_t forward_alarm(void *ctx, csn_status why)
{
    stream *s = ctx;

    return s->cmd->on_alarm(s->cmd->ctx, why);
}

/* ---- the request ------------------------------------------------------------------------ */

static int put_command(const csn_remote_cmd *cmd, csn_buf *b)
{
    csn_json j;

    csn_json_begin(&j, b);
    csn_json_object(&j);
    csn_json_kstr(&j, "command", cmd->argv[0]);
    csn_json_key(&j, "args");
    csn_json_array(&j);
    for (size_t i = 1; cmd->argv[i]; i++)
        csn_json_str(&j, cmd->argv[i]);
    csn_json_array_end(&j);
    csn_json_key(&j, "env");
    csn_remote_put_env(&j, cmd->env);
    csn_json_kbool(&j, "sudo", cmd->root);
    if (!cmd->let_go) {
        csn_json_kbool(&j, "wait", true);
        csn_json_kbool(&j, "logs", true);
    }
    /* If we are gone by then, the server ends it. A background process has no such limit. */
    if (cmd->deadline_ns && !cmd->let_go)
        csn_json_kuint(&j, "timeout",
                       (unsigned)csn_deadline_poll_ms(cmd->deadline_ns) + SERVER_EXTRA_MS);
    csn_json_object_end(&j);
    return csn_json_end(&j);
}

/* What the transport says, and what the stream in it said. */
static csn_status conclude(stream *s, csn_status st, const csn_http_res *res, csn_error **err)
{
    if (st == CSN_OK && s->broken == CSN_OK && !res->stopped)
        s->broken = csn_stream_end(&s->lines, &s->why);
    if (s->broken < 0) {
        if (st < 0 && err)
            csn_error_free(*err);
        if (err)
            *err = CSN_STEAL(s->why);
        return s->broken;
    }
    if (st < 0 || res->stopped || s->exit->ended || s->cmd->let_go)
        return st;
    return csn_fail(err, CSN_IO, "the stream of the command broke off");
}

static csn_status follow(csn_remote *r, csn_vercel_call c, stream *s, csn_http_res *res,
                         csn_error **err)
{
    const csn_remote_cmd *cmd = s->cmd;

    c.http.deadline_ns = cmd->deadline_ns;
    c.http.silence_ms = QUIET_MS;
    c.http.cancel_fds = cmd->cancel_fds;
    c.http.cancel_count = 3;
    c.http.on_alarm = cmd->on_alarm ? forward_alarm : NULL;
    c.http.on_body = take;
    c.http.ctx = s;
    csn_stream_init(&s->lines, CSN_STREAM_LINES, MESSAGE_MAX, message, s);
    csn_status st = csn_vercel_do(r, &c, res, err);
    st = conclude(s, st, res, err);
    csn_stream_release(&s->lines);
    csn_error_free(s->why);
    return st;
}

/* ---- detached --------------------------------------------------------------------------- */

/* "/cmd/ID/logs" for the command that was started. */
static csn_status log_path(const csn_jval *root, char **ret, csn_error **err)
{
    const char *id = csn_jval_string(csn_jval_get(csn_jval_get(root, "command"), "id"));

    if (!csn_vercel_id_fits(id))
        return csn_fail(err, CSN_IO, "the answer of the Vercel API names no command");
    if (asprintf(ret, "/cmd/%s/logs", id) < 0) {
        *ret = NULL;
        return csn_fail(err, CSN_NOMEM, "run a command");
    }
    return CSN_OK;
}

static csn_status run_detached(csn_remote *r, const csn_vercel_call *c, const csn_buf *body,
                               stream *s, csn_error **err)
{
    CSN_CLEANUP(csn_jval_freep) csn_jval *root = NULL;
    csn_autofree char *path = NULL;
    csn_autores started = {0}, logs = {0};

    csn_status st = csn_vercel_ask(r, *c, body, &root, &started, err);
    s->exit->sent = started.sent;
    if (st == CSN_OK)
        st = log_path(root, &path, err);
    if (st < 0)
        return st;
    s->exit->started = true;
    const csn_vercel_call read = {.what = "read the log of a command",
                                  .path = path,
                                  .session = true,
                                  .http = {.method = "GET", .repeat = CSN_HTTP_SAFE}};
    return follow(r, read, s, &logs, err);
}

/* The server understood, and could not run it: that is a result. */
static csn_status not_run(csn_remote_exit *ret, csn_error **err)
{
    snprintf(ret->why, sizeof(ret->why), "%s",
             err && *err ? csn_error_message(*err) : "it could not be run");
    if (err) {
        csn_error_free(*err);
        *err = NULL;
    }
    return CSN_OK;
}

csn_status csn_vercel_run(csn_remote *r, const csn_remote_cmd *cmd, csn_remote_exit *ret,
                          csn_error **err)
{
    stream s = {.cmd = cmd, .exit = ret};
    csn_autores res = {0};
    csn_autobuf body;

    csn_buf_init(&body, REQUEST_MAX);
    int e = put_command(cmd, &body);
    if (e != 0)
        return csn_fail_errno(err, e, "run a command");
    const csn_vercel_call c = {.what = "run a command",
                               .path = "/cmd",
                               .session = true,
                               .http = {.method = "POST",
                                        .repeat = CSN_HTTP_ONCE,
                                        .body = body.data,
                                        .body_len = body.len,
                                        .deadline_ns = cmd->deadline_ns,
                                        .cancel_fds = cmd->cancel_fds,
                                        .cancel_count = 3}};
    if (cmd->let_go)
        return run_detached(r, &c, &body, &s, err);
    csn_status st = follow(r, c, &s, &res, err);
    ret->sent = res.sent;
    return st == CSN_INVALID && res.status == 400 ? not_run(ret, err) : st;
}
