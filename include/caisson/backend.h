/* backend.h: for authors of backends. SPDX-License-Identifier: Apache-2.0
 *
 * A backend is a table of functions. Only `name` and `exec` are needed: every file operation
 * the table lacks is derived from exec with POSIX shell tools. All other calls that it lacks
 * are CSN_UNSUPPORTED. The table grows at its end only; `size` is its version. Weaker stability
 * than caisson.h.
 *
 * Paths that reach a backend: never empty; `~` is already replaced, relative ones already
 * joined to the working directory; `..` and symlinks are the backend's to resolve (never by
 * text). Functions of one state are called from many threads at once. */
#ifndef CAISSON_BACKEND_H
#define CAISSON_BACKEND_H

#include "caisson/caisson.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Fails with a message: sets *err (if err is not NULL) and returns `code`. */
CSN_API csn_status csn_error_set(csn_error **err, csn_status code, const char *fmt, ...)
#if defined(__GNUC__)
    __attribute__((format(printf, 3, 4)))
#endif
    ;

/* Where produced bytes go. write returns CSN_SINK_MORE; CSN_SINK_COUNT when it only wants
 * further bytes counted (call it with data NULL and the number dropped); CSN_SINK_STOP to end
 * early. */
#define CSN_SINK_MORE  0
#define CSN_SINK_COUNT 1
#define CSN_SINK_STOP  2
typedef struct csn_sink {
    int (*write)(void *ctx, int stream, const void *data, size_t len);
    void *ctx;
} csn_sink;

/* Where consumed bytes come from: bytes read, 0 at the end, negative on failure. */
typedef struct csn_source {
    csn_read_fn read;
    void *ctx;
} csn_source;

/* In csn_exec_req.flags: cwd is only the default; a session that is there already stays where
 * it is. */
#define CSN_EXEC_STAY (1u << 31)
/* Likewise, only for backends with CSN_CAP_STEPS: the command changes nothing, and need not
 * become a step. */
#define CSN_EXEC_READS (1u << 30)

/* Where a backend tells what a command was refused, or what it made that was set aside. */
typedef struct csn_deny_sink {
    void (*tell)(void *ctx, const csn_denial *d); /* copies */
    void *ctx;
} csn_deny_sink;

typedef struct csn_exec_req {
    uint32_t size;
    uint32_t flags;          /* CSN_EXEC_* */
    const char *const *argv; /* never empty, never to be joined */
    const char *const *env;  /* NAME=value, to be added to what the backend's commands have */
    const char *cwd;
    const csn_source *input; /* NULL: empty stdin */
    int32_t input_fd;        /* -1, or a descriptor to use as stdin instead */
    int32_t cancel_fds[2];   /* each -1, or readable once the command must be stopped */
    uint64_t deadline_ns;    /* CLOCK_MONOTONIC; 0: none. Stop the whole tree then */
    const char *session;     /* or NULL */
    const char *command;     /* the shell string when argv is a shell, else NULL */
    uint16_t rows, cols;
    const csn_deny_sink *denials; /* or NULL; told before exec returns */
    const char *const *net_allow; /* CSN_CAP_NET: rules, each within the sandbox's, to which
                                     this command is narrowed, until NULL; NULL: it is not */
} csn_exec_req;

#define CSN_END_EXITED  0u /* by itself: exit_code, or signal */
#define CSN_END_TIMEOUT 1u
#define CSN_END_CANCEL  2u
#define CSN_END_SPAWN   3u /* never ran: exit_code and the text in `message` */
#define CSN_END_MEMORY  4u
#define CSN_END_PIDS    5u
#define CSN_END_CPU     6u
#define CSN_END_DISK    7u
#define CSN_END_POLICY  8u
#define CSN_END_LOST                                                                           \
    9u /* the connection broke while it ran: output is missing; exit_code and                  \
          signal say how it ended if that is known all the same */

typedef struct csn_exec_end {
    uint32_t size;
    uint32_t how;      /* CSN_END_* */
    int32_t exit_code; /* -1: unknown or signalled */
    int32_t signal;    /* 0: none */
    uint64_t cpu_ns;
    uint64_t peak_memory;
    char message[256];
} csn_exec_end;

typedef struct csn_file_stat {
    uint64_t file_size;
    int64_t modified_ns;
    uint32_t mode; /* st_mode */
    uint32_t nlink;
    uint64_t dev, ino; /* 0: unknown */
} csn_file_stat;

/* One entry of list or walk. `path` is the name (list) or the path below the start (walk);
 * `target` is set for symlinks when known. Non-zero stops. Order is free: the core sorts. */
typedef int (*csn_entry_fn)(void *ctx, const char *path, const csn_file_stat *st,
                            const char *target);

typedef struct csn_write_req {
    const char *path;
    csn_source source;
    uint32_t flags;      /* CSN_FILE_CREATE, APPEND, SYNC, NOFOLLOW, NO_PARENTS */
    uint32_t mode;       /* 0: keep, or 0644 & ~umask */
    const char *if_hash; /* or NULL */
} csn_write_req;

typedef struct csn_written {
    uint64_t bytes;
    char hash[65];       /* "" when unknown */
    char *resolved_path; /* malloc'd, or NULL; the core frees it */
} csn_written;

/* A running background process, for `processes`. Strings live until the callback returns. */
typedef int (*csn_process_fn)(void *ctx, const csn_process_info *info);

#define CSN_CAP_BENEATH (1u << 0) /* escapes are CSN_OUTSIDE (else `/` is a real root) */
#define CSN_CAP_LAZY    (1u << 1) /* open is called by the first operation, not by csn_open */
#define CSN_CAP_CONFIG                                                                         \
    (1u << 2) /* open looks at the whole config and refuses what it cannot do;                 \
                 without it the core refuses limits, rules and network */
#define CSN_CAP_SESSION (1u << 3) /* exec knows csn_exec_req.session */
#define CSN_CAP_SUDO    (1u << 4)
#define CSN_CAP_NET     (1u << 5) /* exec knows csn_exec_req.net_allow */
#define CSN_CAP_HOST                                                                           \
    (1u << 6) /* the workspace is a host directory; none given: the caller's                   \
               */

#define CSN_CAP_OPTIONS                                                                        \
    (1u << 7) /* `check` looks at image, network, limits and lifetime and refuses what it      \
                 cannot do; rules about paths, homes and host directories the core refuses */
#define CSN_CAP_DERIVE                                                                         \
    (1u << 8) /* a file operation that answers CSN_UNSUPPORTED is derived from exec instead */

#define CSN_CAP_USAGE (1u << 9)  /* exec measures cpu time and memory */
#define CSN_CAP_OWNED (1u << 10) /* a sandbox that is not detached ends with its owner */
#define CSN_CAP_MOUNTS                                                                         \
    (1u << 11) /* with CSN_CAP_OPTIONS: host directories as workspaces, if any are given */
#define CSN_CAP_CODES                                                                          \
    (1u << 12) /* exec knows exit codes only: 128 + N may have been signal N */
#define CSN_CAP_LENGTHEN                                                                       \
    (1u << 13) /* extend makes a lifetime longer and refuses to make it shorter */
#define CSN_CAP_STEPS                                                                          \
    (1u << 14) /* a command is one step: they run one after another, and output and files are  \
                  seen when it has ended */

#define CSN_CAP_FORK                                                                           \
    (1u << 15) /* a snapshot costs nothing and needs no removal: csn_fork makes one, and       \
                  another sandbox of it */

/* One event of `network_events`. Strings live until the callback returns. Non-zero stops. */
typedef int (*csn_net_event_fn)(void *ctx, const csn_net_event *e);

/* One finding of `diagnose`. Strings live until the callback returns. */
typedef void (*csn_check_fn)(void *ctx, const csn_check *check);

typedef struct csn_backend_ops {
    uint32_t size; /* sizeof(csn_backend_ops) */
    uint32_t caps;
    const char *name;
    const char *isolation; /* as in csn_info_result */

    /* config is complete and lives as long as the sandbox. id is the sandbox's id. */
    csn_status (*open)(const csn_config *config, const char *id, void *register_data,
                       void **ret_state, csn_error **err);
    /* Finds a detached sandbox again; config is the one it was opened with. */
    csn_status (*connect)(const csn_config *config, const char *id, void *register_data,
                          void **ret_state, csn_error **err);
    void (*close)(void *state); /* accepts NULL; ends what is not detached */
    csn_status (*destroy)(void *state, csn_error **err);

    csn_status (*exec)(void *state, const csn_exec_req *req, const csn_sink *sink,
                       csn_exec_end *ret, csn_error **err);

    csn_status (*stat)(void *state, const char *path, uint32_t flags, csn_file_stat *ret,
                       char **ret_target, csn_error **err);
    csn_status (*read)(void *state, const char *path, uint32_t flags, uint64_t offset,
                       uint64_t length, const csn_sink *sink, csn_file_stat *ret,
                       csn_error **err);
    csn_status (*write)(void *state, const csn_write_req *reqs, size_t count, csn_written *rets,
                        csn_error **err);
    csn_status (*mkdir)(void *state, const char *path, uint32_t flags, csn_error **err);
    csn_status (*symlink)(void *state, const char *target, const char *path, csn_error **err);
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

    csn_status (*start)(void *state, const csn_exec_req *req, uint64_t output_max,
                        int64_t *ret_pid, void **ret_tie, csn_error **err);
    void (*release_tied)(void *tie); /* ends a CSN_EXEC_TIED process */
    csn_status (*processes)(void *state, int64_t pid, uint64_t wait_ms, csn_process_fn fn,
                            void *ctx, csn_error **err); /* pid 0: all; wait: for its end */
    csn_status (*logs)(void *state, int64_t pid, int stream, uint64_t offset, uint64_t wait_ms,
                       const csn_sink *sink, csn_log_chunk *ret, csn_error **err);
    csn_status (*signal)(void *state, int64_t pid, int signo, csn_error **err);
    csn_status (*feed)(void *state, int64_t pid, const void *data, size_t len,
                       uint64_t timeout_ms, csn_error **err); /* data NULL: close stdin */
    csn_status (*resize)(void *state, int64_t pid, uint16_t rows, uint16_t cols,
                         csn_error **err);
    csn_status (*wait_port)(void *state, uint16_t port, uint64_t timeout_ms, csn_error **err);

    csn_status (*extend)(void *state, uint64_t ms, csn_error **err);
    /* Fills what it knows: state, workspace, home, layers, keeper_pid ... The strings must live
     * as long as the state. */
    csn_status (*info)(void *state, csn_info_result *ret, csn_error **err);
    /* The name an agent's path has on the host, and whether the policy's paths allow it;
     * for csn_would_allow. NULL verdict fields where unknown; malloc'd resolved. */
    csn_status (*judge)(void *state, uint32_t op, const char *path, char **ret_resolved,
                        csn_error **err);
    /* The permission bits of a directory, for transfers. */
    csn_status (*chmod)(void *state, const char *path, uint32_t mode, csn_error **err);
    /* After a command that failed by itself: tells req->denials what it was refused, and what
     * would have allowed it, as far as that can still be found out. req and end are those of
     * exec (the input is used up), out and text what was kept of its stdout and stderr. What it
     * printed is a hint where to look, never a proof. NULL: nothing is explained. */
    csn_status (*explain)(void *state, const csn_exec_req *req, const csn_exec_end *end,
                          const csn_output *out, const csn_output *text, csn_error **err);
    /* Without a sandbox: tells fn what of all this backend needs the host has, for csn_doctor.
     */
    csn_status (*diagnose)(const char *workspace, csn_check_fn fn, void *ctx, csn_error **err);
    /* A detached sandbox is on record, so that others can find it. Until then it must not
     * outlive the process that opens it. NULL: nothing to do. */
    csn_status (*settle)(void *state, csn_error **err);
    /* Called right after open, before anything else: what open began is finished, or fails.
     * So that the core has something to do meanwhile. NULL: open did it all. */
    csn_status (*ready)(void *state, csn_error **err);
    /* Replaces the rules of a running sandbox's network. NULL: rules stay as they were. */
    csn_status (*network_set)(void *state, const csn_net_opts *rules, csn_error **err);
    /* Tells fn what happened on its network, from *since on, and moves it; *ret_lost: so many
     * are not known any more. since NULL: what was not taken by anybody with NULL before, in
     * whatever process; for the audit log. A sandbox without network has no events. */
    csn_status (*network_events)(void *state, uint64_t *since, csn_net_event_fn fn, void *ctx,
                                 uint64_t *ret_lost, csn_error **err);
    /* By csn_open, not by csn_connect, before anything else and before a lazy open in
     * particular: refuses what of the config it cannot honour, and says which credential is
     * missing. Does nothing. */
    csn_status (*check)(const csn_config *config, csn_error **err);
    /* Right after open or connect: stop_fd becomes readable when the sandbox is closing or
     * being destroyed. A call that waits for somebody else must end then; destroy and close
     * must not.
     */
    void (*attend)(void *state, int32_t stop_fd);
    /* With CSN_CAP_OPTIONS: which options of a config it honours, as words for the
     * capabilities: image, network (all, none), network_hosts, network_ports, packages,
     * publish, host_ports, memory, pids, cpu, disk, lifetime (there is one even if none was
     * asked for). */
    const char *const *options;
    /* In derived reads of much: [offset, offset + length) of a plain file that exec has just
     * found to be there, readable, and `file_size` bytes long; for backends with a faster way
     * than the output of a command. CSN_UNSUPPORTED, with nothing written: not of this one, and
     * exec reads it. cancel_fds: NULL, or two as in csn_exec_req. */
    csn_status (*fetch)(void *state, const char *path, uint64_t file_size, uint64_t offset,
                        uint64_t length, const int32_t *cancel_fds, const csn_sink *sink,
                        csn_error **err);
    /* Keeps the files: *ret (malloc'd) as `image` of a config begins with them. */
    csn_status (*snapshot)(void *state, char **ret, csn_error **err);
    /* What snapshot gave, by the caller's word only: anything may be in it. */
    csn_status (*rollback)(void *state, const char *snapshot, csn_error **err);
    csn_status (*pause)(void *state, csn_error **err); /* paused already: CSN_OK */
    csn_status (*resume)(void *state, csn_error **err);
    /* A background process has ended: tells `denials` what exec would tell after a command,
     * of all that ran since. NULL: there is nothing to find. */
    void (*review)(void *state, const csn_deny_sink *denials);
    /* Ends a detached sandbox that connect could not speak to, as well as that can be done
     * without it. CSN_GONE: it has ended. NULL: it cannot. */
    csn_status (*force_destroy)(const csn_config *config, const char *id, void *register_data,
                                csn_error **err);
} csn_backend_ops;

/* Makes `ops` available to csn_open under ops->name. Names cannot be taken twice. The table and
 * register_data must stay valid. */
CSN_API csn_status csn_register_backend(const csn_backend_ops *ops, void *register_data,
                                        csn_error **err);

#ifdef __cplusplus
}
#endif
#endif
