/* internal.h: what the files of the protocol share. */
#pragma once
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "mcp/pool.h"
#include "mcp/server.h"
#include "wire/tool_schema.h"

/* One request that runs. In two lists: of its session while it can be cancelled, and of the
 * server while it reports progress. */
typedef struct csn_mcp_call {
    struct csn_mcp_call *next, **link;
    struct csn_mcp_call *tick_next, **tick_link;
    csn_mcp_session *session; /* counted in its `running`, and a reference */
    csn_rpc_msg msg;
    csn_mcp_out out;
    bool modern;
    const csn_tool_schema *tool;
    const csn_jval *args;
    csn_cancel *cancel;
    atomic_bool cancelled;
    char *token; /* for progress, as JSON; NULL: none is wanted */
    atomic_uint_fast64_t printed;
    uint64_t started_ns;
    pthread_mutex_t lock; /* over out and answered: nothing is sent after the answer */
    bool answered;
} csn_mcp_call;

struct csn_mcp_server {
    const csn_config *config;
    csn_pool *pool;
    csn_buf tools;        /* the JSON array of all tools */
    csn_buf instructions; /* for the model, about all of them */
    pthread_mutex_t lock; /* over what follows */
    pthread_cond_t tick;
    pthread_t ticker;
    bool ticking, stopping;
    csn_mcp_call *ticks; /* calls that want progress */
};

struct csn_mcp_session {
    csn_mcp_server *server;
    csn_mcp_sandbox *room;
    pthread_mutex_t lock; /* over what follows */
    pthread_cond_t idle;
    unsigned refs, running;
    const char *version; /* a constant, NULL before initialize */
    csn_mcp_call *calls;
};

/* progress.c */
void csn_mcp_progress_add(csn_mcp_server *s, csn_mcp_call *c);
void csn_mcp_progress_remove(csn_mcp_server *s, csn_mcp_call *c);
void csn_mcp_progress_stop(csn_mcp_server *s);

/* call.c */
void csn_mcp_call_start(csn_mcp_session *s, csn_rpc_msg *m, const csn_mcp_out *out,
                        bool modern);
/* session.c: false when a request with this id is running already. */
bool csn_mcp_session_enter(csn_mcp_session *s, csn_mcp_call *c);
void csn_mcp_session_finish_call(csn_mcp_session *s,
                                 csn_mcp_call *c); /* no longer cancellable */
void csn_mcp_session_leave(csn_mcp_session *s, csn_mcp_call *c);
void csn_mcp_session_cancel_id(csn_mcp_session *s, const char *id);

/* methods.c: members that every result of the stateless revision has. */
void csn_mcp_put_modern(csn_json *j, bool cacheable);
/* Answers with an error. */
void csn_mcp_answer_error(const csn_mcp_out *out, const char *id, int code, const char *message,
                          const char *data);
