/* local.h: the state of a local sandbox, shared by the files of this directory.
 *
 *   local.c    the ops table, open, connect, close, destroy, info
 *   grants.c   base, home and granted directories as held descriptors; which one a path is
 * below target.c   a path on its way to the kernel and through the policy (files.h) file.c stat
 * read list walk              change.c  mkdir symlink remove rename cleanup write.c    atomic
 * writes                    batch.c   many of them, all or nothing watch.c    file events
 *   keeper.c   starting a keeper, reaching a detached one, one request and its answer
 *   exec.c     foreground commands and sessions
 *   process.c  background processes
 *   environ.c  the environment of commands */
#pragma once
#include <pthread.h>
#include <stdbool.h>

#include "caisson/backend.h"
#include "kit/rules.h"

typedef struct csn_grant {
    char *path; /* resolved, absolute */
    int fd;     /* O_PATH | O_DIRECTORY */
    bool writable;
} csn_grant;

typedef struct csn_local {
    const csn_config *config; /* the core's; outlives us */
    char *id;
    bool detached, connected; /* connected: found again, not made here */
    csn_grant base, home;
    csn_grant *grants; /* read and write directories */
    size_t grant_count;
    csn_rules *rules;
    char *run_path; /* runtime directory of this sandbox, or NULL before it is needed */
    int run_fd;     /* or -1 */
    pthread_mutex_t commit_lock; /* check-and-rename of writes is one at a time */
    pthread_mutex_t keeper_lock; /* starting the keeper happens once */
    int keeper_fd;               /* SEQPACKET to the keeper, or -1 */
    int keeper_pidfd;            /* or -1 */
    int64_t keeper_pid;
    char **environ_base; /* NAME=value for every command */
    bool gone;
} csn_local;

/* grants.c. Paths of agents to descriptors. */
csn_status csn_local_grants_open(csn_local *l, csn_error **err);
void csn_local_grants_close(csn_local *l);
/* Which grant an agent path is below, by name only, and the rest of the path to give to the
 * kernel ("." for the grant itself). `/x` is base/x unless it names the base, the home or a
 * granted directory by its host path. Never fails: what is below nothing else is below the
 * base. */
const csn_grant *csn_local_grant_of(const csn_local *l, const char *path,
                                    const char **ret_rest);
/* The resolved host path of a held descriptor, from the kernel. malloc'd, NULL on failure. */
char *csn_local_fd_path(int fd);
/* Does the policy let `op` be done to the resolved path? CSN_DENIED with the denial filled in.
 */
csn_status csn_local_judge(const csn_local *l, uint32_t op, const char *asked,
                           const char *resolved, csn_error **err);

/* file.c and write.c: entries of the ops table */
csn_status csn_local_stat(void *state, const char *path, uint32_t flags, csn_file_stat *ret,
                          char **ret_target, csn_error **err);
csn_status csn_local_read(void *state, const char *path, uint32_t flags, uint64_t offset,
                          uint64_t length, const csn_sink *sink, csn_file_stat *ret,
                          csn_error **err);
csn_status csn_local_write(void *state, const csn_write_req *reqs, size_t count,
                           csn_written *rets, csn_error **err);
csn_status csn_local_mkdir(void *state, const char *path, uint32_t flags, csn_error **err);
csn_status csn_local_chmod(void *state, const char *path, uint32_t mode, csn_error **err);
csn_status csn_local_symlink(void *state, const char *target, const char *path,
                             csn_error **err);
csn_status csn_local_remove(void *state, const char *path, uint32_t flags, csn_error **err);
csn_status csn_local_rename(void *state, const char *from, const char *to, uint32_t flags,
                            csn_error **err);
csn_status csn_local_list(void *state, const char *path, uint32_t flags, csn_entry_fn fn,
                          void *ctx, csn_error **err);
csn_status csn_local_walk(void *state, const char *path, uint32_t flags, csn_entry_fn fn,
                          void *ctx, csn_error **err);
csn_status csn_local_cleanup(void *state, csn_error **err);
csn_status csn_local_watch(void *state, const char *path, uint32_t flags, void **ret_watch,
                           csn_error **err);
csn_status csn_local_watch_next(void *watch, uint64_t timeout_ms, csn_event *ret,
                                csn_error **err);
void csn_local_watch_free(void *watch);
/* An O_PATH directory descriptor for a command's cwd, policy checked. */
csn_status csn_local_open_cwd(csn_local *l, const char *path, int *ret_fd, csn_error **err);
csn_status csn_local_path_judge(void *state, uint32_t op, const char *path, char **ret_resolved,
                                csn_error **err);

/* keeper.c */
csn_status csn_local_keeper_start(csn_local *l, csn_error **err);   /* once; later calls: OK */
csn_status csn_local_keeper_connect(csn_local *l, csn_error **err); /* detached, by socket */
/* When the keeper will end by itself, since the epoch; 0: never. */
csn_status csn_local_expiry(csn_local *l, int64_t *ret_ms, csn_error **err);
void csn_local_keeper_end(csn_local *l); /* kills everything it holds and waits */

/* exec.c and process.c: entries of the ops table */
csn_status csn_local_exec(void *state, const csn_exec_req *req, const csn_sink *sink,
                          csn_exec_end *ret, csn_error **err);
csn_status csn_local_start(void *state, const csn_exec_req *req, uint64_t output_max,
                           int64_t *ret_pid, void **ret_tie, csn_error **err);
void csn_local_untie(void *tie);
csn_status csn_local_processes(void *state, int64_t pid, uint64_t wait_ms, csn_process_fn fn,
                               void *ctx, csn_error **err);
csn_status csn_local_logs(void *state, int64_t pid, int stream, uint64_t offset,
                          uint64_t wait_ms, const csn_sink *sink, csn_log_chunk *ret,
                          csn_error **err);
csn_status csn_local_signal(void *state, int64_t pid, int signo, csn_error **err);
csn_status csn_local_feed(void *state, int64_t pid, const void *data, size_t len,
                          uint64_t timeout_ms, csn_error **err);
csn_status csn_local_resize(void *state, int64_t pid, uint16_t rows, uint16_t cols,
                            csn_error **err);
csn_status csn_local_wait_port(void *state, uint16_t port, uint64_t timeout_ms,
                               csn_error **err);
csn_status csn_local_extend(void *state, uint64_t ms, csn_error **err);

/* environ.c. The clean environment: an allow-list of the caller's variables, what the config
 * adds, HOME always the sandbox's. malloc'd strv. */
csn_status csn_local_environ_new(const csn_local *l, char ***ret, csn_error **err);
