/* spawn.h: starting a helper program from inside somebody else's process. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define CSN_SPAWN_FDS_MAX 8

/* A program in namespaces of its own: pid 1 there, with all capabilities of a user namespace
 * that has exactly one user, who is `uid` or the caller outside. The maps are one line each
 * ("0 1000 1"). Without namespaces it is that user and no more. */
typedef struct csn_spawn_namespaces {
    uint64_t namespaces; /* CLONE_NEW*, with CLONE_NEWUSER; 0: none, and no maps */
    bool become;         /* be another user first: `uid` and `gid`, no further groups */
    bool keep_caps;      /* needed when the user is not number 0 inside */
    unsigned uid, gid;
    const char *uid_map, *gid_map;
} csn_spawn_namespaces;

typedef struct csn_spawn_opts {
    const char *path;
    int exec_fd; /* > 0: run this instead of path, which may lie where the program cannot go */
    const csn_spawn_namespaces *walls; /* or NULL */
    const char *const *argv;
    const char *const *env;     /* or NULL: an empty environment */
    bool usual_signals;         /* none blocked, none ignored: for programs that are not ours */
    int fds[CSN_SPAWN_FDS_MAX]; /* become 0, 1, 2 ...; -1: /dev/null */
    size_t nfds;
} csn_spawn_opts;

/* Runs a program that is not our child: it has its own session, cwd /, all signals blocked
 * (unless `usual_signals`) and exactly the given descriptors. The host's SIGCHLD, handlers,
 * masks and wait() never notice. ret_pidfd is close-on-exec. 0, or -errno when it could not be
 * run; *ret_stage (may be NULL) tells what failed then. */
enum csn_spawn_stage {
    CSN_SPAWN_AT_CLONE, /* namespaces, if there are any */
    CSN_SPAWN_AT_USER,
    CSN_SPAWN_AT_MAP,
    CSN_SPAWN_AT_EXEC,
};
typedef struct csn_spawn_pending csn_spawn_pending;
int csn_spawn(const csn_spawn_opts *o, pid_t *ret_pid, int *ret_pidfd,
              enum csn_spawn_stage *ret_stage);
/* The same in two steps: it is on its way when the first returns, and the caller goes on. *o
 * and all it points to stay until the second, but for the descriptors to be handed over, which
 * may be closed. When the second says that it could not be run, errno may have been written to
 * at any moment in between: what was done meanwhile is not to be believed. */
int csn_spawn_begin(const csn_spawn_opts *o, csn_spawn_pending **ret);
int csn_spawn_finish(csn_spawn_pending *b, pid_t *ret_pid, int *ret_pidfd,
                     enum csn_spawn_stage *ret_stage);
/* Waits until the process behind a pidfd has ended. -ETIMEDOUT. Should it have become our child
 * after all (we are pid 1, or a subreaper) it is reaped. */
int csn_spawn_wait(int pidfd, int timeout_ms);

/* write() that never raises SIGPIPE in the host. Bytes written, or -errno. */
ssize_t csn_write_quietly(int fd, const void *data, size_t len);
