/* session.c: persistent shells, each leased to one caller at a time.
 *
 * A session is a shell that reads commands from one pipe and writes their status to another
 * (its descriptor 9); stdout and stderr are pipes as well. The caller gets the other ends of
 * the pipes, and its channel is the lease. RELEASE passes the session to the next waiter. A
 * channel that hangs up, KILL, or the deadline of the command ends the whole tree and frees the
 * name for a new shell. The deadline holds from the lease to ENDED or RELEASE. While
 * the session is not leased, the keeper reads and discards its output, so that background jobs
 * of the shell do not block. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "keeper/keeper.h"

#define FD_HIGH 16 /* above the descriptors that the shell gets */

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

/* Above the descriptors of the shell, so that dup2 in the child overwrites none. The keeper's
 * end does not block. */
static int high_pipe(int ret[2], int ours)
{
    int p[2];

    if (pipe2(p, O_CLOEXEC) < 0)
        return -errno;
    ret[0] = fcntl(p[0], F_DUPFD_CLOEXEC, FD_HIGH);
    ret[1] = fcntl(p[1], F_DUPFD_CLOEXEC, FD_HIGH);
    close(p[0]);
    close(p[1]);
    if (ret[0] < 0 || ret[1] < 0)
        return -EMFILE;
    (void)fcntl(ret[ours], F_SETFL, O_NONBLOCK);
    return 0;
}

static void close_if(int fd)
{
    if (fd >= 0)
        close(fd);
}

/* Uses bash if it exists. From a pipe it reads one command at a time, without reading ahead. */
static const char *shell_file(const char ***ret_argv)
{
    static const char *bash[] = {NULL, "bash", "--noprofile", "--norc", "-s", NULL};
    static const char *sh[] = {NULL, "sh", "-s", NULL};

    *ret_argv = bash + 1; /* kp_child needs one free slot before argv[0] */
    if (access("/bin/bash", X_OK) == 0)
        return "/bin/bash";
    if (access("/usr/bin/bash", X_OK) == 0)
        return "/usr/bin/bash";
    *ret_argv = sh + 1;
    return "/bin/sh";
}

/* On failure the session owns the pipes too; kp_session_free closes them. */
static int start_shell(kp_keeper *k, kp_session *s, const csn_session_msg *b, int cwd,
                       uint32_t *ret_stage)
{
    enum { SCRIPT, STATUS, OUT, ERR, PIPES };
    int p[PIPES][2] = {{-1, -1}, {-1, -1}, {-1, -1}, {-1, -1}}, rc = 0;
    csn_spawn_msg shell = {.flags = b->flags & CSN_SPAWN_MERGE,
                           .memory_max = b->memory_max,
                           .file_max = b->file_max,
                           .env = b->env};
    kp_child c = {.spawn = &shell, .cwd = cwd, .sockets = -1, .stage = CSN_STAGE_SETUP};

    c.file = shell_file(&shell.argv);
    for (int i = 0; rc == 0 && i < (s->merge ? ERR : PIPES); i++)
        rc = high_pipe(p[i], i == SCRIPT ? 1 : 0);
    c.in = p[SCRIPT][0];
    c.ctl = p[STATUS][1];
    c.out = p[OUT][1];
    c.err = p[ERR][1];
    if (rc == 0 && !kp_job_start(k, s->job, &c))
        rc = -(int)c.errnum;
    *ret_stage = c.stage;
    s->script_w = p[SCRIPT][1];
    s->ctl_r = p[STATUS][0];
    s->out.fd = p[OUT][0];
    s->err.fd = p[ERR][0];
    for (int i = 0; i < PIPES; i++)
        close_if(p[i][i == SCRIPT ? 0 : 1]);
    return rc;
}

void kp_session_detach(kp_keeper *k, kp_session *s)
{
    if (!s->link.next)
        return;
    kp_list_drop(&k->sessions, &s->link);
    s->link.next = NULL;
    /* ERESTART makes the waiters repeat their request, which starts a new shell. */
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
    /* A shell that ended by itself while it was not leased may leave background jobs that still
     * write. A caller with a lease reads the pipes to their end and returns them with DRAIN. */
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
    s->out = (kp_watch){.kind = KP_WATCH_SESSION_OUTPUT, .fd = -1, .owner = s};
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
    return s;
}

/* Leases the session to a caller, and takes ownership of its channel. */
static void lease(kp_keeper *k, kp_session *s, int channel, bool fresh, uint64_t deadline_ns)
{
    if (s->out.on)
        s->out.fd = kp_watch_release(k, &s->out);
    if (s->err.on)
        s->err.fd = kp_watch_release(k, &s->err);
    int fds[4] = {s->script_w, s->ctl_r, s->out.fd, s->err.fd};
    s->busy = true;
    s->job->deadline_ns = deadline_ns;
    s->job->refused_count = 0;
    kp_unrouted_begin(k, s->job);
    int rc = kp_watch_open(k, &s->job->channel, KP_WATCH_CHANNEL, channel, s->job);
    if (rc == 0)
        rc = csn_proto_send(channel, CSN_MSG_SESSION_REPLY,
                            &(csn_session_reply_msg){.fresh = fresh}, fds, s->merge ? 3 : 4, 1);
    if (rc < 0) { /* the reply could not be sent: treated as a hang-up */
        kp_watch_close(k, &s->job->channel);
        kp_session_detach(k, s);
        kp_job_kill(k, s->job, 0);
    }
}

bool kp_session_has_status(const kp_session *s)
{
    int bytes = 0;

    return ioctl(s->ctl_r, FIONREAD, &bytes) == 0 && bytes > 0;
}

void kp_session_idle(kp_keeper *k, kp_session *s)
{
    s->busy = false;
    s->job->deadline_ns = 0;
    if (s->out.fd >= 0 && kp_watch_open(k, &s->out, KP_WATCH_SESSION_OUTPUT, s->out.fd, s) < 0)
        s->out.on = false;
    if (s->err.fd >= 0 && kp_watch_open(k, &s->err, KP_WATCH_SESSION_OUTPUT, s->err.fd, s) < 0)
        s->err.on = false;
    if (!s->link.next)
        return; /* the shell is being killed */
    KP_EACH(&k->waiters, item, safe)
    {
        kp_waiter *w = (kp_waiter *)item;
        if (w->type != CSN_MSG_SESSION || strcmp(w->name, s->name) != 0)
            continue;
        bool same = w->flags == (s->merge ? CSN_SPAWN_MERGE : 0);
        int channel = kp_watch_release(k, &w->watch);
        uint64_t deadline_ns = w->deadline_ns;
        kp_waiter_free(k, w);
        if (same) {
            lease(k, s, channel, false, deadline_ns);
            return;
        }
        kp_reply_error(channel, ERESTART, 0); /* the caller repeats its request */
        close(channel);
    }
}

/* One shell per name; if it is leased, the caller waits. The pipes of a running shell cannot be
 * changed: a request for others is EINVAL. */
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
        lease(k, s, csn_steal_fd(&r->channel), fresh, b->deadline_ns);
    return KP_REPLIED;
}
