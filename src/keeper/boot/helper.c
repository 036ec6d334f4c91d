/* helper.c: runs one function in a cloned process and synchronizes with it by futexes.
 *
 * The keeper's waits have a timeout, after which it checks that the helper is alive. */
#include "keeper/boot/helper.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "os/affinity.h"
#include "os/raw_syscall.h"

#define FUTEX_WAIT 0
#define FUTEX_WAKE 1
#define CHECK_NS   50000000 /* how often the keeper checks that the helper is alive */

void kp_step_done(int *step)
{
    __atomic_store_n(step, 1, __ATOMIC_RELEASE);
    (void)csn_raw(SYS_futex, step, FUTEX_WAKE, 1);
}

bool kp_step_is_done(const int *step)
{
    return __atomic_load_n(step, __ATOMIC_ACQUIRE) != 0;
}

static void wait_once(const int *step)
{
    const struct timespec timeout = {.tv_nsec = CHECK_NS};

    if (!kp_step_is_done(step))
        (void)csn_raw(SYS_futex, step, FUTEX_WAIT, 0, &timeout);
}

void kp_step_await(const int *step)
{
    while (!kp_step_is_done(step))
        wait_once(step);
}

static int run(void *arg)
{
    kp_helper *h = arg;

    h->rc = h->work(h->arg);
    kp_step_done(&h->done);
    return 0;
}

int kp_helper_begin(kp_helper *h, int (*work)(void *), void *arg)
{
    h->work = work;
    h->arg = arg;
    h->reaped = false;
    h->done = 0;
    h->rc = -EINTR; /* stays if the helper is killed */
    h->pid = clone(run, h->stack + sizeof(h->stack), CLONE_VM | CLONE_FILES | SIGCHLD, h);
    if (h->pid < 0)
        return -errno;
    csn_affinity_move_away(h->pid);
    return 0;
}

static int reap(kp_helper *h, int flags)
{
    int pid = 0;

    while (!h->reaped && (pid = waitpid(h->pid, NULL, __WALL | flags)) < 0)
        if (errno != EINTR)
            return -errno;
    h->reaped = h->reaped || pid == h->pid;
    return 0;
}

int kp_helper_await(kp_helper *h, const int *step)
{
    int rc = 0;

    for (; rc == 0 && !kp_step_is_done(step) && !h->reaped; rc = reap(h, WNOHANG))
        wait_once(step);
    return rc < 0 ? rc : kp_step_is_done(step) ? 0 : -EINTR;
}

int kp_helper_result(kp_helper *h)
{
    int rc = kp_helper_await(h, &h->done);

    return rc < 0 ? rc : h->rc;
}

int kp_helper_join(kp_helper *h)
{
    int result = kp_helper_result(h), rc = reap(h, 0);

    return result < 0 ? result : rc;
}
