/* affinity.c: reads and sets CPU masks with raw system calls. */
#include "os/affinity.h"

#include <stddef.h>
#include <sys/syscall.h>

#include "os/raw_syscall.h"

#define BITS (8 * sizeof(unsigned long))

void csn_affinity_get(csn_affinity *ret)
{
    *ret = (csn_affinity){0};
    ret->known = csn_raw(SYS_sched_getaffinity, 0, sizeof(ret->bits), ret->bits) > 0;
}

void csn_affinity_set(int pid, const csn_affinity *cpus)
{
    if (cpus->known)
        (void)csn_raw(SYS_sched_setaffinity, pid, sizeof(cpus->bits), cpus->bits);
}

static bool current(unsigned *ret)
{
    return csn_raw(SYS_getcpu, ret, NULL, NULL) == 0 && *ret < CSN_AFFINITY_MAX;
}

void csn_affinity_move_away(int pid)
{
    unsigned long rest = 0;
    unsigned cpu;
    csn_affinity c;

    csn_affinity_get(&c);
    if (!c.known || !current(&cpu))
        return;
    c.bits[cpu / BITS] &= ~(1ul << (cpu % BITS));
    for (size_t i = 0; i < sizeof(c.bits) / sizeof(c.bits[0]); i++)
        rest |= c.bits[i];
    if (rest != 0)
        csn_affinity_set(pid, &c);
}
