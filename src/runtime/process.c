/* process.c: starts and controls background processes, which the keeper holds.
 *
 * The keeper owns their pipes and terminals, so they outlive the call, the thread and, in a
 * detached sandbox, this process. Pids in requests are looked up in the keeper's own table.
 * Replies are bounded and checked; their texts (command lines) come from callers. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/strv.h"
#include "os/netns.h"
#include "os/spawn.h"
#include "runtime/link.h"

#define PORT_NAP_MS_FIRST 10
#define PORT_NAP_MS_MAX   100

typedef struct tie {
    int channel;
} tie;

/* ---- starting ---- */

/* The command line for `ps`: the shell string, or the arguments joined by spaces; truncated. */
static int command_text(const csn_exec_req *req, char *text, size_t size)
{
    csn_autobuf b;
    int e = 0;

    csn_buf_init(&b, size - 1);
    if (req->command)
        e = csn_buf_append(&b, req->command, strnlen(req->command, size - 1));
    for (size_t i = 0; !req->command && req->argv[i] && e == 0; i++) {
        if (i > 0)
            e = csn_buf_putc(&b, ' ');
        size_t room = size - 1 - b.len;
        e = e ? e : csn_buf_append(&b, req->argv[i], strnlen(req->argv[i], room));
    }
    memcpy(text, b.data ? b.data : "", b.len);
    text[b.len] = '\0';
    return e == ENOMEM ? ENOMEM : 0;
}

/* A terminal serves as stdin, stdout and stderr, so it takes precedence over a pipe for
 * stdin. */
static uint32_t start_flags(const csn_exec_req *req)
{
    uint32_t f = CSN_SPAWN_BACKGROUND | CSN_SPAWN_CWD_FD;

    if (req->flags & CSN_EXEC_PTY)
        f |= CSN_SPAWN_PTY;
    else if (req->flags & CSN_EXEC_STDIN)
        f |= CSN_SPAWN_STDIN_PIPE;
    if (req->flags & CSN_EXEC_MERGE)
        f |= CSN_SPAWN_MERGE;
    if (req->flags & CSN_EXEC_TIED)
        f |= CSN_SPAWN_TIED;
    return f;
}

static csn_status send_start(csn_runtime *rt, const csn_exec_req *req, uint64_t output_max,
                             int *ret_channel, csn_error **err)
{
    char text[CSN_COMMAND_TEXT_MAX + 1];
    csn_runtime_command_env set;
    csn_autofd int memfd = -1;
    int fds[2];
    size_t n = 1;

    if (command_text(req, text, sizeof(text)) != 0)
        return csn_fail(err, CSN_NOMEM, "start");
    csn_status st = CSN_OK;
    uint32_t flags = start_flags(req);
    bool own_stdin = (flags & (CSN_SPAWN_PTY | CSN_SPAWN_STDIN_PIPE)) != 0;
    if (!own_stdin && (req->input_fd >= 0 || req->input))
        st = csn_runtime_process_input(req, &memfd, err);
    if (st == CSN_OK)
        st = csn_runtime_command_env_make(rt, req, &set, err);
    if (st < 0)
        return st;
    csn_spawn_msg b = csn_runtime_spawn_msg(rt, req, &set);
    b.flags = flags;
    b.rows = req->rows;
    b.cols = req->cols;
    b.ring_max = output_max ? output_max : CSN_OUTPUT_MAX_DEFAULT;
    if (b.ring_max > CSN_OUTPUT_MAX_CEILING)
        b.ring_max = CSN_OUTPUT_MAX_CEILING;
    b.command = text;
    fds[0] = set.cwd_fd;
    if (memfd >= 0) {
        fds[n++] = memfd;
        b.flags |= CSN_SPAWN_STDIN_FD;
    }
    rt->spawns++;
    st = csn_link_ask(rt, CSN_MSG_SPAWN, &b, fds, n, ret_channel, err);
    csn_runtime_command_env_release(&set);
    return st;
}

/* Decodes STARTED, or the reason of a failed start. */
static csn_status read_started(csn_runtime *rt, const csn_msg *m, const char *argv0,
                               int64_t *ret_pid, csn_error **err)
{
    char text[256];
    csn_started_msg started;
    csn_exit_msg exit;
    csn_error_msg refused;

    if (csn_proto_decode(m, CSN_MSG_STARTED, &started) == 0) {
        *ret_pid = (int64_t)started.pid;
        return CSN_OK;
    }
    if (csn_proto_decode(m, CSN_MSG_EXIT, &exit) == 0 && exit.stage != CSN_STAGE_NONE) {
        int code =
            csn_runtime_spawn_text(exit.stage, (int)exit.errnum, argv0, text, sizeof(text));
        text[strcspn(text, "\n")] = '\0';
        return csn_fail(err,
                        code == 127 ? CSN_NOT_FOUND : csn_status_of_errno((int)exit.errnum),
                        "%s", text);
    }
    if (csn_proto_decode(m, CSN_MSG_ERROR, &refused) == 0)
        return csn_fail_errno(err, (int)refused.errnum, "start '%.200s'", argv0);
    return csn_link_hostile(rt, "it answered something else", err);
}

/* Waits until exec has succeeded or failed. */
csn_status csn_runtime_start(void *state, const csn_exec_req *req, uint64_t output_max,
                             int64_t *ret_pid, void **ret_tie, csn_error **err)
{
    csn_runtime *rt = state;
    csn_autofd int channel = -1;
    csn_autofree tie *t = req->flags & CSN_EXEC_TIED ? calloc(1, sizeof(*t)) : NULL;
    uint8_t buf[512];
    int64_t pid = 0;
    csn_msg m;

    if ((req->flags & CSN_EXEC_TIED) && !t)
        return csn_fail(err, CSN_NOMEM, "start");
    csn_status st = send_start(rt, req, output_max, &channel, err);
    if (st == CSN_OK)
        st = csn_link_answer(rt, channel, 0, buf, sizeof(buf), &m, err);
    if (st < 0)
        return st;
    st = read_started(rt, &m, req->argv[0], &pid, err);
    csn_msg_release(&m);
    if (st < 0)
        return st;
    if (t)
        t->channel = csn_steal_fd(&channel);
    *ret_pid = pid;
    *ret_tie = CSN_STEAL(t);
    return CSN_OK;
}

void csn_runtime_release_tied(void *p)
{
    tie *t = p;

    if (!t)
        return;
    close(t->channel); /* the keeper kills the process tree when the channel is closed */
    free(t);
}

/* ---- requests about a process ---- */

static csn_status no_such(csn_error **err, int errnum, int64_t pid, const char *what)
{
    if (errnum == ESRCH)
        return csn_fail(err, CSN_NOT_FOUND, "no running process %lld in this sandbox",
                        (long long)pid);
    if (errnum == ENOTTY)
        return csn_fail(err, CSN_INVALID, "process %lld has no terminal", (long long)pid);
    if (errnum == EPIPE)
        return csn_fail(err, CSN_IO, "process %lld has no open stdin", (long long)pid);
    return csn_fail_errno(err, errnum, "%s process %lld", what, (long long)pid);
}

/* Exit code and signal are set only for a process that has ended. */
static int tell_process(csn_process_fn fn, void *ctx, const csn_process_msg *b)
{
    int status = (int)b->status;
    csn_process_info info = {.pid = b->pid,
                             .command = b->command,
                             .state = b->running ? "running" : "exited",
                             .exit_code = -1,
                             .out_total = b->out_total,
                             .err_total = b->err_total,
                             .started_ms = b->started_ms,
                             .pty = b->pty};

    if (!b->running && WIFEXITED(status))
        info.exit_code = WEXITSTATUS(status);
    if (!b->running && WIFSIGNALED(status))
        info.signal = csn_signal_name(WTERMSIG(status));
    return fn(ctx, &info);
}

csn_status csn_runtime_processes(void *state, int64_t pid, uint64_t wait_ms, csn_process_fn fn,
                                 void *ctx, csn_error **err)
{
    csn_runtime *rt = state;
    const csn_processes_msg ask = {.pid = pid, .wait_ms = wait_ms};
    csn_autofree uint8_t *buf = malloc(CSN_KEEPER_MSG_MAX);
    csn_unpacker in;
    csn_msg m;
    int e = 0;

    if (!buf)
        return csn_fail(err, CSN_NOMEM, "processes");
    pthread_mutex_lock(&rt->keeper_lock);
    bool none = rt->keeper_fd < 0 && !rt->ended && !rt->connected;
    pthread_mutex_unlock(&rt->keeper_lock);
    if (none) /* no command has been started yet */
        return pid == 0 ? CSN_OK : no_such(err, ESRCH, pid, "ask for");
    csn_status st =
        csn_link_call_long(rt, CSN_MSG_PROCESSES, &ask, wait_ms, CSN_MSG_PROCESS_LIST, NULL,
                           buf, CSN_KEEPER_MSG_MAX, &m, &e, err);
    if (st < 0)
        return st;
    if (e != 0)
        return no_such(err, e, pid, "ask for");
    csn_process_msg p;
    int rc;
    csn_unpacker_init(&in, m.body, m.len);
    while ((rc = csn_process_next(&in, &p)) == 1)
        if (tell_process(fn, ctx, &p) != 0)
            break;
    csn_msg_release(&m);
    if (rc < 0)
        st = csn_link_hostile(rt, "it broke the protocol", err);
    return st;
}

/* Sends one LOGS request, answered by at most CSN_LOG_CHUNK_MAX bytes. */
static csn_status ask_logs(csn_runtime *rt, const csn_logs_msg *ask, uint8_t *buf, csn_msg *m,
                           csn_log_msg *ret, csn_error **err)
{
    int e = 0;
    csn_status st = csn_link_call_long(rt, CSN_MSG_LOGS, ask, ask->wait_ms, CSN_MSG_LOG, ret,
                                       buf, CSN_KEEPER_MSG_MAX, m, &e, err);

    return st == CSN_OK && e != 0 ? no_such(err, e, ask->pid, "logs of") : st;
}

/* Delivers all available output by as many requests as needed; only the first one waits. */
csn_status csn_runtime_logs(void *state, int64_t pid, int stream, uint64_t offset,
                            uint64_t wait_ms, const csn_sink *sink, csn_log_chunk *ret,
                            csn_error **err)
{
    csn_runtime *rt = state;
    csn_logs_msg ask = {
        .pid = pid, .stream = (uint32_t)stream, .offset = offset, .wait_ms = wait_ms};
    csn_autofree uint8_t *buf = malloc(CSN_KEEPER_MSG_MAX);
    csn_log_chunk chunk = {0};

    if (!buf)
        return csn_fail(err, CSN_NOMEM, "logs");
    for (bool first = true, more = true; more; first = false) {
        csn_log_msg log;
        csn_msg m;
        csn_status st = ask_logs(rt, &ask, buf, &m, &log, err);
        if (st < 0)
            return st;
        if (first) {
            chunk.offset = log.offset;
            chunk.dropped = log.dropped;
            chunk.total = log.total;
        }
        /* Dropped bytes end this chunk; the next call reports how many. */
        more = log.bytes.len > 0 && (first || log.dropped == 0);
        if (more &&
            sink->write(sink->ctx, stream, log.bytes.data, log.bytes.len) != CSN_SINK_MORE) {
            csn_msg_release(&m);
            break;
        }
        if (more)
            chunk.len += log.bytes.len;
        chunk.end = log.end;
        csn_msg_release(&m);
        ask.offset = chunk.offset + chunk.len;
        ask.wait_ms = 0;
        more = more && !chunk.end && ask.offset < chunk.total;
    }
    if (chunk.offset + chunk.len > chunk.total)
        chunk.total = chunk.offset + chunk.len;
    *ret = chunk;
    return CSN_OK;
}

static csn_status ask_done(csn_runtime *rt, csn_msg_type type, const void *msg, int64_t pid,
                           const char *what, csn_error **err)
{
    int e = 0;
    csn_status st = csn_link_call(rt, type, msg, CSN_MSG_DONE, NULL, &e, err);

    return st == CSN_OK && e != 0 ? no_such(err, e, pid, what) : st;
}

csn_status csn_runtime_signal(void *state, int64_t pid, int signo, csn_error **err)
{
    const csn_signal_msg msg = {.pid = pid, .signo = (uint32_t)signo};

    return ask_done(state, CSN_MSG_SIGNAL, &msg, pid, "signal", err);
}

csn_status csn_runtime_resize(void *state, int64_t pid, uint16_t rows, uint16_t cols,
                              csn_error **err)
{
    const csn_resize_msg msg = {.pid = pid, .rows = rows, .cols = cols};

    return ask_done(state, CSN_MSG_RESIZE, &msg, pid, "resize", err);
}

/* Writes all bytes or fails. The descriptor is non-blocking. */
static csn_status write_all(int fd, int64_t pid, const char *data, size_t len,
                            uint64_t deadline, csn_error **err)
{
    while (len > 0) {
        ssize_t n = csn_write_quietly(fd, data, len);
        if (n > 0) {
            data += n;
            len -= (size_t)n;
            continue;
        }
        if (n == -EPIPE || n == -EIO)
            return no_such(err, EPIPE, pid, "write to");
        if (n != -EAGAIN && n != -EINTR)
            return csn_fail_errno(err, (int)-n, "write to process %lld", (long long)pid);
        struct pollfd pf = {.fd = fd, .events = POLLOUT};
        int ms = csn_deadline_poll_ms(deadline);
        if (ms == 0 || poll(&pf, 1, ms) == 0)
            return csn_fail(err, CSN_TIMEOUT, "process %lld does not read its stdin",
                            (long long)pid);
    }
    return CSN_OK;
}

/* The bytes do not pass through the keeper: it sends the write end of the process's stdin. */
csn_status csn_runtime_feed(void *state, int64_t pid, const void *data, size_t len,
                            uint64_t timeout_ms, csn_error **err)
{
    csn_runtime *rt = state;
    const csn_feed_msg ask = {.pid = pid, .close = data == NULL};
    uint64_t deadline = csn_deadline_in(timeout_ms);
    uint8_t buf[256];
    csn_msg m;
    int e = 0;

    if (!data)
        return ask_done(rt, CSN_MSG_FEED, &ask, pid, "close stdin of", err);
    csn_status st = csn_link_call_long(rt, CSN_MSG_FEED, &ask, 0, CSN_MSG_FEED_REPLY, NULL, buf,
                                       sizeof(buf), &m, &e, err);
    if (st < 0)
        return st;
    if (e != 0)
        return no_such(err, e, pid, "write to");
    csn_autofd int fd = csn_msg_take_fd(&m, 0);
    csn_msg_release(&m);
    if (fd < 0 || !(fcntl(fd, F_GETFL) & O_NONBLOCK))
        return csn_link_hostile(rt, "it broke the protocol", err);
    return write_all(fd, pid, data, len, deadline, err);
}

/* ---- ports ---- */

/* Probes the port in the network namespace of the commands. */
static csn_status port_open(csn_runtime *rt, uint16_t port, bool *ret, csn_error **err)
{
    int e = 0;

    if (rt->level == CSN_LEVEL_LANDLOCK_ONLY)
        return csn_fail(err, CSN_UNSUPPORTED, "nothing can listen in this sandbox");
    if (rt->level == CSN_LEVEL_NONE) {
        *ret = csn_port_probe(port) == 0;
        return CSN_OK;
    }
    csn_status st = csn_link_call(rt, CSN_MSG_PORT, &(csn_port_msg){.port = port}, CSN_MSG_DONE,
                                  NULL, &e, err);
    if (st < 0)
        return st;
    *ret = e == 0;
    return CSN_OK;
}

/* Polls the port at growing intervals, since the kernel has no event for a new listener. */
csn_status csn_runtime_wait_port(void *state, uint16_t port, uint64_t timeout_ms,
                                 csn_error **err)
{
    csn_runtime *rt = state;
    uint64_t deadline = csn_deadline_in(timeout_ms);
    int nap = PORT_NAP_MS_FIRST;

    for (;;) {
        bool open = false;
        csn_status st = port_open(rt, port, &open, err);
        if (st < 0 || open)
            return st;
        int left = csn_deadline_poll_ms(deadline);
        if (left == 0)
            return csn_fail(err, CSN_TIMEOUT, "nothing listens on port %u", port);
        /* Sleeps, but returns when the keeper ends. Without a keeper (fd -1) this only
         * sleeps. */
        struct pollfd pf = {.fd = rt->keeper_pidfd, .events = POLLIN};
        if (poll(&pf, 1, left >= 0 && left < nap ? left : nap) == 1)
            return csn_link_lost(rt, err);
        nap = nap * 2 < PORT_NAP_MS_MAX ? nap * 2 : PORT_NAP_MS_MAX;
    }
}
