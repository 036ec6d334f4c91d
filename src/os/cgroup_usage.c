/* cgroup_usage.c: what the processes of a group used, and which limit they ran into.
 *
 * Called by the library while a sandbox lives and once after its end, before the group is
 * removed. Everything read is the kernel's; a file that a kernel lacks leaves its numbers
 * unknown. The groups have no groups inside, so local and hierarchical counts are the same. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "os/cgroup_parts.h"

#define PEAK_V1   "memory.max_usage_in_bytes"
#define PEAK_V2   "memory.peak" /* since Linux 5.19 */
#define EVENTS_V1 "memory.oom_control"
#define EVENTS_V2 "memory.events"

static uint64_t field_of(const char *dir, const char *file, const char *key)
{
    char text[2048];

    return csn_cgroup_get(dir, file, text, sizeof(text)) < 0 ? CSN_CGROUP_UNKNOWN
                                                             : csn_cgroup_field(text, key);
}

static void memory_usage(const csn_cgroup_dir *d, csn_cgroup_usage *u)
{
    if (d->version == 2) {
        u->memory_current = csn_cgroup_number(d->path, "memory.current");
        u->memory_peak = csn_cgroup_number(d->path, PEAK_V2);
        u->memory_limit_hits = field_of(d->path, EVENTS_V2, "max");
        u->memory_oom_kills = field_of(d->path, EVENTS_V2, "oom_kill");
    } else {
        u->memory_current = csn_cgroup_number(d->path, "memory.usage_in_bytes");
        u->memory_peak = csn_cgroup_number(d->path, PEAK_V1);
        /* With both limits alike it is the one on memory and swap together that is hit. */
        uint64_t with_swap = csn_cgroup_number(d->path, "memory.memsw.failcnt");
        u->memory_limit_hits = csn_cgroup_number(d->path, "memory.failcnt");
        if (with_swap != CSN_CGROUP_UNKNOWN && u->memory_limit_hits != CSN_CGROUP_UNKNOWN)
            u->memory_limit_hits += with_swap;
        u->memory_oom_kills = field_of(d->path, EVENTS_V1, "oom_kill");
    }
    /* Some kernels (6.18 with v1) leave the count at 0; nobody is killed without a hit. */
    if (u->memory_oom_kills != CSN_CGROUP_UNKNOWN && u->memory_limit_hits < u->memory_oom_kills)
        u->memory_limit_hits = u->memory_oom_kills;
}

static void cpu_usage(const csn_cgroup_dir *d, csn_cgroup_usage *u)
{
    char text[2048];

    if (csn_cgroup_get(d->path, "cpu.stat", text, sizeof(text)) < 0)
        return;
    u->cpu_throttled_hits = csn_cgroup_field(text, "nr_throttled");
    if (d->version == 2) {
        u->cpu_us = csn_cgroup_field(text, "usage_usec");
        u->cpu_throttled_us = csn_cgroup_field(text, "throttled_usec");
        return;
    }
    /* v1 counts nanoseconds, and the time used is another controller's. A group there for
     * nothing but that number would cost every attach one more write. */
    uint64_t used = csn_cgroup_number(d->path, "cpuacct.usage");
    uint64_t waited = csn_cgroup_field(text, "throttled_time");
    u->cpu_us = used == CSN_CGROUP_UNKNOWN ? used : used / 1000;
    u->cpu_throttled_us = waited == CSN_CGROUP_UNKNOWN ? waited : waited / 1000;
}

void csn_cgroup_hits_read(const csn_cgroup *g, csn_cgroup_usage *ret)
{
    memset(ret, 0xff, sizeof(*ret)); /* all unknown */
    for (uint32_t i = 0; i < g->count && i < CSN_CGROUP_KINDS; i++) {
        const csn_cgroup_dir *d = &g->dirs[i];
        bool v2 = d->version == 2;

        if (d->kinds & 1u << CSN_CGROUP_MEMORY) {
            ret->memory_peak = csn_cgroup_number(d->path, v2 ? PEAK_V2 : PEAK_V1);
            ret->memory_oom_kills = field_of(d->path, v2 ? EVENTS_V2 : EVENTS_V1, "oom_kill");
        }
        if (d->kinds & 1u << CSN_CGROUP_PIDS)
            ret->pids_limit_hits = field_of(d->path, "pids.events", "max");
    }
}

int csn_cgroup_usage_read(const csn_cgroup *g, csn_cgroup_usage *ret)
{
    csn_cgroup_usage u;

    memset(&u, 0xff, sizeof(u)); /* all unknown */
    for (uint32_t i = 0; i < g->count && i < CSN_CGROUP_KINDS; i++) {
        const csn_cgroup_dir *d = &g->dirs[i];

        if (access(d->path, F_OK) < 0)
            return -errno;
        if (d->kinds & 1u << CSN_CGROUP_MEMORY)
            memory_usage(d, &u);
        if (d->kinds & 1u << CSN_CGROUP_PIDS) {
            u.pids_current = csn_cgroup_number(d->path, "pids.current");
            u.pids_peak = csn_cgroup_number(d->path, "pids.peak");
            u.pids_limit_hits = field_of(d->path, "pids.events", "max");
        }
        if (d->kinds & 1u << CSN_CGROUP_CPU)
            cpu_usage(d, &u);
    }
    *ret = u;
    return 0;
}
