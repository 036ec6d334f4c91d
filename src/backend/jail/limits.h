/* limits.h: plans, enforces and reports the resource limits of a jail. */
#pragma once
#include "os/cgroup.h"
#include "runtime/runtime.h"

typedef struct csn_jail_limits {
    csn_cgroup group; /* count 0: none planned; created if `made` */
    bool planned, made;
    bool sampled;     /* --memory is sampled by the keeper and limited per process */
    uint64_t ceiling; /* of memory, sampled, without --memory; 0: not known yet */
    const char *text; /* for the layer `limits` */
} csn_jail_limits;

/* The limits in force; 0: none. Without --memory it is three quarters of the memory of the
 * host, or of the control group at the root of the caller's container. */
uint64_t csn_jail_limit_memory(csn_runtime *rt);
uint64_t csn_jail_limit_pids(const csn_runtime *rt);
uint64_t csn_jail_limit_disk(const csn_runtime *rt);
/* Refuses a limit with which no command could run, however it is enforced. */
csn_status csn_jail_limits_check(const csn_config *c, csn_error **err);
/* Plans the control groups. Fails if a requested limit cannot be enforced at all. */
csn_status csn_jail_limits_plan(csn_runtime *rt, csn_error **err);
/* Sets the limits that the keeper enforces. */
void csn_jail_limits_fill(csn_runtime *rt, csn_confinement *w);
/* Creates the groups and lets the keeper enter them. The sweeper must run and have the keeper's
 * pidfd, so that it removes them. */
csn_status csn_jail_limits_admit(csn_runtime *rt, csn_error **err);
/* Makes the text of the layer `limits`. find: first looks up the groups of a connected jail. */
csn_status csn_jail_limits_describe(csn_runtime *rt, csn_error **err);
csn_status csn_jail_limits_find(csn_runtime *rt, csn_error **err);
/* Call when the keeper has ended or could not be started. */
void csn_jail_limits_ended(csn_runtime *rt);

/* How often limits were reached so far, and peak memory. */
typedef struct csn_jail_limit_hits {
    uint64_t memory, pids;
    uint64_t memory_peak;
} csn_jail_limit_hits;
csn_jail_limit_hits csn_jail_limits_hits(const csn_runtime *rt);
/* After a command: updates peak memory and, if the command failed and a limit was reached since
 * `before`, sets that as the reason. */
void csn_jail_limits_explain(const csn_runtime *rt, const csn_jail_limit_hits *before,
                             csn_exec_end *end);
