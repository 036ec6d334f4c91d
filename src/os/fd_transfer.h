/* fd_transfer.h: descriptors for a new process that shares our table, without a copy of the table.
 *
 * A process that does not share it begins with a copy, and closes what it must not have. In a
 * host with thousands of descriptors both take longer than all else of a start. */
#pragma once
#include <stddef.h>

#define CSN_HANDOVER_MAX 16

/* What became of them. */
typedef enum csn_handover {
    CSN_HANDOVER_WAITS,
    CSN_HANDOVER_TAKEN,
    CSN_HANDOVER_ABANDONED,
} csn_handover;

/* Puts `n` descriptors where a process that is started next can take them. A descriptor that
 * stays ours, for csn_handover_take; or -errno. One at a time: nobody else's start comes
 * between this and one of those below. */
int csn_handover_begin(const int *fds, size_t n);
/* By whoever began, at last: what nobody has taken is let go of. */
void csn_handover_end(csn_handover h);

/* In the new process, by system calls alone: from now on it has a table of its own with what is
 * at most `at`, and the descriptors, whose numbers go to fds. 0, or -errno. */
int csn_handover_take(int at, int *fds, size_t n);
/* Nobody is going to take them, and whoever waits for the next start is not to wait for
 * csn_handover_end. In the process that should have made the new one, by system calls alone. */
void csn_handover_abandon(void);
