/* server.h: the protocol without a transport: messages in, messages out.
 *
 * A server is what all conversations share; a session is one conversation, with the sandbox
 * behind it. Transports parse (rpc.h), hand each message to csn_mcp_take and carry what comes
 * back. Nothing here blocks the caller: tool calls run on threads of the server. */
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

/* Where the messages about one incoming message go. Both may be called from any thread. */
typedef struct csn_mcp_out {
    /* A notification that belongs to the request; may be dropped. */
    void (*send)(void *ctx, const csn_buf *msg);
    /* Exactly once a message, and last. NULL: nothing is to be answered (a notification, a
     * cancelled request). `code` is 0 or that of the JSON-RPC error. */
    void (*done)(void *ctx, const csn_buf *msg, int code);
    void *ctx;
} csn_mcp_out;

/* `config` and everything in it must outlive the server. Makes a sandbox of it once, to see
 * that it can be done and what it is, and closes it. */
csn_status csn_mcp_server_new(const csn_config *config, csn_mcp_server **ret, csn_error **err);
/* After its last session: waits for its threads. NULL is fine. */
void csn_mcp_server_free(csn_mcp_server *s);
const csn_config *csn_mcp_server_config(const csn_mcp_server *s);
/* Work that may wait, on a thread of the server. false: too much is waiting. */
bool csn_mcp_server_submit(csn_mcp_server *s, void (*run)(void *arg), void *arg);

/* The session takes its own reference to the room. NULL: out of memory. */
csn_mcp_session *csn_mcp_session_new(csn_mcp_server *s, csn_mcp_sandbox *room);
csn_mcp_session *csn_mcp_session_ref(csn_mcp_session *s);
void csn_mcp_session_unref(csn_mcp_session *s); /* NULL is fine */
/* The negotiated revision; NULL before initialize. */
const char *csn_mcp_session_version(csn_mcp_session *s);
/* Cancels every call in it. */
void csn_mcp_session_cancel(csn_mcp_session *s);
/* Until no call is left; false: some still are. */
bool csn_mcp_session_drain(csn_mcp_session *s, uint64_t ms);

/* The revision a message claims for itself in params._meta, or NULL: then it is a message of
 * the times of initialize. */
const char *csn_mcp_claim(const csn_rpc_msg *m);
bool csn_mcp_is_modern(const csn_rpc_msg *m);
/* Does it name a revision and its capabilities, as a stateless one must? */
bool csn_mcp_claim_complete(const csn_rpc_msg *m);
bool csn_mcp_speaks(const char *version); /* a revision with initialize that we know */

/* Takes the message over, answers now or later. */
void csn_mcp_take(csn_mcp_session *s, csn_rpc_msg *m, const csn_mcp_out *out);
/* The answer to what csn_rpc_parse refused. */
void csn_mcp_refuse(const csn_rpc_fault *why, const csn_mcp_out *out);
