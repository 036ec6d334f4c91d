/* caisson.h: the public API: commands and files in a sandbox, the same on every backend.
 * SPDX-License-Identifier: Apache-2.0
 *
 * In reading order: status and errors, configuration, sandboxes, commands, background
 * processes, files, search, transfer, policy, audit.
 *
 * Rules for every call:
 *  - It returns CSN_OK or a negative status. `csn_error **err` is last and may be NULL. On
 *    failure no `ret_` argument is changed and *err (if given) is a new error to free; on
 *    success *err is unchanged.
 *  - A result is one block. Free it with its own _free function, which accepts NULL. All
 *    pointers in it become invalid then.
 *  - An options struct starts with `size` = sizeof(the struct), which serves as its version.
 *    NULL options and zero fields mean defaults, except where a field says otherwise (`limit`
 *    of csn_read_opts). An option that the backend cannot honour is
 *    CSN_UNSUPPORTED.
 *  - Several threads may use one sandbox at the same time. csn_close() ends their running
 *    calls.
 *  - The library never prints, exits, forks its host, or changes its signal handlers. */
#ifndef CAISSON_H
#define CAISSON_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define CSN_API __attribute__((visibility("default")))
#else
#define CSN_API
#endif

typedef struct csn_sandbox csn_sandbox; /* a handle of one sandbox */
typedef struct csn_process csn_process; /* a background process of a sandbox */
typedef struct csn_cancel csn_cancel;   /* lets another thread stop a call */
typedef struct csn_watch csn_watch;     /* a stream of file events */
typedef struct csn_error csn_error;     /* why a call failed */

/* ---- status and errors ------------------------------------------------------------------- */

/* C name, number, JSON word, HTTP status, text. */
#define CSN_STATUS_MAP(X)                                                                      \
    X(OK, 0, "ok", 200, "success")                                                             \
    X(INVALID, -1, "invalid", 400, "invalid argument")                                         \
    X(AUTH, -2, "auth", 401, "credentials missing or refused")                                 \
    X(DENIED, -3, "denied", 403, "denied by policy")                                           \
    X(OUTSIDE, -4, "outside", 403, "path outside base directory")                              \
    X(NOT_FOUND, -5, "not_found", 404, "not found")                                            \
    X(EXISTS, -6, "exists", 409, "already exists")                                             \
    X(CONFLICT, -7, "conflict", 409, "changed meanwhile, or not empty")                        \
    X(WRONG_TYPE, -8, "wrong_type", 409, "not the kind of file this needs")                    \
    X(GONE, -9, "gone", 410, "sandbox has ended")                                              \
    X(TOO_LARGE, -10, "too_large", 413, "over a limit")                                        \
    X(NO_MATCH, -11, "no_match", 422, "string not found in file")                              \
    X(AMBIGUOUS, -12, "ambiguous", 422, "string appears more than once")                       \
    X(TIMEOUT, -13, "timeout", 408, "deadline passed")                                         \
    X(CANCELLED, -14, "cancelled", 499, "cancelled by caller")                                 \
    X(UNSUPPORTED, -15, "unsupported", 501, "backend cannot do this")                          \
    X(UNAVAILABLE, -16, "unavailable", 503, "did not answer")                                  \
    X(IO, -17, "io", 500, "input or output failed")                                            \
    X(NOMEM, -18, "nomem", 500, "out of memory")                                               \
    X(INTERNAL, -19, "internal", 500, "internal error")

typedef enum {
#define CSN_X(name, num, word, http, text) CSN_##name = (num),
    CSN_STATUS_MAP(CSN_X)
#undef CSN_X
} csn_status;

/* A refusal: the target as given, the path it resolved to, the rule that refused it, the source
 * of the rule, and the smallest rule that would allow it. Every field except op may be NULL. */
typedef struct csn_denial {
    const char *op; /* read, write, delete, exec, env, net, limit, syscall */
    const char *target;
    const char *resolved;
    const char *rule;
    const char *source;
    const char *hint;
} csn_denial;

CSN_API const char *csn_version(void);
CSN_API const char *csn_status_name(csn_status s); /* the JSON word: "not_found" */
CSN_API const char *csn_status_text(csn_status s);
CSN_API int csn_status_http(csn_status s);

CSN_API csn_status csn_error_code(const csn_error *e); /* NULL: CSN_OK */
CSN_API const char *csn_error_message(const csn_error *e);
CSN_API const char *csn_error_op(const csn_error *e);   /* may be NULL */
CSN_API const char *csn_error_path(const csn_error *e); /* of a file; may be NULL */
CSN_API const char *csn_error_hint(const csn_error *e); /* may be NULL */
CSN_API int csn_error_errno(const csn_error *e);        /* 0 when no system call failed */
CSN_API const csn_denial *csn_error_denial(const csn_error *e); /* NULL unless DENIED/OUTSIDE */
CSN_API void csn_error_free(csn_error *e);

/* Receives debug lines of the library. Off by default; set it before any other call. */
typedef void (*csn_log_fn)(void *ctx, const char *line);
CSN_API void csn_set_log(csn_log_fn fn, void *ctx);

/* Any number of calls may use one cancel handle. Firing it stops them all, and every later call
 * that uses it. csn_cancel_fire is safe in any thread and in signal handlers. Free the handle
 * when no call uses it any more. */
CSN_API csn_status csn_cancel_new(csn_cancel **ret, csn_error **err);
CSN_API void csn_cancel_fire(csn_cancel *c);
CSN_API void csn_cancel_free(csn_cancel *c);

/* ---- configuration ------------------------------------------------------------------ */

#define CSN_NO_LIMIT UINT64_MAX /* times and sizes: unlimited */

#define CSN_OPEN_DETACHED     (1u << 0) /* outlives csn_close and this process */
#define CSN_OPEN_NOFOLLOW     (1u << 1) /* file calls refuse every symlink */
#define CSN_OPEN_ALLOW_WEAKER (1u << 2) /* accept less isolation than the backend promises */
#define CSN_OPEN_NESTED       (1u << 3) /* commands may make namespaces and mounts */
#define CSN_OPEN_CREATE       (1u << 4) /* make the workspace if it is missing */
#define CSN_OPEN_COW          (1u << 5) /* the workspace is copy-on-write: workspace.h */
#define CSN_OPEN_UNDO         (1u << 6) /* a snapshot before each command: csn_undo */
#define CSN_OPEN_RECORD       (1u << 7) /* each command's changes go to the audit log */

/* Operations of a rule. */
#define CSN_OP_READ   (1u << 0)
#define CSN_OP_WRITE  (1u << 1)
#define CSN_OP_DELETE (1u << 2)
#define CSN_OP_EXEC   (1u << 3)
#define CSN_OP_NET    (1u << 4)
/* Added to the operations of a rule on paths: it holds for file calls only. Without it the rule
 * also holds for commands, and csn_open refuses one that the backend cannot enforce there. */
#define CSN_RULE_FILES (1u << 30)

/* One rule. `path` is a directory or file (the rule covers everything below it), or a glob if
 * it contains one of *?[{ ; a relative one is below the workspace. For exec it is a command
 * word. For net it is a host, and the rule counts as an entry of net_allow or net_deny. In all
 * other cases the most specific rule wins, and deny wins ties. */
typedef struct csn_rule {
    uint32_t ops;   /* CSN_OP_*, CSN_RULE_FILES */
    uint32_t allow; /* 1 allow, 0 deny */
    const char *path;
} csn_rule;

typedef struct csn_config {
    uint32_t size;
    uint32_t flags;          /* CSN_OPEN_* */
    const char *backend;     /* NULL: $CAISSON_BACKEND, else VERCEL=1 means vercel, else jail */
    const char *name;        /* another name for csn_connect; NULL: none */
    const char *workspace;   /* host directory; NULL: the current one (a jail then refuses a
                                system directory such as /etc). local: the base directory */
    const char *workdir;     /* first working directory inside; NULL: the workspace */
    const char *home;        /* host directory for HOME; NULL: a private one */
    const char *const *read; /* further readable host directories, NULL-terminated */
    const char *const *write;    /* further writable host directories */
    const char *const *deny;     /* refused paths inside the above, or globs; they exist */
    const char *const *commands; /* if not NULL: only these command words may run */
    const char *const *env;      /* NAME (taken from the caller) or NAME=value */
    const csn_rule *rules;
    size_t rule_count;
    uint64_t timeout_ms;  /* of one command; 0: 30 000 */
    uint64_t output_max;  /* bytes kept per stream; 0: 1 MiB */
    uint64_t lifetime_ms; /* of the sandbox; 0: the backend's default (local: unlimited) */
    /* Limits of the sandbox; CSN_NO_LIMIT: none; 0: the backend's default, for a jail: */
    uint64_t memory_max;          /* bytes; three quarters of the host's memory, sampled */
    uint64_t pids_max;            /* 1024 */
    uint64_t cpu_milli;           /* 1000 = one cpu; none */
    uint64_t disk_max;            /* bytes of the private places; 1 GiB */
    uint64_t file_max;            /* size of one file; none */
    const char *network;          /* "none", "all"; NULL: the backend's default */
    const char *const *net_allow; /* host[:port] */
    const char *const *net_deny;
    const char *const *packages;   /* package-manager presets */
    const char *const *publish;    /* ports inside, reachable on the host's loopback */
    const char *const *host_ports; /* ports of the host's loopback, reachable inside */
    const char *image;             /* docker, dagger, e2b template */
    const char *audit; /* file for the audit log; NULL: default place; "none": off */
    const char *const *workspaces;      /* further HOST[:INSIDE][:rw|ro|cow] */
    const char *const *deny_missing_ok; /* as deny; the paths need not exist yet */
    /* Retention of the audit logs of ended sandboxes; CSN_NO_LIMIT: no limit. */
    uint64_t audit_keep; /* days of use after the last line; 0: 30 */
    uint64_t audit_max;  /* bytes of all logs of the user; 0: 1 GiB */
    const char *agent;   /* preset for a coding agent that runs inside: "claude", "codex",
                            "gemini". Adds a home that is kept, hosts and variables */
} csn_config;

/* Parses the JSON of a policy or configuration file. Keys are the names of csn_config; an
 * unknown key is an error that names it. `source` is the file's name in messages. Free with
 * csn_config_free. */
CSN_API csn_status csn_config_parse(const char *json, size_t len, const char *source,
                                    csn_config **ret, csn_error **err);
CSN_API void csn_config_free(csn_config *c);

/* ---- sandboxes ---------------------------------------------------------------------- */

CSN_API csn_status csn_open(const csn_config *config, csn_sandbox **ret, csn_error **err);
/* Opens a handle by id or name; works from any process of the same user. */
CSN_API csn_status csn_connect(const char *id, csn_sandbox **ret, csn_error **err);
/* Ends running calls and frees the handle. A sandbox that is not detached is destroyed. */
CSN_API void csn_close(csn_sandbox *sb);
/* Ends every process and removes the sandbox. The handle must still be closed; every later call
 * on it is CSN_GONE. Destroying twice is CSN_OK. */
CSN_API csn_status csn_destroy(csn_sandbox *sb, csn_error **err);
/* As csn_destroy, but the next call opens a new sandbox with the same id, once for all threads.
 * Only for backends that open at the first call (capability: lazy), and not when detached. */
CSN_API csn_status csn_reset(csn_sandbox *sb, csn_error **err);
/* Destroys a sandbox by id or name without a handle, from any process of the same user. If the
 * sandbox does not answer, its processes are killed from outside. CSN_OK if it has ended
 * already; CSN_NOT_FOUND for an unknown name. */
CSN_API csn_status csn_destroy_id(const char *id, csn_error **err);
/* Receives one denial; *d is valid until the function returns. */
typedef void (*csn_denial_fn)(void *ctx, const csn_denial *d);
/* Sets the function that csn_destroy, and csn_close of a sandbox that is not detached, call for
 * each denial that belongs to no result: the last scan for protected files also finds what file
 * operations and background processes left after the last command. fn NULL: not reported. */
CSN_API void csn_on_denial(csn_sandbox *sb, csn_denial_fn fn, void *ctx);
/* As csn_destroy_id, with a function as for csn_on_denial. */
CSN_API csn_status csn_destroy_id_report(const char *id, csn_denial_fn fn, void *ctx,
                                         csn_error **err);
CSN_API const char *csn_id(const csn_sandbox *sb);

typedef struct csn_layer {
    const char *name;   /* user, mount, pid, net, limits, landlock, seccomp, files, exec ... */
    const char *status; /* "on", "off", "weaker"; for net also "transparent", "proxy" */
    const char *detail; /* one sentence */
} csn_layer;

/* A denied path, a rule of the config, or a place of keys that a jail hides. */
typedef struct csn_rule_info {
    const char *rule;     /* "deny .env", "deny write,delete LICENSE", "hide /home/me/.ssh" */
    const char *source;   /* "config.deny[0]", "keys of the home: private keys of ssh" */
    const char *enforced; /* by what, for commands: "mount ...", "file calls only" ... */
} csn_rule_info;

typedef struct csn_info_result {
    uint32_t size;
    uint32_t detached;
    const char *id;
    const char *name; /* or NULL */
    const char *backend;
    const char *state;     /* "new", "running", "gone" */
    const char *isolation; /* "none", "kernel", "container", "microvm", "custom" */
    const char *workspace; /* host directory, or NULL */
    const char *workdir;   /* as the agent names it */
    const char *home;      /* as the agent names it */
    const char *rg_path;   /* ripgrep inside, or NULL */
    const char *const
        *capabilities; /* words, NULL-terminated: calls that work here, native or derived */
    const csn_layer *layers;
    size_t layer_count;
    int64_t created_ms; /* since the epoch */
    int64_t expires_ms; /* 0: never */
    int64_t keeper_pid; /* 0: none yet */
    const csn_rule_info *rules;
    size_t rule_count;
    /* Shared directories of the host as commands name them, NULL-terminated, or NULL. */
    const char *const *write_dirs, *const *read_dirs; /* read_dirs: those only to be read */
} csn_info_result;

CSN_API csn_status csn_info(csn_sandbox *sb, csn_info_result **ret, csn_error **err);
CSN_API void csn_info_free(csn_info_result *r);

typedef struct csn_sandbox_entry {
    const char *id;
    const char *name; /* or NULL */
    const char *backend;
    const char *state; /* "running", "starting", "not answering", "other version", "other boot",
                          "other host", "unknown": see list in caisson(1) */
    const char *workspace;
    int64_t created_ms;
    const char *forked_from; /* the id of the sandbox that csn_fork copied, or NULL */
} csn_sandbox_entry;

typedef struct csn_sandbox_list {
    const csn_sandbox_entry *items;
    size_t count;
} csn_sandbox_list;

/* Lists the detached sandboxes of this user, oldest first. Removes the remains of those whose
 * keeper is known to have ended; ends none. */
CSN_API csn_status csn_sandboxes(csn_sandbox_list **ret, csn_error **err);
CSN_API void csn_sandbox_list_free(csn_sandbox_list *l);
/* Removes the record of a sandbox in the state "unknown", and nothing else. CSN_CONFLICT: it
 * has another state. */
CSN_API csn_status csn_forget(const char *id, csn_error **err);

CSN_API csn_status csn_set_workdir(csn_sandbox *sb, const char *path, csn_error **err);
/* Removes everything in the workspace, not the directory itself. CSN_DENIED for a directory of
 * the host that this sandbox did not make (CSN_OPEN_CREATE), and where rules forbid it. */
CSN_API csn_status csn_cleanup(csn_sandbox *sb, csn_error **err);
#define CSN_CLEANUP_FORCE (1u << 0) /* also a workspace that existed before the sandbox */
CSN_API csn_status csn_cleanup_with(csn_sandbox *sb, uint32_t flags, csn_error **err);
/* Sets the end of the sandbox to `ms` milliseconds from now. */
CSN_API csn_status csn_extend(csn_sandbox *sb, uint64_t ms, csn_error **err);

/* Capability `pause`. csn_pause suspends all processes and the lifetime of the sandbox until
 * csn_resume or csn_connect. Pausing or resuming twice is CSN_OK. */
CSN_API csn_status csn_pause(csn_sandbox *sb, csn_error **err);
CSN_API csn_status csn_resume(csn_sandbox *sb, csn_error **err);

/* ---- commands ----------------------------------------------------------------------- */

#define CSN_STDOUT 1
#define CSN_STDERR 2

#define CSN_EXEC_MERGE     (1u << 0) /* one pipe for both streams: true arrival order */
#define CSN_EXEC_KEEP_TAIL (1u << 1) /* keep the end of output over output_max */
#define CSN_EXEC_KEEP_BOTH (1u << 2) /* keep half at the start and half at the end */
#define CSN_EXEC_STDIN_FD  (1u << 3) /* stdin comes from stdin_fd */
#define CSN_EXEC_RESTART   (1u << 4) /* restart the session */
#define CSN_EXEC_SUDO      (1u << 5) /* if the backend supports it */
#define CSN_EXEC_PTY       (1u << 6) /* a terminal, rows x cols; csn_exec(3), csn_start(3) */
#define CSN_EXEC_STDIN     (1u << 7) /* csn_start only: open a pipe for csn_process_write */
#define CSN_EXEC_TIED      (1u << 8) /* csn_start only: ends with its handle or its owner */

/* Receives all output as it arrives, in order and untruncated. Called on the calling thread;
 * non-zero cancels the command. */
typedef int (*csn_output_fn)(void *ctx, int stream, const void *data, size_t len);

typedef struct csn_exec_opts {
    uint32_t size;
    uint32_t flags;         /* CSN_EXEC_* */
    const char *cwd;        /* NULL: the sandbox's working directory */
    const char *const *env; /* NAME=value ..., NULL; added to the sandbox's own */
    uint64_t timeout_ms;    /* 0: the sandbox's default; CSN_NO_LIMIT: none */
    uint64_t output_max;    /* bytes kept per stream; 0: the sandbox's default */
    const void *stdin_data; /* NULL: /dev/null */
    size_t stdin_len;
    int32_t stdin_fd; /* with CSN_EXEC_STDIN_FD; the caller keeps ownership */
    uint16_t rows, cols;
    const char *session; /* a persistent shell of this name; csn_sh only */
    /* Restrict the network of this command and its children to these hosts (rules as in
     * net_allow) and the hosts of these presets; an empty list allows none. Both NULL: no
     * restriction. A host that the sandbox's rules do not permit is CSN_DENIED before anything
     * runs. A restricted command has a private loopback, and processes that it leaves running
     * have no network. CSN_UNSUPPORTED for sessions and background processes. */
    const char *const *allowed_domains;
    const char *const *package_managers;
    csn_output_fn on_output;
    void *on_output_ctx;
    csn_cancel *cancel;
    /* Called on the calling thread while the command runs, at most once for each host that a
     * jail refuses; csn_exec(3). CSN_INVALID for background processes. */
    csn_denial_fn on_denial;
    void *on_denial_ctx;
} csn_exec_opts;

#define CSN_OPTS(type, ...) (&(type){.size = sizeof(type), __VA_ARGS__})

typedef struct csn_output {
    const char *data; /* NUL-terminated for convenience; may hold NUL bytes */
    size_t len;
    uint64_t total; /* bytes the command wrote, including dropped ones */
    uint64_t head;  /* the first `head` bytes are the start of the output, the rest its end */
} csn_output;

typedef struct csn_exec_result {
    uint32_t size;
    int32_t exit_code;  /* -1: unknown or ended by a signal */
    const char *signal; /* "SIGKILL", or NULL */
    /* merged: both in the order of arrival, where bytes that wait in both pipes have no known
     * order. With CSN_EXEC_MERGE it is exact, and err is empty. */
    csn_output out, err, merged;
    double duration_ms;
    uint32_t timed_out;
    uint32_t interrupted; /* by timeout or cancel */
    uint32_t failed;      /* not started, non-zero exit, or ended by a signal */
    uint32_t truncated;
    const char *truncated_by; /* "bytes" or NULL */
    const char *killed_by;    /* timeout cancel memory pids cpu disk policy signal, or NULL */
    double cpu_ms;
    uint64_t peak_memory; /* bytes */
    const csn_denial *denials;
    size_t denial_count;
    const csn_layer *layers;
    size_t layer_count;
    uint32_t unchecked;  /* changes could not all be checked for protected files; see denials */
    const char *sandbox; /* the id of the sandbox */
} csn_exec_result;

/* Runs argv unchanged, without a shell. A non-zero exit status is a result, not an error. */
CSN_API csn_status csn_exec(csn_sandbox *sb, const char *const *argv, const csn_exec_opts *opts,
                            csn_exec_result **ret, csn_error **err);
/* Runs bash -c COMMAND, or sh -c COMMAND if the sandbox has no bash. */
CSN_API csn_status csn_sh(csn_sandbox *sb, const char *command, const csn_exec_opts *opts,
                          csn_exec_result **ret, csn_error **err);
CSN_API void csn_exec_result_free(csn_exec_result *r);

/* ---- background processes ----------------------------------------------------------- */

/* Start a process and return at once. timeout_ms 0 means no timeout here; on_output and session
 * are CSN_INVALID. */
CSN_API csn_status csn_start(csn_sandbox *sb, const char *const *argv,
                             const csn_exec_opts *opts, csn_process **ret, csn_error **err);
CSN_API csn_status csn_start_sh(csn_sandbox *sb, const char *command, const csn_exec_opts *opts,
                                csn_process **ret, csn_error **err);
/* Opens a handle of an existing process. Free every process handle before closing the
 * sandbox. */
CSN_API csn_status csn_process_open(csn_sandbox *sb, int64_t pid, csn_process **ret,
                                    csn_error **err);
CSN_API int64_t csn_process_pid(const csn_process *p);
CSN_API void csn_process_free(csn_process *p);

typedef struct csn_process_info {
    int64_t pid;
    const char *command;
    const char *state;  /* "running", "exited" */
    int32_t exit_code;  /* -1: running, unknown or signalled */
    const char *signal; /* or NULL */
    uint64_t out_total, err_total;
    int64_t started_ms;
    uint32_t pty;
} csn_process_info;

typedef struct csn_process_list {
    const csn_process_info *items;
    size_t count;
    const csn_denial *denials; /* set by csn_process_wait, after the process has ended */
    size_t denial_count;
} csn_process_list;

CSN_API csn_status csn_processes(csn_sandbox *sb, csn_process_list **ret, csn_error **err);
CSN_API void csn_process_list_free(csn_process_list *l);

typedef struct csn_log_chunk {
    const char *data;
    size_t len;
    uint64_t offset;  /* of data[0] in the stream */
    uint64_t dropped; /* bytes between the requested offset and `offset` that were dropped */
    uint64_t total;   /* written so far */
    uint32_t end;     /* the stream has ended */
} csn_log_chunk;

/* Reads output from byte `offset` on; the backend keeps it in a bounded ring. If no output is
 * available, waits up to wait_ms for it. A pty has only CSN_STDOUT. */
CSN_API csn_status csn_process_logs(csn_process *p, int stream, uint64_t offset,
                                    uint64_t wait_ms, csn_log_chunk **ret, csn_error **err);
CSN_API void csn_log_chunk_free(csn_log_chunk *c);
/* Waits until the process has ended; CSN_TIMEOUT if it still runs. The list has one item. If
 * `ret` is not NULL, a jail then scans its workspace as after a command, and the denials of the
 * list name the files moved to the quarantine. Otherwise the next command reports them. */
CSN_API csn_status csn_process_wait(csn_process *p, uint64_t timeout_ms, csn_process_list **ret,
                                    csn_error **err);
/* Signals the process group; SIGKILL and SIGTERM go to the whole process tree. */
CSN_API csn_status csn_process_signal(csn_process *p, int signo, csn_error **err);
CSN_API csn_status csn_process_write(csn_process *p, const void *data, size_t len,
                                     uint64_t timeout_ms, csn_error **err);
CSN_API csn_status csn_process_close_stdin(csn_process *p, csn_error **err);
CSN_API csn_status csn_process_resize(csn_process *p, uint16_t rows, uint16_t cols,
                                      csn_error **err);
/* Wait until a process listens on this port of the sandbox's loopback, or until the log of a
 * background process contains `text`. */
CSN_API csn_status csn_wait_port(csn_sandbox *sb, uint16_t port, uint64_t timeout_ms,
                                 csn_error **err);
CSN_API csn_status csn_wait_log(csn_sandbox *sb, const char *text, uint64_t timeout_ms,
                                csn_error **err);

/* ---- files -------------------------------------------------------------------------- */

/* Paths are relative to the working directory; `~` is the home; a leading `/` is the sandbox's
 * root. Any byte but NUL may occur in a name. */

typedef struct csn_file_info {
    const char *path;   /* list: the name; glob: relative to PATH; stat: as given */
    const char *target; /* of a symlink, else NULL */
    uint64_t file_size;
    int64_t modified_ns; /* since the epoch */
    uint32_t mode;       /* permission bits and type, as in st_mode */
    uint32_t is_dir;
    uint32_t is_symlink;
    uint32_t nlink;
} csn_file_info;

typedef struct csn_file_list {
    const csn_file_info *items;
    size_t count;
    uint32_t truncated; /* over the limit: items are the first `count` in directory order */
} csn_file_list;

#define CSN_FILE_NOFOLLOW   (1u << 0) /* refuse symlinks in the path; stat: the link itself */
#define CSN_FILE_CREATE     (1u << 1) /* write: fail if the file exists */
#define CSN_FILE_APPEND     (1u << 2)
#define CSN_FILE_SYNC       (1u << 3) /* on disk before the call returns */
#define CSN_FILE_RECURSIVE  (1u << 4) /* delete, watch */
#define CSN_FILE_NUMBERS    (1u << 5) /* read: "%6d\t" before each line */
#define CSN_FILE_TEXT       (1u << 6) /* read: no image detection */
#define CSN_FILE_NO_PARENTS (1u << 7) /* write, mkdir: do not create missing directories */
#define CSN_FILE_HASH       (1u << 8) /* read: fill `hash` */
#define CSN_FILE_GITIGNORE  (1u << 9) /* glob: leave out what .gitignore files name */

/* The lines of NULL options: 2000. `limit` 0 asks only for the counts; programs compiled with a
 * csn_read_opts that ends at `cancel` get the default for 0. */
#define CSN_LINES_DEFAULT (UINT64_MAX - 1)
typedef struct csn_read_opts {
    uint32_t size;
    uint32_t flags;
    uint64_t offset;   /* first line, 0-based; read_bytes: first byte */
    uint64_t limit;    /* lines, CSN_LINES_DEFAULT or 0; read_bytes: bytes, 0: to the end */
    uint64_t byte_max; /* of the content; 0: 256 KiB text, 16 MiB image */
    csn_cancel *cancel;
    uint64_t reserved; /* 0; tells limit 0 of this version from the one before */
} csn_read_opts;

typedef struct csn_read_result {
    uint32_t size;
    uint32_t is_image; /* then content is the file's bytes and mime_type is set */
    const char *content;
    size_t content_len;
    const char *mime_type; /* or NULL */
    uint64_t bytes;        /* of the file */
    uint64_t total_lines;
    uint64_t output_lines;
    uint32_t total_lines_exact; /* 0: the file is so large that counting stopped early */
    uint32_t truncated;
    const char *truncated_by; /* "lines", "bytes" or NULL */
    const char *hash; /* with CSN_FILE_HASH: SHA-256 of the file; NULL when not read whole */
} csn_read_result;

CSN_API csn_status csn_read(csn_sandbox *sb, const char *path, const csn_read_opts *opts,
                            csn_read_result **ret, csn_error **err);
CSN_API void csn_read_result_free(csn_read_result *r);

/* Receives bytes. Returning non-zero stops the transfer, which is not an error. */
typedef int (*csn_write_fn)(void *ctx, const void *data, size_t len);
/* Supplies bytes: returns their number, 0 at the end, negative on failure. */
typedef int64_t (*csn_read_fn)(void *ctx, void *buf, size_t len);

CSN_API csn_status csn_read_bytes(csn_sandbox *sb, const char *path, const csn_read_opts *opts,
                                  csn_write_fn sink, void *sink_ctx, csn_error **err);

typedef struct csn_write_opts {
    uint32_t size;
    uint32_t flags;
    const char *if_hash; /* SHA-256 in hex: CSN_CONFLICT if the file has another hash */
    uint32_t mode;       /* of a new file; 0: 0644 & ~umask */
} csn_write_opts;

typedef struct csn_write_result {
    const char *path; /* as given */
    const char *resolved_path;
    uint64_t bytes;
    const char *hash; /* SHA-256 of the new content; NULL after append */
    const char *note; /* if the file is in a private place, which ends with the sandbox */
} csn_write_result;

CSN_API csn_status csn_write(csn_sandbox *sb, const char *path, const void *data, size_t len,
                             const csn_write_opts *opts, csn_write_result **ret,
                             csn_error **err);
CSN_API csn_status csn_write_from(csn_sandbox *sb, const char *path, csn_read_fn source,
                                  void *source_ctx, const csn_write_opts *opts,
                                  csn_write_result **ret, csn_error **err);
CSN_API void csn_write_result_free(csn_write_result *r);

typedef struct csn_file_content {
    const char *path;
    const void *data;
    size_t len;
    uint32_t mode;       /* 0: that of an existing file, else 0644 & ~umask */
    const char *if_hash; /* or NULL */
} csn_file_content;

/* Writes all files or none. Flags: CREATE, SYNC, NOFOLLOW, NO_PARENTS. */
CSN_API csn_status csn_write_many(csn_sandbox *sb, const csn_file_content *files, size_t count,
                                  uint32_t flags, csn_error **err);

/* Writes the files of a tar stream below `path` (NULL: the working directory), all or none. */
CSN_API csn_status csn_write_tar(csn_sandbox *sb, const char *path, csn_read_fn source,
                                 void *source_ctx, uint32_t flags, csn_error **err);

typedef struct csn_edit_item {
    const char *old_string; /* exact, not empty */
    size_t old_len;         /* 0: strlen */
    const char *new_string;
    size_t new_len; /* 0: strlen */
    uint32_t replace_all;
} csn_edit_item;

typedef struct csn_edit_result {
    const char *path;
    const char *resolved_path;
    uint64_t occurrences; /* replaced, over all edits */
    uint64_t bytes;
    const char *hash;
} csn_edit_result;

/* Applies the edits in order, all or none. An edit with equal strings changes nothing and
 * counts its occurrences. CSN_CONFLICT if the file changed between the read and the write. */
CSN_API csn_status csn_edit(csn_sandbox *sb, const char *path, const csn_edit_item *edits,
                            size_t count, uint32_t flags, csn_edit_result **ret,
                            csn_error **err);
CSN_API void csn_edit_result_free(csn_edit_result *r);

CSN_API csn_status csn_delete(csn_sandbox *sb, const char *path, uint32_t flags,
                              csn_error **err);
CSN_API csn_status csn_mkdir(csn_sandbox *sb, const char *path, uint32_t flags,
                             csn_error **err);
CSN_API csn_status csn_rename(csn_sandbox *sb, const char *from, const char *to, uint32_t flags,
                              csn_error **err);
/* The list has one item. Follows symlinks unless CSN_FILE_NOFOLLOW. */
CSN_API csn_status csn_stat(csn_sandbox *sb, const char *path, uint32_t flags,
                            csn_file_list **ret, csn_error **err);
CSN_API csn_status csn_list(csn_sandbox *sb, const char *path, uint32_t flags,
                            csn_file_list **ret, csn_error **err);
/* Patterns have ** * ? [..] {a,b} and match dotfiles. Results are sorted and relative to `path`
 * (NULL: the working directory). */
CSN_API csn_status csn_glob(csn_sandbox *sb, const char *pattern, const char *path,
                            uint32_t flags, csn_file_list **ret, csn_error **err);
CSN_API void csn_file_list_free(csn_file_list *l);

#define CSN_GREP_REGEX       (1u << 0)
#define CSN_GREP_IGNORE_CASE (1u << 1)
#define CSN_GREP_GITIGNORE   (1u << 2) /* leave out what .gitignore files name, and .git */

typedef struct csn_grep_opts {
    uint32_t size;
    uint32_t flags;   /* CSN_GREP_* */
    const char *path; /* file or directory; NULL: the working directory */
    const char *glob; /* NULL: every file */
    uint32_t context; /* lines before and after */
    uint64_t max;     /* matches; 0: 10 000 */
    csn_cancel *cancel;
} csn_grep_opts;

typedef struct csn_grep_match {
    const char *path; /* relative to opts.path; for a single file as given */
    uint64_t line;    /* 1-based */
    const char *text; /* without the newline */
    size_t text_len;
    uint32_t is_context; /* a line around a match */
} csn_grep_match;

typedef struct csn_grep_result {
    const csn_grep_match *items;
    size_t count;
    uint32_t truncated; /* max was reached */
} csn_grep_result;

/* Literal unless CSN_GREP_REGEX; sorted by path and line; binary files are skipped. */
CSN_API csn_status csn_grep(csn_sandbox *sb, const char *pattern, const csn_grep_opts *opts,
                            csn_grep_result **ret, csn_error **err);
CSN_API void csn_grep_result_free(csn_grep_result *r);

#define CSN_EVENT_CREATE   1u
#define CSN_EVENT_MODIFY   2u
#define CSN_EVENT_DELETE   3u
#define CSN_EVENT_RENAME   4u /* renamed into place; path is the new name */
#define CSN_EVENT_OVERFLOW 5u /* events were lost: list the directory again */

typedef struct csn_event {
    uint32_t kind; /* CSN_EVENT_* */
    uint32_t is_dir;
    char path[4096]; /* relative to the watched directory */
} csn_event;

CSN_API csn_status csn_watch_open(csn_sandbox *sb, const char *path, uint32_t flags,
                                  csn_watch **ret, csn_error **err);
/* CSN_TIMEOUT: no event; CSN_GONE: the sandbox has ended; CSN_NOT_FOUND: the directory itself
 * was removed. The last two come after all events before them, except that csn_destroy and
 * csn_close of this handle end the call at once. timeout_ms may be CSN_NO_LIMIT. */
CSN_API csn_status csn_watch_next(csn_watch *w, uint64_t timeout_ms, csn_event *ret,
                                  csn_error **err);
CSN_API void csn_watch_free(csn_watch *w);

/* ---- network ------------------------------------------------------------------------ */

/* Fields have the same meaning as in csn_config. */
typedef struct csn_net_opts {
    uint32_t size;
    uint32_t flags;               /* 0 */
    const char *network;          /* "none" (also NULL) or "all" */
    const char *const *net_allow; /* host[:port] */
    const char *const *net_deny;
    const char *const *packages;
} csn_net_opts;

/* Replaces all network rules of the sandbox. Connections that the new rules do not allow are
 * cut within a second. CSN_UNSUPPORTED for a sandbox that was opened without network rules. */
CSN_API csn_status csn_network_set(csn_sandbox *sb, const csn_net_opts *opts, csn_error **err);

typedef struct csn_net_event {
    uint64_t seq;
    int64_t time_ms;      /* since the epoch */
    const char *kind;     /* "name", "connect", "close" */
    const char *verdict;  /* "allow", "deny" */
    const char *protocol; /* "dns", "tcp", "tls", "http" ... as far as detected */
    const char *host;     /* or NULL, here and below */
    const char *address;
    const char *rule;     /* the rule that decided */
    const char *hint;     /* refusal: the smallest rule that would have allowed it */
    const char *why;      /* refusal: the reason, as a sentence */
    uint64_t port;        /* 0: none */
    uint64_t up, down;    /* bytes out of the sandbox and into it */
    uint64_t duration_ms; /* close: of the connection; connect: time to connect */
    uint64_t count;       /* how often the same refusal occurred; at least 1 */
} csn_net_event;

typedef struct csn_net_result {
    uint32_t size;
    uint32_t event_count;
    const char *mode;   /* "none", "transparent", "proxy"; "off": its gateway has ended */
    const char *detail; /* one sentence */
    const char *network;
    const char *const *net_allow; /* NULL-terminated; never NULL, here and below */
    const char *const *net_deny;
    const char *const *packages;
    const csn_net_event *events; /* oldest first; the number kept is bounded */
    uint64_t next;               /* pass as `since` to the next call */
    uint64_t lost;               /* number of dropped events */
} csn_net_result;

/* Returns the network rules of a sandbox and its network events from number `since` on (0:
 * all). */
CSN_API csn_status csn_network(csn_sandbox *sb, uint64_t since, csn_net_result **ret,
                               csn_error **err);
CSN_API void csn_network_free(csn_net_result *r);

/* ---- transfer ----------------------------------------------------------------------- */

typedef struct csn_transfer_opts {
    uint32_t size;
    uint32_t flags;
    uint64_t max_bytes;   /* 0: 16 GiB */
    uint64_t max_entries; /* 0: 1 000 000 */
    void (*on_progress)(void *ctx, uint64_t entries, uint64_t bytes);
    void *on_progress_ctx;
    csn_cancel *cancel;
    /* Called by an export for each file that programs of the host would run, such as a git
     * hook, with the reason. csn_export leaves it out unless CSN_TRANSFER_PROTECTED is set; a
     * tar contains it. */
    void (*on_protected)(void *ctx, const char *path, const char *rule);
    void *on_protected_ctx;
} csn_transfer_opts;

#define CSN_TRANSFER_PROTECTED (1u << 0) /* csn_export: protected files are written too */

/* csn_export copies a directory of the sandbox to a host directory (created if missing),
 * csn_import copies back. Symlinks are copied as links, set-id bits are dropped, devices,
 * sockets and fifos are left out. */
CSN_API csn_status csn_export(csn_sandbox *sb, const char *path, const char *host_dir,
                              const csn_transfer_opts *opts, csn_error **err);
CSN_API csn_status csn_import(csn_sandbox *sb, const char *host_dir, const char *path,
                              const csn_transfer_opts *opts, csn_error **err);
/* The same as a tar stream. */
CSN_API csn_status csn_export_tar(csn_sandbox *sb, const char *path, csn_write_fn sink,
                                  void *sink_ctx, const csn_transfer_opts *opts,
                                  csn_error **err);
CSN_API csn_status csn_import_tar(csn_sandbox *sb, const char *path, csn_read_fn source,
                                  void *source_ctx, const csn_transfer_opts *opts,
                                  csn_error **err);

/* ---- policy ------------------------------------------------------------------------- */

typedef struct csn_verdict {
    uint32_t allowed;
    csn_denial why;       /* rule and source are also set if a rule allowed the operation */
    const char *enforced; /* what enforces that rule for commands; NULL: not a rule of the
                             config */
} csn_verdict;

/* Checks an operation (CSN_OP_*) on a path, command or host against the policy, without doing
 * it. */
CSN_API csn_status csn_would_allow(csn_sandbox *sb, uint32_t op, const char *target,
                                   csn_verdict **ret, csn_error **err);
CSN_API void csn_verdict_free(csn_verdict *v);

/* ---- self-check --------------------------------------------------------------------- */

typedef struct csn_check {
    const char *name;   /* user, mount, pid, net, ipc, limits ..., or a directory, a program */
    const char *status; /* "ok"; "weaker": a weaker substitute works; "missing"; "info" */
    const char *detail; /* what was found */
    const char *fix;    /* how to fix it, a command if possible; or NULL */
} csn_check;

typedef struct csn_doctor_result {
    uint32_t ok;      /* nothing is missing */
    const char *rung; /* jail on this host: "full", "weaker" (needs ALLOW_WEAKER), "none" */
    const csn_check *items;
    size_t count;
    uint64_t duration_ms;
} csn_doctor_result;

/* Checks which parts of the backend `jail` work on this host: each layer by itself, and a real
 * sandbox on `workspace` (NULL: the current directory), inspected from inside. The call
 * succeeds even if the host lacks something. */
CSN_API csn_status csn_doctor(const char *workspace, csn_doctor_result **ret, csn_error **err);
CSN_API void csn_doctor_result_free(csn_doctor_result *r);

#ifdef __cplusplus
}
#endif

#include "caisson/records.h"
#include "caisson/workspace.h"
#endif
