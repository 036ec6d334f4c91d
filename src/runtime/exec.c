/* exec.c: runs foreground commands.
 *
 * The library makes the pipes, sends the child's ends to the keeper with the request, and
 * copies data until the keeper reports the end. The command is hostile: it may flood its
 * output, hang, close it early, or leave processes that hold the pipes. The sink bounds the
 * output, the deadline the run time, and CSN_DRAIN_MS the wait after the end. The keeper kills
 * the command at its deadline, since this process may be stopped or blocked in the sink; this
 * process does it as well, for the case that the keeper does not run. Pipes that are
 * still held then are passed to the keeper, which reads and discards their data, so that
 * servers started with & do not die of SIGPIPE.
 *
 * Invariant: on return the command has ended, or the error says that it could not be ended; of
 * its descriptors only one channel stays open, for the next command. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/strv.h"
#include "os/pty.h"
#include "os/pump.h"
#include "runtime/link.h"

#define EXIT_NOT_FOUND 127
#define EXIT_NOT_EXEC  126

/* One running command. */
typedef struct run {
    csn_runtime *rt;
    const csn_exec_req *req;
    csn_pump pump;
    int channel;
    const csn_exec_extra *extra;
    uint64_t number;         /* of the spawn */
    uint32_t how;            /* CSN_END_* that our KILL stands for, or CSN_END_EXITED */
    csn_kill_wait kill_wait; /* after KILL */
    uint32_t refused;        /* messages REFUSED */
    csn_exit_msg exit;
} run;

/* ---- what commands share ---- */

void csn_runtime_command_env_release(csn_runtime_command_env *s)
{
    if (s->cwd_fd >= 0)
        close(csn_steal_fd(&s->cwd_fd));
    free(CSN_STEAL(s->cwd_path));
    free(CSN_STEAL(s->pwd));
    free(CSN_STEAL(s->env));
}

csn_status csn_runtime_command_env_make(csn_runtime *rt, const csn_exec_req *req,
                                        csn_runtime_command_env *ret, csn_error **err)
{
    csn_runtime_command_env s = {.cwd_fd = -1};

    if (req->flags & CSN_EXEC_SUDO)
        return csn_fail(err, CSN_UNSUPPORTED, "backend '%s' has no sudo", rt->backend);
    const char *cwd = req->cwd ? req->cwd : rt->base.path;
    csn_status st = csn_runtime_open_cwd(rt, cwd, &s.cwd_fd, &s.cwd_path, err);
    if (st < 0) {
        st = csn_wrap(st, err, "working directory");
        return rt->level == CSN_LEVEL_NAMESPACES ? csn_link_check_alive(rt, st, err) : st;
    }
    if (csn_runtime_is_removed(s.cwd_fd)) {
        st = csn_fail(err, CSN_NOT_FOUND, "%s %s was removed",
                      strcmp(cwd, rt->base.path) == 0 ? "workspace" : "working directory", cwd);
        csn_runtime_command_env_release(&s);
        return st;
    }
    st = csn_runtime_environ_merge(rt, req->env, s.cwd_path, &s.env, &s.pwd, err);
    if (st < 0) {
        csn_runtime_command_env_release(&s);
        return st;
    }
    *ret = s;
    return CSN_OK;
}

int csn_runtime_spawn_text(uint32_t stage, int errnum, const char *argv0, char *text,
                           size_t size)
{
    const char *why = strerrordesc_np(errnum);

    if (stage == CSN_STAGE_EXEC && (errnum == ENOENT || errnum == ENOTDIR)) {
        snprintf(text, size, "%.200s: command not found\n", argv0);
        return EXIT_NOT_FOUND;
    }
    if (stage == CSN_STAGE_EXEC && errnum == EACCES) {
        snprintf(text, size, "%.200s: Permission denied\n", argv0);
        return EXIT_NOT_EXEC;
    }
    if (stage == CSN_STAGE_INTERP) {
        snprintf(text, size, "%.200s: bad interpreter: No such file or directory\n", argv0);
        return EXIT_NOT_EXEC;
    }
    snprintf(text, size, "Error: %s", why ? why : "the command could not be started");
    return 1;
}

void csn_runtime_end_limit(csn_exec_end *end, uint32_t how, const char *what, uint64_t limit,
                           uint64_t peak)
{
    char most[CSN_SIZE_TEXT], was[CSN_SIZE_TEXT];

    end->how = how;
    int n = snprintf(end->message, sizeof(end->message), "%s limit %s reached", what,
                     csn_size_text(limit, most));
    if (peak != 0 && n > 0 && (size_t)n < sizeof(end->message))
        snprintf(end->message + n, sizeof(end->message) - (size_t)n, ", peak %s",
                 csn_size_text(peak, was));
}

uint32_t csn_runtime_end_how(const csn_exit_msg *b, uint32_t asked)
{
    if (b->killed & CSN_KILLED_DEADLINE)
        return CSN_END_TIMEOUT;
    return b->killed ? asked : CSN_END_EXITED;
}

void csn_runtime_end_fill(const csn_runtime *rt, const csn_exit_msg *b, const char *argv0,
                          csn_exec_end *ret)
{
    ret->exit_code = -1;
    if (b->stage != CSN_STAGE_NONE) {
        ret->how = CSN_END_SPAWN;
        ret->exit_code = csn_runtime_spawn_text(b->stage, (int)b->errnum, argv0, ret->message,
                                                sizeof(ret->message));
        return;
    }
    int status = (int)b->status;
    if (WIFEXITED(status))
        ret->exit_code = WEXITSTATUS(status);
    else if (WIFSIGNALED(status))
        ret->signal = WTERMSIG(status);
    ret->unrouted = (b->after & CSN_AFTER_UNROUTED) != 0;
    ret->cpu_ns = b->cpu_ns;
    ret->peak_memory = b->peak_memory;
    if (ret->how != CSN_END_EXITED)
        return;
    /* A shell exits with 128 + n if signal n ended its child. */
    bool too_large = ret->signal == SIGXFSZ || ret->exit_code == 128 + SIGXFSZ;
    if (too_large && rt->file_max != 0)
        csn_runtime_end_limit(ret, CSN_END_DISK, "file size", rt->file_max, 0);
    else if (b->killed & CSN_KILLED_MEMORY)
        csn_runtime_end_limit(ret, CSN_END_MEMORY, "memory", rt->memory_all, b->peak_memory);
    else if (b->killed & (CSN_KILLED_DISK | CSN_KILLED_FILES))
        csn_runtime_end_limit(ret, CSN_END_DISK,
                              b->killed & CSN_KILLED_FILES ? "disk (number of files)" : "disk",
                              rt->disk_all, 0);
}

/* ---- starting ---- */

/* A pipe has mode 0600: if root owned it, the command could not open /dev/stdout. Without
 * CAP_CHOWN only that open fails. */
static void give_pipe(const csn_runtime *rt, int fd)
{
    if (rt->chown_pipes && fchown(fd, rt->file_uid, rt->file_gid) < 0)
        csn_log_debug("pipe of a command: %s", strerrordesc_np(errno));
}

/* Makes a pipe for output. Our end is non-blocking: a command can open its own output and read
 * the data that poll reported to us. */
static int make_pipe(csn_runtime *rt, csn_pump_out *o, int stream, int *ret_w)
{
    int p[2];

    if (pipe2(p, O_CLOEXEC) < 0)
        return -errno;
    give_pipe(rt, p[1]);
    (void)fcntl(p[0], F_SETFL, O_NONBLOCK);
    *o = (csn_pump_out){.fd = p[0], .stream = stream};
    *ret_w = p[1];
    return 0;
}

/* Makes a pipe for stdin; a socket would not do, because programs open /dev/stdin. Our end is
 * non-blocking. A descriptor of the caller is read here and never passed on (os/input.c). */
static int make_feed(csn_runtime *rt, csn_pump *p, const csn_exec_req *req, int *ret_r)
{
    int fds[2], rc = 0;

    if (req->input_fd >= 0)
        rc = csn_input_open(&p->input, req->input_fd);
    if (rc < 0)
        return rc;
    if (pipe2(fds, O_CLOEXEC) < 0)
        return -errno;
    give_pipe(rt, fds[0]);
    (void)fcntl(fds[1], F_SETFL, O_NONBLOCK);
    p->feed_fd = fds[1];
    if (req->input) {
        p->feed = req->input->read;
        p->feed_ctx = req->input->ctx;
    }
    *ret_r = fds[0];
    return 0;
}

/* Makes a terminal whose master we hold. In a jail it is one of the jail's own devpts, so that
 * its name inside is right; the user inside owns it, as one who logs in does. */
static int make_terminal(csn_runtime *rt, csn_pump *p, const csn_exec_req *req, int *ret_slave)
{
    csn_autofd int slave = -1;
    int master = -1, rc = 0;

    if (req->input_fd >= 0)
        rc = csn_input_open(&p->input, req->input_fd);
    if (rc == 0)
        rc = rt->level == CSN_LEVEL_NAMESPACES
                 ? csn_pty_open_at(rt->root.fd, req->rows, req->cols, &master, &slave)
                 : csn_pty_open(req->rows, req->cols, &master, &slave);
    if (rc < 0)
        return rc;
    give_pipe(rt, slave);
    (void)fcntl(master, F_SETFL, O_NONBLOCK);
    p->out[0] = (csn_pump_out){.fd = master, .stream = CSN_STDOUT};
    p->feed_fd = fcntl(master, F_DUPFD_CLOEXEC, 3);
    if (p->feed_fd < 0)
        return -errno;
    p->terminal = true;
    if (req->input) {
        p->feed = req->input->read;
        p->feed_ctx = req->input->ctx;
    } else if (req->input_fd < 0) {
        csn_pump_no_input(p);
    }
    if (req->input_fd >= 0)
        csn_pump_follow_size(p, req->input_fd);
    *ret_slave = csn_steal_fd(&slave);
    return 0;
}

/* Collects the command's descriptors in protocol order. The caller closes own[] after
 * sending. */
static csn_status make_stdio(run *r, int cwd_fd, uint32_t *flags, int fds[5], int own[3],
                             size_t *ret_count, csn_error **err)
{
    bool merge = (r->req->flags & CSN_EXEC_MERGE) != 0;
    size_t n = 0;
    int rc = 0;

    fds[n++] = cwd_fd;
    *flags = CSN_SPAWN_CWD_FD | CSN_SPAWN_STDOUT_FD | (merge ? CSN_SPAWN_MERGE : 0);
    if (r->req->flags & CSN_EXEC_PTY) {
        if ((rc = make_terminal(r->rt, &r->pump, r->req, &own[0])) < 0)
            return csn_fail_errno(err, -rc, "terminal");
        fds[n++] = own[0];
        fds[n++] = own[0];
        *flags |= CSN_SPAWN_STDIN_FD | CSN_SPAWN_PTY;
    } else if (r->req->input_fd >= 0 || r->req->input) {
        if ((rc = make_feed(r->rt, &r->pump, r->req, &own[0])) < 0)
            return csn_fail_errno(err, -rc, "standard input");
        fds[n++] = own[0];
        *flags |= CSN_SPAWN_STDIN_FD;
    }
    if (!(r->req->flags & CSN_EXEC_PTY) &&
        (rc = make_pipe(r->rt, &r->pump.out[0], CSN_STDOUT, &own[1])) == 0)
        fds[n++] = own[1];
    if (rc == 0 && !merge &&
        (rc = make_pipe(r->rt, &r->pump.out[1], CSN_STDERR, &own[2])) == 0) {
        fds[n++] = own[2];
        *flags |= CSN_SPAWN_STDERR_FD;
    }
    if (r->extra->sockets >= 0) {
        fds[n++] = r->extra->sockets;
        *flags |= CSN_SPAWN_SOCKETS_FD;
    }
    *ret_count = n;
    return rc < 0 ? csn_fail_errno(err, -rc, "pipes for the command") : CSN_OK;
}

/* ---- the channel between two commands ----
 *
 * Creating a channel, passing it to the keeper and closing it takes longer than the rest of a
 * short command, so the channel of a command that ended normally is kept for the next one. Only
 * one is kept; concurrent commands create their own. A forked child of the host inherits the
 * descriptor but must not use it, so the pid is stored with it. */

static int64_t of_this_process(int fd)
{
    return (int64_t)getpid() << 32 | fd;
}

/* -1: none. */
static int channel_take(csn_runtime *rt)
{
    int64_t was = atomic_exchange(&rt->idle_channel, -1);
    csn_autofd int fd = was < 0 ? -1 : (int)(was & INT32_MAX);

    return was >= 0 && was == of_this_process(fd) ? csn_steal_fd(&fd) : -1;
}

static void channel_put(csn_runtime *rt, int fd)
{
    int64_t none = -1;

    if (!atomic_compare_exchange_strong(&rt->idle_channel, &none, of_this_process(fd)))
        close(fd);
}

void csn_runtime_channel_drop(csn_runtime *rt)
{
    int fd = channel_take(rt);

    if (fd >= 0)
        close(fd);
}

/* Sends SPAWN on the kept channel. False: there is none or the keeper closed it; nothing was
 * started. */
static bool send_again(run *r, const csn_spawn_msg *b, const int *fds, size_t n)
{
    csn_autofd int fd = channel_take(r->rt);
    uint8_t buf[8192];
    csn_packer o;

    if (fd < 0)
        return false;
    csn_packer_init(&o, buf, sizeof(buf));
    csn_proto_encode(&o, CSN_MSG_SPAWN, b, n);
    bool sent = o.error == 0 && csn_msg_send(fd, CSN_MSG_SPAWN, o.data, o.len, fds, n, 1) == 0;
    csn_packer_release(&o);
    if (sent)
        r->channel = csn_steal_fd(&fd);
    return sent;
}

csn_spawn_msg csn_runtime_spawn_msg(const csn_runtime *rt, const csn_exec_req *req,
                                    const csn_runtime_command_env *set)
{
    return (csn_spawn_msg){.memory_max = rt->memory_each,
                           .file_max = rt->file_max,
                           .deadline_ns = req->deadline_ns,
                           .argv = (const char **)(uintptr_t)req->argv,
                           .env = set->env};
}

/* Waits for no reply: EXIT reports a failed start. */
static csn_status send_spawn(run *r, csn_error **err)
{
    csn_runtime_command_env set;
    int fds[5], own[3] = {-1, -1, -1};
    size_t n = 0;

    csn_status st = csn_runtime_command_env_make(r->rt, r->req, &set, err);
    if (st < 0)
        return st;
    csn_spawn_msg b = csn_runtime_spawn_msg(r->rt, r->req, &set);
    st = make_stdio(r, set.cwd_fd, &b.flags, fds, own, &n, err);
    b.flags |= CSN_SPAWN_KEEP_CHANNEL;
    if (st == CSN_OK) {
        r->number = ++r->rt->spawns;
        if (!send_again(r, &b, fds, n))
            st = csn_link_ask(r->rt, CSN_MSG_SPAWN, &b, fds, n, &r->channel, err);
    }
    for (int i = 0; i < 3; i++)
        if (own[i] >= 0)
            close(own[i]);
    csn_runtime_command_env_release(&set);
    return st;
}

/* ---- running ---- */

/* Asks the keeper to kill the process tree. From then on only EXIT ends the wait, or the new
 * deadline. */
static csn_status ask_kill(run *r, uint32_t how, csn_error **err)
{
    r->how = how;
    r->pump.cancel_fds[0] = r->pump.cancel_fds[1] = -1;
    r->pump.deadline_ns = csn_kill_wait_begin(r->rt, &r->kill_wait);
    int rc = csn_proto_send(r->channel, CSN_MSG_KILL, &(csn_kill_msg){.grace_ms = CSN_GRACE_MS},
                            NULL, 0, 1);
    if (rc < 0 && rc != -EPIPE && rc != -ECONNRESET)
        return csn_link_hostile(r->rt, "it takes no requests", err);
    return CSN_OK;
}

bool csn_runtime_take_refused(csn_runtime *rt, const csn_exec_req *req, const csn_msg *m,
                              uint32_t *count)
{
    csn_refused_msg b;

    if (*count >= CSN_KEEPER_REFUSED_MAX || csn_proto_decode(m, CSN_MSG_REFUSED, &b) < 0)
        return false;
    ++*count;
    if (rt->name_refused)
        rt->name_refused(rt, req, b.name);
    return true;
}

void csn_runtime_take_notice(csn_pump *p, const csn_exec_extra *extra)
{
    if (!extra->take_notice(extra->ctx, p->notice_fd))
        p->notice_fd = -1;
}

/* Receives one message. *ret_ended: it was EXIT. */
static csn_status take_message(run *r, bool *ret_ended, csn_error **err)
{
    uint8_t buf[512];
    csn_error_msg refused;
    csn_msg m;
    int rc = csn_msg_recv(r->channel, buf, sizeof(buf), &m);

    *ret_ended = false;
    if (rc == -EAGAIN)
        return CSN_OK;
    if (rc == 0)
        return csn_link_lost(r->rt, err);
    if (rc < 0)
        return csn_link_hostile(r->rt, "it broke the protocol", err);
    csn_status st = CSN_OK;
    if (csn_proto_decode(&m, CSN_MSG_EXIT, &r->exit) == 0)
        *ret_ended = true;
    else if (csn_proto_decode(&m, CSN_MSG_ERROR, &refused) == 0)
        st = csn_fail_errno(err, (int)refused.errnum, "the keeper cannot start the command");
    else if (!csn_runtime_take_refused(r->rt, r->req, &m, &r->refused))
        st = csn_link_hostile(r->rt, "it answered something else", err);
    csn_msg_release(&m);
    return st;
}

/* After KILL, no EXIT arrived in time: a process or the keeper is stuck, or the machine is
 * overloaded or was suspended. */
static bool give_up(run *r)
{
    r->pump.deadline_ns = csn_kill_wait_next(r->rt, &r->kill_wait);
    if (r->pump.deadline_ns != 0)
        return false;
    r->exit = (csn_exit_msg){.killed = 1, .status = SIGKILL};
    return true;
}

/* Runs until the keeper reports the end. On an error the caller closes the channel, upon which
 * the keeper kills the command. If the source of stdin fails, the command is killed first, so
 * that it can undo what it has done with the incomplete input. */
static csn_status run_to_end(run *r, csn_error **err)
{
    csn_status st = CSN_OK;
    bool ended = false;

    while (st == CSN_OK && !ended) {
        switch (csn_pump_wait(&r->pump)) {
        case CSN_PUMP_MESSAGE:
            st = take_message(r, &ended, err);
            break;
        case CSN_PUMP_DEADLINE:
            if (r->how == CSN_END_EXITED)
                st = ask_kill(r, CSN_END_TIMEOUT, err);
            else
                ended = give_up(r);
            break;
        case CSN_PUMP_NOTICE:
            csn_runtime_take_notice(&r->pump, r->extra);
            break;
        case CSN_PUMP_CANCEL:
        case CSN_PUMP_STOP:
            if (r->how == CSN_END_EXITED)
                st = ask_kill(r, CSN_END_CANCEL, err);
            break;
        case CSN_PUMP_FEED:
            if (r->how == CSN_END_EXITED)
                st = ask_kill(r, CSN_END_CANCEL, err);
            break;
        case CSN_PUMP_CLOSED:
        case CSN_PUMP_CONTROL:
        case CSN_PUMP_ERROR:
            st = csn_fail(err, CSN_INTERNAL, "cannot wait for the command");
            break;
        }
    }
    if (st < 0 || !r->pump.feed_failed)
        return st;
    return r->pump.feed_error ? csn_fail_errno(err, r->pump.feed_error, "standard input")
                              : csn_fail(err, CSN_IO, "the source of stdin failed");
}

/* After EXIT all output of the command is in the pipes and is delivered, however slow the sink
 * is. Other processes that hold the pipes get CSN_DRAIN_MS. */
void csn_runtime_drain(csn_runtime *rt, csn_pump *p)
{
    csn_pump_event ev;
    int left[2];
    size_t n = 0;

    p->message_fd = p->control_fd = p->notice_fd = p->cancel_fds[0] = p->cancel_fds[1] = -1;
    csn_pump_end_feed(p);
    if (p->out[0].fd < 0 && p->out[1].fd < 0)
        return;
    csn_pump_drain_now(p);
    p->deadline_ns = csn_deadline_in(CSN_DRAIN_MS);
    do
        ev = csn_pump_wait(p);
    while (ev == CSN_PUMP_STOP);
    for (int i = 0; i < 2; i++)
        if (p->out[i].fd >= 0)
            left[n++] = p->out[i].fd;
    if (n > 0) {
        csn_autofd int channel = -1;
        (void)csn_link_ask(rt, CSN_MSG_DRAIN, NULL, left, n, &channel, NULL);
    }
}

static csn_status run_foreground(csn_runtime *rt, const csn_exec_req *req,
                                 const csn_exec_extra *extra, const csn_sink *sink,
                                 csn_exec_end *ret, csn_error **err)
{
    run r = {.rt = rt, .req = req, .channel = -1, .extra = extra, .how = CSN_END_EXITED};

    csn_pump_init(&r.pump);
    r.pump.sink = sink->write;
    r.pump.sink_ctx = sink->ctx;
    csn_status st = send_spawn(&r, err);
    if (st == CSN_OK) {
        r.pump.message_fd = r.channel;
        r.pump.notice_fd = extra->notice_fd;
        r.pump.cancel_fds[0] = req->cancel_fds[0];
        r.pump.cancel_fds[1] = req->cancel_fds[1];
        r.pump.deadline_ns = req->deadline_ns;
        st = run_to_end(&r, err);
    }
    if (st == CSN_OK && (r.exit.after & CSN_AFTER_ALONE))
        rt->alone_after = r.number;
    if (st == CSN_OK) {
        csn_runtime_drain(rt, &r.pump);
        *ret = (csn_exec_end){.size = sizeof(*ret), .how = csn_runtime_end_how(&r.exit, r.how)};
        csn_runtime_end_fill(rt, &r.exit, req->argv[0], ret);
    }
    if (st == CSN_OK && r.how == CSN_END_EXITED && (r.exit.after & CSN_AFTER_CHANNEL))
        channel_put(rt, csn_steal_fd(&r.channel));
    else if (r.channel >= 0)
        close(r.channel);
    csn_pump_release(&r.pump);
    return st;
}

csn_status csn_runtime_exec(void *state, const csn_exec_req *req, const csn_sink *sink,
                            csn_exec_end *ret, csn_error **err)
{
    return csn_runtime_exec_with(state, req, &CSN_EXEC_EXTRA_NONE, sink, ret, err);
}

csn_status csn_runtime_exec_with(csn_runtime *rt, const csn_exec_req *req,
                                 const csn_exec_extra *extra, const csn_sink *sink,
                                 csn_exec_end *ret, csn_error **err)
{
    return req->session ? csn_runtime_session_exec(rt, req, extra, sink, ret, err)
                        : run_foreground(rt, req, extra, sink, ret, err);
}
