/* limits.h: what bounds a jail's use of the machine, and by what means. */
#pragma once
#include "kept/kept.h"
#include "os/cgroup.h"

#define CSN_JAIL_PIDS_DEFAULT 4096u
#define CSN_JAIL_DISK_DEFAULT (1ull << 30) /* of /tmp, the home and /dev/shm together */

typedef struct csn_jail_limits {
    csn_cgroup group; /* count 0: none */
    int doors[CSN_CGROUP_KINDS];
    uint32_t door_count; /* of those that are open */
    bool sampled;        /* memory: looked at by the keeper, bounded for each process */
    int sweeper_pidfd;   /* or -1 */
    const char *text;    /* for the layer `limits` */
} csn_jail_limits;

void csn_jail_limits_init(csn_jail_limits *l);
/* Is there no control group to be born in? One that was made early and whose maker is killed
 * waits the longer for somebody to sweep it; and who enters it is waited for (os/spawn.c). */
bool csn_jail_limits_ahead(const csn_kept *k);
/* Makes the control groups that are needed and can be had, for the keeper to be born in.
 * Refused when a limit can be had by no means. */
csn_status csn_jail_limits_birth(csn_kept *k, csn_orphan *o, csn_error **err);
/* What the keeper is to enforce. */
void csn_jail_limits_arm(csn_kept *k, csn_walls *w);
/* The keeper runs (its groups are entered) or was found again (they are looked up). */
csn_status csn_jail_limits_started(csn_kept *k, csn_error **err);

/* entries of csn_kept_kind */
void csn_jail_mark(csn_kept *k, csn_kept_mark *ret);
void csn_jail_judge(csn_kept *k, const csn_kept_mark *before, csn_exec_end *end);
void csn_jail_ended(csn_kept *k);

/* sweeper.c. Starts the program that removes what this sandbox leaves when its keeper is gone,
 * if it leaves anything. */
csn_status csn_jail_sweeper_start(csn_kept *k, csn_error **err);
