/* exec.c: one command in a container: created, run over a stream both ways, and asked about.
 *
 * Called by src/remote with a command that is wrapped already, and by life.c. Two or three
 * requests: create (nothing runs yet), start (the connection becomes the command's streams),
 * and inspect when the streams do not tell how it ended. Frames are the engine's, their bytes
 * the command's. The engine's stream has no end mark: a connection that breaks looks like a
 * command that said no more. So a shell stays around the command and says a random word with
 * the exit code on both streams when it is over. Without the words how it ended is not known,
 * unless the engine says that the shell itself was killed. They also end the waiting: children
 * that the command left behind may hold its output as long as they like. A command that looks
 * for the word and says it too soon cheats nobody but its own reader: it could have chosen its
 * code, and gone to the background, anyway.
 *
 * An engine knows exit codes only: a command that a signal ended has 128 and its number, as in
 * a shell. Nothing is made of that, except when we sent the signal ourselves. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/docker/docker.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/json_write.h"
#include "remote/hijack.h"

#define REQUEST_MAX (32u * 1024u * 1024u)
#define FRAME_MAX   (16u * 1024u * 1024u)
#define ASK_MS      10000u
#define SETTLE_MS   2000u /* from the end of the stream to the engine's word on the exit */
#define STEP_MS     20
#define WORD_MAX    (128u * 1024u)
#define WORD_LEN    20u
#define DIGITS      3u /* of an exit code, behind it */

typedef struct start {
    csn_remote *r;
    const csn_remote_cmd *cmd;
    csn_remote_exit *exit;
    csn_stream stream;
    csn_status broken; /* what was wrong with the stream, or CSN_OK */
    csn_error *why;
    bool alarmed;
    char id[65];
    char word[33]; /* with its first byte, which is in it only once */
    struct {
        size_t held; /* bytes at the end that are the word so far, or the code behind it */
        bool over;   /* all came */
        int code;
    } tail[3];
} start;

#define FIRST '\036'
/* WORD ARGV...: signals to the group are the command's, not its shell's; what a shell says of a
 * command that was killed is nobody's output. */
static const char around[] = "trap : HUP INT QUIT TERM PIPE ALRM USR1 USR2\n"
                             "exec 3>&2 2>/dev/null\n"
                             "(exec 2>&3 3>&-; exec \"$@\")\n"
                             "c=$?; printf '\\036%s%03d' \"$0\" $c\n"
                             "printf '\\036%s%03d' \"$0\" $c >&3; exit $c\n";

static uint64_t forward_alarm(void *ctx, csn_status why)
{
    start *s = ctx;

    s->alarmed = true;
    return s->cmd->on_alarm(s->cmd->ctx, why);
}

/* The container is not there, or does not run; if it never did, that is the image's doing. */
static csn_status refused(const start *s, const csn_http_res *res, csn_error **err)
{
    bool gone = res->status == 404 || res->status == 409;

    if (gone && !s->r->workdir && !s->r->found) {
        csn_status st = csn_fail(err, CSN_UNAVAILABLE, "the container ended at once");
        return csn_error_advise(st, err, "an image needs /bin/sh and sleep");
    }
    if (gone)
        return csn_fail(err, CSN_GONE, "sandbox %s has ended", s->r->id);
    return csn_docker_refused(s->r, res, "run a command", err);
}

/* One word of a command line may have 128 KiB; the engine would say so in the command's name.
 */
static bool fits(const csn_remote_cmd *cmd)
{
    for (size_t i = 0; cmd->argv[i]; i++)
        if (strlen(cmd->argv[i]) >= WORD_MAX)
            return false;
    for (size_t i = 0; cmd->env && cmd->env[i]; i++)
        if (strlen(cmd->env[i]) >= WORD_MAX)
            return false;
    return true;
}

/* ---- create ----------------------------------------------------------------------------- */

static void put_words(csn_json *j, const char *const *list)
{
    for (size_t i = 0; list && list[i]; i++)
        csn_json_str(j, list[i]);
}

static int put_exec(const start *s, const char *user, csn_buf *b)
{
    const csn_remote_cmd *cmd = s->cmd;
    const char *const shell[] = {"/bin/sh", "-c", around, s->word + 1, NULL};
    csn_json j;

    csn_json_begin(&j, b);
    csn_json_object(&j);
    csn_json_key(&j, "Cmd");
    csn_json_array(&j);
    put_words(&j, cmd->let_go ? NULL : shell);
    put_words(&j, cmd->argv);
    csn_json_array_end(&j);
    csn_json_key(&j, "Env");
    csn_json_array(&j);
    put_words(&j, cmd->env);
    csn_json_array_end(&j);
    csn_json_kstr(&j, "User", user);
    csn_json_kbool(&j, "AttachStdin", cmd->input_fd >= 0);
    csn_json_kbool(&j, "AttachStdout", true);
    csn_json_kbool(&j, "AttachStderr", true);
    csn_json_object_end(&j);
    return csn_json_end(&j);
}

static csn_status take_id(start *s, const csn_http_res *res, csn_error **err)
{
    CSN_CLEANUP(csn_jval_freep) csn_jval *root = NULL;
    csn_status st = csn_docker_json(res, "run a command", &root, err);
    const char *id = csn_jval_string(csn_jval_get(root, "Id"));

    if (st == CSN_OK && !csn_docker_id_fits(id))
        st = csn_fail(err, CSN_IO, "the engine names no command");
    if (st == CSN_OK)
        snprintf(s->id, sizeof(s->id), "%s", id);
    return st;
}

static csn_status create(start *s, const char *user, csn_error **err)
{
    csn_autores res = {0};
    csn_autobuf body;
    char path[128];
    const csn_docker_call c = {.method = "POST",
                               .path = path,
                               .what = "run a command",
                               .body = &body,
                               .repeat = CSN_HTTP_SAFE, /* one too many is never started */
                               .deadline_ns = s->cmd->deadline_ns,
                               .cancel_fds = s->cmd->cancel_fds,
                               .on_alarm = s->cmd->on_alarm ? forward_alarm : NULL,
                               .ctx = s};

    csn_buf_init(&body, REQUEST_MAX);
    snprintf(path, sizeof(path), "/containers/%.64s/exec", csn_docker_of(s->r)->container);
    int e = put_exec(s, user, &body);
    if (e != 0)
        return csn_fail_errno(err, e, "%s", c.what);
    csn_status st = csn_docker_do(s->r, &c, &res, err);
    if (st == CSN_OK && res.status / 100 != 2)
        st = refused(s, &res, err);
    return st == CSN_OK ? take_id(s, &res, err) : st;
}

/* ---- start ------------------------------------------------------------------------------ */

static int emit(start *s, int to, const char *data, size_t len)
{
    return len > 0 ? s->cmd->on_output(s->cmd->ctx, to, data, len) : 0;
}

/* The three digits behind the word. What else comes there, nobody of ours wrote. */
static bool take_digit(start *s, int to, char c)
{
    if (c < '0' || c > '9')
        return false;
    s->tail[to].code = s->tail[to].code * 10 + (c - '0');
    s->tail[to].over = ++s->tail[to].held == WORD_LEN + 1 + DIGITS;
    return true;
}

/* Does the byte go on with what is held? */
static bool goes_on(start *s, int to, char c)
{
    size_t held = s->tail[to].held;

    if (held > WORD_LEN)
        return take_digit(s, to, c);
    if (held == 0 || c != s->word[held])
        return false;
    s->tail[to].held++;
    return true;
}

static int let_out(start *s, int to)
{
    size_t held = s->tail[to].held;

    s->tail[to].held = 0;
    s->tail[to].code = 0;
    return emit(s, to, s->word, held < WORD_LEN + 1 ? held : WORD_LEN + 1);
}

/* Everything but the word, and nothing after it. What may be its beginning waits. */
static int pass_on(start *s, int to, const char *p, size_t len)
{
    const char *end = p + len;
    int stop = 0;

    while (p < end && !stop && !s->tail[to].over) {
        if (goes_on(s, to, *p)) {
            p++;
        } else if (s->tail[to].held > 0) {
            stop = let_out(s, to);
        } else {
            const char *first = memchr(p, FIRST, (size_t)(end - p));
            stop = emit(s, to, p, (size_t)((first ? first : end) - p));
            s->tail[to].held = first ? 1 : 0;
            p = first ? first + 1 : end;
        }
    }
    return stop;
}

static bool is_over(const start *s)
{
    return s->tail[CSN_STDOUT].over && s->tail[CSN_STDERR].over;
}

static int message(void *ctx, const csn_message *m)
{
    start *s = ctx;
    int to = m->flags == 2 ? CSN_STDERR : CSN_STDOUT;

    if (m->len == 0)
        return 0;
    if (m->flags == 3) {
        s->broken = csn_fail(&s->why, CSN_IO, "the engine says: %.200s", m->data);
        return 1;
    }
    if (s->cmd->let_go)
        return emit(s, to, m->data, m->len);
    return pass_on(s, to, m->data, m->len) || is_over(s);
}

static int take(void *ctx, const void *data, size_t len)
{
    start *s = ctx;
    csn_status st = csn_stream_feed(&s->stream, data, len, &s->why);

    if (st < 0)
        s->broken = st;
    return st < 0 || s->stream.stopped;
}

/* *ret_ended: the stream ended by itself. */
static csn_status stream(start *s, bool *ret_ended, csn_error **err)
{
    static const char body[] = "{\"Detach\":false,\"Tty\":false}";
    csn_autores res = {0};
    char path[128];
    const csn_hijack_req q = {.unix_path = csn_docker_of(s->r)->socket,
                              .path = path,
                              .body = body,
                              .body_len = sizeof(body) - 1,
                              .input_fd = s->cmd->input_fd,
                              .deadline_ns = s->cmd->deadline_ns,
                              .cancel_fds = s->cmd->cancel_fds,
                              .cancel_count = 3,
                              .on_alarm = s->cmd->on_alarm ? forward_alarm : NULL,
                              .on_body = take,
                              .ctx = s};

    snprintf(path, sizeof(path), "/exec/%s/start", s->id);
    csn_status st = csn_hijack_do(&q, &res, err);
    s->exit->sent = res.sent;
    s->exit->started = res.status == 101 || res.status == 200;
    if (st < 0)
        return st;
    if (!s->exit->started)
        return refused(s, &res, err);
    if (s->broken == CSN_OK && !res.stopped)
        s->broken = csn_stream_end(&s->stream, &s->why);
    if (s->broken < 0 && err)
        *err = CSN_STEAL(s->why);
    *ret_ended = !res.stopped || is_over(s);
    if (!res.stopped) { /* what waited was not the word */
        (void)let_out(s, CSN_STDOUT);
        (void)let_out(s, CSN_STDERR);
    }
    return s->broken;
}

/* ---- inspect ---------------------------------------------------------------------------- */

static void tell_end(start *s, int64_t code)
{
    csn_remote_exit *x = s->exit;
    bool ours = s->alarmed && (code == 128 + SIGTERM || code == 128 + SIGKILL);

    x->ended = true;
    x->signal = ours ? (int)code - 128 : 0;
    x->exit_code = ours || code < 0 || code > 255 ? -1 : (int)code;
}

static csn_status ask_end(start *s, csn_error **err)
{
    CSN_CLEANUP(csn_jval_freep) csn_jval *root = NULL;
    csn_autores res = {0};
    bool running = true;
    int64_t code = -1;
    char path[128];
    const csn_docker_call c = {.method = "GET",
                               .path = path,
                               .what = "ask how a command ended",
                               .repeat = CSN_HTTP_SAFE,
                               .always = true,
                               .deadline_ns = csn_deadline_in(ASK_MS)};

    snprintf(path, sizeof(path), "/exec/%s/json", s->id);
    csn_status st = csn_docker_do(s->r, &c, &res, err);
    if (st == CSN_OK && res.status != 200)
        st = refused(s, &res, err);
    if (st == CSN_OK)
        st = csn_docker_json(&res, c.what, &root, err);
    if (st == CSN_OK)
        st = csn_jget_bool(root, "Running", &running, err);
    if (st == CSN_OK && !running)
        st = csn_jget_i64(root, "ExitCode", &code, err);
    if (st == CSN_OK && !running)
        tell_end(s, code);
    return st;
}

/* How it ended: the shell's last word, else the engine's, which closes the stream and notes the
 * exit at about the same time. */
static csn_status settle(start *s, csn_error **err)
{
    uint64_t until = csn_deadline_in(SETTLE_MS);
    csn_status st;

    if (is_over(s)) {
        tell_end(s, s->tail[CSN_STDOUT].code);
        return CSN_OK;
    }
    st = ask_end(s, err);
    while (st == CSN_OK && !s->exit->ended && csn_deadline_poll_ms(until) > 0) {
        (void)poll(NULL, 0, STEP_MS);
        st = ask_end(s, err);
    }
    /* then the shell was killed too, or the output is not all there */
    if (st == CSN_OK && !s->cmd->let_go && s->exit->exit_code != 128 + SIGKILL)
        s->exit->ended = false;
    if (st == CSN_OK && !s->exit->ended)
        st = csn_fail(err, CSN_IO, "the stream of the command broke off");
    return st;
}

csn_status csn_docker_run_as(csn_remote *r, const char *user, const csn_remote_cmd *cmd,
                             csn_remote_exit *ret, csn_error **err)
{
    start s = {.r = r, .cmd = cmd, .exit = ret};
    bool ended = false;

    if (!fits(cmd)) {
        snprintf(ret->why, sizeof(ret->why), "%s", "Argument list too long");
        return CSN_OK;
    }
    s.word[0] = FIRST;
    if (csn_remote_mark(s.word + 1) != 0)
        return csn_fail(err, CSN_INTERNAL, "no random numbers");
    csn_status st = create(&s, user, err);

    if (st < 0 || s.alarmed)
        return st;
    csn_stream_init(&s.stream, CSN_STREAM_ENGINE, FRAME_MAX, message, &s);
    st = stream(&s, &ended, err);
    if (st == CSN_OK && ended)
        st = settle(&s, err);
    csn_stream_release(&s.stream);
    csn_error_free(s.why);
    return st;
}

csn_status csn_docker_run(csn_remote *r, const csn_remote_cmd *cmd, csn_remote_exit *ret,
                          csn_error **err)
{
    return csn_docker_run_as(r, csn_docker_of(r)->user, cmd, ret, err);
}
