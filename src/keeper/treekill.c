/* treekill.c: kills a command with all its descendants.
 *
 * The tree is found by its tag and by ancestry (os/proctree.h). Its members are hostile: they
 * ignore SIGTERM, stop themselves, leave their session, fork without end. So the keeper sends
 * SIGTERM and SIGCONT to all, waits for the grace period, sends SIGSTOP in passes until a pass
 * finds no new member (a stopped process cannot fork, and stays visible as a parent), then
 * SIGKILL, and repeats this until a scan finds no living member. The state is in the job, with
 * the time of the next step; the keeper serves other requests in between. */
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
    /* A process can remove its tag. In a jail every process starts with a tag, so those without
     * one are killed with the next tree. */
    if (k->spec.confinement.on & CSN_CONFINE_BIT(CSN_CONFINE_NAMESPACES)) {
        k->want.ours_lo = k->spec.tag_base;
        k->want.ours_hi = k->spec.tag_base | CSN_TAG_SEQ_MASK;
    }
    return &k->want;
}

/* All descendants of the keeper. */
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

/* Returns how many members were alive before the SIGKILL; 0 only if that is certain. Gives up
 * freezing after FREEZE_MS so that other requests are served; stopped members stay stopped
 * until the next tick. */
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

/* Returns how many processes got the signal, 0 or -errno. On a busy machine some process ends
 * between readdir and the check in nearly every scan, and the scan then returns 1 although no
 * member got the signal; so such a scan is repeated. A member that the signal killed during the
 * scan counts. */
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
        job->kill_next_ns = now; /* at the next tick, which comes before any wait */
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

/* Called when the keeper ends. The keeper is the subreaper of all descendants, so when it has
 * no child, none is left. A process that is stuck in the kernel delays the end by
 * CSN_KEEPER_END_MS at most. */
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
