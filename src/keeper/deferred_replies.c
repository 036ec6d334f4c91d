/* deferred_replies.c: questions about background processes, and answers that are put off.
 *
 * A question that cannot be answered yet (a process that still runs, output that has not come)
 * becomes a waiter: its channel, what it waits for, until when. Whenever something happens to a
 * process its waiters are looked at; whoever waited and hung up is forgotten. Numbers in
 * requests are the caller's: processes are looked up by pid in our own table, never handed to
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

#define SIGNAL_MAX 64
#define EOT        4 /* what a terminal takes for the end of its input */

/* Being killed counts as running: its end is told when its whole tree is gone. */
static bool alive(const kp_job *job)
{
    return job->running || job->phase != KP_KILL_NONE;
}

/* ---- waiters -------------------------------------------------------------------------------
 */

int kp_waiter_add(kp_keeper *k, int channel, uint16_t type, const csn_ask_body *ask,
                  uint64_t deadline_ns, char *name)
{
    kp_waiter *w = k->waiters.count < CSN_KEEPER_WAITERS_MAX ? calloc(1, sizeof(*w)) : NULL;

    if (!w || kp_watch_open(k, &w->watch, KP_WATCH_WAITER, channel, w) < 0) {
        close(channel);
        free(name);
        free(w);
        return -EAGAIN;
    }
    w->type = type;
    w->ask = *ask;
    w->deadline_ns = deadline_ns;
    w->name = name;
    kp_list_add(&k->waiters, &w->link);
    return 0;
}

void kp_waiter_forget(kp_keeper *k, kp_waiter *w)
{
    kp_watch_close(k, &w->watch);
    free(CSN_STEAL(w->name));
    kp_list_drop(&k->waiters, &w->link);
    kp_bury(k, &w->link);
}

/* ---- PROCESSES -----------------------------------------------------------------------------
 */

static void put_job(csn_packer *o, const kp_job *job)
{
    csn_put_proc(o, &(csn_proc_body){.pid = job->pid,
                                     .running = alive(job),
                                     .status = job->status,
                                     .pty = job->pty,
                                     .out_total = job->out.ring.total,
                                     .err_total = job->err.ring.total,
                                     .started_ms = job->started_ms,
                                     .command = job->command ? job->command : ""});
}

/* The whole list goes into one body; when it is long, that travels in a memfd. */
static void answer_list(kp_keeper *k, int channel, int64_t pid)
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
        put_job(&o, job);
    } else {
        KP_EACH(&k->ended, item, safe)
        put_job(&o, (kp_job *)item);
        KP_EACH(&k->jobs, item, safe)
        if (((kp_job *)item)->kind == KP_JOB_BACKGROUND)
            put_job(&o, (kp_job *)item);
    }
    if (o.error != 0)
        kp_reply_error(channel, o.error, 0);
    else
        (void)csn_msg_send(channel, CSN_MSG_LIST, o.data, o.len, NULL, 0, 1);
    csn_packer_release(&o);
}

void kp_processes_serve(kp_keeper *k, csn_msg *m, int channel)
{
    csn_autofd int chan = channel;
    csn_ask_body ask;

    if (csn_get_ask(m->body, m->len, &ask) < 0) {
        kp_reply_error(chan, EINVAL, 0);
        return;
    }
    const kp_job *job = ask.pid != 0 ? kp_job_find(k, ask.pid) : NULL;
    if (ask.a > 0 && job && alive(job))
        (void)kp_waiter_add(k, csn_steal_fd(&chan), CSN_MSG_PROCESSES, &ask,
                            csn_deadline_in(ask.a), NULL);
    else
        answer_list(k, chan, ask.pid);
}

/* ---- LOGS ----------------------------------------------------------------------------------
 */

static const kp_stream *stream_of(const kp_job *job, uint64_t number)
{
    return number == 2 ? &job->err : &job->out;
}

/* Bytes after the offset, or the certainty that none will come. */
static bool has_news(const kp_job *job, const csn_ask_body *ask)
{
    const kp_stream *s = stream_of(job, ask->a);

    return s->ended || s->ring.total > ask->b;
}

static void answer_log(kp_keeper *k, int channel, const csn_ask_body *ask)
{
    static uint8_t body[CSN_LOG_CHUNK_MAX + 64], data[CSN_LOG_CHUNK_MAX];
    const kp_job *job = kp_job_find(k, ask->pid);
    csn_log_body log = {.data = data};
    csn_packer o;

    if (!job) {
        kp_reply_error(channel, ESRCH, 0);
        return;
    }
    const kp_stream *s = stream_of(job, ask->a);
    log.len = (uint32_t)kp_ring_copy(&s->ring, ask->b, data, sizeof(data), &log.offset);
    log.dropped = log.offset > ask->b ? log.offset - ask->b : 0;
    log.total = s->ring.total;
    log.end = s->ended && log.offset + log.len == log.total;
    csn_packer_init(&o, body, sizeof(body));
    csn_put_log(&o, &log);
    (void)csn_msg_send(channel, CSN_MSG_LOG, o.data, o.len, NULL, 0, 1);
    csn_packer_release(&o);
}

void kp_logs_serve(kp_keeper *k, csn_msg *m, int channel)
{
    csn_autofd int chan = channel;
    csn_ask_body ask;

    if (csn_get_ask(m->body, m->len, &ask) < 0 || ask.a < 1 || ask.a > 2) {
        kp_reply_error(chan, EINVAL, 0);
        return;
    }
    const kp_job *job = kp_job_find(k, ask.pid);
    if (ask.c > 0 && job && !has_news(job, &ask))
        (void)kp_waiter_add(k, csn_steal_fd(&chan), CSN_MSG_LOGS, &ask, csn_deadline_in(ask.c),
                            NULL);
    else
        answer_log(k, chan, &ask);
}

/* ---- when something happens
 * ------------------------------------------------------------------ */

static void answer(kp_keeper *k, kp_waiter *w)
{
    if (w->type == CSN_MSG_PROCESSES)
        answer_list(k, w->watch.fd, w->ask.pid);
    else if (w->type == CSN_MSG_LOGS)
        answer_log(k, w->watch.fd, &w->ask);
    else
        kp_reply_error(w->watch.fd, ETIMEDOUT, 0);
    kp_waiter_forget(k, w);
}

void kp_waiters_look(kp_keeper *k, int64_t pid)
{
    if (k->waiters.count == 0)
        return;
    const kp_job *job = kp_job_find(k, pid);
    KP_EACH(&k->waiters, item, safe)
    {
        kp_waiter *w = (kp_waiter *)item;
        if (w->type == CSN_MSG_SESSION || w->ask.pid != pid)
            continue;
        if (!job || (w->type == CSN_MSG_LOGS ? has_news(job, &w->ask) : !alive(job)))
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

/* ---- SIGNAL, FEED, RESIZE
 * ---------------------------------------------------------------------- */

/* The process these requests are about, or an error on the channel. */
static kp_job *asked_job(kp_keeper *k, const csn_msg *m, int channel, csn_ask_body *ask)
{
    if (csn_get_ask(m->body, m->len, ask) < 0) {
        kp_reply_error(channel, EINVAL, 0);
        return NULL;
    }
    kp_job *job = kp_job_find(k, ask->pid);
    if (!job)
        kp_reply_error(channel, ESRCH, 0);
    return job;
}

/* An ended process may have left others behind; they are still its tree. */
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
    return kill(-job->pid, signo) < 0 ? -errno : 0; /* not reaped yet: the number is its own */
}

void kp_signal_serve(kp_keeper *k, csn_msg *m, int channel)
{
    csn_autofd int chan = channel;
    csn_ask_body ask;
    kp_job *job = asked_job(k, m, chan, &ask);

    if (!job)
        return;
    int rc = ask.a > SIGNAL_MAX ? -EINVAL : signal_job(k, job, (int)ask.a);
    if (rc < 0)
        kp_reply_error(chan, -rc, 0);
    else
        kp_reply(chan, CSN_MSG_DONE, &(csn_ask_body){0});
}

/* A terminal has no end to close: it is told that the input ended. */
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

void kp_feed_serve(kp_keeper *k, csn_msg *m, int channel)
{
    csn_autofd int chan = channel;
    csn_ask_body ask;
    kp_job *job = asked_job(k, m, chan, &ask);

    if (!job)
        return;
    if (ask.a != 0) {
        int rc = close_stdin(job);
        if (rc < 0)
            kp_reply_error(chan, -rc, 0);
        else
            kp_reply(chan, CSN_MSG_DONE, &(csn_ask_body){0});
        return;
    }
    int fd = job->pty ? job->out.watch.fd : job->stdin_w;
    if (fd < 0 || !job->running)
        kp_reply_error(chan, job->running ? EPIPE : ESRCH, 0);
    else
        (void)csn_msg_send(chan, CSN_MSG_FEED_R, NULL, 0, &fd, 1, 1);
}

void kp_resize_serve(kp_keeper *k, csn_msg *m, int channel)
{
    csn_autofd int chan = channel;
    csn_ask_body ask;
    kp_job *job = asked_job(k, m, chan, &ask);

    if (!job)
        return;
    int rc = -ENOTTY;
    if (job->pty)
        rc = job->out.watch.fd >= 0
                 ? csn_pty_resize(job->out.watch.fd, (uint16_t)ask.a, (uint16_t)ask.b)
                 : -ESRCH;
    if (rc < 0)
        kp_reply_error(chan, -rc, 0);
    else
        kp_reply(chan, CSN_MSG_DONE, &(csn_ask_body){0});
}
