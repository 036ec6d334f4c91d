/* spawn.h: starts programs (keeper, gateway, sweeper) from inside a host process. */
#pragma once
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define CSN_SPAWN_FDS_MAX 8

/* Starts the program as pid 1 of new namespaces, with all capabilities of a user namespace that
 * maps one user: `uid` if `become`, else the caller. The maps are one line each ("0 1000 1").
 * Without namespaces only the user changes. */
typedef struct csn_spawn_namespaces {
    uint64_t namespaces; /* CLONE_NEW*, including CLONE_NEWUSER; 0: none, and no maps */
    bool become;         /* change to `uid` and `gid` first, without supplementary groups */
    bool keep_caps;      /* needed when the uid inside is not 0 */
    unsigned uid, gid;
    const char *uid_map, *gid_map;
} csn_spawn_namespaces;

typedef struct csn_spawn_opts {
    const char *path;
    int exec_fd; /* > 0: run this instead of path, which the new user may not be able to reach
                  */
    const csn_spawn_namespaces *namespaces; /* or NULL */
    const char *const *argv;
    const char *const *env;     /* or NULL: an empty environment */
    bool usual_signals;         /* none blocked, none ignored: for programs other than ours */
    int fds[CSN_SPAWN_FDS_MAX]; /* become 0, 1, 2 ...; -1: /dev/null */
    size_t nfds;
} csn_spawn_opts;

/* Starts a program that is not a child of the host. It has its own session, working directory
 * /, all signals blocked (unless `usual_signals`) and exactly the given descriptors. It has no
 * effect on SIGCHLD, handlers, masks and wait() of the host. ret_pidfd is close-on-exec. 0, or
 * -errno if it could not be started; *ret_stage (may be NULL) is the step that failed. */
enum csn_spawn_stage {
    CSN_SPAWN_AT_CLONE, /* namespaces, if there are any */
    CSN_SPAWN_AT_USER,
    CSN_SPAWN_AT_MAP,
    CSN_SPAWN_AT_EXEC,
};
typedef struct csn_spawn_pending csn_spawn_pending;
int csn_spawn(const csn_spawn_opts *o, pid_t *ret_pid, int *ret_pidfd,
              enum csn_spawn_stage *ret_stage);
/* The same in two steps; the caller continues while the program starts. *o and what it points
 * to stay valid until csn_spawn_finish; the descriptors may be closed after csn_spawn_begin. */
int csn_spawn_begin(const csn_spawn_opts *o, csn_spawn_pending **ret);
int csn_spawn_finish(csn_spawn_pending *b, pid_t *ret_pid, int *ret_pidfd,
                     enum csn_spawn_stage *ret_stage);
/* Waits until the process of a pidfd has ended; 0 or -ETIMEDOUT. Reaps it if it is a child of
 * the host (which is pid 1 or a subreaper). */
int csn_spawn_wait(int pidfd, int timeout_ms);

/* Keeps SIGPIPE from the host while this thread writes: hold, the call, release. `raised`: the
 * call failed with EPIPE. */
typedef struct csn_sigpipe {
    sigset_t old;
    bool was_pending;
} csn_sigpipe;
void csn_sigpipe_hold(csn_sigpipe *s);
void csn_sigpipe_release(const csn_sigpipe *s, bool raised);

/* write() that never raises SIGPIPE in the host. Bytes written, or -errno. */
ssize_t csn_write_quietly(int fd, const void *data, size_t len);
