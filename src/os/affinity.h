/* affinity.h: on which processor a process is to go on.
 *
 * The scheduler puts a new process behind the one that made it, on the same processor, for
 * longer than starting a sandbox takes. Who shares its work with another says where that is to
 * run. These are hints: where there is one processor, or asking is refused, all stays as it is.
 * None of it touches errno (os/raw_syscall.h). Static programs link it. */
#pragma once
#include <stdbool.h>

#define CSN_AFFINITY_MAX 1024u

typedef struct csn_affinity {
    unsigned long bits[CSN_AFFINITY_MAX / (8 * sizeof(unsigned long))];
    bool known;
} csn_affinity;

/* Those that the caller may use. */
void csn_affinity_get(csn_affinity *ret);
/* Leaves the process (0: the caller) these. Nothing when they are not known. */
void csn_affinity_set(int pid, const csn_affinity *cpus);
/* Leaves it those that the caller may use, without the one the caller is on. */
void csn_affinity_move_away(int pid);
