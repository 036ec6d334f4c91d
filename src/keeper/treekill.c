/* treekill.c: ending a command with everything it started.
 *
 * Without a pid namespace a command's tree is found by its tag and by ancestry (os/proctree).
 * The members are hostile: they ignore SIGTERM, stop themselves, leave their session, fork
 * without end. So: SIGTERM and SIGCONT to all, a grace, then passes of SIGSTOP until a pass
 * finds nobody new (what is stopped cannot fork, and stays visible as a parent), then SIGKILL,
 * and all that again until a scan finds no living member. Everything is a state of the job and
 * a next time to look: the keeper goes on serving others meanwhile. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "keeper/keeper.h"

#define FREEZE_MS    10u
#define NAP_MS_FIRST 1u
#define NAP_MS_MAX   20u
#define NAP_MS_TERM  20u
#define MS           1000000ull
#define SCANS        16

static void meanwhile(void *ctx)
{
    kp_jobs_collect(ctx);
}

static const csn_proctree_query *job_tree(kp_keeper *k, const kp_job *job)
{
    k->want = (csn_proctree_query){.root = job->running ? job->pid : 0,
                                   .include_root = true,
                                   .tag_lo = job->tag,
                                   .tag_hi = job->tag,
                                   .reap = meanwhile,
                                   .ctx = k};
    /* A process can put its tag off. In a jail nobody else is without one, and whoever did it
     * goes with the first tree that is ended. */
    if (k->spec.confinement.on & CSN_CONFINE_BIT(CSN_CONFINE_NAMESPACES)) {
        k->want.ours_lo = k->spec.tag_base;
        k->want.ours_hi = k->spec.tag_base | CSN_TAG_SEQ_MASK;
    }
    return &k->want;
}

/* Everything below the keeper itself. */
static const csn_proctree_query *keeper_tree(kp_keeper *k)
{
    k->want = (csn_proctree_query){.root = getpid(),
                                   .include_root = false,
                                   .tag_lo = k->spec.tag_base,
                                   .tag_hi = k->spec.tag_base | CSN_TAG_SEQ_MASK,
                                   .reap = meanwhile,
                                   .ctx = k};
    return &k->want;
}

/* Freezes, then kills. Returns how many were alive before the killing: 0 only when that is
 * certain. Somebody else's turn must come too: it stops chasing after a while and goes on at
 * the next tick; those that are caught stay caught. */
static ssize_t freeze_and_kill(kp_keeper *k, const csn_proctree_query *w)
{
    uint64_t until = csn_now_ns() + FREEZE_MS * MS;
    size_t fresh = 0;

    do
        if (csn_proctree_scan_tagged(&k->tree, w, SIGSTOP, &fresh) < 0)
            break;
    while (fresh > 0 && csn_now_ns() < until);
    ssize_t n = csn_proctree_scan(&k->tree, w, SIGSTOP, false, &fresh);
    if (n != 0)
        (void)csn_proctree_scan_tagged(&k->tree, w, SIGKILL, &fresh);
    return n;
}

/* Returns how many were there to get it, 0: nobody. On a busy machine somebody, whoever it was,
 * is gone between being listed and being asked in nearly every scan: that nobody is left is
 * then not certain, which must not be taken for somebody who got the signal. Who got it may be
 * dead of it before the scan has looked at it again, and counts. */
ssize_t kp_job_signal_tree(kp_keeper *k, const kp_job *job, int signo)
{
    const csn_proctree_query *w = job_tree(k, job);

    for (int i = 0; i < SCANS; i++) {
        ssize_t n = csn_proctree_scan(&k->tree, w, signo, signo == SIGTERM, NULL);
        if (n <= 0 || k->tree.seen > 0 || k->tree.hit > 0)
            return n;
    }
    return 0;
}

void kp_job_kill(kp_keeper *k, kp_job *job, uint64_t grace_ms)
{
    uint64_t now = csn_now_ns();

    job->killed = true;
    if (job->phase == KP_KILL_NONE && grace_ms > 0) {
        (void)kp_job_signal_tree(k, job, SIGTERM);
        job->phase = KP_KILL_TERM;
        job->kill_term_ns = csn_deadline_in(grace_ms);
        job->kill_nap_ms = NAP_MS_FIRST;
        job->kill_next_ns = now + NAP_MS_FIRST * MS;
    } else if (job->phase == KP_KILL_NONE || grace_ms == 0) {
        job->phase = KP_KILL_KILL;
        job->kill_nap_ms = NAP_MS_FIRST;
        job->kill_next_ns = now; /* the next tick, which comes before any wait */
    }
}

static uint64_t schedule_next(kp_job *job, uint64_t now, uint32_t max_ms)
{
    job->kill_next_ns = now + job->kill_nap_ms * MS;
    job->kill_nap_ms = job->kill_nap_ms * 2 < max_ms ? job->kill_nap_ms * 2 : max_ms;
    return job->kill_next_ns;
}

uint64_t kp_kill_tick(kp_keeper *k, kp_job *job, uint64_t now)
{
    if (job->phase == KP_KILL_NONE)
        return 0;
    if (now < job->kill_next_ns)
        return job->kill_next_ns;
    if (job->phase == KP_KILL_TERM && now >= job->kill_term_ns) {
        job->phase = KP_KILL_KILL;
        job->kill_nap_ms = NAP_MS_FIRST;
    }
    const csn_proctree_query *w = job_tree(k, job);
    ssize_t living = job->phase == KP_KILL_KILL
                         ? freeze_and_kill(k, w)
                         : csn_proctree_scan(&k->tree, w, 0, false, NULL);
    if (living == 0 && !job->running && !job->reaped) {
        job->phase = KP_KILL_NONE;
        kp_job_finish(k, job);
        return 0;
    }
    uint64_t at =
        schedule_next(job, now, job->phase == KP_KILL_TERM ? NAP_MS_TERM : NAP_MS_MAX);
    if (job->phase == KP_KILL_TERM && at > job->kill_term_ns)
        at = job->kill_next_ns = job->kill_term_ns;
    return at;
}

/* At the keeper's own end. As the subreaper we are the parent of every orphan, so when there is
 * no child left there is no descendant left. What cannot be killed (a process stuck in the
 * kernel) must not keep us for ever. */
void kp_kill_everything(kp_keeper *k)
{
    uint64_t deadline = csn_deadline_in(CSN_KEEPER_END_MS);

    for (int wait_ms = 0;; wait_ms = wait_ms < 20 ? wait_ms + 1 : 20) {
        pid_t pid;

        while ((pid = waitpid(-1, NULL, WNOHANG | __WALL)) > 0)
            ;
        if ((pid < 0 && errno == ECHILD) || csn_now_ns() >= deadline)
            return;
        (void)freeze_and_kill(k, keeper_tree(k));
        (void)poll(NULL, 0, wait_ms);
    }
}
