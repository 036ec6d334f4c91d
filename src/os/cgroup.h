/* cgroup.h: resource limits of one sandbox by control groups, v2 or v1.
 *
 * The library makes a group `caisson-<id>` in each hierarchy that the asked-for limits need,
 * moves the keeper into it before that has children, and reads from it what was used and which
 * limit was hit. Whoever cleans up after the keeper kills what is left and removes the groups;
 * for that a csn_cgroup is plain data, with absolute paths. Functions return 0 or -errno and
 * keep no state. A host of NULL is this host. */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define CSN_CGROUP_MEMORY   0
#define CSN_CGROUP_PIDS     1
#define CSN_CGROUP_CPU      2
#define CSN_CGROUP_KINDS    3 /* so many groups at most: v1 may have a hierarchy for each */
#define CSN_CGROUP_PATH_MAX 1024
#define CSN_CGROUP_UNKNOWN  UINT64_MAX
#define CSN_CGROUP_PREFIX   "caisson-" /* every group's name starts so */

/* Why a limit cannot be had; the later the reason, the nearer it came. */
typedef enum csn_cgroup_why {
    CSN_CGROUP_USABLE = 0,
    CSN_CGROUP_NOT_MOUNTED,   /* no hierarchy with that controller is mounted */
    CSN_CGROUP_OUTSIDE,       /* the caller's own group is not in what is mounted here */
    CSN_CGROUP_NOT_DELEGATED, /* the caller may not make groups at or above its own */
    CSN_CGROUP_READ_ONLY,     /* the mount is */
    CSN_CGROUP_NOT_ENABLED,   /* the controller does not reach the groups the caller may use */
    CSN_CGROUP_OCCUPIED,      /* v2: processes sit in the group that would hand it down */
    CSN_CGROUP_REFUSED,       /* all looked well, and the kernel refused it */
} csn_cgroup_why;

/* 0: no limit. */
typedef struct csn_cgroup_limits {
    uint64_t memory_max; /* bytes, swap included */
    uint64_t pids_max;   /* processes and threads */
    uint64_t cpu_milli;  /* 1000: as much as one cpu gives */
} csn_cgroup_limits;

typedef struct csn_cgroup_dir {
    uint8_t version; /* 1 or 2 */
    uint8_t kinds;   /* bits 1 << CSN_CGROUP_*: what is limited here */
    char path[CSN_CGROUP_PATH_MAX];
} csn_cgroup_dir;

typedef struct csn_cgroup {
    uint32_t count;   /* 0: no limits, and everything below does nothing */
    bool parent_made; /* the plan had to make the parent of the last: goes if that cannot be */
    csn_cgroup_dir dirs[CSN_CGROUP_KINDS];
} csn_cgroup;

/* What the host offers this caller for one limit. */
typedef struct csn_cgroup_offer {
    int version; /* 2, 1, or 0: not at all */
    csn_cgroup_why why;
    char where[CSN_CGROUP_PATH_MAX]; /* where groups go, or what stood in the way; may be "" */
} csn_cgroup_offer;

/* What failed, with the negative number that was returned. */
typedef struct csn_cgroup_fault {
    csn_cgroup_why why;
    char path[CSN_CGROUP_PATH_MAX]; /* the file or directory; may be "" */
} csn_cgroup_fault;

/* CSN_CGROUP_UNKNOWN: there is no such limit, or this kernel does not tell. */
typedef struct csn_cgroup_usage {
    uint64_t memory_current, memory_peak; /* bytes */
    uint64_t memory_limit_hits;           /* something had to be reclaimed, or worse */
    uint64_t memory_oom_kills;            /* processes killed for it */
    uint64_t pids_current, pids_peak;
    uint64_t pids_limit_hits;                              /* forks that were refused */
    uint64_t cpu_us, cpu_throttled_us, cpu_throttled_hits; /* v1: cpu_us only with cpuacct */
} csn_cgroup_usage;

/* Where to look, for tests on a made-up layout; NULL members are the real thing. Plain files do
 * not appear in a new directory by themselves and keep it from being removed: make and drop
 * stand in for mkdir and rmdir (0, or -1 with errno). */
typedef struct csn_cgroup_host {
    const char *self_cgroup; /* /proc/self/cgroup */
    const char *mountinfo;   /* /proc/self/mountinfo */
    uid_t uid;               /* whose rules of placement; NULL host: the effective one */
    int (*make)(const char *path);
    int (*drop)(const char *path);
} csn_cgroup_host;

const char *csn_cgroup_why_text(csn_cgroup_why why);

/* Looks, and changes nothing. ret has one entry for each CSN_CGROUP_* kind. Fails only when
 * /proc cannot be read. */
int csn_cgroup_probe(const csn_cgroup_host *host, csn_cgroup_offer ret[CSN_CGROUP_KINDS]);

/* Which groups these limits need and where they will be; none is made yet, so that whoever is
 * to remove them can be told before there is anything. -EACCES: not delegated or read-only.
 * -ENOTSUP: cannot be had here for another reason. -EINVAL: a bad id or limit. -EEXIST: there
 * is such a group, and it is left alone. On v2 controllers are enabled for children, and stay
 * so; root's parent of all sandboxes is made. fault may be NULL. */
int csn_cgroup_plan(const csn_cgroup_host *host, const char *id, const csn_cgroup_limits *l,
                    csn_cgroup *ret, csn_cgroup_fault *fault);
/* Makes what was planned with these limits. All or nothing: after a failure no group of it is
 * left. -EINVAL: one that v1 refuses because a group above has a smaller cpu quota. */
int csn_cgroup_make(const csn_cgroup_host *host, const csn_cgroup *g,
                    const csn_cgroup_limits *l, csn_cgroup_fault *fault);
/* Both at once. */
int csn_cgroup_create(const csn_cgroup_host *host, const char *id, const csn_cgroup_limits *l,
                      csn_cgroup *ret, csn_cgroup_fault *fault);

/* One write for each hierarchy; the first waits for all cpus, and that takes milliseconds.
 * After a failure the process may be in some of the groups: end it. */
int csn_cgroup_attach(const csn_cgroup *g, pid_t pid);
/* The calling process moves itself, which must have a single thread: on v1 in microseconds. For
 * who still may write there, as the keeper before its walls. Async-signal-safe. */
int csn_cgroup_enter(const csn_cgroup *g);

/* The files through which a process enters, opened for writing, one for each group: whoever
 * writes "0" to all of them, from a single thread, is in. For a process that could not open
 * them itself. ret has count entries; on failure none is open. */
int csn_cgroup_doors(const csn_cgroup *g, int ret[CSN_CGROUP_KINDS]);

/* The groups of sandbox `id` that a process is in, found by where it is: for who did not make
 * them. kinds: bits of the limits to look for. None is 0 with a count of 0. */
int csn_cgroup_of(pid_t pid, const char *id, unsigned kinds, csn_cgroup *ret);

/* -ENOENT when a group is gone. Read it before csn_cgroup_kill, whose refusals count too. */
int csn_cgroup_usage_read(const csn_cgroup *g, csn_cgroup_usage *ret);

/* Of the same only what tells whether a limit was hit: the peak of memory, who was killed for
 * it, forks that were refused. For who asks around each command. */
void csn_cgroup_hits_read(const csn_cgroup *g, csn_cgroup_usage *ret);

/* Ends every process in the groups; -EBUSY when some live on after a second. Not for processes
 * that are in one of them. */
int csn_cgroup_kill(const csn_cgroup *g);

/* Already gone is success; -EBUSY when processes live in one after a second of trying. */
int csn_cgroup_remove(const csn_cgroup *g);

/* Removes groups `caisson-*` of this user that have no process and are at least min_age_s old
 * (one just made has no process yet). Returns how many, or -errno. */
int csn_cgroup_sweep(const csn_cgroup_host *host, unsigned min_age_s);
