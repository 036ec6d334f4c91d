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
csn_status csn_jail_limits_plan(csn_runtime *k, csn_error **err);
/* What the keeper is to enforce. */
void csn_jail_limits_arm(csn_runtime *k, csn_confinement *w);
/* Makes the groups and lets the keeper in. Only when the sweeper runs and knows of the keeper.
 */
csn_status csn_jail_limits_admit(csn_runtime *k, csn_error **err);
/* The keeper was let in, or found again: then its groups are looked up. */
csn_status csn_jail_limits_started(csn_runtime *k, csn_error **err);

/* entries of csn_runtime_kind */
void csn_jail_mark(csn_runtime *k, csn_runtime_mark *ret);
void csn_jail_judge(csn_runtime *k, const csn_runtime_mark *before, csn_exec_end *end);
void csn_jail_ended(csn_runtime *k);
