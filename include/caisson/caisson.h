/* caisson.h: one sandbox interface, many places to run it.
 * SPDX-License-Identifier: Apache-2.0
 *
 * The whole public API in reading order: status and errors, configuration, sandboxes, commands,
 * background processes, files, search, transfer, policy, audit.
 *
 * Rules that hold for every call:
 *  - It returns CSN_OK or a negative status. `csn_error **err` is last and may be NULL. On
 * failure no `ret_` argument is touched and *err (if given) is a new error to free; on success
 * *err is untouched.
 *  - A result is one block: free it with its own _free function (NULL is fine); every pointer
 * in it borrows from it.
 *  - An options struct starts with `size` = sizeof(the struct): that is its version. NULL
 * options and zero fields mean defaults. An option the backend cannot honour is
 * CSN_UNSUPPORTED.
 *  - One sandbox may be used from many threads at once. csn_close() ends the calls still
 * running.
 *  - The library never prints, exits, forks its host, or touches its signal handlers. */
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

typedef struct csn_sandbox csn_sandbox; /* one agent's room */
typedef struct csn_process csn_process; /* a background process of a sandbox */
typedef struct csn_cancel csn_cancel;   /* lets another thread stop a call */
typedef struct csn_watch csn_watch;     /* a stream of file events */
typedef struct csn_error csn_error;     /* why a call failed */

/* ---- status and errors ------------------------------------------------------------------- */

/* One list: C name, number, the word in JSON, the HTTP status, a text. */
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

/* A refusal as data: what was asked, what it resolved to, which rule refused it, where the rule
 * comes from, and the smallest rule that would allow it. Any field but op may be NULL. */
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
CSN_API const char *csn_error_path(const csn_error *e); /* may be NULL */
CSN_API const char *csn_error_hint(const csn_error *e); /* may be NULL */
CSN_API int csn_error_errno(const csn_error *e);        /* 0 when no system call failed */
CSN_API const csn_denial *csn_error_denial(const csn_error *e); /* NULL unless DENIED/OUTSIDE */
CSN_API void csn_error_free(csn_error *e);

/* Debug lines of the library; off by default. Set before the first other call. */
typedef void (*csn_log_fn)(void *ctx, const char *line);
CSN_API void csn_set_log(csn_log_fn fn, void *ctx);

/* A cancel handle can be given to any number of calls; firing it stops them all, and every
 * later call it is given to. Fire is safe from any thread and from signal handlers. Free it
 * when no call uses it any more. */
CSN_API csn_status csn_cancel_new(csn_cancel **ret, csn_error **err);
CSN_API void csn_cancel_fire(csn_cancel *c);
CSN_API void csn_cancel_free(csn_cancel *c);

/* ---- configuration ------------------------------------------------------------------------
 */

#define CSN_NO_LIMIT UINT64_MAX /* for times and sizes: none */

#define CSN_OPEN_DETACHED     (1u << 0) /* lives on after close and after this process */
#define CSN_OPEN_NOFOLLOW     (1u << 1) /* file calls refuse every symlink */
#define CSN_OPEN_ALLOW_WEAKER (1u << 2) /* accept less isolation than the backend promises */

/* Operations a rule can speak of. */
#define CSN_OP_READ   (1u << 0)
#define CSN_OP_WRITE  (1u << 1)
#define CSN_OP_DELETE (1u << 2)
#define CSN_OP_EXEC   (1u << 3)
#define CSN_OP_NET    (1u << 4)

/* One per-operation rule. `path` is a directory or file (it covers all below), or a glob when
 * it has one of *?[{ ; for exec it is a command word; for net it is a host, and the rule one of
 * net_allow or net_deny. Of all others the most specific wins; deny wins ties. */
typedef struct csn_rule {
    uint32_t ops;   /* CSN_OP_* */
    uint32_t allow; /* 1 allow, 0 deny */
    const char *path;
} csn_rule;

typedef struct csn_config {
    uint32_t size;
    uint32_t flags;          /* CSN_OPEN_* */
    const char *backend;     /* NULL: $CAISSON_BACKEND, else VERCEL=1 means vercel, else jail */
    const char *name;        /* a second handle for connect; NULL: none */
    const char *workspace;   /* host directory; NULL: the current one (a jail refuses to take a
                              * directory of the system so). local: the base */
    const char *workdir;     /* first working directory inside; NULL: the workspace */
    const char *home;        /* host directory for HOME; NULL: a private one */
    const char *const *read; /* further readable host directories, NULL-terminated */
    const char *const *write;    /* further writable host directories */
    const char *const *deny;     /* paths inside the above that are refused */
    const char *const *commands; /* if given: only these command words may be run */
    const char *const *env;      /* NAME (taken from the caller) or NAME=value */
    const csn_rule *rules;
    size_t rule_count;
    uint64_t timeout_ms;  /* of one command; 0: 30 000 */
    uint64_t output_max;  /* bytes kept per stream; 0: 1 MiB */
    uint64_t lifetime_ms; /* of the sandbox; 0: the backend's default (local: none) */
    uint64_t memory_max;  /* bytes; 0: none */
    uint64_t pids_max;
    uint64_t cpu_milli; /* 1000 = one cpu */
    uint64_t disk_max;
    uint64_t file_max;            /* size of one file */
    const char *network;          /* "none", "all"; NULL: the backend's default */
    const char *const *net_allow; /* host[:port] */
    const char *const *net_deny;
    const char *const *packages;   /* package-manager presets */
    const char *const *publish;    /* ports inside, shown on the host's loopback */
    const char *const *host_ports; /* ports of the host's loopback, lent inward */
    const char *image;             /* docker, dagger, e2b template */
    const char *audit; /* file for the audit log; NULL: default place; "none": off */
    const char *const *workspaces; /* further HOST[:INSIDE][:rw|ro|cow] */
} csn_config;

/* Reads the JSON of a policy or configuration file (the names of csn_config; unknown keys are
 * refused by name). `source` names it in messages. Free with csn_config_free. */
CSN_API csn_status csn_config_parse(const char *json, size_t len, const char *source,
                                    csn_config **ret, csn_error **err);
CSN_API void csn_config_free(csn_config *c);

/* ---- sandboxes ----------------------------------------------------------------------------
 */

CSN_API csn_status csn_open(const csn_config *config, csn_sandbox **ret, csn_error **err);
/* By id or name, from any process of the same user. */
CSN_API csn_status csn_connect(const char *id, csn_sandbox **ret, csn_error **err);
/* Ends running calls and frees the handle. A sandbox that is not detached is destroyed. */
CSN_API void csn_close(csn_sandbox *sb);
/* Ends every process and removes everything of the sandbox; the handle stays to be closed and
 * every later call on it is CSN_GONE. Destroying twice is fine. */
CSN_API csn_status csn_destroy(csn_sandbox *sb, csn_error **err);
/* By id or name, from any process of the same user, without a handle: also one that does not
 * answer, whose processes are then killed from outside. One that has ended by itself is CSN_OK;
 * one that is not on record, because it was destroyed before, CSN_NOT_FOUND. */
CSN_API csn_status csn_destroy_id(const char *id, csn_error **err);
CSN_API const char *csn_id(const csn_sandbox *sb);

typedef struct csn_layer {
    const char *name;   /* user, mount, pid, net, limits, landlock, seccomp, files, exec ... */
    const char *status; /* "on", "off", "weaker"; of net also "transparent", "proxy" */
    const char *detail; /* one sentence */
} csn_layer;

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
        *capabilities; /* words, NULL-terminated: what is native or derived here */
    const csn_layer *layers;
    size_t layer_count;
    int64_t created_ms; /* since the epoch */
    int64_t expires_ms; /* 0: never */
    int64_t keeper_pid; /* 0: none yet */
} csn_info_result;

CSN_API csn_status csn_info(csn_sandbox *sb, csn_info_result **ret, csn_error **err);
CSN_API void csn_info_free(csn_info_result *r);

typedef struct csn_sandbox_entry {
    const char *id;
    const char *name; /* or NULL */
    const char *backend;
    const char *state; /* "running", "gone" */
    const char *workspace;
    int64_t created_ms;
} csn_sandbox_entry;

typedef struct csn_sandbox_list {
    const csn_sandbox_entry *items;
    size_t count;
} csn_sandbox_list;

/* The detached sandboxes of this user, oldest first. Sweeps what crashed ones left behind. */
CSN_API csn_status csn_sandboxes(csn_sandbox_list **ret, csn_error **err);
CSN_API void csn_sandbox_list_free(csn_sandbox_list *l);

CSN_API csn_status csn_set_workdir(csn_sandbox *sb, const char *path, csn_error **err);
/* Removes everything in the workspace; the directory itself stays. */
CSN_API csn_status csn_cleanup(csn_sandbox *sb, csn_error **err);
/* The sandbox ends this long from now. */
CSN_API csn_status csn_extend(csn_sandbox *sb, uint64_t ms, csn_error **err);

/* What only some backends have; elsewhere CSN_UNSUPPORTED. Capabilities: snapshot, rollback,
 * fork, pause. */
typedef struct csn_snapshot_result {
    uint32_t size;
    const char *snapshot; /* opaque, and valid as `image` of a config of the same backend */
} csn_snapshot_result;

/* Keeps the files as they are now. Where the provider has to stop the machine for it, running
 * commands and processes end. */
CSN_API csn_status csn_snapshot(csn_sandbox *sb, csn_snapshot_result **ret, csn_error **err);
CSN_API void csn_snapshot_result_free(csn_snapshot_result *r);
/* The sandbox's files become those of a snapshot of it. */
CSN_API csn_status csn_rollback(csn_sandbox *sb, const char *snapshot, csn_error **err);
/* Another sandbox that begins with the files of this one and is configured like it; `name` may
 * be NULL. It is detached if this one is. */
CSN_API csn_status csn_fork(csn_sandbox *sb, const char *name, csn_sandbox **ret,
                            csn_error **err);
/* Nothing inside runs, and no lifetime passes, until it is resumed by this call or by
 * csn_connect. Both are fine twice. */
CSN_API csn_status csn_pause(csn_sandbox *sb, csn_error **err);
CSN_API csn_status csn_resume(csn_sandbox *sb, csn_error **err);

/* ---- commands -----------------------------------------------------------------------------
 */

#define CSN_STDOUT 1
#define CSN_STDERR 2

#define CSN_EXEC_MERGE     (1u << 0) /* one pipe for both streams: true arrival order */
#define CSN_EXEC_KEEP_TAIL (1u << 1) /* of output over output_max, keep the end */
#define CSN_EXEC_KEEP_BOTH (1u << 2) /* keep half at the start and half at the end */
#define CSN_EXEC_STDIN_FD  (1u << 3) /* stdin comes from stdin_fd */
#define CSN_EXEC_RESTART   (1u << 4) /* start the session afresh */
#define CSN_EXEC_SUDO      (1u << 5) /* where the backend has it */
#define CSN_EXEC_PTY       (1u << 6) /* csn_start only: a terminal, rows x cols */
#define CSN_EXEC_STDIN     (1u << 7) /* csn_start only: open a pipe for csn_process_write */
#define CSN_EXEC_TIED      (1u << 8) /* csn_start only: ends with its handle or its owner */

/* Live output, in order, never cut. Called on the calling thread; non-zero cancels the command.
 */
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
    int32_t stdin_fd; /* with CSN_EXEC_STDIN_FD; stays the caller's */
    uint16_t rows, cols;
    const char *session; /* a persistent shell of this name; csn_sh only */
    /* Of the sandbox's network only these hosts (rules as in net_allow) and those of these
     * presets, for this command and what it starts; an empty list is none. NULL: all of it.
     * What the sandbox's rules do not permit is CSN_DENIED before anything runs. The command
     * has a loopback of its own then, and what it leaves running has no network. Not for
     * sessions and background processes: CSN_UNSUPPORTED. */
    const char *const *allowed_domains;
    const char *const *package_managers;
    csn_output_fn on_output;
    void *on_output_ctx;
    csn_cancel *cancel;
} csn_exec_opts;

#define CSN_OPTS(type, ...) (&(type){.size = sizeof(type), __VA_ARGS__})

typedef struct csn_output {
    const char *data; /* NUL-terminated for convenience; may hold NUL bytes */
    size_t len;
    uint64_t total; /* bytes the command wrote, kept or not */
    uint64_t head;  /* bytes of data that are the start of the output; the rest is the end */
} csn_output;

typedef struct csn_exec_result {
    uint32_t size;
    int32_t exit_code;  /* -1: unknown or ended by a signal */
    const char *signal; /* "SIGKILL", or NULL */
    csn_output out, err, merged;
    double duration_ms;
    uint32_t timed_out;
    uint32_t interrupted; /* by timeout or cancel */
    uint32_t failed;      /* could not run, non-zero, or ended by a signal */
    uint32_t truncated;
    const char *truncated_by; /* "bytes" or NULL */
    const char *killed_by;    /* timeout cancel memory pids cpu disk policy signal, or NULL */
    double cpu_ms;
    uint64_t peak_memory; /* bytes */
    const csn_denial *denials;
    size_t denial_count;
    const csn_layer *layers;
    size_t layer_count;
} csn_exec_result;

/* argv is passed as it is: no shell, nothing joined. A non-zero exit is data, not an error. */
CSN_API csn_status csn_exec(csn_sandbox *sb, const char *const *argv, const csn_exec_opts *opts,
                            csn_exec_result **ret, csn_error **err);
/* bash -c STRING where there is a bash, else sh -c STRING. */
CSN_API csn_status csn_sh(csn_sandbox *sb, const char *command, const csn_exec_opts *opts,
                          csn_exec_result **ret, csn_error **err);
CSN_API void csn_exec_result_free(csn_exec_result *r);

/* ---- background processes -----------------------------------------------------------------
 */

/* Start and return at once. timeout_ms 0 means none here; on_output, session are invalid. */
CSN_API csn_status csn_start(csn_sandbox *sb, const char *const *argv,
                             const csn_exec_opts *opts, csn_process **ret, csn_error **err);
CSN_API csn_status csn_start_sh(csn_sandbox *sb, const char *command, const csn_exec_opts *opts,
                                csn_process **ret, csn_error **err);
/* A process that is already there. Free every process handle before closing the sandbox. */
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
    const csn_denial *denials; /* of csn_process_wait: what was found when it had ended */
    size_t denial_count;
} csn_process_list;

CSN_API csn_status csn_processes(csn_sandbox *sb, csn_process_list **ret, csn_error **err);
CSN_API void csn_process_list_free(csn_process_list *l);

typedef struct csn_log_chunk {
    const char *data;
    size_t len;
    uint64_t offset;  /* of data[0] in the stream */
    uint64_t dropped; /* bytes between the offset asked for and `offset` that are gone */
    uint64_t total;   /* written so far */
    uint32_t end;     /* no more will come */
} csn_log_chunk;

/* Output from byte `offset` on, kept in a bounded ring. Waits up to wait_ms for more when there
 * is none yet. A pty has only CSN_STDOUT. */
CSN_API csn_status csn_process_logs(csn_process *p, int stream, uint64_t offset,
                                    uint64_t wait_ms, csn_log_chunk **ret, csn_error **err);
CSN_API void csn_log_chunk_free(csn_log_chunk *c);
/* Waits for the end. CSN_TIMEOUT when it still runs. The list has one item. With `ret` a jail
 * looks through its workspace then, as after a command: the list's denials tell what was set
 * aside. Without, the next command tells it. */
CSN_API csn_status csn_process_wait(csn_process *p, uint64_t timeout_ms, csn_process_list **ret,
                                    csn_error **err);
/* To the process group; SIGKILL and SIGTERM to the whole tree. */
CSN_API csn_status csn_process_signal(csn_process *p, int signo, csn_error **err);
CSN_API csn_status csn_process_write(csn_process *p, const void *data, size_t len,
                                     uint64_t timeout_ms, csn_error **err);
CSN_API csn_status csn_process_close_stdin(csn_process *p, csn_error **err);
CSN_API csn_status csn_process_resize(csn_process *p, uint16_t rows, uint16_t cols,
                                      csn_error **err);
/* Until something listens on the sandbox's loopback port; until a process wrote `text`. */
CSN_API csn_status csn_wait_port(csn_sandbox *sb, uint16_t port, uint64_t timeout_ms,
                                 csn_error **err);
CSN_API csn_status csn_wait_log(csn_sandbox *sb, const char *text, uint64_t timeout_ms,
                                csn_error **err);

/* ---- files --------------------------------------------------------------------------------
 */

/* Paths are relative to the working directory; `~` is the home; a leading `/` is the sandbox's
 * root. Any byte but NUL may occur in a name. */

typedef struct csn_file_info {
    const char *path;   /* list: the name; glob: relative to PATH; stat: as asked */
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
    uint32_t truncated; /* more than the limit: the first `count` in order of the directory */
} csn_file_list;

#define CSN_FILE_NOFOLLOW                                                                      \
    (1u << 0)                         /* refuse symlinks in the path; stat: of the link itself \
                                       */
#define CSN_FILE_CREATE     (1u << 1) /* write: only if there is none */
#define CSN_FILE_APPEND     (1u << 2)
#define CSN_FILE_SYNC       (1u << 3) /* on disk before the call returns */
#define CSN_FILE_RECURSIVE  (1u << 4) /* delete, watch */
#define CSN_FILE_NUMBERS    (1u << 5) /* read: "%6d\t" before each line */
#define CSN_FILE_TEXT       (1u << 6) /* read: no image detection */
#define CSN_FILE_NO_PARENTS (1u << 7) /* write, mkdir: do not create missing directories */
#define CSN_FILE_HASH       (1u << 8) /* read: fill `hash` */

typedef struct csn_read_opts {
    uint32_t size;
    uint32_t flags;
    uint64_t offset;   /* first line, 0-based; read_bytes: first byte */
    uint64_t limit;    /* lines; 0: 2000; read_bytes: bytes, 0: to the end */
    uint64_t byte_max; /* of the content; 0: 256 KiB text, 16 MiB image */
    csn_cancel *cancel;
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

/* Gets bytes; non-zero stops the transfer without error. */
typedef int (*csn_write_fn)(void *ctx, const void *data, size_t len);
/* Gives bytes: how many, 0 at the end, negative to fail. */
typedef int64_t (*csn_read_fn)(void *ctx, void *buf, size_t len);

CSN_API csn_status csn_read_bytes(csn_sandbox *sb, const char *path, const csn_read_opts *opts,
                                  csn_write_fn sink, void *sink_ctx, csn_error **err);

typedef struct csn_write_opts {
    uint32_t size;
    uint32_t flags;
    const char *if_hash; /* SHA-256 in hex: CSN_CONFLICT if the file is another one */
    uint32_t mode;       /* of a new file; 0: 0644 & ~umask */
} csn_write_opts;

typedef struct csn_write_result {
    const char *path; /* as asked */
    const char *resolved_path;
    uint64_t bytes;
    const char *hash; /* SHA-256 of what was written; NULL after append */
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
    uint32_t mode;       /* 0: keep, or 0644 & ~umask */
    const char *if_hash; /* or NULL */
} csn_file_content;

/* All or nothing. Flags: CREATE, SYNC, NOFOLLOW, NO_PARENTS. */
CSN_API csn_status csn_write_many(csn_sandbox *sb, const csn_file_content *files, size_t count,
                                  uint32_t flags, csn_error **err);

/* The files of a tar stream, below `path` (NULL: the working directory), all or nothing. */
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

/* Edits in order, all or nothing; CSN_CONFLICT when somebody else changed the file meanwhile.
 */
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
/* One item. Follows symlinks unless CSN_FILE_NOFOLLOW. */
CSN_API csn_status csn_stat(csn_sandbox *sb, const char *path, uint32_t flags,
                            csn_file_list **ret, csn_error **err);
CSN_API csn_status csn_list(csn_sandbox *sb, const char *path, uint32_t flags,
                            csn_file_list **ret, csn_error **err);
/* ** * ? [..] {a,b}; dotfiles count; sorted; relative to path (NULL: the working directory). */
CSN_API csn_status csn_glob(csn_sandbox *sb, const char *pattern, const char *path,
                            uint32_t flags, csn_file_list **ret, csn_error **err);
CSN_API void csn_file_list_free(csn_file_list *l);

#define CSN_GREP_REGEX       (1u << 0)
#define CSN_GREP_IGNORE_CASE (1u << 1)

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
    const char *path; /* relative to opts.path; for a single file as asked */
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
#define CSN_EVENT_RENAME   4u /* into place; path is the new name */
#define CSN_EVENT_OVERFLOW 5u /* events were lost: look again */

typedef struct csn_event {
    uint32_t kind; /* CSN_EVENT_* */
    uint32_t is_dir;
    char path[4096]; /* relative to the watched directory */
} csn_event;

CSN_API csn_status csn_watch_open(csn_sandbox *sb, const char *path, uint32_t flags,
                                  csn_watch **ret, csn_error **err);
/* CSN_TIMEOUT when nothing happened. */
CSN_API csn_status csn_watch_next(csn_watch *w, uint64_t timeout_ms, csn_event *ret,
                                  csn_error **err);
CSN_API void csn_watch_free(csn_watch *w);

/* ---- network ------------------------------------------------------------------------------
 */

/* As the fields of csn_config. */
typedef struct csn_net_opts {
    uint32_t size;
    uint32_t flags;               /* 0 */
    const char *network;          /* "none" (also NULL) or "all" */
    const char *const *net_allow; /* host[:port] */
    const char *const *net_deny;
    const char *const *packages;
} csn_net_opts;

/* From now on the rules are these, instead of all it had. What they no longer allow is cut
 * within a second. CSN_UNSUPPORTED for a sandbox that was opened without network rules. */
CSN_API csn_status csn_network_set(csn_sandbox *sb, const csn_net_opts *opts, csn_error **err);

typedef struct csn_net_event {
    uint64_t seq;
    int64_t time_ms;      /* since the epoch */
    const char *kind;     /* "name", "connect", "close" */
    const char *verdict;  /* "allow", "deny" */
    const char *protocol; /* "dns", "tcp", "tls", "http" ... as far as it was seen */
    const char *host;     /* or NULL, here and below */
    const char *address;
    const char *rule;     /* that decided */
    const char *hint;     /* of a refusal: the smallest rule that would have allowed it */
    const char *why;      /* of a refusal, for people */
    uint64_t port;        /* 0: none */
    uint64_t up, down;    /* bytes out of the sandbox and into it */
    uint64_t duration_ms; /* close: of the connection; connect: until it was made */
    uint64_t count;       /* of the same refusal; at least 1 */
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
    const csn_net_event *events; /* oldest first; a bounded number is kept */
    uint64_t next;               /* `since` of the next call */
    uint64_t lost;               /* events that were not kept */
} csn_net_result;

/* The rules of a sandbox's network and what happened on it, from event `since` on (0: all). */
CSN_API csn_status csn_network(csn_sandbox *sb, uint64_t since, csn_net_result **ret,
                               csn_error **err);
CSN_API void csn_network_free(csn_net_result *r);

/* ---- transfer -----------------------------------------------------------------------------
 */

typedef struct csn_transfer_opts {
    uint32_t size;
    uint32_t flags;
    uint64_t max_bytes;   /* 0: 16 GiB */
    uint64_t max_entries; /* 0: 1 000 000 */
    void (*on_progress)(void *ctx, uint64_t entries, uint64_t bytes);
    void *on_progress_ctx;
    csn_cancel *cancel;
} csn_transfer_opts;

/* A directory of the sandbox to a host directory (made if missing), and back. Symlinks are
 * copied as links, set-id bits are dropped, devices, sockets and fifos are left out. */
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

/* ---- policy and audit ---------------------------------------------------------------------
 */

typedef struct csn_verdict {
    uint32_t allowed;
    csn_denial why; /* rule and source are set for an allowed one too, where a rule decided */
} csn_verdict;

/* What would the policy say to this operation (CSN_OP_*) on this path, command or host? */
CSN_API csn_status csn_would_allow(csn_sandbox *sb, uint32_t op, const char *target,
                                   csn_verdict **ret, csn_error **err);
CSN_API void csn_verdict_free(csn_verdict *v);

/* Every line of a sandbox's audit log (JSON, without the newline), by id or name, also after
 * the sandbox has ended. */
typedef int (*csn_line_fn)(void *ctx, const char *line, size_t len);
CSN_API csn_status csn_audit_read(const char *id, csn_line_fn fn, void *ctx, csn_error **err);

typedef struct csn_audit_report {
    uint32_t ok;
    uint64_t lines;     /* that were checked */
    uint64_t bad_line;  /* 1-based; 0: none */
    const char *reason; /* NULL when ok */
} csn_audit_report;

/* Recomputes the chain: finds any edit, cut or reordering. */
CSN_API csn_status csn_audit_verify(const char *id, csn_audit_report **ret, csn_error **err);
CSN_API void csn_audit_report_free(csn_audit_report *r);

/* ---- self-check ---------------------------------------------------------------------------
 */

typedef struct csn_check {
    const char *name;   /* user, mount, pid, net, ipc, limits ..., or a directory, a program */
    const char *status; /* "ok"; "weaker": something less stands in; "missing"; "info" */
    const char *detail; /* what was seen */
    const char *fix;    /* what to do about it, a command where there is one; or NULL */
} csn_check;

typedef struct csn_doctor_result {
    uint32_t ok;      /* nothing is missing */
    const char *rung; /* what a jail is here: "full", "weaker" (if allowed to be), "none" */
    const csn_check *items;
    size_t count;
    uint64_t duration_ms;
} csn_doctor_result;

/* What of the backend `jail` works on this host: each layer by itself, and a real sandbox on
 * `workspace` (NULL: the current directory), looked at from inside. A host that lacks something
 * is no failure of the call. */
CSN_API csn_status csn_doctor(const char *workspace, csn_doctor_result **ret, csn_error **err);
CSN_API void csn_doctor_result_free(csn_doctor_result *r);

#ifdef __cplusplus
}
#endif
#endif
