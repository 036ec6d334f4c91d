/* session.c: persistent shells.
 *
 * A session is a shell that reads its script from a pipe of ours and reports on another (its
 * descriptor 9); stdout and stderr are pipes that live as long as it. One caller at a time has
 * it: it gets the script's write end and the read ends of the others, and a channel that is its
 * lease. Released, the next in the queue gets it; hung up or killed, the whole tree of the
 * session ends and its name is free for a new shell. While nobody has it we read its output and
 * forget it, so that servers it started do not block. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "keeper/keeper.h"

#define FD_HIGH 16 /* above the numbers the shell gets */

static kp_session *find(kp_keeper *k, const char *name)
{
    KP_EACH(&k->sessions, item, safe)
    {
        kp_session *s = (kp_session *)item;
        if (strcmp(s->name, name) == 0)
            return s;
    }
    return NULL;
}

/* Pipe ends above the numbers that are given to the shell, so that none is overwritten on the
 * way. */
static int high_pipe(int ret[2])
{
    int p[2];

    if (pipe2(p, O_CLOEXEC) < 0)
        return -errno;
    ret[0] = fcntl(p[0], F_DUPFD_CLOEXEC, FD_HIGH);
    ret[1] = fcntl(p[1], F_DUPFD_CLOEXEC, FD_HIGH);
    close(p[0]);
    close(p[1]);
    return ret[0] < 0 || ret[1] < 0 ? -EMFILE : 0;
}

static void close_if(int fd)
{
    if (fd >= 0)
        close(fd);
}

/* bash where there is one. Reading a pipe it takes one command at a time and never looks ahead.
 */
static const char *shell_file(const char ***ret_argv)
{
    static const char *bash[] = {NULL, "bash", "--noprofile", "--norc", "-s", NULL};
    static const char *sh[] = {NULL, "sh", "-s", NULL};

    *ret_argv = bash + 1; /* there is a spare slot before argv[0] */
    if (access("/bin/bash", X_OK) == 0)
        return "/bin/bash";
    if (access("/usr/bin/bash", X_OK) == 0)
        return "/usr/bin/bash";
    *ret_argv = sh + 1;
    return "/bin/sh";
}

/* The pipes are made here and kept in the session also when the start fails: kp_session_forget
 * closes them. Ours do not block; the shell's do, as programs expect. */
static int start_shell(kp_keeper *k, kp_session *s, const csn_session_msg *b, int cwd,
                       uint32_t *ret_stage)
{
    int script[2] = {-1, -1}, ctl[2] = {-1, -1}, out[2] = {-1, -1}, err[2] = {-1, -1};
    csn_spawn_msg shell = {.flags = b->flags & CSN_SPAWN_MERGE,
                           .memory_max = b->memory_max,
                           .file_max = b->file_max,
                           .env = b->env};

    *ret_stage = CSN_STAGE_SETUP;
    const char *file = shell_file(&shell.argv);
    int rc = high_pipe(script);
    rc = rc < 0 ? rc : high_pipe(ctl);
    rc = rc < 0 ? rc : high_pipe(out);
    rc = rc < 0 || s->merge ? rc : high_pipe(err);
    if (rc == 0) {
        kp_child c = {.spawn = &shell,
                      .tag = s->job->tag,
                      .confinement = &k->spec.confinement,
                      .stack = k->child_stack,
                      .cwd = cwd,
                      .in = script[0],
                      .out = out[1],
                      .err = err[1],
                      .ctl = ctl[1],
                      .sockets = -1,
                      .command_ruleset = k->command_ruleset,
                      .file = file};
        (void)fcntl(script[1], F_SETFL, O_NONBLOCK);
        (void)fcntl(ctl[0], F_SETFL, O_NONBLOCK);
        (void)fcntl(out[0], F_SETFL, O_NONBLOCK);
        if (!s->merge)
            (void)fcntl(err[0], F_SETFL, O_NONBLOCK);
        s->job->pid = kp_child_start(&c);
        *ret_stage = c.stage;
        rc = s->job->pid < 0 ? -(int)c.errnum : 0;
    }
    s->script_w = script[1];
    s->ctl_r = ctl[0];
    s->out.fd = out[0];
    s->err.fd = err[0];
    close_if(script[0]);
    close_if(ctl[1]);
    close_if(out[1]);
    close_if(err[1]);
    return rc;
}

/* From here on the name is free; the shell itself goes on dying. */
void kp_session_detach(kp_keeper *k, kp_session *s)
{
    if (!s->link.next)
        return;
    kp_list_drop(&k->sessions, &s->link);
    s->link.next = NULL;
    /* Whoever waits for its turn must begin anew: the name will be another shell. */
    KP_EACH(&k->waiters, item, safe)
    {
        kp_waiter *w = (kp_waiter *)item;
        if (w->type != CSN_MSG_SESSION || strcmp(w->name, s->name) != 0)
            continue;
        kp_reply_error(w->watch.fd, ERESTART, 0);
        kp_waiter_free(k, w);
    }
}

void kp_session_free(kp_keeper *k, kp_session *s)
{
    kp_session_detach(k, s);
    /* It ended by itself while nobody had it: what it started may go on writing. Whoever has it
     * reads the pipes to their end, and gives them back with DRAIN. */
    if (s->job && !s->job->killed && !s->busy) {
        if (s->out.fd >= 0)
            kp_drain_add(k, kp_watch_release(k, &s->out));
        if (s->err.fd >= 0)
            kp_drain_add(k, kp_watch_release(k, &s->err));
    }
    kp_watch_close(k, &s->out);
    kp_watch_close(k, &s->err);
    close_if(csn_steal_fd(&s->script_w));
    close_if(csn_steal_fd(&s->ctl_r));
    free(CSN_STEAL(s->name));
    kp_free_later(k, &s->link);
}

static kp_session *create(kp_keeper *k, const csn_session_msg *b, int cwd, int channel)
{
    kp_session *s = k->sessions.count < CSN_KEEPER_SESSIONS_MAX ? calloc(1, sizeof(*s)) : NULL;
    kp_job *job = s ? kp_job_new(k, KP_JOB_SESSION) : NULL;
    uint32_t stage;

    if (!job || !(s->name = strdup(b->name))) {
        kp_reply_error(channel, EAGAIN, CSN_STAGE_SETUP);
        if (job)
            kp_job_free(k, job);
        free(s);
        return NULL;
    }
    s->job = job;
    job->session = s;
    s->merge = (b->flags & CSN_SPAWN_MERGE) != 0;
    s->out = (kp_watch){.kind = KP_WATCH_IDLE, .fd = -1, .owner = s};
    s->err = s->out;
    kp_list_add(&k->sessions, &s->link);
    int rc = start_shell(k, s, b, cwd, &stage);
    if (rc < 0) {
        kp_reply_error(channel, -rc, stage);
        job->killed = true;
        kp_session_free(k, s);
        kp_job_free(k, job);
        return NULL;
    }
    job->running = true;
    return s;
}

/* Hands the session to the owner of this channel. Owns channel. */
static void lease(kp_keeper *k, kp_session *s, int channel, bool fresh)
{
    if (s->out.on)
        s->out.fd = kp_watch_release(k, &s->out);
    if (s->err.on)
        s->err.fd = kp_watch_release(k, &s->err);
    int fds[4] = {s->script_w, s->ctl_r, s->out.fd, s->err.fd};
    s->busy = true;
    int rc = kp_watch_open(k, &s->job->channel, KP_WATCH_CHANNEL, channel, s->job);
    if (rc == 0)
        rc = csn_proto_send(channel, CSN_MSG_SESSION_REPLY,
                            &(csn_session_reply_msg){.fresh = fresh}, fds, s->merge ? 3 : 4, 1);
    if (rc < 0) { /* cannot happen to a caller that waits for us: as if it had hung up */
        kp_watch_close(k, &s->job->channel);
        kp_session_detach(k, s);
        kp_job_kill(k, s->job, 0);
    }
}

void kp_session_idle(kp_keeper *k, kp_session *s)
{
    s->busy = false;
    if (s->out.fd >= 0 && kp_watch_open(k, &s->out, KP_WATCH_IDLE, s->out.fd, s) < 0)
        s->out.on = false;
    if (s->err.fd >= 0 && kp_watch_open(k, &s->err, KP_WATCH_IDLE, s->err.fd, s) < 0)
        s->err.on = false;
    if (!s->link.next)
        return; /* it is being killed: its name is another shell's by now */
    KP_EACH(&k->waiters, item, safe)
    {
        kp_waiter *w = (kp_waiter *)item;
        if (w->type != CSN_MSG_SESSION || strcmp(w->name, s->name) != 0)
            continue;
        bool same = w->flags == (s->merge ? CSN_SPAWN_MERGE : 0);
        int channel = kp_watch_release(k, &w->watch);
        kp_waiter_free(k, w);
        if (same) {
            lease(k, s, channel, false);
            return;
        }
        kp_reply_error(channel, ERESTART, 0); /* restart, or other pipes: it asks again */
        close(channel);
    }
}

/* One shell per name. Whoever comes while it is in use waits; whoever asks for other pipes than
 * it was started with is told so, since they cannot be changed under a running shell. */
int kp_session_serve(kp_keeper *k, kp_request *r)
{
    const csn_session_msg *b = &r->body.session;
    csn_autofd int cwd = csn_msg_take_fd(r->m, 0);
    kp_session *s = find(k, b->name);
    bool fresh = false;

    if (s && s->busy) {
        char *name = strdup(s->name);
        return !name
                   ? -ENOMEM
                   : kp_waiter_add(
                         k, r,
                         &(kp_waiter){.type = CSN_MSG_SESSION,
                                      .flags = b->flags & (CSN_SPAWN_MERGE | CSN_SPAWN_RESTART),
                                      .name = name,
                                      .deadline_ns = b->deadline_ns});
    }
    if (s && (b->flags & CSN_SPAWN_RESTART)) {
        kp_session_detach(k, s);
        kp_job_kill(k, s->job, 0);
        s = NULL;
    }
    if (s && s->merge != ((b->flags & CSN_SPAWN_MERGE) != 0))
        return -EINVAL;
    if (!s) {
        s = create(k, b, cwd, r->channel);
        fresh = true;
    }
    if (s)
        lease(k, s, csn_steal_fd(&r->channel), fresh);
    return KP_REPLIED;
}
