/* affinity.h: CPU masks, to run two processes in parallel from their start.
 *
 * The scheduler queues a new process behind its parent on the same CPU, for longer than a
 * sandbox takes to start. The masks are best effort: with one CPU, or where the kernel refuses,
 * they change nothing. All functions leave errno alone (os/raw_syscall.h). The keeper links
 * this file. */
#pragma once
#include <stdbool.h>

#define CSN_AFFINITY_MAX 1024u

typedef struct csn_affinity {
    unsigned long bits[CSN_AFFINITY_MAX / (8 * sizeof(unsigned long))];
    bool known;
} csn_affinity;

/* The CPUs that the caller may use. */
void csn_affinity_get(csn_affinity *ret);
/* Sets the mask of a process (0: the caller) if cpus->known. */
void csn_affinity_set(int pid, const csn_affinity *cpus);
/* Gives a process the caller's mask without the CPU that the caller runs on. */
void csn_affinity_move_away(int pid);
