/* deferred_replies.c: serves requests about background processes, some of which must wait.
 *
 * A request that waits for the end of a process or for output becomes a waiter: its channel,
 * the condition, a deadline. A change of a process wakes its waiters; a channel that hangs up
 * frees its waiter. A pid in a request is looked up in the list of jobs and never passed to
 * kill(). */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "keeper/keeper.h"
#include "os/pty.h"

#define EOT 4 /* ^D: end of input on a terminal */

/* A job that is being killed counts as running until its tree is gone. */
static bool alive(const kp_job *job)
{
    return job->running || job->phase != KP_KILL_NONE;
}

/* ---- waiters ---- */

int kp_waiter_add(kp_keeper *k, kp_request *r, const kp_waiter *what)
{
    kp_waiter *w = k->waiters.count < CSN_KEEPER_WAITERS_MAX ? malloc(sizeof(*w)) : NULL;

    if (w)
        *w = *what;
    if (!w || kp_watch_open(k, &w->watch, KP_WATCH_WAITER, r->channel, w) < 0) {
        free(what->name);
        free(w);
        return -EAGAIN;
    }
    r->channel = -1;
    kp_list_add(&k->waiters, &w->link);
    return KP_REPLIED;
}

void kp_waiter_free(kp_keeper *k, kp_waiter *w)
{
    kp_watch_close(k, &w->watch);
    free(CSN_STEAL(w->name));
    kp_list_drop(&k->waiters, &w->link);
    kp_free_later(k, &w->link);
}

/* ---- PROCESSES ---- */

static void put_process(csn_packer *o, const kp_job *job)
{
    csn_process_put(o, &(csn_process_msg){.pid = job->pid,
                                          .running = alive(job),
                                          .status = job->status,
                                          .pty = job->pty,
                                          .out_total = job->out.ring.total,
                                          .err_total = job->err.ring.total,
                                          .started_ms = job->started_ms,
                                          .command = job->command ? job->command : ""});
}

/* One body has the whole list; a long one travels in a memfd. */
static void reply_list(kp_keeper *k, int channel, int64_t pid)
{
    uint8_t buf[4096];
    csn_packer o;

    csn_packer_init(&o, buf, sizeof(buf));
    if (pid != 0) {
        const kp_job *job = kp_job_find(k, pid);
        if (!job) {
            kp_reply_error(channel, ESRCH, 0);
            return;
        }
        put_process(&o, job);
    } else {
        KP_EACH(&k->ended, item, safe)
        put_process(&o, (kp_job *)item);
        KP_EACH(&k->jobs, item, safe)
        if (((kp_job *)item)->kind == KP_JOB_BACKGROUND)
            put_process(&o, (kp_job *)item);
    }
    if (o.error != 0)
        kp_reply_error(channel, o.error, 0);
    else
        (void)csn_msg_send(channel, CSN_MSG_PROCESS_LIST, o.data, o.len, NULL, 0, 1);
    csn_packer_release(&o);
}

int kp_processes_serve(kp_keeper *k, kp_request *r)
{
    const csn_processes_msg *ask = &r->body.processes;
    const kp_job *job = ask->pid != 0 ? kp_job_find(k, ask->pid) : NULL;

    if (ask->wait_ms > 0 && job && alive(job))
        return kp_waiter_add(k, r,
                             &(kp_waiter){.type = CSN_MSG_PROCESSES,
                                          .pid = ask->pid,
                                          .deadline_ns = csn_deadline_in(ask->wait_ms)});
    reply_list(k, r->channel, ask->pid);
    return KP_REPLIED;
}

/* ---- LOGS ---- */

static const kp_stream *stream_of(const kp_job *job, uint32_t number)
{
    return number == 2 ? &job->err : &job->out;
}

/* Is there a byte after the offset, or has the stream ended? */
static bool has_more(const kp_job *job, const csn_logs_msg *ask)
{
    const kp_stream *s = stream_of(job, ask->stream);

    return s->ended || s->ring.total > ask->offset;
}

static void reply_log(kp_keeper *k, int channel, const csn_logs_msg *ask)
{
    static uint8_t body[CSN_LOG_BODY], data[CSN_LOG_CHUNK_MAX];
    const kp_job *job = kp_job_find(k, ask->pid);
    csn_log_msg log = {.bytes.data = data};
    csn_packer o;

    if (!job) {
        kp_reply_error(channel, ESRCH, CSN_STAGE_NONE);
        return;
    }
    const kp_stream *s = stream_of(job, ask->stream);
    log.bytes.len =
        (uint32_t)kp_ring_copy(&s->ring, ask->offset, data, sizeof(data), &log.offset);
    log.dropped = log.offset > ask->offset ? log.offset - ask->offset : 0;
    log.total = s->ring.total;
    log.end = s->ended && log.offset + log.bytes.len == log.total;
    csn_packer_init(&o, body, sizeof(body));
    csn_proto_encode(&o, CSN_MSG_LOG, &log, 0);
    if (o.error == 0)
        (void)csn_msg_send(channel, CSN_MSG_LOG, o.data, o.len, NULL, 0, 1);
    csn_packer_release(&o);
}

int kp_logs_serve(kp_keeper *k, kp_request *r)
{
    const csn_logs_msg *ask = &r->body.logs;
    const kp_job *job = kp_job_find(k, ask->pid);

    if (ask->wait_ms > 0 && job && !has_more(job, ask))
        return kp_waiter_add(k, r,
                             &(kp_waiter){.type = CSN_MSG_LOGS,
                                          .pid = ask->pid,
                                          .logs = *ask,
                                          .deadline_ns = csn_deadline_in(ask->wait_ms)});
    reply_log(k, r->channel, ask);
    return KP_REPLIED;
}

/* ---- when a condition is met ---- */

static void answer(kp_keeper *k, kp_waiter *w)
{
    if (w->type == CSN_MSG_PROCESSES)
        reply_list(k, w->watch.fd, w->pid);
    else if (w->type == CSN_MSG_LOGS)
        reply_log(k, w->watch.fd, &w->logs);
    else
        kp_reply_error(w->watch.fd, ETIMEDOUT, 0);
    kp_waiter_free(k, w);
}

void kp_waiters_notify(kp_keeper *k, int64_t pid)
{
    if (k->waiters.count == 0)
        return;
    const kp_job *job = kp_job_find(k, pid);
    KP_EACH(&k->waiters, item, safe)
    {
        kp_waiter *w = (kp_waiter *)item;
        if (w->type == CSN_MSG_SESSION || w->pid != pid)
            continue;
        if (!job || (w->type == CSN_MSG_LOGS ? has_more(job, &w->logs) : !alive(job)))
            answer(k, w);
    }
}

uint64_t kp_waiter_tick(kp_keeper *k, kp_waiter *w, uint64_t now)
{
    if (w->deadline_ns == 0 || now < w->deadline_ns)
        return w->deadline_ns;
    answer(k, w);
    return 0;
}

/* ---- SIGNAL, FEED, RESIZE ---- */

/* SIGTERM and SIGKILL go to the tree, which may outlive the process; others to its group. */
static int signal_job(kp_keeper *k, kp_job *job, int signo)
{
    if (signo == SIGKILL && alive(job)) {
        kp_job_kill(k, job, 0);
        return 0;
    }
    if (signo == SIGTERM || signo == SIGKILL) {
        ssize_t n = kp_job_signal_tree(k, job, signo);
        return n < 0 ? (int)n : n == 0 ? -ESRCH : 0;
    }
    if (!job->running)
        return -ESRCH;
    return kill(-job->pid, signo) < 0 ? -errno : 0; /* not reaped, so the pid is its own */
}

int kp_signal_serve(kp_keeper *k, kp_request *r)
{
    kp_job *job = kp_job_find(k, r->body.signal.pid);

    return job ? signal_job(k, job, (int)r->body.signal.signo) : -ESRCH;
}

/* A terminal cannot be closed; it gets an end-of-input character. */
static int close_stdin(kp_job *job)
{
    char eot = EOT;

    if (job->pty && job->out.watch.fd >= 0)
        return write(job->out.watch.fd, &eot, 1) == 1 ? 0 : -errno;
    if (job->stdin_w < 0)
        return -EPIPE;
    close(csn_steal_fd(&job->stdin_w));
    return 0;
}

int kp_feed_serve(kp_keeper *k, kp_request *r)
{
    kp_job *job = kp_job_find(k, r->body.feed.pid);

    if (!job)
        return -ESRCH;
    if (r->body.feed.close)
        return close_stdin(job);
    int fd = job->pty ? job->out.watch.fd : job->stdin_w;
    if (fd < 0 || !job->running)
        return job->running ? -EPIPE : -ESRCH;
    (void)csn_proto_send(r->channel, CSN_MSG_FEED_REPLY, NULL, &fd, 1, 1);
    return KP_REPLIED;
}

int kp_resize_serve(kp_keeper *k, kp_request *r)
{
    const csn_resize_msg *ask = &r->body.resize;
    kp_job *job = kp_job_find(k, ask->pid);

    if (!job)
        return -ESRCH;
    if (!job->pty)
        return -ENOTTY;
    return job->out.watch.fd < 0
               ? -ESRCH
               : csn_pty_resize(job->out.watch.fd, (uint16_t)ask->rows, (uint16_t)ask->cols);
}
