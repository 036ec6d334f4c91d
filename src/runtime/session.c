/* session.c: runs commands in a persistent shell.
 *
 * The keeper holds one shell per session name and lends its script pipe, status pipe and output
 * pipes to one command at a time. The command is one single-quoted word for `eval`, so an
 * unfinished quote, a here-document or a syntax error cannot affect what follows. The status
 * line starts with a random token that the command does not know. Stopping a command ends the
 * session, because the rest of its line must not run; the next command gets a new shell.
 * Variables of a call are exported and stay set in the session. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/limits.h"
#include "os/pump.h"
#include "runtime/link.h"

#define SCRIPT_MAX (3u * CSN_ARGV_BYTES_MAX)
#define TOKEN_LEN  16   /* short, because bash reads its script byte by byte */
#define STATUS_MAX 4096 /* bytes to search for our status line */

/* If another file system was mounted over the shell's directory, enters the one at its path. */
#define ENTER_AGAIN                                                                            \
    "[ . -ef \"$PWD\" ] || { CSN_OLDPWD=$OLDPWD; command cd -- \"$PWD\"; "                     \
    "OLDPWD=$CSN_OLDPWD; unset CSN_OLDPWD; } 2>/dev/null\n"

typedef struct session_exec {
    csn_runtime *rt;
    const csn_exec_req *req;
    csn_pump pump;
    int channel;
    csn_buf script;
    size_t fed;
    char token[TOKEN_LEN + 1];
    char status[STATUS_MAX + 1];
    size_t status_len;
    uint32_t how;
    bool killed, fresh;
    csn_kill_wait kill_wait; /* after KILL */
    uint32_t refused;        /* messages REFUSED */
    const csn_exec_extra *extra;
} session_exec;

/* ---- the script ---- */

/* Quotes s with single quotes; only a single quote needs escaping. */
static int put_quoted(csn_buf *b, const char *s)
{
    int e = csn_buf_putc(b, '\'');

    while (e == 0 && *s) {
        size_t n = strcspn(s, "'");
        e = csn_buf_append(b, s, n);
        s += n;
        if (e == 0 && *s == '\'') {
            e = csn_buf_puts(b, "'\\''");
            s++;
        }
    }
    return e ? e : csn_buf_putc(b, '\'');
}

static bool is_identifier(const char *s, size_t len)
{
    if (len == 0 || isdigit((unsigned char)s[0]))
        return false;
    for (size_t i = 0; i < len; i++)
        if (!isalnum((unsigned char)s[i]) && s[i] != '_')
            return false;
    return true;
}

/* Names are not quoted in the script, so only identifiers are accepted. */
static csn_status put_exports(csn_buf *b, const char *const *env, csn_error **err)
{
    int e = 0;

    for (size_t i = 0; env && env[i] && e == 0; i++) {
        size_t n = strcspn(env[i], "=");
        if (!is_identifier(env[i], n))
            return csn_fail(err, CSN_INVALID, "a shell has no variable named '%.*s'", (int)n,
                            env[i]);
        if (strncmp(env[i], "HOME=", 5) == 0)
            continue;
        e = csn_buf_puts(b, "export ");
        e = e ? e : csn_buf_append(b, env[i], n + 1);
        e = e ? e : put_quoted(b, env[i] + n + 1);
        e = e ? e : csn_buf_puts(b, "; ");
    }
    return e ? csn_fail_errno(err, e, "variables of the command") : CSN_OK;
}

/* The shell reads the script from its stdin, so the command gets /dev/null instead. The leading
 * empty line resets the parser of bash after a syntax error in eval. */
static csn_status make_script(session_exec *t, const char *cwd, csn_error **err)
{
    csn_buf *b = &t->script;
    int e = csn_buf_puts(b, t->rt->remounted ? "\n" ENTER_AGAIN "{ " : "\n{ ");

    csn_status st = e ? CSN_OK : put_exports(b, t->req->env, err);
    if (st < 0)
        return st;
    if (cwd && !t->fresh && !(t->req->flags & CSN_EXEC_STAY)) {
        e = e ? e : csn_buf_puts(b, "command cd -- ");
        e = e ? e : put_quoted(b, cwd);
        e = e ? e : csn_buf_puts(b, " && ");
    }
    e = e ? e : csn_buf_puts(b, "command eval ");
    e = e ? e : put_quoted(b, t->req->command);
    e = e ? e
          : csn_buf_printf(b, "; } </dev/null 9>&-; command echo %s \"$?\" >&9\n", t->token);
    return e ? csn_fail_errno(err, e, "command") : CSN_OK;
}

static int64_t feed_script(void *ctx, void *buf, size_t len)
{
    session_exec *t = ctx;
    size_t n = t->script.len - t->fed < len ? t->script.len - t->fed : len;

    memcpy(buf, t->script.data + t->fed, n);
    t->fed += n;
    return (int64_t)n;
}

static csn_status make_token(session_exec *t, csn_error **err)
{
    uint8_t raw[TOKEN_LEN / 2];

    if (getrandom(raw, sizeof(raw), 0) != (ssize_t)sizeof(raw))
        return csn_fail_errno(err, errno, "random numbers");
    for (size_t i = 0; i < sizeof(raw); i++)
        snprintf(t->token + 2 * i, 3, "%02x", raw[i]);
    return CSN_OK;
}

/* ---- taking the session ---- */

/* Waits until the session is free, cancelled or past the deadline. *ret_stopped: 1 timed out, 2
 * cancelled, else 0. */
static csn_status await_turn(session_exec *t, int *ret_stopped, csn_error **err)
{
    csn_pump wait;

    csn_pump_init(&wait);
    wait.message_fd = t->channel;
    wait.cancel_fds[0] = t->req->cancel_fds[0];
    wait.cancel_fds[1] = t->req->cancel_fds[1];
    wait.deadline_ns = t->req->deadline_ns;
    csn_pump_event ev = csn_pump_wait(&wait);
    csn_pump_release(&wait);
    *ret_stopped = ev == CSN_PUMP_DEADLINE ? 1 : ev == CSN_PUMP_CANCEL ? 2 : 0;
    if (*ret_stopped == 0 && ev != CSN_PUMP_MESSAGE)
        return csn_fail(err, CSN_INTERNAL, "cannot wait for the session");
    return CSN_OK;
}

static csn_status ask_session(session_exec *t, const csn_runtime_command_env *set,
                              uint32_t flags, csn_error **err)
{
    const csn_session_msg b = {.flags = flags | CSN_SPAWN_CWD_FD,
                               .memory_max = t->rt->memory_each,
                               .file_max = t->rt->file_max,
                               .deadline_ns = t->req->deadline_ns,
                               .name = t->req->session,
                               .env = set->env};

    t->rt->spawns++;
    return csn_link_ask(t->rt, CSN_MSG_SESSION, &b, &set->cwd_fd, 1, &t->channel, err);
}

/* Takes the pipes of the session: script, status, output. They are ours until RELEASE. */
static csn_status take_pipes(session_exec *t, csn_msg *m, csn_error **err)
{
    bool merge = (t->req->flags & CSN_EXEC_MERGE) != 0;
    csn_session_reply_msg reply;

    if (csn_proto_decode(m, CSN_MSG_SESSION_REPLY, &reply) < 0 || m->nfds != (merge ? 3u : 4u))
        return csn_link_hostile(t->rt, "it broke the protocol", err);
    t->fresh = reply.fresh != 0;
    t->pump.feed_fd = csn_msg_take_fd(m, 0);
    t->pump.control_fd = csn_msg_take_fd(m, 1);
    t->pump.out[0] = (csn_pump_out){.fd = csn_msg_take_fd(m, 2), .stream = CSN_STDOUT};
    if (!merge)
        t->pump.out[1] = (csn_pump_out){.fd = csn_msg_take_fd(m, 3), .stream = CSN_STDERR};
    return CSN_OK;
}

/* Handles an ERROR reply. CSN_OK with *ret_stopped 0: ask again. */
static csn_status refused(session_exec *t, const csn_msg *m, int *ret_stopped, csn_error **err)
{
    csn_error_msg e;

    if (csn_proto_decode(m, CSN_MSG_ERROR, &e) < 0)
        return csn_link_hostile(t->rt, "it answered something else", err);
    if (e.errnum == ERESTART)
        return CSN_OK;
    if (e.errnum == ETIMEDOUT) {
        *ret_stopped = 1;
        return CSN_OK;
    }
    if (e.errnum == EINVAL && e.stage == CSN_STAGE_NONE)
        return csn_fail(err, CSN_INVALID, "session '%s' was started %s merged output",
                        t->req->session, t->req->flags & CSN_EXEC_MERGE ? "without" : "with");
    return csn_fail_errno(err, (int)e.errnum, "start session '%s'", t->req->session);
}

/* Repeats the request if the shell ended or was restarted while we waited. The deadline bounds
 * this. */
static csn_status take_session(session_exec *t, const csn_runtime_command_env *set,
                               int *ret_stopped, csn_error **err)
{
    uint32_t flags = (t->req->flags & CSN_EXEC_MERGE ? CSN_SPAWN_MERGE : 0) |
                     (t->req->flags & CSN_EXEC_RESTART ? CSN_SPAWN_RESTART : 0);

    for (;;) {
        uint8_t buf[512];
        csn_msg m;

        csn_status st = ask_session(t, set, flags, err);
        if (st == CSN_OK)
            st = await_turn(t, ret_stopped, err);
        if (st < 0 || *ret_stopped != 0)
            return st;
        st = csn_link_answer(t->rt, t->channel, 0, buf, sizeof(buf), &m, err);
        if (st < 0)
            return st;
        bool ours = m.type == CSN_MSG_SESSION_REPLY;
        st = ours ? take_pipes(t, &m, err) : refused(t, &m, ret_stopped, err);
        csn_msg_release(&m);
        if (ours || st < 0 || *ret_stopped != 0)
            return st;
        close(csn_steal_fd(&t->channel));
    }
}

/* ---- running ---- */

/* Closes the status pipe, because the status of a killed command is meaningless. */
static csn_status kill_session(session_exec *t, uint32_t how, csn_error **err)
{
    t->how = how;
    t->killed = true;
    t->pump.cancel_fds[0] = t->pump.cancel_fds[1] = -1;
    if (t->pump.control_fd >= 0)
        close(csn_steal_fd(&t->pump.control_fd));
    t->pump.deadline_ns = csn_kill_wait_begin(t->rt, &t->kill_wait);
    int rc = csn_proto_send(t->channel, CSN_MSG_KILL, &(csn_kill_msg){.grace_ms = CSN_GRACE_MS},
                            NULL, 0, 1);
    if (rc < 0 && rc != -EPIPE && rc != -ECONNRESET)
        return csn_link_hostile(t->rt, "it takes no requests", err);
    return CSN_OK;
}

/* Searches for our status line. If the buffer fills up, keeps only its last TOKEN_LEN bytes. */
static bool read_status(session_exec *t, int *ret_code)
{
    ssize_t n = read(t->pump.control_fd, t->status + t->status_len, STATUS_MAX - t->status_len);

    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
        close(csn_steal_fd(&t->pump.control_fd)); /* the shell is ending: EXIT follows */
    if (n <= 0)
        return false;
    t->status_len += (size_t)n;
    t->status[t->status_len] = '\0';
    for (size_t i = 0; i < t->status_len; i++)
        if (t->status[i] == '\0')
            t->status[i] = '?';
    const char *at = strstr(t->status, t->token);
    const char *end = at ? strchr(at, '\n') : NULL;
    if (end) {
        *ret_code = (int)strtol(at + TOKEN_LEN, NULL, 10) & 0xff;
        return true;
    }
    if (!at && t->status_len > STATUS_MAX / 2) {
        memmove(t->status, t->status + t->status_len - TOKEN_LEN, TOKEN_LEN);
        t->status_len = TOKEN_LEN;
    }
    return false;
}

/* Handles EXIT of the shell: by `exit`, exec, a signal, our KILL, or the deadline. */
static csn_status shell_ended(session_exec *t, bool *ret_ended, csn_exec_end *end,
                              csn_error **err)
{
    uint8_t buf[512];
    csn_exit_msg b;
    csn_msg m;
    int rc = csn_msg_recv(t->channel, buf, sizeof(buf), &m);

    if (rc == -EAGAIN)
        return CSN_OK;
    if (rc == 0)
        return csn_link_lost(t->rt, err);
    bool told = rc == 1 && csn_runtime_take_refused(t->rt, t->req, &m, &t->refused);
    bool good = rc == 1 && !told && csn_proto_decode(&m, CSN_MSG_EXIT, &b) == 0;
    if (rc == 1)
        csn_msg_release(&m);
    if (told)
        return CSN_OK;
    if (!good)
        return csn_link_hostile(t->rt, "it broke the protocol", err);
    end->how = csn_runtime_end_how(&b, t->killed ? t->how : CSN_END_EXITED);
    csn_runtime_end_fill(t->rt, &b, "session", end);
    *ret_ended = true;
    if (t->pump.control_fd >= 0)
        close(csn_steal_fd(&t->pump.control_fd));
    csn_runtime_drain(t->rt, &t->pump);
    return CSN_OK;
}

static csn_status tell_keeper(session_exec *t, csn_msg_type type, csn_error **err)
{
    int rc = csn_proto_send(t->channel, type, NULL, NULL, 0, 1);

    if (rc < 0 && rc != -EPIPE && rc != -ECONNRESET)
        return csn_link_hostile(t->rt, "it takes no requests", err);
    return CSN_OK;
}

/* A status that is read after the deadline may be that of a command which the keeper has
 * killed. The keeper then ignores RELEASE and reports EXIT; otherwise it closes the channel. */
static csn_status check_late_status(session_exec *t, csn_exec_end *end, csn_error **err)
{
    uint8_t buf[512];
    csn_exit_msg b;
    csn_msg m;
    uint64_t until_ns = csn_deadline_in(CSN_GRACE_MS + CSN_KILL_MAX_MS);
    int rc;

    while ((rc = csn_msg_await(t->channel, until_ns, buf, sizeof(buf), &m)) == 1 &&
           csn_runtime_take_refused(t->rt, t->req, &m, &t->refused))
        csn_msg_release(&m);
    if (rc != 1)
        return CSN_OK;
    bool good = csn_proto_decode(&m, CSN_MSG_EXIT, &b) == 0;
    csn_msg_release(&m);
    if (!good)
        return csn_link_hostile(t->rt, "it broke the protocol", err);
    if (b.killed & CSN_KILLED_DEADLINE) {
        end->how = CSN_END_TIMEOUT;
        csn_runtime_end_fill(t->rt, &b, "session", end);
    }
    return CSN_OK;
}

/* Names that the command looked up before it wrote its status are in the channel. */
static void take_refused(session_exec *t)
{
    uint8_t buf[512];
    bool good = true;
    csn_msg m;

    while (good && csn_msg_next_type(t->channel) == CSN_MSG_REFUSED &&
           csn_msg_recv(t->channel, buf, sizeof(buf), &m) == 1) {
        good = csn_runtime_take_refused(t->rt, t->req, &m, &t->refused);
        csn_msg_release(&m);
    }
}

/* The command wrote its output before the status, so all of it is in the pipes. Writing it to
 * the sink may take any time; ENDED tells the keeper that the command needs no more of it. */
static csn_status finish_command(session_exec *t, int code, csn_exec_end *end, csn_error **err)
{
    bool late = csn_deadline_poll_ms(t->req->deadline_ns) == 0;
    csn_status st = CSN_OK;

    take_refused(t);
    if (csn_pump_has_output(&t->pump)) {
        st = tell_keeper(t, CSN_MSG_ENDED, err);
        csn_pump_drain_now(&t->pump);
    }
    if (st == CSN_OK)
        st = tell_keeper(t, CSN_MSG_RELEASE, err);
    end->exit_code = code;
    return st == CSN_OK && late ? check_late_status(t, end, err) : st;
}

/* As give_up in exec.c. */
static bool give_up(session_exec *t, csn_exec_end *end)
{
    t->pump.deadline_ns = csn_kill_wait_next(t->rt, &t->kill_wait);
    if (t->pump.deadline_ns != 0)
        return false;
    end->how = t->how;
    return true;
}

static csn_status run_turn(session_exec *t, csn_exec_end *end, csn_error **err)
{
    csn_status st = CSN_OK;
    bool ended = false;
    int code = 0;

    while (st == CSN_OK && !ended) {
        switch (csn_pump_wait(&t->pump)) {
        case CSN_PUMP_CONTROL:
            ended = read_status(t, &code);
            if (ended)
                st = finish_command(t, code, end, err);
            break;
        case CSN_PUMP_MESSAGE:
            st = shell_ended(t, &ended, end, err);
            break;
        case CSN_PUMP_DEADLINE:
            if (!t->killed)
                st = kill_session(t, CSN_END_TIMEOUT, err);
            else
                ended = give_up(t, end);
            break;
        case CSN_PUMP_NOTICE:
            csn_runtime_take_notice(&t->pump, t->extra);
            break;
        case CSN_PUMP_CANCEL:
        case CSN_PUMP_STOP:
            if (!t->killed)
                st = kill_session(t, CSN_END_CANCEL, err);
            break;
        case CSN_PUMP_FEED:
        case CSN_PUMP_CLOSED:
        case CSN_PUMP_ERROR:
            st = csn_fail(err, CSN_INTERNAL, "cannot wait for the command");
            break;
        }
    }
    return st;
}

static csn_status run_in_session(session_exec *t, const csn_sink *sink, csn_exec_end *end,
                                 csn_error **err)
{
    csn_runtime_command_env set;
    int stopped = 0;

    csn_status st = csn_runtime_command_env_make(t->rt, t->req, &set, err);
    if (st < 0)
        return st;
    st = take_session(t, &set, &stopped, err);
    if (st == CSN_OK && stopped == 0)
        st = make_token(t, err);
    if (st == CSN_OK && stopped == 0)
        st = make_script(t, t->req->cwd ? set.cwd_path : NULL, err);
    csn_runtime_command_env_release(&set);
    if (st < 0)
        return st;
    if (stopped != 0) {
        end->how = stopped == 1 ? CSN_END_TIMEOUT : CSN_END_CANCEL;
        return CSN_OK;
    }
    t->pump.sink = sink->write;
    t->pump.sink_ctx = sink->ctx;
    t->pump.feed = feed_script;
    t->pump.feed_ctx = t;
    t->pump.message_fd = t->channel;
    t->pump.notice_fd = t->extra->notice_fd;
    t->pump.cancel_fds[0] = t->req->cancel_fds[0];
    t->pump.cancel_fds[1] = t->req->cancel_fds[1];
    t->pump.deadline_ns = t->req->deadline_ns;
    return run_turn(t, end, err);
}

csn_status csn_runtime_session_exec(csn_runtime *rt, const csn_exec_req *req,
                                    const csn_exec_extra *extra, const csn_sink *sink,
                                    csn_exec_end *ret, csn_error **err)
{
    csn_exec_end end = {.size = sizeof(end), .exit_code = -1};

    if (!req->command)
        return csn_fail(err, CSN_INVALID, "a session runs shell strings only");
    if (req->input || req->input_fd >= 0)
        return csn_fail(err, CSN_UNSUPPORTED, "commands of a session have no stdin");
    size_t name_len = strlen(req->session);
    if (name_len == 0 || name_len > CSN_NAME_BYTES_MAX)
        return csn_fail(err, CSN_INVALID, "the name of a session has 1 to %u bytes, not %zu",
                        CSN_NAME_BYTES_MAX, name_len);
    csn_autofree session_exec *t = calloc(1, sizeof(*t));
    if (!t)
        return csn_fail(err, CSN_NOMEM, "session '%s'", req->session);
    t->rt = rt;
    t->req = req;
    t->extra = extra;
    t->channel = -1;
    csn_pump_init(&t->pump);
    csn_buf_init(&t->script, SCRIPT_MAX);
    csn_status st = run_in_session(t, sink, &end, err);
    if (t->pump.control_fd >= 0)
        close(t->pump.control_fd);
    if (t->channel >= 0)
        close(t->channel);
    csn_pump_release(&t->pump);
    csn_buf_release(&t->script);
    if (st == CSN_OK)
        *ret = end;
    return st;
}
