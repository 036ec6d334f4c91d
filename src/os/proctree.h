/* proctree.h: which processes belong to a command, and signals to all of them.
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
    uint64_t start; /* since boot: with the pid, unique */
    bool member;
} csn_proc;

/* Kept between scans so that memory is reused; zeroed at first. */
typedef struct csn_proctree {
    csn_proc *items; /* every process of the last scan, by pid */
    size_t count, cap;
    size_t seen;    /* living members of that scan: nobody is counted to be on the safe side */
    size_t hit;     /* who lived when it sent its signal, also who was dead of it by its end */
    uint64_t whose; /* the tree that scan was for */
} csn_proctree;

typedef struct csn_proctree_want {
    pid_t root;              /* 0: none. Only while it cannot have been reaped */
    bool root_too;           /* the root itself is a member, not only what is below it */
    uint64_t tag_lo, tag_hi; /* 0, 0: none */
    /* Not 0: everybody here was started with a tag of this range, so whoever has another one
     * has put it off, and is a member of every tree. Only in a pid namespace of one's own. */
    uint64_t ours_lo, ours_hi;
    /* Called now and then during a scan; may set root to 0. A tree that forks and exits without
     * end leaves zombies faster than a scan ends: whoever is their parent reaps them here. */
    void (*meanwhile)(void *ctx);
    void *ctx;
} csn_proctree_want;

void csn_proctree_release(csn_proctree *t);

/* The soft RLIMIT_RTTIME of a process; 0 when it cannot be known. pid 0: the caller. */
uint64_t csn_proctree_tag(pid_t pid);
/* Marks the calling process and all it will start. 0 or -errno. Async-signal-safe. */
int csn_proctree_mark(uint64_t tag);

/* One pass over /proc: sends signo (0: none; cont: SIGCONT after it) to every living member, as
 * soon as it is found, and never to a recycled pid. Returns how many living members there were
 * (0 only when that is certain), or -errno. Who was found to be a member stays one in further
 * passes for the same tree, also when its parent is dead by then. ret_fresh (may be NULL): how
 * many of them the pass before this one did not have. */
ssize_t csn_proctree_pass(csn_proctree *t, const csn_proctree_want *w, int signo, bool cont,
                          size_t *ret_fresh);
/* One scan by tag alone, and of who is known from the pass before: much cheaper, proves
 * nothing. Returns how many it found, or -errno. */
ssize_t csn_proctree_quick(csn_proctree *t, const csn_proctree_want *w, int signo,
                           size_t *ret_fresh);
