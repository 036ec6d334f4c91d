/* runtime.h: a sandbox whose processes a keeper holds and whose files are reached through held
 * descriptors. The backends on this machine are such sandboxes with a kind of their own.
 *
 *   runtime.c     its life: made, found again, ended
 *   rundir.c   its runtime directory, and those that were left behind
 *   grants.c   base, home and granted directories as held descriptors; which a path is below
 *   target.c   a path on its way to the kernel and through the policy (files.h)
 *   file.c     stat read list walk
 *   change.c   mkdir symlink remove rename cleanup
 *   write.c    atomic writes
 *   batch.c    many of them, all or nothing
 *   watch.c    file events
 *   host.c     any host directory, for export and import
 *   link.c   starting a keeper, reaching a detached one, one request and its answer
 *   exec.c     foreground commands
 *   session.c  persistent shells
 *   process.c  background processes
 *   environ.c  the environment of commands */
#pragma once
#include <pthread.h>
#include <stdbool.h>
#include <sys/types.h>

#include "caisson/backend.h"
#include "keeper/spec.h"
#include "os/spawn.h"
#include "policy/rules.h"

typedef struct csn_grant {
    char *path; /* resolved, absolute */
    int fd;     /* O_PATH | O_DIRECTORY */
    bool writable;
} csn_grant;

typedef struct csn_runtime csn_runtime;

/* Beside an operation: it brings or takes what is below the path too, or makes a link of it. */
#define CSN_OP_TREE (1u << 31)

/* Counts of the limits that were hit so far. */
typedef struct csn_runtime_mark {
    uint64_t memory, pids;
    uint64_t memory_peak;
} csn_runtime_mark;

typedef struct csn_runtime_kind csn_runtime_kind;
/* What a backend adds. All functions may be NULL. */
struct csn_runtime_kind {
    const char *name; /* of the backend */
    bool eager;       /* the keeper runs from open on, not from the first command */
    bool rooted;      /* paths are those of the keeper's own root, see csn_runtime.root */
    bool judged;      /* paths are the host's, and every one is judged by the rules */
    bool ahead;       /* eager: the keeper is born before `prepare`, and has its orders after */
    /* What must be known before the keeper is born. */
    csn_status (*begin)(csn_runtime *k, csn_error **err);
    /* What it is born into. */
    csn_status (*birth)(csn_runtime *k, csn_spawn_opts *o, csn_error **err);
    /* Makes base, home, grants and rules. */
    csn_status (*prepare)(csn_runtime *k, csn_error **err);
    /* Its orders beyond the common ones. */
    void (*arm)(csn_runtime *k, csn_keeper_spec *spec);
    /* It runs now, or was found again: whatever is left to do. */
    csn_status (*started)(csn_runtime *k, csn_error **err);
    /* It could not be run: says why (errnum > 0). */
    csn_status (*refused)(csn_runtime *k, enum csn_spawn_stage stage, int errnum,
                          csn_error **err);
    /* It could not be opened as this kind (because: the error), or is being found again
     * (NULL): another kind that it is to be, or NULL. *ret_because is to be freed. */
    const csn_runtime_kind *(*instead)(csn_runtime *k, const csn_error *because,
                                       char **ret_because);
    /* A pipe of ours that a command gets: it may open it again, as /dev/stdout. */
    void (*lend)(csn_runtime *k, int fd);
    /* A command is about to start; it has ended: was a limit of the sandbox the reason? */
    void (*mark)(csn_runtime *k, csn_runtime_mark *ret);
    void (*judge)(csn_runtime *k, const csn_runtime_mark *before, csn_exec_end *end);
    /* Beyond the rules: may this be written or deleted? op: CSN_OP_*, and CSN_OP_TREE. Asked
     * for what a path led to, after the rules let it pass. */
    csn_status (*veto)(const csn_runtime *k, uint32_t op, const char *asked,
                       const char *resolved, csn_error **err);
    /* The sandbox has ended for good, or could not be opened: what its keeper does not take
     * along. */
    void (*ended)(csn_runtime *k);
    void (*release)(csn_runtime *k); /* frees k->own */
};

struct csn_runtime {
    const csn_runtime_kind *kind;
    void *own;                /* the backend's */
    const csn_config *config; /* the core's; outlives us */
    char *id;
    char *because;            /* why it is not the kind that was asked for; NULL: it is */
    bool detached, connected; /* connected: found again, not made here */
    _Atomic bool extended;    /* its end was moved by this handle */
    csn_grant base, home;
    csn_grant root;    /* rooted, judged: "/" of the keeper; all paths are looked up in it */
    csn_grant *grants; /* read and write directories */
    size_t grant_count;
    csn_rules *rules;
    char *run_path; /* runtime directory of this sandbox, or NULL before it is needed */
    int run_fd;     /* or -1 */
    pthread_mutex_t commit_lock; /* check-and-rename of writes is one at a time */
    int commit_fd;               /* the same among processes; -1 when not detached */
    pthread_mutex_t keeper_lock; /* starting the keeper happens once */
    int keeper_fd;               /* SEQPACKET to the keeper, or -1 */
    int keeper_pidfd;            /* or -1 */
    int64_t keeper_pid;
    struct csn_runtime_spawn *birth; /* while it is on its way; see link.c */
    bool unordered;                  /* it waits for its orders */
    _Atomic int64_t resting;         /* a channel between two commands, see exec.c; -1: none */
    _Atomic uint64_t spawns;         /* how often it was asked to start something */
    _Atomic uint64_t alone_after;    /* after that one ended, nothing else was left */
    char *program;                   /* that the keeper runs, when it was started here */
    unsigned keeper_uid, keeper_gid; /* of one that was found again */
    uid_t file_uid;                  /* who touches files: the caller, or who commands are */
    uint64_t file_max;               /* size of one file that a command writes; 0: no limit */
    uint64_t memory_each;            /* address space of one process; 0: no limit */
    char **environ_base;             /* NAME=value for every command */
    bool gone;
};

/* runtime.c */
csn_runtime *csn_runtime_new(const csn_runtime_kind *kind, const csn_config *config,
                             const char *id);
void csn_runtime_free(csn_runtime *l);
csn_status csn_runtime_open(const csn_runtime_kind *kind, const csn_config *config,
                            const char *id, void **ret_state, csn_error **err);
csn_status csn_runtime_connect(const csn_runtime_kind *kind, const csn_config *config,
                               const char *id, void **ret_state, csn_error **err);
/* Ends a detached one that csn_runtime_connect could not speak to. */
csn_status csn_runtime_force_destroy(const csn_runtime_kind *kind, const csn_config *config,
                                     const char *id, csn_error **err);
/* It is on record now, and lives on without this process. */
csn_status csn_runtime_commit(void *state, csn_error **err);
csn_status csn_runtime_destroy(void *state, csn_error **err);
void csn_runtime_close(void *state);
/* Everything but the layers. */
csn_status csn_runtime_info(csn_runtime *l, csn_info_result *ret, csn_error **err);

/* exec.c. The channel that waits for the next command, if there is one, is closed. */
void csn_runtime_channel_drop(csn_runtime *l);

/* rundir.c. Makes and locks run_path, once. And: removes directories whose maker was killed. */
csn_status csn_runtime_run_dir(csn_runtime *l, csn_error **err);
/* A file in it could not be opened. When there is no directory any more, its keeper has died.
 */
csn_status csn_runtime_run_failed(csn_runtime *l, int errnum, const char *what,
                                  csn_error **err);
/* Sockets in it, by name: descriptors, or -errno. Only after run_dir, or of one found again.
 * -ETIMEDOUT: nobody takes the connection. */
int csn_runtime_run_listen(const csn_runtime *l, const char *name, int backlog);
int csn_runtime_run_connect(const csn_runtime *l, const char *name);
void csn_runtime_sweep(void);

/* host.c. A state for file operations below any host directory: no home, no commands, no
 * policy. Close it with csn_runtime_close. */
csn_status csn_runtime_host_open(const char *dir, bool make, void **ret_state, csn_error **err);

/* grants.c. Paths of agents to descriptors. */
csn_status csn_runtime_grants_open(csn_runtime *l, csn_error **err);
void csn_runtime_grants_close(csn_runtime *l);
/* Which grant an agent path is below, by name only, and the rest of the path to give to the
 * kernel ("." for the grant itself). `/x` is base/x unless it names the base, the home or a
 * granted directory by its host path. Never fails: what is below nothing else is below the
 * base. */
const csn_grant *csn_runtime_grant_of(const csn_runtime *l, const char *path,
                                      const char **ret_rest);
/* The resolved host path of a held descriptor, from the kernel. malloc'd, NULL on failure. */
char *csn_runtime_fd_path(int fd);
/* Does the policy let `op` be done to the resolved path? CSN_DENIED with the denial filled in.
 */
csn_status csn_runtime_check_rules(const csn_runtime *l, uint32_t op, const char *asked,
                                   const char *resolved, csn_error **err);

/* file.c and write.c: entries of the ops table */
csn_status csn_runtime_stat(void *state, const char *path, uint32_t flags, csn_file_stat *ret,
                            char **ret_target, csn_error **err);
csn_status csn_runtime_read(void *state, const char *path, uint32_t flags, uint64_t offset,
                            uint64_t length, const csn_sink *sink, csn_file_stat *ret,
                            csn_error **err);
csn_status csn_runtime_write(void *state, const csn_write_req *reqs, size_t count,
                             csn_written *rets, csn_error **err);
csn_status csn_runtime_mkdir(void *state, const char *path, uint32_t flags, csn_error **err);
csn_status csn_runtime_chmod(void *state, const char *path, uint32_t mode, csn_error **err);
csn_status csn_runtime_symlink(void *state, const char *target, const char *path,
                               csn_error **err);
csn_status csn_runtime_remove(void *state, const char *path, uint32_t flags, csn_error **err);
csn_status csn_runtime_rename(void *state, const char *from, const char *to, uint32_t flags,
                              csn_error **err);
csn_status csn_runtime_list(void *state, const char *path, uint32_t flags, csn_entry_fn fn,
                            void *ctx, csn_error **err);
csn_status csn_runtime_walk(void *state, const char *path, uint32_t flags, csn_entry_fn fn,
                            void *ctx, csn_error **err);
csn_status csn_runtime_cleanup(void *state, csn_error **err);
csn_status csn_runtime_watch(void *state, const char *path, uint32_t flags, void **ret_watch,
                             csn_error **err);
csn_status csn_runtime_watch_next(void *watch, uint64_t timeout_ms, csn_event *ret,
                                  csn_error **err);
void csn_runtime_watch_free(void *watch);
/* An O_PATH directory descriptor for a command's cwd, policy checked, and its resolved path
 * (NULL when the kernel does not say). */
csn_status csn_runtime_open_cwd(csn_runtime *l, const char *path, int *ret_fd, char **ret_path,
                                csn_error **err);
csn_status csn_runtime_check_path(void *state, uint32_t op, const char *path,
                                  char **ret_resolved, csn_error **err);

/* link.c */
/* By open: it is on its way, without orders. And: it runs now, or could not be run; then
 * whatever else failed since does not count (os/spawn.h). */
csn_status csn_runtime_keeper_spawn_begin(csn_runtime *l, csn_error **err);
csn_status csn_runtime_keeper_spawn_finish(csn_runtime *l, csn_error **err);
csn_status csn_runtime_keeper_start(csn_runtime *l,
                                    csn_error **err); /* once; later calls: OK */
csn_status csn_runtime_keeper_connect(csn_runtime *l,
                                      csn_error **err); /* detached, by socket */
/* Kills one that is there and does not answer; it is found as by connect. */
csn_status csn_runtime_keeper_force_destroy(csn_runtime *l, csn_error **err);
/* When the keeper will end by itself, since the epoch; 0: never. */
csn_status csn_runtime_expiry(csn_runtime *l, int64_t *ret_ms, csn_error **err);
csn_status csn_runtime_keeper_commit(csn_runtime *l, csn_error **err);
void csn_runtime_keeper_end(csn_runtime *l); /* kills everything it holds and waits */

/* exec.c and process.c: entries of the ops table */
csn_status csn_runtime_exec(void *state, const csn_exec_req *req, const csn_sink *sink,
                            csn_exec_end *ret, csn_error **err);
/* The same for a command whose sockets are made by who reads `sockets` (os/socket_divert.h). */
csn_status csn_runtime_exec_network(csn_runtime *l, const csn_exec_req *req, int sockets,
                                    const csn_sink *sink, csn_exec_end *ret, csn_error **err);
csn_status csn_runtime_start(void *state, const csn_exec_req *req, uint64_t output_max,
                             int64_t *ret_pid, void **ret_tie, csn_error **err);
void csn_runtime_release_tied(void *tie);
csn_status csn_runtime_processes(void *state, int64_t pid, uint64_t wait_ms, csn_process_fn fn,
                                 void *ctx, csn_error **err);
csn_status csn_runtime_logs(void *state, int64_t pid, int stream, uint64_t offset,
                            uint64_t wait_ms, const csn_sink *sink, csn_log_chunk *ret,
                            csn_error **err);
csn_status csn_runtime_signal(void *state, int64_t pid, int signo, csn_error **err);
csn_status csn_runtime_feed(void *state, int64_t pid, const void *data, size_t len,
                            uint64_t timeout_ms, csn_error **err);
csn_status csn_runtime_resize(void *state, int64_t pid, uint16_t rows, uint16_t cols,
                              csn_error **err);
csn_status csn_runtime_wait_port(void *state, uint16_t port, uint64_t timeout_ms,
                                 csn_error **err);
csn_status csn_runtime_extend(void *state, uint64_t ms, csn_error **err);

/* What the ops tables of both backends on this machine have in common. */
#define CSN_RUNTIME_OPS                                                                        \
    .close = csn_runtime_close, .destroy = csn_runtime_destroy, .commit = csn_runtime_commit,  \
    .extend = csn_runtime_extend
#define CSN_RUNTIME_PROCESS_OPS                                                                \
    .size = sizeof(csn_process_ops), .release_tied = csn_runtime_release_tied,                 \
    .list = csn_runtime_processes, .logs = csn_runtime_logs, .signal = csn_runtime_signal,     \
    .feed = csn_runtime_feed, .resize = csn_runtime_resize, .wait_port = csn_runtime_wait_port

/* environ.c. The clean environment: an allow-list of the caller's variables, what the config
 * adds, HOME always the sandbox's. malloc'd strv. */
csn_status csn_runtime_environ_new(const csn_runtime *l, char ***ret, csn_error **err);
