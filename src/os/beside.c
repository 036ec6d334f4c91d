/* beside.c: see beside.h. */
#include "os/beside.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define CPUS 1024u
#define BITS (8 * sizeof(unsigned long))

static int run(void *arg)
{
    csn_beside *b = arg;

    __atomic_store_n(&b->begun, true, __ATOMIC_RELAXED);
    b->rc = b->work(b->arg);
    return 0;
}

/* The scheduler puts a new process behind the one that made it, on the same processor, for
 * longer than all this takes; waiting for it there is worse than having done it ourselves. So
 * it is told to go elsewhere, where there is another processor; and to come back if that one is
 * busy with something else when we have come to wait. */
static void place(int pid, bool here)
{
    unsigned long mask[CPUS / BITS] = {0}, rest = 0;
    unsigned cpu = CPUS;

    if (syscall(SYS_sched_getaffinity, 0, sizeof(mask), mask) < 0 ||
        syscall(SYS_getcpu, &cpu, NULL, NULL) < 0 || cpu >= CPUS)
        return;
    unsigned long bit = 1ul << (cpu % BITS);
    for (size_t i = 0; i < CPUS / BITS; i++) {
        mask[i] = here ? 0 : mask[i];
        if (i == cpu / BITS)
            mask[i] = here ? bit : mask[i] & ~bit;
        rest |= mask[i];
    }
    if (rest != 0)
        (void)syscall(SYS_sched_setaffinity, pid, sizeof(mask), mask);
}

int csn_beside_begin(csn_beside *b, int (*work)(void *), void *arg)
{
    b->work = work;
    b->arg = arg;
    b->begun = false;
    b->rc = -EINTR; /* who is killed did not do its work */
    b->pid = clone(run, b->stack + sizeof(b->stack), CLONE_VM | CLONE_FILES | SIGCHLD, b);
    if (b->pid < 0)
        return -errno;
    place(b->pid, false);
    return 0;
}

int csn_beside_join(csn_beside *b)
{
    if (!__atomic_load_n(&b->begun, __ATOMIC_RELAXED))
        place(b->pid, true);
    while (waitpid(b->pid, NULL, __WALL) < 0)
        if (errno != EINTR)
            return -errno;
    return b->rc;
}
