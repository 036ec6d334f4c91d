/* limits.h: what bounds a jail's use of the machine, and by what means. */
#pragma once
#include "os/cgroup.h"
#include "runtime/runtime.h"

#define CSN_JAIL_PIDS_DEFAULT 4096u
#define CSN_JAIL_DISK_DEFAULT (1ull << 30) /* of /tmp, the home and /dev/shm together */

typedef struct csn_jail_limits {
    csn_cgroup group; /* count 0: none. Planned, until `made` */
    bool planned, made;
    bool sampled;     /* memory: looked at by the keeper, bounded for each process */
    const char *text; /* for the layer `limits` */
} csn_jail_limits;

/* Which control groups are needed and can be had. Refused when a limit can be had by no means.
 */
csn_status csn_jail_limits_plan(csn_runtime *rt, csn_error **err);
/* What the keeper is to enforce. */
void csn_jail_limits_fill(csn_runtime *rt, csn_confinement *w);
/* Makes the groups and lets the keeper in. Only when the sweeper runs and knows of the keeper.
 */
csn_status csn_jail_limits_admit(csn_runtime *rt, csn_error **err);
/* The text of the layer `limits`. find: looks up the groups of a connected jail before. */
csn_status csn_jail_limits_describe(csn_runtime *rt, csn_error **err);
csn_status csn_jail_limits_find(csn_runtime *rt, csn_error **err);
/* The keeper has ended, or could not be started. */
void csn_jail_limits_ended(csn_runtime *rt);

/* How often a limit was hit so far, and the most memory that was in use. */
typedef struct csn_jail_limit_hits {
    uint64_t memory, pids;
    uint64_t memory_peak;
} csn_jail_limit_hits;
csn_jail_limit_hits csn_jail_limits_hits(const csn_runtime *rt);
/* A command has ended: if a limit was hit since `before`, that is how it ended. */
void csn_jail_limits_explain(const csn_runtime *rt, const csn_jail_limit_hits *before,
                             csn_exec_end *end);
