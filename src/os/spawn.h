/* spawn.h: starting a helper program from inside somebody else's process. */
#pragma once
#include <stddef.h>
#include <sys/types.h>

#define CSN_ORPHAN_FDS_MAX 8

typedef struct csn_orphan {
    const char *path;
    const char *const *argv;
    int fds[CSN_ORPHAN_FDS_MAX]; /* become 0, 1, 2 ...; -1: /dev/null */
    size_t nfds;
} csn_orphan;

/* Runs a program that is not our child: it has its own session, cwd /, an empty environment,
 * all signals blocked and exactly the given descriptors. The host's SIGCHLD, handlers, masks
 * and wait() never notice. ret_pidfd is close-on-exec. 0, or -errno when it could not be run.
 */
int csn_orphan_start(const csn_orphan *o, pid_t *ret_pid, int *ret_pidfd);
/* Waits until the process behind a pidfd has ended. -ETIMEDOUT. Should it have become our child
 * after all (we are pid 1, or a subreaper) it is reaped. */
int csn_orphan_wait(int pidfd, int timeout_ms);

/* write() that never raises SIGPIPE in the host. Bytes written, or -errno. */
ssize_t csn_write_quietly(int fd, const void *data, size_t len);
