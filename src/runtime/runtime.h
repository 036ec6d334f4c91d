/* runtime.h: sandboxes on this machine, as used by the backends local and jail.
 *
 * A keeper process holds the sandbox's commands. File calls resolve paths below directory
 * descriptors that stay open from open to close.
 *
 *   open.c            a sandbox without confinement: open, connect, commit, destroy
 *   keeper_process.c  starts, reconnects to and ends the keeper
 *   find_program.c    finds our own programs
 *   link.c            one request to the keeper and its answer
 *   exec.c session.c process.c   foreground commands, persistent shells, background processes
 *   environ.c         the environment of commands
 *   rundir.c          the directory of one sandbox
 *   keeper_record.c   which process keeps a detached sandbox, and whether it lives
 *   reconnect.c       finds a detached sandbox again, and ends one that cannot be used
 *   grants.c          base, home and granted directories, and the rules for paths below them
 *   target.c          resolves a path and checks it against the policy (files.h)
 *   file.c change.c write.c batch.c watch.c   the file operations
 *   cow.c cow_open.c cow_originals.c   a workspace whose changes go to layers (cow.h)
 *   host.c            file operations below a host directory, for export and import */
#pragma once
#include <pthread.h>
#include <stdbool.h>
#include <sys/types.h>

#include "caisson/backend.h"
#include "keeper/spec.h"
#include "os/spawn.h"
#include "policy/rules.h"
#include "runtime/keeper_record.h"

typedef struct csn_grant {
    char *path; /* resolved, absolute */
    int fd;     /* O_PATH | O_DIRECTORY */
    bool writable;
} csn_grant;

/* How commands are isolated from the host. */
typedef enum csn_confinement_level {
    CSN_LEVEL_NONE,          /* nothing: local */
    CSN_LEVEL_LANDLOCK_ONLY, /* Landlock, seccomp and rlimits; paths are the host's */
    CSN_LEVEL_NAMESPACES,    /* also namespaces; paths are below the keeper's own root */
} csn_confinement_level;

typedef struct csn_runtime csn_runtime;

/* Added to CSN_OP_*: the operation affects everything below the path, or creates a symbolic
 * link at it. */
#define CSN_OP_TREE (1u << 31)
/* The user asks for it, not an agent: check_change does not apply. */
#define CSN_OP_BY_USER (1u << 29)

/* State of a start that csn_spawn_begin borrows until csn_spawn_finish. */
typedef struct csn_keeper_start {
    csn_spawn_opts opts;
    const char *argv[3];
    char *program;
    csn_spawn_pending *pending; /* NULL: no start is under way */
} csn_keeper_start;

struct csn_runtime {
    const char *backend; /* for messages */
    csn_confinement_level level;
    struct csn_jail *jail;    /* the jail backend's part; NULL in every other sandbox */
    struct csn_cow *cow;      /* if the workspace is copy-on-write; see cow.h */
    const csn_config *config; /* owned by the core, which frees it after this handle */
    char *id;
    bool detached;
    bool connected; /* this handle was opened by connecting to a detached sandbox */
    bool ended;
    _Atomic bool extended; /* csn_runtime_extend has succeeded on this handle */
    csn_grant base, home;
    csn_grant root;    /* unless CSN_LEVEL_NONE: "/" of the keeper; all paths start here */
    csn_grant *grants; /* read and write directories */
    size_t grant_count;
    csn_rules *rules;
    /* Called for a write or deletion that the rules allow, and may still refuse it. op:
     * CSN_OP_* and CSN_OP_TREE; the path is resolved. NULL: only the rules apply. */
    csn_status (*check_change)(const csn_runtime *rt, uint32_t op, const char *asked,
                               const char *resolved, csn_error **err);
    /* Called before a written file takes its name, with a descriptor of its content, if
     * wants_content is true for that name or several files are written at once; may refuse it.
     * Both may be NULL. */
    csn_status (*check_content)(const csn_runtime *rt, const char *asked, const char *resolved,
                                int content, csn_error **err);
    bool (*wants_content)(const char *name);
    /* Called while a command runs: a process looked up this name in a sandbox without a
     * network. The sandbox chose the name. NULL: not reported. */
    void (*name_refused)(const csn_runtime *rt, const csn_exec_req *req, const char *name);
    char *run_path; /* directory of this sandbox (rundir.c), or NULL before it is needed */
    int run_fd;     /* or -1 */
    int record_fd;  /* a detached sandbox that is being made: its record, locked; or -1 */
    csn_keeper_record record;     /* connected: of its keeper */
    bool stopped;                 /* connected: its keeper was when it was found */
    csn_keeper_life life;         /* connected */
    int dirs[CSN_KEEPER_FDS_MAX]; /* connected: O_PATH of record.dirs, until they are used */
    size_t dir_count;
    pthread_mutex_t commit_lock; /* serializes check-and-rename of writes */
    int commit_fd; /* file lock that does the same between processes; -1 when not detached */
    pthread_mutex_t keeper_lock; /* held while the keeper is started */
    csn_keeper_start start;
    int keeper_fd;      /* SEQPACKET to the keeper, or -1 */
    int keeper_pidfd;   /* or -1 */
    int64_t keeper_pid; /* 0: not running; -1: running in another pid namespace */
    int stop_fd; /* readable when the sandbox is being closed; see csn_runtime_set_stop_fd */
    unsigned keeper_uid, keeper_gid; /* set when connecting to a running keeper */
    _Atomic int64_t idle_channel; /* channel kept for the next command, see exec.c; -1: none */
    _Atomic uint64_t spawns;      /* number of commands sent to the keeper so far */
    _Atomic uint64_t alone_after; /* the last command that left no other process */
    uid_t file_uid;               /* user of file calls: the caller, or the jail's user */
    gid_t file_gid;
    bool chown_pipes;     /* chown pipes to that user, so that a command can open /dev/stdout */
    bool remounted;       /* other mounts may take the place of the workspace's (cow.h) */
    uint64_t file_max;    /* maximum size of a file that a command writes; 0: no limit */
    uint64_t memory_all;  /* maximum of all commands together, for messages; 0: no limit */
    uint64_t disk_all;    /* the same of what they write to the layers of the workspace */
    uint64_t memory_each; /* maximum address space of one process; 0: no limit */
    char **environ_base;  /* NAME=value for every command */
    char **write_dirs, **read_dirs; /* of csn_info; made by its first call, at open */
};

/* open.c */
csn_runtime *csn_runtime_new(const char *backend, const csn_config *config, const char *id);
void csn_runtime_free(csn_runtime *rt);
/* Open or connect to a sandbox without confinement. */
csn_status csn_runtime_open(const char *backend, const csn_config *config, const char *id,
                            void **ret_state, csn_error **err);
csn_status csn_runtime_connect(const char *backend, const csn_config *config, const char *id,
                               void **ret_state, csn_error **err);
/* Called when the sandbox's metadata is on disk: from then on a detached sandbox outlives the
 * process that created it. */
csn_status csn_runtime_commit(void *state, csn_error **err);
csn_status csn_runtime_destroy(void *state, csn_error **err);
void csn_runtime_close(void *state);
/* Fills *ret except for the layers. Directories that csn_runtime_info_dir added before replace
 * those of the grants. */
csn_status csn_runtime_info(csn_runtime *rt, csn_info_result *ret, csn_error **err);
csn_status csn_runtime_info_dir(csn_runtime *rt, const char *path, bool writable,
                                csn_error **err);
/* Steps that the jail backend shares. Call open_commit_lock when the directory of the sandbox
 * is known. */
csn_status csn_runtime_open_commit_lock(csn_runtime *rt, csn_error **err);
void csn_runtime_remove_dir(const csn_runtime *rt);

/* reconnect.c. Finds the directory and the record of a detached sandbox and sets `life`.
 * CSN_GONE: its keeper has ended. */
csn_status csn_runtime_find(csn_runtime *rt, csn_error **err);
/* Connects to its keeper. */
csn_status csn_runtime_reach_keeper(csn_runtime *rt, csn_error **err);
/* An entry of the ops table: the state of a detached sandbox as a word for `list`. */
csn_status csn_runtime_state(const char *id, const char **ret, csn_error **err);
/* Kills a detached sandbox of any level that cannot be connected to. */
csn_status csn_runtime_force_destroy(const char *backend, const csn_config *config,
                                     const char *id, csn_error **err);
/* Removes what is left of a detached sandbox whose keeper has ended. */
void csn_runtime_bury(csn_runtime *rt);

/* find_program.c: an entry of the ops table */
char *csn_runtime_find_program(void *state, const char *name);

/* exec.c. Closes the channel that is kept for the next command, if any. */
void csn_runtime_channel_drop(csn_runtime *rt);

/* rundir.c. Creates and locks run_path, unless this handle already has it. A detached sandbox
 * also gets its record. */
csn_status csn_runtime_run_dir(csn_runtime *rt, csn_error **err);
/* The path that csn_runtime_run_dir will create: malloc'd, or NULL with errno set. */
char *csn_runtime_run_path(const csn_runtime *rt);
/* Error for a file in run_path that could not be opened. If the directory is gone, reports that
 * the keeper has died. */
csn_status csn_runtime_run_failed(csn_runtime *rt, int errnum, const char *what,
                                  csn_error **err);
/* Sockets in run_path, by name: a descriptor or -errno. -ETIMEDOUT: the listener did not accept
 * the connection. */
int csn_runtime_run_listen(const csn_runtime *rt, const char *name, int backlog);
int csn_runtime_run_connect(const csn_runtime *rt, const char *name);
/* The same for the file behind any path. */
int csn_runtime_connect_path(const char *path);
/* Removes the directories of sandboxes whose creator or keeper was killed: all, or a few. */
void csn_runtime_sweep(bool all);

/* host.c. Opens a state for file operations below a host directory: no home, no commands, no
 * policy. Close it with csn_runtime_close. */
csn_status csn_runtime_host_open(const char *dir, bool make, void **ret_state, csn_error **err);

/* grants.c. Maps paths from agents to grants. */
csn_status csn_runtime_grants_open(csn_runtime *rt, csn_error **err);
void csn_runtime_grants_close(csn_runtime *rt);
/* Finds the grant that contains an agent path, by name only, and the rest of the path, to be
 * resolved by the kernel ("." for the grant itself). `/x` is base/x unless it starts with the
 * host path of the base, the home or a granted directory. Never fails: a path below no grant is
 * taken as below the base. */
const csn_grant *csn_runtime_grant_of(const csn_runtime *rt, const char *path,
                                      const char **ret_rest);
/* The host path of an open descriptor, from /proc/self/fd. malloc'd, NULL on failure. */
char *csn_runtime_fd_path(int fd);
/* True if the directory behind an open descriptor was removed. */
bool csn_runtime_is_removed(int fd);
/* Checks `op` on a resolved path against the policy. CSN_DENIED, with the denial filled in, if
 * it is refused. */
csn_status csn_runtime_check_rules(const csn_runtime *rt, uint32_t op, const char *asked,
                                   const char *resolved, csn_error **err);

/* For note_write of the ops table. */
#define CSN_NOTE_PRIVATE_HOME                                                                  \
    "this is the sandbox's private home: the host does not see it, and it ends with the "      \
    "sandbox; the workspace and granted directories are kept"
#define CSN_NOTE_PRIVATE_PLACE                                                                 \
    "this is a private directory of the sandbox: the host does not see it, and it ends with "  \
    "the sandbox; the workspace and granted directories are kept"

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
csn_status csn_runtime_search(void *state, const char *path, csn_search_fn fn, void *ctx,
                              csn_error **err);
csn_status csn_runtime_cleanup(void *state, csn_error **err);
/* Empties the directory `fd`, which is the base, as the user's own act: the rules hold, files
 * that are protected from the agent are removed. */
csn_status csn_runtime_cleanup_dir(csn_runtime *rt, int fd, csn_error **err);
/* Call it after open or connect, before the first watch. */
void csn_runtime_set_stop_fd(void *state, int32_t stop_fd);
csn_status csn_runtime_watch(void *state, const char *path, uint32_t flags, void **ret_watch,
                             csn_error **err);
csn_status csn_runtime_watch_next(void *watch, uint64_t timeout_ms, csn_event *ret,
                                  csn_error **err);
void csn_runtime_watch_free(void *watch);
/* Opens a command's cwd with O_PATH after checking the policy. *ret_path: its resolved path,
 * NULL if unknown. */
csn_status csn_runtime_open_cwd(csn_runtime *rt, const char *path, int *ret_fd, char **ret_path,
                                csn_error **err);
csn_status csn_runtime_check_path(void *state, uint32_t op, const char *path,
                                  char **ret_resolved, csn_error **err);

/* keeper_process.c. Starting takes two steps, so that the caller can plan while the program
 * loads. ns: namespaces for the new process, or NULL. If finish fails, report its error rather
 * than one from between the two steps. finish returns 0 or -errno and the failed stage. */
csn_status csn_runtime_spawn_begin(csn_runtime *rt, const csn_spawn_namespaces *ns,
                                   csn_error **err);
int csn_runtime_spawn_finish(csn_runtime *rt, enum csn_spawn_stage *ret_stage);
/* The part of the spec that all sandboxes share; its strings borrow from rt. */
csn_keeper_spec csn_runtime_spec(const csn_runtime *rt);
csn_status csn_runtime_send_orders(csn_runtime *rt, const csn_keeper_spec *spec,
                                   csn_error **err);
/* Starts the keeper of a sandbox without confinement if it is not running. */
csn_status csn_runtime_ensure_keeper(csn_runtime *rt, csn_error **err);
/* Ends the keeper and all its commands. Waits, unless no command can be left (see
 * end_namespaces). False: the keeper still runs. */
bool csn_runtime_end_keeper(csn_runtime *rt);

/* exec.c and process.c: entries of the ops table */
csn_status csn_runtime_exec(void *state, const csn_exec_req *req, const csn_sink *sink,
                            csn_exec_end *ret, csn_error **err);
/* The same. Descriptors stay the caller's; -1: none. */
typedef struct csn_exec_extra {
    int sockets;   /* to the process that creates the command's sockets (os/socket_divert.h) */
    int notice_fd; /* while it is readable and the command runs, take_notice is called */
    bool (*take_notice)(void *ctx, int fd); /* false: not to be called again */
    void *ctx;
} csn_exec_extra;
#define CSN_EXEC_EXTRA_NONE ((csn_exec_extra){.sockets = -1, .notice_fd = -1})
csn_status csn_runtime_exec_with(csn_runtime *rt, const csn_exec_req *req,
                                 const csn_exec_extra *extra, const csn_sink *sink,
                                 csn_exec_end *ret, csn_error **err);
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

/* Members that the process ops of both backends share. */
#define CSN_RUNTIME_PROCESS_OPS                                                                \
    .size = sizeof(csn_process_ops), .release_tied = csn_runtime_release_tied,                 \
    .list = csn_runtime_processes, .logs = csn_runtime_logs, .signal = csn_runtime_signal,     \
    .feed = csn_runtime_feed, .resize = csn_runtime_resize, .wait_port = csn_runtime_wait_port

/* environ.c. Builds the environment of commands: an allow-list of the caller's variables, those
 * of the config, and HOME, which is always the sandbox's. malloc'd strv. */
csn_status csn_runtime_environ_new(const csn_runtime *rt, char ***ret, csn_error **err);
