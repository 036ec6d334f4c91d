/* dagger.h: internal interface of the dagger backend.
 *
 * The server is a session of a Dagger engine on the loopback interface: GraphQL with a token. A
 * container is an immutable value with an id; running a command produces another container. A
 * sandbox is represented by the id of its current container, so commands run one after another
 * (step lock), and an abandoned command has no effect. */
#pragma once
#include "remote/remote.h"

extern const csn_remote_provider csn_dagger_provider;

typedef struct csn_dagger_session {
    unsigned port; /* 0: none yet */
    char *token;
    /* Only for a session that caisson started: */
    int stdin_fd;        /* closing it ends the session; -1: the session holds the pipe */
    pid_t pid;           /* 0: not started by caisson */
    uint64_t start_time; /* of the pid: field 22 of /proc/PID/stat */
} csn_dagger_session;

typedef struct csn_dagger {
    csn_dagger_session session;
    csn_step_lock *step_lock;
    char *container; /* current; replaced with the step lock held, guarded by r->lock */
    char *user;      /* of commands; "": root. Set once */
    _Atomic(bool) no_node_query; /* an older engine: loadContainerFromID, not node(id:) */
} csn_dagger;

#define CSN_DAGGER_IMAGE    "python:3.13-slim"
#define CSN_DAGGER_WORKDIR  "/work"
#define CSN_DAGGER_SNAPSHOT "snapshot:"    /* prefix of a container id, in place of an image */
#define CSN_DAGGER_STEP_VAR "CAISSON_TURN" /* set only in the wrapper's processes */

static inline csn_dagger *csn_dagger_of(const csn_remote *r)
{
    return r->data;
}

/* session.c */
/* CSN_AUTH unless the environment names a session or the dagger program is installed. */
csn_status csn_dagger_session_check(csn_error **err);
csn_status csn_dagger_session_open(csn_remote *r, csn_error **err);
/* Uses the session that another process started and recorded. CSN_GONE when it has ended. */
csn_status csn_dagger_session_attach(csn_dagger *d, const csn_jval *record, csn_error **err);
void csn_dagger_session_stop(csn_dagger *d);
void csn_dagger_session_release(csn_dagger *d);

/* query.c */
typedef struct csn_dagger_query {
    const char *what;      /* for error messages */
    const char *container; /* id to select from; NULL: the root */
    const char *selection;
    csn_http_retry retry;
    uint64_t deadline_ns;
    const int32_t *cancel_fds; /* three; NULL: the sandbox's stop descriptor */
    uint64_t (*on_interrupt)(void *ctx, csn_status why);
    void *ctx;
} csn_dagger_query;

typedef struct csn_dagger_response {
    csn_jval *root;
    const csn_jval *data; /* of the selection */
    bool sent;            /* the engine may have acted on it */
    bool exec_error;      /* a command failed; its changes are lost */
    char message[200];    /* the engine's, when it reported an error */
} csn_dagger_response;

/* Always release the response. */
csn_status csn_dagger_send(csn_remote *r, const csn_dagger_query *q, csn_dagger_response *ret,
                           csn_error **err);
void csn_dagger_response_release(csn_dagger_response *a);
#define csn_auto_dagger_response CSN_CLEANUP(csn_dagger_response_release) csn_dagger_response
/* Sends the query and copies the id at `path` of the response. */
csn_status csn_dagger_send_for_id(csn_remote *r, const csn_dagger_query *q, const char *path,
                                  char **ret, csn_error **err);
/* Appends GraphQL text. Each `?` becomes the next const char * argument as a string literal.
 * 0 or errno. */
int csn_dagger_append(csn_buf *b, const char *text, ...);
/* The member at a path of names, "a.b.c". */
const csn_jval *csn_dagger_at(const csn_jval *v, const char *path);
const char *csn_dagger_id_at(const csn_jval *v, const char *path); /* NULL: not a valid id */

/* state.c: as the members of csn_remote_provider and csn_snapshot_ops. */
csn_status csn_dagger_create(csn_remote *r, csn_error **err);
csn_status csn_dagger_connect(csn_remote *r, const char *record, csn_error **err);
int csn_dagger_write_record(const csn_remote *r, csn_buf *out);
csn_status csn_dagger_destroy(csn_remote *r, csn_error **err);
void csn_dagger_release(csn_remote *r);
csn_status csn_dagger_snapshot(void *state, char **ret, csn_error **err);
csn_status csn_dagger_rollback(void *state, const char *snapshot, csn_error **err);
/* Takes the step lock and reads the current container, which another process may have
 * replaced. */
csn_status csn_dagger_step_begin(csn_remote *r, uint64_t deadline_ns,
                                 const int32_t cancel_fds[3], csn_error **err);
/* Returns the id of the container that the last command produced; malloc'd. Needs no step
 * lock. */
csn_status csn_dagger_current(csn_remote *r, char **ret, csn_error **err);
/* With the step lock: replaces the current container, also in the record. */
csn_status csn_dagger_commit(csn_remote *r, const char *id, csn_error **err);

/* exec.c, upload.c */
csn_status csn_dagger_run(csn_remote *r, const csn_remote_cmd *cmd, csn_remote_exit *ret,
                          csn_error **err);
csn_status csn_dagger_upload(csn_remote *r, const char *path, const csn_source *content,
                             csn_error **err);
