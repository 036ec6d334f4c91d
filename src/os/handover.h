/* handover.h: descriptors for a new process that shares our table, without a copy of the table.
 *
 * A process that does not share it begins with a copy, and closes what it must not have. In a
 * host with thousands of descriptors both take longer than all else of a start. */
#pragma once
#include <stddef.h>

#define CSN_HANDOVER_MAX 16

/* Puts `n` descriptors where a process that is started next can take them. A descriptor that
 * stays ours, for csn_handover_take; or -errno. One at a time: nobody else's start comes
 * between this and csn_handover_take, or csn_handover_end. */
int csn_handover_begin(const int *fds, size_t n);
/* taken: somebody has taken them. Else they are let go of. */
void csn_handover_end(int taken);

/* In the new process, by system calls alone: from now on it has a table of its own with what is
 * at most `at`, and the descriptors, whose numbers go to fds. 0, or -errno. */
int csn_handover_take(int at, int *fds, size_t n);
