/* remote.h: the interface between remote backends and the code that they share.
 *
 * A backend is a csn_remote_provider: functions that create, find and destroy a sandbox, run
 * one command and upload one file. This directory implements everything else on top of these
 * functions: opening on first use, the shell wrapper around each command, timeouts and
 * cancellation, background processes, ripgrep, and the record from which another process
 * connects to the sandbox. The core implements file operations with exec.
 *
 * Functions on one csn_remote may be called from several threads at once. */
#pragma once
#include <pthread.h>
#include <stdbool.h>

#include "base/buf.h"
#include "base/json_read.h"
#include "base/json_write.h"
#include "remote/backends.h"
#include "remote/http.h"
#include "remote/stream.h"

typedef struct csn_remote csn_remote;

/* One command, which the provider runs directly, without a shell. */
typedef struct csn_remote_cmd {
    const char *const *argv; /* argv[0] is absolute; valid UTF-8 */
    const char *const *env;  /* NAME=value, valid UTF-8; or NULL */
    bool as_root;            /* CSN_EXEC_SUDO */
    bool detached;           /* a background process: keeps running after the request */
    bool read_only;          /* it changes nothing in the sandbox */
    int32_t input_fd;        /* live stdin, or -1; needs CSN_REMOTE_STDIN */
    uint64_t deadline_ns;    /* of the request; on_interrupt may extend it */
    int32_t cancel_fds[3];
    const char *exec_id; /* unique; CSN_REMOTE_ID_VAR of the command and its descendants */
    uint64_t (*on_interrupt)(void *ctx, csn_status why); /* as csn_http_req's; or NULL */
    /* Receives the output in order. data NULL: `len` bytes could not be fetched. Return
     * CSN_REMOTE_STOP to end the request. */
    int (*on_output)(void *ctx, int stream, const void *data, size_t len);
    /* False: further bytes of this stream need not be fetched, only counted. */
    bool (*wants)(void *ctx, int stream);
    void *ctx; /* of the three callbacks */
} csn_remote_cmd;

#define CSN_REMOTE_STOP 1
#define CSN_REMOTE_DONE                                                                        \
    2 /* CSN_REMOTE_TEXT_ONLY: the command has ended; drain the response                       \
       */

/* The outcome of a command, as reported by the provider. */
typedef struct csn_remote_exit {
    bool sent;             /* the command may have started */
    bool started;          /* the provider confirmed the start */
    bool ended;            /* exit_code or signal is valid */
    bool timed_out;        /* killed inside the sandbox at its deadline */
    bool output_lost;      /* output is missing: the connection was interrupted */
    int exit_code;         /* -1: none */
    int signal;            /* 0: none */
    char spawn_error[200]; /* the provider's message when the start failed */
} csn_remote_exit;

#define CSN_REMOTE_STDIN (1u << 0) /* run accepts a live input_fd */
/* run carries UTF-8 text only and reports signals and exit codes as one number. The wrapper
 * therefore encodes output as base64 inside the sandbox and appends the exit status to it
 * (base64_stream.h), except for detached commands. */
#define CSN_REMOTE_TEXT_ONLY (1u << 1)
/* Each command runs in a separate container: commands cannot signal each other. run enforces
 * the deadline itself, and abandoning a request ends its command. */
#define CSN_REMOTE_EXEC_ISOLATED (1u << 2)

typedef struct csn_remote_provider {
    const char *name;
    const char *const *credentials; /* environment variables, for messages */
    uint32_t flags;
    const csn_layer *layers; /* for csn_info, unless the backend sets its own */
    size_t layer_count;
    /* Fills r->data from the environment, without sending a request. */
    csn_status (*configure)(csn_remote *r, csn_error **err);
    /* Creates the sandbox. The request is sent at most once. */
    csn_status (*create)(csn_remote *r, csn_error **err);
    /* Connects to the sandbox that `record` names. CSN_GONE when it has ended; CSN_NOT_FOUND
     * when the server does not know it: then destroy can be called nevertheless. */
    csn_status (*connect)(csn_remote *r, const char *record, csn_error **err);
    /* Appends the one-line text that connect needs. 0 or errno. */
    int (*write_record)(const csn_remote *r, csn_buf *out);
    csn_status (*destroy)(csn_remote *r, csn_error **err); /* idempotent */
    /* CSN_OK: `ret` has the outcome, also when on_output stopped the request. On failure,
     * ret->sent and ret->started tell whether the command may have run. CSN_GONE: no
     * sandbox. */
    csn_status (*run)(csn_remote *r, const csn_remote_cmd *cmd, csn_remote_exit *ret,
                      csn_error **err);
    /* Creates or replaces a file in an existing directory. */
    csn_status (*upload)(csn_remote *r, const char *path, const csn_source *content,
                         csn_error **err);
    csn_status (*extend)(csn_remote *r, uint64_t ms, csn_error **err);
    void (*release)(csn_remote *r); /* frees r->data, which may be NULL or partly initialised */
} csn_remote_provider;

struct csn_remote {
    const csn_remote_provider *provider;
    const csn_config *config;
    char *id;   /* caisson's id of the sandbox */
    void *data; /* the provider's */
    csn_http *http;
    int32_t stop_fd;      /* readable once calls must end; or -1 */
    bool connected;       /* another handle created the sandbox */
    pthread_mutex_t lock; /* guards exists to expires_ms */
    bool exists;          /* created or connected */
    bool destroyed;
    bool recorded;                         /* the record was written or read */
    int64_t expires_ms;                    /* 0: unknown */
    char *workdir, *home, *arch, *rg_path; /* set before the state is shared */
};

/* ---- operations: named by the ops tables of the providers ---- */

/* Creates the state only. csn_remote_ready or csn_remote_info later creates the sandbox or
 * connects to it. */
csn_status csn_remote_new(const csn_remote_provider *provider, const csn_config *config,
                          const char *id, const char *unix_path, bool connect, void **ret_state,
                          csn_error **err);
/* csn_remote_new and provider->configure. */
csn_status csn_remote_open(const csn_remote_provider *provider, const csn_config *config,
                           const char *id, bool connect, void **ret_state, csn_error **err);
void csn_remote_set_stop_fd(void *state, int32_t stop_fd);
csn_status csn_remote_ready(void *state, csn_error **err);
/* Writes the record. CSN_GONE if an earlier record has been removed, which means that the
 * sandbox was destroyed. */
csn_status csn_remote_commit(void *state, csn_error **err);
void csn_remote_close(void *state);
csn_status csn_remote_destroy(void *state, csn_error **err);
/* For csn_backend_ops.force_destroy. */
csn_status csn_remote_force_destroy(const csn_remote_provider *provider,
                                    const csn_config *config, const char *id, csn_error **err);
csn_status csn_remote_extend(void *state, uint64_t ms, csn_error **err);
csn_status csn_remote_info(void *state, csn_info_result *ret, csn_error **err);

csn_status csn_remote_exec(void *state, const csn_exec_req *req, const csn_sink *sink,
                           csn_exec_end *ret, csn_error **err);

extern const csn_process_ops csn_remote_process_ops; /* process_control.c */

/* Members of every ops table. */
#define CSN_REMOTE_OPS                                                                         \
    .set_stop_fd = csn_remote_set_stop_fd, .await_ready = csn_remote_ready,                    \
    .commit = csn_remote_commit, .close = csn_remote_close, .destroy = csn_remote_destroy,     \
    .exec = csn_remote_exec

/* ---- helpers for providers ---- */

/* provider.c. getenv; NULL for an empty value. */
const char *csn_remote_getenv(const char *name);
/* Replaces an owned string with a copy; NULL clears it. CSN_NOMEM leaves it unchanged. */
csn_status csn_remote_set_string(char **field, const char *value, csn_error **err);
/* A base URL without trailing slashes; malloc'd. */
char *csn_remote_trim_url(const char *url);
bool csn_remote_id_valid(const char *id);       /* letters, digits, _ and -: safe in a URL */
bool csn_remote_header_valid(const char *text); /* printable, no blank; NULL is valid */
/* "Authorization: Basic ..." for a user without password; malloc'd, or NULL. */
char *csn_remote_basic_auth(const char *user);
/* A member with an array of strings. */
void csn_remote_json_strings(csn_json *j, const char *key, const char *const *list);
/* Writes NAME=value strings as a JSON object. Of a repeated name only the last value is
 * written. */
void csn_remote_json_env(csn_json *j, const char *const *env);
/* The body as JSON. CSN_IO when it is not. */
csn_status csn_remote_parse(const csn_http_res *res, const char *what, csn_jval **ret,
                            csn_error **err);
/* Fails with the error for an HTTP status. what: the attempted action; message: the server's,
 * or NULL. */
csn_status csn_remote_http_error(const csn_remote *r, int status, const char *what,
                                 const char *message, csn_error **err);
/* csn_remote_http_error with the "message" member of a JSON body. */
csn_status csn_remote_response_error(const csn_remote *r, const csn_http_res *res,
                                     const char *what, csn_error **err);
csn_status csn_remote_gone(const csn_remote *r, csn_error **err); /* CSN_GONE: it has ended */
/* CSN_NOT_FOUND: the look-up of a recorded sandbox was answered with 404, which is also the
 * answer to another key. */
csn_status csn_remote_unknown(const csn_remote *r, csn_error **err);
/* CSN_AUTH naming the variables of the provider. */
csn_status csn_remote_missing_credential(const csn_remote_provider *provider, csn_error **err);
/* The configured lifetime, or 300 s. */
uint64_t csn_remote_lifetime_ms(const csn_config *c);
void csn_remote_expires_in(csn_remote *r, uint64_t ms);
uint64_t csn_remote_seconds(uint64_t ms); /* rounded up */
/* Copies a source to an unnamed file, for uploads that need the length in advance or a second
 * pass. */
csn_status csn_remote_spool(const csn_source *content, int *ret_fd, uint64_t *ret_size,
                            csn_error **err);
int csn_remote_random_id(char id[32]); /* 20 characters; 0 or errno */

/* The response stream of one command; provider.c. The parser's callback calls
 * csn_remote_output_fail for a malformed stream, which sets `error` and `why`. */
typedef struct csn_remote_output {
    const csn_remote_cmd *cmd;
    csn_remote_exit *exit;
    csn_stream_parser parser;
    csn_status error; /* negative: the stream was malformed; see why */
    csn_error *why;
    bool interrupted; /* on_interrupt was called */
    bool drain;       /* on_output returned CSN_REMOTE_DONE */
} csn_remote_output;
int csn_remote_output_fail(csn_remote_output *o, csn_status st); /* non-zero: stop */
/* on_body and on_interrupt of a request whose ctx is the csn_remote_output. */
int csn_remote_output_body(void *output, const void *data, size_t len);
uint64_t csn_remote_output_interrupt(void *output, csn_status why);

/* lifecycle.c. Reads the current record, which another process may have written. Always release
 * `out`. */
csn_status csn_remote_read_record(csn_remote *r, csn_buf *out, csn_error **err);
/* True if another process may have a handle of the same sandbox. */
static inline bool csn_remote_shared(const csn_remote *r)
{
    return r->connected || (r->config->flags & CSN_OPEN_DETACHED);
}

/* exec.c: runs `sh -c text sh ARGS...` and collects stdout, up to out->max bytes. */
typedef struct csn_remote_script {
    const char *text;
    const char *const *args; /* at most 7; or NULL */
    const csn_source *input; /* or NULL */
    uint64_t deadline_ns;
    bool ignore_stop; /* run even while the sandbox is being closed */
    bool read_only;   /* it changes nothing in the sandbox */
} csn_remote_script;
csn_status csn_remote_run_script(csn_remote *r, const csn_remote_script *script, csn_buf *out,
                                 int *ret_code, csn_error **err);

/* step_lock.c: serialises the commands of a sandbox whose state each command replaces, across
 * threads and across processes with a handle of the sandbox. Waits until the deadline (0: none)
 * or cancellation. */
typedef struct csn_step_lock csn_step_lock;
csn_status csn_step_lock_new(csn_step_lock **ret, csn_error **err);
void csn_step_lock_free(csn_step_lock *l);
csn_status csn_step_lock_acquire(csn_step_lock *l, const csn_remote *r, uint64_t deadline_ns,
                                 const int32_t cancel_fds[3], csn_error **err);
void csn_step_lock_release(csn_step_lock *l);
