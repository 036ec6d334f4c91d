/* internal.h: the structs of server, session and call, and functions private to src/mcp. */
#pragma once
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "mcp/pool.h"
#include "mcp/server.h"
#include "wire/tool_schema.h"

/* A running tools/call. It is in the list of its session while it can be cancelled, and in the
 * list of the server while it reports progress. */
typedef struct csn_mcp_call {
    struct csn_mcp_call *next, **link;
    struct csn_mcp_call *progress_next, **progress_link;
    csn_mcp_session *session; /* holds a reference and counts in `running` */
    csn_rpc_msg msg;
    csn_mcp_out out;
    bool modern;
    const csn_tool_schema *tool;
    const csn_jval *args;
    csn_cancel *cancel;
    atomic_bool cancelled;
    char *token; /* progress token as JSON; NULL: no progress requested */
    atomic_uint_fast64_t printed;
    uint64_t started_ns;
    pthread_mutex_t lock; /* protects out and answered */
    bool answered;
} csn_mcp_call;

struct csn_mcp_server {
    const csn_config *config;
    csn_pool *pool;
    csn_buf tools;        /* JSON array */
    bool cow;             /* sandboxes have a copy-on-write workspace */
    csn_buf instructions; /* for the model */
    pthread_mutex_t lock; /* protects the following */
    pthread_cond_t tick;
    pthread_t ticker;
    bool has_ticker, stopping;
    csn_mcp_call *progress_calls; /* calls that report progress */
};

struct csn_mcp_session {
    csn_mcp_server *server;
    csn_mcp_sandbox *sandbox;
    pthread_mutex_t lock; /* protects the following */
    pthread_cond_t idle;
    unsigned refs, running;
    const char *version; /* static; NULL before initialize */
    csn_mcp_call *calls;
};

/* progress.c */
void csn_mcp_progress_add(csn_mcp_server *s, csn_mcp_call *c);
void csn_mcp_progress_remove(csn_mcp_server *s, csn_mcp_call *c);
void csn_mcp_progress_stop(csn_mcp_server *s);

/* call.c */
void csn_mcp_call_start(csn_mcp_session *s, csn_rpc_msg *m, const csn_mcp_out *out,
                        bool modern);
/* session.c. Returns false if a request with this id is running. */
bool csn_mcp_session_enter(csn_mcp_session *s, csn_mcp_call *c);
void csn_mcp_session_finish_call(csn_mcp_session *s,
                                 csn_mcp_call *c); /* cannot be cancelled any more */
void csn_mcp_session_leave(csn_mcp_session *s, csn_mcp_call *c);
void csn_mcp_session_cancel_id(csn_mcp_session *s, const char *id);

/* methods.c: writes the members that every result of the stateless revision has. */
void csn_mcp_put_modern(csn_json *j, bool cacheable);
void csn_mcp_answer_error(const csn_mcp_out *out, const char *id, int code, const char *message,
                          const char *data);
