/* backend.h: the interface between caisson and a backend, for authors of backends.
 * SPDX-License-Identifier: Apache-2.0
 *
 * A backend is a table of functions, csn_backend_ops. Only `name` and `exec` are required.
 * Related functions form groups (files, processes, network, snapshots); a backend without a
 * capability sets its group to NULL. The core derives missing file operations from exec with
 * POSIX shell tools; any other missing call fails with CSN_UNSUPPORTED.
 *
 * Each table begins with its own size, which serves as its version: new entries are added at
 * the end, and entries beyond `size` count as NULL. This header is less stable than caisson.h.
 *
 * Paths passed to a backend are never empty; `~` is expanded and relative paths are joined to
 * the working directory. The backend must resolve `..` and symbolic links in the file system
 * and never by text. The core calls functions of one state from several threads at the same
 * time. */
#ifndef CAISSON_BACKEND_H
#define CAISSON_BACKEND_H

#include "caisson/caisson.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Sets *err to `code` and the message (err may be NULL) and returns `code`. */
CSN_API csn_status csn_error_set(csn_error **err, csn_status code, const char *fmt, ...)
#if defined(__GNUC__)
    __attribute__((format(printf, 3, 4)))
#endif
    ;

/* Receives output. write returns CSN_SINK_MORE to go on; CSN_SINK_COUNT when the backend need
 * not keep further bytes and reports only their number (data NULL); CSN_SINK_STOP to end the
 * operation early. */
#define CSN_SINK_MORE  0
#define CSN_SINK_COUNT 1
#define CSN_SINK_STOP  2
typedef struct csn_sink {
    int (*write)(void *ctx, int stream, const void *data, size_t len);
    void *ctx;
} csn_sink;

/* Supplies input. read returns the number of bytes, 0 at the end, a negative value on failure.
 */
typedef struct csn_source {
    csn_read_fn read;
    void *ctx;
} csn_source;

/* In csn_exec_req.flags: cwd applies only to a new session; an existing session keeps its
 * working directory. */
#define CSN_EXEC_STAY (1u << 31)
/* In csn_exec_req.flags, only for backends with CSN_CAP_STEPS: the command changes nothing, so
 * its resulting state need not be kept. */
#define CSN_EXEC_READS (1u << 30)

/* Receives denials: operations that the sandbox refused to a command, and files moved to the
 * quarantine. */
typedef struct csn_deny_sink {
    void (*tell)(void *ctx, const csn_denial *d); /* copies *d */
    void *ctx;
} csn_deny_sink;

typedef struct csn_exec_req {
    uint32_t size;
    uint32_t flags;          /* CSN_EXEC_* */
    const char *const *argv; /* not empty; never join it */
    const char *const *env;  /* NAME=value, added to the backend's own environment */
    const char *cwd;
    const csn_source *input; /* NULL: empty stdin */
    int32_t input_fd;        /* -1, or a descriptor to use as stdin instead */
    int32_t cancel_fds[2];   /* -1, or readable when the command must be stopped */
    uint64_t deadline_ns;    /* CLOCK_MONOTONIC, 0: none; kill the whole process tree */
    const char *session;     /* or NULL */
    const char *command;     /* the shell string when argv runs a shell, else NULL */
    uint16_t rows, cols;
    const csn_deny_sink *denials; /* or NULL; called before exec returns */
    const char *const *net_allow; /* only with a network group: the rules for this command, all
                                     within the sandbox's; NULL: the sandbox's own rules */
    /* As `denials`, for those that the backend learns of while the command runs: the caller is
     * told at once. On the thread of exec. NULL: use `denials`. */
    const csn_deny_sink *live_denials;
} csn_exec_req;

#define CSN_END_EXITED  0u /* the command ended: exit_code or signal */
#define CSN_END_TIMEOUT 1u
#define CSN_END_CANCEL  2u
#define CSN_END_SPAWN   3u /* not started: exit_code, and the reason in `message` */
#define CSN_END_MEMORY  4u
#define CSN_END_PIDS    5u
#define CSN_END_CPU     6u
#define CSN_END_DISK    7u
#define CSN_END_POLICY  8u
/* The connection broke while the command ran, and output is missing; exit_code and signal are
 * set if the backend learned them in another way. */
#define CSN_END_LOST 9u

typedef struct csn_exec_end {
    uint32_t size;
    uint32_t how;      /* CSN_END_* */
    int32_t exit_code; /* -1: unknown or signalled */
    int32_t signal;    /* 0: none */
    uint64_t cpu_ns;
    uint64_t peak_memory;
    char message[256];
    uint32_t unchecked; /* not all changes could be checked for protected files */
    uint32_t unrouted;  /* a process tried to reach an address, not known, without a network */
} csn_exec_end;

typedef struct csn_file_stat {
    uint64_t file_size;
    int64_t modified_ns;
    uint32_t mode; /* st_mode */
    uint32_t nlink;
    uint64_t dev, ino; /* 0: unknown */
} csn_file_stat;

/* A directory to be searched. */
typedef struct csn_search_root {
    int32_t dir; /* open for reading */
    /* May this path below it be read? NULL: every one. Called by one thread at a time. */
    int (*may_read)(void *ctx, const char *path);
    void *ctx;
} csn_search_root;
typedef void (*csn_search_fn)(void *ctx, const csn_search_root *root);

/* One entry of list or walk. `path` is the name (list) or the path below the start (walk);
 * `target` is that of a symbolic link if known. Non-zero stops. The core sorts the entries. */
typedef int (*csn_entry_fn)(void *ctx, const char *path, const csn_file_stat *st,
                            const char *target);

typedef struct csn_write_req {
    const char *path;
    csn_source source;
    uint32_t flags;      /* CSN_FILE_CREATE, APPEND, SYNC, NOFOLLOW, NO_PARENTS */
    uint32_t mode;       /* 0: that of an existing file, else 0644 & ~umask */
    const char *if_hash; /* or NULL */
} csn_write_req;

typedef struct csn_written {
    uint64_t bytes;
    char hash[65];       /* "" when unknown */
    char *resolved_path; /* malloc'd, or NULL; the core frees it */
} csn_written;

/* One background process. Strings are valid until the callback returns. */
typedef int (*csn_process_fn)(void *ctx, const csn_process_info *info);

/* csn_backend_ops.options: which options of csn_config a backend honours. csn_open refuses an
 * option that is set and whose bit is not (CSN_UNSUPPORTED). The core itself honours options
 * that have no bit here, on every backend. */
#define CSN_OPTION_WORKSPACE    (1ull << 0)
#define CSN_OPTION_WORKSPACES   (1ull << 1)
#define CSN_OPTION_READ         (1ull << 2)
#define CSN_OPTION_WRITE        (1ull << 3)
#define CSN_OPTION_DENY         (1ull << 4)
#define CSN_OPTION_RULES        (1ull << 5)
#define CSN_OPTION_HOME         (1ull << 6)
#define CSN_OPTION_NOFOLLOW     (1ull << 7)
#define CSN_OPTION_NETWORK      (1ull << 8) /* "none" and "all" */
#define CSN_OPTION_NET_ALLOW    (1ull << 9)
#define CSN_OPTION_NET_DENY     (1ull << 10)
#define CSN_OPTION_PACKAGES     (1ull << 11)
#define CSN_OPTION_PUBLISH      (1ull << 12)
#define CSN_OPTION_HOST_PORTS   (1ull << 13)
#define CSN_OPTION_MEMORY       (1ull << 14)
#define CSN_OPTION_PIDS         (1ull << 15)
#define CSN_OPTION_CPUS         (1ull << 16)
#define CSN_OPTION_DISK         (1ull << 17)
#define CSN_OPTION_FILE_SIZE    (1ull << 18)
#define CSN_OPTION_LIFETIME     (1ull << 19)
#define CSN_OPTION_IMAGE        (1ull << 20)
#define CSN_OPTION_DETACHED     (1ull << 21) /* set by the core when there is a `connect` */
#define CSN_OPTION_NESTED       (1ull << 22)
#define CSN_OPTION_AGENT        (1ull << 23)
#define CSN_OPTION_COW          (1ull << 24)
#define CSN_OPTION_UNDO         (1ull << 25) /* this and the next: set by the core with COW */
#define CSN_OPTION_RECORD       (1ull << 26)
#define CSN_OPTION_DENY_MISSING (1ull << 30)
#define CSN_OPTION_CREATE       (1ull << 31) /* of the workspace; the core does it */

/* csn_backend_ops.caps: properties that neither the functions nor the options show. */

/* Paths that lead out of the workspace are CSN_OUTSIDE; without it `/` is a real root. */
#define CSN_CAP_BENEATH (1u << 0)
/* The core calls `open` at the first operation instead of in csn_open. */
#define CSN_CAP_LAZY (1u << 1)
/* Without a workspace in the config, the sandbox works in the caller's current directory. */
#define CSN_CAP_CWD (1u << 2)
/* exec supports csn_exec_req.session. */
#define CSN_CAP_SESSION (1u << 3)
/* exec supports CSN_EXEC_SUDO. */
#define CSN_CAP_SUDO (1u << 4)
/* exec reports a program or working directory that does not exist as CSN_END_SPAWN; without it
 * the core checks them first. */
#define CSN_CAP_SPAWN (1u << 5)
/* Commands get the variables of csn_config.env; without it the core adds them to each request.
 */
#define CSN_CAP_ENV (1u << 6)
/* A sandbox ends at a default lifetime when the config gives none. */
#define CSN_CAP_EXPIRES (1u << 7)
/* exec measures processor time and memory. */
#define CSN_CAP_USAGE (1u << 8)
/* A sandbox that is not detached ends when its owner is killed. */
#define CSN_CAP_OWNED (1u << 9)
/* exec learns exit codes only: 128 + N may have been signal N. */
#define CSN_CAP_CODES (1u << 10)
/* extend can make a lifetime longer but not shorter. */
#define CSN_CAP_LENGTHEN (1u << 11)
/* Commands run one after another; output and files appear when a command has ended. */
#define CSN_CAP_STEPS (1u << 12)
/* A snapshot costs nothing and needs no removal, so csn_fork may take one. */
#define CSN_CAP_FORK (1u << 13)

/* exec supports CSN_EXEC_PTY. */
#define CSN_CAP_PTY (1u << 14)

/* `deny` and `rules` on paths hold for commands as well; without it they hold for file calls.
 */
#define CSN_CAP_BINDS (1u << 20)

/* File operations. The core derives each of stat to walk and cleanup that is NULL from exec;
 * watch, check_path and fetch have no derived form. */
typedef struct csn_file_ops {
    uint32_t size; /* sizeof(csn_file_ops) */
    csn_status (*stat)(void *state, const char *path, uint32_t flags, csn_file_stat *ret,
                       char **ret_target, csn_error **err);
    csn_status (*read)(void *state, const char *path, uint32_t flags, uint64_t offset,
                       uint64_t length, const csn_sink *sink, csn_file_stat *ret,
                       csn_error **err);
    csn_status (*write)(void *state, const csn_write_req *reqs, size_t count, csn_written *rets,
                        csn_error **err);
    csn_status (*mkdir)(void *state, const char *path, uint32_t flags, csn_error **err);
    csn_status (*symlink)(void *state, const char *target, const char *path, csn_error **err);
    /* Sets the permission bits of a directory; used by transfers. */
    csn_status (*chmod)(void *state, const char *path, uint32_t mode, csn_error **err);
    csn_status (*remove)(void *state, const char *path, uint32_t flags, csn_error **err);
    csn_status (*rename)(void *state, const char *from, const char *to, uint32_t flags,
                         csn_error **err);
    csn_status (*list)(void *state, const char *path, uint32_t flags, csn_entry_fn fn,
                       void *ctx, csn_error **err);
    csn_status (*walk)(void *state, const char *path, uint32_t flags, csn_entry_fn fn,
                       void *ctx, csn_error **err);
    csn_status (*cleanup)(void *state, csn_error **err);

    csn_status (*watch)(void *state, const char *path, uint32_t flags, void **ret_watch,
                        csn_error **err);
    csn_status (*watch_next)(void *watch, uint64_t timeout_ms, csn_event *ret, csn_error **err);
    void (*watch_free)(void *watch);

    /* For csn_would_allow: may `op` (CSN_OP_*) use the path? *ret_resolved (malloc'd) is the
     * path's name on the host, or NULL if unknown. */
    csn_status (*check_path)(void *state, uint32_t op, const char *path, char **ret_resolved,
                             csn_error **err);
    /* A faster way than the output of a command to read [offset, offset + length) of a large
     * file. A derived read calls it after exec has found that the path is a readable regular
     * file of file_size bytes. CSN_UNSUPPORTED, before anything is written: the core reads
     * this file with exec. cancel_fds: NULL, or two as in csn_exec_req. */
    csn_status (*fetch)(void *state, const char *path, uint64_t file_size, uint64_t offset,
                        uint64_t length, const int32_t *cancel_fds, const csn_sink *sink,
                        csn_error **err);
    /* What a caller should know about a file that was just written at this resolved path, as a
     * sentence with static storage, or NULL: that it is in a private place. */
    const char *(*note_write)(void *state, const char *resolved);
    /* Calls fn with the directory `path`. Until fn returns, the calling thread and those that
     * it starts access files as commands do. CSN_UNSUPPORTED without an error: it is no
     * directory, and the core uses walk and read, as it does when this is NULL. */
    csn_status (*search)(void *state, const char *path, csn_search_fn fn, void *ctx,
                         csn_error **err);
} csn_file_ops;

/* Background processes. start, list, logs and signal are required. */
typedef struct csn_process_ops {
    uint32_t size; /* sizeof(csn_process_ops) */
    /* Keeps the last output_max bytes of each stream for `logs`. With CSN_EXEC_TIED sets
     * *ret_tie. */
    csn_status (*start)(void *state, const csn_exec_req *req, uint64_t output_max,
                        int64_t *ret_pid, void **ret_tie, csn_error **err);
    /* Ends the CSN_EXEC_TIED process whose tie start returned; accepts NULL. */
    void (*release_tied)(void *tie);
    /* Calls fn for process `pid`, or for all if pid is 0. wait_ms: first wait that long for the
     * end of the process. */
    csn_status (*list)(void *state, int64_t pid, uint64_t wait_ms, csn_process_fn fn, void *ctx,
                       csn_error **err);
    csn_status (*logs)(void *state, int64_t pid, int stream, uint64_t offset, uint64_t wait_ms,
                       const csn_sink *sink, csn_log_chunk *ret, csn_error **err);
    csn_status (*signal)(void *state, int64_t pid, int signo, csn_error **err);
    /* Writes to the standard input of a process; data NULL closes it. */
    csn_status (*feed)(void *state, int64_t pid, const void *data, size_t len,
                       uint64_t timeout_ms, csn_error **err);
    csn_status (*resize)(void *state, int64_t pid, uint16_t rows, uint16_t cols,
                         csn_error **err);
    csn_status (*wait_port)(void *state, uint16_t port, uint64_t timeout_ms, csn_error **err);
    /* Called after a background process has ended: reports to `denials` what exec would report,
     * for all commands since the last call. NULL: there is nothing to report. */
    void (*rescan)(void *state, const csn_deny_sink *denials);
} csn_process_ops;

/* One event of a sandbox's network. Strings are valid until the callback returns. Non-zero
 * stops. */
typedef int (*csn_net_event_fn)(void *ctx, const csn_net_event *e);

/* Network rules of a running sandbox. A backend with this group also honours
 * csn_exec_req.net_allow. Both functions are required. */
typedef struct csn_network_ops {
    uint32_t size; /* sizeof(csn_network_ops) */
    csn_status (*set_rules)(void *state, const csn_net_opts *rules, csn_error **err);
    /* Calls fn for each event from number *since on and advances *since. *ret_lost is the
     * number of events that were dropped before they could be read. since NULL: the events that
     * no call with NULL, in any process, has read; the audit log uses this. */
    csn_status (*events)(void *state, uint64_t *since, csn_net_event_fn fn, void *ctx,
                         uint64_t *ret_lost, csn_error **err);
} csn_network_ops;

/* Snapshots of a whole sandbox. `take` is required. */
typedef struct csn_snapshot_ops {
    uint32_t size; /* sizeof(csn_snapshot_ops) */
    /* *ret (malloc'd) is valid as `image` of a config: a sandbox with the same files. */
    csn_status (*take)(void *state, char **ret, csn_error **err);
    /* `snapshot` comes from the caller and may be any text. */
    csn_status (*rollback)(void *state, const char *snapshot, csn_error **err);
} csn_snapshot_ops;

#define CSN_WORKSPACE_LAYERS_MAX 30

/* The layers of a copy-on-write workspace, as open directories (see src/layers/changes.h for
 * their format). The core compares and commits them, and closes the descriptors. */
typedef struct csn_workspace_layers {
    int32_t base;      /* the host's directory */
    int32_t store;     /* private to the user: journal of a commit */
    int32_t originals; /* likewise: the host's files as they were; -1: none */
    uint32_t count;
    int32_t layers[CSN_WORKSPACE_LAYERS_MAX]; /* the newest is the first */
    int64_t since_s, since_ns; /* when the base was taken: a later change is the host's */
    uint32_t running;          /* commands may change the first layer now */
} csn_workspace_layers;

#define CSN_SNAPSHOT_AUTOMATIC (1u << 0) /* see csn_snapshot_entry */
#define CSN_SNAPSHOT_FORK      (1u << 1) /* only for csn_fork: it is not listed */

/* One snapshot. Strings are valid until the callback returns. */
typedef int (*csn_snapshot_fn)(void *ctx, const csn_snapshot_entry *e);

/* Copy-on-write workspaces. All are required. A sandbox whose workspace is not copy-on-write
 * returns CSN_UNSUPPORTED. Names come from the caller and may be any text. */
typedef struct csn_workspace_ops {
    uint32_t size; /* sizeof(csn_workspace_ops) */
    /* Calls fn once, with the new snapshot. name NULL: one is made up. */
    csn_status (*snapshot)(void *state, const char *name, uint32_t flags, csn_snapshot_fn fn,
                           void *ctx, csn_error **err);
    csn_status (*snapshots)(void *state, csn_snapshot_fn fn, void *ctx, csn_error **err);
    /* name NULL: the newest, or the base if there is none. remove: 1 if the snapshot ends. */
    csn_status (*rollback)(void *state, const char *name, uint32_t remove, csn_error **err);
    /* Drops all layers and snapshots; what the base has now becomes the start. */
    csn_status (*discard)(void *state, csn_error **err);
    csn_status (*open_layers)(void *state, csn_workspace_layers *ret, csn_error **err);
    /* Before a commit: what commands change from now on is in another layer, where the removal
     * of a file that the commit is about to write can be seen. CSN_CONFLICT: one runs. */
    csn_status (*freeze)(void *state, csn_error **err);
} csn_workspace_ops;

/* One finding of `diagnose`. Strings are valid until the callback returns. */
typedef void (*csn_check_fn)(void *ctx, const csn_check *check);

typedef struct csn_backend_ops {
    uint32_t size; /* sizeof(csn_backend_ops) */
    uint32_t caps; /* CSN_CAP_* */
    const char *name;
    const char *isolation; /* as in csn_info_result */
    uint64_t options;      /* CSN_OPTION_* */

    /* Runs one command to its end. A command that cannot be started is CSN_END_SPAWN and
     * CSN_OK; a negative status means that the backend itself failed. */
    csn_status (*exec)(void *state, const csn_exec_req *req, const csn_sink *sink,
                       csn_exec_end *ret, csn_error **err);

    const csn_file_ops *files;         /* NULL: all file operations are derived from exec */
    const csn_process_ops *processes;  /* NULL: no background processes */
    const csn_network_ops *network;    /* NULL: network rules cannot change after open */
    const csn_snapshot_ops *snapshots; /* NULL: no snapshots */

    /* csn_open calls it first, even if `open` is lazy; csn_connect does not. Refuses values of
     * honoured options that the backend cannot honour, and names a missing credential. Has no
     * side effects. */
    csn_status (*check)(const csn_config *config, csn_error **err);
    /* The config has all defaults filled in and lives as long as the sandbox, whose id is `id`.
     * NULL: the state is register_data. */
    csn_status (*open)(const csn_config *config, const char *id, void *register_data,
                       void **ret_state, csn_error **err);
    /* Attaches to a detached sandbox; config is the one it was opened with. */
    csn_status (*connect)(const csn_config *config, const char *id, void *register_data,
                          void **ret_state, csn_error **err);
    /* Called right after open and connect. stop_fd becomes readable when the sandbox is being
     * closed or destroyed; calls that wait must end then, except close and destroy. */
    void (*set_stop_fd)(void *state, int32_t stop_fd);
    /* Called after open: waits until the sandbox is usable. A backend that starts something in
     * open and waits for it here lets the core work in the meantime. NULL: open has waited. */
    csn_status (*await_ready)(void *state, csn_error **err);
    /* The record of a detached sandbox has been written, so other processes can find it. Until
     * then it must not outlive the process that opened it. NULL: nothing to do. */
    csn_status (*commit)(void *state, csn_error **err);
    void (*close)(void *state); /* accepts NULL; ends a sandbox that is not detached */
    csn_status (*destroy)(void *state, csn_error **err); /* may be called twice */
    /* Ends a detached sandbox to which connect failed, without its help. CSN_GONE: it had ended
     * already. NULL: not possible. */
    csn_status (*force_destroy)(const csn_config *config, const char *id, void *register_data,
                                csn_error **err);

    csn_status (*extend)(void *state, uint64_t ms, csn_error **err);
    csn_status (*pause)(void *state, csn_error **err); /* CSN_OK if it is paused already */
    csn_status (*resume)(void *state, csn_error **err);
    /* Fills in what the backend knows: workspace, workdir, home, layers, keeper_pid and so on.
     * The strings must live as long as the state. */
    csn_status (*info)(void *state, csn_info_result *ret, csn_error **err);
    /* Called after a command that failed by itself or ran out of time: reports to req->denials
     * what the sandbox refused to it and what would allow it. req and end are those of exec
     * (the input has been read), out and text the kept part of stdout and stderr. The output is
     * untrusted: use it to choose what to check, never as proof. NULL: no explanations. */
    csn_status (*explain)(void *state, const csn_exec_req *req, const csn_exec_end *end,
                          const csn_output *out, const csn_output *text, csn_error **err);
    /* For csn_doctor, without a sandbox: reports which of the backend's needs the host meets.
     */
    csn_status (*diagnose)(const char *workspace, csn_check_fn fn, void *ctx, csn_error **err);
    /* Called before destroy, and before a close that ends the sandbox: both report to `denials`
     * what exec would report, for everything since the last command. The sink lives until they
     * return. NULL: there is nothing to report. */
    void (*report_end)(void *state, const csn_deny_sink *denials);
    /* The state of a detached sandbox, for csn_sandboxes: a word with static storage. "gone":
     * it has certainly ended, and its record is removed. NULL: csn_sandboxes connects to it. */
    csn_status (*probe)(const char *id, void *register_data, const char **ret, csn_error **err);
    /* The path of a program that commands find by this name, as the agent names it: malloc'd,
     * or NULL. For csn_info, where `info` sets no rg_path. */
    char *(*find_program)(void *state, const char *name);
    const csn_workspace_ops *workspace; /* NULL: no copy-on-write workspaces */
} csn_backend_ops;

/* Makes `ops` available to csn_open as ops->name; CSN_EXISTS if the name is taken. The tables
 * are copied; what they point to and register_data must stay valid. */
CSN_API csn_status csn_register_backend(const csn_backend_ops *ops, void *register_data,
                                        csn_error **err);

#ifdef __cplusplus
}
#endif
#endif
