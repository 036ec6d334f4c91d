/* proctree.h: finds and signals all processes of a command.
 *
 * A tree is every living process that carries a tag (a soft RLIMIT_RTTIME in a range, inherited
 * over fork, setsid and exec), plus a root process, plus the descendants of all these. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

typedef struct csn_proc {
    pid_t pid, ppid;
    uint64_t start; /* since boot; unique together with the pid */
    bool member;
} csn_proc;

/* Kept between scans; zero it before the first. */
typedef struct csn_proctree {
    csn_proc *items; /* every process of the last scan, by pid */
    size_t count, cap;
    size_t seen;    /* living members found by that scan */
    size_t hit;     /* processes that it signalled while they lived */
    uint64_t whose; /* identifies the tree of that scan */
} csn_proctree;

typedef struct csn_proctree_query {
    pid_t root;              /* 0: none. Must not have been reaped */
    bool include_root;       /* the root itself is a member, not only its descendants */
    uint64_t tag_lo, tag_hi; /* 0, 0: none */
    /* Not 0: every process in this pid namespace was started with a tag of this range. A
     * process with another tag has changed it and counts as a member of every tree. */
    uint64_t ours_lo, ours_hi;
    /* Called repeatedly during a scan, to reap: a tree that forks and exits endlessly makes
     * zombies faster than a scan ends. May set root to 0. */
    void (*reap)(void *ctx);
    void *ctx;
} csn_proctree_query;

void csn_proctree_release(csn_proctree *t);

/* Returns the soft RLIMIT_RTTIME of a process, or 0 with errno. pid 0: the caller. */
uint64_t csn_proctree_tag(pid_t pid);
/* Tags the calling process and its future children. 0 or -errno. Async-signal-safe. */
int csn_proctree_mark(uint64_t tag);

/* Scans /proc and sends signo (0: none; cont: followed by SIGCONT) to every living member as
 * soon as it is found, never to a recycled pid. Returns the number of living members (0 only
 * when certain), or -errno. A member remains a member in later scans of the same tree, even
 * after its parent has died. *ret_fresh (may be NULL): members that the previous scan did not
 * have. */
ssize_t csn_proctree_scan(csn_proctree *t, const csn_proctree_query *w, int signo, bool cont,
                          size_t *ret_fresh);
/* Scans only tagged processes and known members: much cheaper, but a result of 0 is not
 * certain. Returns how many it found, or -errno. */
ssize_t csn_proctree_scan_tagged(csn_proctree *t, const csn_proctree_query *w, int signo,
                                 size_t *ret_fresh);
