/* cgroup_limits.c: which file of a control group gets which text.
 *
 * Called by cgroup_make.c. What must hold: swap is no way around a memory limit, and a limit
 * that the kernel cannot express is refused rather than rounded to none. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "os/cgroup_parts.h"

#define PERIOD_US      100000u
#define LONG_PERIOD_US 1000000u /* the longest there is */
#define QUOTA_MIN_US   1000u    /* the kernel refuses less */
#define CPU_MILLI_MAX  10000000u
#define PIDS_CEILING   4194304u /* no kernel has more, and pids.max takes no more */

int csn_cgroup_limits_check(const csn_cgroup_limits *l)
{
    if (l->cpu_milli > CPU_MILLI_MAX || l->memory_max > INT64_MAX)
        return -EINVAL;
    return 0;
}

static void add(csn_cgroup_step **at, const char *file, bool optional, uint64_t value)
{
    csn_cgroup_step *s = (*at)++;

    *s = (csn_cgroup_step){.file = file, .optional = optional};
    snprintf(s->text, sizeof(s->text), "%" PRIu64, value);
}

/* Small shares need a long period: 5 of 1000 are 500 us of the usual one, too few. */
static void cpu_share(uint64_t milli, uint64_t *quota, uint64_t *period)
{
    *period = milli * (PERIOD_US / 1000) < QUOTA_MIN_US ? LONG_PERIOD_US : PERIOD_US;
    *quota = milli * (*period / 1000);
}

static void v1_steps(csn_cgroup_step **at, unsigned kinds, const csn_cgroup_limits *l)
{
    uint64_t quota, period;

    if (kinds & 1u << CSN_CGROUP_MEMORY) {
        add(at, "memory.limit_in_bytes", false, l->memory_max);
        /* Memory and swap together. It may not be less than the limit before it, so comes
         * second. Kernels that do not account swap lack it; swappiness 0 then means that this
         * group is never swapped to keep its limit. */
        add(at, "memory.memsw.limit_in_bytes", true, l->memory_max);
        add(at, "memory.swappiness", true, 0);
    }
    if (kinds & 1u << CSN_CGROUP_PIDS)
        add(at, "pids.max", false, l->pids_max < PIDS_CEILING ? l->pids_max : PIDS_CEILING);
    if (kinds & 1u << CSN_CGROUP_CPU) {
        cpu_share(l->cpu_milli, &quota, &period);
        add(at, "cpu.cfs_period_us", false, period);
        add(at, "cpu.cfs_quota_us", false, quota);
    }
}

static void v2_steps(csn_cgroup_step **at, unsigned kinds, const csn_cgroup_limits *l)
{
    uint64_t quota, period;

    /* The sandbox has no business with groups of its own, should it ever get to write here. */
    add(at, "cgroup.max.descendants", true, 0);
    if (kinds & 1u << CSN_CGROUP_MEMORY) {
        add(at, "memory.max", false, l->memory_max);
        add(at, "memory.swap.max", true, 0);
        /* One process too large must not cost the keeper its life. */
        add(at, "memory.oom.group", true, 0);
    }
    if (kinds & 1u << CSN_CGROUP_PIDS)
        add(at, "pids.max", false, l->pids_max < PIDS_CEILING ? l->pids_max : PIDS_CEILING);
    if (kinds & 1u << CSN_CGROUP_CPU) {
        cpu_share(l->cpu_milli, &quota, &period);
        add(at, "cpu.max", false, 0);
        snprintf((*at)[-1].text, sizeof((*at)[-1].text), "%" PRIu64 " %" PRIu64, quota, period);
    }
}

size_t csn_cgroup_steps(int version, unsigned kinds, const csn_cgroup_limits *l,
                        csn_cgroup_step ret[CSN_CGROUP_STEPS_MAX])
{
    csn_cgroup_step *at = ret;

    if (version == 2)
        v2_steps(&at, kinds, l);
    else
        v1_steps(&at, kinds, l);
    return (size_t)(at - ret);
}
