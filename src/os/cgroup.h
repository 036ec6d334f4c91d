/* cgroup.h: resource limits of one sandbox by control groups, v2 or v1.
 *
 * The library creates a group `caisson-<id>` in each hierarchy that the limits need, the keeper
 * enters it before it has children, and the library reads from it which limit was hit. The
 * keeper's sweeper process kills what is left and removes the groups, so a csn_cgroup is plain
 * data with absolute paths. Functions return 0 or -errno and keep no state. A NULL host is the
 * machine itself. */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* The controllers in use. In bit sets: 1 << CSN_CGROUP_*. */
#define CSN_CGROUP_MEMORY   0
#define CSN_CGROUP_PIDS     1
#define CSN_CGROUP_CPU      2
#define CSN_CGROUP_KINDS    3 /* also the most groups: v1 may have a hierarchy for each */
#define CSN_CGROUP_PATH_MAX 1024
#define CSN_CGROUP_UNKNOWN  UINT64_MAX
#define CSN_CGROUP_PREFIX   "caisson-" /* of every group's name */

/* Why a limit is unavailable. Of several candidate groups the highest reason is reported. */
typedef enum csn_cgroup_why {
    CSN_CGROUP_USABLE = 0,
    CSN_CGROUP_NOT_MOUNTED,   /* no hierarchy with that controller is mounted */
    CSN_CGROUP_OUTSIDE,       /* the caller's own group is not visible in the mounts */
    CSN_CGROUP_NOT_DELEGATED, /* the caller may not create groups at or above its own */
    CSN_CGROUP_READ_ONLY,     /* the mount is read-only */
    CSN_CGROUP_NOT_ENABLED,   /* the controller is not in cgroup.controllers */
    CSN_CGROUP_OCCUPIED,      /* v2: the group that would be the parent holds processes */
    CSN_CGROUP_REFUSED,       /* the kernel refused a mkdir or write */
} csn_cgroup_why;

/* 0: no limit. */
typedef struct csn_cgroup_limits {
    uint64_t memory_max; /* bytes, swap included */
    uint64_t pids_max;   /* processes and threads */
    uint64_t cpu_milli;  /* 1000: one cpu */
} csn_cgroup_limits;

typedef struct csn_cgroup_dir {
    uint8_t version; /* 1 or 2 */
    uint8_t kinds;   /* bit set of the controllers limited here */
    char path[CSN_CGROUP_PATH_MAX];
} csn_cgroup_dir;

typedef struct csn_cgroup {
    uint32_t count;   /* 0: no limits; every function then does nothing */
    bool parent_made; /* csn_cgroup_plan made the parent of the last; a failed create removes it
                       */
    csn_cgroup_dir dirs[CSN_CGROUP_KINDS];
} csn_cgroup;

/* What the host offers this caller for one controller. */
typedef struct csn_cgroup_offer {
    int version; /* 2, 1, or 0: unavailable */
    csn_cgroup_why why;
    char where[CSN_CGROUP_PATH_MAX]; /* the parent of new groups, or the obstacle; may be "" */
} csn_cgroup_offer;

/* What failed; goes with a negative return value. */
typedef struct csn_cgroup_fault {
    csn_cgroup_why why;
    char path[CSN_CGROUP_PATH_MAX]; /* the file or directory; may be "" */
} csn_cgroup_fault;

/* Counters that show which limit was hit. CSN_CGROUP_UNKNOWN: no such limit, or a kernel
 * without the file. */
typedef struct csn_cgroup_events {
    uint64_t memory_peak; /* bytes */
    uint64_t memory_oom_kills;
    uint64_t pids_limit_hits; /* forks refused */
} csn_cgroup_events;

/* Replaces parts of the machine in tests; NULL members mean the real machine. In tests the
 * groups are plain directories: mkdir and rmdir (0, or -1 with errno) create and remove the
 * files that the kernel would. */
typedef struct csn_cgroup_host {
    const char *self_cgroup; /* /proc/self/cgroup */
    const char *mountinfo;   /* /proc/self/mountinfo */
    uid_t uid;               /* 0: placed as root; NULL host: the effective uid */
    int (*mkdir)(const char *path);
    int (*rmdir)(const char *path);
} csn_cgroup_host;

const char *csn_cgroup_why_text(csn_cgroup_why why);

/* Fills one entry for each controller and changes nothing. Fails only when /proc is
 * unreadable. */
int csn_cgroup_probe(const csn_cgroup_host *host, csn_cgroup_offer ret[CSN_CGROUP_KINDS]);

/* Computes the groups that these limits need, without creating them, so that the sweeper knows
 * the paths before anything exists. On v2 it enables controllers for children, which stays, and
 * makes root's parent group. -EACCES: not delegated or read-only; -ENOTSUP: unavailable for
 * another reason; -EINVAL: bad id or limit; -EEXIST: such a group exists and is left alone.
 * fault may be NULL. */
int csn_cgroup_plan(const csn_cgroup_host *host, const char *id, const csn_cgroup_limits *l,
                    csn_cgroup *ret, csn_cgroup_fault *fault);
/* Creates the planned groups with these limits; after a failure none of them is left. -EINVAL:
 * v1 with a smaller cpu quota in a group above. */
int csn_cgroup_create(const csn_cgroup_host *host, const csn_cgroup *g,
                      const csn_cgroup_limits *l, csn_cgroup_fault *fault);

/* Opens for writing, one for each group, the file through which a single-threaded process
 * enters by writing "0". For a process that could not open them itself. ret has g->count
 * entries; after a failure none is open. */
int csn_cgroup_procs_fds(const csn_cgroup *g, int ret[CSN_CGROUP_KINDS]);

/* Finds the groups of sandbox `id` that process `pid` is in. kinds: bit set of the controllers
 * to look for. A process in none is success with a count of 0. */
int csn_cgroup_find_by_pid(pid_t pid, const char *id, unsigned kinds, csn_cgroup *ret);

void csn_cgroup_read_events(const csn_cgroup *g, csn_cgroup_events *ret);

/* Kills every process in the groups but the caller; -EBUSY when some live on after a second. */
int csn_cgroup_kill(const csn_cgroup *g);

/* Removes the groups; missing ones are success. -EBUSY when processes are left after a
 * second. */
int csn_cgroup_remove(const csn_cgroup *g);

/* Removes groups `caisson-*` of this user that have no process and are at least min_age_s old
 * (a new group has no process yet). Returns how many, or -errno. */
int csn_cgroup_sweep(const csn_cgroup_host *host, unsigned min_age_s);
/* Removes those of one sandbox, whose keeper has ended. */
int csn_cgroup_sweep_id(const csn_cgroup_host *host, const char *id);
