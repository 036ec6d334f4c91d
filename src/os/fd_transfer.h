/* fd_transfer.h: descriptors for a new process that shares our table, without a copy of the
 * table.
 *
 * A process that does not share it begins with a copy, and closes what it must not have. In a
 * host with thousands of descriptors both take longer than all else of a start. */
#pragma once
#include <stddef.h>

#define CSN_FD_TRANSFER_MAX 16

/* What became of them. */
typedef enum csn_fd_transfer {
    CSN_FD_TRANSFER_WAITS,
    CSN_FD_TRANSFER_TAKEN,
    CSN_FD_TRANSFER_ABANDONED,
} csn_fd_transfer;

/* Puts `n` descriptors where a process that is started next can take them. A descriptor that
 * stays ours, for csn_fd_transfer_take; or -errno. One at a time: nobody else's start comes
 * between this and one of those below. */
int csn_fd_transfer_begin(const int *fds, size_t n);
/* By whoever began, at last: what nobody has taken is let go of. */
void csn_fd_transfer_end(csn_fd_transfer h);

/* In the new process, by system calls alone: from now on it has a table of its own with what is
 * at most `at`, and the descriptors, whose numbers go to fds. 0, or -errno. */
int csn_fd_transfer_take(int at, int *fds, size_t n);
/* Nobody is going to take them, and whoever waits for the next start is not to wait for
 * csn_fd_transfer_end. In the process that should have made the new one, by system calls alone.
 */
void csn_fd_transfer_abandon(void);
