/* server.h: handles the MCP protocol, independent of the transport.
 *
 * A server is shared by all sessions; a session is one client's conversation and its sandbox. A
 * transport parses messages (rpc.h), passes each to csn_mcp_take and sends the replies. These
 * functions do not block on tool calls, which run on threads of the server. */
#pragma once
#include <stdbool.h>

#include "base/buf.h"
#include "caisson/caisson.h"
#include "mcp/rpc.h"
#include "mcp/session_sandbox.h"

#define CSN_MCP_LATEST "2025-11-25" /* with initialize */
#define CSN_MCP_MODERN "2026-07-28" /* stateless */

typedef struct csn_mcp_server csn_mcp_server;
typedef struct csn_mcp_session csn_mcp_session;

/* The destination of replies to one incoming message. Both functions may be called from any
 * thread. */
typedef struct csn_mcp_out {
    /* Sends a notification that belongs to the request; may drop it. */
    void (*send)(void *ctx, const csn_buf *msg);
    /* Called exactly once, last. msg NULL: no reply (a notification, a cancelled request).
     * `code`: 0 or the JSON-RPC error code. */
    void (*done)(void *ctx, const csn_buf *msg, int code);
    void *ctx;
} csn_mcp_out;

/* `config` must outlive the server. Opens and closes one sandbox to check the configuration. */
csn_status csn_mcp_server_new(const csn_config *config, csn_mcp_server **ret, csn_error **err);
/* Call it after the last session ended. Waits for the threads of the server. NULL is
 * allowed. */
void csn_mcp_server_free(csn_mcp_server *s);
const csn_config *csn_mcp_server_config(const csn_mcp_server *s);
/* Runs work on a thread of the server. Returns false if the queue is full. */
bool csn_mcp_server_submit(csn_mcp_server *s, void (*run)(void *arg), void *arg);

/* Takes its own reference to the sandbox. Returns NULL if out of memory. */
csn_mcp_session *csn_mcp_session_new(csn_mcp_server *s, csn_mcp_sandbox *sandbox);
csn_mcp_session *csn_mcp_session_ref(csn_mcp_session *s);
void csn_mcp_session_unref(csn_mcp_session *s); /* NULL is allowed */
/* The negotiated revision; NULL before initialize. */
const char *csn_mcp_session_version(csn_mcp_session *s);
/* Cancels every call of the session. */
void csn_mcp_session_cancel(csn_mcp_session *s);
/* Waits until no call is running. Returns false after `ms`. */
bool csn_mcp_session_drain(csn_mcp_session *s, uint64_t ms);

/* Returns the protocol revision in params._meta of a stateless message, or NULL for a message
 * of a session that began with initialize. */
const char *csn_mcp_claim(const csn_rpc_msg *m);
bool csn_mcp_is_modern(const csn_rpc_msg *m);
/* True if the message has the revision and capabilities that a stateless message needs. */
bool csn_mcp_claim_complete(const csn_rpc_msg *m);
bool csn_mcp_speaks(const char *version); /* true for a supported revision with initialize */

/* Handles the message and frees it. Replies at once or later. */
void csn_mcp_take(csn_mcp_session *s, csn_rpc_msg *m, const csn_mcp_out *out);
/* Replies to a message that csn_rpc_parse refused. */
void csn_mcp_refuse(const csn_rpc_fault *why, const csn_mcp_out *out);
