/* remote.h: what sandboxes on other people's machines have in common.
 *
 * A provider is a csn_remote_kind: how its sandboxes are made, found again and ended, how one
 * command runs in them, how one file gets in. Everything else is here, once: the opening that
 * happens when it is needed, the wrapper that gives every command its directory, its stdin and
 * a mark by which its whole tree is found, timeouts and cancels, background processes, ports,
 * ripgrep, the note by which another process finds the sandbox again. File operations are
 * derived from exec by the core.
 *
 * An ops table names the csn_remote_* functions below; its own open, connect and check call
 * csn_remote_begin. Functions of one state are called from many threads at once. */
#pragma once
#include <pthread.h>
#include <stdbool.h>

#include "base/buf.h"
#include "base/json_write.h"
#include "caisson/backend.h"
#include "remote/http.h"

typedef struct csn_remote csn_remote;

/* One command as a provider is to run it: no shell to add, nothing to interpret. */
typedef struct csn_remote_cmd {
    const char *const *argv; /* argv[0] is absolute; valid UTF-8, no NUL */
    const char *const *env;  /* NAME=value, valid UTF-8; or NULL */
    bool root;               /* as the superuser (CSN_EXEC_SUDO) */
    bool let_go;             /* it lives on when on_output stops: a background process */
    bool reads;              /* it changes nothing */
    int32_t input_fd;        /* -1, or live stdin; only with CSN_REMOTE_STDIN */
    uint64_t deadline_ns;    /* of the request as such; on_alarm decides what happens then */
    int32_t cancel_fds[3];
    const char *mark; /* unique; in the environment of whatever the command starts */
    uint64_t (*on_alarm)(void *ctx, csn_status why); /* as csn_http_req.on_alarm; or NULL */
    /* Bytes as they come, in their order; data NULL: so many that nobody has any more.
     * CSN_REMOTE_ENOUGH: end the request. */
    int (*on_output)(void *ctx, int stream, const void *data, size_t len);
    /* False: what still comes of this stream is only counted. */
    bool (*wants)(void *ctx, int stream);
    void *ctx; /* of all three */
} csn_remote_cmd;

#define CSN_REMOTE_ENOUGH 1
#define CSN_REMOTE_DONE   2 /* with CSN_REMOTE_TEXT: the end is known; CSN_HTTP_LINGER */

typedef struct csn_remote_exit {
    bool sent;     /* the command may have started */
    bool started;  /* it has */
    bool ended;    /* exit_code or signal are told by the provider */
    bool late;     /* it was ended inside, at its deadline */
    int exit_code; /* -1: none */
    int signal;    /* 0: none */
    char why[200]; /* it could not be started: the provider's words */
    bool gap;      /* the stream was broken for a while: output of that time is missing */
} csn_remote_exit;

#define CSN_REMOTE_STDIN (1u << 0) /* run takes a live input_fd */
/* run carries text, and of an end a number: output goes through it in base64, and the end is
 * told in the output (base64_stream.c). A command that is let go speaks ASCII and is not coded.
 */
#define CSN_REMOTE_TEXT (1u << 1)
/* No command can reach another: `run` ends the tree by itself at the deadline, and a request
 * that is given up takes its command along. */
#define CSN_REMOTE_ALONE (1u << 2)

typedef struct csn_remote_kind {
    const char *name;
    const char *const *secrets; /* variables that make a credential, for messages */
    uint32_t flags;
    const csn_layer *layers; /* for csn_info, unless the backend's own says others */
    size_t layer_count;
    /* Fills r->own before there is a sandbox to speak of; r->found: one is to be found. */
    csn_status (*configure)(csn_remote *r, csn_error **err);
    /* Makes the sandbox; what is needed to find it again is kept in r->own. Never twice. */
    csn_status (*make)(csn_remote *r, csn_error **err);
    /* Finds the one that `note` speaks of. CSN_GONE when there is none any more. */
    csn_status (*find)(csn_remote *r, const char *note, csn_error **err);
    /* The text that find will need, on one line. */
    int (*note)(const csn_remote *r, csn_buf *out);
    csn_status (*end)(csn_remote *r, csn_error **err); /* ended already: CSN_OK */
    /* CSN_OK: `ret` says how it went, if only that the request was stopped by on_output.
     * Failed: ret->sent and ret->started say what may have happened. CSN_GONE: no such sandbox.
     */
    csn_status (*run)(csn_remote *r, const csn_remote_cmd *cmd, csn_remote_exit *ret,
                      csn_error **err);
    /* A whole file, made or replaced; its directory exists. */
    csn_status (*put)(csn_remote *r, const char *path, const csn_source *content,
                      csn_error **err);
    csn_status (*extend)(csn_remote *r, uint64_t ms, csn_error **err);
    void (*release)(csn_remote *r); /* frees r->own; it may be NULL or half made */
} csn_remote_kind;

struct csn_remote {
    const csn_remote_kind *kind;
    const csn_config *config;
    char *id; /* ours */
    void *own;
    csn_http *http;
    int32_t stop_fd;      /* -1, or readable once calls must end */
    bool found;           /* by connect: not of this handle's making */
    pthread_mutex_t lock; /* guards what follows */
    bool there, over;     /* made or found; ended by us */
    bool noted;           /* the note was written or read once */
    int64_t expires_ms;   /* 0: unknown */
    /* set once, before anybody else sees the state: */
    char *workdir, *home, *machine, *rg_path;
};

/* ---- for the ops table of a provider ---- */

/* A state without a sandbox yet; the rest happens in ready or, for a connected one, info. */
csn_status csn_remote_new(const csn_remote_kind *kind, const csn_config *config, const char *id,
                          const char *unix_path, bool find, void **ret_state, csn_error **err);
/* That, and what the kind configures: the rest of an open (find: of a connect). */
csn_status csn_remote_begin(const csn_remote_kind *kind, const csn_config *config,
                            const char *id, bool find, void **ret_state, csn_error **err);
void csn_remote_set_stop_fd(void *state, int32_t stop_fd);
csn_status csn_remote_ready(void *state, csn_error **err);
csn_status csn_remote_commit(void *state, csn_error **err);
void csn_remote_close(void *state);
csn_status csn_remote_destroy(void *state, csn_error **err);
csn_status csn_remote_extend(void *state, uint64_t ms, csn_error **err);
csn_status csn_remote_info(void *state, csn_info_result *ret, csn_error **err);

csn_status csn_remote_exec(void *state, const csn_exec_req *req, const csn_sink *sink,
                           csn_exec_end *ret, csn_error **err);

extern const csn_process_ops csn_remote_process_ops; /* process_control.c */

/* What all ops tables have in common. */
#define CSN_REMOTE_OPS                                                                         \
    .set_stop_fd = csn_remote_set_stop_fd, .await_ready = csn_remote_ready,                    \
    .commit = csn_remote_commit, .close = csn_remote_close, .destroy = csn_remote_destroy,     \
    .exec = csn_remote_exec

/* ---- for the code of a provider ---- */

/* What an HTTP status means; `what` was attempted; `said` (or NULL) are the server's words. */
csn_status csn_remote_refused(const csn_remote *r, int status, const char *what,
                              const char *said, csn_error **err);
/* NAME=value as an object. A name twice would be no JSON: the last one counts. */
void csn_remote_put_env(csn_json *j, const char *const *env);
/* CSN_AUTH naming the variables of the kind. */
csn_status csn_remote_no_credential(const csn_remote_kind *kind, csn_error **err);
/* The lifetime that was asked for, or the default of 300 s. */
uint64_t csn_remote_lifetime_ms(const csn_config *c);
void csn_remote_expires_in(csn_remote *r, uint64_t ms);
/* The note as it is now; another process may have written it. Release `out` in any case. */
csn_status csn_remote_read_note(csn_remote *r, csn_buf *out, csn_error **err);
/* May another process have a handle of the same sandbox? */
static inline bool csn_remote_shared(const csn_remote *r)
{
    return r->found || (r->config->flags & CSN_OPEN_DETACHED);
}
/* CSN_UNSUPPORTED naming the first of the options that are set; a provider passes those it can
 * do. */
#define CSN_REMOTE_IMAGE   (1u << 0)
#define CSN_REMOTE_NET     (1u << 1) /* network all or none */
#define CSN_REMOTE_NET_OUT (1u << 2) /* net_allow, net_deny */
#define CSN_REMOTE_PUBLISH (1u << 3)
#define CSN_REMOTE_MEMORY  (1u << 4)
#define CSN_REMOTE_PIDS    (1u << 5)
#define CSN_REMOTE_CPU     (1u << 6)
#define CSN_REMOTE_DISK    (1u << 7)
csn_status csn_remote_check(const csn_remote_kind *kind, const csn_config *c, uint32_t can,
                            csn_error **err);

/* step_lock.c: for providers whose sandbox can do one thing at a time: among all threads, and
 * all processes that know it, one has the turn. Waits until the deadline (0: none) or a cancel.
 */
typedef struct csn_step_lock csn_step_lock;
csn_status csn_step_lock_new(csn_step_lock **ret, csn_error **err);
void csn_step_lock_free(csn_step_lock *t);
csn_status csn_step_lock_take(csn_step_lock *t, const csn_remote *r, uint64_t deadline_ns,
                              const int32_t cancel_fds[3], csn_error **err);
void csn_step_lock_give(csn_step_lock *t);

/* ---- between the files of this directory ---- */

/* lifecycle.c: the directory in which the note is: -errno, -ENOENT when there is none. */
int csn_remote_note_dir(const csn_remote *r, bool make);

#define CSN_REMOTE_MARK "CAISSON_MARK" /* in the environment of a command and all it starts */

/* shell.c: a command in its wrapper. Zero it; release it. */
typedef struct csn_remote_shell {
    char mark[32];    /* unique; a temporary file has it in its name */
    char input[64];   /* path of a file that becomes stdin, "" for none */
    bool coded;       /* its output is to be decoded by csn_remote_coded */
    csn_buf program;  /* the text of the wrapper */
    char **argv;      /* owned */
    const char **env; /* the array is owned, the texts are the request's */
} csn_remote_shell;

int csn_remote_mark(char mark[32]); /* 0 or errno */
/* The command of req. small_input: bytes of stdin to carry in the program itself; or NULL. */
csn_status csn_remote_wrap(csn_remote_shell *s, const csn_exec_req *req,
                           const csn_buf *small_input, csn_error **err);
void csn_remote_shell_release(csn_remote_shell *s);

/* base64_stream.c: output that came through CSN_REMOTE_TEXT. */
extern const char csn_remote_coder[]; /* sh: MARK PROGRAM ARGS... */
/* Answers "265" where csn_remote_coder can tell a signal from an exit. */
extern const char csn_remote_coder_test[];
typedef struct csn_remote_coded {
    const char *mark;
    int (*on_output)(void *ctx, int stream, const void *data, size_t len); /* decoded */
    void *ctx;
    struct {
        csn_buf line; /* not complete yet */
        csn_buf held; /* decoded: what may be the beginning of the end */
        bool over;
    } of[2];
    int status; /* of the end: an exit code, or 256 and a signal */
} csn_remote_coded;
void csn_remote_coded_init(csn_remote_coded *c, const char *mark,
                           int (*on_output)(void *, int, const void *, size_t), void *ctx);
void csn_remote_coded_release(csn_remote_coded *c);
/* As on_output; CSN_REMOTE_DONE once both streams have told the end. */
int csn_remote_coded_take(csn_remote_coded *c, int stream, const void *data, size_t len);
/* Nothing more will come: passes on what was held back, and says in `x` what is known. */
void csn_remote_coded_end(csn_remote_coded *c, csn_remote_exit *x);

/* exec.c: a script of ours inside, with its arguments; its stdout (at most out->max bytes). The
 * exit code goes to *ret_code. Ends at the deadline, and with the sandbox unless `always`. */
typedef struct csn_remote_script {
    const char *text;
    const char *const *args; /* NULL-terminated, or NULL */
    const csn_source *input; /* or NULL */
    uint64_t deadline_ns;
    bool always;
    bool reads; /* it changes nothing */
} csn_remote_script;
csn_status csn_remote_ask(csn_remote *r, const csn_remote_script *script, csn_buf *out,
                          int *ret_code, csn_error **err);
/* Ends everything that has the mark: TERM, a grace, KILL. */
void csn_remote_kill(csn_remote *r, const char *mark);
/* ripgrep.c: ripgrep: the image's own, else ours, if it runs there. */
void csn_remote_ensure_rg(csn_remote *r);
