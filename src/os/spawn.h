/* spawn.h: starting a helper program from inside somebody else's process. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define CSN_ORPHAN_FDS_MAX 8

/* A program in namespaces of its own: pid 1 there, with all capabilities of a user namespace
 * that has exactly one user, who is `uid` or the caller outside. The maps are one line each
 * ("0 1000 1"). Without namespaces it is that user and no more. */
typedef struct csn_orphan_walls {
    uint64_t namespaces; /* CLONE_NEW*, with CLONE_NEWUSER; 0: none, and no maps */
    bool become;         /* be another user first: `uid` and `gid`, no further groups */
    bool keep_caps;      /* needed when the user is not number 0 inside */
    unsigned uid, gid;
    const char *uid_map, *gid_map;
} csn_orphan_walls;

typedef struct csn_orphan {
    const char *path;
    int exec_fd; /* > 0: run this instead of path, which may lie where the program cannot go */
    const csn_orphan_walls *walls; /* or NULL */
    const char *const *argv;
    const char *const *env; /* or NULL: an empty environment */
    bool usual_signals;     /* none blocked, none ignored: for programs that are not ours */
    int fds[CSN_ORPHAN_FDS_MAX]; /* become 0, 1, 2 ...; -1: /dev/null */
    size_t nfds;
} csn_orphan;

/* Runs a program that is not our child: it has its own session, cwd /, all signals blocked
 * (unless `usual_signals`) and exactly the given descriptors. The host's SIGCHLD, handlers,
 * masks and wait() never notice. ret_pidfd is close-on-exec. 0, or -errno when it could not be
 * run; *ret_stage (may be NULL) tells what failed then. */
enum csn_orphan_stage {
    CSN_ORPHAN_CLONE, /* namespaces, if there are any */
    CSN_ORPHAN_USER,
    CSN_ORPHAN_MAP,
    CSN_ORPHAN_EXEC,
};
typedef struct csn_orphan_birth csn_orphan_birth;
int csn_orphan_start(const csn_orphan *o, pid_t *ret_pid, int *ret_pidfd,
                     enum csn_orphan_stage *ret_stage);
/* The same in two steps: it is on its way when the first returns, and the caller goes on. *o
 * and all it points to stay until the second, but for the descriptors to be handed over, which
 * may be closed. When the second says that it could not be run, errno may have been written to
 * at any moment in between: what was done meanwhile is not to be believed. */
int csn_orphan_begin(const csn_orphan *o, csn_orphan_birth **ret);
int csn_orphan_end(csn_orphan_birth *b, pid_t *ret_pid, int *ret_pidfd,
                   enum csn_orphan_stage *ret_stage);
/* Waits until the process behind a pidfd has ended. -ETIMEDOUT. Should it have become our child
 * after all (we are pid 1, or a subreaper) it is reaped. */
int csn_orphan_wait(int pidfd, int timeout_ms);

/* write() that never raises SIGPIPE in the host. Bytes written, or -errno. */
ssize_t csn_write_quietly(int fd, const void *data, size_t len);
