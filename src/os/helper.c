/* helper.c: see helper.h. */
#include "os/helper.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "os/raw_syscall.h"

#define FUTEX_WAIT 0
#define FUTEX_WAKE 1
#define LOOK_NS    50000000 /* whether it still lives */

/* Only who comes first sends the other to another processor: a caller that is back already must
 * not be sent away for good. */
enum { NOBODY, THE_OTHER, THE_CALLER };

static bool comes_first(csn_helper *b, int who)
{
    int nobody = NOBODY;

    return __atomic_compare_exchange_n(&b->first, &nobody, who, false, __ATOMIC_ACQ_REL,
                                       __ATOMIC_ACQUIRE);
}

void csn_step_done(int *step)
{
    __atomic_store_n(step, 1, __ATOMIC_RELEASE);
    (void)csn_raw(SYS_futex, step, FUTEX_WAKE, 1);
}

bool csn_step_is_done(const int *step)
{
    return __atomic_load_n(step, __ATOMIC_ACQUIRE) != 0;
}

static void wait_for(const int *step)
{
    const struct timespec look = {.tv_nsec = LOOK_NS};

    if (!csn_step_is_done(step))
        (void)csn_raw(SYS_futex, step, FUTEX_WAIT, 0, &look);
}

void csn_step_await(const int *step)
{
    while (!csn_step_is_done(step))
        wait_for(step);
}

static int run(void *arg)
{
    csn_helper *b = arg;

    if (b->here && comes_first(b, THE_OTHER)) {
        csn_affinity_move_away((int)syscall(SYS_getppid));
        __atomic_store_n(&b->moved, true, __ATOMIC_RELEASE);
    }
    b->rc = b->work(b->arg);
    csn_step_done(&b->done);
    return 0;
}

static int begin(csn_helper *b, int (*work)(void *), void *arg)
{
    b->work = work;
    b->arg = arg;
    b->moved = b->late = b->ended = false;
    b->first = NOBODY;
    b->done = 0;
    b->rc = -EINTR; /* who is killed did not do its work */
    b->pid = clone(run, b->stack + sizeof(b->stack), CLONE_VM | CLONE_FILES | SIGCHLD, b);
    return b->pid < 0 ? -errno : 0;
}

int csn_helper_begin(csn_helper *b, int (*work)(void *), void *arg)
{
    b->here = false;
    int rc = begin(b, work, arg);
    if (rc == 0)
        csn_affinity_move_away(b->pid);
    return rc;
}

int csn_helper_begin_here(csn_helper *b, int (*work)(void *), void *arg)
{
    b->here = true;
    csn_affinity_get(&b->cpus);
    return begin(b, work, arg);
}

void csn_helper_back(csn_helper *b)
{
    if (!b->here)
        return;
    if (comes_first(b, THE_CALLER)) { /* we did not wait at all */
        csn_affinity_move_away(b->pid);
        return;
    }
    b->late = !__atomic_load_n(&b->moved, __ATOMIC_ACQUIRE);
    csn_affinity_set(0, &b->cpus);
}

static int reap(csn_helper *b, int flags)
{
    int pid = 0;

    while (!b->ended && (pid = waitpid(b->pid, NULL, __WALL | flags)) < 0)
        if (errno != EINTR)
            return -errno;
    b->ended = b->ended || pid == b->pid;
    return 0;
}

/* It was sent to another processor, and may stand there behind something else, while this one
 * has nothing to do. */
int csn_helper_await(csn_helper *b, const int *step)
{
    int rc = 0;

    for (; rc == 0 && !csn_step_is_done(step) && !b->ended; rc = reap(b, WNOHANG))
        wait_for(step);
    return rc < 0 ? rc : csn_step_is_done(step) ? 0 : -EINTR;
}

int csn_helper_result(csn_helper *b)
{
    int rc = csn_helper_await(b, &b->done);

    return rc < 0 ? rc : b->rc;
}

int csn_helper_join(csn_helper *b)
{
    int told = csn_helper_result(b), rc = reap(b, 0);

    if (b->here && b->late)
        csn_affinity_set(0, &b->cpus);
    return told < 0 ? told : rc;
}
