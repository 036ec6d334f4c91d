/* runtime.h: a sandbox on this machine: a keeper holds its processes, and file calls go through
 * directory descriptors that are held from open to close. The backends local and jail use it.
 *
 *   open.c            a sandbox without confinement: open, connect, commit, destroy
 *   keeper_process.c  starts the keeper, finds a detached one again, ends it
 *   find_program.c    where our own programs are installed
 *   link.c            one request to the keeper and its answer
 *   exec.c session.c process.c   foreground commands, persistent shells, background processes
 *   environ.c         the environment of commands
 *   rundir.c          the runtime directory
 *   grants.c          base, home and granted directories; which of them a path is below; rules
 *   target.c          from a path to a descriptor that the policy allows (files.h)
 *   file.c change.c write.c batch.c watch.c   the file operations
 *   host.c            the same for any host directory, for export and import */
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

/* What separates commands from the host. */
typedef enum csn_confinement_level {
    CSN_LEVEL_NONE,          /* nothing: local */
    CSN_LEVEL_LANDLOCK_ONLY, /* Landlock, seccomp and rlimits; paths are the host's */
    CSN_LEVEL_NAMESPACES,    /* namespaces as well; paths are those of the keeper's own root */
} csn_confinement_level;

typedef struct csn_runtime csn_runtime;

/* Added to CSN_OP_*: the operation covers everything below the path, or makes a link of it. */
#define CSN_OP_TREE (1u << 31)

/* A program that is being started: what csn_spawn_begin borrows until csn_spawn_finish. */
typedef struct csn_keeper_start {
    csn_spawn_opts opts;
    const char *argv[3];
    char *program;
    csn_spawn_pending *pending; /* NULL: none is being started */
} csn_keeper_start;

struct csn_runtime {
    const char *backend; /* for messages */
    csn_confinement_level level;
    struct csn_jail *jail;    /* the jail backend's part; NULL in every other sandbox */
    const csn_config *config; /* the core's; outlives us */
    char *id;
    bool detached;
    bool connected; /* a handle of a detached sandbox that another process made */
    bool ended;
    _Atomic bool extended; /* this handle has moved the end of its lifetime */
    csn_grant base, home;
    csn_grant root;    /* unless CSN_LEVEL_NONE: "/" of the keeper, where all paths start */
    csn_grant *grants; /* read and write directories */
    size_t grant_count;
    csn_rules *rules;
    /* May refuse a write or deletion that the rules allow. op: CSN_OP_* and CSN_OP_TREE; the
     * path is resolved. NULL: there is nothing beyond the rules. */
    csn_status (*check_change)(const csn_runtime *rt, uint32_t op, const char *asked,
                               const char *resolved, csn_error **err);
    char *run_path; /* runtime directory of this sandbox, or NULL before it is needed */
    int run_fd;     /* or -1 */
    pthread_mutex_t commit_lock; /* check-and-rename of writes is one at a time */
    int commit_fd;               /* the same among processes; -1 when not detached */
    pthread_mutex_t keeper_lock; /* starting the keeper happens once */
    csn_keeper_start start;
    int keeper_fd;    /* SEQPACKET to the keeper, or -1 */
    int keeper_pidfd; /* or -1 */
    int64_t keeper_pid;
    unsigned keeper_uid, keeper_gid; /* of a keeper that was found again */
    _Atomic int64_t idle_channel;    /* a channel between two commands, see exec.c; -1: none */
    _Atomic uint64_t spawns;         /* how many commands the keeper was asked to start */
    _Atomic uint64_t alone_after;    /* after this one ended, no other process was left */
    uid_t file_uid;                  /* file calls act as this user: the caller or the jail's */
    gid_t file_gid;
    bool chown_pipes;     /* give pipes to that user, so that a command can open /dev/stdout */
    uint64_t file_max;    /* size of one file that a command writes; 0: no limit */
    uint64_t memory_each; /* address space of one process; 0: no limit */
    char **environ_base;  /* NAME=value for every command */
};

/* open.c */
csn_runtime *csn_runtime_new(const char *backend, const csn_config *config, const char *id);
void csn_runtime_free(csn_runtime *rt);
/* A sandbox without confinement: made, or a detached one found again. */
csn_status csn_runtime_open(const char *backend, const csn_config *config, const char *id,
                            void **ret_state, csn_error **err);
csn_status csn_runtime_connect(const char *backend, const csn_config *config, const char *id,
                               void **ret_state, csn_error **err);
/* Kills a detached sandbox that cannot be connected to, of whatever level. */
csn_status csn_runtime_force_destroy(const char *backend, const csn_config *config,
                                     const char *id, csn_error **err);
/* Its metadata is on disk: a detached sandbox no longer ends with the process that made it. */
csn_status csn_runtime_commit(void *state, csn_error **err);
csn_status csn_runtime_destroy(void *state, csn_error **err);
void csn_runtime_close(void *state);
/* Everything but the layers. */
csn_status csn_runtime_info(csn_runtime *rt, csn_info_result *ret, csn_error **err);
/* Steps that the jail backend shares. find_dir: run_path and run_fd of a detached sandbox;
 * CSN_GONE when there are none. open_commit_lock: after the runtime directory is known. */
csn_status csn_runtime_find_dir(csn_runtime *rt, csn_error **err);
csn_status csn_runtime_open_commit_lock(csn_runtime *rt, csn_error **err);
void csn_runtime_remove_dir(const csn_runtime *rt);
/* The directory of this sandbox's metadata; a descriptor or -errno. */
int csn_runtime_state_dir(const csn_runtime *rt, bool make);

/* exec.c. Closes the channel that is kept for the next command, if there is one. */
void csn_runtime_channel_drop(csn_runtime *rt);

/* rundir.c. Makes and locks run_path, once. */
csn_status csn_runtime_run_dir(csn_runtime *rt, csn_error **err);
/* A file in it could not be opened. If the directory is gone, the keeper has died. */
csn_status csn_runtime_run_failed(csn_runtime *rt, int errnum, const char *what,
                                  csn_error **err);
/* Sockets in it, by name: descriptors, or -errno. -ETIMEDOUT: the connection is not accepted.
 */
int csn_runtime_run_listen(const csn_runtime *rt, const char *name, int backlog);
int csn_runtime_run_connect(const csn_runtime *rt, const char *name);
/* Removes runtime directories whose maker was killed. */
void csn_runtime_sweep(void);

/* host.c. A state for file operations below any host directory: no home, no commands, no
 * policy. Close it with csn_runtime_close. */
csn_status csn_runtime_host_open(const char *dir, bool make, void **ret_state, csn_error **err);

/* grants.c. Paths of agents to descriptors. */
csn_status csn_runtime_grants_open(csn_runtime *rt, csn_error **err);
void csn_runtime_grants_close(csn_runtime *rt);
/* Which grant an agent path is below, by name only, and the rest of the path to give to the
 * kernel ("." for the grant itself). `/x` is base/x unless it names the base, the home or a
 * granted directory by its host path. Never fails: what is below nothing else is below the
 * base. */
const csn_grant *csn_runtime_grant_of(const csn_runtime *rt, const char *path,
                                      const char **ret_rest);
/* The resolved host path of a held descriptor, from the kernel. malloc'd, NULL on failure. */
char *csn_runtime_fd_path(int fd);
/* Was the directory behind a held descriptor removed? */
bool csn_runtime_is_removed(int fd);
/* Does the policy let `op` be done to the resolved path? CSN_DENIED with the denial filled in.
 */
csn_status csn_runtime_check_rules(const csn_runtime *rt, uint32_t op, const char *asked,
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
csn_status csn_runtime_open_cwd(csn_runtime *rt, const char *path, int *ret_fd, char **ret_path,
                                csn_error **err);
csn_status csn_runtime_check_path(void *state, uint32_t op, const char *path,
                                  char **ret_resolved, csn_error **err);

/* keeper_process.c. Starting takes two steps, so that the caller can plan while the program
 * loads; ns: the namespaces it is started in, or NULL. What fails between the two steps does
 * not count when the second fails (os/spawn.h). finish: 0 or -errno, and where it failed. */
csn_status csn_runtime_spawn_begin(csn_runtime *rt, const csn_spawn_namespaces *ns,
                                   csn_error **err);
int csn_runtime_spawn_finish(csn_runtime *rt, enum csn_spawn_stage *ret_stage);
/* The orders that every sandbox has in common; strings borrow from rt. */
csn_keeper_spec csn_runtime_spec(const csn_runtime *rt);
csn_status csn_runtime_send_orders(csn_runtime *rt, const csn_keeper_spec *spec,
                                   csn_error **err);
/* Starts the keeper of a sandbox without confinement if it is not running. */
csn_status csn_runtime_ensure_keeper(csn_runtime *rt, csn_error **err);
/* Opens a connection to the keeper of a detached sandbox; CSN_GONE when there is none. */
csn_status csn_runtime_reach_keeper(csn_runtime *rt, csn_error **err);
/* Kills everything the keeper holds, and waits. */
void csn_runtime_end_keeper(csn_runtime *rt);

/* exec.c and process.c: entries of the ops table */
csn_status csn_runtime_exec(void *state, const csn_exec_req *req, const csn_sink *sink,
                            csn_exec_end *ret, csn_error **err);
/* The same; sockets: the process at the other end makes the command's sockets
 * (os/socket_divert.h), or -1. */
csn_status csn_runtime_exec_with(csn_runtime *rt, const csn_exec_req *req, int sockets,
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

/* What the process tables of both backends have in common. */
#define CSN_RUNTIME_PROCESS_OPS                                                                \
    .size = sizeof(csn_process_ops), .release_tied = csn_runtime_release_tied,                 \
    .list = csn_runtime_processes, .logs = csn_runtime_logs, .signal = csn_runtime_signal,     \
    .feed = csn_runtime_feed, .resize = csn_runtime_resize, .wait_port = csn_runtime_wait_port

/* environ.c. The clean environment: an allow-list of the caller's variables, what the config
 * adds, HOME always the sandbox's. malloc'd strv. */
csn_status csn_runtime_environ_new(const csn_runtime *rt, char ***ret, csn_error **err);
