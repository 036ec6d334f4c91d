/* dagger.h: what the files of the dagger backend share.
 *
 * One server: the session of a Dagger engine on this machine's loopback, GraphQL with a token.
 * A sandbox is the id of a container, which is a value and never changes: a command makes
 * another one, and that is the sandbox from then on. So commands run one after another (the
 * turn), and what is given up half-way has left no trace. */
#pragma once
#include "base/json_read.h"
#include "remote/remote.h"

extern const csn_remote_kind csn_dagger_kind;

typedef struct csn_dagger_session {
    unsigned port; /* 0: none yet */
    char *token;
    /* Only of one that we started: */
    int hold;  /* its standard input: closed, it ends. -1: it holds that itself (detached) */
    pid_t pid; /* 0: not ours */
    uint64_t born;
} csn_dagger_session;

typedef struct csn_dagger {
    csn_dagger_session session;
    csn_step_lock *turn;
    char *container; /* the sandbox as it is now: changed with the turn, guarded by r->lock */
    char *user;      /* whom commands run as, "" for the superuser; set once */
    _Atomic(bool) by_load; /* an engine without node(id:) */
} csn_dagger;

#define CSN_DAGGER_IMAGE   "python:3.13-slim"
#define CSN_DAGGER_WORKDIR "/work"
#define CSN_DAGGER_STATE   "snapshot:" /* before the id of a container, in place of an image */
#define CSN_DAGGER_TURN    "CAISSON_TURN" /* variable that only our own processes have */

static inline csn_dagger *csn_dagger_of(const csn_remote *r)
{
    return r->own;
}

/* session.c: where the engine is. */
bool csn_dagger_has_session(void);                    /* the pair of variables */
csn_status csn_dagger_session_check(csn_error **err); /* a pair, or a program to start */
csn_status csn_dagger_session_open(csn_remote *r, csn_error **err);
/* One that another process started and noted. CSN_GONE. */
csn_status csn_dagger_session_adopt(csn_dagger *d, const csn_jval *note, csn_error **err);
void csn_dagger_session_end(csn_dagger *d);
void csn_dagger_session_release(csn_dagger *d);

/* query.c: one request. */
typedef struct csn_dagger_query {
    const char *on;        /* id of a container; NULL: from the root */
    const char *type;      /* of `on`, "Container" */
    const csn_buf *select; /* what is asked of it */
    const char *what;      /* for messages */
    csn_http_repeat repeat;
    uint64_t deadline_ns;
    const int32_t *cancel_fds; /* three */
    uint64_t (*on_alarm)(void *ctx, csn_status why);
    void *ctx;
} csn_dagger_query;

typedef struct csn_dagger_answer {
    csn_jval *root;
    const csn_jval *at; /* what `select` gave */
    bool sent;          /* it may have been acted on */
    bool exec_error;    /* a container ended with exit_code, and its changes are lost */
    int exit_code;
    char said[200]; /* the engine's words when it refused */
} csn_dagger_answer;

/* Release the answer in any case. */
csn_status csn_dagger_ask(csn_remote *r, const csn_dagger_query *q, csn_dagger_answer *ret,
                          csn_error **err);
void csn_dagger_answer_release(csn_dagger_answer *a);
#define csn_autoanswer CSN_CLEANUP(csn_dagger_answer_release) csn_dagger_answer
/* A string as a literal of the query language. 0 or errno. */
int csn_dagger_literal(csn_buf *b, const char *s);
/* The member behind a path of names, "a.b.c", as a string that can be an id; or NULL. */
const char *csn_dagger_id_at(const csn_jval *v, const char *path);
const csn_jval *csn_dagger_at(const csn_jval *v, const char *path);

/* state.c */
csn_status csn_dagger_make(csn_remote *r, csn_error **err);
csn_status csn_dagger_find(csn_remote *r, const char *note, csn_error **err);
int csn_dagger_note(const csn_remote *r, csn_buf *out);
csn_status csn_dagger_end(csn_remote *r, csn_error **err);
csn_status csn_dagger_put(csn_remote *r, const char *path, const csn_source *content,
                          csn_error **err);
void csn_dagger_release(csn_remote *r);
/* As csn_snapshot_ops.take and rollback: a state is a value, and its id a snapshot. */
csn_status csn_dagger_snapshot(void *state, char **ret, csn_error **err);
csn_status csn_dagger_rollback(void *state, const char *snapshot, csn_error **err);
/* Takes the turn and, if others may have had it, learns what they made of the sandbox. */
csn_status csn_dagger_begin(csn_remote *r, uint64_t deadline_ns, const int32_t cancel_fds[3],
                            csn_error **err);
/* Without the turn: the sandbox as the last command left it; malloc'd. */
csn_status csn_dagger_now(csn_remote *r, char **ret, csn_error **err);
/* With the turn: the sandbox is this from now on. */
csn_status csn_dagger_become(csn_remote *r, const char *id, csn_error **err);

/* exec.c */
csn_status csn_dagger_run(csn_remote *r, const csn_remote_cmd *cmd, csn_remote_exit *ret,
                          csn_error **err);
