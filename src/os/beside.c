/* beside.c: see beside.h. */
#include "os/beside.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static int run(void *arg)
{
    csn_beside *b = arg;

    __atomic_store_n(&b->begun, true, __ATOMIC_RELAXED);
    if (b->here)
        csn_cpus_elsewhere((int)syscall(SYS_getppid));
    b->rc = b->work(b->arg);
    return 0;
}

static int begin(csn_beside *b, int (*work)(void *), void *arg)
{
    b->work = work;
    b->arg = arg;
    b->begun = false;
    b->rc = -EINTR; /* who is killed did not do its work */
    b->pid = clone(run, b->stack + sizeof(b->stack), CLONE_VM | CLONE_FILES | SIGCHLD, b);
    return b->pid < 0 ? -errno : 0;
}

int csn_beside_begin(csn_beside *b, int (*work)(void *), void *arg)
{
    b->here = false;
    int rc = begin(b, work, arg);
    if (rc == 0)
        csn_cpus_elsewhere(b->pid);
    return rc;
}

int csn_beside_begin_here(csn_beside *b, int (*work)(void *), void *arg)
{
    b->here = true;
    csn_cpus_get(&b->cpus);
    return begin(b, work, arg);
}

void csn_beside_back(const csn_beside *b)
{
    if (!b->here)
        return;
    csn_cpus_set(0, &b->cpus);
    if (!__atomic_load_n(&b->begun, __ATOMIC_RELAXED)) /* we did not wait at all */
        csn_cpus_elsewhere(b->pid);
}

int csn_beside_join(csn_beside *b)
{
    /* It may have been sent to a processor that is busy with something else. */
    if (!__atomic_load_n(&b->begun, __ATOMIC_RELAXED))
        csn_cpus_here(b->pid);
    while (waitpid(b->pid, NULL, __WALL) < 0)
        if (errno != EINTR)
            return -errno;
    return b->rc;
}
