/* jobs.c: tracks commands, their output and their end.
 *
 * A foreground job is a child and a channel, and is freed when it has sent EXIT. A background
 * job also has rings for its output and stays listed after its end. Commands decide how much
 * they write and how long they hold their pipes open, so both are bounded here.
 *
 * Invariants:
 *   - Every child is reaped, orphans included: the keeper is their subreaper.
 *   - EXIT is sent once, after the child was reaped and, if it was killed, its tree is gone.
 *   - A channel that hangs up kills its job.
 *   - A deadline kills its job, whatever the library does at that time. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "keeper/keeper.h"

#define REAP_READS 64 /* of a pipe whose writer has ended, before other events are handled */

/* Initializes all members but the channel. */
static void job_begin(kp_keeper *k, kp_job *job, kp_job_kind kind)
{
    job->kind = kind;
    job->out.watch.fd = job->err.watch.fd = job->stdin_w = -1;
    job->out.job = job->err.job = job;
    job->out.ended = job->err.ended = true;
    job->tag = kp_next_tag(k);
    kp_unrouted_begin(k, job);
    kp_list_add(&k->jobs, &job->link);
}

kp_job *kp_job_new(kp_keeper *k, kp_job_kind kind)
{
    if (k->jobs.count >= CSN_KEEPER_JOBS_MAX) {
        errno = EAGAIN;
        return NULL;
    }
    kp_job *job = kp_object_new(k, sizeof(*job));
    if (!job)
        return NULL;
    job->channel.fd = -1;
    job_begin(k, job, kind);
    return job;
}

/* The channel keeps its address, because the epoll set points to it. */
void kp_job_reuse(kp_keeper *k, kp_job *job)
{
    kp_watch channel = job->channel;

    kp_list_drop(&k->kept_channels, &job->link);
    *job = (kp_job){.channel = channel};
    job->channel.kind = KP_WATCH_CHANNEL;
    job_begin(k, job, KP_JOB_FOREGROUND);
}

/* Tags repeat after 16 million commands: a process that still runs then shares its tag with one
 * new command. */
uint64_t kp_next_tag(kp_keeper *k)
{
    return k->spec.tag_base | (++k->sequence & CSN_TAG_SEQ_MASK);
}

static void close_all(kp_keeper *k, kp_job *job)
{
    kp_watch_close(k, &job->channel);
    kp_watch_close(k, &job->out.watch);
    kp_watch_close(k, &job->err.watch);
    if (job->stdin_w >= 0)
        close(csn_steal_fd(&job->stdin_w));
}

static void free_parts(kp_job *job)
{
    kp_ring_release(&job->out.ring);
    kp_ring_release(&job->err.ring);
    free(CSN_STEAL(job->command));
}

void kp_job_free(kp_keeper *k, kp_job *job)
{
    close_all(k, job);
    free_parts(job);
    kp_list_drop(&k->jobs, &job->link);
    kp_free_later(k, &job->link);
}

kp_job *kp_job_find(kp_keeper *k, int64_t pid)
{
    KP_EACH(&k->jobs, item, safe)
    {
        kp_job *job = (kp_job *)item;
        if (job->kind == KP_JOB_BACKGROUND && job->pid == pid)
            return job;
    }
    /* the newest: pids are reused */
    for (kp_link *item = k->ended.head.prev; item != &k->ended.head; item = item->prev)
        if (((kp_job *)item)->pid == pid)
            return (kp_job *)item;
    return NULL;
}

bool kp_has_no_children(void)
{
    siginfo_t si;

    return waitid(P_ALL, 0, &si, WEXITED | WNOHANG | WNOWAIT | __WALL) < 0 && errno == ECHILD;
}

void kp_job_send_exit(kp_keeper *k, const kp_job *job, uint32_t stage, uint32_t errnum,
                      bool keep)
{
    if (job->channel.fd < 0)
        return;
    uint32_t after = keep ? CSN_AFTER_CHANNEL : 0;
    if (getpid() == 1 && kp_has_no_children())
        after |= CSN_AFTER_ALONE;
    if (stage == CSN_STAGE_NONE && kp_unrouted_since(k, job))
        after |= CSN_AFTER_UNROUTED;
    kp_reply(job->channel.fd, CSN_MSG_EXIT,
             &(csn_exit_msg){.stage = stage,
                             .errnum = errnum,
                             .status = job->status,
                             .killed = (job->killed ? CSN_KILLED_ASKED : 0) | job->over |
                                       (job->timed_out ? CSN_KILLED_DEADLINE : 0),
                             .cpu_ns = job->cpu_ns,
                             .peak_memory = job->peak_memory,
                             .after = after});
}

/* ---- output ---- */

/* With too many pipes, the oldest is closed: its writer is the least likely to be in use. */
void kp_drain_add(kp_keeper *k, int fd)
{
    kp_drain *d = NULL;

    if (k->drains.count >= CSN_KEEPER_DRAINS_MAX) {
        d = (kp_drain *)k->drains.head.next;
        kp_watch_close(k, &d->watch);
        kp_list_drop(&k->drains, &d->link);
        kp_free_later(k, &d->link);
    }
    d = calloc(1, sizeof(*d));
    (void)fcntl(fd, F_SETFL, O_NONBLOCK);
    if (!d || kp_watch_open(k, &d->watch, KP_WATCH_DRAIN, fd, d) < 0) {
        close(fd);
        free(d);
        return;
    }
    kp_list_add(&k->drains, &d->link);
}

void kp_drain_read(kp_keeper *k, kp_watch *w)
{
    ssize_t n = read(w->fd, k->packet, sizeof(k->packet));

    if (n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR)))
        return;
    if (w->kind == KP_WATCH_SESSION_OUTPUT) {
        /* the shell has closed the pipe: keep it, so that the next user reads the end of
         * file */
        w->fd = kp_watch_release(k, w);
        return;
    }
    kp_watch_close(k, w);
    if (w->kind == KP_WATCH_DRAIN) {
        kp_drain *d = w->owner;
        kp_list_drop(&k->drains, &d->link);
        kp_free_later(k, &d->link);
    }
}

int kp_drain_serve(kp_keeper *k, kp_request *r)
{
    for (size_t i = 0; i < r->m->nfds; i++)
        kp_drain_add(k, csn_msg_take_fd(r->m, i));
    return 0;
}

static uint64_t ended_bytes(const kp_keeper *k)
{
    uint64_t sum = 0;

    KP_EACH(&k->ended, item, safe)
    {
        const kp_job *job = (const kp_job *)item;
        sum += kp_ring_kept(&job->out.ring) + kp_ring_kept(&job->err.ring);
    }
    return sum;
}

/* Frees the oldest ended jobs until both ceilings are met. */
static void trim_ended(kp_keeper *k)
{
    while (k->ended.count > 1 &&
           (k->ended.count > CSN_KEEPER_ENDED_MAX || ended_bytes(k) > CSN_KEEPER_ENDED_BYTES)) {
        kp_job *oldest = (kp_job *)k->ended.head.next;
        free_parts(oldest);
        kp_list_drop(&k->ended, &oldest->link);
        kp_free_later(k, &oldest->link);
    }
}

/* For a background job that has ended and whose rings are complete. */
static void move_to_ended(kp_keeper *k, kp_job *job)
{
    if (job->kind != KP_JOB_BACKGROUND || job->running || job->phase != KP_KILL_NONE ||
        !job->out.ended || !job->err.ended)
        return;
    if (job->out.watch.fd >= 0)
        kp_drain_add(k, kp_watch_release(k, &job->out.watch));
    if (job->err.watch.fd >= 0)
        kp_drain_add(k, kp_watch_release(k, &job->err.watch));
    close_all(k, job);
    kp_list_drop(&k->jobs, &job->link);
    kp_list_add(&k->ended, &job->link);
    trim_ended(k);
}

/* Reads once. False: there is nothing to read now. */
static bool stream_step(kp_keeper *k, kp_stream *s)
{
    if (s->watch.fd < 0)
        return false;
    if (s->discard) {
        kp_drain_read(k, &s->watch);
        return false;
    }
    ssize_t n = kp_ring_fill(&s->ring, s->watch.fd);
    if (n == -EAGAIN)
        return false;
    if (n > 0)
        return true;
    kp_watch_close(k, &s->watch); /* end of file; of a terminal: EIO */
    s->ended = true;
    return false;
}

void kp_stream_read(kp_keeper *k, kp_stream *s)
{
    kp_job *job = s->job;

    (void)stream_step(k, s);
    kp_waiters_notify(k, job->pid);
    move_to_ended(k, job);
}

/* Reads what the ended process left in its pipes. Other processes that hold the pipes open may
 * write for CSN_DRAIN_MS more. */
static void streams_finish(kp_keeper *k, kp_job *job)
{
    for (int i = 0; i < REAP_READS && stream_step(k, &job->out); i++)
        ;
    for (int i = 0; i < REAP_READS && stream_step(k, &job->err); i++)
        ;
    if (!job->out.ended || !job->err.ended)
        job->drain_ns = csn_deadline_in(CSN_DRAIN_MS);
}

/* ---- ends ---- */

/* Creating a channel is the most expensive part of a short command, so the channel is kept for
 * the next one, except after a KILL: a second KILL may be on its way. */
static void end_foreground(kp_keeper *k, kp_job *job)
{
    bool keep = job->keep_channel && !job->killed && job->channel.fd >= 0 &&
                k->kept_channels.count < CSN_KEEPER_KEPT_MAX;

    kp_job_send_exit(k, job, CSN_STAGE_NONE, 0, keep);
    if (!keep) {
        kp_job_free(k, job);
        return;
    }
    free_parts(job);
    kp_list_drop(&k->jobs, &job->link);
    kp_list_add(&k->kept_channels, &job->link);
    job->channel.kind = KP_WATCH_KEPT_CHANNEL;
}

void kp_job_finish(kp_keeper *k, kp_job *job)
{
    switch (job->kind) {
    case KP_JOB_FOREGROUND:
        end_foreground(k, job);
        break;
    case KP_JOB_BACKGROUND:
        kp_watch_close(k, &job->channel);
        kp_waiters_notify(k, job->pid);
        move_to_ended(k, job);
        break;
    case KP_JOB_SESSION:
        kp_job_send_exit(k, job, CSN_STAGE_NONE, 0, false);
        kp_session_free(k, job->session);
        kp_job_free(k, job);
        break;
    }
}

static uint64_t usage_ns(const struct timeval *tv)
{
    return (uint64_t)tv->tv_sec * 1000000000u + (uint64_t)tv->tv_usec * 1000u;
}

static void job_reaped(kp_keeper *k, kp_job *job, int status, const struct rusage *ru)
{
    job->running = false;
    job->reaped = k->reaped = true;
    job->status = (uint32_t)status;
    job->cpu_ns = usage_ns(&ru->ru_utime) + usage_ns(&ru->ru_stime);
    job->peak_memory = (uint64_t)ru->ru_maxrss * 1024u;
    if (job->over == CSN_KILLED_MEMORY && job->peak_memory < k->meter.peak)
        job->peak_memory = k->meter.peak; /* of all processes, as is the limit */
    if (k->want.root == job->pid)
        k->want.root = 0; /* the pid may be reused from now on */
}

/* A child that belongs to no job is an orphan. */
void kp_jobs_collect(kp_keeper *k)
{
    struct rusage ru;
    int status;
    pid_t pid;

    while ((pid = wait4(-1, &status, WNOHANG | __WALL, &ru)) > 0) {
        KP_EACH(&k->jobs, item, safe)
        {
            kp_job *job = (kp_job *)item;
            if (!job->running || job->pid != pid)
                continue;
            job_reaped(k, job, status, &ru);
            break;
        }
    }
}

void kp_jobs_reap(kp_keeper *k)
{
    kp_jobs_collect(k);
    if (!k->reaped)
        return;
    k->reaped = false;
    KP_EACH(&k->jobs, item, safe)
    {
        kp_job *job = (kp_job *)item;
        if (!job->reaped)
            continue;
        job->reaped = false;
        if (job->kind == KP_JOB_BACKGROUND)
            streams_finish(k, job);
        if (job->phase == KP_KILL_NONE)
            kp_job_finish(k, job);
        else
            job->kill_next_ns = 1; /* check now whether the tree is gone */
    }
}

/* The peer has ended or broken the protocol. No grace period: the last output has no reader. */
static void hang_up(kp_keeper *k, kp_job *job)
{
    kp_watch_close(k, &job->channel);
    if (job->kind == KP_JOB_SESSION)
        kp_session_detach(k, job->session);
    kp_job_kill(k, job, 0);
}

/* False: the message is none of a session. A RELEASE of a shell that is being killed is
 * ignored: the caller gets EXIT, which says why. */
static bool session_message(kp_keeper *k, kp_job *job, const csn_msg *m)
{
    if (csn_proto_decode(m, CSN_MSG_ENDED, NULL) == 0) {
        job->deadline_ns = 0;
        return true;
    }
    if (csn_proto_decode(m, CSN_MSG_RELEASE, NULL) < 0)
        return false;
    if (job->phase == KP_KILL_NONE) {
        kp_watch_close(k, &job->channel);
        kp_session_idle(k, job->session);
    }
    return true;
}

void kp_job_channel_read(kp_keeper *k, kp_job *job)
{
    uint8_t buf[256];
    csn_kill_msg ask;
    csn_msg m;
    int rc = csn_msg_recv(job->channel.fd, buf, sizeof(buf), &m);

    if (rc == -EAGAIN)
        return;
    if (rc <= 0) {
        hang_up(k, job);
        return;
    }
    if (csn_proto_decode(&m, CSN_MSG_KILL, &ask) == 0) {
        if (job->kind == KP_JOB_SESSION)
            kp_session_detach(k, job->session);
        kp_job_kill(k, job, ask.grace_ms);
    } else if (job->kind != KP_JOB_SESSION || !session_message(k, job, &m)) {
        hang_up(k, job);
    }
    csn_msg_release(&m);
}

/* As a KILL does. A session whose command has ended in time is left alone: its caller is late
 * with RELEASE, because it is stopped or still writes the output. */
static void time_out(kp_keeper *k, kp_job *job)
{
    if (job->kind == KP_JOB_SESSION && kp_session_has_status(job->session)) {
        job->deadline_ns = 0;
        return;
    }
    if (job->kind == KP_JOB_SESSION)
        kp_session_detach(k, job->session);
    job->timed_out = true;
    kp_job_kill(k, job, CSN_GRACE_MS);
}

/* Three timers: the deadline, the end of draining, the next step of killing. */
uint64_t kp_job_tick(kp_keeper *k, kp_job *job, uint64_t now)
{
    uint64_t next = 0;

    if (job->deadline_ns != 0 && job->running && job->phase == KP_KILL_NONE) {
        if (now >= job->deadline_ns)
            time_out(k, job);
        else
            next = job->deadline_ns;
    }
    if (job->drain_ns != 0) {
        if (now >= job->drain_ns) {
            job->drain_ns = 0;
            job->out.ended = job->err.ended = true;
            job->out.discard = job->err.discard = true;
            kp_waiters_notify(k, job->pid);
            if (job->phase == KP_KILL_NONE) {
                move_to_ended(k, job);
                return 0;
            }
        } else {
            next = next == 0 || job->drain_ns < next ? job->drain_ns : next;
        }
    }
    uint64_t kill_at = kp_kill_tick(k, job, now);
    return next == 0 || (kill_at != 0 && kill_at < next) ? kill_at : next;
}
