/* fd_transfer.h: passes descriptors to a child that shares the host's descriptor table.
 *
 * A child with a table of its own begins with a copy. With thousands of descriptors the copy
 * and closing it take longer than the rest of a start. */
#pragma once
#include <stddef.h>

#define CSN_FD_TRANSFER_MAX 16

typedef enum csn_fd_transfer {
    CSN_FD_TRANSFER_SENT,
    CSN_FD_TRANSFER_TAKEN,
    CSN_FD_TRANSFER_ABANDONED,
} csn_fd_transfer;

/* In the host: sends n descriptors for the child that is started next. Returns a descriptor for
 * csn_fd_transfer_take, or -errno. Waits while another thread's transfer is in progress. */
int csn_fd_transfer_begin(const int *fds, size_t n);
/* In the host, after the start: discards descriptors that no child has received. */
void csn_fd_transfer_end(csn_fd_transfer h);

/* In the child, with system calls only: gives it a table of its own with the numbers up to `at`
 * and the sent descriptors, whose numbers go to fds. 0 or -errno. */
int csn_fd_transfer_take(int at, int *fds, size_t n);
/* In the intermediate process, with system calls only: no child will take the descriptors.
 * Lets other threads begin before csn_fd_transfer_end. */
void csn_fd_transfer_abandon(void);
